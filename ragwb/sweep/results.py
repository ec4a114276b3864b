"""What a point of a sweep gave: figures a case at every K, facts of its index; how it is kept."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ragwb.errors import RunError
from ragwb.files import write_whole
from ragwb.runs.store import load_run
from ragwb.sweep.grid import Point

Floats = npt.NDArray[np.float64]

RECORD, CASES, BORDERS = "point.json", "cases.parquet", "borders.parquet"
BY_K = (
    "recall",
    "hit",
    "mrr",
    "ndcg",
    "duplicate_rate",
    "forbidden",
    "passage_recall",
    "passage_precision",
    "passage_iou",
)
"""Figures that are kept at every K from 1 to top K; beside them `tokens`, summed up to K."""


@dataclass(frozen=True, slots=True)
class IndexFacts:
    """What the index of a point is, and what it took.

    Attributes:
        n_chunks: chunks, all documents. n_bytes: size of the index file.
        chunk_tokens: mean tokens of title and text of a chunk; None without chunks.
        build_ms: how long it took to build, None when it was there and nobody knows.
        n_vectors: distinct vectors that it needed; n_computed: those that no cache held. A build
            time says what a build costs only where the two are equal.
    """

    n_documents: int
    n_chunks: int
    n_bytes: int
    chunk_tokens: float | None = None
    build_ms: float | None = None
    n_vectors: int | None = None
    n_computed: int | None = None


@dataclass(frozen=True, eq=False)
class PointResult:
    """What a point gave; an error instead of figures when it failed.

    Attributes:
        key: hash of all that the result depends on, its name in the cache.
        error: why it failed, else None.
        top_k: results asked for.
        run: folder of the sealed run, None for an error.
        cases: a row a case in the order of the golden set: case_id, question, status, reason, tier,
            set, risk, weight, tags.<name>; n_results; latency_ms, for `top_k` results, with the
            embedding of the question as it took when it was computed; n_passages, n_split: evidence
            labels, and those that no chunk holds whole; precision_omega, precision_omega_strict.
        by_k: figures of `BY_K` and `tokens`, each of shape (cases, top_k), NaN where undefined.
        borders: a row a chunk that touches a passage or its surroundings: case_id, document_id,
            document_version, chunk_id, start, end, text.
        index: None for an error.
        cached: whether the result came from the cache.
    """

    point: Point
    key: str
    error: str | None = None
    top_k: int = 0
    run: Path | None = None
    cases: pd.DataFrame = field(default_factory=pd.DataFrame)
    by_k: Mapping[str, Floats] = field(default_factory=dict)
    borders: pd.DataFrame = field(default_factory=pd.DataFrame)
    index: IndexFacts | None = None
    cached: bool = False


def save_result(result: PointResult, folder: Path) -> None:
    """Write a result into a folder of its own; the record goes last and says that it is whole.

    Raises:
        OSError: the disk does not take it.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    lists = {f"by_k.{name}": list(values) for name, values in result.by_k.items()}
    cases = pa.Table.from_pandas(result.cases, preserve_index=False)
    for name, values in lists.items():
        cases = cases.append_column(name, pa.array(values, pa.list_(pa.float64())))
    pq.write_table(cases, folder / CASES, compression="zstd")
    borders = pa.Table.from_pandas(result.borders, preserve_index=False)
    pq.write_table(borders, folder / BORDERS, compression="zstd")
    record: dict[str, Any] = {
        "key": result.key,
        "point": result.point.to_dict(),
        "top_k": result.top_k,
        "run_id": None if result.run is None else result.run.name,
        "index": None if result.index is None else asdict(result.index),
    }
    record["sha256"] = _sha256(record, folder)
    text = json.dumps(record, ensure_ascii=False, indent=2) + "\n"
    write_whole(folder / RECORD, text.encode())


def load_result(folder: Path, runs_dir: Path) -> PointResult | None:
    """The result that a folder holds; None when it, or its run, is not what was written there.

    The folder has the name of its key.
    """
    try:
        record: dict[str, Any] = json.loads((folder / RECORD).read_bytes())
        if record.pop("sha256") != _sha256(record, folder) or record["key"] != folder.name:
            return None
        table = pq.read_table(folder / CASES)
        borders = pq.read_table(folder / BORDERS).to_pandas()
        run = load_run(runs_dir / record["run_id"]).path
        found = PointResult(
            point=Point(**record["point"]),
            key=record["key"],
            top_k=record["top_k"],
            run=run,
            index=IndexFacts(**record["index"]),
            borders=borders,
            cached=True,
        )
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None  # a cache: what cannot be read is made again
    except (pa.ArrowException, RunError):
        return None
    names = [name for name in table.column_names if name.startswith("by_k.")]
    by_k = {name.removeprefix("by_k."): _matrix(table[name], found.top_k) for name in names}
    return replace(found, cases=table.drop_columns(names).to_pandas(), by_k=by_k)


def _sha256(record: Mapping[str, Any], folder: Path) -> str:
    """Hash of a record and of the tables beside it."""
    digest = hashlib.sha256(json.dumps(record, sort_keys=True).encode())
    for name in (CASES, BORDERS):
        digest.update((folder / name).read_bytes())
    return digest.hexdigest()


def _matrix(column: pa.ChunkedArray, width: int) -> Floats:
    values = column.combine_chunks().flatten().to_numpy(zero_copy_only=False)
    return np.asarray(values, dtype=np.float64).reshape(-1, width)
