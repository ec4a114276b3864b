from __future__ import annotations

from pathlib import Path

import pytest
from service_corpus import write_corpus

from ragwb.cli.served import served
from ragwb.errors import RagwbError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RAGWB_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PYTHONPATH", f"{Path(__file__).parent.parent}:{tmp_path}")
    return tmp_path


def test_a_service_that_says_why_it_ends_has_the_last_word(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as caught, served(["--embedder", "bert"]):
        pass
    assert caught.value.code == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith('ragwb: embedder is "bert"')


def test_a_service_that_is_killed_is_told(home: Path) -> None:
    killer = "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n"
    (home / "killer.py").write_text(killer, encoding="utf-8")
    with (
        pytest.raises(RagwbError, match=r"ended by signal 9 before it was ready"),
        served(["--rewrite", "killer:rewrite", "--embedder", "hash"]),
    ):
        pass


def test_a_database_of_the_environment_is_not_used(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAGWB_DATABASE_URL", "postgresql://127.0.0.1:1/nobody")
    corpus = write_corpus(home / "corpus")
    with served(["--corpus", str(corpus), "--embedder", "hash"]) as base_url:
        assert base_url.startswith("http://127.0.0.1:")
