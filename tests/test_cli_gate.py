"""`ragwb gate` as people and CI type it."""

import csv
import io
import json
from xml.etree import ElementTree

import pytest
from compare_data import finding
from gate_data import LENIENT, policy_file
from run_data import case, run

from ragwb.cli import run as ragwb
from ragwb.report.evaluation import evaluate
from ragwb.runs.baselines import save_baseline
from ragwb.runs.store import load_run
from ragwb.settings import load_settings

FLOOR = '[[floors]]\nmetric = "recall@5"\nmin = {}\n'
BROKEN = "[regression]\nmax_broken = 0\n"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("RAGWB_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    monkeypatch.chdir(tmp_path)
    cases = [case(n) for n in range(1, 5)]
    better = run(tmp_path, finding({1, 2, 3, 4}), cases)
    run(tmp_path, finding({1, 2, 3}), cases)
    save_baseline(load_settings(), "main", better.path)
    return tmp_path


@pytest.fixture
def gate(home, capfd):
    """Hold the latest run, in which c4 was lost, against a policy of this text."""

    def call(text, *flags, run="latest"):
        policy = policy_file(home, LENIENT + text)
        code = ragwb(["gate", run, "--policy", str(policy), *flags])
        out, err = capfd.readouterr()
        return code, out, err

    return call


def test_pass_fail_and_undecided_have_their_exit_codes(gate):
    assert gate(FLOOR.format(0.75))[0] == 0
    assert gate(FLOOR.format(0.76))[0] == 1
    assert gate(FLOOR.format(0.75) + "min_n = 9\n")[0] == 3
    assert gate(BROKEN, "--baseline", "main")[0] == 1
    assert gate(BROKEN, "--baseline", "main", run="main")[0] == 0


def test_the_text_opens_with_the_verdict_and_names_the_cases(gate):
    _, out, err = gate(FLOOR.format(0.8) + BROKEN, "--baseline", "main")
    lines = out.splitlines()
    assert lines[0] == "FAIL → hold: 2 of 7 rules broken (p)"
    assert lines[1] == "- fail: recall@5 is 0.75 (3/4) over 4 cases, at least 0.8 wanted: c4"
    assert lines[2] == "- fail: 1 of 4 compared cases newly broken, at most 0 may be: c4"
    assert "how" not in out
    assert err == ""


def test_explain_says_how_each_rule_was_read_and_where(gate):
    _, out, _ = gate(FLOOR.format(0.5) + "min_n = 2\nslice = 'risk=normal'\n", "--explain")
    (line,) = [one for one in out.splitlines() if "must be at least 0.5" in one]
    assert line.split()[0] == "5"
    assert "recall@5 over cases with risk=normal must be at least 0.5" in line
    assert "with fewer than 2: undecided" in line


def test_json_and_csv_hold_every_rule(gate):
    code, out, _ = gate(FLOOR.format(0.8), "--format", "json")
    said = json.loads(out)
    assert (code, said["verdict"], said["state"]) == (1, "fail", "hold")
    (blocker,) = said["blockers"]
    assert (blocker["rule"], blocker["value"], blocker["limit"]) == ("min recall@5", 0.75, 0.8)
    assert (blocker["slice"], blocker["case_ids"]) == (None, ["c4"])
    rows = list(csv.DictReader(io.StringIO(gate(FLOOR.format(0.8), "--format", "csv")[1])))
    assert [row["rule"] for row in rows] == [rule["rule"] for rule in said["rules"]]


def test_files_are_written_whatever_the_verdict_is(gate, home):
    flags = ("--junit", "out/gate.xml", "--summary", "out/s.md", "--report", "out/gate")
    code, _, err = gate(FLOOR.format(0.8), *flags)
    assert code == 1
    assert "report: out/gate.html" in err
    assert ElementTree.parse(home / "out" / "gate.xml").getroot().get("failures") == "1"
    names = sorted(path.name for path in (home / "out").iterdir())
    assert names == ["gate.html", "gate.json", "gate.md", "gate.xml", "s.md"]


def test_the_step_summary_of_a_ci_is_added_to_by_itself(gate, home, monkeypatch):
    summary = home / "step.md"
    summary.write_text("earlier\n", encoding="utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    gate(FLOOR.format(0.8))
    assert summary.read_text("utf-8").startswith("earlier\n# Gate: p\n\n**FAIL")


def test_init_writes_a_policy_that_its_run_meets_and_never_overwrites(home, capfd):
    command = ["gate", "main", "--policy", "new/gate.toml", "--init"]
    assert ragwb(command) == 0
    err = capfd.readouterr().err
    assert "policy: new/gate.toml" in err
    assert "--policy new/gate.toml --explain" in err
    text = (home / "new" / "gate.toml").read_text("utf-8")
    assert ragwb(["gate", "main", "--policy", "new/gate.toml", "--baseline", "main"]) == 0
    assert ragwb(command) == 2
    assert "is there already" in capfd.readouterr().err
    assert (home / "new" / "gate.toml").read_text("utf-8") == text


def test_init_says_that_leaks_are_not_checked(home, capfd):
    assert ragwb(["gate", "main", "--policy", "new.toml", "--init"]) == 0
    err = capfd.readouterr().err
    assert [line[:40] for line in err.splitlines() if "leaks" in line] == [
        "leaks are NOT checked by it: `ragwb tria"
    ]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--init"], "ragwb: --init: give --policy FILE as well: the draft is written there\n"),
        ([], "ragwb: --policy FILE: name the policy to hold the run against; `ragwb gate main "),
    ],
)
def test_without_a_policy_it_says_what_the_file_is_for(home, capfd, flags, said):
    assert ragwb(["gate", "main", *flags]) == 2
    assert capfd.readouterr().err.startswith(said)


def test_a_report_of_an_eval_can_be_the_baseline(gate, home):
    report = home / "main.json"
    report.write_text(json.dumps(evaluate(load_run("main")).to_dict()), encoding="utf-8")
    code, out, _ = gate(BROKEN, "--baseline", "main.json")
    assert code == 1
    assert "1 of 4 compared cases newly broken" in out


@pytest.mark.parametrize(
    ("text", "flags", "message"),
    [
        ("[budget]\nx = 1\n", [], "p.toml:6: budget.x: unknown key"),
        (FLOOR.format(1.2), [], "p.toml:7: floors[0].min: 1.2 is impossible"),
        (FLOOR.format(1) + "slice = 'tags.a=b'\n", [], "p.toml:8: floors[0].slice: no blocking"),
        ("[budget]\n[budget]\n", [], "p.toml:6: budget: is given twice, first in line 5"),
        (FLOOR.format(1).replace("@5", "@50"), [], "p.toml:6: floors[0].metric: K 50 is beyond"),
        (BROKEN, ["--baseline", "nobody"], "no run 'nobody'"),
        (BROKEN, ["--baseline", "nobody.json"], "nobody.json: cannot be read"),
        ("", ["--report", "."], "ends in the report's name"),
        ("", ["--rules", "no.toml"], "no.toml"),
        ("", ["--verdicts", "no.jsonl"], "only retrieved"),
        ("", ["--format", "xml"], "'--format'"),
    ],
)
def test_what_is_wrong_is_one_line_and_no_verdict(gate, text, flags, message):
    code, out, err = gate(text, *flags)
    assert (code, out) == (2, "")
    assert len(err.strip().splitlines()) == 1
    assert message in err


def test_a_run_that_is_not_finished_or_not_whole_is_refused(gate, home):
    newest = load_run("latest").path.name
    manifest = home / "home" / "runs" / newest / "manifest.json"
    said = json.loads(manifest.read_text("utf-8"))
    manifest.write_text(json.dumps({**said, "content_hash": None}), encoding="utf-8")
    code, _, err = gate("", run=newest)
    assert code == 2
    assert "is not finished" in err
    manifest.write_text(json.dumps({**said, "top_k": 4}), encoding="utf-8")
    code, _, err = gate("", run=newest)
    assert code == 2
    assert "wrong content hash" in err
