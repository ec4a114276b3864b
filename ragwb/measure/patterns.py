"""Regular expressions of golden sets and rule packs, which other people write, on a time limit.

They are Python's, with look-behinds of any length; one that backtracks for ever ends in an error
that names it, and does not hold up a run; one that would fill the memory is refused before it is
compiled.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import lru_cache

import regex

from ragwb.errors import MetricError
from ragwb.golden.expansion import check_expansion, expanded_parts
from ragwb.html import plain
from ragwb.measure.wording import Span, fold_widths

TIME_LIMIT_S = 1.0
"""How long one pattern may look at one text; a sound one takes milliseconds."""


# Compiled patterns of up to so many parts are kept; larger ones take up to 3 ms and 3 MB each.
_KEPT_PARTS = 500


def compile_pattern(pattern: str) -> regex.Pattern[str]:
    """A pattern, compiled.

    Raises:
        MetricError: it is not a regular expression, or its counted repeats come to too many parts
            (`golden.expansion`).
    """
    return _kept(pattern) if expanded_parts(pattern) <= _KEPT_PARTS else _compiled(pattern)


def _compiled(pattern: str) -> regex.Pattern[str]:
    try:
        check_expansion(pattern)
    except ValueError as error:
        raise MetricError(f"pattern {_shown(pattern)}: {error}") from error
    try:
        with warnings.catch_warnings(action="error"):
            return regex.compile(pattern, cache_pattern=False)
    except (Warning, regex.error, RecursionError, OverflowError, ValueError) as error:
        raise MetricError(
            f"pattern {_shown(pattern)} is not a regular expression: {error}"
        ) from error


_kept = lru_cache(maxsize=4096)(_compiled)


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
