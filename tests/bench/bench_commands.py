"""Whole commands as people wait for them: start-up, an eval with its report, the demo.

    python tests/bench/bench_commands.py [--skip-demo]

Start-up is a ratio of medians, the two commands in turn. The others are seconds on this machine.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROUNDS = 9
CASES = 150
START_UPS = (
    ("ragwb --help", ["-m", "ragwb", "--help"], "import typer", 2.5),
    ("import ragwb", ["-c", "import ragwb"], "import numpy", 2.5),
)


def main() -> int:
    """Print a line a measurement; 1 when a limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--skip-demo", action="store_true", help="leave out the longest one")
    options = parser.parse_args()
    missed = [start_up(*given) for given in START_UPS]
    missed.append(evaluation())
    if not options.skip_demo:
        missed.append(demo())
    return int(any(missed))


def start_up(name: str, arguments: Sequence[str], peer: str, limit: float) -> bool:
    """Medians of the two commands in turn, and their ratio."""
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append(seconds([sys.executable, *arguments]))
        theirs.append(seconds([sys.executable, "-c", peer]))
    own, other = statistics.median(ours), statistics.median(theirs)
    print(f"{name} {own:.2f} s, {peer} {other:.2f} s, ratio {own / other:.2f} (limit {limit})")
    return own / other > limit


def evaluation() -> bool:
    """An eval of 150 cases with its report, on a service that answers at once."""
    from bench_runner import answering_at_once, reply

    chunk_ids = [result["chunkId"] for result in reply()["results"]]
    with tempfile.TemporaryDirectory() as folder, answering_at_once() as base_url:
        cases = [
            {
                "dataset_version": "bench",
                "id": f"case-{n}",
                "question": f"问题 {n}？",
                "expected_chunk_ids": [chunk_ids[n % len(chunk_ids)]],
            }
            for n in range(CASES)
        ]
        golden = Path(folder) / "golden.jsonl"
        golden.write_text("\n".join(map(json.dumps, cases)), encoding="utf-8")
        flags = ["--dataset", str(golden), "--base-url", base_url, "--report", f"{folder}/report"]
        spent = seconds([sys.executable, "-m", "ragwb", "retrieval-eval", *flags], home=folder)
    print(f"retrieval-eval of {CASES} cases with its report {spent:.1f} s (limit 25)")
    return spent > 25


def demo() -> bool:
    """The demo without any cache, from the documents to both reports."""
    with tempfile.TemporaryDirectory() as folder:
        flags = ["--report", f"{folder}/reports"]
        spent = seconds([sys.executable, "-m", "ragwb", "demo", *flags], home=folder)
    print(f"ragwb demo, nothing cached, {spent:.0f} s (limit 240)")
    return spent > 240


def seconds(command: Sequence[str], *, home: str | None = None) -> float:
    """Wall time of a command that must succeed."""
    environ = {**os.environ, "OMP_NUM_THREADS": "1"}
    if home is not None:
        environ["RAGWB_HOME"] = f"{home}/home"
    start = time.perf_counter()
    subprocess.run(command, env=environ, check=True, capture_output=True)
    return time.perf_counter() - start


if __name__ == "__main__":
    sys.exit(main())
