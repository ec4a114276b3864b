"""The chunks that a service or an index holds, by id and by document, with the documents' texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ragwb.golden.quotes import NormalisedText, Span, normalise_text
from ragwb.records import Chunk

# Stands where no chunk tells the text: services trim the white space between chunks.
_GAP = "\n"


@dataclass
class Body:
    """The text of one document version as its chunks tell it.

    Attributes:
        document_id, document_version: whose text it is.
        chunks: (start, end, chunk_id) in order; offsets are code points of the body.
        text: the body up to the last chunk's end.
        is_whole: False for a chunk without offsets, which is a body of its own: what it does not
            hold may stand in the chunk beside it.
    """

    document_id: str
    document_version: str | None
    is_whole: bool = True
    chunks: list[tuple[int, int, str]] = field(default_factory=list)
    text: str = ""

    @cached_property
    def view(self) -> NormalisedText:
        """The normalised view that quotes are matched on."""
        return normalise_text(self.text)

    def continues(self, start: int, text: str) -> bool:
        """Whether a chunk at `start` says the same as the body where both say something."""
        held = self.text[start : start + len(text)]
        return held == text[: len(held)]

    def add(self, start: int, text: str, chunk_id: str) -> None:
        """Adds a chunk; they come in the order of their starts."""
        self.chunks.append((start, start + len(text), chunk_id))
        if start > len(self.text):
            self.text += _GAP * (start - len(self.text))
        self.text += text[len(self.text) - start :]

    def holders(self, span: Span) -> list[str]:
        """Ids of the chunks that contain all of a span, in order."""
        return [name for start, end, name in self.chunks if start <= span[0] and span[1] <= end]

    def touching(self, span: Span) -> list[str]:
        """Ids of the chunks that contain a part of a span, in order."""
        return [name for start, end, name in self.chunks if start < span[1] and span[0] < end]

    def smallest_cover(self, span: Span) -> list[tuple[str, ...]]:
        """The fewest consecutive chunks that cover a span; of equals, those that start earliest.

        Chunks of one and the same place are one, with several ids. Characters that no chunk holds
        need no cover. [] when no chunk touches the span.
        """
        places: dict[Span, list[str]] = {}
        for start, end, name in self.chunks:
            places.setdefault((start, end), []).append(name)
        first, last = self._told(span)
        spans = list(places)
        runs = [
            spans[index : index + 1 + _run_length(spans[index:], last)]
            for index, (start, end) in enumerate(spans)
            if start <= first < end
        ]
        whole = [run for run in runs if max(end for _, end in run) >= last]
        # Runs are in the order of their starts, and min takes the first of equals.
        return [tuple(places[place]) for place in min(whole, key=len, default=[])]

    def _told(self, span: Span) -> Span:
        """The span without the characters at its ends that no chunk holds."""
        parts = [
            (max(start, span[0]), min(end, span[1]))
            for start, end, _ in self.chunks
            if start < span[1] and span[0] < end
        ]
        if not parts:
            return span
        return min(start for start, _ in parts), max(end for _, end in parts)


def _run_length(spans: Sequence[Span], last: int) -> int:
    """How many spans end before one reaches `last`."""
    return next((place for place, (_, end) in enumerate(spans) if end >= last), len(spans))


class ChunkIndex:
    """Chunks by id and by document.

    Two documents may share an id and a version (those of two tenants): a chunk that contradicts a
    text starts another `Body` of the same name.

    Args:
        chunks: in any order; those without text or document are known by their id alone.
    """

    def __init__(self, chunks: Iterable[Chunk]) -> None:
        held = {chunk.chunk_id: chunk for chunk in chunks}
        self.chunk_ids = frozenset(held)
        self._bodies: Mapping[str, Mapping[str | None, Sequence[Body]]] = _build_bodies(
            held.values()
        )

    def __len__(self) -> int:
        return len(self.chunk_ids)

    def __contains__(self, chunk_id: object) -> bool:
        return chunk_id in self.chunk_ids

    def bodies(self, document_id: str, document_version: str | None) -> list[Body]:
        """Texts of a document's version, of all versions for None; [] when it is not there."""
        versions = self._bodies.get(document_id, {})
        if document_version is None:
            return [body for name in sorted(versions, key=str) for body in versions[name]]
        return list(versions.get(document_version, ()))

    def versions(self, document_id: str) -> list[str]:
        """Versions of a document that are there, sorted."""
        return sorted(str(version) for version in self._bodies.get(document_id, {}))


def _build_bodies(chunks: Iterable[Chunk]) -> dict[str, dict[str | None, list[Body]]]:
    bodies: dict[str, dict[str | None, list[Body]]] = {}
    told = [chunk for chunk in chunks if chunk.document_id is not None and chunk.text is not None]
    for chunk in sorted(told, key=lambda chunk: (chunk.start or 0, chunk.end or 0, chunk.chunk_id)):
        document_id, text = str(chunk.document_id), str(chunk.text)
        same = bodies.setdefault(document_id, {}).setdefault(chunk.document_version, [])
        # Offsets that do not span the text count something else than code points.
        has_offsets = chunk.start is not None and chunk.end == chunk.start + len(text)
        start = chunk.start if has_offsets and chunk.start is not None else 0
        body = _find_body(same, start, text) if has_offsets else None
        if body is None:
            body = Body(document_id, chunk.document_version, is_whole=has_offsets)
            same.append(body)
        body.add(start, text, chunk.chunk_id)
    return bodies


def _find_body(bodies: Iterable[Body], start: int, text: str) -> Body | None:
    """The body that a chunk goes on with, rather one that it joins than one with a gap before."""
    fitting = [body for body in bodies if body.is_whole and body.continues(start, text)]
    return max(fitting, key=lambda body: min(len(body.text), start), default=None)
