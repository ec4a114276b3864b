"""Small golden sets and runs for the tests of runs."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from loopback import FakeService

from ragwb.errors import RunError
from ragwb.golden.dataset import Dataset, load_dataset
from ragwb.runs.runner import run_retrieval
from ragwb.runs.store import Run
from ragwb.settings import Settings

BASE_URL = "http://service.example"


def case(number: int, **given: Any) -> dict[str, Any]:
    """Case c<n> asks q<n> and expects chunk doc-<n>."""
    return {
        "dataset_version": "v1",
        "id": f"c{number}",
        "question": f"q{number}",
        "expected_chunk_ids": [f"doc-{number}"],
        **given,
    }


def golden(folder: Path, cases: Sequence[dict[str, Any]]) -> Dataset:
    path = folder / "golden.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in cases), encoding="utf-8")
    return load_dataset(path)


def settings(folder: Path, **given: Any) -> Settings:
    return Settings(root=folder, home=folder / "home", **{"base_url": BASE_URL, **given})


def service(n_chunks: int = 8, **given: Any) -> FakeService:
    """A service that holds doc-0 … and returns them all, in order, to every question."""
    return FakeService(chunks={f"doc-{n}": f"第 {n} 段。" for n in range(n_chunks)}, **given)


async def no_wait(_: float) -> None:
    """Stands in for the waits between attempts."""


def run(folder: Path, fake: FakeService, cases: Sequence[dict[str, Any]], **given: Any) -> Run:
    given = {"top_k": 5, "transport": fake.transport(), "sleep": no_wait, **given}
    return run_retrieval(golden(folder, cases), settings(folder), **given)


def interrupt_at(fake: FakeService, question: str) -> httpx.MockTransport:
    """The fake as a transport that presses Ctrl-C at this question, and never answers it."""

    async def handle(request: httpx.Request) -> httpx.Response:
        if json.loads(request.content or b"{}").get("question") == question:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.Event().wait()
        return await fake.transport().handle_async_request(request)

    return httpx.MockTransport(handle)


def interrupted_run(folder: Path, fake: FakeService, n_cases: int, at: int) -> Path:
    """The folder of a run of which c0 … were answered and c<at> was not."""
    with pytest.raises(RunError, match="interrupted"):
        run(
            folder,
            fake,
            [case(n) for n in range(n_cases)],
            transport=interrupt_at(fake, f"q{at}"),
            concurrency=1,
        )
    (found,) = settings(folder).runs_dir.iterdir()
    return found
