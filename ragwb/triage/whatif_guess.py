"""Lists with newcomers: how they probably look, and whether that suffices to tell who fails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ragwb.runs.traces import Trace
from ragwb.triage.whatif_added import Newcomers, newcomers
from ragwb.triage.whatif_bounds import ranges_of, rank_bounds
from ragwb.triage.whatif_changes import Change
from ragwb.triage.whatif_duplicates import deduplicated
from ragwb.triage.whatif_explained import below_threshold, beyond_the_cut, final_rank, waivable
from ragwb.triage.whatif_labels import Labels
from ragwb.triage.whatif_lists import (
    NONE,
    Bools,
    Ints,
    Order,
    best_first,
    first_columns,
    gather,
    order_of,
    same_width,
)
from ragwb.triage.whatif_orders import UNSCORED, first_why, reasons
from ragwb.triage.whatif_saved import Saved, Whys

UNSURE = "it depends on chunks that the trace does not name"
FILTERS_UNSEEN = "what the filters took was not observed"
_EVERYTHING = 10**9
# Ranks from 1 and the codes that stand there.
Inserted = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Guess:
    """Results with newcomers; (rows, …) arrays, a row a result.

    Attributes:
        codes: (rows, positions) results, NONE beyond the end.
        why: why nothing can be said, else "".
        is_exact: whether the list is the service's own.
        is_same_set: whether at least the same chunks would be in it, in whatever order.
        is_explained: whether it rests on ranks of `/explain`.
    """

    codes: Ints
    why: Whys
    is_exact: Bools
    is_same_set: Bools
    is_explained: Bools


def guess(saved: Saved, labels: Labels, change: Change, k: int) -> Guess:
    """The results with the chunks that a change would let in.

    What `/explain` says of the ranks of a lost chunk is used where nothing else decides: they are
    those without a cut of the candidates, which is close and not the same.

    """
    if change.setting == "waive":
        return _waived(saved, change)
    new = newcomers(saved, labels, change)
    passes, fails, is_exact = _surely(saved, labels, new, k)
    inserted = _explained(saved, np.flatnonzero(~(passes | fails)), change)
    codes = _lists(saved, new, inserted)
    failed = labels.failed(codes[:, :k], np.full(saved.n_rows, _EVERYTHING))
    is_told = np.where(failed, fails, passes) | is_exact | _rows(saved, inserted)
    is_cut = saved.seen.has["reranked"] & (saved.reranked.n < saved.merged.n) & ~is_exact
    why = first_why(
        new.why,
        saved.no_final,
        saved.no_fusion,
        saved.no_rerank,
        reasons(is_cut, UNSCORED),
        reasons(~is_told, UNSURE),
    )
    in_order, same_set = _certain(saved, new, codes)
    is_exact |= in_order & ~is_cut
    return Guess(codes, why, is_exact, same_set | is_exact, _rows(saved, inserted))


def _surely(saved: Saved, labels: Labels, new: Newcomers, k: int) -> tuple[Bools, Bools, Bools]:
    """Whether each result surely passes, surely fails, and has a list that is known exactly."""
    ranges = ranges_of(saved, new)
    best, worst = rank_bounds(saved, ranges, labels.row, _slots(new.codes, labels.row, labels.code))
    watched = _slots(new.codes, labels.watched_row, labels.watched_code)
    best_watched, worst_watched = rank_bounds(saved, ranges, labels.watched_row, watched)
    if saved.seen.said.deduplicate != "off":
        # What stands before a chunk may be removed.
        best, best_watched = np.ones_like(best), np.ones_like(best_watched)
    n_groups = len(labels.row_of_group)
    is_in, may_be_in = np.zeros(n_groups, dtype=bool), np.zeros(n_groups, dtype=bool)
    is_in[labels.group[worst <= k]] = True
    may_be_in[labels.group[best <= k]] = True
    passes, fails = ~labels.always, labels.always.copy()
    passes[labels.row_of_group[~is_in]] = False
    fails[labels.row_of_group[~may_be_in]] = True
    passes[labels.watched_row[best_watched <= k]] = False
    fails[labels.watched_row[worst_watched <= k]] = True
    is_known_new = np.zeros(saved.n_rows, dtype=bool)
    for name, ranks in new.ranks.items():
        width = saved.ranks[name].shape[1]
        is_known_new |= (ranks[:, :width] != saved.ranks[name]).any(axis=1)
        is_known_new |= (ranks[:, width:] < np.inf).any(axis=1)
    is_open = is_known_new & saved.seen.has["reranked"]
    return passes, fails, ~is_open & (ranges.n_unknown == 0)


def _certain(saved: Saved, new: Newcomers, codes: Ints) -> tuple[Bools, Bools]:
    """Whether every result surely has its rank, and whether all surely are results."""
    if saved.seen.said.deduplicate != "off":
        none = np.zeros(len(codes), dtype=bool)
        return none, none
    rows, places = np.nonzero(codes != NONE)
    slots = _slots(new.codes, rows, codes[rows, places])
    best, worst = rank_bounds(saved, ranges_of(saved, new), rows, slots)
    in_order, same_set = np.ones(len(codes), dtype=bool), np.ones(len(codes), dtype=bool)
    in_order[rows[(best != places + 1) | (worst != places + 1)]] = False
    same_set[rows[worst > codes.shape[1]]] = False
    is_full = (codes != NONE).all(axis=1)
    return in_order & is_full, same_set & is_full


def _slots(codes: Ints, rows: Ints, wanted: Ints) -> Ints:
    """The slot of one chunk a row, NONE where the row has none for it."""
    column = first_columns(codes[rows] == wanted[:, None])
    return np.where(column < codes.shape[1], column, NONE)


def _lists(saved: Saved, new: Newcomers, inserted: Mapping[int, Inserted]) -> Ints:
    """The results as they probably are: known newcomers by their fused score, or put in."""
    ranges = ranges_of(saved, new)
    scores = ranges.low[:, :-1]
    merged = best_first(np.where(scores > 0, scores, -np.inf))
    slots, merged_slots = same_width(saved.final.slots, merged.slots)
    by_score = ~saved.seen.has["reranked"] & (saved.no_final == "")
    order = order_of(np.where(by_score[:, None], merged_slots, slots))
    codes = _cut(saved, new.codes, order)
    return _put_in(codes, {row: found for row, found in inserted.items() if not by_score[row]})


def _cut(saved: Saved, codes: Ints, order: Order) -> Ints:
    """The results that a final list makes under the settings of the run."""
    seen, top_k = saved.seen, saved.seen.said.top_k
    kind = seen.said.deduplicate
    distinct, _ = deduplicated(seen.traces, seen.names, codes, order, kind, top_k)
    return np.where(distinct.slots == NONE, NONE, gather(codes, distinct))[:, :top_k]


def _put_in(codes: Ints, inserted: Mapping[int, Inserted]) -> Ints:
    """Results with chunks put in at their ranks, the best first."""
    changed = codes.copy()
    for row, found in inserted.items():
        held = changed[row][changed[row] != NONE].tolist()
        for rank, code in sorted(found):
            held.insert(rank - 1, code)
        width = min(len(held), codes.shape[1])
        changed[row, :width] = held[:width]
    return changed


def _explained(saved: Saved, rows: Ints, change: Change) -> dict[int, Inserted]:
    """The ranks that `/explain` gives the lost chunks which a change lets in, by row."""
    found: dict[int, Inserted] = {}
    for row in rows.tolist():
        if not saved.seen.traces.explanations(saved.seen.pairs[row]):
            continue
        trace = saved.seen.traces[saved.seen.pairs[row]]
        ranked = (
            (final_rank(trace, i), saved.seen.code_of[i]) for i in _let_in(saved, trace, change)
        )
        if entries := [(rank, code) for rank, code in ranked if rank is not None]:
            found[row] = entries
    return found


def _let_in(saved: Saved, trace: Trace, change: Change) -> Iterator[str]:
    """The lost chunks of a result that a change lets into the channels."""
    match change.setting:
        case "candidate_k":
            beyond = beyond_the_cut(trace, saved.seen.said.candidate_k or 0)
            most = change.value if isinstance(change.value, int) else 0
            yield from (i for i, rank in beyond.items() if rank <= most)
        case "threshold":
            yield from below_threshold(trace)
        case "waive":
            yield from (i for i, reason in waivable(trace).items() if reason == change.value)


def _waived(saved: Saved, change: Change) -> Guess:
    """Nothing changes where the filter took nothing; else only what `/explain` ranks is told."""
    traces, pairs = saved.seen.traces, saved.seen.pairs
    concerned = traces.filtered_by(str(change.value))
    is_concerned = np.array([pair in concerned for pair in pairs], dtype=bool)
    is_seen = np.array(
        ["filtered" in traces.result(pair)["observed"] for pair in pairs], dtype=bool
    )
    inserted = _explained(saved, np.arange(saved.n_rows), change)
    is_told = (is_seen & ~is_concerned) | _rows(saved, inserted)
    codes = _put_in(_cut(saved, saved.codes, saved.final), inserted)
    why = first_why(reasons(~is_told & ~is_seen, FILTERS_UNSEEN), reasons(~is_told, UNSURE))
    is_exact = is_seen & ~is_concerned
    return Guess(codes, why, is_exact, is_exact, _rows(saved, inserted))


def _rows(saved: Saved, inserted: Mapping[int, Inserted]) -> Bools:
    return np.isin(np.arange(saved.n_rows), list(inserted))
