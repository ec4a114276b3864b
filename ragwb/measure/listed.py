"""Lists for people of what one answer may hold without end: each thing once, the rest counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeVar

MOST_LISTED = 20
"""Things of one answer that a list for people shows; the rest is counted."""

T = TypeVar("T")


def first_of(things: Sequence[T], most: int = MOST_LISTED) -> tuple[Sequence[T], str]:
    """The first of some things, and in words how many more there are; "" when those are all.

    Example: 10,000 things -> the first 20, "and 9,980 more"
    """
    n_more = len(things) - most
    return things[:most], f"and {n_more:,} more" if n_more > 0 else ""


def listed(names: Iterable[str], most: int = MOST_LISTED) -> list[str]:
    """Each name once, in the order of the first, with how often it occurs; the rest counted.

    Example: c1 9,998 times and c2 -> "c1 ×9,998", "c2"
    """
    times = Counter(iter(names))
    shown, more = first_of([f"{name} ×{n:,}" if n > 1 else name for name, n in times.items()], most)
    return [*shown, *([more] if more else [])]
