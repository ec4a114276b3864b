"""Build an index in Postgres: in a schema of its own, there as a whole or not at all."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

from ragwb.errors import UsageError
from ragwb.service.build import (
    ChunkRow,
    Edit,
    Progress,
    as_blob,
    chunk_rows,
    document_rows,
    index_meta,
    index_version,
)
from ragwb.service.config import ServiceConfig
from ragwb.service.corpus import Corpus, read_corpus, words
from ragwb.service.database import Connection, connect, place
from ragwb.service.embedding import Embedder
from ragwb.service.postgres import (
    ITERATIVE_SINCE,
    LAYOUT,
    MAX_HNSW_DIMENSIONS,
    as_sql,
    extension_schema,
    holds_schema,
    lock_of,
    schema_of,
    use_schemas,
)
from ragwb.service.postgres_words import count_words, idf

# Two builds would each drop what the other is about to open.
_BUILD_LOCK = 0x7261677762
# A tuple has to fit a page, where a vector is read without a detour.
_PLAIN_DIMENSIONS = 1900

_SHARED = """
CREATE SCHEMA IF NOT EXISTS ragwb;
CREATE TABLE IF NOT EXISTS ragwb.held (
  chunk_id TEXT NOT NULL, tenant TEXT NOT NULL, text_hash TEXT NOT NULL,
  body_hash TEXT NOT NULL, start INTEGER NOT NULL, "end" INTEGER NOT NULL,
  PRIMARY KEY (chunk_id, tenant)
);
"""
_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE documents (
  document_no INTEGER PRIMARY KEY, tenant TEXT NOT NULL, document_id TEXT NOT NULL,
  version TEXT NOT NULL, title TEXT NOT NULL, status TEXT NOT NULL, departments TEXT NOT NULL,
  effective_from TEXT, effective_to TEXT, source TEXT, body_hash TEXT NOT NULL
);
CREATE TABLE chunks (
  row_no INTEGER PRIMARY KEY, document_no INTEGER NOT NULL, chunk_id TEXT NOT NULL UNIQUE,
  ordinal INTEGER NOT NULL, title TEXT NOT NULL, text TEXT NOT NULL, start INTEGER NOT NULL,
  "end" INTEGER NOT NULL, n_tokens INTEGER NOT NULL, text_hash TEXT NOT NULL,
  sentence_vectors BYTEA NOT NULL
);
ALTER TABLE chunks ALTER COLUMN sentence_vectors SET STORAGE EXTERNAL;
CREATE TABLE vectors (
  row_no INTEGER NOT NULL, document_no INTEGER NOT NULL, vector vector({dimensions}) NOT NULL
);
CREATE TABLE words (word TEXT COLLATE "C" NOT NULL, idf FLOAT8 NOT NULL);
CREATE TABLE postings (
  word TEXT COLLATE "C" NOT NULL, row_no INTEGER NOT NULL, document_no INTEGER NOT NULL,
  n INTEGER NOT NULL, n_words INTEGER NOT NULL
);
"""
_INDEXES = """
CREATE INDEX ON chunks (text_hash);
CREATE INDEX ON chunks (document_no);
ALTER TABLE vectors ADD PRIMARY KEY (row_no);
CREATE INDEX ON vectors (document_no);
ALTER TABLE words ADD PRIMARY KEY (word);
ALTER TABLE postings ADD PRIMARY KEY (word, row_no) INCLUDE (document_no, n, n_words);
INSERT INTO ragwb.held
  SELECT c.chunk_id, d.tenant, c.text_hash, d.body_hash, c.start, c."end"
  FROM chunks c JOIN documents d USING (document_no) ON CONFLICT DO NOTHING;
"""
_GRAPH = "CREATE INDEX IF NOT EXISTS vectors_by_vector ON vectors USING hnsw (vector vector_ip_ops)"


def build_postgres(
    config: ServiceConfig,
    embedder: Embedder,
    progress: Progress = lambda _done, _total: None,
    *,
    edit: Edit = lambda corpus: corpus,
) -> str:
    """Bring a database up to date with the corpus; nothing is done when it is.

    An index is a schema named after its version, so that a service that has the earlier one open
    keeps it; the earlier one goes when nobody has it open any more. A killed build leaves nothing.

    Args:
        config: as for a file, with the URL of the database.
        embedder: the model of the vectors.
        progress: as for a file.
        edit: what happens to the corpus between its folder and the index.

    Returns:
        The version of the index.

    Raises:
        UsageError: the database does not answer, lacks pgvector, or does not let this user write.
        DocumentError, SourceError: as for a file.
    """
    assert config.database_url is not None
    # Before anything is embedded: what is wrong with the database is found in a moment.
    with closing(connect(config.database_url)) as session:
        _check_extension(session, config, embedder)
    corpus = edit(read_corpus(config.corpus, config.chunking))
    version = index_version(corpus, embedder, config.chunking)
    with closing(connect(config.database_url)) as session:
        has_rows = holds_schema(session, schema_of(version))

    def make_rows() -> list[ChunkRow]:
        return list(chunk_rows(corpus, embedder, config.cache_dir, progress))

    # Made before the lock, for embedding takes too long to hold one meanwhile.
    rows = None if has_rows else make_rows()
    meta = {**index_meta(corpus, embedder, config.chunking, version), "name": _name(config)}
    _write(config, meta, corpus, lambda: make_rows() if rows is None else rows)
    return version


def _write(
    config: ServiceConfig,
    meta: dict[str, Any],
    corpus: Corpus,
    make_rows: Callable[[], list[ChunkRow]],
) -> None:
    import psycopg

    schema, url = schema_of(meta["index_version"]), str(config.database_url)
    with closing(connect(url)) as session:
        try:
            with session.transaction():
                session.execute("SELECT pg_advisory_xact_lock(%s)", [_BUILD_LOCK])
                use_schemas(session, schema, extension_schema(session))
                is_new = not holds_schema(session, schema)
                if is_new:
                    _fill(session, schema, meta, corpus, make_rows())
                if config.scan != "exact":
                    session.execute(_GRAPH)
                _drop_replaced(session, meta)
            if is_new:
                session.execute("VACUUM (ANALYZE) vectors, postings, words, chunks")
        except psycopg.Error as error:
            why = " ".join(str(error).split())
            raise UsageError(f"{place(url)}: the index cannot be written: {why}") from None


def _fill(
    session: Connection,
    schema: str,
    meta: dict[str, Any],
    corpus: Corpus,
    rows: Sequence[ChunkRow],
) -> None:
    """Make the schema of an index with all that it holds."""
    session.execute(_SHARED)
    session.execute(f'CREATE SCHEMA "{schema}"')
    session.execute(_TABLES.format(dimensions=meta["dimensions"]))
    if meta["dimensions"] <= _PLAIN_DIMENSIONS:
        session.execute("ALTER TABLE vectors ALTER COLUMN vector SET STORAGE PLAIN")
    mean_words = _fill_words(session, rows)
    told = {**meta, "mean_words": mean_words}
    _copy(session, "meta", [(key, json.dumps(value)) for key, value in told.items()])
    _copy(session, "documents", document_rows(corpus))
    _copy(session, "chunks", [(*row.columns, as_blob(row.sentence_vectors)) for row in rows])
    _copy(session, "vectors", [(row.row, row.document_no, as_sql(row.vector)) for row in rows])
    session.execute(_INDEXES)


def _fill_words(session: Connection, rows: Sequence[ChunkRow]) -> float:
    """Write the postings of every row; returns the mean number of words of a row."""
    counted = [count_words(words(row.text)) for row in rows]
    rows_with: Counter[str] = Counter()
    for counts, _ in counted:
        rows_with.update(counts.keys())
    _copy(session, "words", list(idf(rows_with, len(rows)).items()))
    postings = [
        (word, row.row, row.document_no, n, n_words)
        for row, (counts, n_words) in zip(rows, counted, strict=True)
        for word, n in counts.items()
    ]
    _copy(session, "postings", postings)
    return sum(n_words for _, n_words in counted) / max(len(rows), 1)


def _copy(session: Connection, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
    with session.cursor() as cursor, cursor.copy(f"COPY {table} FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)


def _drop_replaced(session: Connection, meta: dict[str, Any]) -> None:
    """Drop the earlier versions of an index that no service has open."""
    query = (
        "SELECT nspname FROM pg_namespace WHERE nspname ~ %s AND nspname <> %s "
        "AND has_schema_privilege(nspname, 'CREATE')"
    )
    own = schema_of(meta["index_version"])
    found = session.execute(query, [rf"^ragwb{LAYOUT}_[0-9a-f]{{16}}$", own])
    for (schema,) in found.fetchall():
        named = session.execute(f'SELECT value FROM "{schema}".meta WHERE key = %s', ["name"])
        lock = lock_of(schema.partition("_")[2])
        if named.fetchone() == (json.dumps(meta["name"]),) and _is_free(session, lock):
            session.execute(f'DROP SCHEMA "{schema}" CASCADE')


def _is_free(session: Connection, lock: int) -> bool:
    return bool(session.execute("SELECT pg_try_advisory_xact_lock(%s)", [lock]).fetchone()[0])


def _name(config: ServiceConfig) -> str:
    """What an index is a version of: the folder where it would be, which names what it is of."""
    return hashlib.sha256(str(config.index_dir.resolve()).encode()).hexdigest()[:16]


def _check_extension(session: Connection, config: ServiceConfig, embedder: Embedder) -> None:
    """See that pgvector is there, and of a version and with dimensions that the scan needs."""
    import psycopg

    try:
        session.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except psycopg.Error:  # not there to be had, or not by this user
        extension_schema(session)
    if config.scan == "exact":
        return
    if embedder.dimensions > MAX_HNSW_DIMENSIONS:
        raise UsageError(
            f"scan {config.scan} takes vectors of up to {MAX_HNSW_DIMENSIONS} numbers, "
            f"{embedder.model} gives {embedder.dimensions}: use scan exact"
        )
    query = "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
    version = str(session.execute(query).fetchone()[0])
    if tuple(map(int, version.split(".")[:2])) < ITERATIVE_SINCE:
        needed = ".".join(map(str, ITERATIVE_SINCE))
        raise UsageError(
            f"scan {config.scan} needs pgvector {needed} and the database has {version}: "
            "use scan exact"
        )
