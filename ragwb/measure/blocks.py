"""Candidates as a stream of blocks of whole results: memory holds a block, not the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from ragwb.errors import DataError
from ragwb.measure.ragged import Ints

BATCH_ROWS = 100_000
"""About 1,000 results of 100 positions: what a kernel call sorts stays in the processor's cache."""

COLUMNS = ("case_id", "repeat", "stage", "position", "chunk_id")

# DuckDB hashes while it scans, which no other way of joining 100 million ids by text came near.
# `hash` may change between its versions: the hashes live and die within one call.
_SCAN = """
    select hash(case_id) as case_hash, repeat, position, hash(chunk_id) as chunk_hash, chunk_id
    from candidates where stage = ?
"""

Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Block:
    """Rows of whole results, in the service's order.

    Attributes:
        case_hash: hash of the case id, repeat: from 1, position: from 1; one entry a row.
        chunk_hash: hash of the chunk id; chunk_ids: the id itself, to confirm a match.
        starts: row of the first position of each result.
    """

    case_hash: Hashes
    repeat: npt.NDArray[np.int32]
    position: npt.NDArray[np.int32]
    chunk_hash: Hashes
    chunk_ids: pa.StringArray
    starts: Ints

    def __len__(self) -> int:
        return len(self.position)


class Candidates:
    """A candidates table, in Parquet or in memory, opened for one pass and for hashing labels.

    Args:
        source: path of candidates.parquet, or a table with the same columns.

    Raises:
        DataError: the file is no Parquet, or a column is missing.
    """

    def __init__(self, source: Path | pa.Table) -> None:
        self.name = str(source) if isinstance(source, Path) else "candidates"
        _check_columns(self.name, source)
        self._source = source

    @contextmanager
    def connect(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection in which `candidates` is the table; all of its hashes agree.

        Raises:
            DataError: the file cannot be read to its end.
        """
        try:
            with duckdb.connect() as connection:
                self._open(connection)
                yield connection
        except (duckdb.Error, OSError) as error:
            words = " ".join(str(error).split())
            raise DataError(f"{self.name}: cannot be read: {words}") from error

    def _open(self, connection: duckdb.DuckDBPyConnection) -> None:
        if isinstance(self._source, Path):
            # A literal, because a prepared statement cannot make a view; quotes are doubled.
            path = str(self._source).replace("'", "''")
            connection.execute(f"create view candidates as select * from read_parquet('{path}')")
        else:
            connection.register("candidates", self._source)

    def case_of(self, case_hash: int) -> str:
        """The case id behind a hash, for a message."""
        query = "select case_id from candidates where hash(case_id) = ? limit 1"
        with self.connect() as connection:
            row = connection.execute(query, [case_hash]).fetchone()
        return str(row[0]) if row else "?"


def hash_texts(connection: duckdb.DuckDBPyConnection, texts: pa.StringArray) -> Hashes:
    """The connection's 64-bit hash of each text."""
    connection.register("texts", pa.table({"text": texts}))
    hashes: Hashes = connection.sql("select hash(text) as h from texts").fetchnumpy()["h"]
    connection.unregister("texts")
    return np.asarray(hashes)


def whole_results(
    connection: duckdb.DuckDBPyConnection, stage: str, *, batch_rows: int = BATCH_ROWS
) -> Iterator[Block]:
    """Blocks of whole results of a stage; one that straddles two batches is carried over."""
    reader = connection.sql(_SCAN, params=[stage]).to_arrow_reader(batch_rows)
    carried: pa.RecordBatch | None = None
    for batch in reader:
        rows = batch if carried is None else pa.concat_batches([carried, batch])
        block = _block(rows)
        cut = int(block.starts[-1]) if len(block) else 0
        carried = rows.slice(cut)
        if cut:
            yield _block(rows.slice(0, cut))
    if carried is not None and len(carried):
        yield _block(carried)


def _block(rows: pa.RecordBatch) -> Block:
    if any(column.null_count for column in rows.columns):
        raise DataError("candidates: a repeat, position or chunk_id is null: every row needs them")
    case_hash, repeat, position, chunk_hash = (rows.column(i).to_numpy() for i in range(4))
    changes = np.ones(len(rows), dtype=bool)
    changes[1:] = (case_hash[1:] != case_hash[:-1]) | (repeat[1:] != repeat[:-1])
    return Block(case_hash, repeat, position, chunk_hash, rows.column(4), np.flatnonzero(changes))


def _check_columns(name: str, source: Path | pa.Table) -> None:
    try:
        schema = pq.read_schema(source) if isinstance(source, Path) else source.schema
    except (OSError, pa.ArrowInvalid) as error:
        raise DataError(f"{name}: not a Parquet file: {error}") from error
    missing = [column for column in COLUMNS if column not in schema.names]
    if missing:
        found = ", ".join(schema.names)
        raise DataError(f"{name}: column {missing[0]!r} is missing; found: {found}")
