"""`ragwb compare` as people and scripts type it."""

import csv
import json
from dataclasses import replace

import pytest
import run_data
from compared_data import AFTER, BEFORE, CASES, K, compared_answers
from run_data import case
from view_data import staged_service

from ragwb.cli import run as ragwb
from ragwb.cli.compare_table import print_overview
from ragwb.decide.compare import compare
from ragwb.decide.patterns import Pattern
from ragwb.runs.baselines import save_baseline

KEYS = {
    *("baseline", "candidate", "changed_conditions", "confounded", "unmatched"),
    *("fixed", "broken", "still_failing", "deltas"),
}


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("RAGWB_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def made(home, stages, cases=CASES, **given):
    """A run in the store of the command."""
    return run_data.run(home, staged_service(stages), cases, **{"top_k": K, **given})


@pytest.fixture
def runs(home):
    before, after = made(home, BEFORE), made(home, AFTER)
    save_baseline(run_data.settings(home), "before", before.path)
    return before, after


@pytest.fixture
def call(runs, capfd):
    """`ragwb compare before latest …`; gives exit code, stdout and stderr."""

    def typed(*flags):
        code = ragwb(["compare", "before", "latest", *flags])
        out, err = capfd.readouterr()
        return code, out, err

    return typed


def test_the_words_come_first_then_the_broken_cases_and_it_decides_nothing(call):
    code, out, err = call()
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "1 fixed, 3 broken of 6"
    at = lines.index("broken (3)")
    assert [line.split()[0] for line in lines[at + 2 : at + 5]] == ["c3", "c2", "c4"]
    assert lines.index("fixed (1)") > at
    assert "still failing (1): c5" in lines
    assert "  excluded: no evidence groups (1): c7" in lines
    assert lines[-1] == "next: ragwb compare before latest --case c3"


def test_json_has_the_documented_keys(call, runs):
    code, out, err = call("--format", "json")
    assert (code, err) == (0, "")
    said = json.loads(out)
    assert set(said) >= KEYS
    assert (said["baseline"], said["candidate"]) == tuple(run.run_id for run in runs)
    assert said["fixed"] == ["c1"]
    assert said["broken"] == ["c3", "c2", "c4"]
    assert said["still_failing"] == ["c5"]
    assert said["unmatched"] == []
    recall = next(row for row in said["deltas"] if row["metric"] == "recall@3")
    assert recall["delta"] == pytest.approx(-1 / 3)
    assert recall["n"] == 6
    assert set(recall) >= {"metric", "baseline", "candidate", "delta", "low", "high", "n"}


def test_slices_are_printed_and_added_to_the_json(call):
    _, out, _ = call("--by", "tags.kind")
    assert "\nby tags.kind\n" in out
    assert "\nb          3  0      3" in out
    _, out, _ = call("--by", "tags.kind", "--format", "json")
    said = json.loads(out)
    assert said["by"] == "tags.kind"
    assert {row["slice"] for row in said["deltas_by"]} == {"a", "b", None}
    # The documented shape stays as it is.
    assert set(said) >= KEYS


def test_csv_is_a_line_a_figure(call):
    _, out, _ = call("--format", "csv")
    rows = list(csv.DictReader(out.splitlines()))
    assert rows[0]["metric"] == "recall@3"
    assert "p95_ms" in [row["metric"] for row in rows]
    _, out, _ = call("--format", "csv", "--by", "risk")
    assert {row["slice"] for row in csv.DictReader(out.splitlines())} == {"high", "normal"}


def test_one_case_shows_both_journeys_in_one_table(call, runs):
    code, out, err = call("--case", "c2")
    assert (code, err) == (0, "")
    assert out.startswith("c2: ✖ broken, high value\n")
    assert f"baseline {runs[0].run_id}\n  Nothing is lost at K = 3." in out
    assert "rank 4 of reranked, K = 3" in out
    line = next(line for line in out.splitlines() if "required 1" in line)
    assert line.count("1 → 4") == 3
    assert line.count("1 → –") == 2
    assert "next:" not in out


def test_one_case_for_scripts(call, runs):
    _, out, _ = call("--case", "c2", "--format", "json")
    said = json.loads(out)
    assert (said["case_id"], said["change"], said["marks"]) == ("c2", "broken", ["high value"])
    assert said["baseline"]["run"] == runs[0].run_id
    assert said["candidate"]["reason"] == "RANKED_BELOW_K"
    assert said["ranks"][0] == {
        "evidence": "required 1",
        "baseline_chunk": "doc-1",
        "candidate_chunk": "doc-1",
        "stage": "vector",
        "baseline_rank": 1,
        "candidate_rank": 4,
    }
    _, out, _ = call("--case", "c2", "--format", "csv")
    rows = list(csv.DictReader(out.splitlines()))
    at = next(row for row in rows if row["stage"] == "results" and row["evidence"] == "required 1")
    assert (at["baseline_rank"], at["candidate_rank"]) == ("1", "")


def test_answers_of_a_case_stand_below_one_another(tmp_path, capfd):
    found = compared_answers(tmp_path / "answers")
    paths = [str(side.run.path) for side in (found.baseline, found.candidate)]
    assert ragwb(["compare", *paths, "--case", "c1"]) == 0
    out = capfd.readouterr().out
    assert out.count("审核后") == 2
    assert "当天到账" in out
    assert "✔ stated" in out
    assert "✖ not stated" in out
    assert ragwb(["compare", *paths, "--case", "c1", "--format", "json"]) == 0
    said = json.loads(capfd.readouterr().out)
    assert said["candidate"]["answer"] == "审核后当天到账。"


def test_many_changed_cases_are_cut_and_counted(home, capfd):
    cases = [case(n, question=f"q{n}", expected_chunk_ids=["doc-1"]) for n in range(43)]
    sides = [
        made(home, {one["question"]: shown["falls"] for one in cases}, cases)
        for shown in (BEFORE, AFTER)
    ]
    assert ragwb(["compare", *(run.run_id for run in sides)]) == 0
    out = capfd.readouterr().out
    assert "and 3 more: --format json names them all" in out


def test_patterns_and_unstable_cases_are_printed(runs, capfd):
    pattern = Pattern("SWAPPED_CASES", "cases swapped", "1 fixed, 1 broken", ("c1",), "the tags")
    found = compare(*runs)
    pairs = found.pairs.assign(unstable=found.pairs["case_id"] == "c2")
    print_overview(replace(found, pairs=pairs, patterns=(pattern,)), None)
    out = capfd.readouterr().out
    assert "\npatterns\ncases swapped (SWAPPED_CASES): 1 fixed, 1 broken\n" in out
    assert "\nunstable (1): c2\n" in out


def test_the_same_run_twice_is_no_change(runs, capfd):
    assert ragwb(["compare", "before", "before"]) == 0
    assert capfd.readouterr().out.startswith("0 changes: both are the same run\n")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--top-k", "4"], "K is 4: give a whole number from 1 to 3"),
        (["--case", "c99"], "no case 'c99'; 6 are compared, such as c1, c2, c3"),
        (["--case", "c7"], "case c7 is not compared: excluded: no evidence groups"),
        (["--by", "tags.none"], "no slice 'tags.none'; there are: tags.kind, risk"),
        (["--rules", "none.toml"], "none.toml"),
        (["--report", ".."], "give a path that ends in the report's name"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_printed(call, flags, said):
    code, out, err = call(*flags)
    assert (code, out) == (2, "")
    (line,) = err.strip().splitlines()
    assert line.startswith("ragwb: ")
    assert said in line


def test_runs_without_a_common_case_or_that_are_not_there(home, runs, capfd):
    other = [case(n, id=f"x{n}", question="passes") for n in (1, 2)]
    made(home, BEFORE, other)
    assert ragwb(["compare", "before", "latest"]) == 2
    assert "have no case in common" in capfd.readouterr().err
    assert ragwb(["compare", "nowhere", "latest"]) == 2
    assert "nowhere" in capfd.readouterr().err


def test_hostile_text_cannot_drive_the_terminal(home, capfd):
    evil = "x\x1b[2J\u202e"
    cases = [case(1, question=evil, tags={"kind": evil})]
    sides = [made(home, {evil: shown["falls"]}, cases) for shown in (BEFORE, AFTER)]
    ids = [run.run_id for run in sides]
    for flags in ([], ["--by", "tags.kind"], ["--case", "c1"], ["--format", "json"]):
        assert ragwb(["compare", *ids, *flags]) == 0
        out = capfd.readouterr().out
        assert "\x1b" not in out
        assert "\u202e" not in out


@pytest.mark.slow
def test_a_report_is_three_files(call, tmp_path):
    code, out, err = call("--report", str(tmp_path / "out" / "diff"), "--by", "risk")
    assert code == 0
    assert out.startswith("1 fixed")
    assert "report: " in err
    assert sorted(path.suffix for path in (tmp_path / "out").iterdir()) == [".html", ".json", ".md"]
    assert "recall@3 by risk" in (tmp_path / "out" / "diff.html").read_text(encoding="utf-8")
