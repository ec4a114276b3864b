"""Runs in processes of their own that are killed, or whose disk is full."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from loopback import FakeService, Reply
from run_data import case, golden, service, settings

import ragwb
from ragwb.cli import run as command_line
from ragwb.errors import RunError
from ragwb.runs.journal import JOURNAL
from ragwb.runs.listing import list_runs
from ragwb.runs.runner import run_retrieval
from ragwb.runs.store import load_run

CHILD = Path(__file__).with_name("run_child.py")
# The package as it stands in this checkout, installed or not.
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(ragwb.__file__).parents[1])}
N_CASES = 40
ANSWERED_BEFORE = 12


class Held:
    """A service that answers the first questions and then holds every one until it is released."""

    def __init__(self) -> None:
        self.fake = service()
        self.plain = FakeService(chunks=self.fake.chunks)
        self.fake.retrieve = self.answer
        self.holds = threading.Event()
        self.released = threading.Event()

    def answer(self, body: dict[str, Any]) -> Reply:
        if len(self.fake.asked) > ANSWERED_BEFORE:
            self.holds.set()
            assert self.released.wait(60)
        return self.plain._retrieve(body)


def finished(folder: Path) -> list[str]:
    lines = (folder / JOURNAL).read_bytes().splitlines()
    return [json.loads(line)["question"] for line in lines]


def test_a_killed_run_goes_on_and_asks_nothing_finished_again(tmp_path: Path) -> None:
    dataset = golden(tmp_path, [case(n) for n in range(N_CASES)])
    held = Held()
    with held.fake.serve() as url:
        child = subprocess.Popen([sys.executable, str(CHILD), url, str(tmp_path)], env=ENVIRONMENT)
        try:
            assert held.holds.wait(60)
            here = settings(tmp_path, base_url=url)
            (entry,) = list_runs(here)
            assert entry.status == "unfinished"
            # Its lock is held as long as it lives …
            with pytest.raises(RunError, match="another process"):
                run_retrieval(dataset, here, top_k=5, resume=entry.run_id)
        finally:
            child.kill()
            child.wait()
            held.released.set()
        before = finished(entry.path)
        assert ANSWERED_BEFORE - 1 <= len(before) <= ANSWERED_BEFORE
        held.fake.asked.clear()
        # … and no longer.
        run = run_retrieval(dataset, here, top_k=5, resume=entry.run_id)
    asked = Counter(held.fake.asked)
    assert set(asked) == {f"q{n}" for n in range(N_CASES)} - set(before)
    assert set(asked.values()) == {1}
    assert run.cases()["status"].tolist() == ["ok"] * N_CASES
    assert len(run.candidates("results")) == 5 * N_CASES


def test_a_killed_run_of_answers_goes_on_by_the_command_that_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RAGWB_HOME", str(tmp_path / "home"))
    dataset = golden(tmp_path, [case(n) for n in range(N_CASES)])
    held = Held()
    held.fake.answers = {}
    with held.fake.serve() as url:
        command = [sys.executable, str(CHILD), url, str(tmp_path), "answers"]
        child = subprocess.Popen(command, env=ENVIRONMENT)
        try:
            assert held.holds.wait(60)
        finally:
            child.kill()
            child.wait()
            held.released.set()
        here = settings(tmp_path, base_url=url)
        (entry,) = list_runs(here)
        before = finished(entry.path)
        assert ANSWERED_BEFORE - 1 <= len(before) <= ANSWERED_BEFORE
        asked_by = f"the same ragwb answer-eval command with --resume {entry.run_id} asks"
        with pytest.raises(RunError, match=asked_by):
            load_run(entry.run_id, here)
        held.fake.asked.clear()
        flags = ["--dataset", str(dataset.path), "--base-url", url, "--resume", entry.run_id]
        assert command_line(["answer-eval", *flags]) == 0
    capfd.readouterr()
    assert sorted(held.fake.asked) == sorted({f"q{n}" for n in range(N_CASES)} - set(before))
    run = load_run(entry.run_id, here)
    assert run.cases()["status"].tolist() == ["ok"] * N_CASES
    assert run.cases()["mode"].tolist() == ["refuse"] * N_CASES


def test_a_full_disk_is_one_line_and_the_run_goes_on(tmp_path: Path) -> None:
    dataset = golden(tmp_path, [case(n) for n in range(N_CASES)])
    fake = service()
    fake.chunks = dict.fromkeys(fake.chunks, "文" * 300)
    with fake.serve() as url:
        # No file may grow beyond 60,000 bytes: the journal meets that after some twenty answers.
        child = subprocess.run(
            [sys.executable, str(CHILD), url, str(tmp_path), "60000"],
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        here = settings(tmp_path, base_url=url)
        (entry,) = list_runs(here)
        assert child.returncode == 2, child.stderr
        assert child.stderr == ""
        (line,) = child.stdout.splitlines()
        assert "journal.jsonl: File too large" in line
        assert f"--resume {entry.run_id}" in line
        before = finished(entry.path)  # every line is whole
        assert 0 < len(before) < N_CASES
        fake.asked.clear()
        run = run_retrieval(dataset, here, top_k=5, resume=entry.run_id)
    assert set(fake.asked) == {f"q{n}" for n in range(N_CASES)} - set(before)
    assert run.cases()["status"].tolist() == ["ok"] * N_CASES


# Bytes a file may have: too few for any table, for the candidates, for the golden cases.
@pytest.mark.parametrize("largest", [1, 3_000, 9_000])
def test_a_disk_that_is_full_while_sealing_loses_no_answer(tmp_path: Path, largest: int) -> None:
    dataset = golden(tmp_path, [case(n) for n in range(N_CASES)])
    fake = service()
    with fake.serve() as url:
        child = subprocess.run(
            [sys.executable, str(CHILD), url, str(tmp_path), str(largest), "sealing"],
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        here = settings(tmp_path, base_url=url)
        (entry,) = list_runs(here)
        assert child.returncode == 2, child.stderr
        assert child.stderr == ""
        (line,) = child.stdout.splitlines()
        assert "File too large" in line
        assert f"--resume {entry.run_id}" in line
        assert entry.status == "unfinished"
        assert sorted(finished(entry.path)) == sorted(f"q{n}" for n in range(N_CASES))
        fake.asked.clear()
        run = run_retrieval(dataset, here, top_k=5, resume=entry.run_id)
    assert fake.asked == []
    assert run.cases()["status"].tolist() == ["ok"] * N_CASES
    assert load_run(run.path).golden() == run.golden()
