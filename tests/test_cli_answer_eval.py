"""`ragwb answer-eval` as people and scripts type it."""

import json

import pytest
from answer_run_data import CASES, answer_service
from chat_fake import FakeModel
from judge_data import rubric_file, write_lines
from run_data import golden

from ragwb.cli import run as ragwb
from ragwb.decide.thresholds import ANSWER_LIMITS
from ragwb.judge.rubric import load_rubric
from ragwb.runs.store import load_run

SOUND = [CASES[0], CASES[5]]


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("RAGWB_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("RAGWB_TOKEN", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def ask(home, capfd):
    """Run answer-eval against a fake service; gives exit code, stdout and stderr."""

    def call(*flags, cases=CASES, fake=None):
        dataset = golden(home, cases).path
        with (fake or answer_service()).serve() as url:
            code = ragwb(["answer-eval", "--dataset", str(dataset), "--base-url", url, *flags])
        out, err = capfd.readouterr()
        return code, out, err

    return call


@pytest.fixture
def again(capfd):
    """Run answer-eval on the last saved run."""

    def call(*flags):
        code = ragwb(["answer-eval", "--from-run", "latest", *flags])
        out, err = capfd.readouterr()
        return code, out, err

    return call


def test_a_pass_a_fail_and_an_undecided_have_their_exit_codes(ask):
    assert ask(cases=SOUND)[0] == 0
    assert ask("--min-mode-accuracy", "1", cases=SOUND)[0] == 0
    assert ask("--min-clarify-recall", "0.5", cases=SOUND)[0] == 3
    assert ask("--min-mode-accuracy", "0.9", cases=[CASES[0], CASES[3]])[0] == 1
    assert ask()[0] == 1  # a hard rule is broken, and no limit was set
    failing = answer_service(retrieve=lambda _: (500, {}, b"{}"))
    assert ask(fake=failing)[0] == 3


def test_the_table_shows_verdict_modes_figures_rules_and_failed_cases(ask):
    _, out, err = ask()
    assert out.startswith("FAIL: a hard rule is broken in 1 case")
    for words in ("modes: what must happen", "claim_coverage", "hard rules", "retrieval", "recall"):
        assert words in out
    assert "c3       answered, must refuse" in out
    assert "c7       tier shadow" in out
    assert err.splitlines()[-1].startswith("run: 2")


def test_json_and_csv_are_for_scripts(ask):
    _, out, _ = ask("--format", "json", "--top-k", "4", "--k", "1,4")
    report = json.loads(out)
    assert report["top_k"] == 4
    assert "recall@1" in report["metrics"]
    assert report["answers"]["refusal_recall"] == 0.5
    assert {row["case_id"] for row in report["rule_failures"]} == {"c2", "c7"}
    assert report["confusion"]["answer"]["refuse"] == 1
    lines = ask("--format", "csv")[1].splitlines()
    assert lines[0] == "metric,value"
    assert "refusal_recall,0.5" in lines
    assert "accepted," in lines


@pytest.mark.parametrize("name", ANSWER_LIMITS)
def test_every_limit_has_a_flag_of_its_name(ask, name):
    flag = f"--{name.replace('_', '-')}"
    code, out, err = ask(flag, "80")
    assert (code, out) == (2, "")
    assert f"{flag} 80: must be between 0 and 1" in err


def test_repeats_show_how_far_answers_lie_apart(ask):
    out = ask("--repeats", "2", cases=SOUND)[1]
    assert "Over 2 repeats" in out
    assert "Every case came out the same each time." in out


def test_a_killed_run_is_gone_on_with(ask, home):
    assert "no run at" in ask("--resume", "../elsewhere")[2]
    ask(cases=SOUND)
    (folder,) = (home / "home" / "runs").iterdir()
    assert "is sealed" in ask("--resume", folder.name, cases=SOUND)[2]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--k", "10", "--top-k", "5"], "beyond top K = 5"),
        (["--top-k", "0"], "--top-k 0: must be"),
        (["--repeats", "0"], "repeats"),
        (["--identity", "a"], "LABEL=TOKEN_FILE"),
        (["--report", "."], "ends in the report's name"),
        (["--rules", "none.toml"], "none.toml"),
        (["--answerer", "http://x"], "--answerer needs --from-run RUN"),
        (["--verdicts", "v.jsonl"], "--verdicts needs --from-run RUN"),
        (["--rubric", "r.toml"], "--rubric needs --verdicts FILE"),
        (["--model", "m"], "--model needs --answerer URL"),
        (["--min-luck", "1"], "No such option"),
    ],
)
def test_a_wrong_flag_is_one_line_and_asks_nothing(ask, flags, message):
    fake = answer_service()
    code, out, err = ask(*flags, fake=fake)
    assert (code, out) == (2, "")
    assert len(err.strip().splitlines()) == 1
    assert message in err
    assert fake.asked == []


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--dataset", "g.jsonl"], "--dataset has no place beside --from-run"),
        (["--top-k", "5"], "--top-k has no place beside --from-run"),
        (["--repeats", "2"], "--repeats asks nobody without --answerer"),
        (["--answerer", "http://x"], "--answerer needs --model"),
        (["--prompt", "p.toml"], "--prompt needs --answerer URL"),
        (
            ["--answerer", "http://x", "--model", "m", "--verdicts", "v"],
            "--verdicts is on answers that are there: leave --answerer out",
        ),
        (["--answerer", "http://x", "--model", "m", "--prompt", "none.toml"], "none.toml"),
        (["--answerer", "ftp://x", "--model", "m"], "no http address"),
        (["--k", "9"], "beyond top K = 5"),
    ],
)
def test_flags_that_a_saved_run_has_no_use_for_are_refused(ask, again, flags, message):
    ask(cases=SOUND)
    code, out, err = again(*flags)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_without_a_set_or_a_run_there_is_nothing_to_do(capfd):
    assert ragwb(["answer-eval"]) == 2
    assert "give --dataset FILE to ask a service, or --from-run RUN" in capfd.readouterr().err
    assert ragwb(["answer-eval", "--from-run", "20990101"]) == 2
    assert "20990101" in capfd.readouterr().err


def test_saved_answers_are_scored_again_by_other_rules_and_limits(ask, again, home):
    ask()
    code, out, err = again("--min-claim-coverage", "0.1", "--k", "2", "--format", "json")
    assert code == 1
    assert "nothing is asked: the saved answers are scored again" in err
    report = json.loads(out)
    assert report["thresholds"][0]["passed"] is True
    assert "recall@2" in report["metrics"]
    assert len(list((home / "home" / "runs").iterdir())) == 1


def test_another_model_answers_over_the_saved_contexts(ask, again):
    fake = answer_service()
    ask(fake=fake, cases=SOUND)
    n_asked = len(fake.asked)
    said = json.dumps({"mode": "answer", "text": "三天到账[2]。", "reason": None, "actions": []})
    model = FakeModel([said])
    with model.serve() as url:
        flags = ["--answerer", url, "--model", "m1", "--format", "json", "--repeats", "2"]
        code, out, _ = again(*flags, "--temperature", "0.2")
    report = json.loads(out)
    assert code == 0
    assert len(fake.asked) == n_asked
    assert len(model.asked) == 4
    assert report["confusion"]["refuse"]["answer"] == 2
    assert report["answers"]["claim_coverage"] == 1
    made = load_run(report["run_id"])
    assert (made.manifest.answer_model, made.manifest.temperature) == ("m1", 0.2)


def test_a_model_that_is_not_there_is_one_line_and_leaves_no_run(ask, again, home):
    ask(cases=SOUND)
    code, out, err = again("--answerer", "http://127.0.0.1:9", "--model", "m")
    assert (code, out) == (2, "")
    assert "127.0.0.1:9" in err
    assert len(list((home / "home" / "runs").iterdir())) == 1


def test_a_run_that_only_retrieved_is_told_so(ask, again, home, capfd):
    dataset = golden(home, SOUND).path
    with answer_service().serve() as url:
        ragwb(["retrieval-eval", "--dataset", str(dataset), "--base-url", url])
    capfd.readouterr()
    code, _, err = again()
    assert code == 2
    assert "only retrieved: make one with `ragwb answer-eval`" in err


def test_a_judge_is_consulted_on_saved_answers(ask, again, home):
    ask(cases=SOUND)
    file = rubric_file(home)
    row = {"item_id": "c1", "scores": {"good": 3}, "model": "j"}
    verdicts = write_lines(home / "v.jsonl", [{**row, "rubric_hash": load_rubric(file).hash}])
    flags = ["--verdicts", str(verdicts), "--rubric", str(file), "--min-accepted", "0.5"]
    code, out, _ = again(*flags)
    assert code == 3
    assert out.startswith("The judge only advises, and decides nothing here: j by test 1 advises")
    assert "min_accepted decides nothing: accepted is a judge's advice" in out
    assert "It would accept 1 of 1 answers" in out


@pytest.mark.slow
def test_the_report_goes_where_it_is_told_with_three_endings(ask, again, home):
    ask("--report", "deep/er/answers.v1", "--min-mode-accuracy", "0.9")
    names = sorted(path.name for path in (home / "deep" / "er").iterdir())
    assert names == ["answers.v1.html", "answers.v1.json", "answers.v1.md"]
    html = (home / "deep" / "er" / "answers.v1.html").read_text(encoding="utf-8")
    assert "min_mode_accuracy asks for 0.9" in html
    assert "<script" not in html
