"""SQL over all saved runs, through DuckDB: read-only, without files or network."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as pads
from pyarrow.fs import LocalFileSystem

from ragwb.errors import RunError, UsageError
from ragwb.measure.hits import FILES, GROUPS
from ragwb.runs.baselines import load_baselines
from ragwb.runs.listing import list_runs
from ragwb.runs.manifest import RunManifest
from ragwb.runs.scoring import score
from ragwb.runs.sql import BATCH_ROWS, connect, errors_in_words, memory_of, stoppable, too_large
from ragwb.runs.store import Run
from ragwb.runs.tables import CANDIDATES, CANDIDATES_SCHEMA, CASES_SCHEMA
from ragwb.settings import Settings, load_settings

if TYPE_CHECKING:
    import duckdb

VIEWS: Mapping[str, str] = {
    "runs": "a row a sealed run: the manifest's fields (objects as JSON text) and its names",
    "cases": "a row a run, case and repeat: the answer, timings, tokens, and the figures at top K",
    "candidates": "a row a run, case, repeat, stage and position: chunk id and score",
    "hits": "a row a run, case, repeat and evidence group: its first hit, null when never returned",
}
FIGURES = ("recall", "hit", "mrr", "ndcg", "map", "precision", "duplicate_rate")
_ALSO = ("forbidden", "failed")
_FACTS = ("tier", "set", "risk", "weight")


@dataclass(frozen=True, slots=True)
class QueryResult:
    """What a query over all runs gave.

    Attributes:
        table: its rows.
        left_out: run ids that no view holds, with the reason: unfinished or broken.
    """

    table: pa.Table
    left_out: Mapping[str, str]

    def rows(self) -> list[dict[str, Any]]:
        """The rows as dicts of JSON values; times and what JSON has no word for as text.

        A column name that comes twice gets a number, for a dict would keep only the last.
        """
        names = _distinct(self.table.column_names)
        columns = [column.to_pylist(maps_as_pydicts="lossy") for column in self.table.columns]
        return [
            {name: _json_value(value) for name, value in zip(names, row, strict=True)}
            for row in zip(*columns, strict=True)
        ]

    def frame(self) -> pd.DataFrame:
        """The rows as a frame."""
        frame: pd.DataFrame = self.table.to_pandas()
        return frame


@dataclass(frozen=True, slots=True)
class OpenQuery:
    """A query that runs, read a batch at a time.

    Attributes:
        schema: its columns.
        batches: its rows, up to `sql.BATCH_ROWS` at a time, as they are found; read once.
        left_out: as in `QueryResult`.
        memory: bytes that it may hold.
    """

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    left_out: Mapping[str, str]
    memory: int

    def row_batches(self) -> Iterator[list[dict[str, Any]]]:
        """The rows as dicts of JSON values, a batch at a time."""
        for batch in self.batches:
            yield QueryResult(pa.Table.from_batches([batch], self.schema), self.left_out).rows()


def query_runs(
    sql: str,
    settings: Settings | None = None,
    *,
    memory: int | None = None,
    timeout_s: float | None = None,
) -> QueryResult:
    """Run one SELECT over the saved runs; `VIEWS` says what there is.

    Content hashes are not compared, which would read every file of every run.

    Args:
        sql: one statement of DuckDB's SQL that reads; DESCRIBE and SUMMARIZE read too.
        settings: where the runs are; default the settings in force.
        memory: bytes that the query, and again its rows, may hold; default a share of what there
            is (see `sql.connect`).
        timeout_s: seconds that may pass until the next rows are found; None for no end.

    Raises:
        UsageError: no statement, several, one that does not read, DuckDB refuses it, or it needs
            more memory or time than it may have.
        RunError: a file of a sealed run is absent or cannot be read.
        KeyboardInterrupt: it was stopped; DuckDB has ended.
    """
    with open_query(sql, settings, memory=memory, timeout_s=timeout_s) as found:
        batches, held = [], 0
        for batch in found.batches:
            batches.append(batch)
            held += batch.nbytes
            if held > found.memory:
                raise too_large(found.memory)
        return QueryResult(pa.Table.from_batches(batches, found.schema), found.left_out)


@contextmanager
def open_query(
    sql: str,
    settings: Settings | None = None,
    *,
    memory: int | None = None,
    timeout_s: float | None = None,
) -> Iterator[OpenQuery]:
    """One SELECT over the saved runs of which the rows are read as they are found.

    Args, Raises: as of `query_runs`; reading the rows raises too.
    """
    settings = settings or load_settings()
    entries = list_runs(settings)
    runs = [
        Run(entry.path, entry.manifest)
        for entry in entries
        if entry.manifest is not None and entry.status == "sealed"
    ]
    left_out = {entry.run_id: entry.status for entry in entries if entry.status != "sealed"}
    with connect(memory) as connection:
        limit = memory_of(connection)
        with errors_in_words(limit):
            _check_reads_only(connection, sql)
            for name, view in _views(runs, settings).items():
                # A view costs reading or scoring, so only those that the text names are made.
                if name in sql.lower():
                    connection.register(name, view())
            run = partial(stoppable, stop=connection.interrupt, timeout_s=timeout_s)
            reader = run(partial(_reader, connection, sql))
        with reader:
            yield OpenQuery(reader.schema, _batches(run, reader, limit), left_out, limit)


def _reader(connection: duckdb.DuckDBPyConnection, sql: str) -> pa.RecordBatchReader:
    found = connection.sql(sql)
    if found is None:
        raise UsageError(f"SQL: no rows come of it; the views are {', '.join(VIEWS)}")
    return found.to_arrow_reader(BATCH_ROWS)


def _batches(
    run: Callable[[Callable[[], Any]], Any], reader: pa.RecordBatchReader, memory: int
) -> Iterator[pa.RecordBatch]:
    while True:
        with errors_in_words(memory):
            batch = run(partial(_next, reader))
        if batch is None:
            return
        yield batch


def _next(reader: pa.RecordBatchReader) -> pa.RecordBatch | None:
    try:
        return reader.read_next_batch()
    except StopIteration:
        return None


def _check_reads_only(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    import duckdb

    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        raise UsageError(f"SQL: {len(statements)} statements; give one SELECT")
    (statement,) = statements
    if statement.type not in (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN):
        raise UsageError(f"SQL: {statement.type.name} is refused; runs are only read, by a SELECT")


def _views(runs: Sequence[Run], settings: Settings) -> dict[str, Callable[[], object]]:
    return {
        "runs": partial(_runs, runs, settings),
        "cases": partial(_cases, runs),
        "candidates": partial(_files, runs, CANDIDATES, CANDIDATES_SCHEMA),
        "hits": partial(_files, runs, FILES["groups"], GROUPS),
    }


def _runs(runs: Sequence[Run], settings: Settings) -> pd.DataFrame:
    names: dict[str, list[str]] = {}
    for name, target in load_baselines(settings).items():
        names.setdefault(target, []).append(name)
    rows = [
        {name: _scalar(value) for name, value in run.manifest.to_dict().items()}
        | {"names": " ".join(names.get(run.run_id, []))}
        for run in runs
    ]
    # Without a type of its own a column of nulls would be a number in one store, a text in another.
    return pd.DataFrame(rows, columns=[*RunManifest.model_fields, "names"]).convert_dtypes()


def _cases(runs: Sequence[Run]) -> pa.Table:
    parts = [_run_cases(run) for run in runs]
    if not parts:
        columns = ["run_id", "dataset_version", "created_at", "k", *FIGURES, *_ALSO, *_FACTS]
        return pa.schema([(name, pa.string()) for name in columns]).empty_table()
    return pa.concat_tables(parts, promote_options="permissive")


def _run_cases(run: Run) -> pa.Table:
    k = run.manifest.top_k
    scores = score(run, k)
    figures = scores.results[["case_id", "repeat", *(f"{name}@{k}" for name in FIGURES + _ALSO)]]
    figures = figures.rename(columns=lambda name: str(name).removesuffix(f"@{k}"))
    told = scores.frame[["case_id", *_FACTS]].assign(
        scored=scores.frame["status"] == "scored",
        tags=pd.Series(_tags(scores.frame), scores.frame.index, dtype=object),
    )
    cases = run.cases().merge(figures, on=["case_id", "repeat"], how="left")
    cases = cases.merge(told, on="case_id", how="left").rename(columns={"hit": "hit_rate"})
    heads = {
        "run_id": run.run_id,
        "dataset_version": run.manifest.dataset_version,
        "created_at": run.manifest.created_at,
        "k": k,
    }
    cases = pd.concat([pd.DataFrame(heads, index=cases.index), cases], axis=1)
    return pa.Table.from_pandas(
        cases, schema=_cases_schema([str(name) for name in cases.columns]), preserve_index=False
    )


def _cases_schema(names: Sequence[str]) -> pa.Schema:
    known = {field.name: field.type for field in CASES_SCHEMA}
    known |= dict.fromkeys(
        ("run_id", "dataset_version", "created_at", "tier", "set", "risk"), pa.string()
    )
    known |= {"k": pa.int32(), "forbidden": pa.int32(), "failed": pa.bool_(), "scored": pa.bool_()}
    known |= {"tags": pa.map_(pa.string(), pa.string())}
    return pa.schema([(name, known.get(name, pa.float64())) for name in names])


def _tags(frame: pd.DataFrame) -> list[dict[str, str]]:
    columns = [str(name) for name in frame.columns if str(name).startswith("tags.")]
    return [
        {
            name.removeprefix("tags."): str(value)
            for name, value in zip(columns, row, strict=True)
            if not pd.isna(value)
        }
        for row in frame[columns].itertuples(index=False, name=None)
    ]


def _files(runs: Sequence[Run], name: str, schema: pa.Schema) -> pads.Dataset:
    """The files of that name of all runs, as one table with a run_id; read as far as is asked."""
    for run in runs:
        if not (run.path / name).is_file():
            raise RunError(f"{run.path / name}: not there; this run is not whole")
    disk = LocalFileSystem()
    form = pads.ParquetFileFormat()
    fragments = [
        form.make_fragment(
            str(run.path / name), disk, partition_expression=pads.field("run_id") == run.run_id
        )
        for run in runs
    ]
    whole = pa.schema([("run_id", pa.string()), *schema])
    return pads.FileSystemDataset(fragments, whole, form, disk)


def _scalar(value: Any) -> Any:
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    return value


def _json_value(value: Any) -> Any:
    """A value as JSON has it: sums of whole numbers come as Decimal, and stay whole."""
    if isinstance(value, dict):
        return {str(name): _json_value(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_json_value(inner) for inner in value]
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int) else str(value)


def _distinct(names: Sequence[str]) -> list[str]:
    seen: dict[str, int] = {}
    distinct = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        distinct.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return distinct
