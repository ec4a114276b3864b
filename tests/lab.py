"""JupyterLab on loopback, and its notebooks run as a person would run them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from browser import opened

TOKEN = "for-this-test"
START_TIMEOUT_S = 90


@contextmanager
def jupyter_lab(folder: Path, home: Path) -> Iterator[str]:
    """JupyterLab on a free port of loopback, ended with all its kernels."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "jupyterlab", str(folder), "--no-browser", "--allow-root"]
    command += [f"--port={port}", "--ServerApp.ip=127.0.0.1", f"--IdentityProvider.token={TOKEN}"]
    command += [
        "--LabApp.news_url=",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]
    places = {
        name: str(home / name.lower())
        for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")
    }
    environ = {**os.environ, **places, "RAGWB_HOME": str(home)}
    with (home / "lab.log").open("wb") as log:
        process = subprocess.Popen(
            command, env=environ, stdout=log, stderr=log, start_new_session=True
        )
    base = f"http://127.0.0.1:{port}"
    try:
        wait_for(f"{base}/api?token={TOKEN}", process)
        yield base
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)


def wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        assert process.poll() is None, "JupyterLab ended before it answered"
        try:
            if httpx.get(url, timeout=2).is_success:
                return
        except httpx.TransportError:
            time.sleep(0.3)
    pytest.fail("JupyterLab did not answer in time")


@contextmanager
def opened_notebook(base: str, name: str) -> Iterator[Any]:
    """A notebook open in JupyterLab at 1440 px, its kernel ready, all its cells sent to it."""
    with opened(f"{base}/lab/tree/{name}?token={TOKEN}", width=1440) as page:
        page.get_by_text("Python 3 (ipykernel) | Idle").wait_for(timeout=60_000)
        page.locator(".lm-MenuBar-itemLabel", has_text="Run").click()
        page.get_by_text("Run All Cells", exact=True).click()
        yield page


def shoot(page: Any, name: str) -> None:
    """Keep a picture of the page in the folder that RAGWB_SHOTS names, for people to look at."""
    if shots := os.environ.get("RAGWB_SHOTS"):
        page.screenshot(path=Path(shots) / f"{name}.png")
