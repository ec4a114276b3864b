"""The corpus that a service serves: documents, their chunks, and the hash that locks both."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ragwb.knowledge.chunk_id import normalise
from ragwb.knowledge.chunking import ChunkingSpec, DocumentChunk, chunk_document
from ragwb.knowledge.document import Document, load_documents

# A sentence ends here, closing quotes included; a line ends one too.
_SENTENCE = re.compile(r"[^。！？!?；;\n]+[。！？!?；;]*[”’」』）)】\"']*")
_CODE = re.compile(r"[^\W_]+(?:[-_.][^\W_]+)+")
_MIN_SENTENCE_CHARS = 6


@dataclass(frozen=True, slots=True)
class Corpus:
    """Documents with their chunks, all tenants and states.

    Attributes:
        documents: in the order of their paths.
        chunks: for each document its chunks in order.
        snapshot: SHA-256 of the published documents.
        digest: SHA-256 of all documents, whatever their state, and of their chunks' ids.
    """

    documents: tuple[Document, ...]
    chunks: tuple[tuple[DocumentChunk, ...], ...]
    snapshot: str
    digest: str


def read_corpus(folder: Path, spec: ChunkingSpec) -> Corpus:
    """The documents below a folder, cut into chunks.

    Raises:
        DocumentError: documents are wrong; all faults at once.
    """
    documents = load_documents(folder)
    return make_corpus((document, tuple(chunk_document(document, spec))) for document in documents)


def make_corpus(parts: Iterable[tuple[Document, tuple[DocumentChunk, ...]]]) -> Corpus:
    """The corpus of documents that are cut already, each with its chunks."""
    held = tuple(parts)
    documents = tuple(document for document, _ in held)
    chunks = tuple(cut for _, cut in held)
    published = (document for document in documents if document.status == "published")
    return Corpus(
        documents=documents,
        chunks=chunks,
        snapshot=_digest(map(_canonical, published)),
        digest=_digest(
            _canonical(document) + "".join(chunk.chunk_id for chunk in cut)
            for document, cut in held
        ),
    )


def embedding_text(title: str, text: str) -> str:
    """What stands for a chunk in the vector channel and in the token budget: title, then text."""
    return f"{title}\n{text.strip()}"


def sentences(text: str) -> list[str]:
    """The sentences of a chunk, headings left out; the whole text when it has none.

    Pieces under 6 characters say nothing alone and stay with the sentence after them.
    """
    found: list[str] = []
    carried = ""
    for match in _SENTENCE.finditer(_without_headings(text)):
        piece = carried + match.group().strip()
        if len(piece) < _MIN_SENTENCE_CHARS:
            carried = piece
            continue
        found.append(piece)
        carried = ""
    if carried and found:
        found[-1] += carried
    return found or [text.strip()]


def _without_headings(text: str) -> str:
    return "\n".join(line for line in text.split("\n") if not line.lstrip().startswith("#"))


def words(text: str) -> list[str]:
    """The tokens of the keyword channel: rjieba's search cut after NFKC and case folding.

    A code such as `e-1042` is a token as a whole, whatever the cut makes of it; punctuation and
    white space are none.
    """
    import rjieba  # part of the extra: an index can be opened and listed without it

    clean = unicodedata.normalize("NFKC", text).casefold()
    cut = [word for word in rjieba.cut_for_search(clean) if any(map(str.isalnum, word))]
    return cut + [code for code in _CODE.findall(clean) if code not in cut]


def text_hash(text: str) -> str:
    """SHA-256 of a chunk's normalised text, by which moved text is known again."""
    return hashlib.sha256(normalise(text).strip().encode()).hexdigest()


def _digest(rows: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(rows)).encode()).hexdigest()


def _canonical(document: Document) -> str:
    row = {
        "tenant": document.tenant,
        "document_id": document.document_id,
        "version": document.version,
        "title": document.title,
        "status": document.status,
        "departments": sorted(document.departments),
        "effective_from": document.effective_from and document.effective_from.isoformat(),
        "effective_to": document.effective_to and document.effective_to.isoformat(),
        "source": document.source,
        "body": document.body,
    }
    return json.dumps(row, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
