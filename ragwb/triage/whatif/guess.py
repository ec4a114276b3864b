"""Lists with newcomers: how they probably look, and whether that suffices to tell who fails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ragwb.runs.traces import Trace
from ragwb.triage.whatif.added import Newcomers, newcomers
from ragwb.triage.whatif.bounds import Ranges, bounds_of, ranges_of
from ragwb.triage.whatif.changes import Change
from ragwb.triage.whatif.context import Counting, tokens_of
from ragwb.triage.whatif.duplicates import deduplicated
from ragwb.triage.whatif.explained import below_threshold, beyond_the_cut, final_rank, waivable
from ragwb.triage.whatif.labels import Labels
from ragwb.triage.whatif.lists import (
    NONE,
    Bools,
    Floats,
    Ints,
    Order,
    best_first,
    first_columns,
    gather,
    order_of,
    same_width,
)
from ragwb.triage.whatif.orders import UNSCORED, first_why, reasons
from ragwb.triage.whatif.saved import Saved, Whys

FILTERS_UNSEEN = "what the filters took was not observed"
# Ranks from 1 and the codes that stand there.
Inserted = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Guess:
    """Results with newcomers; (rows, …) arrays, a row a result.

    Attributes:
        codes: (rows, positions) results, NONE beyond the end.
        why: why nothing can be said, else "".
        is_exact: whether the list is the service's own.
        is_explained: whether it rests on ranks of `/explain`.
        passes, fails: whether the result surely does, whatever the list is like.
    """

    codes: Ints
    why: Whys
    is_exact: Bools
    is_explained: Bools
    passes: Bools
    fails: Bools


@dataclass(frozen=True, slots=True)
class Room:
    """What of some results fits into the context.

    Attributes:
        surely: (rows,) tokens that surely fit; inf where the context does not matter.
        possibly: (rows,) tokens that may fit.
        counting: how the service counts.
    """

    surely: Floats
    possibly: Floats
    counting: Counting


def guess(saved: Saved, labels: Labels, room: Room, change: Change, k: int) -> Guess:
    """The results with the chunks that a change would let in.

    What `/explain` says of the ranks of a lost chunk is used where nothing else decides: they are
    those without a cut of the candidates, which is close and not the same.

    Args:
        saved: the saved lists.
        labels: what the cases require and forbid.
        room: what fits into the contexts.
        change: of the candidate K, of the threshold, or a waived filter.
        k: the cut at which results are judged.
    """
    if change.setting == "waive":
        return _waived(saved, change)
    new = newcomers(saved, labels, change)
    tokens = np.zeros(new.codes.shape)
    if saved.seen.has["context"].any():
        tokens = tokens_of(saved.seen, room.counting, new.codes)
    ranges = ranges_of(saved, new, tokens)
    passes, fails = _surely(saved, labels, room, new, ranges, k)
    is_exact = ~(_has_known(saved, new) & saved.seen.has["reranked"]) & (ranges.n_unknown == 0)
    inserted = _explained(saved, np.flatnonzero(~(passes | fails)), change)
    is_cut = saved.seen.has["reranked"] & (saved.reranked.n < saved.merged.n) & ~is_exact
    why = first_why(
        new.why,
        saved.no_fusion,
        saved.no_rerank,
        saved.no_final,
        reasons(is_cut, UNSCORED),
    )
    codes = _lists(saved, new, ranges, inserted)
    return Guess(codes, why, is_exact, _rows(saved, inserted), passes, fails)


def _surely(
    saved: Saved, labels: Labels, room: Room, new: Newcomers, ranges: Ranges, k: int
) -> tuple[Bools, Bools]:
    """Whether each result surely passes, and surely fails."""
    found = bounds_of(saved, ranges, labels.row, _slots(new.codes, labels.row, labels.code))
    watched = _slots(new.codes, labels.watched_row, labels.watched_code)
    bad = bounds_of(saved, ranges, labels.watched_row, watched)
    is_in = (found.worst <= k) & (found.most_tokens <= room.surely[labels.row])
    may_be_in = (found.best <= k) & (found.least_tokens <= room.possibly[labels.row])
    comes, may_come = bad.worst <= k, bad.best <= k
    if saved.seen.said.deduplicate == "text":
        # What stands before a chunk may be removed, and so may it for a newcomer of its text.
        is_in, comes = np.zeros_like(is_in), np.zeros_like(comes)
        may_be_in, may_come = np.isfinite(found.best), np.isfinite(bad.best)
    passes, fails = ~labels.always, labels.always.copy()
    passes[labels.row_of_group[~labels.groups_with(is_in)]] = False
    fails[labels.row_of_group[~labels.groups_with(may_be_in)]] = True
    passes[labels.watched_row[may_come]] = False
    fails[labels.watched_row[comes]] = True
    return passes, fails


def _has_known(saved: Saved, new: Newcomers) -> Bools:
    """Whether a known chunk comes into a channel of each result."""
    found = np.zeros(saved.n_rows, dtype=bool)
    for name, ranks in new.ranks.items():
        width = saved.ranks[name].shape[1]
        found |= (ranks[:, :width] != saved.ranks[name]).any(axis=1)
        found |= (ranks[:, width:] < np.inf).any(axis=1)
    return found


def _slots(codes: Ints, rows: Ints, wanted: Ints) -> Ints:
    """The slot of one chunk a row, NONE where the row has none for it."""
    column = first_columns(codes[rows] == wanted[:, None])
    return np.where(column < codes.shape[1], column, NONE)


def _lists(saved: Saved, new: Newcomers, ranges: Ranges, inserted: Mapping[int, Inserted]) -> Ints:
    """The results as they probably are: known newcomers by their fused score, or put in."""
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
    is_exact = is_seen & ~is_concerned
    codes = _put_in(_cut(saved, saved.codes, saved.final), inserted)
    why = reasons(~is_seen & ~_rows(saved, inserted), FILTERS_UNSEEN)
    never = np.zeros(saved.n_rows, dtype=bool)
    return Guess(codes, why, is_exact, _rows(saved, inserted), never, never)


def _rows(saved: Saved, inserted: Mapping[int, Inserted]) -> Bools:
    return np.isin(np.arange(saved.n_rows), list(inserted))
