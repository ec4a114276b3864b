"""Ask a service at each K in turn, so that latencies and answers of different Ks can be compared.

One K after the other would measure the hour as much as the K. So every repeat is a block in which
each K has its pass over the golden set, in an order drawn anew, after passes that only warm the
service up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import httpx

from ragwb.errors import AccessError, RunError, SourceError
from ragwb.golden.dataset import Dataset
from ragwb.golden.passages import ResolvedCase
from ragwb.measure.scores import checked_ks
from ragwb.records import Chunk
from ragwb.runs.asking import Ask, Clients, OnProgress, Question, ask_all, each
from ragwb.runs.evidence import resolve_golden
from ragwb.runs.files import disk_faults
from ragwb.runs.journal import Journal
from ragwb.runs.manifest import RunManifest
from ragwb.runs.runner import run_answers, run_retrieval
from ragwb.runs.starting import (
    check_labels,
    check_range,
    in_own_words,
    new_manifest,
    questions_of,
)
from ragwb.runs.store import Run
from ragwb.runs.writer import asked_cases, remove_empty_run, start_run
from ragwb.settings import Settings
from ragwb.sources.background import run_in_thread
from ragwb.sources.http import Sleep
from ragwb.sources.reading import FullManifest
from ragwb.sources.service import DEFAULT_TIMEOUT_S, ServiceClient, open_clients
from ragwb.sources.token import token_from_file

SEED = 20250101
REPEATS = 3
WARMUP = 1


@dataclass(frozen=True, slots=True)
class Measurement:
    """Runs made in turn, one a K.

    Attributes:
        runs: by K, ascending; ordinary sealed runs, marked as an experiment's.
        blocks: the order of the Ks in each repeat.
        seed: of the orders.
        warmup: passes before the first block whose replies were thrown away.
    """

    runs: Mapping[int, Run]
    blocks: tuple[tuple[int, ...], ...]
    seed: int
    warmup: int

    @property
    def largest(self) -> Run:
        """The run at the largest K, from which every other K's retrieval figures follow."""
        return self.runs[max(self.runs)]

    def __repr__(self) -> str:
        orders = " | ".join(" ".join(map(str, block)) for block in self.blocks)
        return f"Measurement at K = {', '.join(map(str, self.runs))}; order of the passes: {orders}"


@dataclass(frozen=True, slots=True)
class _Plan:
    dataset: Dataset
    settings: Settings
    blocks: tuple[tuple[int, ...], ...]
    warmup: int
    ask: Ask
    concurrency: int
    timeout_s: float
    identities: Mapping[str, Path]
    chunks: tuple[Chunk, ...] | None
    transport: httpx.AsyncBaseTransport | None
    sleep: Sleep
    on_progress: OnProgress | None
    # Filled while it runs, so that an interrupt can name what is kept.
    started: dict[int, str] = field(default_factory=dict)

    @property
    def ks(self) -> tuple[int, ...]:
        return tuple(sorted(self.blocks[0]))

    @property
    def is_answers(self) -> bool:
        return self.ask is ServiceClient.answer


@dataclass(frozen=True, slots=True)
class _Started:
    """A run under way at one K."""

    folder: Path
    journal: Journal


def measure_ks(
    dataset: Dataset,
    settings: Settings,
    ks: int | Iterable[int],
    *,
    repeats: int = REPEATS,
    warmup: int = WARMUP,
    seed: int = SEED,
    answers: bool = False,
    concurrency: int = 1,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    identities: Mapping[str, Path] | None = None,
    chunks: Iterable[Chunk] | None = None,
    transport: httpx.AsyncBaseTransport | None = None,
    sleep: Sleep = asyncio.sleep,
    on_progress: OnProgress | None = None,
) -> Measurement:
    """Ask a service every question at each K, the order of the Ks drawn anew in every repeat.

    Each K becomes an ordinary sealed run, marked as an experiment's, so that reports on a service
    over time leave it out. What is interrupted stays as unfinished runs.

    Args:
        dataset: the golden set.
        settings: which service, which token, and where runs are kept.
        ks: results to ask for, 1 to 100 each.
        repeats: passes over the set at each K, at least 1.
        warmup: passes at the largest K before them, whose replies are thrown away; 0 or more.
        seed: of the orders; the same gives the same.
        answers: ask for answers instead of retrieval alone.
        concurrency: questions under way at once; at more than 1 a latency holds waits for others.
        timeout_s: deadline of one attempt in seconds, > 0.
        identities: token file by label.
        chunks: a local index to resolve passages with, where the service has no /chunks.
        transport: replaces the network; a seam for tests.
        sleep: replaces the waits between attempts; a seam for tests.
        on_progress: called with (done, total) after each question, from a thread of its own.

    Raises:
        MetricError: a K is outside 1..100.
        UsageError: an argument is out of range, or a label of the set has no token.
        SourceError: the service does not answer, or refuses the token, before anything was asked.
        GoldenError: not one id or passage of the set is known to the service.
        RunError: the disk is full, or it was interrupted.
    """
    check_range("repeats", repeats, 1)
    check_range("warmup", warmup, 0)
    check_range("concurrency", concurrency, 1)
    plan = _Plan(
        dataset=dataset,
        settings=settings,
        blocks=drawn_blocks(checked_ks(ks), repeats, seed),
        warmup=warmup,
        ask=ServiceClient.answer if answers else ServiceClient.retrieve,
        concurrency=concurrency,
        timeout_s=timeout_s,
        identities=identities or {},
        chunks=None if chunks is None else tuple(chunks),
        transport=transport,
        sleep=sleep,
        on_progress=on_progress,
    )
    check_labels(dataset, plan.identities)
    try:
        run_in_thread(lambda: _ask(plan))
    except KeyboardInterrupt:
        raise RunError(_interrupted(plan)) from None
    runs = {k: _sealed(plan, k) for k in plan.ks}
    return Measurement(runs, plan.blocks, seed, warmup)


def drawn_blocks(ks: Sequence[int], repeats: int, seed: int) -> tuple[tuple[int, ...], ...]:
    """The order of the Ks in each repeat, each drawn by itself; the same seed gives the same.

    Example: drawn_blocks([1, 5], 3, seed=1) could be ((5, 1), (1, 5), (5, 1))
    """
    random = Random(seed)
    return tuple(tuple(random.sample(list(ks), len(ks))) for _ in range(repeats))


async def _ask(plan: _Plan) -> None:
    """Ask everything; what is left of it are runs that hold every answer and are not sealed."""
    tokens = {label: token_from_file(path) for label, path in plan.identities.items()}
    async with open_clients(
        plan.settings,
        identities=tokens,
        concurrency=plan.concurrency,
        timeout_s=plan.timeout_s,
        transport=plan.transport,
        sleep=plan.sleep,
    ) as clients:
        said = {label: await client.get_manifest() for label, client in clients.items()}
        resolved, _ = await resolve_golden(plan.dataset, clients, plan.chunks)
        tell = _Tally(plan, len(asked_cases(resolved)))
        await _warm_up(plan, resolved, clients, tell)
        with _all_started(plan, said, resolved) as started:
            for repeat, block in enumerate(plan.blocks, 1):
                for k in block:
                    with disk_faults(started[k].folder, "start again"):
                        await ask_all(
                            questions_of(resolved, [repeat]),
                            clients,
                            started[k].journal,
                            ask=plan.ask,
                            top_k=k,
                            concurrency=plan.concurrency,
                            on_progress=tell.within_pass,
                        )
                    tell.end_pass()


class _Tally:
    """How far all passes together have come."""

    def __init__(self, plan: _Plan, n_questions: int) -> None:
        self._tell = plan.on_progress or (lambda _done, _total: None)
        self._each = n_questions
        self._passes = 0
        self._total = n_questions * (plan.warmup + sum(map(len, plan.blocks)))

    def within_pass(self, done: int, _total: int) -> None:
        """Take note of the questions of this pass that are done."""
        self._tell(self._passes * self._each + done, self._total)

    def end_pass(self) -> None:
        """Go on with the next pass."""
        self._passes += 1


async def _warm_up(
    plan: _Plan, resolved: Sequence[ResolvedCase], clients: Clients, tell: _Tally
) -> None:
    """Passes whose replies nobody keeps; a refused token, or a call that is not there, ends all."""
    largest = max(plan.ks)
    for _ in range(plan.warmup):
        answered = 0

        async def ask_one(question: Question) -> None:
            nonlocal answered
            try:
                await plan.ask(clients[question.access], question.question, largest)
            except SourceError as error:
                # A question that fails is an error of its case, later; a token that does not hold
                # for the first will hold for none.
                if isinstance(error, AccessError) and question.access is None and not answered:
                    raise
            answered += 1
            tell.within_pass(answered, 0)

        await each(questions_of(resolved, [0]), ask_one, concurrency=plan.concurrency)
        tell.end_pass()


@contextmanager
def _all_started(
    plan: _Plan, said: Mapping[str | None, FullManifest | None], resolved: Sequence[ResolvedCase]
) -> Iterator[dict[int, _Started]]:
    """A run a K under way; of those that end without one answer nothing is left."""
    started: dict[int, _Started] = {}
    with ExitStack() as stack:
        try:
            for k in plan.ks:
                manifest = _manifest(plan, said, k)
                service = in_own_words(said[None])
                runs_dir = plan.settings.runs_dir
                run = start_run(runs_dir, manifest, resolved, service, made_by="ragwb sweep k")
                folder = stack.enter_context(run)
                journal = Journal(folder)
                stack.callback(journal.close)
                started[k] = _Started(folder, journal)
                plan.started[k] = manifest.run_id
            yield started
        except BaseException:
            for k, one in started.items():
                if not len(one.journal):
                    remove_empty_run(one.folder)
                    del plan.started[k]
            raise


def _manifest(plan: _Plan, said: Mapping[str | None, FullManifest | None], k: int) -> RunManifest:
    """The manifest that `run_retrieval` gives a run at this K, so that it can seal it."""
    return new_manifest(
        plan.dataset,
        plan.settings.base_url,
        said,
        top_k=k,
        repeats=len(plan.blocks),
        concurrency=plan.concurrency,
        answers=plan.is_answers,
        asked={"blocks": plan.blocks},
    )


def _sealed(plan: _Plan, k: int) -> Run:
    """The run at a K, sealed: it holds every answer, so that going on with it asks no question."""
    make: Callable[..., Run] = run_answers if plan.is_answers else run_retrieval
    return make(
        plan.dataset,
        plan.settings,
        top_k=k,
        repeats=len(plan.blocks),
        concurrency=plan.concurrency,
        timeout_s=plan.timeout_s,
        resume=plan.started[k],
        identities=plan.identities,
        chunks=plan.chunks,
        transport=plan.transport,
        sleep=plan.sleep,
    )


def _interrupted(plan: _Plan) -> str:
    if not plan.started:
        return "interrupted before anything was asked"
    return (
        "interrupted: latencies of a measurement that was broken off are not comparable, start it "
        f"again; what was answered is kept in {', '.join(plan.started.values())}"
    )
