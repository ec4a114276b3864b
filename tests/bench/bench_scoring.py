"""Scoring speed: from a run's candidates.parquet to per-case figures at seven Ks, against peers.

Each way runs in its own process, the ways take turns, medians count; what matters are the ratios.
pytrec_eval and ranx do their share of the same (recall, hit, mrr, ndcg, map, precision, no
duplicates, no forbidden chunks, one chunk a group) from the same file. ranx gets a tenth of the
cases, for it needs 8 GB for all of them; its time is scaled up. `score` opens the sealed run, as
`rw.score` does, and scores it twice.

    python tests/bench/bench_scoring.py                 100,000 cases x 100 results, all stages
    python tests/bench/bench_scoring.py --cases 1000000 against pyarrow's reading alone

The run of a million cases has two stages, to save disk (all six would take 6 GB), and is not
sealed; both ways skip the row groups of other stages anyway. Ends with 1 when a limit is missed.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

KS = (1, 3, 5, 10, 20, 50, 100)
ROUNDS = 3
BLOCK = 10_000
N_CHUNKS = 1_000_000
STAGES = {"vector": 50, "keyword": 50, "fused": 100, "reranked": 100, "results": 100, "context": 8}
LARGE_STAGES = {"vector": 50, "results": 100}
COLUMNS = ["case_id", "repeat", "position", "chunk_id"]
LABELS = "labels.parquet"
RUN = "run"
RANX_SHARE = 10
OTHER_KS = (2, 4, 7, 15, 30, 70, 90)
# By what is measured; x is how often the time of `ours` goes into that of the other way.
LIMITS = {
    "pytrec_eval x": (6.0, "at least"),
    "ranx x": (40.0, "at least"),
    "ours peak MB": (1024.0, "at most"),
    "ours other Ks s": (0.2, "at most"),
    "score s": (1.0, "at most"),
    "score other Ks s": (0.2, "at most"),
}
LARGE_LIMITS = {"ours / reading": (3.0, "at most"), "ours peak MB": (1536.0, "at most")}


# Input: a run as the store writes it.
def make_run(folder: Path, n_cases: int, stages: dict[str, int], *, sealed: bool) -> None:
    """Writes candidates.parquet, cases.parquet and labels of a synthetic run, sealed if asked."""
    from ragwb.runs.tables import write_tables
    from ragwb.runs.writer import write_run

    rng = np.random.default_rng(7)
    digits = rng.integers(0, 256, (N_CHUNKS, 12), dtype=np.uint8)
    chunk_ids = np.array([f"chunk-{row.tobytes().hex()}" for row in digits], dtype=object)
    with pq.ParquetWriter(folder / LABELS, label_schema()) as labels:
        for case_ids, _, labelled in blocks(n_cases):
            labels.write_table(label_table(case_ids, chunk_ids[labelled]))
    found = results(chunk_ids, n_cases, stages)
    if not sealed:
        write_tables(folder, found)
        return
    cases = resolved_cases(pq.read_table(folder / LABELS))
    path = write_run(folder, manifest(), cases, found)
    for name in ("candidates.parquet", "cases.parquet"):
        (folder / name).hardlink_to(path / name)


def manifest() -> Any:
    from ragwb.runs.manifest import RunManifest

    return RunManifest(
        run_id=RUN,
        created_at="2025-01-01T00:00:00+00:00",
        base_url=None,
        dataset_version="bench",
        dataset_hash="",
        top_k=100,
        packages={},
        repeats=1,
    )


def resolved_cases(labels: pa.Table) -> list[Any]:
    """The golden cases behind the labels, six rows a case (see `label_table`)."""
    from ragwb.golden.case import Case
    from ragwb.golden.passages import ResolvedCase, ResolvedGroup

    case_ids, chunks = (labels.column(name).to_pylist() for name in ("case_id", "chunk_id"))
    cases = []
    for row in range(0, len(case_ids), 6):
        a, b, _, c, d, e = chunks[row : row + 6]
        case = Case(
            dataset_version="bench", id=case_ids[row], question="q", expected_chunk_ids=(a, b, c, d)
        )
        groups = [ResolvedGroup(index=i, chunk_ids=g) for i, g in enumerate([(a, b), (b, c), (d,)])]
        cases.append(ResolvedCase(case=case, groups=tuple(groups), forbidden_chunk_ids=(e,)))
    return cases


def label_schema() -> pa.Schema:
    from ragwb.measure.labels import LABEL_SCHEMA

    return LABEL_SCHEMA


def results(chunk_ids: Any, n_cases: int, stages: dict[str, int]) -> Iterator[Any]:
    for case_ids, picked, _ in blocks(n_cases):
        yield from block_results(case_ids, chunk_ids[picked], stages)


def blocks(n_cases: int) -> Iterator[tuple[list[str], Any, Any]]:
    """Case ids, picked and labelled chunks of each block; the same whenever they are drawn."""
    for first in range(0, n_cases, BLOCK):
        size = min(BLOCK, n_cases - first)
        case_ids = [f"case-{i:07d}" for i in range(first, first + size)]
        yield case_ids, *draw(np.random.default_rng([7, first]), size)


def draw(rng: np.random.Generator, size: int) -> tuple[Any, Any]:
    """100 chunks a case, one in twenty a repeat, and 5 labelled ones, most among the 100."""
    picked = rng.integers(0, N_CHUNKS, (size, 100))
    row, column = np.nonzero(rng.random((size, 100)) < 0.05)
    picked[row, column] = picked[row, (rng.random(len(row)) * column).astype(int)]
    labelled = rng.integers(0, N_CHUNKS, (size, 5))
    for label in range(4):
        found = np.flatnonzero(rng.random(size) < 0.7)
        picked[found, (100 * rng.random(len(found)) ** 3).astype(int)] = labelled[found, label]
    return picked, labelled


def label_table(case_ids: list[str], labelled: Any) -> pa.Table:
    """Groups {a, b}, {b, c}, {d} that share a chunk, and e, which must not come back."""
    size = len(case_ids)
    return pa.table(
        [
            np.repeat(np.array(case_ids, dtype=object), 6),
            pa.array([0, 0, 1, 1, 2, None] * size, pa.int32()),
            labelled[:, [0, 1, 1, 2, 4, 3]].ravel(),
            np.tile([False] * 5 + [True], size),
        ],
        schema=label_schema(),
    )


def block_results(case_ids: list[str], picked: Any, stages: dict[str, int]) -> Iterator[Any]:
    from ragwb.runs.results import Result, StageList

    for case_id, chunks in zip(case_ids, picked.tolist(), strict=True):
        lists = {
            stage: StageList(
                chunks[:length], [1 / i for i in range(1, length + 1)], ["doc"] * length, None
            )
            for stage, length in stages.items()
        }
        yield Result(case_id, 1, "q", n_results=100, latency_ms=1.0, stages=lists)


# Ways: each returns what it took; imports are not counted.
def ours(folder: Path) -> dict[str, float]:
    from ragwb.measure.retrieval import Labels, find_hits, score_hits

    start = time.perf_counter()
    labels = pq.ParquetFile(folder / LABELS)
    groups = (labels.read_row_group(i) for i in range(labels.num_row_groups))
    asked = pq.read_table(folder / "cases.parquet", columns=["case_id", "repeat"])
    hits = find_hits(folder / "candidates.parquet", Labels.from_tables(groups), asked)
    frame = score_hits(hits, KS)
    taken = {"s": time.perf_counter() - start, "recall@10": float(frame["recall@10"].mean())}
    taken["peak MB"] = peak_mb()
    del frame
    start = time.perf_counter()
    score_hits(hits, OTHER_KS)
    return {**taken, "other Ks s": time.perf_counter() - start}


def scored(folder: Path) -> dict[str, float]:
    """`rw.score` of the sealed run at seven Ks, then at seven others; and what verifying costs."""
    from ragwb.runs.scoring import score
    from ragwb.runs.store import load_run

    start = time.perf_counter()
    run = load_run(folder / RUN, verify=False)
    frame = score(run, KS).frame
    taken = {"s": time.perf_counter() - start, "recall@10": float(frame["recall@10"].mean())}
    start = time.perf_counter()
    score(run, OTHER_KS)
    taken["other Ks s"] = time.perf_counter() - start
    start = time.perf_counter()
    load_run(folder / RUN)
    return {**taken, "verifying s": time.perf_counter() - start}


def reading(folder: Path) -> dict[str, float]:
    """The floor: pyarrow reads the same columns of the same row groups with two threads."""
    pa.set_cpu_count(2)
    start = time.perf_counter()
    n_rows = sum(len(table) for table in result_groups(folder))
    return {"s": time.perf_counter() - start, "rows": n_rows}


def result_groups(folder: Path, limit: int | None = None) -> Iterator[pa.Table]:
    file = pq.ParquetFile(folder / "candidates.parquet")
    stage = file.schema_arrow.names.index("stage")
    for group in range(file.num_row_groups):
        if file.metadata.row_group(group).column(stage).statistics.min == "results":
            yield file.read_row_group(group, columns=COLUMNS)
            limit = limit and limit - 1
            if limit == 0:
                return


def dictionaries(folder: Path, n_blocks: int | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Labels and results as the peers take them: scores fall with the position."""
    run: dict[str, dict[str, float]] = {}
    for table in result_groups(folder, n_blocks):
        columns = (table.column(name).to_pylist() for name in ("case_id", "chunk_id", "position"))
        for case_id, chunk_id, position in zip(*columns, strict=True):
            run.setdefault(case_id, {})[chunk_id] = -float(position)
    qrels: dict[str, dict[str, int]] = {}
    labels = pq.read_table(folder / LABELS)
    columns = (labels.column(name).to_pylist() for name in ("case_id", "chunk_id", "forbidden"))
    for case_id, chunk_id, forbidden in zip(*columns, strict=True):
        if not forbidden and case_id in run:
            qrels.setdefault(case_id, {})[chunk_id] = 1
    return qrels, run


def pytrec(folder: Path) -> dict[str, float]:
    import pytrec_eval

    start = time.perf_counter()
    qrels, run = dictionaries(folder, None)
    cutoffs = ",".join(map(str, KS))
    names = {f"{name}.{cutoffs}" for name in ("recall", "P", "success", "map_cut", "ndcg_cut")}
    figures = pytrec_eval.RelevanceEvaluator(qrels, names | {"recip_rank"}).evaluate(run)
    mean = sum(row["recall_10"] for row in figures.values()) / len(figures)
    return {"s": time.perf_counter() - start, "recall@10": mean}


def ranx(folder: Path) -> dict[str, float]:
    from ranx import Qrels, Run, evaluate

    names = ("recall", "precision", "hit_rate", "map", "ndcg", "mrr")
    metrics = [f"{name}@{k}" for name in names for k in KS]
    # Compiling is not counted.
    evaluate(Qrels({"q": {"a": 1}}), Run({"q": {"a": 1.0, "b": 0.5}}), metrics)
    n_blocks = -(-pq.read_metadata(folder / "cases.parquet").num_rows // BLOCK)
    share = max(1, n_blocks // RANX_SHARE)
    start = time.perf_counter()
    qrels, run = dictionaries(folder, share)
    means = evaluate(Qrels(qrels), Run(run), metrics)
    seconds = (time.perf_counter() - start) * n_blocks / share
    return {"s": seconds, "recall@10": float(means["recall@10"])}


WAYS: dict[str, Callable[[Path], dict[str, float]]] = {
    "ours": ours,
    "score": scored,
    "reading": reading,
    "pytrec_eval": pytrec,
    "ranx": ranx,
}


# Measuring.
def measure(way: str, folder: Path) -> dict[str, float]:
    command = [sys.executable, __file__, "--way", way, "--folder", str(folder)]
    return dict(json.loads(subprocess.run(command, capture_output=True, check=True).stdout))


def run_way(way: str, folder: Path) -> None:
    taken = WAYS[way](folder)
    print(json.dumps({"peak MB": peak_mb(), **taken}))


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def compare(folder: Path, ways: list[str], rounds: int) -> dict[str, float]:
    """Prints the medians of each way; gives them by name, such as `ours peak MB`, `ranx x`."""
    taken: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way in ways:
            taken[way].append(measure(way, folder))
    measured: dict[str, float] = {}
    for way, rows in taken.items():
        for name in rows[0]:
            measured[f"{way} {name}"] = statistics.median(row[name] for row in rows)
        measured[f"{way} x"] = measured[f"{way} s"] / measured["ours s"]
        measured[f"ours / {way}"] = measured["ours s"] / measured[f"{way} s"]
        shown = "  ".join(f"{name} {measured[f'{way} {name}']:,.3f}" for name in rows[0])
        print(f"{way:12} {measured[f'{way} x']:6.2f} x ours   {shown}", flush=True)
    return measured


def missed(measured: dict[str, float], limits: dict[str, tuple[float, str]]) -> int:
    """Prints each limit and what was measured; the number of limits that were missed."""
    n_missed = 0
    for name, (limit, side) in limits.items():
        is_kept = measured[name] >= limit if side == "at least" else measured[name] <= limit
        n_missed += not is_kept
        verdict = "kept" if is_kept else "MISSED"
        print(f"{name}: {measured[name]:,.2f} (limit {side} {limit:,.2f}): {verdict}")
    return n_missed


def made(folder: Path, n_cases: int) -> Path:
    """The folder with its run, made when it is not there."""
    if not (folder / LABELS).exists():
        # In a process of its own: a child's peak memory starts from its parent's.
        command = [sys.executable, __file__, "--make", "--folder", str(folder)]
        subprocess.run([*command, "--cases", str(n_cases)], check=True)
    return folder


def main() -> int:
    """Print what was measured and its limits; 1 when one was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--folder", type=Path, help="keep the run here, and use it if it is there")
    parser.add_argument("--make", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--way", choices=list(WAYS), help=argparse.SUPPRESS)
    given = parser.parse_args()
    large = given.cases > 200_000
    if given.make:
        given.folder.mkdir(parents=True, exist_ok=True)
        stages = LARGE_STAGES if large else STAGES
        make_run(given.folder, given.cases, stages, sealed=not large)
        return 0
    if given.way:
        run_way(given.way, given.folder)
        return 0
    folder = given.folder or Path(tempfile.mkdtemp(prefix="ragwb-bench-"))
    try:
        ways = ["ours", "reading"] if large else list(WAYS)
        measured = compare(made(folder, given.cases), ways, given.rounds)
        return int(missed(measured, LARGE_LIMITS if large else LIMITS) > 0)
    finally:
        if given.folder is None:
            shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
