"""Regular expressions of golden sets and rule packs, which other people write, on a time limit.

They are Python's, with look-behinds of any length; one that backtracks for ever ends in an error
that names it, and does not hold up a run.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import lru_cache

import regex

from ragwb.errors import MetricError
from ragwb.html import plain
from ragwb.measure.wording import Span, fold_widths

TIME_LIMIT_S = 1.0
"""How long one pattern may look at one text; a sound one takes milliseconds."""


@lru_cache(maxsize=4096)
def compile_pattern(pattern: str) -> regex.Pattern[str]:
    """A pattern, compiled.

    Raises:
        MetricError: it is not a regular expression.
    """
    try:
        with warnings.catch_warnings(action="error"):
            return regex.compile(pattern)
    except (Warning, regex.error, RecursionError, OverflowError, ValueError) as error:
        raise MetricError(
            f"pattern {_shown(pattern)} is not a regular expression: {error}"
        ) from error


def search(pattern: str, text: str, *, limit_s: float | None = None) -> Span | None:
    """Span at which a pattern matches first: in the text as it is, else with its widths folded.

    An empty match is none. The limit is `TIME_LIMIT_S` unless another is given.

    Raises:
        MetricError: it is not a regular expression, or takes longer than the limit.
    """
    return next(find_all(pattern, text, limit_s=limit_s), None)


def find_all(pattern: str, text: str, *, limit_s: float | None = None) -> Iterator[Span]:
    """Spans of all matches in the text as it is; when there is none, with its widths folded.

    Raises:
        MetricError: as in `search`.
    """
    compiled = compile_pattern(pattern)
    limit_s = TIME_LIMIT_S if limit_s is None else limit_s
    try:
        found = _spans(compiled, text, limit_s)
        if not found:
            view = fold_widths(text)
            if view.text != text:
                found = [view.span(*span) for span in _spans(compiled, view.text, limit_s)]
    except TimeoutError:
        raise MetricError(
            f"pattern {_shown(pattern)} took more than {limit_s:g} s on a text of {len(text):,}"
            " characters: write it without nested repeats"
        ) from None
    yield from found


def _spans(compiled: regex.Pattern[str], text: str, limit_s: float) -> list[Span]:
    return [m.span() for m in compiled.finditer(text, timeout=limit_s) if m.end() > m.start()]


def _shown(pattern: str) -> str:
    return repr(plain(pattern, width=60))
