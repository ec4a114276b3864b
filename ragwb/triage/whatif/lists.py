"""Ranked lists of many results at once: a row a result, in arrays that are cheap to order anew.

Each row has slots, one a chunk that any of its lists names; a list is an order of slots. So fusion,
reranking and the removal of duplicates are arithmetic on whole runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Values = TypeVar("Values", Ints, Floats)
NONE = -1


@dataclass(frozen=True, slots=True)
class Order:
    """A list a row.

    Attributes:
        slots: (rows, positions) slots, best first; NONE beyond a list's end.
        n: length of each list.
    """

    slots: Ints
    n: Ints


def order_of(slots: Ints) -> Order:
    """An order from slots with NONE at their ends."""
    return Order(slots, (slots != NONE).sum(axis=1))


def number_chunks(lists: Mapping[str, Ints], n_codes: int) -> tuple[Ints, dict[str, Ints]]:
    """Slots for all chunks that the lists of a row name.

    Args:
        lists: (rows, positions) codes of chunks by name, NONE beyond the end.
        n_codes: number of codes.

    Returns:
        (rows, slots) code by slot, and each list in slots. Slots stand in the order of the first
        list, what it does not name after it in the order of the codes.
    """
    n_rows = len(next(iter(lists.values())))
    row = np.arange(n_rows)[:, None]
    keys = [
        np.where(codes == NONE, NONE, row * n_codes + codes).ravel() for codes in lists.values()
    ]
    found, inverse = np.unique(np.concatenate([[NONE], *keys]), return_inverse=True)
    row_of, code = np.divmod(found[1:], n_codes)
    slot = np.arange(len(row_of)) - np.searchsorted(row_of, np.arange(n_rows))[row_of]
    width = int(slot.max(initial=NONE)) + 1
    codes = np.full((n_rows, width), NONE, dtype=np.int64)
    codes[row_of, slot] = code
    slot_of = np.concatenate([[NONE], slot])
    ends = np.cumsum([1, *map(len, keys)])
    slots = {
        name: slot_of[inverse[start:end]].reshape(held.shape)
        for (name, held), start, end in zip(lists.items(), ends, ends[1:], strict=False)
    }
    return _in_order_of(next(iter(slots.values())), codes, slots)


def _in_order_of(
    first: Ints, codes: Ints, slots: Mapping[str, Ints]
) -> tuple[Ints, dict[str, Ints]]:
    """Slots renumbered by the positions of a list."""
    order = np.argsort(positions(first, codes.shape[1]), axis=1, kind="stable")
    new_slot = np.empty_like(order)
    np.put_along_axis(new_slot, order, np.broadcast_to(np.arange(order.shape[1]), order.shape), 1)
    renumbered = {
        name: np.where(held == NONE, NONE, _gather(new_slot, held)) for name, held in slots.items()
    }
    return np.take_along_axis(codes, order, axis=1), renumbered


def same_width(first: Ints, second: Ints) -> tuple[Ints, Ints]:
    """Two arrays of lists, the narrower one filled up with NONE."""
    width = max(first.shape[1], second.shape[1])
    return _filled(first, width), _filled(second, width)


def _filled(slots: Ints, width: int) -> Ints:
    missing = width - slots.shape[1]
    return np.pad(slots, ((0, 0), (0, missing)), constant_values=NONE) if missing else slots


def first_columns(found: Bools) -> Ints:
    """(rows,) the first column that is true, the width where none is."""
    column: Ints = np.pad(found, ((0, 0), (0, 1)), constant_values=True).argmax(axis=1)
    return column


def positions(slots: Ints, n_slots: int) -> Floats:
    """(rows, slots) first position of each slot in a list, from 1; inf where it is not in it."""
    found = np.full((len(slots), n_slots), np.inf)
    rows, columns = np.nonzero(slots != NONE)
    # Backwards, so that of several positions the first is written last.
    found[rows[::-1], slots[rows, columns][::-1]] = columns[::-1] + 1
    return found


def by_slot(slots: Ints, values: Floats, n_slots: int) -> Floats:
    """(rows, slots) the value of each slot at its first position in a list; NaN where it is not."""
    found = np.full((len(slots), n_slots), np.nan)
    rows, columns = np.nonzero(slots != NONE)
    found[rows[::-1], slots[rows, columns][::-1]] = values[rows, columns][::-1]
    return found


def gather(values: Values, order: Order) -> Values:
    """(rows, positions) a value by slot, in an order; what stands at NONE means nothing."""
    return _gather(values, order.slots)


def _gather(values: Values, slots: Ints) -> Values:
    if not values.shape[1]:
        return np.zeros(slots.shape, dtype=values.dtype)
    return np.take_along_axis(values, np.maximum(slots, 0), axis=1)


def best_first(scores: Floats) -> Order:
    """Slots by score, best first, of equals the lower one; those of -inf are left out."""
    slots = np.argsort(-scores, axis=1, kind="stable")
    n = (scores > -np.inf).sum(axis=1)
    return Order(np.where(np.arange(scores.shape[1]) < n[:, None], slots, NONE), n)


def reordered(order: Order, scores: Floats) -> Order:
    """A list in the order of scores by slot; equal scores keep their order."""
    held = order.slots != NONE
    along = np.where(held, _gather(scores, order.slots), -np.inf)
    places = np.argsort(-along, axis=1, kind="stable")
    return Order(np.take_along_axis(order.slots, places, axis=1), order.n)


def without_repeats(order: Order, keys: Ints) -> Order:
    """A list without the slots whose key an earlier one has.

    Args:
        order: the list.
        keys: (rows, slots) keys, ≥ 0.
    """
    held = order.slots != NONE
    along = np.where(held, _gather(keys, order.slots), NONE)
    by_key = np.argsort(along, axis=1, kind="stable")
    sorted_keys = np.take_along_axis(along, by_key, axis=1)
    is_first = np.ones(along.shape, dtype=bool)
    is_first[:, 1:] = sorted_keys[:, 1:] != sorted_keys[:, :-1]
    kept = np.empty_like(is_first)
    np.put_along_axis(kept, by_key, is_first, axis=1)
    kept &= held
    places = np.argsort(~kept, axis=1, kind="stable")
    n = kept.sum(axis=1)
    slots = np.take_along_axis(order.slots, places, axis=1)
    return Order(np.where(np.arange(slots.shape[1]) < n[:, None], slots, NONE), n)


def unit_range(scores: Floats, members: Bools) -> Floats:
    """(rows, slots) scores scaled to 0..1 over the members of each row; 1 where all are equal."""
    low = np.min(scores, axis=1, where=members, initial=np.inf, keepdims=True)
    high = np.max(scores, axis=1, where=members, initial=-np.inf, keepdims=True)
    spread = high - low
    with np.errstate(invalid="ignore", divide="ignore"):
        scaled = np.where(spread > 0, (scores - low) / spread, 1.0)
    return np.where(members, scaled, np.nan)
