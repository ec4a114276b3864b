"""Whether the last run of a series ships: by a policy if one is given, else zero tolerance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ragwb.decide.thresholds import Verdict, decide_verdict
from ragwb.decide.weekly.series import Point
from ragwb.errors import MetricError, UsageError
from ragwb.measure.answer_scores import FIGURES as ANSWER_FIGURES
from ragwb.measure.listed import count
from ragwb.runs.store import Run
from ragwb.settings import Settings

if TYPE_CHECKING:
    from ragwb.decide.gate.policy import Policy


@dataclass(frozen=True, slots=True)
class Blocker:
    """What stands in the way.

    Attributes:
        words: in a sentence.
        rule, slice, value, limit: as a gate has them; None where there is none.
        case_ids: the cases behind it.
    """

    words: str
    rule: str
    slice: str | None = None
    value: float | None = None
    limit: float | None = None
    case_ids: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The blocker as JSON values, under the keys of a gate's."""
        return {
            "rule": self.rule,
            "slice": self.slice,
            "value": self.value,
            "limit": self.limit,
            "case_ids": list(self.case_ids),
            "words": self.words,
        }


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """The verdict on the last run of a series.

    Attributes:
        verdict: pass, fail or undecided.
        state: what the policy suggests, such as hold; None without a policy.
        by: what decided, in words.
        has_limits: whether a policy's limits were held; a pass without them is no praise.
        blockers: what fails it.
        undecided: what could not be held, in sentences.
    """

    verdict: Verdict
    state: str | None
    by: str
    blockers: tuple[Blocker, ...] = ()
    undecided: tuple[str, ...] = ()
    has_limits: bool = True

    @property
    def colour(self) -> Literal["pass", "fail", "undecided", "neutral"]:
        """The look of the verdict: neutral for a pass for which no limit was held."""
        return "neutral" if self.verdict == "pass" and not self.has_limits else self.verdict


class MisfitError(UsageError):
    """A policy asks for a K or for figures that runs of a series never have."""


def verdict_of(
    point: Point,
    *,
    policy: Policy | None,
    baseline: Run | str | Path | None,
    settings: Settings,
) -> RunVerdict:
    """The verdict on one run.

    Args:
        point: the run, measured.
        policy: a gate's policy; None for zero tolerance alone: evidence that must not be there and
            hard rules fail a run, errors leave it undecided.
        baseline: what the policy compares with; None for nothing.
        settings: where the baseline is looked up.

    Raises:
        MisfitError: the policy is for runs of another kind or of a larger K.
        UsageError, MetricError: the policy asks for what this run does not have.
    """
    if policy is None:
        return _zero_tolerance(point, "no policy was given")
    # A period without a policy needs nothing of a gate.
    from ragwb.decide.gate.gate import gate

    if reason := _misfit(policy, point):
        raise MisfitError(reason)
    found = gate(point.run, policy, baseline=baseline, settings=settings)
    return RunVerdict(
        verdict=found.verdict,
        state=found.state,
        by=f"policy {found.policy.name}",
        blockers=tuple(
            Blocker(rule.words, rule.rule, rule.slice, rule.value, rule.limit, rule.case_ids)
            for rule in found.blockers
        ),
        undecided=tuple(rule.words for rule in found.undecided),
    )


def not_gated(point: Point, error: MetricError | UsageError) -> RunVerdict:
    """The verdict on a run that a policy cannot be held against.

    What was made for other series says nothing of this one, which is held to zero tolerance. A
    policy for this one that cannot be held, such as for a slice that has no case any more, leaves
    it undecided.
    """
    by = f"the policy does not fit this series: {error}"
    if isinstance(error, MisfitError):
        return _zero_tolerance(point, by)
    return RunVerdict("undecided", None, "a policy that could not be held", undecided=(by,))


def _misfit(policy: Policy, point: Point) -> str | None:
    """Why a policy is not made for the runs of a series; None where it may be."""
    from ragwb.decide.gate.policy_rules import JUDGED

    drops = policy.regression.drops if policy.regression else ()
    figures = [rule.figure for rule in (*policy.floors, *drops)]
    top_k = point.run.manifest.top_k
    deepest = max(policy.k, *(figure.k or 1 for figure in figures), 1)
    if deepest > top_k:
        return f"its K {deepest} is beyond top K {top_k}"
    of_answers = {one.name for one in figures if one.name in (*ANSWER_FIGURES, *JUDGED)}
    if point.outcomes.kind == "retrieval" and of_answers:
        return f"its runs only retrieve, and have no {', '.join(sorted(of_answers))}"
    return None


def _zero_tolerance(point: Point, by: str) -> RunVerdict:
    broken = _by_rule(point.outcomes.safety)
    n_errors = point.outcomes.n_errors
    n_forbidden = len({case_id for one in broken for case_id in one.case_ids})
    unknown = f"{point.n_failed_calls} of {point.n_calls} calls failed"
    if not point.n_failed_calls:
        unknown = f"{count(n_errors, 'case')} without a result"
    return RunVerdict(
        verdict=decide_verdict((), n_errors=n_errors, n_forbidden=n_forbidden),
        state=None,
        by=f"{by}, so no limits are held",
        blockers=broken,
        undecided=(unknown,) if n_errors else (),
        has_limits=False,
    )


def _by_rule(safety: Mapping[str, tuple[str, ...]]) -> tuple[Blocker, ...]:
    return tuple(
        Blocker(f"{rule}: {count(len(ids), 'case')}", rule, limit=0.0, value=len(ids), case_ids=ids)
        for rule, ids in safety.items()
    )
