"""A text as claims are looked for in it: width, case and white space taken out, with a way back.

The view is NFKC, case folded, without white space: "３ 個工作日" and "3個工作日" read the same, and
so do "ERROR E-1042" and "error e‑1042".
"""

from __future__ import annotations

import unicodedata
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

Span = tuple[int, int]

# Seen by nobody, and no white space for Python.
_INVISIBLE = frozenset("\u200b\u2060\ufeff\u00ad")
# Hyphens that NFKC leaves apart: a code is copied with any of them.
_HYPHENS = frozenset("\u2010\u2011\u2012\u2212")
_NUMERALS = frozenset("零〇一二两三四五六七八九十百千万亿")


@dataclass(frozen=True, slots=True)
class TextView:
    """A text in another spelling, and where each of its characters came from.

    Attributes:
        text: the view.
        starts, ends: by its character, the code points [start, end) of the original it stands for.
    """

    text: str
    starts: Sequence[int]
    ends: Sequence[int]

    def span(self, start: int, end: int) -> Span:
        """Span of the original that a stretch of the view, not empty, came from."""
        return self.starts[start], self.ends[end - 1]

    def find(self, wording: str) -> Span | None:
        """Span of the original at which a wording stands first in the folded view (`find_all`)."""
        return next(self.find_all(wording), None)

    def find_all(self, wording: str) -> Iterator[Span]:
        """Spans of the original at which a wording stands in the folded view, whole numbers only.

        A number at an end of the wording must be the whole number there: "3 days" does not stand in
        "13 days", nor 2025.3 in 2025.30, nor 三天 in 十三天.
        """
        wanted = fold(wording).text
        at = self.text.find(wanted) if wanted else -1
        while at >= 0:
            if not self._cuts_number(at, at + len(wanted)):
                yield self.span(at, at + len(wanted))
            at = self.text.find(wanted, at + 1)

    def _cuts_number(self, start: int, end: int) -> bool:
        return self._goes_on_before(start) or self._goes_on_after(end)

    def _goes_on_before(self, at: int) -> bool:
        """Whether the number that begins at a place begins earlier in truth."""
        if at == 0 or not self._touch(at - 1, at):
            return False
        here, before = self.text[at], self.text[at - 1]
        if _same_number(before, here):
            return True
        is_joined = before in ".," and at > 1 and self.text[at - 2].isdigit()
        return here.isdigit() and is_joined and self._is_point(at - 1)

    def _goes_on_after(self, end: int) -> bool:
        """Whether the number that ends before a place goes on there in truth."""
        if end >= len(self.text) or not self._touch(end - 1, end):
            return False
        here, after = self.text[end - 1], self.text[end]
        if _same_number(here, after):
            return True
        return here.isdigit() and after in ".," and self._is_point(end)

    def _is_point(self, at: int) -> bool:
        """Whether a full stop or comma stands inside a number: 2025.3, 1,300, but not 1, 2."""
        tail = self.text[at + 1 : at + 5]
        if not tail[:1].isdigit() or not self._touch(at, at + 1):
            return False
        return self.text[at] == "." or (tail[:3].isdigit() and not tail[3:].isdigit())

    def _touch(self, left: int, right: int) -> bool:
        """Whether two characters of the view were neighbours, without white space between."""
        return self.starts[right] <= self.ends[left]


def _same_number(left: str, right: str) -> bool:
    both_digits = left.isdigit() and right.isdigit()
    return both_digits or (left in _NUMERALS and right in _NUMERALS)


@lru_cache(maxsize=256)
def fold(text: str) -> TextView:
    """The text in NFKC, case folded, without white space."""
    return _view(text, _fold_piece)


@lru_cache(maxsize=256)
def fold_widths(text: str) -> TextView:
    """The text in NFKC, its case and white space kept."""
    return _view(text, _normal_piece)


def _view(text: str, spell: Callable[[str], str]) -> TextView:
    characters: list[str] = []
    starts, ends = array("l"), array("l")
    for start, end in _pieces(text):
        for character in spell(text[start:end]):
            characters.append(character)
            starts.append(start)
            ends.append(end)
    return TextView("".join(characters), starts, ends)


def _pieces(text: str) -> Iterator[Span]:
    """The text as a character each with the marks that attach to it."""
    start = 0
    for at in range(1, len(text) + 1):
        if at == len(text) or not _attaches(text[at]):
            yield start, at
            start = at


@lru_cache(maxsize=65_536)
def _attaches(character: str) -> bool:
    """Whether a character can melt into the one before it."""
    if character.isascii():
        return False
    first = unicodedata.normalize("NFKC", character)[0]
    is_jamo = "\u1160" <= first <= "\u11ff"
    return is_jamo or unicodedata.category(first).startswith("M")


@lru_cache(maxsize=65_536)
def _normal_piece(piece: str) -> str:
    if piece in _HYPHENS:
        return "-"
    return unicodedata.normalize("NFKC", piece)


@lru_cache(maxsize=65_536)
def _fold_piece(piece: str) -> str:
    folded = unicodedata.normalize("NFKC", _normal_piece(piece).casefold())
    return "".join(c for c in folded if not c.isspace() and c not in _INVISIBLE)
