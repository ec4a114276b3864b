"""Where the required passages of a case stand in the text of a chunk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from ragwb.golden.case import Passage
from ragwb.golden.passages import ResolvedCase
from ragwb.golden.quotes import Span, normalise_text
from ragwb.html import escape, tag
from ragwb.runs.results import ChunkText

TEXT_LIMIT = 1_200
_BEFORE = 200  # of a long text, what is shown before its first passage


def passage_spans(case: ResolvedCase, chunk: ChunkText) -> list[Span]:
    """The required passages in a chunk's text, as spans of it that neither overlap nor meet.

    A quote is looked for in the chunks of its document; where the offsets of chunk and passage are
    known, so is a passage by lines and the part of a split one.
    """
    if not chunk.text:
        return []
    return _merged([*_quoted(case, chunk), *_by_offset(case, chunk)])


def marked_text(case: ResolvedCase, chunk: ChunkText) -> str:
    """A chunk's text as HTML, the required passages marked; of a long one the part with them."""
    if chunk.text is None:
        return escape("text not observed")
    spans = passage_spans(case, chunk)
    text, start, end = chunk.text, 0, len(chunk.text)
    if end > TEXT_LIMIT:
        start = max(0, spans[0][0] - _BEFORE) if spans else 0
        end = min(end, start + TEXT_LIMIT)
    pieces, at = [], start
    for first, after in spans:
        first, after = min(max(first, at), end), min(after, end)
        pieces.append(escape(text[at:first]))
        pieces.append(tag("mark", escape(text[first:after])) if after > first else "")
        at = max(at, after)
    pieces.append(escape(text[at:end]))
    before, behind = "…" if start else "", "…" if end < len(text) else ""
    size = f" ({len(text):,} characters)" if before or behind else ""
    return f"{before}{''.join(pieces)}{behind}{size}"


def _quoted(case: ResolvedCase, chunk: ChunkText) -> Iterator[Span]:
    quotes = [p.quote for p in _passages(case) if p.quote and _may_hold(p, chunk)]
    if quotes and chunk.text:
        view = normalise_text(chunk.text)
        yield from chain.from_iterable(view.find(quote) for quote in quotes)


def _passages(case: ResolvedCase) -> Iterator[Passage]:
    for group in case.case.evidence:
        yield from group.any_of


def _may_hold(passage: Passage, chunk: ChunkText) -> bool:
    """Whether a chunk is of a passage's document, as far as it says of which it is."""
    is_document = chunk.document_id in (None, passage.document_id)
    versions = (None, passage.document_version)
    return is_document and (passage.document_version is None or chunk.document_version in versions)


def _by_offset(case: ResolvedCase, chunk: ChunkText) -> Iterator[Span]:
    if chunk.start is None or chunk.end is None or not chunk.text:
        return
    if chunk.end - chunk.start != len(chunk.text):
        return  # the text is not the piece of the document that the offsets name
    for span in case.spans:
        is_same = span.document_id == chunk.document_id
        if is_same and span.document_version in (None, chunk.document_version):
            start, end = max(span.start, chunk.start), min(span.end, chunk.end)
            if start < end:
                yield start - chunk.start, end - chunk.start


def _merged(spans: Iterable[Span]) -> list[Span]:
    union: list[Span] = []
    for start, end in sorted(spans):
        if union and start <= union[-1][1]:
            union[-1] = (union[-1][0], max(union[-1][1], end))
        else:
            union.append((start, end))
    return union
