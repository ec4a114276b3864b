"""The Parquet tables of a run, written from an iterator of results with bounded memory.

`write_tables` writes `cases.parquet`, `candidates.parquet` and `filtered.parquet`; the results come
in the order of `golden.jsonl`, then of repeats. `writer.write_run` makes a whole sealed run.

`candidates.parquet` is read one stage at a time, so each of its row groups holds one stage of a
block of whole cases, and a scan of one stage skips the other row groups by their statistics.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ragwb.records import CHANNEL_STAGES
from ragwb.runs.journal import Pair
from ragwb.runs.results import LATER_STAGES, ChunkText, Result, StageList

BLOCK_PAIRS = 10_000
# Python lists are turned into columns after so many results: a list of ids takes three times the
# room.
PART_PAIRS = 500

CASES = "cases.parquet"
CANDIDATES = "candidates.parquet"
FILTERED = "filtered.parquet"
CHUNKS = "chunks.parquet"

_TEXTS = pa.list_(pa.string())
CASES_SCHEMA = pa.schema(
    [
        ("case_id", pa.string()),
        ("repeat", pa.int32()),
        ("status", pa.string()),
        ("error", pa.string()),
        ("question", pa.string()),
        ("rewritten_query", pa.string()),
        ("trace_id", pa.string()),
        ("effective_at", pa.string()),
        ("mode", pa.string()),
        ("refusal_reason", pa.string()),
        ("answer", pa.string()),
        ("citations", _TEXTS),
        ("citation_claims", _TEXTS),
        ("actions", _TEXTS),
        ("n_results", pa.int32()),
        ("latency_ms", pa.float64()),
        ("waited_ms", pa.float64()),
        ("attempts", pa.int32()),
        ("timings_ms", pa.map_(pa.string(), pa.float64())),
        ("context_tokens", pa.int64()),
        ("prompt_tokens", pa.int64()),
        ("completion_tokens", pa.int64()),
        ("model_calls", pa.int32()),
        ("candidates", pa.int32()),
        ("observed", _TEXTS),
    ]
)
CANDIDATES_SCHEMA = pa.schema(
    [
        ("case_id", pa.string()),
        ("repeat", pa.int32()),
        ("stage", pa.dictionary(pa.int8(), pa.string())),
        ("position", pa.int32()),
        ("chunk_id", pa.string()),
        ("score", pa.float64()),
        ("document_id", pa.string()),
        ("document_version", pa.string()),
    ]
)
FILTERED_SCHEMA = pa.schema(
    [
        ("case_id", pa.string()),
        ("repeat", pa.int32()),
        ("channel", pa.string()),
        ("position", pa.int32()),
        ("chunk_id", pa.string()),
        ("reason", pa.string()),
    ]
)
CHUNKS_SCHEMA = pa.schema(
    [
        ("chunk_id", pa.string()),
        ("document_id", pa.string()),
        ("document_version", pa.string()),
        ("title", pa.string()),
        ("text", pa.string()),
        ("start", pa.int64()),
        ("end", pa.int64()),
    ]
)
SCHEMAS = {
    CASES: CASES_SCHEMA,
    CANDIDATES: CANDIDATES_SCHEMA,
    FILTERED: FILTERED_SCHEMA,
    CHUNKS: CHUNKS_SCHEMA,
}
# Columns that came later: a run written before has none of them, and reads as not observed.
ADDED = {CASES: frozenset({"citation_claims", "actions"})}
_REPEATED = ("case_id", "stage", "document_id", "document_version")


@dataclass(frozen=True, slots=True)
class Written:
    """What stands in the tables.

    Attributes:
        answered: (case id, repeat) of the results that are ok, in order.
        n_errors: number of results that are errors.
        effective_at: the earliest effective time of all results, None when none gave one.
    """

    answered: list[Pair]
    n_errors: int
    effective_at: str | None


def write_tables(
    folder: Path, results: Iterable[Result], *, block_pairs: int = BLOCK_PAIRS
) -> Written:
    """Write the tables of a run from its results, one block of whole cases at a time.

    Args:
        folder: an existing folder; files of these names are replaced.
        results: in the order of `golden.jsonl`, then of repeats; each pair of case and repeat once.
        block_pairs: results in a block, which bounds the memory: about 25 kB for each result of
            five stages of 100 chunks.
    """
    answered: list[Pair] = []
    n_errors = 0
    times: set[str] = set()
    with ExitStack() as stack:
        cases, candidates, filtered = _open_tables(stack, folder)
        for count, result in enumerate(results, 1):
            if result.status == "ok":
                answered.append((result.case_id, result.repeat))
            else:
                n_errors += 1
            if result.effective_at is not None:
                times = {min([result.effective_at, *times])}
            cases.add(_case_row(result))
            filtered.add_all(_filtered_rows(result))
            candidates.add(result)
            if count % block_pairs == 0:
                for table in (cases, candidates, filtered):
                    table.flush()
    return Written(answered, n_errors, min(times, default=None))


def write_chunks(folder: Path, chunks: Iterable[ChunkText]) -> None:
    """Write `chunks.parquet`: what the run knows of every chunk that it names."""
    with _Rows(folder / CHUNKS, CHUNKS_SCHEMA) as rows:
        for chunk in chunks:
            rows.add({name: getattr(chunk, name) for name in CHUNKS_SCHEMA.names})


def _open_tables(stack: ExitStack, folder: Path) -> tuple[_Rows, _Candidates, _Rows]:
    return (
        stack.enter_context(_Rows(folder / CASES, CASES_SCHEMA)),
        stack.enter_context(_Candidates(folder / CANDIDATES)),
        stack.enter_context(_Rows(folder / FILTERED, FILTERED_SCHEMA)),
    )


def _case_row(result: Result) -> dict[str, Any]:
    row = {name: getattr(result, name) for name in CASES_SCHEMA.names}
    if result.timings_ms is not None:
        row["timings_ms"] = list(result.timings_ms.items())
    return row


def _filtered_rows(result: Result) -> list[dict[str, Any]]:
    return [
        {
            "case_id": result.case_id,
            "repeat": result.repeat,
            "channel": chunk.channel,
            "position": position,
            "chunk_id": chunk.chunk_id,
            "reason": chunk.reason,
        }
        for position, chunk in enumerate(result.filtered, 1)
    ]


class _Rows:
    """A Parquet file that is written from rows, a row group a flush."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._schema = schema
        self._rows: list[dict[str, Any]] = []
        self._writer = pq.ParquetWriter(path, schema, compression="zstd")

    def __enter__(self) -> _Rows:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                self.flush()
        finally:
            self._writer.close()

    def add(self, row: dict[str, Any]) -> None:
        self._rows.append(row)
        if len(self._rows) >= BLOCK_PAIRS:
            self.flush()

    def add_all(self, rows: Iterable[dict[str, Any]]) -> None:
        for row in rows:
            self.add(row)

    def flush(self) -> None:
        if self._rows:
            self._writer.write_table(pa.Table.from_pylist(self._rows, self._schema))
            self._rows = []


@dataclass(slots=True)
class _Stage:
    """One stage of a block: lists of the current part, columns of the earlier parts."""

    pairs: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    lists: list[StageList] = field(default_factory=list)
    parts: list[list[pa.Array]] = field(default_factory=list)


class _Candidates:
    """The candidates file: a block is collected in columns, then written a row group a stage."""

    def __init__(self, path: Path) -> None:
        self._case_ids: list[str] = []
        self._repeats: list[int] = []
        # Pipeline order of the row groups: the known channels, other channels as they come, the
        # rest.
        self._stages = {name: _Stage() for name in CHANNEL_STAGES}
        self._writer = pq.ParquetWriter(
            path,
            CANDIDATES_SCHEMA,
            compression="zstd",
            use_dictionary=list(_REPEATED),
            write_statistics=["case_id", "repeat", "stage", "position"],
        )

    def __enter__(self) -> _Candidates:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                self.flush()
        finally:
            self._writer.close()

    def add(self, result: Result) -> None:
        pair = len(self._case_ids)
        self._case_ids.append(result.case_id)
        self._repeats.append(result.repeat)
        for name, stage_list in result.stages.items():
            stage = self._stages.setdefault(name, _Stage())
            stage.pairs.append(pair)
            stage.counts.append(len(stage_list.chunk_ids))
            stage.lists.append(stage_list)
        if len(self._case_ids) % PART_PAIRS == 0:
            self._end_part()

    def flush(self) -> None:
        self._end_part()
        names = [name for name in self._stages if name not in LATER_STAGES]
        for name in [*names, *LATER_STAGES]:
            stage = self._stages.get(name)
            if stage is not None and stage.parts:
                table = self._table(name, stage)
                self._writer.write_table(table, row_group_size=max(len(table), 1))
            self._stages[name] = _Stage()
        self._case_ids, self._repeats = [], []

    def _end_part(self) -> None:
        for stage in self._stages.values():
            if any(stage.counts[-len(stage.lists) :] if stage.lists else []):
                stage.parts.append(_columns(stage.lists))
            stage.lists = []

    def _table(self, name: str, stage: _Stage) -> pa.Table:
        counts = np.array(stage.counts, dtype=np.int64)
        pairs = np.repeat(np.array(stage.pairs, dtype=np.int64), counts)
        first = np.repeat(np.cumsum(counts) - counts, counts)
        chunk_ids, scores, document_ids, versions = (
            pa.chunked_array(column) for column in zip(*stage.parts, strict=True)
        )
        stage_codes = pa.array(np.zeros(len(pairs), dtype=np.int8))
        return pa.table(
            [
                pa.array(self._case_ids, pa.string()).take(pa.array(pairs)),
                pa.array(np.array(self._repeats, dtype=np.int32)[pairs]),
                pa.DictionaryArray.from_arrays(stage_codes, pa.array([name])),
                pa.array((np.arange(len(pairs)) - first + 1).astype(np.int32)),
                chunk_ids,
                scores,
                document_ids,
                versions,
            ],
            schema=CANDIDATES_SCHEMA,
        )


def _columns(lists: Sequence[StageList]) -> list[pa.Array]:
    return [
        _column(lists, "chunk_ids", pa.string()),
        _column(lists, "scores", pa.float64()),
        _column(lists, "document_ids", pa.string()),
        _column(lists, "document_versions", pa.string()),
    ]


def _column(lists: Sequence[StageList], name: str, kind: pa.DataType) -> pa.Array:
    values: list[Any] = []
    for stage_list in lists:
        column = getattr(stage_list, name)
        values.extend(column if column is not None else [None] * len(stage_list.chunk_ids))
    return pa.array(values, kind)
