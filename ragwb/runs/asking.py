"""Asking: every question of a run, several at a time, each answer journaled before the next."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from ragwb.errors import AccessError, SourceError
from ragwb.runs.journal import Journal
from ragwb.runs.results import error_line, journal_line
from ragwb.sources.service import ServiceClient

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

# What a machine that loses power may lose; a killed process loses nothing.
SYNC_EVERY_S = 1.0

T = TypeVar("T")
Clients = Mapping[str | None, ServiceClient]
# Called with (done, total) from the run's own thread.
OnProgress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Question:
    """One question of a run: the case, the repeat from 1, and the label of who asks it."""

    case_id: str
    repeat: int
    question: str
    access: str | None


@dataclass(slots=True)
class _Tally:
    done: int
    total: int
    answered: int = 0


async def ask_all(
    questions: Sequence[Question],
    clients: Clients,
    journal: Journal,
    *,
    top_k: int,
    concurrency: int,
    on_progress: OnProgress | None = None,
) -> None:
    """Ask what the journal does not hold yet; a call that fails for good is an error of its case.

    Raises:
        AccessError: the default token was refused before anything was answered: so will be every
            question.
        RunError: the journal could not be written.
    """
    todo = [q for q in questions if (q.case_id, q.repeat) not in journal]
    tally = _Tally(done=len(questions) - len(todo), total=len(questions))

    async def ask(question: Question) -> None:
        await _ask_one(question, clients[question.access], journal, top_k, tally)
        if on_progress is not None:
            on_progress(tally.done, tally.total)

    async with _synced(journal):
        await each(todo, ask, concurrency=concurrency)


async def each(
    items: Iterable[T], work: Callable[[T], Awaitable[None]], *, concurrency: int
) -> None:
    """Await `work` for every item, in order, `concurrency` at a time; the first error ends all."""
    # One iterator for all workers: there is no await inside `next`, so each item is taken once.
    waiting = iter(items)

    async def take() -> None:
        for item in waiting:
            await work(item)

    workers = [asyncio.ensure_future(take()) for _ in range(concurrency)]
    try:
        await asyncio.gather(*workers)
    finally:
        await _stop(workers)


async def _ask_one(
    question: Question, client: ServiceClient, journal: Journal, top_k: int, tally: _Tally
) -> None:
    case_id, repeat, text = question.case_id, question.repeat, question.question
    try:
        reply = await client.retrieve(text, top_k)
    except SourceError as error:
        if isinstance(error, AccessError) and question.access is None and not tally.answered:
            raise
        line = error_line(case_id, repeat, text, str(error), error.attempts)
    else:
        tally.answered += 1
        line = journal_line(case_id, repeat, text, reply)
    journal.append((case_id, repeat), line)
    tally.done += 1


@asynccontextmanager
async def _synced(journal: Journal) -> AsyncIterator[None]:
    """Put the journal on the disk now and then, in a thread: it must not hold up the questions."""

    async def sync_regularly() -> None:
        while True:
            await asyncio.sleep(SYNC_EVERY_S)
            await asyncio.to_thread(journal.sync)

    task = asyncio.ensure_future(sync_regularly())
    try:
        yield
    finally:
        await _stop([task])
        journal.sync()


async def _stop(tasks: Sequence[asyncio.Future[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
