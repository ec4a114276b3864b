"""`ragwb sweep chunking` as people and scripts type it."""

import csv
import json

import pytest
from sweep_data import TEXTS, make_dataset, point

from ragwb.cli import run as ragwb
from ragwb.cli.sweep_chunking import Teller
from ragwb.golden.dataset import save_dataset
from ragwb.sweep.results import PointResult
from ragwb.sweep.texts import write_texts

GRID = """
corpus = "corpus"
dataset = "golden.jsonl"
k = 2
reference = "fixed-40"

[grid]
strategy = "fixed"
size = [12, 40]
embedder = "hash"
"""


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("RAGWB_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    write_texts(TEXTS, tmp_path / "corpus")
    save_dataset(make_dataset().cases, tmp_path / "golden.jsonl")
    (tmp_path / "grid.toml").write_text(GRID, encoding="utf-8")
    return tmp_path


def swept(*arguments: str) -> int:
    return ragwb(["sweep", "chunking", "--grid", "grid.toml", *arguments])


def test_the_table_holds_both_cuts_what_it_costs_and_the_effects(capsys):
    assert swept() == 0
    said = capsys.readouterr()
    for part in ("At K 2 the best is", "\nat K 2\n", " tokens\n", "40 (reference)"):
        assert part in said.out
    for part in ("Ω strict", "factors at", "next: the same command with --case"):
        assert part in said.out
    assert said.err.splitlines()[0].startswith("1/2 fixed-12-0-hash-hybrid-rerank: done")
    assert said.err.splitlines()[1] == "2/2 fixed-40-0-hash-hybrid-rerank: done"


def test_a_second_call_comes_from_the_cache(capsys):
    swept()
    first = capsys.readouterr().out
    assert swept() == 0
    said = capsys.readouterr()
    assert said.out == first
    assert said.err.count("from the cache") == 2


def test_json_is_that_of_the_sweep(capsys):
    assert swept("--format", "json", "--held-out", "0.5", "--by", "domain", "--tokens", "60") == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["k"], said["tokens"], said["part"], said["n"]) == (2, 60, "held_out", 2)
    assert set(said["cuts"]) == {"k=2", "tokens=60"}
    assert [row["size"] for row in said["cuts"]["k=2"]["points"]] == [12, 40]


def test_csv_has_a_row_a_point_and_cut(capsys):
    assert swept("--format", "csv") == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [row["size"] for row in rows] == ["12", "40", "12", "40"]
    assert {row["cut"] for row in rows[:2]} == {"k=2"}


def test_a_case_is_drawn_over_the_borders_of_the_points_asked_for(capsys):
    assert swept("--case", "both", "--point", "12", "--point", "40") == 0
    said = capsys.readouterr().out
    assert "both: 退款多久到账" in said
    small, large = said.split("fixed-40-0-hash-hybrid-rerank:")
    assert "fixed-12-0-hash-hybrid-rerank: 0 of 1 passage in one chunk; " in small
    (drawn,) = [line for line in small.splitlines() if line.startswith("┣")]
    assert "┃" in drawn.partition("【")[2].partition("】")[0]
    assert "1 of 1 passage in one chunk; 1 chunk touches" in large
    assert "【储蓄卡三天到账。信用卡五天到账】" in large


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--by", "domain"], "give --held-out as well"),
        (["--point", "12"], "give --case or --report as well"),
        (["--tokens", "99999999999"], "give a budget from 1 to 10,000,000"),
    ],
)
def test_a_flag_that_would_do_nothing_is_refused(capsys, flags, said):
    assert swept(*flags) == 2
    assert said in capsys.readouterr().err


def test_a_drawn_case_as_json_and_csv(capsys):
    assert swept("--case", "both", "--format", "json") == 0
    (stretch,) = json.loads(capsys.readouterr().out)
    assert stretch["case_id"] == "both"
    assert swept("--case", "both", "--format", "csv") == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert len(rows) == sum(len(pieces) for pieces in stretch["pieces"].values())


def test_a_grid_of_ten_thousand_points_needs_a_yes(home, capsys):
    values = ", ".join(map(str, range(100, 200)))
    overlaps = ", ".join(map(str, range(100)))
    text = f'[grid]\nstrategy = "fixed"\nsize = [{values}]\noverlap = [{overlaps}]\n'
    (home / "grid.toml").write_text(text, encoding="utf-8")
    assert swept() == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "10,000 points" in said.err
    assert "--yes" in said.err
    assert not (home / "home").exists()


def test_yes_is_meant(home, capsys):
    sizes = ", ".join(["40"] * 501)
    text = GRID.replace("[12, 40]", f"[{sizes}]")
    (home / "grid.toml").write_text(text, encoding="utf-8")
    assert swept("--yes") == 0
    assert "Given more than once and asked once: fixed-40-0" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("[12, 40]", "[12, 0]"), "grid.toml:9: size 0: give a whole number of at least 1"),
        (("size = [12, 40]", "size = 12\noverlap = 12"), "grid.toml:10: overlap 12 with size 12"),
        (('"fixed-40"', '"fixed"'), "point 'fixed' is the beginning of 2 points: 12, 40"),
        (('"corpus"', '"nowhere"'), "nowhere: no such folder"),
        (('"golden.jsonl"', '"nowhere.jsonl"'), "nowhere.jsonl"),
    ],
)
def test_what_is_wrong_is_one_line_on_stderr(home, capsys, change, said):
    (home / "grid.toml").write_text(GRID.replace(*change), encoding="utf-8")
    code = swept()
    told = capsys.readouterr()
    assert code == 2
    assert told.out == ""
    (line,) = told.err.splitlines()
    assert said in line


def test_a_sweep_of_which_every_point_fails_exits_with_2(home, capsys):
    text = GRID.replace('"fixed"', '"sweep_data:loses_text"').replace("fixed-40", "sweep_data")
    (home / "grid.toml").write_text(text.replace("[12, 40]", "40"), encoding="utf-8")
    assert swept() == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "no point was measured, 1 failed" in said.err
    assert "lost the text from character" in said.err


def test_a_point_that_fails_is_told_and_the_rest_goes_on(home, capsys):
    text = GRID.replace('"fixed"', '["fixed", "sweep_data:raises"]').replace("[12, 40]", "40")
    (home / "grid.toml").write_text(text, encoding="utf-8")
    assert swept() == 0
    said = capsys.readouterr()
    assert "no cut for today" in said.out
    assert "failed: " in said.err


def test_text_of_others_cannot_drive_the_terminal(home, capsys):
    text = TEXTS["refund"].replace("退款审核", "\x1b[31m退款审核\u202e")
    hostile = {**TEXTS, "refund": text}
    write_texts(hostile, home / "corpus")
    save_dataset(make_dataset(hostile).cases, home / "golden.jsonl")
    assert swept("--case", "card", "--point", "40") == 0
    said = capsys.readouterr().out
    assert "审核" in said
    assert "\x1b" not in said
    assert "\u202e" not in said


def test_the_time_left_is_told_from_what_was_computed(capsys):
    seconds = iter([0.0, 10.0, 300.0])
    teller = Teller(4, lambda: next(seconds))
    result = PointResult(point(), "key")
    teller(PointResult(point(), "key", cached=True))
    teller(result)
    teller(result)
    teller(result)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].endswith("from the cache")
    assert lines[1].endswith("done; at most 20 s left")
    assert lines[2].endswith("done; at most 2 min left")
    assert lines[3].endswith("done")


@pytest.mark.slow
def test_a_report_is_written_beside_the_table(home, capsys):
    assert swept("--report", "reports/chunking", "--tokens", "60") == 0
    said = capsys.readouterr()
    assert "report: reports/chunking.html" in said.err
    report = json.loads((home / "reports" / "chunking.json").read_text(encoding="utf-8"))
    assert report["tokens"] == 60
    assert "at 60 tokens" in (home / "reports" / "chunking.html").read_text(encoding="utf-8")


def test_a_report_that_cannot_be_written_is_said_first(home, capsys):
    (home / "reports").write_text("a file")
    assert swept("--report", "reports/chunking") == 2
    assert "--report reports/chunking" in capsys.readouterr().err
    assert not (home / "home").exists()
