"""The reference service as a process of its own for the length of a block."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ragwb.cli.database import DATABASE_URL_ENV
from ragwb.errors import RagwbError

READY = "ragwb serve: "
STOP_TIMEOUT_S = 10


@contextmanager
def served(arguments: Sequence[str]) -> Iterator[str]:
    """Start `ragwb serve` on a free loopback port, give its base URL, and stop it at the end.

    Args:
        arguments: flags of `ragwb serve`; host and port are chosen here.
    Raises:
        SystemExit: the service ended before it was ready and has said why, in its one line on
            stderr, which it shares with this process; with its exit code, and nothing more to say.
        RagwbError: it was ended before it was ready, and could say nothing.
    """
    command = [
        sys.executable,
        "-m",
        "ragwb",
        "serve",
        "--host",
        "127.0.0.1",
        "--port",
        "0",
        *arguments,
    ]
    # What is started here is what the arguments say: no demo goes into somebody's database.
    environment = {key: value for key, value in os.environ.items() if key != DATABASE_URL_ENV}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, encoding="utf-8", env=environment
    ) as process:
        try:
            yield _base_url(process)
        finally:
            process.terminate()
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()


def _base_url(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(READY):
            return line.removeprefix(READY).strip()
    code = process.wait()
    if code > 0:
        raise SystemExit(code)
    how = f"by signal {-code}" if code else "on its own"
    raise RagwbError(f"the reference service was ended {how} before it was ready: start it again")
