"""The wheel carries all that the demo needs: installed elsewhere, `ragwb demo` runs."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CONSTRAINTS = ROOT / ".ci" / "constraints.txt"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_carries_notebooks_templates_and_data(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {
        "ragwb/_share/notebooks/10_retrieval_run.ipynb",
        "ragwb/_share/datasets/retrieval/golden-set-v1.jsonl",
        "ragwb/_share/datasets/knowledge/refund-policy@2025.3.md",
        "ragwb/_share/datasets/drills/core.toml",
        "ragwb/report/templates/ragwb/index.html.j2",
        "ragwb/report/templates/ragwb/report.css",
        "ragwb/view/style.css",
        "ragwb/py.typed",
    } <= names
    assert not any(name.startswith("tests/") for name in names)


def test_the_demo_runs_from_an_installed_wheel_in_another_folder(wheel, tmp_path):
    uv = [sys.executable, "-m", "uv"]
    venv, work = tmp_path / "venv", tmp_path / "work"
    work.mkdir()
    python = venv / "bin" / "python"
    subprocess.run([*uv, "venv", "-q", "-p", sys.executable, venv], check=True)
    requirement = f"ragwb[service] @ {wheel.as_uri()}"
    install = [*uv, "pip", "install", "-q", "-p", python, "-c", plain_constraints(tmp_path)]
    subprocess.run([*install, requirement], check=True)
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("RAGWB_", "PYTHONPATH"))}
    done = subprocess.run(
        [venv / "bin" / "ragwb", "demo", "--embedder", "hash"],
        cwd=work,
        env=environ,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "reports/demo/hybrid.html" in done.stdout
    report = json.loads((work / "reports" / "demo" / "vector.json").read_text(encoding="utf-8"))
    assert report["n_cases"] == 50
    assert (work / ".ragwb" / "runs").is_dir()


def plain_constraints(folder: Path) -> Path:
    """The pinned versions without their hashes, which a wheel built a moment ago cannot have."""
    lines = CONSTRAINTS.read_text(encoding="utf-8").splitlines()
    pins = [line.rstrip(" \\") for line in lines if line and not line.startswith((" ", "#"))]
    path = folder / "constraints.txt"
    path.write_text("\n".join(pins) + "\n", encoding="utf-8")
    return path
