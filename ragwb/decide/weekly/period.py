"""All runs of a period as one result: trends, what changed since last week, and the verdict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragwb import html
from ragwb.decide.compare import compare_outcomes
from ragwb.decide.thresholds import Verdict
from ragwb.decide.weekly.drift import SliceDrift, UnstableCase, drifting_slices, unstable_cases
from ragwb.decide.weekly.golden_changes import Mark, marks
from ragwb.decide.weekly.owed import JudgeStatus, Notes, judge_statuses, review_notes
from ragwb.decide.weekly.runs import Found, find_runs, list_period, older_runs
from ragwb.decide.weekly.series import (
    DatedRun,
    LeftOut,
    Point,
    group_runs,
    headline_metric,
    point_of,
    points_of,
    reference_of,
)
from ragwb.decide.weekly.verdict import RunVerdict, not_gated, verdict_of
from ragwb.decide.weekly.weeks import Span, read_span
from ragwb.errors import MetricError, RunError, UsageError
from ragwb.measure.listed import count
from ragwb.settings import Settings, load_settings

if TYPE_CHECKING:
    import pandas as pd

    from ragwb.decide.comparison import Comparison
    from ragwb.decide.gate.policy import Policy

_GRAVITY: dict[Verdict, int] = {"fail": 0, "undecided": 1, "pass": 2}


@dataclass(frozen=True, repr=False, eq=False)
class Series:
    """The runs of one golden set in a period, in the order of time.

    Attributes:
        points: the runs; at least one.
        k: the cut of the results, the smallest top K among them.
        reference: what the last run is held against: the newest run of an earlier week, also from
            before the period, else the run before it; None when there is no other. A run of which
            every call failed is passed over.
        comparison: of the last run with the reference; None without one, or where they have no case
            in common, which `problem` says then.
        marks: where something that the manifests name changed.
        slices: how each slice stands against the first run of the period.
        unstable: cases that do not hold still.
        notes: what people wrote of the runs.
        verdict: on the last run.
    """

    points: tuple[Point, ...]
    k: int
    reference: Point | None
    comparison: Comparison | None
    marks: tuple[Mark, ...]
    slices: tuple[SliceDrift, ...]
    unstable: tuple[UnstableCase, ...]
    notes: Notes
    verdict: RunVerdict
    problem: str = ""

    @property
    def latest(self) -> Point:
        """The last run."""
        return self.points[-1]

    @property
    def metric(self) -> str:
        """The figure that leads, such as recall@5."""
        return headline_metric(self.latest.outcomes)

    @property
    def name(self) -> str:
        """What is asked of which set, as its last run names it."""
        return f"{self.latest.outcomes.kind} · {self.latest.run.manifest.dataset_version}"

    @property
    def is_week_apart(self) -> bool:
        """Whether the reference was made in an earlier week than the last run."""
        return self.reference is not None and self.reference.week != self.latest.week

    def lines(self) -> tuple[str, str, str]:
        """What a manager reads: the verdict, what changed since last week, where to look first."""
        from ragwb.decide.weekly.words import three_lines

        return three_lines(self)


@dataclass(frozen=True, repr=False, eq=False)
class Period:
    """All runs of a period.

    Attributes:
        span: its first and last day.
        dataset: the dataset version that was asked for; None for all.
        series: a series for each golden set and kind of run, the gravest verdict first.
        judges: what each judge may do; judge_problem: why they are not known, else "".
        left_out: runs of the period that are in no series, and why.
        n_other: runs of the period on other dataset versions than the one asked for.
    """

    span: Span
    dataset: str | None
    series: tuple[Series, ...]
    judges: tuple[JudgeStatus, ...]
    judge_problem: str
    left_out: tuple[LeftOut, ...]
    n_other: int = 0

    @property
    def verdict(self) -> Verdict:
        """The gravest verdict of a series: fail, then undecided, then pass."""
        return self.series[0].verdict.verdict

    @cached_property
    def frame(self) -> pd.DataFrame:
        """A row a run and figure, in the order of time.

        Returns:
            series, run_id, created_at, metric, value, low, high, n, n_excluded, counts, direction.
        """
        import pandas as pd

        return pd.DataFrame(
            {"series": one.name, "run_id": point.run_id, "created_at": point.at.isoformat(), **row}
            for one in self.series
            for point in one.points
            for row in point.figures
        )

    def to_dict(self) -> dict[str, Any]:
        """The period as JSON values."""
        from ragwb.decide.weekly.as_json import period_json

        return period_json(self)

    def __repr__(self) -> str:
        lines = [f"{html.plain(self.title())}"]
        for one in self.series:
            lines += ["", html.plain(one.name), *(html.plain(line) for line in one.lines())]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        parts = [html.tag("p", html.tag("strong", html.escape(self.title())))]
        for one in self.series:
            said = "".join(html.tag("li", html.escape(line)) for line in one.lines())
            parts += [html.tag("p", html.escape(one.name)), html.tag("ul", said)]
        return "".join(parts)

    def title(self) -> str:
        """The period and its number of runs, in a line."""
        n = sum(len(one.points) for one in self.series)
        return f"{self.span}: {count(n, 'run')} in {len(self.series)} series"


def period(
    settings: Settings | None = None,
    since: str | None = None,
    until: str | None = None,
    dataset: str | None = None,
    policy: Path | str | None = None,
    baseline: str | None = None,
    *,
    now: datetime | None = None,
) -> Period:
    """All sealed runs of a period, measured and held against one another; nothing is asked.

    Args:
        settings: where the runs are; default the settings in force.
        since: a day such as 2026-01-05 or a week such as 2026-W02, included; by default the period
            has twelve weeks.
        until: the same, included; by default today.
        dataset: one dataset version; by default all.
        policy: a gate's policy for the last run of each series; by default zero tolerance alone.
        baseline: what the policy compares with; by default the run of the week before.
        now: the present; by default the clock's.

    Raises:
        UsageError: a day is none, or the policy asks for what none of the runs has.
        RunError: no finished run lies in the period, or there is no such baseline.
        DataError: the policy is wrong.
    """
    settings = settings or load_settings()
    span = read_span(since, until, now=now or datetime.now(UTC))
    checked = _checked_policy(policy, baseline)
    found = find_runs(settings, span, dataset)
    _check_any(found, settings, span)
    series, left_out = _all_series(found, settings)
    if not series:
        raise RunError(f"no run of {span} can be measured: {left_out[0].reason}")
    judged = _with_verdicts(series, settings, checked, baseline)
    points = [point for one in judged for point in one.points]
    judges, judge_problem = judge_statuses(points, settings)
    return Period(
        span=span,
        dataset=dataset,
        series=tuple(sorted(judged, key=lambda one: _GRAVITY[one.verdict.verdict])),
        judges=judges,
        judge_problem=judge_problem,
        left_out=(*found.left_out, *left_out),
        n_other=found.n_other,
    )


def check_period(
    settings: Settings | None = None,
    since: str | None = None,
    until: str | None = None,
    dataset: str | None = None,
    policy: Path | str | None = None,
    baseline: str | None = None,
    *,
    now: datetime | None = None,
) -> None:
    """Raise what `period` would raise of its arguments, without opening a run."""
    settings = settings or load_settings()
    span = read_span(since, until, now=now or datetime.now(UTC))
    _checked_policy(policy, baseline)
    listed = list_period(settings, span, dataset)
    if not listed.sealed:
        raise RunError(_no_runs(settings, span, listed.n_other, len(listed.left_out)))


def _checked_policy(policy: Path | str | None, baseline: str | None) -> Policy | None:
    """The policy, read once before anything is measured."""
    if policy is None:
        if baseline is not None:
            raise UsageError("--baseline is what a policy compares with: give --policy as well")
        return None
    from ragwb.decide.gate.policy import load_policy

    return load_policy(policy)


def _check_any(found: Found, settings: Settings, span: Span) -> None:
    if not found.runs:
        raise RunError(_no_runs(settings, span, found.n_other, len(found.left_out)))


def _no_runs(settings: Settings, span: Span, n_other: int, n_left_out: int) -> str:
    others = f"; {n_other} of other datasets" if n_other else ""
    broken = f"; {n_left_out} unfinished, broken or of experiments" if n_left_out else ""
    return (
        f"no finished run to report of {span} in {settings.runs_dir}{others}{broken}: --since "
        "takes earlier ones, ragwb runs list shows them all"
    )


def _all_series(found: Found, settings: Settings) -> tuple[list[Series], list[LeftOut]]:
    series, left_out = [], []
    for line in group_runs(found.runs):
        k = min(one.run.manifest.top_k for one in line)
        points, failed = points_of(line, k)
        left_out += failed
        if points:
            earlier = older_runs(settings, found, line[-1])
            series.append(_series(points, k, earlier))
    return series, left_out


def _series(points: Sequence[Point], k: int, earlier: Iterable[DatedRun]) -> Series:
    """A series without its verdict."""
    latest = points[-1]
    reference = reference_of(points) or _from_before(earlier, k)
    if reference is None:
        reference = next((one for one in reversed(points[:-1]) if not one.is_failed), None)
    comparison, problem = _compared(reference, latest)
    metric, changed = headline_metric(latest.outcomes), marks(points)
    return Series(
        points=tuple(points),
        k=k,
        reference=reference,
        comparison=comparison,
        marks=changed,
        slices=drifting_slices(points[0].outcomes, latest.outcomes, metric),
        unstable=unstable_cases(points, changed),
        notes=review_notes(points),
        verdict=RunVerdict("undecided", None, ""),
        problem=problem,
    )


def _compared(reference: Point | None, latest: Point) -> tuple[Comparison | None, str]:
    """The last run held against the reference, or why it cannot be."""
    if reference is None:
        return None, ""
    try:
        found = compare_outcomes(reference.outcomes, latest.outcomes)
    except UsageError as error:
        return None, str(error)
    if found.n:
        return found, ""
    reasons = dict.fromkeys(one.reason for one in found.left_out)
    return None, f"{len(found.left_out)} cases, none of which pairs: {'; '.join(reasons)}"


def _from_before(earlier: Iterable[DatedRun], k: int) -> Point | None:
    """The newest run from before the period that can be cut at the same K."""
    for dated in earlier:
        found = point_of(dated, k) if dated.run.manifest.top_k >= k else None
        if found is not None and not found.is_failed:
            return found
    return None


def _with_verdicts(
    series: Sequence[Series], settings: Settings, policy: Policy | None, baseline: str | None
) -> list[Series]:
    judged = []
    faults: list[MetricError | UsageError] = []
    for one in series:
        against = baseline or (one.reference.run if one.reference is not None else None)
        try:
            verdict = verdict_of(one.latest, policy=policy, baseline=against, settings=settings)
        except (MetricError, UsageError) as error:
            faults.append(error)
            verdict = not_gated(one.latest, error)
        judged.append(replace(one, verdict=verdict))
    if len(faults) == len(judged):
        # A policy that fits none of the runs is a fault of the policy.
        raise faults[0]
    return judged
