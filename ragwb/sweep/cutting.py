"""Chunkers of the user's own: a function that cuts a text, held to what every chunker must keep.

A strategy `module:function` names a function of (text, size, overlap) that gives the pieces as
(start, end) in code points, in order. The pieces must tile the text: a chunker that loses text
would lose evidence, and every figure after it would blame the retrieval.
"""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from operator import index
from pathlib import Path

from ragwb.errors import DocumentError
from ragwb.knowledge.chunk_id import chunk_id
from ragwb.knowledge.chunking import DocumentChunk
from ragwb.knowledge.document import Document
from ragwb.knowledge.tokens import count_tokens
from ragwb.own_code import contained, load_function
from ragwb.service.corpus import Corpus, make_corpus

Chunker = Callable[[str, int, int], Iterable[tuple[int, int]]]

# The number that begins an article of a Chinese statute, with the headings right above it. What
# follows tells it from a line that cites an article (第二条规定的…).
_ARTICLE = re.compile(
    r"^(?:#{1,6}[ \t][^\n]*\n\s*)*第[0-9一二三四五六七八九十百千零〇两]+条"
    r"(?:之[0-9一二三四五六七八九十]+)?[ \t\u3000【]",
    re.MULTILINE,
)


def load_chunker(name: str) -> Chunker:
    """The function that `module:function` names.

    Raises:
        UsageError: it cannot be imported, or is not callable.
    """
    return load_function(name, "chunker")


def chunker_version(name: str) -> str:
    """16 hex digits over the source that a chunker stands in: changed code makes other chunks."""
    function = load_chunker(name)
    try:
        source = Path(inspect.getfile(function)).read_bytes()
    except (OSError, TypeError):
        source = repr(function).encode()
    return hashlib.sha256(source).hexdigest()[:16]


def character_windows(text: str, size: int, overlap: int) -> list[tuple[int, int]]:
    """Windows of `size` characters, each starting `overlap` before the last one's end.

    The chunking study's fixed windows: one starts at every multiple of size - overlap that lies
    before length - overlap. Used as strategy `ragwb.sweep.cutting:character_windows`.
    """
    starts = range(0, max(len(text) - overlap, 1), size - overlap)
    return [(start, min(start + size, len(text))) for start in starts]


def at_matches(
    text: str, starts: re.Pattern[str], size: int, overlap: int
) -> list[tuple[int, int]]:
    """Pieces that begin where a pattern matches, to the next match; what precedes it is one too.

    A piece of more than `size` characters is cut into windows (`character_windows`), which alone
    use the overlap. A chunker of another structure than `articles` is this with its own pattern.
    """
    places = {0, *(match.start() for match in starts.finditer(text)), len(text)}
    return [
        (start + first, start + last)
        for start, end in pairwise(sorted(places))
        for first, last in character_windows(text[start:end], size, overlap)
    ]


def articles(text: str, size: int, overlap: int) -> list[tuple[int, int]]:
    """Articles of a Chinese statute: pieces at lines that begin 第…条, headings with what follows.

    One of more than `size` characters is cut (see `at_matches`). Used as strategy
    `ragwb.sweep.cutting:articles`.
    """
    return at_matches(text, _ARTICLE, size, overlap)


def check_tiles(document: Document, spans: Sequence[tuple[int, int]], overlap: int) -> None:
    """Whether pieces give a document's whole text, in order, and twice only where they overlap.

    White space between two pieces, and at both ends, may be left out: no evidence is lost with it.

    Raises:
        DocumentError: a piece is empty, out of order or out of the text; or text is lost or stands
            twice. It names the document and the character.
    """
    name = f"{document.document_id} version {document.version}"
    body, reached, last = document.body, 0, -1
    for start, end in spans:
        if not (last < start < end <= len(body)):
            raise DocumentError(f"{name}: the chunker gave {start}:{end}, no piece after {last}")
        if body[reached:start].strip():
            raise DocumentError(f"{name}: the chunker lost the text from character {reached}")
        if start < reached and not overlap:
            raise DocumentError(
                f"{name}: the chunker repeats the text from character {start} without an overlap"
            )
        reached, last = max(reached, end), start
    if body[reached:].strip():
        raise DocumentError(f"{name}: the chunker lost the text from character {reached}")


def cut_corpus(corpus: Corpus, strategy: str, size: int, overlap: int) -> Corpus:
    """The same documents, cut by a chunker of the user's own.

    Raises:
        UsageError: there is no such chunker.
        DocumentError: it failed, or its pieces do not tile a document.
    """
    chunker, version = load_chunker(strategy), chunker_version(strategy)

    def cut(document: Document) -> tuple[DocumentChunk, ...]:
        try:
            with contained():
                spans = [
                    (index(start), index(end))
                    for start, end in chunker(document.body, size, overlap)
                ]
        except Exception as error:
            raise DocumentError(
                f"{document.document_id} version {document.version}: chunker {strategy} failed: "
                f"{type(error).__name__}: {error}"
            ) from error
        check_tiles(document, spans, overlap)
        kept = [(start, end) for start, end in spans if document.body[start:end].strip()]
        return tuple(
            _chunk(document, strategy, version, ordinal, span) for ordinal, span in enumerate(kept)
        )

    return make_corpus((document, cut(document)) for document in corpus.documents)


def _chunk(
    document: Document, strategy: str, version: str, ordinal: int, span: tuple[int, int]
) -> DocumentChunk:
    text = document.body[span[0] : span[1]]
    return DocumentChunk(
        chunk_id=chunk_id(
            tenant=document.tenant,
            document_id=document.document_id,
            document_version=document.version,
            strategy=strategy,
            strategy_version=version,
            ordinal=ordinal,
            heading_path=(),
            body=text,
        ),
        tenant=document.tenant,
        document_id=document.document_id,
        document_version=document.version,
        ordinal=ordinal,
        heading_path=(),
        title=document.title,
        text=text,
        start=span[0],
        end=span[1],
        n_tokens=count_tokens(text),
    )
