"""`ragwb retrieval-eval` and `ragwb score` as people and scripts type them."""

import json
import os
import signal

import pytest
from loopback import json_reply
from run_data import case, golden, service

from ragwb.cli import run as ragwb

CASES = [case(1), case(2), case(3, mode="refuse", expected_chunk_ids=[])]


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("RAGWB_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("RAGWB_TOKEN", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def evaluate(home, capfd):
    """Run retrieval-eval against a fake service; gives exit code, stdout and stderr."""
    dataset = golden(home, CASES).path

    def call(*flags, fake=None):
        with (fake or service(results={"q2": []})).serve() as url:
            code = ragwb(["retrieval-eval", "--dataset", str(dataset), "--base-url", url, *flags])
        out, err = capfd.readouterr()
        return code, out, err

    return call


def test_a_pass_a_fail_and_an_undecided_have_their_exit_codes(evaluate):
    assert evaluate()[0] == 0
    assert evaluate("--min-recall", "0.5")[0] == 0
    assert evaluate("--min-recall", "0.51")[0] == 1
    failing = service(retrieve=lambda _: (500, {}, b""))
    assert evaluate(fake=failing)[0] == 3


def test_an_eval_that_ctrl_c_stops_says_how_it_goes_on(evaluate):
    def press(_):
        os.kill(os.getpid(), signal.SIGINT)
        return json_reply({}, 500)

    code, _, err = evaluate(fake=service(retrieve=press))
    assert code == 130
    (line,) = (line for line in err.splitlines() if line.startswith("ragwb:"))
    assert "interrupted" in line
    assert "--resume" in line


def test_the_table_shows_figures_failed_and_excluded_cases(evaluate):
    _, out, err = evaluate("--k", "1,5")
    assert out.startswith("No limits set: 1/2 cases have all their evidence in the first 5")
    assert "hit_rate" in out
    assert "c2" in out
    assert "no evidence groups" in out
    assert err.splitlines()[-1].startswith("run: 2")


def test_json_is_the_report_and_nothing_else_on_stdout(evaluate):
    _, out, _ = evaluate("--format", "json", "--top-k", "3")
    report = json.loads(out)
    assert report["metrics"]["recall@3"] == 0.5
    assert report["failed_case_ids"] == ["c2"]


def test_csv_has_a_line_a_metric(evaluate):
    lines = evaluate("--format", "csv")[1].splitlines()
    assert lines[0] == "metric,value"
    assert "recall@5,0.5" in lines


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--k", "0"], "must be whole numbers from 1 to 100"),
        (["--k", "101"], "must be whole numbers from 1 to 100"),
        (["--k", "five"], "must be whole numbers from 1 to 100"),
        (["--k", "10", "--top-k", "5"], "beyond top K = 5"),
        (["--top-k", "0"], "--top-k 0: must be"),
        (["--top-k", "101"], "--top-k 101: must be"),
        (["--top-k", "five"], "'--top-k'"),
        (["--min-recall", "80"], "must be between 0 and 1"),
        (["--repeats", "0"], "repeats"),
        (["--identity", "a"], "LABEL=TOKEN_FILE"),
        (["--resume", "../elsewhere"], "no run at"),
        (["--nonsense"], "No such option"),
        (["--report", "."], "ends in the report's name"),
        (["--report", "/proc/nothing/here"], "--report /proc/nothing/here"),
        (["--k", "9" * 5_000], "must be whole numbers from 1 to 100"),
    ],
)
def test_a_wrong_flag_is_one_line_and_asks_nothing(evaluate, flags, message):
    fake = service()
    code, out, err = evaluate(*flags, fake=fake)
    assert (code, out) == (2, "")
    assert len(err.strip().splitlines()) == 1
    assert message in err
    assert fake.asked == []


def test_a_golden_set_that_is_not_there_is_one_line(capfd):
    assert (
        ragwb(["retrieval-eval", "--dataset", "no.jsonl", "--base-url", "http://127.0.0.1:1"]) == 2
    )
    assert "no.jsonl" in capfd.readouterr().err


def test_a_service_that_is_not_there_is_one_line_and_leaves_no_run(home, capfd):
    dataset = golden(home, CASES).path
    flags = ["--dataset", str(dataset), "--base-url", "http://127.0.0.1:9"]
    assert ragwb(["retrieval-eval", *flags]) == 2
    (line,) = capfd.readouterr().err.strip().splitlines()
    assert "127.0.0.1:9" in line
    assert not list((home / "home" / "runs").glob("*"))


@pytest.mark.slow
def test_the_report_goes_where_it_is_told_with_three_endings(evaluate, home):
    evaluate("--report", "deep/er/report.v2")
    names = sorted(path.name for path in (home / "deep" / "er").iterdir())
    assert names == ["report.v2.html", "report.v2.json", "report.v2.md"]


def test_score_reads_a_saved_run_at_other_ks_slices_and_as_trec_eval(evaluate, capfd):
    evaluate("--top-k", "5")
    assert ragwb(["score", "latest", "--k", "2,5", "--format", "json"]) == 0
    report = json.loads(capfd.readouterr().out)
    assert set(report) >= {"run_id", "n_scored", "n_excluded", "metrics", "cases"}
    assert report["metrics"]["recall@2"] == 0.5
    assert report["cases"][0]["case_id"] == "c1"
    assert ragwb(["score", "latest", "--by", "risk", "--format", "csv"]) == 0
    assert capfd.readouterr().out.startswith("slice,metric,value")
    assert ragwb(["score", "latest", "--by", "risk"]) == 0
    head, row = capfd.readouterr().out.splitlines()
    assert head.split()[:4] == ["slice", "n", "recall@5", "hit_rate@5"]
    assert row.split()[:3] == ["normal", "2", "0.5"]
    assert ragwb(["score", "latest", "--compat", "trec", "--format", "json"]) == 0
    assert json.loads(capfd.readouterr().out)["compat"] == "trec"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["score", "latest", "--k", "6"], "beyond top K = 5"),
        (["score", "latest", "--by", "tags.nothing"], "no slice 'tags.nothing'"),
        (["score", "latest", "--compat", "bleu"], "give one of trec"),
        (["score", "20990101"], "20990101"),
        (["runs", "show", "../../etc"], "no run at"),
    ],
)
def test_a_wrong_question_about_a_saved_run_is_one_line(evaluate, capfd, flags, message):
    evaluate()
    assert ragwb(flags) == 2
    (line,) = capfd.readouterr().err.strip().splitlines()
    assert message in line
