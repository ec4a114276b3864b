"""A run in a bucket of a real S3-compatible server."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from chat_server import PYTHON
from run_data import case, run, service
from typer.testing import CliRunner
from waiting import wait_for

from ragwb.cli import app
from ragwb.runs.scoring import score
from ragwb.runs.store import load_run

pytestmark = pytest.mark.server


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An empty bucket; its address and keys are in the environment, as they are for users."""
    import s3fs

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    process = subprocess.Popen(
        [PYTHON, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    try:
        wait_for(url, process)
        for name, value in (
            ("AWS_ENDPOINT_URL", url),
            ("AWS_ACCESS_KEY_ID", "key-of-the-bucket"),
            ("AWS_SECRET_ACCESS_KEY", "secret-of-the-bucket"),
            ("AWS_DEFAULT_REGION", "us-east-1"),
        ):
            monkeypatch.setenv(name, value)
        s3fs.S3FileSystem.clear_instance_cache()
        s3fs.S3FileSystem().mkdir("runs")
        yield "runs"
    finally:
        s3fs.S3FileSystem.clear_instance_cache()
        process.terminate()
        process.wait(10)


def test_a_run_in_a_bucket_is_scored_where_it_is(bucket: str, tmp_path: Path) -> None:
    import s3fs

    here = run(tmp_path, service(), [case(1), case(2)])
    s3fs.S3FileSystem().put(str(here.path), f"{bucket}/first", recursive=True)
    far = load_run(f"s3://{bucket}/first", verify=True)

    assert far.candidates().equals(here.candidates())
    assert score(far).to_dict() == score(here).to_dict()
    done = CliRunner().invoke(app, ["score", f"s3://{bucket}/first", "--format", "json"])
    local = CliRunner().invoke(app, ["score", str(here.path), "--format", "json"])
    assert (done.exit_code, done.stdout) == (0, local.stdout)


def test_what_is_not_there_is_one_line(bucket: str) -> None:
    for url in (f"s3://{bucket}/none", "s3://no-such-bucket/run"):
        done = CliRunner().invoke(app, ["score", url])
        assert done.exit_code != 0
        assert str(done.exception).startswith(f"no run at {url}")
