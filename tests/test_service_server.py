from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from service_corpus import KEY, NOW, make_settings, write_corpus

from ragwb.errors import UsageError
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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_command_says_its_url_and_ends_cleanly(number: signal.Signals, home: Path) -> None:
    command = [sys.executable, "-m", "ragwb", "serve", "--embedder", "hash", "--port", "0"]
    environment = {**os.environ, "RAGWB_HOME": str(home / "home"), "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        [*command, "--corpus", str(home / "corpus")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=Path(__file__).parent.parent,
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        url = line.removeprefix("ragwb serve: ").strip()
        body = httpx.post(f"{url}{EVAL_PATH}/retrieve", json=QUESTION).json()
        process.send_signal(number)
        rest, noise = process.communicate(timeout=20)

    assert line == f"ragwb serve: {url}\n"
    assert len(body["results"]) == 3, json.dumps(body)
    assert (process.returncode, rest, noise) == (0, "", "")
