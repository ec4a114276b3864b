"""The index in Postgres with pgvector: the same rows, searched by SQL with the filters in it.

What a caller may see is decided where it is for a file; here it stands in the WHERE clause, so
that the database filters before it limits. Vectors are compared exactly, or over an HNSW graph.
There a filter needs `hnsw.iterative_scan`: without it pgvector takes the nearest `ef_search` rows
first and filters them afterwards, and a caller who may see little gets almost nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ragwb.errors import UsageError
from ragwb.service.config import ServiceConfig
from ragwb.service.database import Connection, Database, place
from ragwb.service.embedding import Vectors
from ragwb.service.index import Index, as_matrix, query_words, read_rows
from ragwb.service.postgres_words import phrase
from ragwb.service.ranking import Channel, Mask, Ranking, Scores

# Raised with the tables below a schema; part of its name.
LAYOUT = "1"
SHARED_SCHEMA = "ragwb"
# Filters and order in one pass over the graph came with 0.8.
ITERATIVE_SINCE = (0, 8)
MAX_HNSW_DIMENSIONS = 2000
# FTS5's constants, so that both indexes give a row the same score.
K1, B = 1.2, 0.75

_EXACT = "SELECT row_no, -(vector <#> ?::vector) FROM vectors{where} ORDER BY 2 DESC, 1 LIMIT ?"
_NEAREST = (
    "SELECT row_no, -(vector <#> ?::vector) FROM vectors{where} "
    "ORDER BY vector <#> ?::vector LIMIT ?"
)
# Summed in the order of the question: the same floats for the same words, every time.
_KEYWORD = f"""
SELECT p.row_no,
       sum(w.idf * ((p.n * {K1 + 1}::float8)
           / (p.n + {K1}::float8 * ({1 - B}::float8 + {B}::float8 * p.n_words / ?)))
           ORDER BY q.place)
FROM unnest(?::text[]) WITH ORDINALITY AS q(word, place)
JOIN words w ON w.word = q.word
JOIN postings p ON p.word = q.word
{{where}}
GROUP BY p.row_no ORDER BY 2 DESC, 1 LIMIT ?
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresIndex(Index):
    """An open index in a database.

    Attributes:
        scan: `exact`, `hnsw` or `hnsw-plain`, see `ServiceConfig`.
        mean_words: words of a row, the mean.
    """

    scan: str
    mean_words: float
    _database: Database

    def close(self) -> None:
        """Close the connection."""
        self._database.close()

    def vector_channel(self, vector: Vectors) -> Channel:
        """The rows by their cosine, compared as `scan` says."""
        return _VectorChannel(self, as_sql(vector))

    def keyword_channel(self, question: str) -> Channel:
        """The rows by BM25, with the figures that FTS5 gives."""
        words = [word for word in map(phrase, query_words(question)) if word]
        return _KeywordChannel(self, words)

    def sentences_of(self, rows: Sequence[int]) -> list[Vectors]:
        """For each row the unit vectors of its sentences, in their order."""
        query = "SELECT row_no, sentence_vectors FROM chunks WHERE row_no = ANY(?::int[])"
        found = dict(self._select(query, [list(map(int, rows))])) if len(rows) else {}
        return [as_matrix(found[int(row)], self.meta["dimensions"]) for row in rows]

    def uses_graph(self, vector: Vectors, allowed: Mask | None, limit: int) -> bool:
        """Whether the database would walk the graph here; for a small rest it reads exactly."""
        if self.scan == "exact":
            return False
        query, values = _VectorChannel(self, as_sql(vector)).query(allowed, limit)
        plan = self._select(f"EXPLAIN {query}", values)
        return any("vectors_by_vector" in line for (line,) in plan)

    def _select(self, query: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        return self._database.select(query, values)

    def _ranking(self, query: str, values: Sequence[object]) -> Ranking:
        found = self._select(query, values)
        rows = np.array([row for row, _ in found], dtype=np.int64)
        scores = np.array([score for _, score in found], dtype=np.float64)
        # A graph knows no order among equals.
        order = np.lexsort((rows, -scores))
        return Ranking(rows[order], scores[order])

    def _all_scores(self, ranking: Ranking) -> Scores:
        scores = np.full(len(self.chunk_ids), -np.inf)
        scores[ranking.rows] = ranking.scores
        return scores

    def _where(self, allowed: Mask | None) -> tuple[str, list[object]]:
        """The filter in SQL: by document where whole documents are let in, as is usual."""
        if allowed is None or allowed.all():
            return "", []
        numbers = np.unique(self.document_of[allowed])
        if np.isin(self.document_of, numbers).sum() == allowed.sum():
            return " WHERE document_no = ANY(?::int[])", [numbers.tolist()]
        return " WHERE row_no = ANY(?::int[])", [np.flatnonzero(allowed).tolist()]


@dataclass(frozen=True, slots=True)
class _VectorChannel:
    index: PostgresIndex
    vector: str

    def scores(self) -> Scores:
        index = self.index
        values = [self.vector, len(index.chunk_ids)]
        return index._all_scores(index._ranking(_EXACT.format(where=""), values))

    def best(self, allowed: Mask | None, limit: int) -> Ranking:
        return self.index._ranking(*self.query(allowed, limit))

    def query(self, allowed: Mask | None, limit: int) -> tuple[str, list[object]]:
        where, values = self.index._where(allowed)
        if self.index.scan == "exact":
            return _EXACT.format(where=where), [self.vector, *values, limit]
        return _NEAREST.format(where=where), [self.vector, *values, self.vector, limit]


@dataclass(frozen=True, slots=True)
class _KeywordChannel:
    index: PostgresIndex
    words: list[str]

    def scores(self) -> Scores:
        return self.index._all_scores(self.best(None, len(self.index.chunk_ids)))

    def best(self, allowed: Mask | None, limit: int) -> Ranking:
        where, values = self.index._where(allowed)
        asked = [self.index.mean_words, self.words, *values, limit]
        return self.index._ranking(_KEYWORD.format(where=where), asked)


def schema_of(version: str) -> str:
    """The schema that holds the index of a version."""
    return f"ragwb{LAYOUT}_{version}"


def lock_of(version: str) -> int:
    """The advisory lock that says that an index is open."""
    return int(version[:15], 16)


def open_postgres(config: ServiceConfig, version: str) -> PostgresIndex:
    """The index of a version, which stays as it is while it is open.

    Raises:
        UsageError: the database does not answer, or does not hold it any more.
    """
    assert config.database_url is not None
    database = Database(config.database_url, lambda session: _prepare(session, config, version))
    try:
        meta = {key: json.loads(text) for key, text in database.select("SELECT * FROM meta")}
        return PostgresIndex(
            meta={**meta, "index_version": _told_version(config, version)},
            scan=config.scan,
            mean_words=meta["mean_words"],
            _database=database,
            **read_rows(database.select),
        )
    except BaseException:
        database.close()
        raise


def _told_version(config: ServiceConfig, version: str) -> str:
    """The manifest's version: another scan finds other rows, and is another index."""
    return version if config.scan == "exact" else f"{version}-{config.scan}-{config.ef_search}"


def _prepare(session: Connection, config: ServiceConfig, version: str) -> None:
    """Make a session read this index and nothing else, and say that it is in use."""
    session.execute("SELECT pg_advisory_lock_shared(%s)", [lock_of(version)])
    schema = schema_of(version)
    if not holds_schema(session, schema):
        raise UsageError(
            f"{place(str(config.database_url))}: the index {schema} is gone; start the service "
            "again to build it"
        )
    use_schemas(session, schema, SHARED_SCHEMA, extension_schema(session))
    # The settings of the graph are known once a function of pgvector has been called.
    session.execute("SELECT '[1]'::vector")
    if config.scan != "exact":
        session.execute("SELECT set_config('hnsw.ef_search', %s, false)", [str(config.ef_search)])
    if config.scan == "hnsw":
        session.execute("SET hnsw.iterative_scan = strict_order")
    if config.scan == "hnsw-plain":
        # Over the graph also where the planner would read the few rows that the filters leave.
        session.execute("SET hnsw.iterative_scan = off")
        session.execute("SET enable_sort = off")
    session.execute("SET default_transaction_read_only = on")


def holds_schema(session: Connection, schema: str) -> bool:
    """Whether a database has a schema."""
    query = "SELECT 1 FROM pg_namespace WHERE nspname = %s"
    return session.execute(query, [schema]).fetchone() is not None


def use_schemas(session: Connection, *schemas: str) -> None:
    """Let names without a schema be looked up in these, then in `public`."""
    quoted = ", ".join('"' + schema.replace('"', '""') + '"' for schema in (*schemas, "public"))
    session.execute("SELECT set_config('search_path', %s, false)", [quoted])


def extension_schema(session: Connection) -> str:
    """Where the functions of pgvector are.

    Raises:
        UsageError: the database does not have it.
    """
    query = (
        "SELECT nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace "
        "WHERE extname = 'vector'"
    )
    found = session.execute(query).fetchone()
    if found is None:
        raise UsageError("the database has no pgvector: CREATE EXTENSION vector, as its owner")
    return str(found[0])


def as_sql(vector: Vectors) -> str:
    """A vector as SQL reads it, to the last bit."""
    return "[" + ",".join(map(repr, vector.tolist())) + "]"
