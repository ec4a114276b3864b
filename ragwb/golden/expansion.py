"""How large a regular expression of somebody else becomes when its counted repeats are written out.

An engine may write them out as it compiles: `(?:(?:x{100}){100}){100}` is a million parts, and some
three hundred bytes for each, from 24 characters. So they are counted first, by reading the pattern
alone: by no engine's parser, since two engines read it and both keep theirs to themselves.
"""

from __future__ import annotations

import re
from functools import lru_cache
from math import prod

MOST_PARTS = 10_000
"""Parts that a pattern may come to, its counted repeats written out; a sound one has hundreds."""

_COUNTED = r"\{\s*\d*\s*(?:,\s*\d*\s*)?\}"
# What stands in a pattern, one thing at a time. A bracket that opens a set and closes none, or a
# brace that counts nothing, is a character like any other. A comment is nothing.
_TOKEN = re.compile(
    r"(?P<nothing>\(\?#[^)]*\))"
    r"|(?P<open>\((?:\?(?:[:>|=!]|<[=!]|P?<\w+>))?)"
    r"|(?P<close>\))"
    rf"|(?P<count>{_COUNTED})"
    r"|(?P<part>\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.)",
    re.DOTALL,
)
# What a count belongs to is not seen in a pattern with blanks and comments of its own, nor where
# sets hold sets and classes.
_UNREAD = re.compile(r"\(\?[A-Za-z0-9]*(?:x|V1)|\[:")
# Of a longer number the first digits are far too many already.
_MOST_DIGITS = 13


@lru_cache(maxsize=4096)
def expanded_parts(pattern: str) -> int:
    """How many parts a pattern has with each counted repeat written out as often as it may occur.

    Never too low: where the nesting cannot be told (verbose patterns, sets in sets, brackets that
    do not pair) all counts are taken as nested in one another.

    Example: "a(?:bc{2,3}){4}" -> 1 + 4 * (1 + 3) = 17
    """
    nested = None if _UNREAD.search(pattern) else _nested_parts(pattern)
    if nested is not None:
        return nested
    counts = (_most(found[0]) for found in re.finditer(_COUNTED, pattern))
    return max(len(pattern), 1) * prod(counts)


def check_expansion(pattern: str) -> None:
    """Refuse a pattern that would fill the memory.

    Raises:
        ValueError: it comes to more than `MOST_PARTS` parts.
    """
    n_parts = expanded_parts(pattern)
    if n_parts > MOST_PARTS:
        shown = f"{n_parts:,}" if n_parts < 10**12 else "more than a trillion"
        raise ValueError(
            f"its counted repeats come to {shown} parts, {MOST_PARTS:,} at most: "
            "lower a count, or write * or +"
        )


def _nested_parts(pattern: str) -> int | None:
    """The parts of a pattern whose brackets pair; else None."""
    # A level a bracket that is open: the parts before the last, and those of the last.
    levels = [(0, 0)]
    for token in _TOKEN.finditer(pattern):
        before, last = levels[-1]
        match token.lastgroup:
            case "part":
                levels[-1] = (before + last, 1)
            case "count":
                levels[-1] = (before, max(last, 1) * _most(token[0]))
            case "open":
                levels.append((0, 0))
            case "close":
                levels.pop()
                if not levels:
                    return None
                outer, held = levels[-1]
                levels[-1] = (outer + held, max(before + last, 1))
    return sum(levels[0]) if len(levels) == 1 else None


def _most(counted: str) -> int:
    """The most of a count, 1 for one without an end: {3} 3, {2,5} 5, {2,} 2, {,} 1."""
    digits = (found.lstrip("0") for found in re.findall(r"\d+", counted))
    return max([1, *(int(some[:_MOST_DIGITS] or 0) for some in digits)])
