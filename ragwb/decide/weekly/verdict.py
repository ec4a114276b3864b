"""Whether the last run of a series ships: by a policy if one is given, else zero tolerance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragwb.decide.outcomes import Outcomes
from ragwb.decide.thresholds import Verdict, decide_verdict
from ragwb.errors import MetricError, UsageError
from ragwb.runs.store import Run
from ragwb.settings import Settings


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
        blockers: what fails it.
        undecided: what could not be held, in sentences.
    """

    verdict: Verdict
    state: str | None
    by: str
    blockers: tuple[Blocker, ...] = ()
    undecided: tuple[str, ...] = ()


def verdict_of(
    run: Run,
    outcomes: Outcomes,
    *,
    policy: Path | None,
    baseline: Run | str | Path | None,
    settings: Settings,
) -> RunVerdict:
    """The verdict on one run.

    Args:
        run: the run.
        outcomes: of this run.
        policy: a gate's policy; None for zero tolerance alone: evidence that must not be there and
            hard rules fail a run, errors leave it undecided.
        baseline: what the policy compares with; None for nothing.
        settings: where the baseline is looked up.

    Raises:
        DataError: the policy is wrong.
        UsageError, MetricError: the policy asks for what this run does not have.
    """
    if policy is None:
        return _zero_tolerance(outcomes)
    # A period without a policy needs nothing of a gate.
    from ragwb.decide.gate.gate import gate

    found = gate(run, policy, baseline=baseline, settings=settings)
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


def not_gated(error: MetricError | UsageError) -> RunVerdict:
    """The verdict on a run that a policy for other runs cannot be held against."""
    return RunVerdict("undecided", None, "the policy is not for this run", undecided=(str(error),))


def _zero_tolerance(outcomes: Outcomes) -> RunVerdict:
    broken = _by_rule(outcomes.safety)
    n_errors = outcomes.n_errors
    n_forbidden = len({case_id for one in broken for case_id in one.case_ids})
    calls = "1 call failed" if n_errors == 1 else f"{n_errors} calls failed"
    return RunVerdict(
        verdict=decide_verdict((), n_errors=n_errors, n_forbidden=n_forbidden),
        state=None,
        by="no policy was given, so no limits are held",
        blockers=broken,
        undecided=(f"{calls} for good",) if n_errors else (),
    )


def _by_rule(safety: Mapping[str, tuple[str, ...]]) -> tuple[Blocker, ...]:
    return tuple(
        Blocker(f"{rule}: {_cases(len(ids))}", rule, limit=0.0, value=len(ids), case_ids=ids)
        for rule, ids in safety.items()
    )


def _cases(n: int) -> str:
    return "1 case" if n == 1 else f"{n} cases"
