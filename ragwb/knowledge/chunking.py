"""Strategies that cut a document into chunks, behind one call.

`fixed` cuts every so many tokens, `recursive` at the strongest separator that fits, `heading` at
the headings of the Markdown and inside long sections the recursive way. The separators are code of
this package, not of a library, because a library's next version would move the borders and with
them every chunk id, under the same strategy version.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from ragwb import records
from ragwb.errors import DocumentError, UsageError
from ragwb.knowledge.chunk_id import chunk_id
from ragwb.knowledge.document import Document
from ragwb.knowledge.tokens import count_tokens, token_spans

# Raised whenever the same body would be cut differently: no old id may be taken for a new chunk.
STRATEGY_VERSIONS = {"fixed": "1", "recursive": "1", "heading": "1"}

# From strong to weak; a separator stays with the piece that it ends.
_SEPARATORS = (
    re.compile(r"\n[ \t]*\n\s*"),
    re.compile(r"\n"),
    re.compile(r"[。！？!?…]+[”’」』）)】\"']*|\.(?=\s)"),
    re.compile(r"[；;：:]"),
    re.compile(r"[，、,]"),
    re.compile(r"\s+"),
)
_LINE_END = re.compile(r"\r\n?|\n")
_HEADING_TEXT = {"text", "code_inline", "softbreak"}

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ChunkingSpec:
    """How documents are cut.

    Attributes:
        strategy: fixed, recursive or heading.
        size: most tokens of a chunk, ≥ 1.
        overlap: tokens that a chunk repeats from the one before, 0 ≤ overlap < size; with `heading`
            only inside a section.

    Raises:
        UsageError: an unknown strategy, or a size or overlap out of range.
    """

    strategy: str = "heading"
    size: int = 400
    overlap: int = 0

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGY_VERSIONS:
            known = ", ".join(STRATEGY_VERSIONS)
            raise UsageError(f"chunking strategy {self.strategy!r} is not one of {known}")
        if self.size < 1:
            raise UsageError(f"chunk size {self.size}: give at least 1 token")
        if not 0 <= self.overlap < self.size:
            raise UsageError(
                f"chunk overlap {self.overlap}: give 0 to {self.size - 1}, less than the size"
            )

    @property
    def version(self) -> str:
        """Version of the strategy; sizes are no part of it, they show in the hashed bodies."""
        return STRATEGY_VERSIONS[self.strategy]


@dataclass(frozen=True, slots=True)
class DocumentChunk:
    """A piece of one version of a document.

    Attributes:
        ordinal: its place in the document, from 0.
        heading_path: headings above it, the outermost first; () outside all headings.
        title: the heading path joined by " / ", or the document's title.
        text: body[start:end], white space included.
        start: first code point in the body; end: one past the last.
        n_tokens: tokens of the text.
    """

    chunk_id: str
    tenant: str
    document_id: str
    document_version: str
    ordinal: int
    heading_path: tuple[str, ...]
    title: str
    text: str
    start: int
    end: int
    n_tokens: int

    def to_record(self) -> records.Chunk:
        """The chunk as a service tells it."""
        return records.Chunk(
            chunk_id=self.chunk_id,
            document_id=self.document_id,
            document_version=self.document_version,
            title=self.title,
            text=self.text,
            start=self.start,
            end=self.end,
        )


def chunk_documents(documents: Iterable[Document], spec: ChunkingSpec) -> Iterator[DocumentChunk]:
    """The chunks of all documents, one document after the other."""
    for document in documents:
        yield from chunk_document(document, spec)


def chunk_document(document: Document, spec: ChunkingSpec) -> list[DocumentChunk]:
    """The chunks of a document, in order.

    No chunk is white space alone. Without overlap the chunks tile the body; with overlap they
    cover it. A chunk has at most `spec.size` tokens, white space joined to it and single code
    points aside.

    Returns:
        One chunk or more; none for a body of white space.

    Raises:
        DocumentError: the pieces do not cover the body, which would be a fault of this module.
    """
    pieces = [
        (span, path)
        for section, path in _sections(document.body, spec)
        for span in _cut_section(document.body, section, spec)
    ]
    joined = _join_blank(document.body, pieces)
    _check_cover(document, [span for span, _ in joined], spec)
    return [
        _build_chunk(document, spec, ordinal, span, path)
        for ordinal, (span, path) in enumerate(joined)
    ]


def _build_chunk(
    document: Document, spec: ChunkingSpec, ordinal: int, span: Span, path: tuple[str, ...]
) -> DocumentChunk:
    start, end = span
    text = document.body[start:end]
    return DocumentChunk(
        chunk_id=chunk_id(
            tenant=document.tenant,
            document_id=document.document_id,
            document_version=document.version,
            strategy=spec.strategy,
            strategy_version=spec.version,
            ordinal=ordinal,
            heading_path=path,
            body=text,
        ),
        tenant=document.tenant,
        document_id=document.document_id,
        document_version=document.version,
        ordinal=ordinal,
        heading_path=path,
        title=" / ".join(path) or document.title,
        text=text,
        start=start,
        end=end,
        n_tokens=count_tokens(text),
    )


def _sections(body: str, spec: ChunkingSpec) -> list[tuple[Span, tuple[str, ...]]]:
    """The parts that are cut on their own, each with its heading path."""
    headings = _headings(body) if spec.strategy == "heading" else []
    if not headings:
        return [((0, len(body)), ())]
    start = headings[0][0]
    sections: list[tuple[Span, tuple[str, ...]]] = [((0, start), ())] if start else []
    path: list[tuple[int, str]] = []
    for (_, text_start, level, text), following in zip(
        headings, [*headings[1:], None], strict=True
    ):
        path = [held for held in path if held[0] < level] + [(level, text)]
        end = following[0] if following else len(body)
        is_bare = not body[text_start:end].strip()
        if is_bare and following and following[2] > level:
            # A heading alone says nothing: it goes before its first subsection.
            continue
        sections.append(((start, end), tuple(text for _, text in path if text)))
        start = end
    return sections


def _headings(body: str) -> list[tuple[int, int, int, str]]:
    """(start, end of the heading's lines, level, text) of each heading outside lists and quotes."""
    from markdown_it import MarkdownIt

    lines = [0, *(match.end() for match in _LINE_END.finditer(body)), len(body)]
    tokens = MarkdownIt("commonmark").parse(body)
    headings = []
    for opening, inline in pairwise(tokens):
        if opening.type != "heading_open" or opening.level or opening.map is None:
            continue
        first, after = opening.map
        words = (child for child in inline.children or [] if child.type in _HEADING_TEXT)
        text = " ".join("".join(word.content or " " for word in words).split())
        headings.append((lines[first], lines[after], int(opening.tag[1:]), text))
    return headings


def _cut_section(body: str, section: Span, spec: ChunkingSpec) -> list[Span]:
    if spec.strategy == "fixed":
        return _cut_tokens(body, section, spec.size, spec.overlap)
    spans = _cut_at_separators(body, section, spec.size - spec.overlap)
    return _overlap(body, spans, spec) if spec.overlap else spans


def _cut_tokens(body: str, section: Span, size: int, overlap: int = 0) -> list[Span]:
    """Windows of at most `size` tokens; each starts `overlap` tokens before the last one's end."""
    start, end = section
    tokens = [(start + first, start + last) for first, last in token_spans(body[start:end])]
    spans: list[Span] = []
    first = 0
    while first < len(tokens):
        after = min(first + size, len(tokens))
        # A code point of several tokens is one span, and a cut can change how neighbours merge.
        while after - first > 1 and not _fits(body, tokens[first][0], tokens[after - 1][1], size):
            after -= 1
        spans.append((tokens[first][0], tokens[after - 1][1]))
        if after == len(tokens):
            break
        first = max(after - overlap, first + 1)
    return spans


def _cut_at_separators(body: str, section: Span, size: int, level: int = 0) -> list[Span]:
    """The section cut at the strongest separators that do, neighbours joined while they fit."""
    if _fits(body, *section, size):
        return [section]
    if level == len(_SEPARATORS):
        return _cut_tokens(body, section, size)
    spans: list[Span] = []
    for start, end in _split(body, section, _SEPARATORS[level]):
        if spans and _fits(body, spans[-1][0], end, size):
            spans[-1] = (spans[-1][0], end)
        else:
            spans.extend(_cut_at_separators(body, (start, end), size, level + 1))
    return spans


def _split(body: str, section: Span, separator: re.Pattern[str]) -> Iterator[Span]:
    start, end = section
    # The slice keeps a separator from reaching beyond the section.
    for match in separator.finditer(body[start:end]):
        cut = section[0] + match.end()
        if start < cut < end:
            yield start, cut
            start = cut
    yield start, end


def _fits(body: str, start: int, end: int, size: int) -> bool:
    # No token is longer than 128 characters: a text far too long need not be tokenized to know it.
    return end - start <= size * 128 and count_tokens(body[start:end]) <= size


def _overlap(body: str, spans: list[Span], spec: ChunkingSpec) -> list[Span]:
    """The spans, each started earlier by up to the overlap in tokens, as far as the size allows."""
    widened = spans[:1]
    for before, (start, end) in pairwise(spans):
        tokens = token_spans(body[before[0] : start])[-spec.overlap :]
        starts = (before[0] + first for first, _ in tokens)
        first = next((at for at in starts if _fits(body, at, end, spec.size)), start)
        widened.append((first, end))
    return widened


def _join_blank(
    body: str, pieces: list[tuple[Span, tuple[str, ...]]]
) -> list[tuple[Span, tuple[str, ...]]]:
    """The pieces, those of white space alone joined to the one before (the first to the next)."""
    joined: list[tuple[Span, tuple[str, ...]]] = []
    blank_start: int | None = None
    for (start, end), path in pieces:
        if not body[start:end].strip():
            if joined:
                joined[-1] = ((joined[-1][0][0], end), joined[-1][1])
            elif blank_start is None:
                blank_start = start
            continue
        joined.append(((start if blank_start is None else blank_start, end), path))
        blank_start = None
    return joined


def _check_cover(document: Document, spans: list[Span], spec: ChunkingSpec) -> None:
    """Raises DocumentError when text would be lost or, without overlap, stand in two chunks."""
    reached = 0
    for start, end in spans:
        gap = start > reached if spec.overlap else start != reached
        if gap or end <= start:
            raise DocumentError(
                f"{document.document_id} version {document.version}: {spec.strategy} chunking broke"
                f" at character {reached}: report it with this document"
            )
        reached = max(reached, end)
    if document.body.strip() and reached != len(document.body):
        raise DocumentError(
            f"{document.document_id} version {document.version}: {spec.strategy} chunking lost the"
            f" text from character {reached}: report it with this document"
        )
