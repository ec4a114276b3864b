"""Duplicates removed from ranked lists, by chunk id or by text."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ragwb.runs.traces import Traces
from ragwb.triage.whatif.lists import NONE, Bools, Ints, Order, gather, without_repeats

Names = npt.NDArray[np.object_]


def deduplicated(
    traces: Traces, names: Names, codes: Ints, order: Order, kind: str, needed: int
) -> tuple[Order, Bools]:
    """Lists without later chunks of the same id or text, as far as they are needed.

    Args:
        traces: where the texts are.
        names: chunk id by code, None at the end.
        codes: (rows, slots) chunk by slot.
        order: the lists.
        kind: off, id or text (normalised).
        needed: positions wanted; what comes after them may be left out.

    Returns:
        The lists, and whether each is certain: by text, all texts that were looked at are known.
    """
    certain = np.ones(len(codes), dtype=bool)
    if kind == "off":
        return order, certain
    if kind == "id":
        return without_repeats(order, codes), certain
    width = 2 * needed
    while True:
        head = Order(order.slots[:, :width], np.minimum(order.n, width))
        keys = _text_keys(traces, names, codes, head)
        kept = without_repeats(head, keys)
        if not ((kept.n < needed) & (order.n > width)).any():
            is_unknown = (gather(keys, head) >= len(names)) & (head.slots != NONE)
            return kept, ~is_unknown.any(axis=1)
        width *= 2


def _text_keys(traces: Traces, names: Names, codes: Ints, head: Order) -> Ints:
    """(rows, slots) a number by text for the chunks of some lists, 0 for all others.

    A chunk whose text is unknown is its own: its number is above all codes.
    """
    wanted = np.unique(np.where(head.slots == NONE, NONE, gather(codes, head)))
    key_of = np.zeros(len(names) + 1, dtype=np.int64)
    first_of: dict[str, int] = {}
    for code in wanted[wanted != NONE].tolist():
        key = traces.text_key(names[code])
        key_of[code] = len(names) + code if key == names[code] else first_of.setdefault(key, code)
    return key_of[codes]
