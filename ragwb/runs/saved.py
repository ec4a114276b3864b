"""The results of a saved run and its chunks, as they went into its tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ragwb.errors import RunError
from ragwb.runs.results import ChunkText, FilteredChunk, Result, StageList
from ragwb.runs.store import Run
from ragwb.runs.tables import CANDIDATES, CASES, CASES_SCHEMA, CHUNKS, FILTERED

Pair = tuple[str, int]


def saved_results(run: Run) -> Iterator[Result]:
    """The results of a run in the order of its tables, without what it knows of chunks.

    Raises:
        RunError: a table is absent or cannot be read.
    """
    stages = _stages(_rows(run, CANDIDATES))
    filtered = _filtered(_rows(run, FILTERED))
    for row in _rows(run, CASES):
        pair = (row["case_id"], row["repeat"])
        observed = tuple(row["observed"] or ())
        lists = {**dict.fromkeys(_empty(observed), StageList([])), **stages.get(pair, {})}
        fields: dict[str, Any] = {name: row.get(name) for name in CASES_SCHEMA.names}
        timings = row["timings_ms"]
        fields |= {
            "observed": observed,
            "timings_ms": None if timings is None else dict(timings),
            "stages": lists,
            "filtered": filtered.get(pair, ()),
        }
        yield Result(**fields)


def saved_chunks(run: Run) -> list[ChunkText]:
    """What a run knows of chunks, in the order of its table.

    Raises:
        RunError: the table is absent or cannot be read.
    """
    return [ChunkText(**row) for row in _rows(run, CHUNKS)]


def _empty(observed: Iterable[str]) -> list[str]:
    """The later stages that were observed; one without rows was observed and is empty."""
    return [name for name in ("fused", "reranked", "results", "context") if name in observed]


def _stages(rows: Iterable[Mapping[str, Any]]) -> dict[Pair, dict[str, StageList]]:
    columns: dict[Pair, dict[str, list[Mapping[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        columns[row["case_id"], row["repeat"]][row["stage"]].append(row)
    return {
        pair: {name: _stage(held) for name, held in by_stage.items()}
        for pair, by_stage in columns.items()
    }


def _stage(rows: list[Mapping[str, Any]]) -> StageList:
    ordered = sorted(rows, key=lambda row: row["position"])
    return StageList(
        [row["chunk_id"] for row in ordered],
        [row["score"] for row in ordered],
        [row["document_id"] for row in ordered],
        [row["document_version"] for row in ordered],
    )


def _filtered(rows: Iterable[Mapping[str, Any]]) -> dict[Pair, tuple[FilteredChunk, ...]]:
    found: dict[Pair, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        found[row["case_id"], row["repeat"]].append(row)
    return {
        pair: tuple(
            FilteredChunk(row["chunk_id"], row["channel"], row["reason"])
            for row in sorted(held, key=lambda row: row["position"])
        )
        for pair, held in found.items()
    }


def _rows(run: Run, name: str) -> list[dict[str, Any]]:
    path = run.path / name
    try:
        rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    except (OSError, pa.ArrowInvalid) as error:
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RunError(f"{path}: cannot be read: {said}") from error
    return rows
