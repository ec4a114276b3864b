"""What is searched: an index, and the one on disk, a SQLite file that is opened read only.

Keyword: FTS5 over pre-cut tokens, because its own tokenizers do not find Chinese words of two
characters. Vectors: exact cosine in numpy over all rows, so that a filter never costs recall.
"""

from __future__ import annotations

import datetime
import json
import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ragwb.errors import UsageError
from ragwb.knowledge.document import Document
from ragwb.records import Chunk
from ragwb.service.corpus import words
from ragwb.service.embedding import Vectors
from ragwb.service.ranking import Channel, Scored

INDEX_FILE = "index.sqlite"
# Raised with the schema, the words of the keyword channel or the cut into sentences.
FORMAT = "3"
# A question's tokens that are looked up; a longer one is cut, so that no request is unbounded.
MAX_QUERY_WORDS = 256
_SQL_VARIABLES = 500

SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE documents (
  document_no INTEGER PRIMARY KEY, tenant TEXT NOT NULL, document_id TEXT NOT NULL,
  version TEXT NOT NULL, title TEXT NOT NULL, status TEXT NOT NULL, departments TEXT NOT NULL,
  effective_from TEXT, effective_to TEXT, source TEXT, body_hash TEXT NOT NULL
);
CREATE TABLE chunks (
  row_no INTEGER PRIMARY KEY, document_no INTEGER NOT NULL, chunk_id TEXT NOT NULL UNIQUE,
  ordinal INTEGER NOT NULL, title TEXT NOT NULL, text TEXT NOT NULL, start INTEGER NOT NULL,
  end INTEGER NOT NULL, n_tokens INTEGER NOT NULL, text_hash TEXT NOT NULL,
  vector BLOB NOT NULL, sentence_vectors BLOB NOT NULL
);
CREATE TABLE held (
  chunk_id TEXT NOT NULL, tenant TEXT NOT NULL, text_hash TEXT NOT NULL,
  body_hash TEXT NOT NULL, start INTEGER NOT NULL, end INTEGER NOT NULL,
  PRIMARY KEY (chunk_id, tenant)
);
CREATE INDEX chunks_by_text ON chunks (text_hash);
CREATE VIRTUAL TABLE chunk_words USING fts5(
  words, content='', tokenize="unicode61 remove_diacritics 0 tokenchars '-_.'"
);
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Index(ABC):
    """An open index; rows are numbered from 0 in the order of documents and ordinals.

    What is small is in memory, by row; texts and vectors are where the index keeps them.

    Attributes:
        meta: what the index was built from: model, chunking, snapshot, index_version.
        documents: all documents, bodies left out.
        chunk_ids: chunk id by row.
        document_of: document number by row, int64.
        tokens_of: tokens of title and text by row, int64.
        text_of: a number by row, int64, the same for rows of the same normalised text.
        row_of: row by chunk id.
    """

    meta: dict[str, Any]
    documents: tuple[Document, ...]
    chunk_ids: tuple[str, ...]
    document_of: npt.NDArray[np.int64]
    tokens_of: npt.NDArray[np.int64]
    text_of: npt.NDArray[np.int64]
    row_of: dict[str, int]

    @abstractmethod
    def close(self) -> None:
        """Let go of file or connection."""

    @abstractmethod
    def vector_channel(self, vector: Vectors) -> Channel:
        """The rows by their cosine with the unit vector of a question, -1 to 1."""

    @abstractmethod
    def keyword_channel(self, question: str) -> Channel:
        """The rows by BM25 of a question's words; one that holds none of them has no score."""

    @abstractmethod
    def sentences_of(self, rows: Sequence[int]) -> list[Vectors]:
        """For each row the unit vectors of its sentences, in their order."""

    @abstractmethod
    def _select(self, query: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        """The rows of a query in the SQL that all indexes understand; `?` marks a value."""

    def document(self, row: int) -> Document:
        """The document that a row belongs to."""
        return self.documents[int(self.document_of[row])]

    def chunks(self, rows: Sequence[int]) -> list[Chunk]:
        """The chunks at these rows, text included, in the order asked."""
        found: dict[int, Chunk] = {}
        for at in range(0, len(rows), _SQL_VARIABLES):
            batch = [int(row) for row in rows[at : at + _SQL_VARIABLES]]
            marks = ",".join("?" * len(batch))
            query = (
                f'SELECT row_no, title, text, start, "end" FROM chunks WHERE row_no IN ({marks})'
            )
            for row, title, text, start, end in self._select(query, batch):
                found[row] = self._chunk(row, title, text, start, end)
        return [found[int(row)] for row in rows]

    def iter_chunks(self) -> Iterator[Chunk]:
        """Every chunk of the index, whoever may read it."""
        for at in range(0, len(self.chunk_ids), _SQL_VARIABLES):
            yield from self.chunks(range(at, min(at + _SQL_VARIABLES, len(self.chunk_ids))))

    def moved_rows(self, chunk_id: str) -> list[int]:
        """Rows under another id that hold the text which this id holds or once held.

        Of an id that is no longer there, and whose text no row holds as it was: the rows that hold
        a part of it, where the same body is cut in another way. Only rows of the same tenant count:
        the same words of another tenant are not moved text.
        """
        same = self._moved(chunk_id, "c.text_hash = h.text_hash")
        if same or chunk_id in self.row_of:
            return same
        return self._moved(
            chunk_id, 'd.body_hash = h.body_hash AND c.start < h."end" AND h.start < c."end"'
        )

    def _moved(self, chunk_id: str, condition: str) -> list[int]:
        query = (
            "SELECT c.row_no FROM held h JOIN documents d ON d.tenant = h.tenant "
            "JOIN chunks c ON c.document_no = d.document_no "
            f"WHERE h.chunk_id = ? AND c.chunk_id <> h.chunk_id AND {condition} ORDER BY c.row_no"
        )
        return [row for (row,) in self._select(query, (chunk_id,))]

    def _chunk(self, row: int, title: str, text: str, start: int, end: int) -> Chunk:
        document = self.document(row)
        return Chunk(
            chunk_id=self.chunk_ids[row],
            document_id=document.document_id,
            document_version=document.version,
            title=title,
            text=text,
            start=start,
            end=end,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FileIndex(Index):
    """An open index in a file.

    Attributes:
        path: the file.
        vectors: unit vectors, one a row.
        sentence_vectors: unit vectors of all sentences, the rows one after the other.
        sentence_starts: where a row's sentences start, int64, one more than rows.
    """

    path: Path
    vectors: Vectors
    sentence_vectors: Vectors
    sentence_starts: npt.NDArray[np.int64]
    _store: sqlite3.Connection
    _lock: threading.Lock

    def close(self) -> None:
        """Close the file; vectors stay usable."""
        self._store.close()

    def vector_channel(self, vector: Vectors) -> Channel:
        """The exact cosine of every row."""
        return Scored((self.vectors @ vector).astype(np.float64))

    def keyword_channel(self, question: str) -> Channel:
        """BM25 of every row."""
        return Scored(self.keyword_scores(question))

    def keyword_scores(self, question: str) -> npt.NDArray[np.float64]:
        """BM25 of every row for a question, higher is better, -inf where no word occurs."""
        scores = np.full(len(self.chunk_ids), -np.inf)
        wanted = query_words(question)
        if not wanted:
            return scores
        match = " OR ".join('"' + word.replace('"', '""') + '"' for word in wanted)
        query = "SELECT rowid, bm25(chunk_words) FROM chunk_words WHERE chunk_words MATCH ?"
        for row_id, score in self._select(query, (match,)):
            # Row ids of FTS5 start at 1, and its BM25 is negated so that less is better.
            scores[row_id - 1] = -score
        return scores

    def sentences_of(self, rows: Sequence[int]) -> list[Vectors]:
        """For each row the unit vectors of its sentences, in their order."""
        starts = self.sentence_starts
        return [self.sentence_vectors[starts[row] : starts[row + 1]] for row in rows]

    def _select(self, query: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._store.execute(query, values).fetchall()


def query_words(question: str) -> list[str]:
    """The words of a question that the keyword channel looks up, each once."""
    return list(dict.fromkeys(words(question)))[:MAX_QUERY_WORDS]


def open_index(folder: Path) -> FileIndex:
    """The index in a folder, as it is now; a later build does not change it.

    Raises:
        UsageError: there is none, or another version of ragwb wrote it.
    """
    path = folder / INDEX_FILE
    if not path.is_file():
        raise UsageError(f"{folder}: no index here; build one with `ragwb index`")
    store = connect_read_only(path)
    try:
        return _load(path, store)
    except (sqlite3.DatabaseError, ValueError, KeyError) as error:
        store.close()
        raise UsageError(f"{path}: not an index of this ragwb; build it again") from error


def read_meta(folder: Path) -> dict[str, Any] | None:
    """What the index in a folder was built from, or None where there is no usable one."""
    path = folder / INDEX_FILE
    if not path.is_file():
        return None
    store = connect_read_only(path)
    try:
        return _meta(store)
    except (sqlite3.DatabaseError, ValueError, KeyError):
        return None
    finally:
        store.close()


def connect_read_only(path: Path) -> sqlite3.Connection:
    """A connection that never writes; usable from any thread under a lock."""
    # Immutable: a build replaces the file and never changes it, so SQLite needs no lock beside it.
    uri = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
    return sqlite3.connect(uri, uri=True, check_same_thread=False)


def _meta(store: sqlite3.Connection) -> dict[str, Any]:
    meta = {key: json.loads(value) for key, value in store.execute("SELECT key, value FROM meta")}
    if meta["format"] != FORMAT:
        raise ValueError(meta["format"])
    return meta


def _load(path: Path, store: sqlite3.Connection) -> FileIndex:
    meta = _meta(store)
    rows = store.execute("SELECT vector, sentence_vectors FROM chunks ORDER BY row_no").fetchall()
    dimensions = int(meta["dimensions"])
    sentence_counts = [len(row[1]) // (4 * dimensions) for row in rows]
    return FileIndex(
        path=path,
        meta=meta,
        vectors=as_matrix(b"".join(row[0] for row in rows), dimensions),
        sentence_vectors=as_matrix(b"".join(row[1] for row in rows), dimensions),
        sentence_starts=np.cumsum([0, *sentence_counts], dtype=np.int64),
        _store=store,
        _lock=threading.Lock(),
        **read_rows(lambda query: store.execute(query).fetchall()),
    )


def read_rows(select: Callable[[str], list[tuple[Any, ...]]]) -> dict[str, Any]:
    """The fields of an index that are in memory, all but `meta`.

    Args:
        select: gives the rows of a query.
    """
    documents = select(
        "SELECT tenant, document_id, version, title, status, departments, effective_from, "
        "effective_to, source FROM documents ORDER BY document_no"
    )
    rows = select("SELECT chunk_id, document_no, n_tokens, text_hash FROM chunks ORDER BY row_no")
    chunk_ids = tuple(row[0] for row in rows)
    return {
        "documents": tuple(_document(row) for row in documents),
        "chunk_ids": chunk_ids,
        "document_of": np.array([row[1] for row in rows], dtype=np.int64),
        "tokens_of": np.array([row[2] for row in rows], dtype=np.int64),
        "text_of": np.unique([row[3] for row in rows], return_inverse=True)[1].astype(np.int64),
        "row_of": {chunk_id: row for row, chunk_id in enumerate(chunk_ids)},
    }


def as_matrix(blob: bytes, dimensions: int) -> Vectors:
    """Vectors as they are stored, little-endian float32 one after the other."""
    return np.frombuffer(blob, dtype="<f4").reshape(-1, dimensions)


def _document(row: tuple[Any, ...]) -> Document:
    tenant, document_id, version, title, status, departments, start, end, source = row
    return Document(
        tenant=tenant,
        document_id=document_id,
        version=version,
        title=title,
        status=status,
        departments=tuple(json.loads(departments)),
        effective_from=datetime.date.fromisoformat(start) if start else None,
        effective_to=datetime.date.fromisoformat(end) if end else None,
        source=source,
        body="",
    )
