"""What other settings would do to a run, from its saved candidates alone.

The service is not asked again. Where the trace cannot tell, the answer is None and `why_not` says
why; a guess is never made for a number.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ragwb.runs.traces import Trace, Traces
from ragwb.triage.result import Triage
from ragwb.triage.whatif.changes import Change
from ragwb.triage.whatif.forecast import Basis, Forecast, basis_of, forecast
from ragwb.triage.whatif.labels import must_not_come, required_groups
from ragwb.triage.whatif.latency import measured_latency
from ragwb.triage.whatif.lists import NONE

# Where a chunk can come back.
_RETURNED = ("results", "context")


@dataclass(frozen=True, slots=True)
class Predicted:
    """What a change would have brought for one result.

    Attributes:
        results: chunk ids as the service would return them.
        context: those put before the model; None where that is unknown or was not observed.
        context_tokens: of the context, in the service's tokens; None where unknown.
        k: the cut at which the result is judged.
        is_exact: whether the order is the service's own; else only what it takes to judge is sure,
            or rests on ranks of `/explain`, which know no cut of the candidates.
    """

    results: tuple[str, ...]
    context: tuple[str, ...] | None
    context_tokens: int | None
    k: int
    is_exact: bool


@dataclass(frozen=True, slots=True)
class RunRemedy:
    """What a change would do to the cases of a run.

    Attributes:
        change: the changed setting.
        fixed: failed cases that would pass in every repeat.
        broken: passed cases that would fail in any.
        unknown: cases of which the traces cannot tell.
        tokens_per_case: mean tokens that the context grows by; None where unknown.
        latency_ms: p95 at the client, measured in the saved run `latency_run` at exactly this
            setting; None when there is none.
    """

    change: Change
    fixed: tuple[str, ...]
    broken: tuple[str, ...]
    unknown: tuple[str, ...]
    tokens_per_case: float | None
    latency_ms: float | None
    latency_run: str | None

    def to_dict(self) -> dict[str, Any]:
        """The JSON of a remedy."""
        return {
            "change": self.change.label,
            "fixed": list(self.fixed),
            "broken": list(self.broken),
            "unknown": list(self.unknown),
            "tokens_per_case": self.tokens_per_case,
            "latency_ms": self.latency_ms,
            "is_remedy": self.change.is_remedy,
        }


def changes_for(triage: Triage) -> tuple[Change, ...]:
    """The changes that are tried on a run: a grid over every setting that it tells of."""
    return triage.changes


def predict(traces: Traces, trace: Trace, change: Change, *, k: int) -> Predicted | None:
    """What a result would have been under a change; None when the trace cannot tell (`why_not`).

    Args:
        traces: the run's traces.
        trace: the result.
        change: the changed setting.
        k: the cut at which it is judged; a changed K takes its place.
    """
    basis = basis_of(traces, [(trace.case_id, trace.repeat)])
    found = forecast(basis, change, k)
    return None if found.why[0] else _predicted(basis, found)


def why_not(traces: Traces, trace: Trace, change: Change, *, k: int) -> str | None:
    """Why `predict` gives None, in a sentence; None when it does not."""
    basis = basis_of(traces, [(trace.case_id, trace.repeat)])
    return str(forecast(basis, change, k).why[0]) or None


def fails(trace: Trace, predicted: Predicted) -> bool:
    """Whether a result fails under what was predicted, at the K that this was predicted for.

    It does when one of the required groups has no chunk in the results, or none of those in the
    context where that is known; or when a chunk comes back that is forbidden or leaked before.
    """
    top = predicted.results[: predicted.k]
    lists = {name: trace.stages[name].chunk_ids for name in _RETURNED if name in trace.stages}
    cited = trace.result["citations"] or ()
    bad = must_not_come(trace.case, trace.explanations, {**lists, "citations": cited})
    kept = set(top) if predicted.context is None else set(top).intersection(predicted.context)
    lost = any(kept.isdisjoint(chunk_ids) for chunk_ids in required_groups(trace.case))
    return lost or not bad.isdisjoint(top) or not bad.isdisjoint(cited)


def remedies(triage: Triage, changes: Iterable[Change] | None = None) -> tuple[RunRemedy, ...]:
    """The changes that fix any failed case, the best first.

    Ranked by cases fixed per case broken, then by cases fixed, then by tokens a case. Of the values
    of one setting that do the same to every case only the cheapest is told. A waived filter is no
    remedy: it comes after all of them, to show what it would do.

    Args:
        triage: the failed cases of a run.
        changes: what to try; by default `changes_for` the run.
    """
    tried = changes_for(triage) if changes is None else changes
    found = (effect(triage, change) for change in tried)
    ranked = sorted((remedy for remedy in found if remedy.fixed), key=_rank)
    distinct: dict[tuple[object, ...], RunRemedy] = {}
    for remedy in ranked:
        does = (remedy.change.setting, remedy.fixed, remedy.broken, remedy.unknown)
        distinct.setdefault(does, remedy)
    return tuple(distinct.values())


def effect(triage: Triage, change: Change) -> RunRemedy:
    """What a change would do to a run, whether it fixes anything or not.

    A case that fails by its answer alone is neither fixed nor broken by what comes before it.
    """
    basis = triage.basis
    found = forecast(basis, change, triage.k)
    fails_after = _outcomes(basis, found)
    failed = {case.case_id for case in triage.cases if case.verdict.is_lost_before_answer}
    passed = {*triage.passed, *dict(triage.unjudged)}
    judged_ids = failed | passed
    judged = [case_id for case_id in triage.traces.cases if case_id in judged_ids]
    measured = measured_latency(triage.run, change, triage.saved_runs)
    return RunRemedy(
        change=change,
        fixed=tuple(i for i in judged if i in failed and fails_after[i] is False),
        broken=tuple(i for i in judged if i in passed and fails_after[i] is True),
        unknown=tuple(i for i in judged if fails_after[i] is None),
        tokens_per_case=_tokens_added(basis, found),
        latency_ms=measured.p95_ms if measured else None,
        latency_run=measured.run_id if measured else None,
    )


def _outcomes(basis: Basis, found: Forecast) -> dict[str, bool | None]:
    """By case id whether it would fail in any repeat; None when that is unknown."""
    outcome: dict[str, bool | None] = {}
    for pair, failed, why in zip(
        basis.saved.seen.pairs, found.failed.tolist(), found.why.tolist(), strict=True
    ):
        before = outcome.get(pair[0], False)
        now = None if why else failed
        outcome[pair[0]] = True if before or now else None if None in (before, now) else False
    return outcome


def _tokens_added(basis: Basis, found: Forecast) -> float | None:
    """Mean tokens that the contexts grow by, over the results of which both are known."""
    grown = (found.contexts.tokens - basis.observed.tokens)[found.why == ""]
    known = grown[~np.isnan(grown)]
    return float(known.mean()) if len(known) else None


def _rank(remedy: RunRemedy) -> tuple[bool, float, int, float]:
    n_fixed, n_broken = len(remedy.fixed), len(remedy.broken)
    ratio = n_fixed / n_broken if n_broken else np.inf
    tokens = np.inf if remedy.tokens_per_case is None else remedy.tokens_per_case
    return not remedy.change.is_remedy, -ratio, -n_fixed, tokens


def _predicted(basis: Basis, found: Forecast) -> Predicted:
    """The first row of a forecast in chunk ids."""
    codes = found.codes[0]
    results = tuple(basis.saved.seen.names[codes[codes != NONE]].tolist())
    n, tokens = int(found.contexts.n[0]), float(found.contexts.tokens[0])
    return Predicted(
        results=results,
        context=None if n == NONE else results[:n],
        context_tokens=None if np.isnan(tokens) else round(tokens),
        k=found.k,
        is_exact=bool(found.is_exact[0]),
    )
