from __future__ import annotations

import itertools
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import loopback
import pytest
from loopback import Reply, json_reply
from service_corpus import KEY, NOW, make_settings, write_corpus

from ragwb.errors import DocumentError, UsageError
from ragwb.service.auth import SCOPE_EVAL, mint_token
from ragwb.service.server import serving
from ragwb.settings import EVAL_PATH

QUESTION = {"question": "退款多久到账", "topK": 3}


def changeless(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name not in {"traceId", "timingsMs"}}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    write_corpus(tmp_path / "corpus")
    return tmp_path


def test_over_real_http_on_a_free_port(home: Path) -> None:
    with (
        serving(make_settings(home, port=0), clock=lambda: NOW) as url,
        httpx.Client(base_url=url + EVAL_PATH) as client,
    ):
        manifest = client.get("/manifest").json()
        reply = client.post("/retrieve", json=QUESTION)
        refused = client.post("/retrieve", json={**QUESTION, "tenant": "x"})

    assert url.startswith("http://127.0.0.1:")
    assert manifest["embeddingModel"] == "hash"
    assert len(reply.json()["results"]) == 3
    assert refused.status_code == 422
    assert refused.headers["content-type"] == "application/problem+json"


def test_many_at_once_get_what_one_gets(home: Path) -> None:
    with (
        serving(make_settings(home, port=0), clock=lambda: NOW) as url,
        httpx.Client(base_url=url + EVAL_PATH) as client,
    ):
        alone = changeless(client.post("/retrieve", json=QUESTION).json())
        with ThreadPoolExecutor(8) as pool:
            replies = pool.map(lambda _: client.post("/retrieve", json=QUESTION).json(), range(40))
            together = [changeless(reply) for reply in replies]

    assert together == [alone] * 40


def test_a_key_file_makes_tokens_needed(home: Path) -> None:
    key = home / "service.key"
    key.write_bytes(KEY + b"\n")
    token = mint_token(
        KEY, subject="e", tenant="starmall", departments=[], scopes=[SCOPE_EVAL], now=NOW
    )
    with (
        serving(make_settings(home, port=0, key_file=key), clock=lambda: NOW) as url,
        httpx.Client(base_url=url + EVAL_PATH) as client,
    ):
        without = client.post("/retrieve", json=QUESTION)
        with_token = client.post(
            "/retrieve", json=QUESTION, headers={"Authorization": f"Bearer {token}"}
        )

    assert (without.status_code, with_token.status_code) == (401, 200)


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
    return port


def test_while_the_index_is_built_the_service_answers_503(home: Path) -> None:
    port = free_port()
    told: list[httpx.Response] = []

    def ask(_done: int, _total: int) -> None:
        told.append(httpx.post(f"http://127.0.0.1:{port}{EVAL_PATH}/retrieve", json=QUESTION))

    with serving(make_settings(home, port=port), progress=ask, clock=lambda: NOW) as url:
        ready = httpx.post(f"{url}{EVAL_PATH}/retrieve", json=QUESTION)

    assert {reply.status_code for reply in told} == {503}
    assert told[0].headers["content-type"] == "application/problem+json"
    assert told[0].headers["retry-after"] == "5"
    assert ready.status_code == 200


def test_a_build_that_fails_is_raised_and_nothing_is_left(home: Path) -> None:
    (home / "corpus" / "broken.md").write_text("no front matter", encoding="utf-8")
    port = free_port()
    with (
        pytest.raises(DocumentError, match=r"broken\.md"),
        serving(make_settings(home, port=port)),
    ):
        pass
    with socket.socket() as again:
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind(("127.0.0.1", port))


def test_a_command_whose_build_fails_ends_with_one_line(home: Path) -> None:
    (home / "corpus" / "broken.md").write_text("no front matter", encoding="utf-8")
    with serve_command(home) as process:
        out, noise = process.communicate(timeout=20)

    assert (process.returncode, out) == (2, "")
    (line,) = noise.splitlines()
    assert line.startswith("ragwb: ")
    assert "broken.md" in line


def test_a_command_is_ended_while_it_builds(home: Path) -> None:
    processes: list[subprocess.Popen[str]] = []
    port = free_port()
    calls = itertools.count(1)

    def answer(_method: str, _path: str, _headers: dict[str, str], body: bytes) -> Reply:
        if next(calls) == 2:  # the first call only measures the vectors
            processes[0].send_signal(signal.SIGTERM)
            wait_until_refused(port)
        vectors = [{"embedding": [1.0, 2.0]} for _ in json.loads(body)["input"]]
        return json_reply({"data": vectors})

    with loopback.serve(answer) as endpoint:
        flags = ["--embedding-url", endpoint, "--embedding-model", "m", "--port", str(port)]
        with serve_command(home, *flags, embedder="openai") as process:
            processes.append(process)
            out, noise = process.communicate(timeout=20)

    assert (process.returncode, out, noise) == (0, "", "")
    assert not list((home / "home" / "index").glob("*/index.sqlite*"))


def wait_until_refused(port: int) -> None:
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except ConnectionError:
            return
        except TimeoutError:  # its queue is full
            continue


def test_a_taken_port_is_one_line(home: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with (
            pytest.raises(UsageError, match=f"127.0.0.1:{port}: cannot listen"),
            serving(make_settings(home, port=port)),
        ):
            pass


@contextmanager
def serve_command(
    home: Path, *arguments: str, embedder: str = "hash"
) -> Iterator[subprocess.Popen[str]]:
    """`ragwb serve` over the corpus of a home, as a process of its own."""
    command = [sys.executable, "-m", "ragwb", "serve", "--embedder", embedder, "--port", "0"]
    environment = {**os.environ, "RAGWB_HOME": str(home / "home"), "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        [*command, "--corpus", str(home / "corpus"), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=Path(__file__).parent.parent,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_command_says_its_url_and_ends_cleanly(number: signal.Signals, home: Path) -> None:
    with serve_command(home) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        url = line.removeprefix("ragwb serve: ").strip()
        body = httpx.post(f"{url}{EVAL_PATH}/retrieve", json=QUESTION).json()
        process.send_signal(number)
        rest, noise = process.communicate(timeout=20)

    assert line == f"ragwb serve: {url}\n"
    assert len(body["results"]) == 3, json.dumps(body)
    assert (process.returncode, rest, noise) == (0, "", "")
