"""The triage browser on a large run: how long until it stands, and until the next case stands.

    python tests/bench/bench_browser.py [--cases N] [--folder KEEP]

10,000 cases, four stages of 50 candidates, three in ten cases fail at K = 5. Measured is all that
the kernel does, without the page: reading the run, triage, pictures, and the widgets' state as
JSON. The next case is measured with its stages open, and with what-if open; `change` is another
value of a control there, over the whole run. Beside them stand ratios: opening against reading the
candidates with pandas, the next case against drawing its picture alone. Ends with 1 when a limit is
missed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # what the tests share

N_CANDIDATES = 50
TOP_K = 10
K = 5
N_CHUNKS = 20_000
MOVES = 60
RUN = "run"
STAGES = ("vector", "keyword", "fused", "reranked")
LIMITS = {
    "open s": 3.0,
    "next case ms": 150.0,
    "next case p95 ms": 150.0,
    "next, what-if ms": 150.0,
}
TEXT = "退款审核通过后，储蓄卡三天到账，信用卡五天到账；遇节假日顺延。" * 8


def make_run(folder: Path, n_cases: int) -> None:
    """Writes a sealed run whose required chunk moves about from stage to stage."""
    from ragwb.runs.results import ChunkText
    from ragwb.runs.writer import write_run

    chunks = [
        ChunkText(f"chunk-{n:06d}", f"doc-{n // 20}", "1", f"第 {n} 节", f"{n} {TEXT}", 0, 300)
        for n in range(N_CHUNKS)
    ]
    rng = np.random.default_rng(7)
    wanted = rng.integers(0, N_CHUNKS, (n_cases, 2))
    write_run(folder, manifest(), cases(wanted), results(rng, wanted), chunks=chunks)


def manifest() -> Any:
    from ragwb.runs.manifest import RunManifest

    return RunManifest(
        run_id=RUN,
        created_at="2026-01-01T00:00:00+00:00",
        base_url=None,
        dataset_version="bench",
        dataset_hash="",
        top_k=TOP_K,
        packages={},
        repeats=1,
    )


def cases(wanted: Any) -> list[Any]:
    """Two groups a case, tags of a few values, one in twenty of high risk."""
    from ragwb.golden.case import Case
    from ragwb.golden.passages import ResolvedCase, ResolvedGroup

    return [
        ResolvedCase(
            case=Case(
                dataset_version="bench",
                id=f"case-{n:05d}",
                question=f"第 {n} 个问题：退款审核通过后多久到账？",
                expected_chunk_ids=tuple(f"chunk-{i:06d}" for i in pair),
                tags={"domain": f"领域{n % 12}", "kind": ("code", "paraphrase", "multi")[n % 3]},
                risk="high" if n % 20 == 0 else "normal",
            ),
            groups=tuple(
                ResolvedGroup(index=at, chunk_ids=(f"chunk-{i:06d}",)) for at, i in enumerate(pair)
            ),
        )
        for n, pair in enumerate(wanted.tolist())
    ]


def results(rng: Any, wanted: Any) -> Iterator[Any]:
    from ragwb.runs.results import Result, StageList

    for n, pair in enumerate(wanted.tolist()):
        lists = {stage: candidates(rng, pair, lost=n % 10 < 3) for stage in STAGES}
        lists["results"] = lists["reranked"][:TOP_K]
        lists["context"] = lists["results"][:K]
        yield Result(
            f"case-{n:05d}",
            1,
            f"第 {n} 个问题：退款审核通过后多久到账？",
            n_results=TOP_K,
            latency_ms=1.0,
            observed=("channels", "fused", "reranked", "results", "context"),
            stages={
                stage: StageList(ids, [1 / i for i in range(1, len(ids) + 1)], None, None)
                for stage, ids in lists.items()
            },
        )


def candidates(rng: Any, pair: list[int], *, lost: bool) -> list[str]:
    """Fifty chunks; the wanted ones first, or anywhere and now and then nowhere."""
    ids = [f"chunk-{i:06d}" for i in rng.integers(0, N_CHUNKS, N_CANDIDATES)]
    for place, wanted in enumerate(pair):
        at = int(rng.integers(0, 60)) if lost else place
        if at < N_CANDIDATES:
            ids[at] = f"chunk-{wanted:06d}"
    return ids


def measured(folder: Path) -> dict[str, float]:
    """Opens the browser and walks; in a process of its own, imports done before."""
    import altair as alt
    import ipywidgets

    from ragwb.runs.store import load_run
    from ragwb.view.browser import browse
    from ragwb.view.theme import svg

    svg(alt.Chart(alt.Data(values=[{"x": 1}])).mark_point().to_dict())  # starts the engine
    run = load_run(folder / RUN, verify=False)
    start = time.perf_counter()
    browser = browse(run, K)
    browser.widget._repr_mimebundle_()
    json.dumps(ipywidgets.Widget.get_manager_state())
    taken = {"open s": time.perf_counter() - start}
    moves = [timed(lambda: browser.step(1)) for _ in range(MOVES)]
    taken |= what_if(browser)
    start = time.perf_counter()
    run.candidates()
    taken["reading s"] = time.perf_counter() - start
    picture = drawing(browser)
    return {
        **taken,
        "next case ms": 1e3 * statistics.median(moves),
        "next case p95 ms": 1e3 * statistics.quantiles(moves, n=20)[-1],
        "picture ms": 1e3 * picture,
        "failed cases": len(browser.triage.cases),
    }


def what_if(browser: Any) -> dict[str, float]:
    """Walking with what-if open, and changing K there."""
    from widget_tree import marked

    taken = {
        "what-if opened s": timed(
            lambda: setattr(marked(browser.widget, "rw-tabs"), "selected_index", 1)
        )
    }
    slider = marked(browser.widget, "rw-what-k")
    taken["first change s"] = timed(lambda: setattr(slider, "value", K + 1))
    changes = [timed(lambda k=k: setattr(slider, "value", k)) for k in range(K + 2, K + 12)]
    moves = [timed(lambda: browser.step(1)) for _ in range(MOVES)]
    taken["change ms"] = 1e3 * statistics.median(changes)
    return {**taken, "next, what-if ms": 1e3 * statistics.median(moves)}


def timed(act: Any) -> float:
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


def drawing(browser: Any) -> float:
    """The picture of a case alone, in seconds."""
    from ragwb.view.case_view import view_case
    from ragwb.view.journey import journey_spec
    from ragwb.view.theme import svg

    triage = browser.triage
    verdicts = [triaged.verdict for triaged in triage.cases[-20:]]
    views = [
        view_case(triage.traces, triage.traces[v.case_id, v.repeat], k=K, verdict=v)
        for v in verdicts
    ]
    return statistics.median(timed(lambda v=v: svg(journey_spec(v))) for v in views)


def run_in_child(*arguments: str) -> str:
    command = [sys.executable, __file__, *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout


def main() -> int:
    """Print what was measured and its limits; 1 when one was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--folder", type=Path, help="keep the run here, and use it if it is there")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measured(given.folder)))
        return 0
    folder = given.folder or Path(tempfile.mkdtemp(prefix="ragwb-bench-"))
    try:
        if not (folder / RUN).exists():
            folder.mkdir(parents=True, exist_ok=True)
            make_run(folder, given.cases)
        found = json.loads(run_in_child("--measure", "--folder", str(folder)))
    finally:
        if given.folder is None:
            shutil.rmtree(folder)
    print("  ".join(f"{name} {value:,.2f}" for name, value in found.items()))
    print(f"open / reading {found['open s'] / found['reading s']:.2f}")
    print(f"next case / picture {found['next case ms'] / found['picture ms']:.2f}")
    missed = 0
    for name, limit in LIMITS.items():
        missed += found[name] > limit
        verdict = "MISSED" if found[name] > limit else "kept"
        print(f"{name}: {found[name]:,.2f} (limit at most {limit:,.2f}): {verdict}")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
