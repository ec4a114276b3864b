"""Waiting for a server that was just started."""

from __future__ import annotations

import subprocess
import time

import httpx
import pytest

START_TIMEOUT_S = 60


def wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    """Come back when the process answers at the URL; a server that does not is a failure."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        assert process.poll() is None, "the server ended before it answered"
        try:
            httpx.get(url, timeout=2)
            return
        except httpx.TransportError:
            time.sleep(0.2)
    pytest.fail("the server did not answer in time")
