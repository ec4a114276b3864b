"""Between which ranks a chunk would stand, whatever the unknown newcomers are like.

Fused scores of known chunks can only grow, by what a channel's tail still gives. A blended
reranker's scores are scaled anew over the new list: those of known chunks move closer together, in
their order, and a newcomer's is anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ragwb.triage.whatif_added import Newcomers
from ragwb.triage.whatif_lists import NONE, Floats, Ints
from ragwb.triage.whatif_saved import Saved, fused_scores

# Far more than what comes of the order of additions.
_CLOSE = 1e-9
_BLOCK = 10_000


@dataclass(frozen=True, slots=True)
class Ranges:
    """(rows, slots) what the scores of a list with newcomers lie between.

    The last slot stands for any newcomer that is not known.

    Attributes:
        low, high: fused scores; low is 0 where a chunk may be in no channel.
        own: the reranker's own scores, NaN where unknown; None where no reranker ran.
        n_unknown: (rows,) the most newcomers that are not known.
    """

    low: Floats
    high: Floats
    own: Floats
    n_unknown: Ints


def ranges_of(saved: Saved, new: Newcomers) -> Ranges:
    """The scores of the lists with newcomers."""
    said = saved.seen.said
    k, weights = said.rrf_k or 0.0, said.weights_of(saved.seen.channels)
    low = fused_scores(new.codes, new.ranks, weights, k)
    high = low.copy()
    unknown = np.zeros(saved.n_rows)
    n_unknown = np.zeros(saved.n_rows, dtype=np.int64)
    for name, rank in new.ranks.items():
        is_open = (new.n_unknown[name] > 0) & (weights[name] > 0)
        most = np.where(is_open, weights[name] / (k + new.tail[name]), 0.0)
        high += np.where(np.isinf(rank), most[:, None], 0.0)
        unknown += most
        n_unknown += np.where(is_open, new.n_unknown[name], 0)
    width = low.shape[1] - saved.similarity.shape[1]
    own = np.pad(saved.similarity, ((0, 0), (0, width + 1)), constant_values=np.nan)
    return Ranges(
        low=np.pad(low, ((0, 0), (0, 1))),
        high=np.column_stack([np.where(low > 0, high, 0.0), unknown]),
        own=own,
        n_unknown=n_unknown,
    )


def rank_bounds(saved: Saved, ranges: Ranges, rows: Ints, slots: Ints) -> tuple[Floats, Floats]:
    """The best and the worst rank of some chunks in the final list; inf where it may be nowhere.

    Args:
        saved: the saved lists.
        ranges: the scores with newcomers.
        rows: of which results.
        slots: which chunks; NONE for one that could only come as an unknown newcomer.
    """
    best, worst = np.empty(len(rows)), np.empty(len(rows))
    has_reranked = saved.seen.has["reranked"][rows]
    for where, reranks in ((has_reranked, True), (~has_reranked, False)):
        for some in _blocks(np.flatnonzero(where)):
            found = _bounds(saved, ranges, rows[some], slots[some], reranks=reranks)
            best[some], worst[some] = found
    is_gone = (slots == NONE) & (ranges.n_unknown[rows] == 0)
    return np.where(is_gone, np.inf, best), worst


def _blocks(rows: Ints) -> Iterator[Ints]:
    """Rows in blocks, since each takes a row of scores."""
    return (rows[start : start + _BLOCK] for start in range(0, len(rows), _BLOCK))


def _bounds(
    saved: Saved, ranges: Ranges, rows: Ints, slots: Ints, *, reranks: bool
) -> tuple[Floats, Floats]:
    """Counts whatever surely, and whatever possibly, stands before each chunk."""
    at = np.where(slots == NONE, ranges.low.shape[1] - 1, slots)
    least, most = (
        _blended_lead(saved, ranges, rows, at) if reranks else _fused_lead(ranges, rows, at)
    )
    others = ranges.low[rows] > 0
    others[np.arange(len(rows)), at] = False
    surely = ((least > _CLOSE) & others).sum(axis=1)
    possibly = ((most >= -_CLOSE) & others).sum(axis=1)
    possibly += np.where(most[:, -1] >= -_CLOSE, ranges.n_unknown[rows], 0)
    may_miss = ranges.low[rows, at] == 0
    return 1.0 + surely, np.where(may_miss, np.inf, 1.0 + possibly)


def _fused_lead(ranges: Ranges, rows: Ints, at: Ints) -> tuple[Floats, Floats]:
    """By how much every chunk of its list leads a chunk, at least and at most."""
    low, high = ranges.low[rows, at][:, None], ranges.high[rows, at][:, None]
    return ranges.low[rows] - high, ranges.high[rows] - low


def _blended_lead(saved: Saved, ranges: Ranges, rows: Ints, at: Ints) -> tuple[Floats, Floats]:
    """As `_fused_lead`, after a reranker."""
    blend = saved.seen.said.blend
    own = ranges.own[rows]
    lead = own - own[np.arange(len(rows)), at][:, None]
    if blend is None:
        return np.nan_to_num(lead, nan=-np.inf), np.nan_to_num(lead, nan=np.inf)
    # Known scores move closer together, by how much is not known; with a newcomer nothing is.
    least = np.where(np.isnan(lead), -1.0, np.minimum(lead, 0.0))
    most = np.where(np.isnan(lead), 1.0, np.maximum(lead, 0.0))
    low, high = _scaled(ranges, rows)
    chosen = np.arange(len(rows))
    fused_least = low - high[chosen, at][:, None]
    fused_most = high - low[chosen, at][:, None]
    return (
        blend * least + (1 - blend) * fused_least,
        blend * most + (1 - blend) * fused_most,
    )


def _scaled(ranges: Ranges, rows: Ints) -> tuple[Floats, Floats]:
    """Fused scores scaled to 0..1 over the list, at least and at most."""
    low, high = ranges.low[rows], ranges.high[rows]
    is_known = low > 0
    greatest = np.max(low, axis=1, keepdims=True), np.max(high, axis=1, keepdims=True)
    # Newcomers may be anywhere below what is known.
    has_unknown = ranges.n_unknown[rows, None] > 0
    first = np.min(low, axis=1, where=is_known, initial=np.inf, keepdims=True)
    last = np.min(high, axis=1, where=is_known, initial=np.inf, keepdims=True)
    least = np.where(has_unknown, 0.0, first), last
    with np.errstate(invalid="ignore", divide="ignore"):
        scaled_low = (low - least[1]) / (greatest[1] - least[1])
        scaled_high = (high - least[0]) / (greatest[0] - least[0])
    return _in_unit(scaled_low, 0.0), _in_unit(scaled_high, 1.0)


def _in_unit(values: Floats, otherwise: float) -> Floats:
    return np.clip(np.where(np.isfinite(values), values, otherwise), 0.0, 1.0)
