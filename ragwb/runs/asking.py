"""Asking: every question of a run, several at a time, each answer journaled before the next."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import pydantic_core

from ragwb.errors import AccessError, RunError, SourceError
from ragwb.runs.journal import Journal
from ragwb.runs.results import error_line, journal_line
from ragwb.sources.service import Reply, ServiceClient

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

# What a machine that loses power may lose; a killed process loses nothing.
SYNC_EVERY_S = 1.0
_NO_SUCH_CALL = frozenset({404, 405, 501})

T = TypeVar("T")
Clients = Mapping[str | None, ServiceClient]
# A call that asks one question: `ServiceClient.retrieve` or `ServiceClient.answer`.
Ask = Callable[[ServiceClient, str, int], Awaitable[Reply]]
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
    ask: Ask = ServiceClient.retrieve,
    top_k: int,
    concurrency: int,
    on_progress: OnProgress | None = None,
) -> None:
    """Ask what the journal does not hold yet; a call that fails for good is an error of its case.

    Raises:
        SourceError: before anything was answered, the default token was refused, or the service
            said that it has no `/answer`: so it will be with every question.
        RunError: the journal could not be written.
    """
    todo = [q for q in questions if (q.case_id, q.repeat) not in journal]
    tally = _Tally(done=len(questions) - len(todo), total=len(questions))

    async def ask_one(question: Question) -> None:
        call = partial(ask, clients[question.access], question.question, top_k)
        await _ask_one(question, call, journal, tally, is_hopeless=partial(_is_hopeless, ask))
        if on_progress is not None:
            on_progress(tally.done, tally.total)

    async with _synced(journal):
        await each(todo, ask_one, concurrency=concurrency)


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
    question: Question,
    call: Callable[[], Awaitable[Reply]],
    journal: Journal,
    tally: _Tally,
    *,
    is_hopeless: Callable[[SourceError], bool],
) -> None:
    case_id, repeat, text = question.case_id, question.repeat, question.question
    try:
        reply = await call()
    except SourceError as error:
        if is_hopeless(error) and question.access is None and not tally.answered:
            raise
        line = error_line(case_id, repeat, text, str(error), error.attempts)
    else:
        tally.answered += 1
        line = journal_line(case_id, repeat, text, reply)
    journal.append((case_id, repeat), line)
    tally.done += 1


def _is_hopeless(ask: Ask, error: SourceError) -> bool:
    """Whether a first failure will be that of every question."""
    no_answers = ask is ServiceClient.answer and error.status in _NO_SUCH_CALL
    return isinstance(error, AccessError) or no_answers


def check_same_call(journal: Journal, ask: Ask) -> None:
    """Refuse to go on with retrievals as answers, or with answers as retrievals.

    Raises:
        RunError: the journal was begun with the other call.
    """
    answers = ask is ServiceClient.answer
    for pair in journal:
        reply = pydantic_core.from_json(journal.read(pair)).get("reply")
        if reply is not None and ("answer" in reply) != answers:
            began, now = ("retrieval", "answers") if answers else ("answers", "retrieval")
            raise RunError(f"this run was begun with {began} and cannot go on with {now}")
        if reply is not None:
            return


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
