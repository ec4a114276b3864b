"""Build an index: into a file of its own, put in place of the old one when it is complete."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ragwb.knowledge.chunking import ChunkingSpec, DocumentChunk
from ragwb.knowledge.tokens import count_tokens
from ragwb.service.config import ServiceConfig
from ragwb.service.corpus import Corpus, embedding_text, read_corpus, sentences, text_hash, words
from ragwb.service.embedding import Embedder, Vectors
from ragwb.service.embedding_cache import cached_passages
from ragwb.service.index import FORMAT, INDEX_FILE, SCHEMA, connect_read_only, read_meta

Progress = Callable[[int, int], None]
Edit = Callable[[Corpus], Corpus]
_PARTIAL = ".partial-"
_HELD = "chunk_id, tenant, text_hash, body_hash, start, end"


def build_index(
    config: ServiceConfig,
    embedder: Embedder,
    progress: Progress = lambda _done, _total: None,
    *,
    edit: Edit = lambda corpus: corpus,
    with_sentences: bool = True,
) -> Path:
    """Bring the index folder up to date with the corpus; nothing is done when it is.

    A killed build leaves the old index as it was. Passages whose vectors the cache holds are not
    computed again. One build at a time works on a folder; a second one waits for the first.

    Args:
        config: where corpus, index and cache are, and how documents are cut.
        embedder: the model of the vectors.
        progress: told the number of distinct texts whose vectors are there, and their total.
        edit: what happens to the corpus between its folder and the index.
        with_sentences: whether the index gets vectors of sentences, which only reranking and the
            answerer that quotes read; an index that has them is not replaced by one without.

    Returns:
        The index folder.

    Raises:
        DocumentError: the corpus is wrong. SourceError: a remote embedder failed.
    """
    corpus = edit(read_corpus(config.corpus, config.chunking))
    config.index_dir.mkdir(parents=True, exist_ok=True)
    with _only_builder(config.index_dir):
        version = index_version(corpus, embedder, config.chunking)
        held = read_meta(config.index_dir)
        meta = index_meta(corpus, embedder, config.chunking, version, with_sentences=with_sentences)
        if not _is_served_by(held, meta):
            _write_index(config, corpus, embedder, meta, progress)
    return config.index_dir


def _is_served_by(held: dict[str, Any] | None, wanted: dict[str, Any]) -> bool:
    """Whether an index that is there has all that is wanted."""
    if held is None or held["index_version"] != wanted["index_version"]:
        return False
    return held.get("sentences", True) or not wanted["sentences"]


def index_version(corpus: Corpus, embedder: Embedder, chunking: ChunkingSpec) -> str:
    """16 hex digits over all that an index's content depends on."""
    parts = [FORMAT, corpus.digest, embedder.model, asdict(chunking), chunking.version]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


@contextmanager
def _only_builder(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, which dies with its process, and clear what killed builds left."""
    with (folder / "build.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for leftover in folder.glob(f"{INDEX_FILE}{_PARTIAL}*"):
            leftover.unlink(missing_ok=True)
        yield


def _write_index(
    config: ServiceConfig,
    corpus: Corpus,
    embedder: Embedder,
    meta: dict[str, Any],
    progress: Progress,
) -> None:
    target = config.index_dir / INDEX_FILE
    partial_file = config.index_dir / f"{INDEX_FILE}{_PARTIAL}{os.getpid()}"
    try:
        with closing(sqlite3.connect(partial_file)) as store, store:
            store.executescript(SCHEMA)
            said = [(key, json.dumps(value)) for key, value in meta.items()]
            store.executemany("INSERT INTO meta VALUES (?, ?)", said)
            documents = document_rows(corpus)
            marks = ", ".join("?" * 11)
            store.executemany(f"INSERT INTO documents VALUES ({marks})", documents)
            rows = chunk_rows(
                corpus, embedder, config.cache_dir, progress, with_sentences=meta["sentences"]
            )
            for row in rows:
                _write_chunk(store, row)
            _write_held(store, config.index_dir)
        _flush(partial_file)
        partial_file.replace(target)
    finally:
        partial_file.unlink(missing_ok=True)


def index_meta(
    corpus: Corpus,
    embedder: Embedder,
    chunking: ChunkingSpec,
    version: str,
    *,
    with_sentences: bool = True,
) -> dict[str, Any]:
    """What an index says of itself."""
    return {
        "format": FORMAT,
        "model": embedder.model,
        "dimensions": embedder.dimensions,
        "chunking": {**asdict(chunking), "version": chunking.version},
        "snapshot": corpus.snapshot,
        "index_version": version,
        "sentences": with_sentences,
    }


def document_rows(corpus: Corpus) -> list[tuple[Any, ...]]:
    """The rows of the table `documents`, its columns in their order."""
    return [
        (
            number,
            document.tenant,
            document.document_id,
            document.version,
            document.title,
            document.status,
            json.dumps(document.departments, ensure_ascii=False),
            document.effective_from and document.effective_from.isoformat(),
            document.effective_to and document.effective_to.isoformat(),
            document.source,
            text_hash(document.body),
        )
        for number, document in enumerate(corpus.documents)
    ]


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """A chunk as an index holds it.

    Attributes:
        row: its number; document_no: its document's.
        text: title and text, what the keyword channel and the token budget take of it.
        vector: of that; sentence_vectors: of its sentences, one a row.
    """

    row: int
    document_no: int
    chunk: DocumentChunk
    text: str
    vector: Vectors
    sentence_vectors: Vectors

    @property
    def columns(self) -> tuple[Any, ...]:
        """The columns of the table `chunks` that are no vectors, in their order."""
        chunk = self.chunk
        return (
            self.row,
            self.document_no,
            chunk.chunk_id,
            chunk.ordinal,
            chunk.title,
            chunk.text,
            chunk.start,
            chunk.end,
            count_tokens(self.text),
            text_hash(chunk.text),
        )


def chunk_rows(
    corpus: Corpus,
    embedder: Embedder,
    cache: Path,
    progress: Progress,
    *,
    with_sentences: bool = True,
) -> Iterator[ChunkRow]:
    """Every chunk of a corpus with its vectors, in the order of documents and ordinals."""
    numbered = [(number, chunk) for number, part in enumerate(corpus.chunks) for chunk in part]
    texts = [embedding_text(chunk.title, chunk.text) for _, chunk in numbered]
    # A sentence alone does not say what it is about ("5 working days."): it takes the title along.
    cut = [
        [embedding_text(chunk.title, sentence) for sentence in sentences(chunk.text)]
        if with_sentences
        else []
        for _, chunk in numbered
    ]
    flat = [sentence for group in cut for sentence in group]
    vectors = cached_passages(embedder, texts + flat, cache, progress)
    starts = len(texts) + np.cumsum([0, *map(len, cut)])
    for row, (number, chunk) in enumerate(numbered):
        of_sentences = vectors[starts[row] : starts[row + 1]]
        yield ChunkRow(row, number, chunk, texts[row], vectors[row], of_sentences)


def as_blob(vectors: Vectors) -> bytes:
    """Vectors as they are stored, little-endian float32 one after the other."""
    return vectors.astype("<f4").tobytes()


def _write_chunk(store: sqlite3.Connection, row: ChunkRow) -> None:
    marks = ", ".join("?" * 12)
    blobs = (as_blob(row.vector), as_blob(row.sentence_vectors))
    store.execute(f"INSERT INTO chunks VALUES ({marks})", (*row.columns, *blobs))
    # Row ids of FTS5 start at 1.
    line = " ".join(words(row.text))
    store.execute("INSERT INTO chunk_words (rowid, words) VALUES (?, ?)", (row.row + 1, line))


def _write_held(store: sqlite3.Connection, folder: Path) -> None:
    """Remember every id that this index or one beside it ever held, with its text's hash.

    An index beside it is the same knowledge cut or embedded in another way: that is where an id
    comes from that a golden set still names after a re-chunking.
    """
    store.execute(
        "INSERT OR IGNORE INTO held "
        "SELECT c.chunk_id, d.tenant, c.text_hash, d.body_hash, c.start, c.end "
        "FROM chunks c JOIN documents d USING (document_no)"
    )
    for path in sorted(folder.parent.glob(f"*/{INDEX_FILE}")):
        if read_meta(path.parent) is not None:
            with closing(connect_read_only(path)) as other:
                known = other.execute(f"SELECT {_HELD} FROM held").fetchall()
            store.executemany("INSERT OR IGNORE INTO held VALUES (?, ?, ?, ?, ?, ?)", known)


def _flush(path: Path) -> None:
    """Onto the disk before the name changes, so that a power cut leaves the old or the new file."""
    with path.open("rb") as written:
        os.fsync(written.fileno())
