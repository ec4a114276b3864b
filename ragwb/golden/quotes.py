"""Where a quote stands in a text, whatever the Unicode form and the white space at line ends."""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

Span = tuple[int, int]

_LINE_TAIL = re.compile(r"[^\S\n]+(?=\n|\Z)")
_CARRIAGE_RETURN = re.compile(r"\r(?!\n)")


@dataclass(frozen=True, slots=True)
class NormalisedText:
    """A text in NFC without white space at line ends, and where each character came from.

    Attributes:
        text: the normalised view; a lone CR is a line end in it.
        starts, ends: by its character, the code points [start, end) of the original it stands for.
    """

    text: str
    starts: Sequence[int]
    ends: Sequence[int]

    def find(self, quote: str) -> list[Span]:
        """Spans of the original text at which a quote stands, in order, overlapping ones too."""
        wanted = normalise_text(quote).text.rstrip()
        found: list[Span] = []
        at = self.text.find(wanted) if wanted else -1
        while at >= 0:
            found.append((self.starts[at], self.ends[at + len(wanted) - 1]))
            at = self.text.find(wanted, at + 1)
        return found


def normalise_text(text: str) -> NormalisedText:
    """The normalised view of a text, with a way back to its offsets."""
    lines = _CARRIAGE_RETURN.sub("\n", text)  # one character for one: offsets stay
    characters: list[str] = []
    starts, ends = array("l"), array("l")  # two lists of ints would take ten times the text
    start = 0
    for tail in (*_LINE_TAIL.finditer(lines), None):
        end = tail.start() if tail else len(lines)
        for character, (first, after) in _compose(lines, start, end):
            characters.append(character)
            starts.append(first)
            ends.append(after)
        start = tail.end() if tail else end
    return NormalisedText("".join(characters), starts, ends)


def _compose(text: str, start: int, end: int) -> Iterator[tuple[str, Span]]:
    """Each character of the NFC of text[start:end] with the span of what it was composed from."""
    if unicodedata.is_normalized("NFC", text[start:end]):
        yield from ((text[at], (at, at + 1)) for at in range(start, end))
        return
    at = start
    while at < end:
        after = _composition_end(text, at, end)
        for normal in unicodedata.normalize("NFC", text[at:after]):
            yield normal, (at, after)
        at = after


def _composition_end(text: str, at: int, end: int) -> int:
    """End of the shortest piece from `at` whose NFC does not depend on what follows it."""
    after = at + 1
    normal = unicodedata.normalize("NFC", text[at])
    while after < end:
        alone = unicodedata.normalize("NFC", text[after])
        together = unicodedata.normalize("NFC", text[at : after + 1])
        if unicodedata.combining(text[after]) == 0 and together == normal + alone:
            break
        normal = together
        after += 1
    return after
