"""`ragwb weekly` as people and scripts type it."""

import csv
import io
import json
import os
import shlex
import sys

import pytest
import typer
from weekly_data import Week, settings, store

from ragwb.cli.weekly import weekly_app
from ragwb.errors import RunError, UsageError

COMMAND = typer.main.get_command(weekly_app)
DAYS = ["--since", "2026-01-01", "--until", "2026-12-31"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("weekly")
    store(made, [Week(strength=1.0), Week(strength=1.0, lost=frozenset({1}))])
    return made


@pytest.fixture
def weekly(folder, tmp_path, monkeypatch, capfd):
    """`ragwb weekly …` in an empty folder; gives stdout and stderr."""
    monkeypatch.setenv("RAGWB_HOME", str(settings(folder).home))
    monkeypatch.chdir(tmp_path)

    def call(*flags):
        capfd.readouterr()
        COMMAND.main(list(flags), standalone_mode=False)
        return capfd.readouterr()

    return call


@pytest.mark.slow
def test_a_page_is_made_under_the_name_of_its_week(weekly, tmp_path):
    out, err = weekly(*DAYS)
    made = sorted(path.name for path in (tmp_path / "reports" / "weekly").iterdir())
    assert made == ["2026-W53.html", "2026-W53.json", "2026-W53.md"]
    name, verdict, changed, look = out.splitlines()
    assert name == "retrieval · weekly-golden-v1"
    assert verdict.startswith("  PASS, no limits set: ")
    assert changed.startswith("  Since week 2026-W02: 0 fixed, 1 broken of 12")
    assert look.startswith("  Look first at case-001")
    assert "report: reports/weekly/2026-W53.html" in err


@pytest.mark.slow
def test_json_is_that_of_the_file_and_csv_a_row_a_figure(weekly, tmp_path):
    out, _ = weekly(*DAYS, "--format", "json", "--report", "deep/er/page")
    report = tmp_path / "deep" / "er" / "page.json"
    assert json.loads(out) == json.loads(report.read_text(encoding="utf-8"))
    out, _ = weekly(*DAYS, "--format", "csv", "--report", "page")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert {row["run_id"] for row in rows} == {
        run["run_id"] for run in json.loads(report.read_text())["series"][0]["runs"]
    }
    recall = [row for row in rows if row["metric"] == "recall@5"]
    assert [float(row["value"]) for row in recall] == [1.0, pytest.approx(11 / 12)]


@pytest.mark.parametrize(
    ("flags", "error", "said"),
    [
        (["--since", "soon"], UsageError, "--since 'soon'"),
        (["--since", "2026-02-01", "--until", "2026-01-01"], UsageError, "lies after"),
        (["--since", "2025-01-01", "--until", "2025-02-01"], RunError, "no finished run"),
        ([*DAYS, "--dataset", "other"], RunError, "2 of other datasets"),
        ([*DAYS, "--baseline", "latest"], UsageError, "give --policy as well"),
        ([*DAYS, "--report", ".."], UsageError, "--report"),
    ],
)
def test_what_is_wrong_is_said_before_a_kernel_is_started(weekly, tmp_path, flags, error, said):
    with pytest.raises(error, match=said):
        weekly(*flags)
    assert not list(tmp_path.rglob("*.ipynb")) + list(tmp_path.rglob("*.html"))


def test_without_a_browser_nothing_is_run(weekly, monkeypatch, tmp_path):
    monkeypatch.setenv("RAGWB_CHROMIUM", "/nowhere/chromium")
    with pytest.raises(UsageError, match="RAGWB_CHROMIUM /nowhere/chromium: no program there"):
        weekly(*DAYS, "--pdf")
    assert not list(tmp_path.rglob("*.html"))


def test_a_schedule_is_printed_with_whole_paths_and_nothing_is_made(weekly, tmp_path, monkeypatch):
    monkeypatch.setenv("RAGWB_CHROMIUM", "/opt/chromium")
    home = os.environ["RAGWB_HOME"]
    policy = tmp_path / "gate.toml"
    out, _ = weekly("--schedule", "--pdf", "--policy", "gate.toml", "--dataset", "v 1")
    (line,) = (line for line in out.splitlines() if line.startswith("0 20"))
    words = shlex.split(line.split(" ", 5)[5])
    assert words[:3] == ["cd", str(tmp_path), "&&"]
    assert words[3:] == [
        *("/usr/bin/env", f"RAGWB_HOME={home}", "RAGWB_CHROMIUM=/opt/chromium"),
        *(sys.executable, "-m", "ragwb", "weekly", "--pdf"),
        *("--dataset", "v 1", "--policy", str(policy)),
    ]
    assert f"WorkingDirectory={tmp_path}" in out.splitlines()
    assert list(tmp_path.iterdir()) == []
