"""Running a golden set against a service: concurrent, resumable, synchronous to the caller."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import httpx

from ragwb.errors import RunError, SourceError, UsageError
from ragwb.files import write_whole
from ragwb.golden.dataset import Dataset
from ragwb.golden.passages import ResolvedCase, watch_forbidden
from ragwb.records import MAX_TOP_K, Chunk
from ragwb.runs.asking import Ask, Clients, OnProgress, ask_all, check_same_call
from ragwb.runs.evidence import Seen, complete_chunks, explain_lost, resolve_golden
from ragwb.runs.files import disk_faults
from ragwb.runs.id_space import check_id_space
from ragwb.runs.journal import JOURNAL, Journal, locked
from ragwb.runs.listing import load_manifest
from ragwb.runs.manifest import RunManifest, diff_manifests
from ragwb.runs.results import Result, result_from_line
from ragwb.runs.starting import (
    check_labels,
    check_range,
    in_own_words,
    new_manifest,
    questions_of,
)
from ragwb.runs.store import Run, find_run, load_golden
from ragwb.runs.tables import write_tables
from ragwb.runs.writer import (
    EXPLAIN,
    GOLDEN,
    asked_cases,
    close_run,
    golden_lines,
    remove_empty_run,
    start_run,
)
from ragwb.settings import Settings
from ragwb.sources.background import run_in_thread
from ragwb.sources.http import Sleep
from ragwb.sources.reading import FullManifest
from ragwb.sources.service import (
    DEFAULT_CONCURRENCY,
    DEFAULT_TIMEOUT_S,
    ServiceClient,
    open_clients,
)
from ragwb.sources.token import token_from_file

# Conditions of the asking, not of the answers: they may change when a run goes on.
_MAY_CHANGE = frozenset({"concurrency", "packages"})


@dataclass(slots=True)
class _Plan:
    ask: Ask
    dataset: Dataset
    settings: Settings
    top_k: int
    repeats: int
    concurrency: int
    timeout_s: float
    identities: Mapping[str, Path]
    chunks: Iterable[Chunk] | None
    transport: httpx.AsyncBaseTransport | None
    sleep: Sleep
    on_progress: OnProgress | None
    resume: str | Path | None
    resumed: Path | None = field(default=None)
    # Set when the run has a folder, so that an interrupt can say how to go on.
    run_id: str | None = field(default=None)


def run_retrieval(
    dataset: Dataset,
    settings: Settings,
    *,
    top_k: int,
    repeats: int = 1,
    concurrency: int = DEFAULT_CONCURRENCY,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    resume: str | Path | None = None,
    identities: Mapping[str, Path] | None = None,
    chunks: Iterable[Chunk] | None = None,
    transport: httpx.AsyncBaseTransport | None = None,
    sleep: Sleep = asyncio.sleep,
    on_progress: OnProgress | None = None,
) -> Run:
    """Ask a service every question of a golden set and keep every answer, as a sealed run.

    Retired cases are not asked. A call that fails for good is an error of its case; the run goes
    on. Works inside a running event loop too, such as Jupyter's.

    Args:
        dataset: the golden set.
        settings: which service, which token, and where runs are kept.
        top_k: results to ask for, 1 to 100; nothing beyond is known afterwards.
        repeats: passes over the set, at least 1, fixed before the run starts.
        concurrency: questions under way at once, at least 1.
        timeout_s: deadline of one attempt in seconds, > 0.
        resume: an unfinished run to go on with; only what it has not answered is asked.
        identities: token file by label; a case with `access: label` is asked with that token.
        chunks: a local index to resolve passages with, where the service has no /chunks.
        transport: replaces the network; a seam for tests.
        sleep: replaces the waits between attempts; a seam for tests.
        on_progress: called with (done, total) after each question, from the run's own thread.

    Raises:
        UsageError: an argument is out of range, or a label of the set has no token.
        SourceError: the service does not answer, or refuses the token, before anything was asked.
        GoldenError: not one id or passage of the set is known to the service.
        RunError: the run to resume is not there, is sealed, locked or of other conditions; the disk
            is full; or the run was interrupted, and how to go on.
    """
    plan = _Plan(
        ask=ServiceClient.retrieve,
        dataset=dataset,
        settings=settings,
        top_k=top_k,
        repeats=repeats,
        concurrency=concurrency,
        timeout_s=timeout_s,
        identities=identities or {},
        chunks=chunks,
        transport=transport,
        sleep=sleep,
        on_progress=on_progress,
        resume=resume,
    )
    return _make(plan)


def run_answers(
    dataset: Dataset,
    settings: Settings,
    *,
    top_k: int,
    repeats: int = 1,
    concurrency: int = DEFAULT_CONCURRENCY,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    resume: str | Path | None = None,
    identities: Mapping[str, Path] | None = None,
    chunks: Iterable[Chunk] | None = None,
    transport: httpx.AsyncBaseTransport | None = None,
    sleep: Sleep = asyncio.sleep,
    on_progress: OnProgress | None = None,
) -> Run:
    """Ask a service to answer every question of a golden set, as a sealed run.

    The run holds what one of `run_retrieval` holds, and the answers; arguments and errors are the
    same. A service without `/answer` ends the run before anything is kept.
    """
    plan = _Plan(
        ask=ServiceClient.answer,
        dataset=dataset,
        settings=settings,
        top_k=top_k,
        repeats=repeats,
        concurrency=concurrency,
        timeout_s=timeout_s,
        identities=identities or {},
        chunks=chunks,
        transport=transport,
        sleep=sleep,
        on_progress=on_progress,
        resume=resume,
    )
    return _make(plan)


def _make(plan: _Plan) -> Run:
    check_range("top_k", plan.top_k, 1, MAX_TOP_K)
    check_range("repeats", plan.repeats, 1)
    check_range("concurrency", plan.concurrency, 1)
    if not plan.timeout_s > 0:
        raise UsageError(f"timeout {plan.timeout_s:g}: must be more than 0 seconds")
    check_labels(plan.dataset, plan.identities)
    if plan.resume is not None:
        plan.resumed = _resumable(plan.resume, plan.settings)
    try:
        run = run_in_thread(lambda: _run(plan))
    except KeyboardInterrupt:
        raise RunError(interrupted(plan.run_id)) from None
    check_id_space(run)
    return run


async def _run(plan: _Plan) -> Run:
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
        manifest = _manifest(plan, said)
        if plan.resumed is None:
            resolved, known = await resolve_golden(plan.dataset, clients, plan.chunks)
            service = in_own_words(said[None])
            with start_run(plan.settings.runs_dir, manifest, resolved, service) as folder:
                return await _fill(plan, folder, manifest, resolved, known, clients)
        with reopened(plan.resumed, manifest) as (started, resolved):
            known = list(plan.chunks or ())
            return await _fill(plan, plan.resumed, started, resolved, known, clients)


async def _fill(
    plan: _Plan,
    folder: Path,
    manifest: RunManifest,
    resolved: Sequence[ResolvedCase],
    known: Sequence[Chunk],
    clients: Clients,
) -> Run:
    """Ask what is left and seal."""
    plan.run_id = manifest.run_id
    journal = Journal(folder)
    try:
        check_same_call(journal, plan.ask)
        with disk_faults(folder, f"go on with --resume {manifest.run_id}"):
            await ask_all(
                questions_of(resolved, range(1, plan.repeats + 1)),
                clients,
                journal,
                ask=plan.ask,
                top_k=plan.top_k,
                concurrency=plan.concurrency,
                on_progress=plan.on_progress,
            )
            sealed = await _seal(plan, folder, manifest, resolved, known, clients, journal)
    except SourceError:
        if not len(journal):
            remove_empty_run(folder)
        raise
    finally:
        journal.close()
    return Run(folder, sealed)


async def _seal(
    plan: _Plan,
    folder: Path,
    manifest: RunManifest,
    resolved: Sequence[ResolvedCase],
    known: Sequence[Chunk],
    clients: Clients,
    journal: Journal,
) -> RunManifest:
    seen = Seen({case.case.id: case for case in resolved}, plan.top_k)
    written = write_tables(folder, seen.watch(_results(resolved, plan.repeats, journal)))
    lines = await explain_lost(seen.lost.values(), clients, concurrency=plan.concurrency)
    if lines:
        write_whole(folder / EXPLAIN, lines)
    if plan.chunks is not None and seen.chunks.keys().isdisjoint(c.chunk_id for c in known):
        # A local index with other ids than the service's tells nothing of what the service holds:
        # without it the check of id spaces sees the two apart, instead of a score of 0.
        known = ()
    chunks = await complete_chunks(seen, known, clients, concurrency=plan.concurrency)
    told = (Chunk.model_validate(asdict(chunk)) for chunk in chunks)
    watched = watch_forbidden(resolved, told)
    write_whole(folder / GOLDEN, golden_lines(watched))
    return close_run(folder, manifest, watched, written, chunks)


def _results(resolved: Sequence[ResolvedCase], repeats: int, journal: Journal) -> Iterator[Result]:
    """The journal's results in the order of the tables: the golden set's, then repeats."""
    for case in asked_cases(resolved):
        for repeat in range(1, repeats + 1):
            yield result_from_line(journal.read((case.case.id, repeat)))


def _manifest(plan: _Plan, said: Mapping[str | None, FullManifest | None]) -> RunManifest:
    return new_manifest(
        plan.dataset,
        plan.settings.base_url,
        said,
        top_k=plan.top_k,
        repeats=plan.repeats,
        concurrency=plan.concurrency,
        answers=plan.ask is ServiceClient.answer,
        asked={"repeats": plan.repeats, "identities": sorted(plan.identities)},
    )


def _resumable(ref: str | Path, settings: Settings) -> Path:
    folder = find_run(ref, settings)
    unfinished(folder)
    return folder


@contextmanager
def reopened(
    folder: Path, manifest: RunManifest
) -> Iterator[tuple[RunManifest, list[ResolvedCase]]]:
    """Hold an unfinished run that is asked to go on, under the conditions it was started with."""
    with locked(folder):
        # Another process may have sealed it between the first look and the lock.
        started = unfinished(folder)
        _check_same_conditions(started, manifest)
        if not (folder / JOURNAL).exists():
            raise RunError(f"{folder / JOURNAL}: not there; start a new run")
        yield started, load_golden(folder)


def unfinished(folder: Path) -> RunManifest:
    """The manifest of a run that can go on.

    Raises:
        RunError: it is sealed.
    """
    started = load_manifest(folder)
    if started.sealed:
        raise RunError(f"run {folder.name} is sealed and never changes: start a new run")
    return started


def _check_same_conditions(started: RunManifest, manifest: RunManifest) -> None:
    changes = [c for c in diff_manifests(started, manifest) if c.field not in _MAY_CHANGE]
    if changes:
        first = changes[0]
        raise RunError(
            f"run {started.run_id} cannot go on: {first.field} was {first.baseline!r} when it "
            f"started and is {first.candidate!r} now; start a new run"
        )


def interrupted(run_id: str | None) -> str:
    """What to say to who interrupts a run: how to go on with it."""
    if run_id is None:
        return "interrupted before anything was asked"
    return (
        "interrupted; what was answered is kept: the same command with "
        f"--resume {run_id} asks for the rest"
    )
