"""The final list under another fusion or without the reranker, from the saved scores."""

from __future__ import annotations

import numpy as np

from ragwb.triage.whatif.changes import Change
from ragwb.triage.whatif.lists import (
    NONE,
    Bools,
    Floats,
    Order,
    best_first,
    gather,
    order_of,
    reordered,
    same_width,
    unit_range,
)
from ragwb.triage.whatif.saved import Saved, Whys, fused_scores

NO_CHANNEL = "this channel was not observed"
UNSCORED = "the reranker's score of a chunk that would reach it is not known"


def first_why(*whys: Whys) -> Whys:
    """The first reason of each row, "" where there is none."""
    found = whys[0]
    for why in whys[1:]:
        found = np.where(found == "", why, found)
    return found


def reasons(where: Bools, why: str) -> Whys:
    """A reason for the rows where it holds, "" for the others."""
    return np.where(where, why, "").astype(object)


def final_order(saved: Saved, change: Change) -> tuple[Order, Bools, Whys]:
    """The list that the results are cut from under a change, before duplicates are removed.

    Returns:
        The list; whether nothing comes after its end; why it cannot be told, "" where it can.
    """
    whole = np.ones(saved.n_rows, dtype=bool)
    if change.setting == "rerank":
        return saved.merged, whole, first_why(saved.no_merged, saved.no_final)
    if change.setting not in ("rrf_k", "weights", "channel"):
        return saved.final, saved.is_whole, reasons(~whole, "")
    if change.setting == "channel" and change.value not in saved.seen.channels:
        return saved.final, whole, reasons(whole, NO_CHANNEL)
    scores = _scores(saved, change)
    merged = best_first(np.where(scores > 0, scores, -np.inf))
    reranked, unscored = _reranked(saved, merged, scores)
    slots, merged_slots = same_width(reranked.slots, merged.slots)
    has_reranked = saved.seen.has["reranked"]
    order = order_of(np.where(has_reranked[:, None], slots, merged_slots))
    why = first_why(
        saved.no_fusion, saved.no_rerank, saved.no_final, reasons(unscored & has_reranked, UNSCORED)
    )
    return order, whole, why


def _scores(saved: Saved, change: Change) -> Floats:
    """(rows, slots) fused scores under a change, 0 for what no channel with a weight holds."""
    said = saved.seen.said
    k, weights = said.rrf_k or 0.0, said.weights_of(saved.seen.channels)
    if change.setting == "rrf_k" and isinstance(change.value, int | float):
        k = float(change.value)
    elif change.setting == "weights" and isinstance(change.value, tuple):
        weights |= dict(change.value)
    elif change.setting == "channel":
        weights = {name: float(name == change.value) for name in weights}
    return fused_scores(saved.codes, saved.ranks, weights, k)


def _reranked(saved: Saved, merged: Order, scores: Floats) -> tuple[Order, Bools]:
    """The reranker's order of a merged list, and whether it meets a chunk without a score."""
    blend = saved.seen.said.blend
    fed = merged
    if blend is None:
        # A reranker that takes the first few of the merged list takes as many of the new one.
        limit = np.where(saved.reranked.n < saved.merged.n, saved.reranked.n, merged.n)
        held = np.arange(merged.slots.shape[1]) < limit[:, None]
        fed = order_of(np.where(held, merged.slots, NONE))
        blended = saved.similarity
    else:
        members = scores > 0
        own = unit_range(np.where(members, saved.similarity, 0.0), members)
        blended = blend * own + (1 - blend) * unit_range(scores, members)
    unscored = (np.isnan(gather(saved.similarity, fed)) & (fed.slots != NONE)).any(axis=1)
    return reordered(fed, np.nan_to_num(blended, nan=-np.inf)), unscored
