from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import run_data
from answer_run_data import answer_run, answer_service
from loopback import json_reply
from run_data import case, service, settings
from typer.testing import CliRunner

from ragwb.cli.runs import runs_app
from ragwb.errors import RunError, UsageError
from ragwb.runs.store import Run
from ragwb.runs.writer import EXPERIMENT


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    monkeypatch.setenv("RAGWB_HOME", str(settings(tmp_path).home))
    made = [run_data.run(tmp_path, service(), [case(0)], top_k=top_k) for top_k in (3, 5)]
    return [*made, run_data.run(tmp_path, service(), [case(0)], top_k=5, repeats=2)]


def output(*arguments: str) -> str:
    result = CliRunner().invoke(runs_app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_list_shows_every_run_newest_first(runs: list[Run]) -> None:
    rows = json.loads(output("list", "--format", "json"))
    assert [row["run_id"] for row in rows] == [run.run_id for run in reversed(runs)]
    assert [row["status"] for row in rows] == ["sealed"] * 3
    assert [row["kind"] for row in rows] == ["retrieval"] * 3
    assert [row["top_k"] for row in rows] == [5, 5, 3]
    assert {row["made_by"] for row in rows} == {None}


def test_list_tells_kinds_and_states_apart(runs: list[Run], tmp_path: Path) -> None:
    answered = answer_run(tmp_path, answer_service(), [case(0)])
    fake = service(retrieve=lambda _: json_reply({}, 500))
    failed = run_data.run(tmp_path, fake, [case(0)])
    broken = tmp_path / "home" / "runs" / "broken"
    broken.mkdir()
    (broken / "manifest.json").write_text("{", encoding="utf-8")
    rows = json.loads(output("list", "--format", "json"))
    said = {row["run_id"]: (row["kind"], row["status"], row["n_errors"]) for row in rows}
    assert said[answered.run_id] == ("answers", "sealed", 0)
    assert said[failed.run_id] == (None, "incomplete", 1)
    assert said["broken"] == (None, "broken", None)


def test_list_does_not_wait_for_a_pipe(runs: list[Run], tmp_path: Path) -> None:
    (tmp_path / "home" / "runs" / "piped").mkdir()
    os.mkfifo(tmp_path / "home" / "runs" / "piped" / "manifest.json")
    os.mkfifo(runs[0].path / EXPERIMENT)
    rows = json.loads(output("list", "--format", "json"))
    assert [row["status"] for row in rows] == [*["sealed"] * 3, "broken"]
    assert [row["made_by"] for row in rows[2:]] == ["an experiment", None]


def test_list_names_the_experiment_that_made_a_run(runs: list[Run]) -> None:
    said = (json.dumps({"made_by": "ragwb sweep k"}), "no JSON", "[]")
    for run, text in zip(runs, said, strict=True):
        (run.path / EXPERIMENT).write_text(text, encoding="utf-8")
    rows = json.loads(output("list", "--format", "json"))
    assert [row["made_by"] for row in rows] == ["an experiment", "an experiment", "ragwb sweep k"]


def test_list_shows_an_unfinished_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGWB_HOME", str(settings(tmp_path).home))
    run_data.interrupted_run(tmp_path, service(), 2, 1)
    (row,) = json.loads(output("list", "--format", "json"))
    assert (row["status"], row["n_errors"]) == ("unfinished", None)


def test_list_without_runs_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGWB_HOME", str(tmp_path))
    assert output("list") == "none\n"
    assert json.loads(output("list", "--format", "json")) == []


def test_show_says_conditions_and_counts(runs: list[Run]) -> None:
    said = json.loads(output("show", "latest", "--format", "json"))
    assert said["run_id"] == runs[-1].run_id
    assert (said["n_asked"], said["n_answered"], said["n_errors"]) == (2, 2, 0)
    assert "dataset_version" in output("show", runs[0].run_id)


def test_export_prints_the_files(tmp_path: Path, runs: list[Run]) -> None:
    lines = output("export", "latest", str(tmp_path / "out"), "--as", "jsonl", "--table", "cases")
    assert lines.splitlines() == [str(tmp_path / "out" / "cases.jsonl")]
    assert len((tmp_path / "out" / "cases.jsonl").read_text().splitlines()) == 2


@pytest.mark.parametrize(
    ("pair", "fields", "verdict"),
    [
        ((1, 1), [], "nothing that the manifests name changed"),
        ((0, 1), ["top_k"], "this comparison isolates top K (3 → 5)"),
        (
            (0, 2),
            ["top_k", "repeats"],
            "confounded: top K (3 → 5) and repeats (1 → 2) both changed",
        ),
    ],
)
def test_diff_manifest_names_the_conditions(
    runs: list[Run], pair: tuple[int, int], fields: list[str], verdict: str
) -> None:
    names = [runs[place].run_id for place in pair]
    said = json.loads(output("diff-manifest", *names, "--format", "json"))
    assert [change["field"] for change in said["changed_conditions"]] == fields
    assert said["confounded"] is (len(fields) > 1)
    assert verdict in output("diff-manifest", *names)


def test_runs_of_different_golden_sets_are_no_experiment(tmp_path: Path, runs: list[Run]) -> None:
    other = run_data.run(tmp_path, service(), [case(0), case(1)], top_k=3)
    assert "only the cases common to both golden sets" in output(
        "diff-manifest", runs[0].run_id, other.run_id
    )


def test_a_baseline_is_a_name_for_a_run(runs: list[Run]) -> None:
    assert output("baseline", "base", runs[0].run_id) == f"base is run {runs[0].run_id}\n"
    assert json.loads(output("show", "base", "--format", "json"))["run_id"] == runs[0].run_id
    rows = json.loads(output("list", "--format", "json"))
    assert [row["names"] for row in rows] == ["", "", "base"]


def test_a_run_that_is_not_there_is_one_line(runs: list[Run]) -> None:
    with pytest.raises(RunError, match="no run 'absent'"):
        output("show", "absent")


def test_query_prints_rows_and_names_what_it_leaves_out(runs: list[Run]) -> None:
    (runs[0].path.parent / "junk").mkdir()
    sql = "select case_id, recall from cases order by run_id, case_id limit 1"
    answer = CliRunner().invoke(runs_app, ["query", sql, "--format", "csv"])
    assert answer.stdout == "case_id,recall\nc0,1.0\n"
    assert answer.stderr == "ragwb: run junk is broken and in no view\n"


def test_query_prints_many_rows_as_csv_and_json_but_as_no_table(runs: list[Run]) -> None:
    sql = "select range n, 'x' x from range(10001)"
    with pytest.raises(UsageError, match=r"more than 10,000 rows.*--format csv"):
        CliRunner().invoke(runs_app, ["query", sql], catch_exceptions=False)
    lines = output("query", sql, "--format", "csv").splitlines()
    assert (lines[0], lines[1], lines[-1], len(lines)) == ("n,x", "0,x", "10000,x", 10_002)
    rows = json.loads(output("query", sql, "--format", "json"))
    assert (len(rows), rows[-1]) == (10_001, {"n": 10_000, "x": "x"})
    assert output("query", "select 1 n", "--format", "json") == '[\n  {\n    "n": 1\n  }\n]\n'


@pytest.mark.parametrize(("form", "said"), [("json", "[]"), ("csv", ""), ("table", "none")])
def test_query_without_rows_is_printed_as_none(runs: list[Run], form: str, said: str) -> None:
    assert output("query", "select 1 n where false", "--format", form).strip() == said


def test_query_that_writes_is_refused(runs: list[Run]) -> None:
    with pytest.raises(UsageError, match="DROP is refused"):
        CliRunner().invoke(runs_app, ["query", "drop view runs"], catch_exceptions=False)
