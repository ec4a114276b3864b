"""The best order of a case's labelled chunks, which nDCG divides by."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints = npt.NDArray[np.int64]


def greedy_gains(
    group_case: Ints, member_group: Ints, member_item: Ints, item_ids: pa.StringArray
) -> tuple[Ints, Ints]:
    """Number of groups that each rank of the greedy order satisfies for the first time.

    Always the chunk that satisfies most of the groups still open, of equals the smaller id. A
    group that no chunk can satisfy takes a rank of its own, as an unknown chunk id does: evidence
    that is not in the knowledge must not make the rest look perfect.

    Args:
        group_case: case index of each group, not decreasing.
        member_group: group of each distinct pair (group, item).
        member_item: its item; an item belongs to the groups of one case.
        item_ids: chunk id of each item.

    Returns:
        Two int64 columns ordered by case, then rank: the case index and the gain, at least 1.
        The gains of a case sum to the number of its groups.

    Source: metrics.md (α-nDCG with α = 1, groups as subtopics).
    Example: {a}, {a, b}, {c} -> gains 2 (a), 1 (c)
    """
    is_open = np.ones(len(group_case), dtype=bool)
    cases, gains = [], []
    while True:
        alive = is_open[member_group]
        member_group, member_item = member_group[alive], member_item[alive]
        picked, gain = _best_items(group_case, member_group, member_item, item_ids)
        if not len(picked):
            break
        closed = member_group[np.isin(member_item, picked)]
        is_open[closed] = False
        cases.append(_case_of(picked, group_case, member_group, member_item))
        gains.append(gain)
    # Each chunk left satisfies at most one open group: every open group takes one rank.
    cases.append(group_case[is_open])
    gains.append(np.ones(int(is_open.sum()), dtype=np.int64))
    case, gain = np.concatenate(cases), np.concatenate(gains)
    order = np.argsort(case, kind="stable")
    return case[order], gain[order]


def _best_items(
    group_case: Ints, member_group: Ints, member_item: Ints, item_ids: pa.StringArray
) -> tuple[Ints, Ints]:
    """The item of each case that satisfies most open groups, if it satisfies two or more."""
    counts = np.bincount(member_item, minlength=len(item_ids))
    shared = np.flatnonzero(counts >= 2)
    if not len(shared):
        return shared, shared
    case = _case_of(shared, group_case, member_group, member_item)
    order = np.lexsort((-counts[shared], case))
    shared, case = shared[order], case[order]
    best = np.maximum.reduceat(counts[shared], first := _firsts(case))
    tied = counts[shared] == np.repeat(best, np.diff(np.append(first, len(case))))
    shared, case = shared[tied], case[tied]
    if len(shared) > len(first):
        shared = shared[_order_by_id(case, item_ids.take(pa.array(shared)))]
    picked = shared[_firsts(case)]
    return picked, counts[picked]


def _firsts(case: Ints) -> Ints:
    return np.flatnonzero(np.append(True, case[1:] != case[:-1]))


def _order_by_id(case: Ints, ids: pa.StringArray) -> Ints:
    keys = [("case", "ascending"), ("id", "ascending")]
    order: Ints = pc.sort_indices(pa.table({"case": case, "id": ids}), sort_keys=keys).to_numpy()
    return order.astype(np.int64)


def _case_of(items: Ints, group_case: Ints, member_group: Ints, member_item: Ints) -> Ints:
    owner = np.empty(int(member_item.max()) + 1, dtype=np.int64)
    owner[member_item] = group_case[member_group]
    return owner[items]
