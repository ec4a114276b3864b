"""`ragwb sweep k` as people and scripts type it."""

import csv
import json

import pytest
from k_data import CASES, swept_run
from run_data import golden, service

from ragwb.cli import run as ragwb


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("RAGWB_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def call(capfd):
    """`ragwb sweep k …`; gives exit code, stdout and stderr."""

    def typed(*flags):
        code = ragwb(["sweep", "k", *flags])
        out, err = capfd.readouterr()
        return code, out, err

    return typed


@pytest.fixture
def made(home):
    return swept_run(home)


def test_the_k_comes_first_then_figures_steps_and_the_run(call, made):
    code, out, err = call("--run", "latest")
    assert code == 0
    assert out.startswith("K = 4: recall 0.833 for 36 tokens a case")
    assert "\nRetrieval\n" in out
    assert "\nfrom each K to the next\n" in out
    assert err == f"run: {made.run_id}\n"


def test_json_has_the_documented_keys(call, made):
    flags = ("--k", "1,2,6", "--max-tokens", "18", "--by", "tags.kind", "--format", "json")
    code, out, _ = call("--run", made.run_id, *flags)
    said = json.loads(out)
    assert code == 0
    assert said["ks"] == [1, 2, 6]
    assert said["recommendation"]["k"] == 2
    assert said["steps"][0]["gained"] == ["c1", "c1b"]
    assert said["by"] == "tags.kind"
    assert {row["slice"] for row in said["slices"]} == {"a", "b", None}


def test_csv_is_a_line_a_k_and_figure(call, made):
    _, out, _ = call("--run", "latest", "--k", "1,6", "--format", "csv")
    rows = list(csv.DictReader(out.splitlines()))
    assert {row["k"] for row in rows} == {"1", "6"}
    measured = {row["k"]: row["source"] for row in rows if row["metric"] == "p95_ms"}
    assert measured == {"1": "not measured", "6": "measured"}
    _, out, _ = call("--run", "latest", "--format", "csv", "--by", "risk")
    assert {row["slice"] for row in csv.DictReader(out.splitlines())} == {"high", "normal"}


def test_slices_are_printed(call, made):
    _, out, _ = call("--run", "latest", "--by", "tags.kind", "--k", "1,2")
    assert "\nby tags.kind\n" in out


def test_a_budget_that_nothing_meets_is_said_and_is_no_failure(call, made):
    code, out, _ = call("--run", "latest", "--max-tokens", "1")
    assert code == 0
    assert out.startswith("No K meets 1 tokens a case: the nearest is K = 1 with 9 tokens")


def test_a_service_is_asked_once_at_the_largest_k(call, home):
    golden(home, CASES)
    fake = service(10)
    with fake.serve() as url:
        code, out, _ = call("--dataset", "golden.jsonl", "--base-url", url, "--k", "1,3,12")
    assert code == 0
    assert len(fake.asked) == len(CASES)
    assert "No question got more than 10 results: K = 12 looks at no more than K = 10" in out


def test_measured_runs_are_made_at_each_k_and_can_be_opened_again(call, home):
    golden(home, CASES)
    fake = service(10, answers={})
    flags = ("--measure", "--answers", "--repeats", "2", "--warmup", "0", "--seed", "3")
    with fake.serve() as url:
        code, out, err = call(
            "--dataset", "golden.jsonl", "--base-url", url, "--k", "1,6", *flags, "--format", "json"
        )
    said = json.loads(out)
    assert code == 0
    assert len(fake.asked) == 2 * 2 * len(CASES)
    assert "measured: Measurement at K = 1, 6; order of the passes: " in err
    runs = said["measured"]
    code, out, _ = call("--run", runs["6"], "--measured", runs["1"], "--format", "json")
    assert code == 0
    assert json.loads(out)["measured"] == runs


@pytest.mark.slow
def test_a_report_is_written(call, made, home):
    code, _, err = call("--run", "latest", "--k", "1,2,6", "--by", "risk", "--report", "out/k")
    assert code == 0
    names = {"k.json", "k.md", "k.html", "k.interactive.html"}
    assert {file.name for file in (home / "out").iterdir()} == names
    assert "report: out/k.html (and .json, .md, .interactive.html)" in err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ((), "give --run RUN for a saved run, or --dataset FILE to ask a service"),
        (("--run", "latest", "--dataset", "x"), "give --run RUN"),
        (("--run", "latest", "--measure"), "--measure asks a service: it needs --dataset FILE"),
        (("--run", "latest", "--base-url", "http://x"), "--base-url asks a service"),
        (("--run", "latest", "--repeats", "2"), "--repeats needs --measure"),
        (("--dataset", "x", "--answers"), "--answers needs --measure"),
        (("--dataset", "x", "--measured", "latest"), "--measured names saved runs"),
        (("--run", "latest", "--k", "1,9"), "--k 9: nothing was asked for beyond top K = 6"),
        (("--run", "latest", "--k", "x"), "--k 'x'"),
        (("--run", "latest", "--k", "0"), "--k '0'"),
        (("--run", "nosuch"), "no run 'nosuch'"),
        (("--run", "latest", "--max-tokens", "0"), "--max-tokens 0: must be a number above 0"),
        (("--run", "latest", "--metric", "nope"), "no figure 'nope'"),
        (("--run", "latest", "--by", "nope"), "no slice 'nope'"),
        (("--run", "latest", "--report", ".."), "--report ..: give a path"),
        (("--dataset", "none.jsonl"), "none.jsonl"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(call, made, flags, said):
    code, out, err = call(*flags)
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) == 1


def test_the_group_says_what_it_is_for(capfd):
    assert ragwb(["sweep", "k", "--help"]) == 0
    assert "--max-p95-ms" in capfd.readouterr().out
