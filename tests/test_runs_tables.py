from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ragwb.runs.results import FilteredChunk, Result, StageList
from ragwb.runs.tables import (
    CANDIDATES,
    CANDIDATES_SCHEMA,
    CASES,
    CASES_SCHEMA,
    FILTERED,
    FILTERED_SCHEMA,
    Written,
    write_tables,
)


def results(n_cases: int, repeats: int = 2) -> Iterator[Result]:
    for number in range(n_cases):
        for repeat in range(1, repeats + 1):
            ids = [f"chunk-{number}-{place}" for place in range(number % 4)]
            yield Result(
                case_id=f"c{number}",
                repeat=repeat,
                question="问",
                n_results=len(ids),
                effective_at=f"2026-11-{30 - number:02d}T00:00:00Z",
                timings_ms={"total": 1.0},
                observed=("results",),
                stages={
                    "results": StageList(ids, [float(p) for p in range(len(ids))]),
                    "sparse": StageList(ids[:1], None, ["d"] * len(ids[:1])),
                    "vector": StageList(ids),
                },
                filtered=[FilteredChunk("x", "vector", "ACL"), FilteredChunk("y", None, "TENANT")],
            )


def test_each_row_group_is_one_stage_of_a_block_of_whole_cases(tmp_path: Path) -> None:
    written = write_tables(tmp_path, results(10), block_pairs=8)
    assert written == Written(
        [(f"c{n}", repeat) for n in range(10) for repeat in (1, 2)], 0, "2026-11-21T00:00:00Z"
    )
    metadata = pq.ParquetFile(tmp_path / CANDIDATES).metadata
    stages = []
    for number in range(metadata.num_row_groups):
        statistics = metadata.row_group(number).column(2).statistics
        assert statistics.min == statistics.max
        stages.append(statistics.min)
    # Channels first, as they come, then the later stages; three blocks of 8, 8 and 4 results.
    assert stages == ["vector", "sparse", "results"] * 3


def test_rows_stand_in_the_order_given_with_positions_from_one(tmp_path: Path) -> None:
    write_tables(tmp_path, results(10), block_pairs=8)
    table = pq.read_table(tmp_path / CANDIDATES, filters=[("stage", "==", "results")])
    rows = list(
        zip(
            *(
                table[name].to_pylist()
                for name in ("case_id", "repeat", "position", "chunk_id", "score")
            ),
            strict=True,
        )
    )
    assert rows == [
        (f"c{n}", repeat, place + 1, f"chunk-{n}-{place}", float(place))
        for n in range(10)
        for repeat in (1, 2)
        for place in range(n % 4)
    ]


@pytest.mark.parametrize(
    ("name", "schema"),
    [(CASES, CASES_SCHEMA), (CANDIDATES, CANDIDATES_SCHEMA), (FILTERED, FILTERED_SCHEMA)],
)
def test_the_columns_are_those_agreed_even_without_results(
    tmp_path: Path, name: str, schema: pa.Schema
) -> None:
    assert write_tables(tmp_path, []) == Written([], 0, None)
    assert pq.read_schema(tmp_path / name).equals(schema)
    write_tables(tmp_path, results(3))
    assert pq.read_schema(tmp_path / name).equals(schema)


def test_unknown_is_null_and_errors_have_no_rows_elsewhere(tmp_path: Path) -> None:
    error = Result("c", 1, "q", status="error", error="boom", attempts=4)
    assert write_tables(tmp_path, [error]) == Written([], 1, None)
    (row,) = pq.read_table(tmp_path / CASES).to_pylist()
    known = {name: value for name, value in row.items() if value is not None}
    assert known == {
        "case_id": "c",
        "repeat": 1,
        "status": "error",
        "error": "boom",
        "question": "q",
        "attempts": 4,
        "observed": [],
    }
    assert pq.read_table(tmp_path / CANDIDATES).num_rows == 0


def test_filtered_positions_count_the_services_list(tmp_path: Path) -> None:
    write_tables(tmp_path, results(1, repeats=1))
    assert [
        (row["channel"], row["position"], row["chunk_id"], row["reason"])
        for row in pq.read_table(tmp_path / FILTERED).to_pylist()
    ] == [("vector", 1, "x", "ACL"), (None, 2, "y", "TENANT")]


def test_duckdb_reads_the_tables(tmp_path: Path) -> None:
    write_tables(tmp_path, results(10), block_pairs=8)
    query = f"select count(*) from '{tmp_path / CANDIDATES}' where stage = 'sparse'"
    with duckdb.connect() as connection:
        assert connection.sql(query).fetchall() == [(14,)]  # 7 cases with a result, twice each
