"""Where a passage is in the chunks of an index: held, split over several, drifted, or missing.

Source: metrics.md, "Evidence as passages".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from ragwb.golden import spans
from ragwb.golden.case import Passage, quote_sha256
from ragwb.golden.chunk_index import Body, ChunkIndex
from ragwb.golden.quotes import Span


@dataclass(frozen=True, slots=True)
class FoundPassage:
    """Where a passage is in a chunk index.

    Attributes:
        state: held by a chunk; split over chunks; drifted: the document's version is there without
            the passage; missing: the document or the version is not there.
        groups: the holders as one group, or a group for each chunk of a split one's smallest cover;
            () otherwise.
        span: the place that counts as required text; None when there is none.
        detail: the finding in words.
    """

    state: Literal["held", "split", "drifted", "missing"]
    groups: tuple[tuple[str, ...], ...] = ()
    span: spans.Span | None = None
    detail: str = ""


def find_passage(passage: Passage, index: ChunkIndex) -> FoundPassage:
    """Where a passage is: every occurrence counts, and every version when it names none."""
    bodies = index.bodies(passage.document_id, passage.document_version)
    if not bodies:
        return FoundPassage("missing", detail=_describe_missing(passage, index))
    places = [(body, span) for body in bodies for span in _find_places(passage, body)]
    holders = [(body, span, body.holders(span)) for body, span in places]
    held = [name for _, _, names in holders for name in names]
    if held:
        body, span, _ = next(holder for holder in holders if holder[2])
        return FoundPassage("held", (distinct(held),), _passage_span(body, span))
    covers = [(body, span, body.smallest_cover(span)) for body, span in places]
    covers = [cover for cover in covers if cover[2]]
    if covers:
        body, span, cover = min(covers, key=lambda found: (len(found[2]), found[1][0]))
        names = ", ".join(ids[0] for ids in cover)
        detail = f"no chunk holds it whole, {len(cover)} in a row cover it: {names}"
        return FoundPassage("split", tuple(cover), _passage_span(body, span), detail)
    return FoundPassage("drifted", detail=_describe_drift(passage, bodies))


def _find_places(passage: Passage, body: Body) -> list[Span]:
    """Spans of a body at which a passage stands."""
    if passage.quote is not None:
        return body.view.find(passage.quote)
    if not body.is_whole:
        return []  # without offsets nobody knows where in the document the text is
    if passage.start is not None and passage.end is not None:
        span = (passage.start, passage.end)
    else:
        span = _line_span(body.text, passage.lines or (1, 1))
    text = body.text[span[0] : span[1]]
    is_there = span[1] <= len(body.text) and text.strip() != ""
    is_same = passage.sha256 is None or quote_sha256(text) == passage.sha256
    return [span] if is_there and is_same else []


def _line_span(text: str, lines: tuple[int, int]) -> Span:
    """Span of lines first to last, from 1, without the white space at the last one's end."""
    parts = text.split("\n")
    if lines[1] > len(parts):
        return len(text), len(text) + 1  # beyond the text
    start = sum(len(part) + 1 for part in parts[: lines[0] - 1])
    return start, start + len("\n".join(parts[lines[0] - 1 : lines[1]]).rstrip())


def touching_chunks(passage: Passage, index: ChunkIndex) -> Iterator[str]:
    """Ids of the chunks that contain a part of a passage."""
    for body in index.bodies(passage.document_id, passage.document_version):
        for span in _find_places(passage, body):
            yield from body.touching(span)


def _describe_missing(passage: Passage, index: ChunkIndex) -> str:
    versions = index.versions(passage.document_id)
    if versions:
        there = ", ".join(versions)
        return f"{passage.document_id} has no version {passage.document_version}, only {there}"
    return f"document {passage.document_id} is not in the knowledge"


def _describe_drift(passage: Passage, bodies: list[Body]) -> str:
    name = f"{passage.document_id} version {passage.document_version or 'any'}"
    if not all(body.is_whole for body in bodies):
        return (
            f"not in one chunk of {name}, and without offsets a split cannot be told from a drift"
        )
    if passage.quote is not None:
        return f"{name} no longer holds {passage.quote[:40]!r}"
    place = f"lines {passage.lines}" if passage.start is None else f"{passage.start}:{passage.end}"
    return f"{name} no longer holds the same text at {place}"


def _passage_span(body: Body, span: Span) -> spans.Span:
    return spans.Span(body.document_id, body.document_version, *span)


def distinct(names: Iterable[str]) -> tuple[str, ...]:
    """The names in their order, each once."""
    return tuple(dict.fromkeys(names))
