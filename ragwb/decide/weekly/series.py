"""Runs of one golden set in the order of time, each digested to what a trend needs of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ragwb.decide.outcomes import Outcomes, outcomes_of
from ragwb.decide.weekly.trend import figure_rows, set_rows
from ragwb.decide.weekly.weeks import iso_week, week_start
from ragwb.errors import RagwbError
from ragwb.runs.kinds import Kind, kind_of
from ragwb.runs.store import Run, collector_paused
from ragwb.runs.traces import load_traces
from ragwb.triage.attribute import triage_traces
from ragwb.triage.result import ORDER

# Of the smaller of two sets: a set that grew is the same set, another one shares little with it.
_SHARED = 0.5


@dataclass(frozen=True, slots=True)
class DatedRun:
    """A sealed run that may stand in a series, before anything is measured.

    Attributes:
        run: the run.
        at: when it was made, in UTC.
        kind: whether answers were asked for; None where every call failed and nothing tells.
        case_ids: of its golden set.
    """

    run: Run
    at: datetime
    kind: Kind | None
    case_ids: frozenset[str]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A run that is in no figure of a period, and why."""

    run_id: str
    reason: str


@dataclass(frozen=True, repr=False, eq=False)
class Point:
    """One run of a series.

    Attributes:
        run, at: the run, and when it was made, in UTC.
        outcomes: its cases at the K of the series.
        figures: a row a figure (see `trend.figure_rows`).
        sets: a row a set (see `trend.set_rows`), of the first figure.
        stages: number of failed cases by the stage at which each was lost, security first.
        n_calls, n_failed_calls: calls that were made, and those of them that failed for good.
    """

    run: Run
    at: datetime
    outcomes: Outcomes
    figures: tuple[Mapping[str, Any], ...]
    sets: tuple[Mapping[str, Any], ...]
    stages: Mapping[str, int]
    n_calls: int
    n_failed_calls: int

    @property
    def is_failed(self) -> bool:
        """Whether the run failed as a whole: not one call was answered."""
        return self.n_failed_calls == self.n_calls

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.run.run_id

    @property
    def week(self) -> str:
        """The ISO week in which it was made."""
        return iso_week(self.at.date())

    @property
    def n_failed(self) -> int:
        """Number of scored cases that fail by the rule for comparisons."""
        return sum(row["n_failed"] for row in self.sets)

    def figure(self, metric: str) -> Mapping[str, Any] | None:
        """The row of a figure; None where the run does not have it."""
        return next((row for row in self.figures if row["metric"] == metric), None)


def dated_run(run: Run, at: datetime) -> DatedRun:
    """A run with what decides of which series it is.

    Raises:
        RunError: a table is absent or cannot be read.
    """
    ids = frozenset(run.facts()["case_id"].to_pylist())
    return DatedRun(run, at, kind_of(run), ids)


def group_runs(runs: Sequence[DatedRun]) -> list[list[DatedRun]]:
    """Runs that can be drawn as one line: the same kind, and sets that share most of their cases.

    A run joins the line whose last run shares most with it, if that is at least half of the cases
    of the smaller set; so a set may grow and change its name on the way.

    Args:
        runs: in the order of time.

    Returns:
        The lines, that with the newest run first; each in the order of time.
    """
    lines: list[list[DatedRun]] = []
    for run in runs:
        shares = [(belongs(run, line[-1]), line) for line in lines]
        share, line = max(shares, key=lambda found: found[0], default=(0.0, []))
        if share >= _SHARED:
            line.append(run)
        else:
            lines.append([run])
    return sorted(lines, key=lambda line: (line[-1].at, line[-1].run.run_id), reverse=True)


def belongs(run: DatedRun, other: DatedRun) -> float:
    """The share of the smaller set that two runs have in common; 0 when they are of two kinds.

    A run of which every call failed and that does not tell its kind goes with either.
    """
    smaller = min(len(run.case_ids), len(other.case_ids))
    is_other = None not in (run.kind, other.kind) and run.kind != other.kind
    if is_other or not smaller:
        return 0.0
    return len(run.case_ids & other.case_ids) / smaller


def is_same_line(run: DatedRun, other: DatedRun) -> bool:
    """Whether two runs can stand in one series."""
    return belongs(run, other) >= _SHARED


def points_of(line: Sequence[DatedRun], k: int) -> tuple[list[Point], list[LeftOut]]:
    """The runs of a line, measured; one that cannot be is left out with its reason."""
    points, left_out = [], []
    kind = kind_of_line(line)
    for dated in line:
        try:
            points.append(_point(dated, k, dated.kind or kind))
        except RagwbError as error:
            left_out.append(LeftOut(dated.run.run_id, str(error)))
    return points, left_out


def kind_of_line(line: Sequence[DatedRun]) -> Kind | None:
    """What the newest run of a line that tells it asked for."""
    return next((one.kind for one in reversed(line) if one.kind is not None), None)


def point_of(dated: DatedRun, k: int) -> Point | None:
    """One run, measured; None when it cannot be."""
    points, _ = points_of([dated], k)
    return points[0] if points else None


def reference_of(points: Sequence[Point]) -> Point | None:
    """The newest run of a week before that of the last run; None when there is none.

    A run of which every call failed shows nothing that another can be held against.
    """
    start = week_start(points[-1].at)
    earlier = (point for point in reversed(points) if point.at < start)
    return next((point for point in earlier if not point.is_failed), None)


def headline_metric(outcomes: Outcomes) -> str:
    """The figure that leads: recall at K, or of answers the share that is right."""
    return f"recall@{outcomes.k}" if outcomes.kind == "retrieval" else "correct_rate"


def _point(dated: DatedRun, k: int, kind: Kind | None) -> Point:
    with collector_paused():
        traces = load_traces(dated.run)
        outcomes = outcomes_of(dated.run, k=k, kind=kind, traces=traces)
        found = triage_traces(traces, k=k)
    counts: dict[str, int] = {}
    for case in found.cases:
        counts[case.verdict.stage] = counts.get(case.verdict.stage, 0) + 1
    return Point(
        run=dated.run,
        at=dated.at,
        outcomes=outcomes,
        figures=tuple(figure_rows(outcomes)),
        sets=tuple(set_rows(outcomes, headline_metric(outcomes))),
        stages={stage: counts[stage] for stage in ORDER if stage in counts},
        n_calls=len(traces) + len(traces.errors),
        n_failed_calls=len(traces.errors),
    )
