"""`sweep_chunking`: every point of a grid on the same documents and questions, side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd

from ragwb.errors import UsageError
from ragwb.golden.dataset import Dataset, load_dataset
from ragwb.html import plain
from ragwb.knowledge.chunking import ChunkingSpec
from ragwb.measure.listed import count, some
from ragwb.records import MAX_TOP_K
from ragwb.service.auth import LOCAL_CALLER
from ragwb.service.config import ServiceConfig, make_config
from ragwb.service.pipeline import utc_now
from ragwb.service.visibility import Caller
from ragwb.settings import Settings, load_settings, shared_file
from ragwb.sweep.cache import index_key, point_key, read_state
from ragwb.sweep.cuts import Cut, least_tokens, n_short
from ragwb.sweep.grid import MAX_TOKENS, Grid, Point, find_point
from ragwb.sweep.outcome import ChunkingSweep
from ragwb.sweep.points import Task
from ragwb.sweep.pool import OnPoint, run_tasks
from ragwb.sweep.results import PointResult
from ragwb.sweep.split import SEED, split_cases

DEFAULT_K = 5
DEPTH = 50
"""Results asked for, so that a token budget can be filled with small chunks."""
_FILLED = 0.8  # of a token budget; a point that uses less is named

# What a point sets of its own, or what only concerns answers and the network.
_NOT_A_SETTING = frozenset(
    {"corpus", "index_dir", "cache_dir", "chunking", "embedder", "mode", "rerank", "answerer"}
)
Clock = Callable[[], datetime]


def sweep_chunking(
    grid: Grid,
    *,
    corpus: Path | None = None,
    dataset: Dataset | str | Path | None = None,
    settings: Settings | None = None,
    reference: str | None = None,
    k: int | None = None,
    tokens: int | None = None,
    held_out: float | None = None,
    by: str | None = None,
    seed: int = SEED,
    workers: int = 1,
    dask: str | None = None,
    on_point: OnPoint | None = None,
    clock: Clock = utc_now,
) -> ChunkingSweep:
    """Build, ask and score every point of a grid, and hold the points side by side.

    What is in the cache is not computed again, so that a killed sweep goes on where it was. A point
    that fails becomes a result with its error.

    Args:
        grid: the points (`grid.load_grid`, `grid.make_grid`).
        corpus: folder of Markdown documents; default the grid's, else those that come with ragwb.
        dataset: golden set with passages; default the grid's, else the one that comes with ragwb.
        settings: where things are kept, below `home/sweep`; default the settings in force.
        reference: the point to hold the others against, by the beginning of its name; default the
            grid's, else its first point.
        k: results at equal K, 1 to 100; default the grid's, else 5.
        tokens: the budget at equal context tokens; default the grid's, else what the reference
            delivers at K, in the mean over its cases.
        held_out: share of the cases to report on, the rest is to choose on; None for no split.
        by: a tag within whose values the split is drawn.
        seed: of the split.
        workers: processes of this machine.
        dask: address of a scheduler, whose workers do the work instead (see `pool.run_tasks`).
        on_point: told each result as it comes.
        clock: the service's time.

    Raises:
        UsageError: no such reference, a value out of range, or settings that no service takes.
        DocumentError, GoldenError: documents or golden set are wrong.
    """
    point = find_point(grid.points, reference or grid.reference)
    _check_tokens(tokens)
    tasks = make_tasks(grid, corpus=corpus, dataset=dataset, settings=settings, k=k, clock=clock)
    drawn = None
    if held_out is not None:
        drawn = split_cases(tasks[0].dataset.cases, by=by, share=held_out, seed=seed)
    results = run_tasks(tasks, workers=workers, dask=dask, on_point=on_point)
    cut, given = _checked_k(grid, k), tokens or grid.tokens
    sweep = ChunkingSweep(
        results=tuple(results),
        reference=point,
        k=cut,
        tokens=given or _delivered(results, point, cut),
        part="all" if drawn is None else "held_out",
        split=drawn,
        repeated=grid.repeated,
    )
    return replace(sweep, notes=tuple(_notes(sweep, is_given=given is not None)))


def make_tasks(
    grid: Grid,
    *,
    corpus: Path | None = None,
    dataset: Dataset | str | Path | None = None,
    settings: Settings | None = None,
    k: int | None = None,
    clock: Clock = utc_now,
) -> list[Task]:
    """The points of a sweep as tasks that any process can do, in the order of the grid.

    Arguments and errors are those of `sweep_chunking`.
    """
    folder = corpus or grid.corpus or shared_file("datasets", "knowledge")
    golden = dataset or grid.dataset or shared_file("datasets", "retrieval", "golden-set-v1.jsonl")
    home = (settings or load_settings()).home
    plan = _Plan(
        corpus=folder.resolve(),  # for a worker has a folder of its own
        dataset=golden if isinstance(golden, Dataset) else load_dataset(golden),
        home=home.resolve() / "sweep",
        cache=home.resolve() / "cache",
        callers=_callers(grid.identities),
        now=clock(),
        top_k=max(_checked_k(grid, k), DEPTH),
    )
    _check_access(plan.dataset, plan.callers)
    return list(_tasks(grid, plan))


@dataclass(frozen=True, slots=True)
class _Plan:
    """What holds for every point."""

    corpus: Path
    dataset: Dataset
    home: Path
    cache: Path
    callers: Mapping[str | None, Caller]
    now: datetime
    top_k: int


def _checked_k(grid: Grid, k: int | None) -> int:
    cut = (grid.k or DEFAULT_K) if k is None else k
    if not 1 <= cut <= MAX_TOP_K:
        raise UsageError(f"K {cut}: give a whole number from 1 to {MAX_TOP_K}")
    return cut


def _callers(identities: Mapping[str, Mapping[str, Any]]) -> dict[str | None, Caller]:
    callers: dict[str | None, Caller] = {None: LOCAL_CALLER}
    for label, given in identities.items():
        named = given if isinstance(given, Mapping) else {}
        departments = named.get("departments", [])
        if not isinstance(given, Mapping) or not set(named) <= {"tenant", "departments"}:
            raise UsageError(f"identities.{plain(label)}: give tenant and departments")
        if not isinstance(named.get("tenant", ""), str):
            raise UsageError(f"identities.{plain(label)}: tenant must be a name")
        if not isinstance(departments, list) or not all(isinstance(d, str) for d in departments):
            raise UsageError(f"identities.{plain(label)}: departments must be a list of names")
        callers[label] = replace(
            LOCAL_CALLER,
            subject=label,
            tenant=str(named.get("tenant", LOCAL_CALLER.tenant)),
            departments=tuple(departments),
        )
    return callers


def _check_access(dataset: Dataset, callers: Mapping[str | None, Caller]) -> None:
    for case in dataset.cases:
        if case.is_asked and case.access not in callers:
            raise UsageError(
                f"case {case.id} is asked as {plain(case.access)!r}: give the grid a table "
                f"[identities.{plain(case.access)}] with tenant and departments"
            )


def _check_tokens(tokens: int | None) -> None:
    if tokens is not None and not 1 <= tokens <= MAX_TOKENS:
        raise UsageError(f"tokens {tokens}: give a budget from 1 to {MAX_TOKENS:,}")


def _tasks(grid: Grid, plan: _Plan) -> Iterator[Task]:
    configs = [_config(grid, point, plan) for point in grid.points]
    state = read_state(plan.corpus, plan.callers, plan.now, configs[0].timezone)
    who = [[label, caller.tenant, caller.departments] for label, caller in plan.callers.items()]
    for point, config in zip(grid.points, configs, strict=True):
        index = index_key(point, config, state)
        # A folder in a folder of its own: a build looks at the indexes that stand beside it, which
        # would make what an index holds depend on the sweep that it was made in.
        own = replace(config, index_dir=plan.home / "index" / index / "of")
        key = point_key(index, own, state, who, [plan.dataset.content_hash, plan.top_k])
        yield Task(point, own, plan.dataset, plan.callers, plan.top_k, plan.home, key, plan.now)


def _config(grid: Grid, point: Point, plan: _Plan) -> ServiceConfig:
    wrong = sorted(_NOT_A_SETTING & set(grid.settings))
    if wrong:
        raise UsageError(f"service.{wrong[0]}: the grid itself sets it; take it out of [service]")
    # An own chunker cuts again what this spec has cut; ragwb's strategies know nothing of it.
    spec = ChunkingSpec("fixed")
    if not point.is_own_chunker:
        spec = ChunkingSpec(point.strategy, point.size, point.overlap)
    table = {
        **grid.settings,
        "corpus": plan.corpus,
        "cache_dir": plan.cache,
        "index_dir": plan.home / "index",
        "chunking": spec,
        "embedder": point.embedder,
        "mode": point.mode,
        "rerank": point.rerank,
        "answerer": "off",
    }
    return make_config(table, home=plan.home, where="[service]")


def _delivered(results: Sequence[PointResult], reference: Point, k: int) -> int:
    """Tokens that the reference delivers at K in the mean; the first measured point's if it failed.

    With 0 cases, or nothing delivered at all, it is 1: a budget that nothing meets, and said so.
    """
    measured = [result for result in results if result.error is None]
    own = next((result for result in measured if result.point == reference), None)
    result = own or next(iter(measured), None)
    if result is None:
        return 1
    scored = (result.cases["status"] == "scored").to_numpy()
    delivered = pd.Series(result.by_k["tokens"][scored, k - 1])
    return max(math.ceil(delivered.mean()), 1) if len(delivered) else 1


def _notes(sweep: ChunkingSweep, *, is_given: bool) -> Iterator[str]:
    if not is_given and sweep.case_ids:
        yield f"The budget of {sweep.tokens:,} tokens is what the reference delivers at K {sweep.k}"
    if sweep.failed and sweep.result(sweep.reference).error is not None:
        yield f"The reference {sweep.labels[sweep.reference]} failed: no point is held against it"
    small = [r for r in sweep.measured if r.index is not None and r.index.n_chunks < sweep.k]
    for result in small:
        n = result.index.n_chunks if result.index else 0
        name = sweep.labels[result.point]
        yield f"{name} has {n} chunks: its figures at K {sweep.k} are those at K {n}"
    yield from _same_chunks(sweep)
    yield from _budget_notes(sweep)
    if any(_uses_hash(result.point) for result in sweep.measured):
        yield "The embedder hash knows no meaning: its figures show that things work, no more"


def _uses_hash(point: Point) -> bool:
    """Whether its order depends on the vectors of an embedder that knows no meaning."""
    return point.embedder == "hash" and (point.mode != "KEYWORD" or point.rerank)


def _same_chunks(sweep: ChunkingSweep) -> Iterator[str]:
    """Chunkings of other values that cut alike here, so that nothing tells them apart."""
    alike: dict[tuple[object, ...], list[Point]] = {}
    for result in sweep.measured:
        if result.index is not None and len(result.borders):
            ids = hash(tuple(result.borders["chunk_id"]))
            key = (ids, result.index.n_chunks, result.index.chunk_tokens, *_search_of(result.point))
            alike.setdefault(key, []).append(result.point)
    for points in alike.values():
        if len(points) > 1:
            named = ", ".join(sweep.labels[point] for point in points)
            yield f"These cut the same chunks out of these documents: {named}"


def _search_of(point: Point) -> tuple[object, ...]:
    return point.embedder, point.mode, point.rerank


def _budget_notes(sweep: ChunkingSweep) -> Iterator[str]:
    cut = Cut(tokens=sweep.tokens)
    least = least_tokens(sweep.measured)
    if least is not None and least > sweep.tokens:
        yield (
            f"No result of any case fits {sweep.tokens:,} tokens; the smallest first result has "
            f"{least:,.0f}"
        )
    yield from _unused_budget(sweep, cut)
    for result in sweep.measured:
        short = n_short(result, cut)
        if short:
            ended = f"whose list ends at {result.top_k} results, before {sweep.tokens:,} tokens"
            yield (
                f"{sweep.labels[result.point]}: {count(short, 'case')} {ended}; "
                "at equal tokens its figures may be too low"
            )


def _unused_budget(sweep: ChunkingSweep, cut: Cut) -> Iterator[str]:
    """Points whose chunks are too large to fill the budget: they are held to less than it."""
    shares = {
        sweep.labels[result.point]: _share_filled(sweep, result, cut) for result in sweep.measured
    }
    least = [f"{name} {share:.0%}" for name, share in shares.items() if share < _FILLED]
    if least:
        yield (
            f"Large chunks leave much of {sweep.tokens:,} tokens unused, for the next result no "
            f"longer fits; used in the mean: {some(least)}"
        )


def _share_filled(sweep: ChunkingSweep, result: PointResult, cut: Cut) -> float:
    """The mean share of the budget that is used where something is, and a next result was there."""
    cases = sweep.cases(result.point, cut)
    n_results = result.cases.set_index("case_id")["n_results"].loc[cases.index]
    is_cut = (cases["results"] > 0) & (cases["results"] < n_results)
    tokens = cases.loc[is_cut, "context_tokens"]
    return float(tokens.mean()) / sweep.tokens if len(tokens) else 1.0
