"""Comparison speed: deltas of 100,000 cases against scipy, and two runs of 1,000 cases.

`ours` compares two sides of 100,000 cases and ten retrieval figures, most of which changed: pairs,
means, wins and losses, and 10,000 paired resamples of all figures together. `none alike` is the
same where no two cases changed alike, the hardest there is; `few changed` where in addition only
one case in ten did. scipy.stats.bootstrap resamples the two sides of `ours`, paired; once more it
gets the differences ready-made. It makes a share of the resamples and its time is scaled up; what
the numbers are makes no difference to it. `runs` opens two sealed runs of 1,000 cases, compares
them and makes words and JSON of it, beyond start-up and without verifying.

Each way runs in its own process, the ways take turns, medians count; what matters are the ratios.

    python tests/bench/bench_compare.py

Ends with 1 when a limit is missed.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # what the tests share

N_CASES = 100_000
N_RUN_CASES = 1_000
RESAMPLES = 10_000
SCIPY_SHARE = 50
ROUNDS = 3
METRICS = tuple(f"figure_{n}@5" for n in range(10))
# By what is measured; x is how often the time of `ours` goes into that of the other way.
LIMITS = {
    "scipy x": (20.0, "at least"),
    "scipy, differences x": (20.0, "at least"),
    "scipy / none alike": (20.0, "at least"),
    "ours peak MB": (2048.0, "at most"),
    "runs s": (1.0, "at most"),
}


def any_differences(changed: float = 1.0) -> Any:
    """A difference a case and figure, no two alike; a share of the cases changed."""
    rng = np.random.default_rng(7)
    values = rng.normal(0.01, 0.2, (N_CASES, len(METRICS)))
    return np.where(rng.random((N_CASES, 1)) < changed, values, 0.0)


def figures(seed: int) -> Any:
    """Retrieval figures of one system: what follows from where one or two chunks came back."""
    rng = np.random.default_rng(seed)
    first = rng.integers(1, 9, N_CASES)
    second = np.where(rng.random(N_CASES) < 0.5, 9, rng.integers(1, 9, N_CASES))
    columns = []
    for k in (3, 5):
        gains = [np.where(rank <= k, 1 / np.log2(1 + rank), 0.0) for rank in (first, second)]
        n_hit = (first <= k).astype(float) + (second <= k)
        best = np.minimum(first, second)
        columns += [n_hit / 2, np.where(best <= k, 1 / best, 0.0), sum(gains), n_hit / k]
        columns += [(n_hit > 0).astype(float)]
    return np.column_stack(columns)


def retrieved() -> tuple[Any, Any]:
    """Both sides' figures; hardly a case has the same ones on both."""
    return figures(7), figures(8)


def side(name: str, values: Any) -> Any:
    """Figures as one side of a comparison, as they come from a run."""
    import pandas as pd

    from ragwb.decide.outcomes import Outcomes

    shown = {
        "case_id": [f"case-{n}" for n in range(N_CASES)],
        "case_version": 1,
        "label": "",
        "status": "scored",
        "reason": None,
        "unstable": False,
        "tier": "blocking",
        "set": "core",
        "risk": "normal",
        "weight": 1.0,
        "access": None,
        "permission": False,
        "question": "q",
        "mode": "answer",
        **{name: values[:, n] for n, name in enumerate(METRICS)},
    }
    failed = pd.array(values[:, 0] < 0.5, dtype="boolean")
    latencies = pd.DataFrame({"case_id": [], "repeat": [], "latency_ms": []})
    return Outcomes(
        name, "retrieval", 5, pd.DataFrame(shown).assign(failed=failed), METRICS, latencies
    )


def compared(before: Any, after: Any) -> dict[str, float]:
    from ragwb.decide.compare import compare_outcomes

    sides = side("before", before), side("after", after)
    start = time.perf_counter()
    found = compare_outcomes(*sides).deltas()
    seconds = time.perf_counter() - start
    ends = {name: float(found[name][0]) for name in ("low", "high")}
    return {"s": seconds, **ends, "peak MB": peak_mb()}


def ours() -> dict[str, float]:
    return compared(*retrieved())


def none_alike() -> dict[str, float]:
    return compared(np.zeros((N_CASES, len(METRICS))), any_differences())


def few_changed() -> dict[str, float]:
    return compared(np.zeros((N_CASES, len(METRICS))), any_differences(0.1))


def scipy() -> dict[str, float]:
    """The same data: both sides, paired."""

    def mean_difference(before: Any, after: Any, axis: int = -1) -> Any:
        return (after - before).mean(axis=axis)

    return by_scipy(retrieved(), mean_difference, paired=True)


def scipy_differences() -> dict[str, float]:
    """A favour: the differences ready-made, so that only one table is drawn from."""
    before, after = retrieved()
    return by_scipy((after - before,), np.mean)


def by_scipy(data: Any, statistic: Callable[..., Any], **given: Any) -> dict[str, float]:
    from scipy.stats import bootstrap

    options = {"axis": 0, "batch": 10, "method": "percentile", "vectorized": True, "rng": 7}
    start = time.perf_counter()
    found = bootstrap(data, statistic, n_resamples=RESAMPLES // SCIPY_SHARE, **options, **given)
    seconds = (time.perf_counter() - start) * SCIPY_SHARE
    low, high = (float(end[0]) for end in found.confidence_interval)
    return {"s": seconds, "low": low, "high": high, "peak MB": peak_mb()}


def runs() -> dict[str, float]:
    """Two sealed runs, made first; one compared pair warms up what is loaded when first used."""
    from ragwb.decide.compare import compare
    from ragwb.runs.store import load_run

    with tempfile.TemporaryDirectory(prefix="ragwb-bench-") as folder:
        paths = made(Path(folder))
        compare(*(load_run(path, verify=False) for path in paths))
        start = time.perf_counter()
        found = compare(*(load_run(path, verify=False) for path in paths))
        found.to_dict()
        repr(found)
        seconds = time.perf_counter() - start
    return {"s": seconds, "pairs": found.n}


def made(folder: Path) -> list[Path]:
    from compare_data import finding
    from run_data import case, run

    rng = np.random.default_rng(7)
    numbers = range(1, N_RUN_CASES + 1)
    cases = [case(n, tags={"kind": "abc"[n % 3]}) for n in numbers]
    paths = []
    for share in (0.8, 0.85):
        found = {n for n in numbers if rng.random() < share}
        paths.append(run(folder, finding(found, n_chunks=N_RUN_CASES + 1), cases).path)
    return paths


WAYS: dict[str, Callable[[], dict[str, float]]] = {
    "ours": ours,
    "none alike": none_alike,
    "few changed": few_changed,
    "scipy": scipy,
    "scipy, differences": scipy_differences,
    "runs": runs,
}


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def taken(way: str) -> dict[str, float]:
    """What a way took in a process of its own."""
    command = [sys.executable, __file__, "--way", way]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    measured: dict[str, float] = json.loads(said.splitlines()[-1])
    return measured


def measure(n_rounds: int) -> dict[str, float]:
    """Medians over the rounds, printed and returned by `<way> <what>`."""
    rounds = [{way: taken(way) for way in WAYS} for _ in range(n_rounds)]
    measured = {
        f"{way} {name}": statistics.median(one[way][name] for one in rounds)
        for way in WAYS
        for name in rounds[0][way]
    }
    measured["scipy / none alike"] = measured["scipy s"] / measured["none alike s"]
    for way in WAYS:
        measured[f"{way} x"] = measured[f"{way} s"] / measured["ours s"]
        names = [f"{way} {name}" for name in (*rounds[0][way], "x")]
        shown = "  ".join(f"{name.removeprefix(way)[1:]} {measured[name]:,.4g}" for name in names)
        print(f"{way:18} {shown}", flush=True)
    return measured


def missed(measured: dict[str, float]) -> int:
    """Prints each limit and what was measured; the number of limits that were missed."""
    n_missed = 0
    for name, (limit, way) in LIMITS.items():
        is_kept = measured[name] >= limit if way == "at least" else measured[name] <= limit
        n_missed += not is_kept
        verdict = "kept" if is_kept else "MISSED"
        print(f"{name}: {measured[name]:,.2f} (limit {way} {limit:,.2f}): {verdict}")
    return n_missed


def main() -> int:
    """Print what was measured and its limits; 1 when one was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--way", choices=list(WAYS), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.way:
        print(json.dumps(WAYS[given.way]()))
        return 0
    return int(missed(measure(given.rounds)) > 0)


if __name__ == "__main__":
    sys.exit(main())
