"""The notebooks in JupyterLab in a real browser: every cell runs, every chart is shown."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from browser import opened
from hostile import SCRIPT, hostile_case
from run_data import case, run, service

from ragwb.cli.notebooks import copy_notebooks

TOKEN = "for-this-test"
START_TIMEOUT_S = 90

pytestmark = [pytest.mark.slow, pytest.mark.browser]


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


@pytest.fixture
def home(tmp_path):
    """A home with one run: a good case, a failed one, and one whose texts are hostile."""
    cases = [
        case(1, question="退款审核通过后多久到账？", tags={"domain": "退款"}),
        case(2, question="没收到票", tags={"domain": "发票"}),
        hostile_case(3, SCRIPT, dataset_version="v1"),
    ]
    run(tmp_path, service(results={"没收到票": ["doc-0"]}), cases)
    copy_notebooks(tmp_path / "notebooks")
    return tmp_path / "home"


def test_the_retrieval_notebook_runs_cell_by_cell(home, tmp_path):
    with (
        jupyter_lab(tmp_path / "notebooks", home) as base,
        opened(f"{base}/lab/tree/10_retrieval_run.ipynb?token={TOKEN}", width=1440) as page,
    ):
        page.get_by_text("Python 3 (ipykernel) | Idle").wait_for(timeout=60_000)
        page.locator(".lm-MenuBar-itemLabel", has_text="Run").click()
        page.get_by_text("Run All Cells", exact=True).click()
        page.locator(".rw-verdict").wait_for(timeout=90_000)
        manifest = page.get_by_role("cell", name="content_hash")
        manifest.wait_for(state="attached", timeout=90_000)
        assert page.locator(".jp-RenderedHTMLCommon svg").count() >= 3
        assert page.locator(".jp-OutputArea-output[data-mime-type*='stderr']").count() == 0
        assert page.get_by_text("没收到票").first.is_visible()
        assert page.evaluate("window.owned") is None
        page.locator(".rw-verdict").scroll_into_view_if_needed()
        if shots := os.environ.get("RAGWB_SHOTS"):
            page.screenshot(path=Path(shots) / "lab.png")
