"""Asking `/explain` for what a saved run does not tell, and keeping the answers beside it.

None of it is needed to open a run: whatever stands in the way of asking is a line to be shown, and
the run is read as it is.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from ragwb.errors import AccessError, RunError, SourceError
from ragwb.html import plain
from ragwb.records import Explanation
from ragwb.runs.asking import Clients, OnProgress, each
from ragwb.runs.evidence import explain_line
from ragwb.runs.sidecar import append_lines
from ragwb.runs.store import Explained, Run
from ragwb.runs.writer import EXPLAIN, utc_now
from ragwb.settings import Settings
from ragwb.sources.background import run_in_thread
from ragwb.sources.http import LOOPBACK, Sleep
from ragwb.sources.reading import FullManifest
from ragwb.sources.service import (
    DEFAULT_CONCURRENCY,
    DEFAULT_TIMEOUT_S,
    open_clients,
)
from ragwb.sources.token import TOKEN_VARIABLE, token_from_file

# A service that is gone is no fault here, and must not be waited for.
MAX_ATTEMPTS = 2
# What must be as it was for an answer of today to say anything of the run.
_LOCKED = ("knowledge_snapshot", "index_version")
# Reasons that come and go with the date, without any change of the knowledge.
_TIME_BOUND = frozenset({"EFFECTIVE_TIME", "VERSION"})


@dataclass(frozen=True, slots=True)
class Wanted:
    """Chunks of a case that `/explain` has not been asked for.

    Attributes:
        question: the case's own, never a rewritten one.
        access: the label of the identity that asked it, None for the default one.
        chunk_ids: by repeat.
    """

    case_id: str
    question: str
    access: str | None
    chunk_ids: Mapping[int, Sequence[str]]


@dataclass(slots=True)
class Asked:
    """What came of asking.

    Attributes:
        explained: what the service said of each result's chunks.
        warnings: what was not asked, not used or not kept, and why; a line each.
        unasked: why a case's identity was not asked, by its label (None: the default one); a token
            that may not ask is no such reason.
    """

    explained: list[Explained] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    unasked: dict[str | None, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Plan:
    run: Run
    wanted: Sequence[Wanted]
    settings: Settings
    identities: Mapping[str, Path]
    concurrency: int
    timeout_s: float
    transport: httpx.AsyncBaseTransport | None
    sleep: Sleep
    on_progress: OnProgress | None
    now: Callable[[], datetime]


def explain_chunks(
    run: Run,
    wanted: Sequence[Wanted],
    settings: Settings,
    *,
    identities: Mapping[str, Path] | None = None,
    concurrency: int = DEFAULT_CONCURRENCY,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    transport: httpx.AsyncBaseTransport | None = None,
    sleep: Sleep = asyncio.sleep,
    on_progress: OnProgress | None = None,
    now: Callable[[], datetime] = utc_now,
) -> Asked:
    """Ask the settings' service for chunks of a saved run, and add its answers to `explain.jsonl`.

    Nothing is asked when the service's knowledge, index or identity are not those of the run any
    more. An interrupt keeps what was answered.

    Args:
        run: a sealed run.
        wanted: what to ask for, a case each; a case is asked once for all its repeats.
        settings: which service, and which token.
        identities: token file by label, for the cases with that access; they go to the settings'
            service (see `is_token_meant_for`).
        concurrency: questions under way at once, at least 1.
        timeout_s: deadline of one attempt in seconds, > 0.
        transport: replaces the network; a seam for tests.
        sleep: replaces the waits between attempts; a seam for tests.
        on_progress: called with (done, total) after each case, from a thread of its own.
        now: the present; a seam for tests.

    Raises:
        UsageError: the base URL or the token's source is not usable.
    """
    asked = Asked()
    if not wanted:
        return asked
    plan = _Plan(
        run=run,
        wanted=wanted,
        settings=settings,
        identities=identities or {},
        concurrency=concurrency,
        timeout_s=timeout_s,
        transport=transport,
        sleep=sleep,
        on_progress=on_progress,
        now=now,
    )
    try:
        run_in_thread(lambda: _ask(plan, asked))
    finally:
        _keep(run, asked)
    return asked


def is_token_meant_for(
    settings: Settings, base_url: str, identities: Mapping[str, Path] | None = None
) -> bool:
    """Whether the tokens in force may go to an address that nobody typed but a run names.

    A run may come from somebody else: tokens go to the settings' own service and to this very
    machine, and where there is none, for no label either, nothing can be lost.
    """
    given = (settings.token_file, settings.token_command, os.environ.get(TOKEN_VARIABLE))
    has_token = any(given) or bool(identities)
    named, own = urlsplit(base_url), urlsplit(settings.base_url)
    is_own = (named.scheme, named.netloc) == (own.scheme, own.netloc)
    return not has_token or is_own or named.hostname in LOOPBACK


async def _ask(plan: _Plan, asked: Asked) -> None:
    labels = {entry.access for entry in plan.wanted if entry.access in plan.identities}
    tokens = {label: token_from_file(plan.identities[label]) for label in labels if label}
    try:
        async with open_clients(
            plan.settings,
            identities=tokens,
            concurrency=plan.concurrency,
            timeout_s=plan.timeout_s,
            max_attempts=MAX_ATTEMPTS,
            transport=plan.transport,
            sleep=plan.sleep,
        ) as clients:
            said = await clients[None].get_manifest()
            changed = _changed(plan.run, said)
            if changed is not None:
                asked.warnings.append(f"{plan.settings.base_url} is not asked: {changed}")
                why = "its knowledge or index is another one than in the run"
                asked.unasked |= dict.fromkeys((entry.access for entry in plan.wanted), why)
                return
            known = [
                label
                for label in dict.fromkeys(entry.access for entry in plan.wanted)
                if await _is_known(plan, clients, label, said, asked)
            ]
            await _ask_all(plan, clients, known, asked)
    except SourceError as error:
        asked.warnings.append(f"/explain is not asked: {error}")
        for entry in plan.wanted:
            _note_unanswered(asked, entry.access, error)


def _note_unanswered(asked: Asked, label: str | None, error: SourceError) -> None:
    """Keep that a service did not answer; a refusal means what it says, not for this token."""
    if not isinstance(error, AccessError):
        asked.unasked[label] = "the service does not answer"


def _changed(run: Run, said: FullManifest | None) -> str | None:
    """What is another one now than when the run was made."""
    for name in _LOCKED:
        before, after = getattr(run.manifest, name), getattr(said, name, None)
        if before != after:
            was, is_ = (plain(value or "not told", width=20) for value in (before, after))
            return f"its {name} was {was} and is {is_}, which says nothing of this run"
    return None


async def _is_known(
    plan: _Plan,
    clients: Clients,
    label: str | None,
    default: FullManifest | None,
    asked: Asked,
) -> bool:
    """Whether there is a token of the identity that asked in the run; if not, that is said."""
    fault: str | None = None
    if label not in clients:
        fault = f"give --identity {plain(label)}=TOKEN_FILE"
    else:
        try:
            said = default if label is None else await clients[label].get_manifest()
        except SourceError as error:
            fault = str(error)
        else:
            if _identity(said) != _identity_of_run(plan.run, label):
                fault = "the token is of another identity than in the run"
    if fault is None:
        return True
    asked.unasked[label] = "there is no token of the identity that asked in the run"
    n_cases = sum(entry.access == label for entry in plan.wanted)
    who = "the default identity" if label is None else plain(label)
    asked.warnings.append(f"{n_cases} cases asked as {who} are not explained: {fault}")
    return False


def _identity(said: FullManifest | None) -> dict[str, object] | None:
    return None if said is None or said.identity is None else said.identity.model_dump()


def _identity_of_run(run: Run, label: str | None) -> dict[str, object] | None:
    """Who asked, as the service named them; None when it did not."""
    saved = dict(run.manifest.identity or {})
    labels = saved.pop("labels", None)
    if label is None:
        return saved or None
    # A manifest that ragwb did not write may hold anything there.
    return (labels.get(label) or None) if isinstance(labels, Mapping) else None


async def _ask_all(
    plan: _Plan, clients: Clients, known: Collection[str | None], asked: Asked
) -> None:
    """Ask every case as its own identity; one whose `/explain` is closed is not asked again."""
    open_to = set(known)
    entries = [entry for entry in plan.wanted if entry.access in known]
    is_another_day = _day_of(plan.run) != plan.now().date()
    n_done = n_set_aside = n_untold = 0

    async def ask(entry: Wanted) -> None:
        nonlocal n_done, n_set_aside, n_untold
        if entry.access in open_to:
            answered = await _explanations(entry, clients, open_to, asked)
            said = _unambiguous(answered)
            if entry.access in open_to:
                n_untold += len(_asked_ids(entry) - {one.chunk_id for one in said})
            usable = [one for one in said if not (is_another_day and _is_time_bound(one))]
            n_set_aside += len(said) - len(usable)
            asked.explained += _by_repeat(entry, usable)
        n_done += 1
        if plan.on_progress is not None:
            plan.on_progress(n_done, len(entries))

    await each(entries, ask, concurrency=plan.concurrency)
    if n_set_aside:
        asked.warnings.append(
            f"{n_set_aside} chunks are not in force today, which says nothing of the day of the "
            "run: not used"
        )
    if n_untold:
        asked.warnings.append(
            f"/explain said nothing, or two things, of {n_untold} chunks that it was asked for: "
            "they stay not observed"
        )


def _day_of(run: Run) -> date | None:
    """The day on which a run was made; None when its manifest does not tell one."""
    try:
        return datetime.fromisoformat(run.manifest.created_at).date()
    except ValueError:
        return None


def _asked_ids(entry: Wanted) -> set[str]:
    return {chunk_id for ids in entry.chunk_ids.values() for chunk_id in ids}


def _unambiguous(said: Sequence[Explanation]) -> list[Explanation]:
    """What is said once of a chunk, or twice the same; what contradicts itself says nothing."""
    by_id: dict[str, Explanation] = {}
    contradicted: set[str] = set()
    for one in said:
        if by_id.setdefault(one.chunk_id, one) != one:
            contradicted.add(one.chunk_id)
    return [one for chunk_id, one in by_id.items() if chunk_id not in contradicted]


async def _explanations(
    entry: Wanted, clients: Clients, open_to: set[str | None], asked: Asked
) -> list[Explanation]:
    """What the service says of a case's chunks; nothing, and no more asking, where it refuses."""
    chunk_ids = list(dict.fromkeys(i for ids in entry.chunk_ids.values() for i in ids))
    try:
        said = await clients[entry.access].explain(entry.question, chunk_ids)
        why = "the service has none, or not for this token (scope knowledge:eval:explain)"
    except SourceError as error:
        said, why = None, str(error)
        _note_unanswered(asked, entry.access, error)
    if said is None and entry.access in open_to:
        open_to.discard(entry.access)
        asked.warnings.append(f"/explain is not asked further: {why}")
    return said or []


def _is_time_bound(said: Explanation) -> bool:
    """Whether nothing but the date keeps the chunk away."""
    reasons = set(said.filtered_by or ())
    return not said.visible and bool(reasons) and reasons <= _TIME_BOUND


def _by_repeat(entry: Wanted, said: Sequence[Explanation]) -> list[Explained]:
    by_id = {explanation.chunk_id: explanation for explanation in said}
    return [
        Explained(entry.case_id, repeat, entry.question, by_id[chunk_id])
        for repeat, chunk_ids in entry.chunk_ids.items()
        for chunk_id in chunk_ids
        if chunk_id in by_id
    ]


def _keep(run: Run, asked: Asked) -> None:
    """Add the answers to the run's sidecar, those that another process added meanwhile left out."""

    def new_lines() -> bytes:
        kept = {_key(entry) for entry in run.explanations()}
        return b"".join(explain_line(one) for one in asked.explained if _key(one) not in kept)

    if not asked.explained:
        return
    try:
        append_lines(
            run.path / EXPLAIN,
            new_lines,
            then="triage again; what /explain said is used this time and not kept",
        )
    except RunError as error:
        asked.warnings.append(str(error))


def _key(entry: Explained) -> tuple[str, int, str]:
    return entry.case_id, entry.repeat, entry.explanation.chunk_id
