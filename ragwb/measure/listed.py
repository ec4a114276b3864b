"""Lists for people of what may have no end: the first things, each once, and the rest counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeVar

from ragwb.html import plain

MOST_LISTED = 20
"""Things of one answer that a list for people shows; the rest is counted."""

T = TypeVar("T")


def first_of(things: Sequence[T], most: int = MOST_LISTED) -> tuple[Sequence[T], str]:
    """The first of some things, and in words how many more there are; "" when those are all.

    Example: 10,000 things -> the first 20, "and 9,980 more"
    """
    n_more = len(things) - most
    return things[:most], f"and {n_more:,} more" if n_more > 0 else ""


def some(names: Sequence[str], most: int = 6, *, width: int | None = None) -> str:
    """The first of some names in a line, and how many more there are.

    Args:
        names: such as case ids.
        most: how many are shown.
        width: of each in a terminal, made plain and cut to it; by default they stay as they are.
    """
    shown, more = first_of(names, most)
    line = ", ".join(shown if width is None else [plain(name, width=width) for name in shown])
    return f"{line} {more}" if more else line


def count(n: int, noun: str) -> str:
    """A number of things: 1 case, 2 cases, 1,000 cases."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def case_words(case_ids: Sequence[str]) -> str:
    """How many cases, and the first of them by name: 2 cases (c1, c2); no case."""
    named = some(case_ids, 4, width=60)
    return f"{count(len(case_ids), 'case')} ({named})" if case_ids else "no case"


def joined(words: Sequence[str]) -> str:
    """Words as a sentence lists them: a; a and b; a, b and c."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def listed(names: Iterable[str], most: int = MOST_LISTED) -> list[str]:
    """Each name once, in the order of the first, with how often it occurs; the rest counted.

    Example: c1 9,998 times and c2 -> "c1 ×9,998", "c2"
    """
    times = Counter(iter(names))
    shown, more = first_of([f"{name} ×{n:,}" if n > 1 else name for name, n in times.items()], most)
    return [*shown, *([more] if more else [])]
