"""Statements that differ in nothing but their values: the same words with another number.

"审核通过后 3 个工作日内到账" and "审核通过后五个工作日内到账" contradict each other, and code alone
can tell: their words are the same, and at one place the value is another one of the same unit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from ragwb.measure.values import Value, find_values
from ragwb.measure.wording import Span, fold

FEWEST_WORDS = 4
"""Characters beside the values, without which the same words say nothing of the same matter."""

# Stands for a value; of the private use area, so that no text's own words hold it by chance.
_HOLE = "\ue000"


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A value that a text gives another value for.

    Attributes:
        pinned: the value as it should be.
        said: the value in the text.
    """

    pinned: Value
    said: Value


@dataclass(frozen=True, slots=True)
class _Skeleton:
    """A folded text with a hole for each value.

    Attributes:
        text: the folded words and holes.
        values: of the holes, in order.
        starts, ends: by character of `text`, code points of the original.
    """

    text: str
    values: tuple[Value, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]

    def occurrences(self, wanted: _Skeleton) -> Iterator[tuple[Span, tuple[Value, ...]]]:
        """Spans of the original with the same words, and the values that stand in their holes."""
        size = len(wanted.text)
        at = self.text.find(wanted.text) if size else -1
        while at >= 0:
            first = self.text.count(_HOLE, 0, at)
            span = self.starts[at], self.ends[at + size - 1]
            yield span, self.values[first : first + len(wanted.values)]
            at = self.text.find(wanted.text, at + 1)


def find_contradiction(pinned: str, text: str) -> Contradiction | None:
    """The first place where a text says the same as a pinned statement with another value.

    None too when the statement holds no value, or fewer than `FEWEST_WORDS` characters beside them.
    """
    wanted = _skeleton(pinned)
    if not wanted.values or len(wanted.text) - len(wanted.values) < FEWEST_WORDS:
        return None
    for _, values in _skeleton(text).occurrences(wanted):
        pairs = list(zip(wanted.values, values, strict=True))
        if any((p.kind, p.group) != (s.kind, s.group) for p, s in pairs):
            continue
        differing = next((pair for pair in pairs if pair[0].value != pair[1].value), None)
        if differing is not None:
            return Contradiction(*differing)
    return None


def find_same(statement: str, text: str) -> Span | None:
    """Where a text makes a statement with the same words and values, however these are spelt.

    None too when the statement holds no value: its wording is all there is to look for.
    """
    wanted = _skeleton(statement)
    if not wanted.values:
        return None
    same = [value.value for value in wanted.values]
    for span, values in _skeleton(text).occurrences(wanted):
        if [value.value for value in values] == same:
            return span
    return None


@lru_cache(maxsize=256)
def _skeleton(text: str) -> _Skeleton:
    values = find_values(text)
    characters: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    view, at = fold(text.replace(_HOLE, " ")), 0
    for character, start, end in zip(view.text, view.starts, view.ends, strict=True):
        while at < len(values) and values[at].end <= start:
            at += 1
        inside = at < len(values) and values[at].start <= start
        if not inside:
            characters.append(character)
            starts.append(start)
            ends.append(end)
        elif not ends or ends[-1] != values[at].end or characters[-1] != _HOLE:
            characters.append(_HOLE)
            starts.append(values[at].start)
            ends.append(values[at].end)
    return _Skeleton("".join(characters), values, tuple(starts), tuple(ends))
