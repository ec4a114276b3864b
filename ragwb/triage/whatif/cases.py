"""For one case the least change of each kind that brings its evidence back."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ragwb.records import MAX_TOP_K
from ragwb.runs.traces import Pair
from ragwb.triage.result import Triage
from ragwb.triage.whatif.changes import Change, Value
from ragwb.triage.whatif.context import tokens_through
from ragwb.triage.whatif.explained import needed_candidates
from ragwb.triage.whatif.forecast import Basis, Forecast, basis_of, forecast
from ragwb.triage.whatif.lists import NONE, Ints, gather

# Of these only the nearest value that works is a remedy; each channel or reason is its own.
_SCALES = ("k", "rrf_k", "weights", "context_budget_tokens", "candidate_k", "deduplicate")


@dataclass(frozen=True, slots=True)
class CaseRemedy:
    """A change that brings a failed case back.

    Attributes:
        change: the changed setting.
        rank_before, rank_after: of the lost group that stands last, from 1; None where it is in no
            list. Before: in the final list, which goes on beyond K.
        tokens_added: that the context grows by, in the service's tokens; None where unknown.
        positions: how far that group has to move up to be within K; None where it is in no list.
        note: what the prediction rests on, "" when on the trace alone.
    """

    change: Change
    rank_before: int | None
    rank_after: int | None
    tokens_added: int | None
    positions: int | None
    note: str


def case_remedies(triage: Triage, case_id: str) -> tuple[CaseRemedy, ...]:
    """The changes under which a failed case would pass: of each kind the least, the least first.

    Least in tokens added to the context, then in positions that the group moves. A waived filter is
    no remedy and comes last. They are those of the repeat that stands for the case; a case that
    fails by its answer alone has none.

    Raises:
        UsageError: the case is not among the failed ones.
    """
    verdict = triage.case(case_id).verdict
    if not verdict.is_lost_before_answer:
        return ()
    pair = (case_id, verdict.repeat)
    basis = basis_of(triage.traces, [pair])
    lost = {group.index for group in verdict.groups if group.stage != "generation"}
    before = _last_rank(basis, _final_codes(basis), lost)
    found: dict[tuple[str, Value], tuple[float, CaseRemedy]] = {}
    for change in (*_least(triage, basis, pair, before), *triage.changes):
        predicted = forecast(basis, change, triage.k)
        if predicted.why[0] or predicted.failed[0]:
            continue
        key = (change.setting, None if change.setting in _SCALES else change.value)
        if key not in found or change.distance < found[key][0]:
            found[key] = change.distance, _remedy(basis, change, predicted, lost, before, triage.k)
    return tuple(sorted((remedy for _, remedy in found.values()), key=_cost))


def _least(triage: Triage, basis: Basis, pair: Pair, rank: int | None) -> Iterator[Change]:
    """The changes that just reach what this case lost."""
    said = basis.saved.seen.said
    if rank is not None and triage.k < rank <= MAX_TOP_K:
        yield Change("k", rank, triage.k)
    if rank is not None and rank <= triage.k and said.context_budget is not None:
        needed = tokens_through(basis.saved.seen, basis.counting, rank)
        if not math.isnan(needed) and needed > said.context_budget:
            yield Change("context_budget_tokens", math.ceil(needed), said.context_budget)
    if said.candidate_k is not None:
        reached = needed_candidates(triage.traces[pair], said.candidate_k)
        if reached is not None:
            yield Change("candidate_k", reached, said.candidate_k)


def _remedy(
    basis: Basis,
    change: Change,
    predicted: Forecast,
    lost: set[int],
    before: int | None,
    k: int,
) -> CaseRemedy:
    added = float(predicted.contexts.tokens[0] - basis.observed.tokens[0])
    return CaseRemedy(
        change=change,
        rank_before=before,
        rank_after=_last_rank(basis, predicted.codes, lost),
        tokens_added=None if math.isnan(added) else round(added),
        positions=None if before is None else max(before - k, 0),
        note="; ".join(filter(None, (predicted.note, basis.counting.note))),
    )


def _cost(remedy: CaseRemedy) -> tuple[bool, float, float]:
    tokens = math.inf if remedy.tokens_added is None else remedy.tokens_added
    before, after = remedy.rank_before, remedy.rank_after
    moved = math.inf if before is None or after is None else abs(before - after)
    return not remedy.change.is_remedy, tokens, moved


def _final_codes(basis: Basis) -> Ints:
    saved = basis.saved
    return np.where(saved.final.slots == NONE, NONE, gather(saved.codes, saved.final))


def _last_rank(basis: Basis, codes: Ints, lost: set[int]) -> int | None:
    """The rank of the lost group that stands last; None when one is nowhere or none is lost."""
    position = basis.labels.first_positions(codes)
    best = [
        int(position[basis.labels.group == group].min(initial=codes.shape[1])) for group in lost
    ]
    return max(best) + 1 if best and max(best) < codes.shape[1] else None
