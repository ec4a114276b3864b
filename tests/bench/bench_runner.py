"""How much a run costs above the bare HTTP calls: prints the ratio of their wall times.

    python tests/bench/bench_runner.py [--cases 2000] [--concurrency 4] [--rounds 3]

A service that answers at once runs in a process of its own. The bare loop asks the same questions
with the same number of calls at a time and reads the JSON; the run besides checks every reply,
journals it, writes the tables and seals. The limit is a ratio of 2.5.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from ragwb.golden.case import Case
from ragwb.golden.dataset import load_dataset, save_dataset
from ragwb.runs.runner import run_retrieval
from ragwb.settings import EVAL_PATH, Settings

LIMIT = 2.5
RESULTS = 5


def service() -> None:
    """Answer every question at once with the same bytes, until the process is ended."""
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    body = json.dumps(reply()).encode()

    async def retrieve(request: Request) -> Response:
        await request.body()
        return Response(body, media_type="application/json")

    async def manifest(_: Request) -> Response:
        return JSONResponse({"protocol": "1", "service": "bench"})

    routes = [
        Route(f"{EVAL_PATH}/retrieve", retrieve, methods=["POST"]),
        Route(f"{EVAL_PATH}/manifest", manifest),
    ]
    uvicorn.run(Starlette(routes=routes), port=int(sys.argv[2]), log_level="error")


def reply() -> dict[str, Any]:
    """A reply of the usual size: five results with texts, two channels of ten candidates."""
    ids = [f"chunk-{n:024x}" for n in range(10)]
    text = "退款审核通过后，原路退回一般需要三到五个工作日。" * 8
    named = [{"chunkId": i, "score": 0.5, "documentId": "d", "documentVersion": "1"} for i in ids]
    return {
        "traceId": "t",
        "effectiveAt": "2026-11-30T08:00:00Z",
        "channels": {"vector": named, "keyword": named},
        "filtered": [],
        "fused": named,
        "results": [{**one, "title": "退款", "text": text} for one in named[:RESULTS]],
        "context": ids[:3],
        "tokens": {"context": 812},
        "timingsMs": {"total": 0.1},
        "modelCalls": 1,
    }


async def bare(base_url: str, questions: list[str], concurrency: int) -> None:
    """The same calls with nothing around them."""
    waiting = iter(questions)

    async def work(client: httpx.AsyncClient) -> None:
        for question in waiting:
            response = await client.post(
                f"{base_url}{EVAL_PATH}/retrieve", json={"question": question, "topK": RESULTS}
            )
            response.raise_for_status()
            response.json()

    async with httpx.AsyncClient(trust_env=False) as client:
        await asyncio.gather(*(work(client) for _ in range(concurrency)))


def main() -> int:
    """Print the medians and their ratio; 1 when it is above the limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--concurrency", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, answering_at_once() as base_url:
        return measure(base_url, Path(folder), options)


@contextmanager
def answering_at_once() -> Iterator[str]:
    """The service in a process of its own on a free port; gives its base URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, __file__, "--service", str(port)])
    base_url = f"http://127.0.0.1:{port}"
    try:
        wait_until_up(base_url)
        yield base_url
    finally:
        process.terminate()
        process.wait()


def measure(base_url: str, folder: Path, options: argparse.Namespace) -> int:
    """Time both ways in turn, so that a noisy neighbour disturbs both."""
    cases = [
        Case(
            dataset_version="bench",
            id=f"case-{n}",
            question=f"问题 {n}？",
            expected_chunk_ids=(f"chunk-{n % 10:024x}",),
        )
        for n in range(options.cases)
    ]
    save_dataset(cases, folder / "golden.jsonl")
    dataset = load_dataset(folder / "golden.jsonl")
    settings = Settings(root=folder, home=folder / "home", base_url=base_url)
    questions = [case.question for case in cases]
    asyncio.run(bare(base_url, questions[:100], options.concurrency))
    loops, runs = [], []
    for _ in range(options.rounds):
        start = time.perf_counter()
        asyncio.run(bare(base_url, questions, options.concurrency))
        loops.append(time.perf_counter() - start)
        start = time.perf_counter()
        run_retrieval(dataset, settings, top_k=RESULTS, concurrency=options.concurrency)
        runs.append(time.perf_counter() - start)
    loop, run = statistics.median(loops), statistics.median(runs)
    print(f"bare loop {loop:.2f} s, run {run:.2f} s, ratio {run / loop:.2f} (limit {LIMIT})")
    return int(run / loop > LIMIT)


def wait_until_up(base_url: str) -> None:
    """Return when the service accepts connections."""
    deadline = time.monotonic() + 30
    while True:
        try:
            httpx.get(f"{base_url}{EVAL_PATH}/manifest", trust_env=False).raise_for_status()
            return
        except httpx.TransportError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--service"]:
        service()
    else:
        sys.exit(main())
