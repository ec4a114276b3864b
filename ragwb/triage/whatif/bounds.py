"""Between which ranks a chunk would stand, whatever the unknown newcomers are like.

Fused scores of known chunks can only grow, by what a channel's tail still gives. A blended
reranker's scores are scaled anew over the new list: those of known chunks move closer together, in
their order, and a newcomer's is anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ragwb.triage.whatif.added import Newcomers
from ragwb.triage.whatif.lists import NONE, Floats, Ints
from ragwb.triage.whatif.saved import Saved, fused_scores

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
        tokens: (rows, slots) tokens of each chunk, NaN where unknown.
    """

    low: Floats
    high: Floats
    own: Floats
    n_unknown: Ints
    tokens: Floats


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where some chunks would stand in the final list; (chunks,) arrays.

    Attributes:
        best, worst: ranks from 1; inf where a chunk may be nowhere.
        least_tokens, most_tokens: of the list down to the chunk, itself included; inf where what
            may stand before it has no known text.
    """

    best: Floats
    worst: Floats
    least_tokens: Floats
    most_tokens: Floats


def ranges_of(saved: Saved, new: Newcomers, tokens: Floats) -> Ranges:
    """The scores of the lists with newcomers.

    Args:
        saved: the saved lists.
        new: what would come in.
        tokens: (rows, slots) of each chunk of `new`, NaN where unknown.
    """
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
        tokens=np.pad(tokens, ((0, 0), (0, 1)), constant_values=np.nan),
    )


def bounds_of(saved: Saved, ranges: Ranges, rows: Ints, slots: Ints) -> Bounds:
    """Between which ranks some chunks stand.

    Args:
        saved: the saved lists.
        ranges: the scores with newcomers.
        rows: of which results.
        slots: which chunks; NONE for one that could only come as an unknown newcomer.
    """
    found = np.full((len(rows), 4), np.inf)
    has_reranked = saved.seen.has["reranked"][rows]
    for where, reranks in ((has_reranked, True), (~has_reranked, False)):
        chunks = np.flatnonzero(where)
        # In blocks, since each takes a row of scores.
        for start in range(0, len(chunks), _BLOCK):
            some = chunks[start : start + _BLOCK]
            found[some] = _bounds(saved, ranges, rows[some], slots[some], reranks=reranks)
    found[(slots == NONE) & (ranges.n_unknown[rows] == 0)] = np.inf
    return Bounds(*found.T)


def _bounds(saved: Saved, ranges: Ranges, rows: Ints, slots: Ints, *, reranks: bool) -> Floats:
    """(chunks, 4) the fields of `Bounds`: whatever surely, and possibly, stands before each."""
    at = np.where(slots == NONE, ranges.low.shape[1] - 1, slots)
    least, most = (
        _blended_lead(saved, ranges, rows, at) if reranks else _fused_lead(ranges, rows, at)
    )
    others = ranges.low[rows] > 0
    others[np.arange(len(rows)), at] = False
    surely, possibly = (least > _CLOSE) & others, (most >= -_CLOSE) & others
    n_unknown = np.where(most[:, -1] >= -_CLOSE, ranges.n_unknown[rows], 0)
    tokens, own = ranges.tokens[rows], ranges.tokens[rows, at]
    known, worst_case = np.nan_to_num(tokens, nan=0.0), np.nan_to_num(tokens, nan=np.inf)
    most_tokens = np.where(possibly, worst_case, 0.0).sum(axis=1) + np.nan_to_num(own, nan=np.inf)
    worst = 1.0 + possibly.sum(axis=1) + n_unknown
    return np.column_stack(
        [
            1.0 + surely.sum(axis=1),
            np.where(ranges.low[rows, at] == 0, np.inf, worst),
            np.where(surely, known, 0.0).sum(axis=1) + np.nan_to_num(own, nan=0.0),
            np.where(n_unknown > 0, np.inf, most_tokens),
        ]
    )


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
