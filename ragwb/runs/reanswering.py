"""Answers to the saved contexts of a run by another model or prompt, without retrieving again.

So that an experiment with the answer changes nothing but the answer: golden cases, results and
contexts are those of the saved run, to the letter.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pydantic_core

from ragwb.chat.answering import Written, ask_model
from ragwb.chat.endpoint import ChatClient
from ragwb.chat.prompt import Passage, Prompt
from ragwb.errors import AccessError, RunError, SourceError, UnreachableError, UsageError
from ragwb.files import write_whole
from ragwb.golden.passages import ResolvedCase
from ragwb.records import Answer
from ragwb.runs.asking import OnProgress, each
from ragwb.runs.evidence import explain_line
from ragwb.runs.files import disk_faults
from ragwb.runs.journal import Journal, Pair
from ragwb.runs.kinds import CONTEXTS_FROM
from ragwb.runs.manifest import RunManifest, package_versions
from ragwb.runs.results import ChunkText, Result, answer_columns, error_line
from ragwb.runs.runner import interrupted, reopened, unfinished
from ragwb.runs.saved import saved_chunks, saved_results
from ragwb.runs.store import Run, find_run
from ragwb.runs.writer import (
    EXPLAIN,
    asked_cases,
    new_run_id,
    remove_empty_run,
    seal_run,
    start_run,
    utc_now,
)
from ragwb.settings import Settings
from ragwb.sources.background import run_in_thread
from ragwb.sources.service import DEFAULT_CONCURRENCY

_HOPELESS = frozenset({400, 404, 405})
_REFUSED = (AccessError, UnreachableError)


@dataclass(slots=True)
class _Plan:
    run: Run
    client: ChatClient
    prompt: Prompt
    settings: Settings
    repeats: int
    concurrency: int
    on_progress: OnProgress | None
    saved: Mapping[Pair, Result]
    chunks: Mapping[str, ChunkText]
    run_id: str | None = field(default=None)


def answer_from_run(
    run: Run,
    client: ChatClient,
    prompt: Prompt,
    settings: Settings,
    *,
    repeats: int | None = None,
    concurrency: int = DEFAULT_CONCURRENCY,
    resume: str | Path | None = None,
    on_progress: OnProgress | None = None,
) -> Run:
    """Have a chat model answer every question of a saved run over its saved contexts.

    A question whose call failed in the saved run, or fails now for good, is an error of its case.

    Args:
        run: the saved run; its service must have told contexts and texts.
        client: the model; the caller closes it.
        prompt: what it is asked.
        settings: where runs are kept.
        repeats: answers to each question, at least 1; None: as many as the saved run has. Beyond
            those its contexts are used again from the first on.
        concurrency: calls under way at once, at least 1.
        resume: an unfinished run of this kind to go on with.
        on_progress: called with (done, total) after each answer, from the run's own thread.

    Returns:
        A sealed run of its own. Its manifest is that of the saved run but for the answering, and
        names no address of a service, for none was asked. Its milliseconds are those of the model.

    Raises:
        UsageError: repeats or concurrency below 1.
        RunError: the saved run has no contexts or no texts; or as `run_answers`.
        SourceError: the endpoint refuses the first question, or is not there: so it would be for
            every one.
    """
    repeats = run.manifest.repeats if repeats is None else repeats
    if repeats < 1 or concurrency < 1:
        raise UsageError("repeats and concurrency must be at least 1")
    plan = _Plan(
        run=run,
        client=client,
        prompt=prompt,
        settings=settings,
        repeats=repeats,
        concurrency=concurrency,
        on_progress=on_progress,
        saved={(result.case_id, result.repeat): result for result in saved_results(run)},
        chunks={chunk.chunk_id: chunk for chunk in saved_chunks(run)},
    )
    _check_contexts(plan)
    try:
        return _in_folder(plan, resume)
    except KeyboardInterrupt:
        raise RunError(interrupted(plan.run_id)) from None


def _in_folder(plan: _Plan, resume: str | Path | None) -> Run:
    manifest, resolved = _manifest(plan), plan.run.golden()
    if resume is not None:
        folder = find_run(resume, plan.settings)
        unfinished(folder)
        with reopened(folder, manifest) as (started, held):
            return _fill(plan, folder, started, held)
    service = {**plan.run.service(), CONTEXTS_FROM: plan.run.run_id}
    with start_run(plan.settings.runs_dir, manifest, resolved, service) as folder:
        return _fill(plan, folder, manifest, resolved)


def _fill(
    plan: _Plan, folder: Path, manifest: RunManifest, resolved: Sequence[ResolvedCase]
) -> Run:
    plan.run_id = manifest.run_id
    journal = Journal(folder)
    pairs = [
        (case.case.id, repeat)
        for repeat in range(1, plan.repeats + 1)
        for case in asked_cases(resolved)
    ]
    try:
        with disk_faults(folder, f"go on with --resume {manifest.run_id}"):
            run_in_thread(lambda: _answer_all(plan, pairs, journal))
            lines = _explanations(plan)
            if lines:
                write_whole(folder / EXPLAIN, lines)
            results = _results(plan, resolved, journal)
            known = plan.chunks.values()
            sealed = seal_run(folder, manifest, resolved, results, lambda: known)
    except SourceError:
        if not len(journal):
            remove_empty_run(folder)
        raise
    finally:
        journal.close()
    return Run(folder, sealed)


async def _answer_all(plan: _Plan, pairs: Sequence[Pair], journal: Journal) -> None:
    todo = [pair for pair in pairs if pair not in journal]
    done = len(pairs) - len(todo)

    async def answer(pair: Pair) -> None:
        nonlocal done
        # In a thread: the client is a plain one, and each call waits for a model.
        line = await asyncio.to_thread(_line, plan, pair, journal)
        journal.append(pair, line)
        done += 1
        if plan.on_progress is not None:
            plan.on_progress(done, len(pairs))

    await each(todo, answer, concurrency=plan.concurrency)
    journal.sync()


def _line(plan: _Plan, pair: Pair, journal: Journal) -> bytes:
    """One answer as a line of the journal, or why there is none."""
    saved = _saved(plan, pair)
    if saved.status != "ok":
        return error_line(*pair, saved.question, saved.error or "", saved.attempts)
    try:
        written = ask_model(plan.client, plan.prompt, saved.question, _passages(plan, saved))
    except SourceError as error:
        # Refused, or not there: the first question tells what every other one would meet.
        refused = isinstance(error, _REFUSED) or error.status in _HOPELESS
        if refused and not len(journal):
            raise
        return error_line(*pair, saved.question, str(error), error.attempts)
    except RunError as error:
        return error_line(*pair, saved.question, str(error), 1)
    return _answer_line(pair, written)


def _answer_line(pair: Pair, written: Written) -> bytes:
    line = {
        "case_id": pair[0],
        "repeat": pair[1],
        "answer": written.answer.model_dump(by_alias=True),
        "completion": None if written.completion is None else asdict(written.completion),
    }
    return json.dumps(line).encode() + b"\n"


def _results(plan: _Plan, resolved: Sequence[ResolvedCase], journal: Journal) -> Iterator[Result]:
    for case in asked_cases(resolved):
        for repeat in range(1, plan.repeats + 1):
            pair = (case.case.id, repeat)
            said = pydantic_core.from_json(journal.read(pair))
            yield _result(replace(_saved(plan, pair), repeat=repeat), said)


def _result(saved: Result, said: Mapping[str, Any]) -> Result:
    """A saved result with another answer; what timed the retrieval is left out."""
    if "error" in said:
        return Result(
            case_id=saved.case_id,
            repeat=saved.repeat,
            question=saved.question,
            status="error",
            error=said["error"],
            attempts=said["attempts"],
        )
    took = said["completion"] or {}
    observed = [name for name in saved.observed if name not in {"answer", "timings_ms"}]
    return replace(
        saved,
        latency_ms=took.get("latency_ms"),
        waited_ms=took.get("waited_ms"),
        attempts=took.get("attempts", 1),
        prompt_tokens=took.get("prompt_tokens"),
        completion_tokens=took.get("completion_tokens"),
        model_calls=1,
        timings_ms=None,
        observed=[*observed, "answer"],
        **answer_columns(Answer.model_validate(said["answer"])),
    )


def _saved(plan: _Plan, pair: Pair) -> Result:
    """The saved result whose context is used; with more repeats than it has, from the first on."""
    case_id, repeat = pair
    return plan.saved[case_id, (repeat - 1) % plan.run.manifest.repeats + 1]


def _passages(plan: _Plan, saved: Result) -> list[Passage]:
    context = saved.stages.get("context")
    if context is None:
        raise RunError("the saved run has no context of this question")
    return [_passage(plan, chunk_id) for chunk_id in context.chunk_ids]


def _passage(plan: _Plan, chunk_id: str) -> Passage:
    chunk = plan.chunks.get(chunk_id)
    if chunk is None or chunk.text is None:
        raise RunError(f"the saved run has no text of {chunk_id}, which is in the context")
    return Passage(chunk_id, chunk.text, chunk.title, chunk.document_version)


def _check_contexts(plan: _Plan) -> None:
    answered = [result for result in plan.saved.values() if result.status == "ok"]
    if answered and not any("context" in result.stages for result in answered):
        raise RunError(
            f"run {plan.run.run_id}: its service told no context, so there is nothing to answer on"
        )


def _explanations(plan: _Plan) -> bytes:
    """What `/explain` said of the saved run, under the repeats that use its results."""
    saved = plan.run.manifest.repeats
    return b"".join(
        explain_line(replace(said, repeat=repeat))
        for said in plan.run.explanations()
        for repeat in range(1, plan.repeats + 1)
        if (repeat - 1) % saved + 1 == said.repeat
    )


def _manifest(plan: _Plan) -> RunManifest:
    now, saved, model = utc_now(), plan.run.manifest, plan.client.model
    asked = [saved.run_id, model.model, model.url, plan.prompt.name, model.temperature]
    return saved.model_copy(
        update={
            "run_id": new_run_id([*asked, plan.repeats], now),
            "created_at": now.isoformat(),
            "base_url": None,
            "answer_model": model.model,
            "prompt_version": plan.prompt.name,
            "temperature": model.temperature,
            "repeats": plan.repeats,
            "concurrency": plan.concurrency,
            "packages": package_versions(),
            "content_hash": None,
        }
    )
