"""An answer's text with its marks: what rests on which passage, claims found, broken rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Literal

from ragwb.html import escape, plain, tag
from ragwb.measure.answer_figures import AnswerOutcome
from ragwb.measure.answered import AnsweredCase
from ragwb.measure.wording import fold
from ragwb.view.panel import Panel

TEXT_LIMIT = 4_000
MOST_MARKS = 200
MarkKind = Literal["cited", "claim", "broken"]
_CLASSES: dict[MarkKind, str] = {"cited": "rw-cite", "claim": "rw-claim", "broken": "rw-broken"}
_LEGEND = (
    "underlined with dots: rests on the passage of that number · ✔ a required claim of that number "
    "· ✖ breaks a hard rule"
)


@dataclass(frozen=True, slots=True)
class Mark:
    """A span of a text and what it is.

    Attributes:
        start, end: code points of the text.
        kind: cited, claim (a required one that is stated) or broken (what breaks a rule).
        label: what stands behind it, such as [2] or ✔1.
    """

    start: int
    end: int
    kind: MarkKind
    label: str


def answer_text(outcome: AnswerOutcome) -> Panel:
    """An answer's text, its marks and what they mean; a long one is cut."""
    answered = outcome.answered
    if answered.text is None:
        return Panel("no text", tag("p", "no text", class_="rw-none"))
    if not answered.text.strip():
        return Panel("the text is empty", tag("p", "the text is empty", class_="rw-none"))
    marks = list(answer_marks(outcome))
    html = tag("div", marked(answered.text, marks), class_="rw-text rw-answer")
    legend = tag("p", escape(_LEGEND), class_="rw-figures") if marks else ""
    return Panel(_written(answered.text, marks), html + legend)


def answer_marks(outcome: AnswerOutcome) -> Iterator[Mark]:
    """The marks of an answer: of its citations, of required claims, and of broken rules.

    Of citations and of broken rules the first `MOST_MARKS` each, no mark twice.
    """
    yield from islice(_citation_marks(outcome.answered), MOST_MARKS)
    for claim in outcome.claims:
        if claim.kind == "required" and claim.start is not None and claim.end is not None:
            yield Mark(claim.start, claim.end, "claim", f"✔{claim.index + 1}")
    for failure in outcome.failures[:MOST_MARKS]:
        if failure.start is not None and failure.end is not None:
            yield Mark(failure.start, failure.end, "broken", "✖")


def _citation_marks(answered: AnsweredCase) -> Iterator[Mark]:
    text = answered.text or ""
    numbers = passage_numbers(answered)
    cited = dict.fromkeys((one.claim, one.chunk_id) for one in answered.citations or ())
    for words, chunk_id in cited:
        span = find_words(words, text) if words else None
        if span is not None:
            yield Mark(*span, "cited", f"[{numbers.get(chunk_id, '?')}]")


def passage_numbers(answered: AnsweredCase) -> dict[str, int]:
    """The number of each passage of the context, from 1."""
    return {name: at for at, name in enumerate(dict.fromkeys(answered.context or ()), 1)}


def find_words(words: str, text: str) -> tuple[int, int] | None:
    """Where words stand first in a text, to the letter or else in another spelling."""
    at = text.find(words)
    return (at, at + len(words)) if at >= 0 else fold(text).find(words)


def marked(text: str, marks: Sequence[Mark], *, limit: int = TEXT_LIMIT) -> str:
    """A text as HTML with marks that may overlap; each label stands behind the end of its mark.

    Args:
        text: as it was given.
        marks: spans of it; what lies beyond the limit is not shown.
        limit: code points that are shown; of a longer text its length is said.
    """
    end = min(len(text), limit)
    inside = [mark for mark in marks if 0 <= mark.start < mark.end and mark.start < end]
    cuts = {0, end, *(m.start for m in inside), *(min(m.end, end) for m in inside)}
    places = sorted(cuts)
    pieces = []
    for first, after in pairwise(places):
        pieces.append(_piece(text, first, after, inside))
        pieces.append(_labels(mark for mark in inside if min(mark.end, end) == after))
    tail = f"… ({len(text):,} characters)" if end < len(text) else ""
    return "".join(pieces) + tail


def _piece(text: str, start: int, end: int, marks: Sequence[Mark]) -> str:
    kinds = {mark.kind for mark in marks if mark.start <= start and end <= mark.end}
    words = escape(text[start:end])
    if not kinds:
        return words
    return tag("mark", words, class_=" ".join(_CLASSES[kind] for kind in _CLASSES if kind in kinds))


def _labels(marks: Iterator[Mark]) -> str:
    """The labels behind one place, each once: what was found first, then the passages."""
    found = sorted({(mark.kind == "cited", mark.label, mark.kind) for mark in marks})
    return "".join(
        tag("sup", escape(label), class_="rw-bad" if kind == "broken" or label == "[?]" else None)
        for _, label, kind in found
    )


def _written(text: str, marks: Sequence[Mark]) -> str:
    """The text in lines for a terminal, the passages behind what rests on them."""
    pieces, at = [], 0
    ends = sorted({(mark.end, mark.label) for mark in marks if mark.end <= TEXT_LIMIT})
    for end, label in ends:
        pieces.append(f"{text[at:end]}{label}")
        at = end
    pieces.append(text[at:TEXT_LIMIT])
    tail = f"… ({len(text):,} characters)" if len(text) > TEXT_LIMIT else ""
    return "\n".join(plain(line) for line in ("".join(pieces) + tail).splitlines())
