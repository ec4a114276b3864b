from __future__ import annotations

import csv
import json
from pathlib import Path

import pandas as pd
import pytest
import run_data
from run_data import case, service

from ragwb.errors import RunError, UsageError
from ragwb.runs.export import TABLES, export_run
from ragwb.runs.store import Run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return run_data.run(tmp_path, service(), [case(0, question="=1+1"), case(1)])


@pytest.mark.parametrize("file_format", ["csv", "parquet", "jsonl"])
def test_each_table_is_a_file(tmp_path: Path, run: Run, file_format: str) -> None:
    folder = tmp_path / "deep" / "out"
    files = export_run(run, folder, file_format)
    assert [path.name for path in files] == [f"{name}.{file_format}" for name in TABLES]
    assert sorted(folder.iterdir()) == sorted(files)


def test_the_formats_say_the_same(tmp_path: Path, run: Run) -> None:
    export_run(run, tmp_path / "out", "parquet", ("candidates",))
    export_run(run, tmp_path / "out", "jsonl", ("candidates",))
    frame = pd.read_parquet(tmp_path / "out" / "candidates.parquet")
    lines = (tmp_path / "out" / "candidates.jsonl").read_text().splitlines()
    assert [json.loads(line)["chunk_id"] for line in lines] == frame["chunk_id"].tolist()
    assert frame["chunk_id"].tolist() == run.candidates()["chunk_id"].tolist()
    (path,) = export_run(run, tmp_path / "out", "jsonl", ("cases",))
    first = json.loads(path.read_text().splitlines()[0])
    assert (first["timings_ms"], first["error"]) == ({"total": 1.5}, None)


def test_csv_cells_are_no_formulas_and_lists_are_json(tmp_path: Path, run: Run) -> None:
    (path,) = export_run(run, tmp_path / "out", "csv", ("cases",))
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows[0]["question"] == "'=1+1"
    assert "results" in json.loads(rows[0]["observed"])
    assert json.loads(rows[0]["timings_ms"]) == {"total": 1.5}
    assert (rows[0]["citations"], rows[0]["error"], rows[0]["prompt_tokens"]) == ("", "", "")


def test_unknown_names_are_refused_before_anything_is_written(tmp_path: Path, run: Run) -> None:
    with pytest.raises(UsageError, match="give one of csv, parquet, jsonl"):
        export_run(run, tmp_path / "out", "xlsx")
    with pytest.raises(UsageError, match="give one of cases, candidates"):
        export_run(run, tmp_path / "out", "csv", ("cases", "answers"))
    assert not (tmp_path / "out").exists()


def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path, run: Run) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="file"):
        export_run(run, tmp_path / "file" / "out", "csv")


def test_small_tables_can_be_exported_with_their_lists(tmp_path: Path) -> None:
    quote = {"document_id": "doc", "document_version": "1", "quote": "第 1 段"}
    asked = case(1, expected_chunk_ids=[], evidence=[quote], tags={"domain": "fee"})
    run = run_data.run(tmp_path, service(n_chunks=2), [asked])
    facts, coverage = export_run(run, tmp_path / "out", "csv", ("facts", "coverage"))
    with facts.open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["tags.domain"], row["n_answered"], row["error"]) == ("fee", "1", "")
    with coverage.open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["passage_length"], row["n_results"]) == ("5", "2")
    assert json.loads(row["covered"]) == [0, 5]
    assert json.loads(row["delivered"]) == [6, 12]
