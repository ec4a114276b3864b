"""Stretches of documents in code points, and their union."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Span(NamedTuple):
    """A stretch of a document's body.

    Attributes:
        document_id, document_version: the document; the version may be unknown.
        start, end: code points in the body; end is the first one behind the stretch.
    """

    document_id: str
    document_version: str | None
    start: int
    end: int


def merged(spans: Iterable[Span]) -> list[Span]:
    """The union of spans as spans that neither overlap nor meet, ordered by document and start."""
    union: list[Span] = []
    for span in sorted(spans, key=lambda span: (span[0], span[1] or "", *span[2:])):
        last = union[-1] if union else None
        if last and last[:2] == span[:2] and span.start <= last.end:
            union[-1] = last._replace(end=max(last.end, span.end))
        elif span.end > span.start:
            union.append(span)
    return union
