"""One result: what a service answered to one golden case in one repeat, ready for the tables.

A result is built from a service's reply while a run goes on, read back from a line of the journal
when it is sealed, or made by hand (imports, synthetic runs). Stages are kept as parallel lists,
since a run of 100,000 cases holds fifty million candidates.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pydantic_core

from ragwb.records import CHANNEL_STAGES, STAGES, Answer, Answered, Candidate, Retrieval
from ragwb.sources.service import Reply

# Stages that are no channels, in pipeline order.
LATER_STAGES = tuple(stage for stage in STAGES if stage not in CHANNEL_STAGES)


@dataclass(frozen=True, slots=True)
class StageList:
    """The chunks of one stage in the service's order, duplicates kept; all lists are equally long.

    Attributes:
        chunk_ids: ids by position, the first is position 1.
        scores: scores, or None when the stage has none at all.
        document_ids: documents, or None when none is known.
        document_versions: their versions, or None when none is known.
    """

    chunk_ids: Sequence[str]
    scores: Sequence[float | None] | None = None
    document_ids: Sequence[str | None] | None = None
    document_versions: Sequence[str | None] | None = None


@dataclass(frozen=True, slots=True)
class FilteredChunk:
    """A chunk that a filter kept out of a channel."""

    chunk_id: str
    channel: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class ChunkText:
    """What is known of one chunk; everything but its id may be unobserved."""

    chunk_id: str
    document_id: str | None = None
    document_version: str | None = None
    title: str | None = None
    text: str | None = None
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """One row of `cases.parquet` with its lists; None is "not observed".

    Attributes:
        case_id, repeat: which golden case, and which pass from 1.
        status: "ok", or "error" when the call failed for good; then `error` says why.
        mode, refusal_reason, answer, actions: what was answered, None when only retrieved.
        citations: cited chunk ids in the order of the answer, repeats kept; None when not told.
        citation_claims: for each citation the words that rest on it, or None; None as `citations`.
        n_results: length of the list that counts, None for an error.
        latency_ms, waited_ms, attempts: see `sources.http.Answer`.
        candidates: distinct chunk ids over all channels, None when channels were not observed.
        observed: names of the fields that the service gave.
        stages: list by stage: channel names, fused, reranked, results, context.
        filtered: what the filters kept out; empty also when that was not observed (see `observed`).
        chunks: what the reply says of its chunks.
    """

    case_id: str
    repeat: int
    question: str
    status: Literal["ok", "error"] = "ok"
    error: str | None = None
    rewritten_query: str | None = None
    trace_id: str | None = None
    effective_at: str | None = None
    mode: str | None = None
    refusal_reason: str | None = None
    answer: str | None = None
    citations: Sequence[str] | None = None
    citation_claims: Sequence[str | None] | None = None
    actions: Sequence[str] | None = None
    n_results: int | None = None
    latency_ms: float | None = None
    waited_ms: float | None = None
    attempts: int = 1
    timings_ms: Mapping[str, float] | None = None
    context_tokens: int | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    model_calls: int | None = None
    candidates: int | None = None
    observed: Sequence[str] = ()
    stages: Mapping[str, StageList] = field(default_factory=dict)
    filtered: Sequence[FilteredChunk] = ()
    chunks: Sequence[ChunkText] = ()


def journal_line(case_id: str, repeat: int, question: str, reply: Reply) -> bytes:
    """A finished question as one line of the journal, its reply in the protocol's spelling."""
    head = {
        "case_id": case_id,
        "repeat": repeat,
        "question": question,
        "latency_ms": reply.latency_ms,
        "waited_ms": reply.waited_ms,
        "attempts": reply.attempts,
    }
    # Absent and null mean the same, "not observed", so nulls are left out; empty lists stay.
    body = reply.retrieval.model_dump_json(by_alias=True, exclude_none=True)
    return f'{json.dumps(head)[:-1]}, "reply": {body}}}\n'.encode()


def error_line(case_id: str, repeat: int, question: str, error: str, attempts: int) -> bytes:
    """A question that failed for good as one line of the journal."""
    line = {
        "case_id": case_id,
        "repeat": repeat,
        "question": question,
        "attempts": attempts,
        "error": error,
    }
    return (json.dumps(line) + "\n").encode()


def result_from_line(line: bytes) -> Result:
    """The result that a line of the journal holds.

    Raises:
        ValueError: the line is not JSON, or not a line of a journal.
    """
    data: dict[str, Any] = pydantic_core.from_json(line)
    if "error" in data:
        return Result(
            case_id=data["case_id"],
            repeat=data["repeat"],
            question=data["question"],
            status="error",
            error=data["error"],
            attempts=data["attempts"],
        )
    return result_from_reply(
        data["case_id"],
        data["repeat"],
        data["question"],
        Reply(
            _read_reply(data["reply"]),
            data["latency_ms"],
            data["waited_ms"],
            data["attempts"],
        ),
    )


def _read_reply(said: Mapping[str, Any]) -> Retrieval:
    return (Answered if "answer" in said else Retrieval).model_validate(said)


def answer_columns(answer: Answer) -> dict[str, Any]:
    """An answer as the fields of a `Result`."""
    cited = answer.citations
    return {
        "mode": answer.mode,
        "refusal_reason": answer.refusal_reason,
        "answer": answer.text,
        "citations": None if cited is None else [citation.chunk_id for citation in cited],
        "citation_claims": None if cited is None else [citation.claim for citation in cited],
        "actions": answer.actions,
    }


def result_from_reply(case_id: str, repeat: int, question: str, reply: Reply) -> Result:
    """The result that a service's reply makes."""
    retrieval = reply.retrieval
    tokens = retrieval.tokens
    return Result(
        case_id=case_id,
        repeat=repeat,
        question=question,
        rewritten_query=retrieval.rewritten_query,
        trace_id=retrieval.trace_id,
        effective_at=retrieval.effective_at,
        n_results=len(retrieval.results),
        latency_ms=reply.latency_ms,
        waited_ms=reply.waited_ms,
        attempts=reply.attempts,
        timings_ms=retrieval.timings_ms,
        context_tokens=tokens.context if tokens else None,
        prompt_tokens=tokens.prompt if tokens else None,
        completion_tokens=tokens.completion if tokens else None,
        model_calls=retrieval.model_calls,
        candidates=_distinct_candidates(retrieval),
        observed=retrieval.observed,
        stages=_stages(retrieval),
        filtered=[
            FilteredChunk(chunk.chunk_id, chunk.channel, chunk.reason)
            for chunk in retrieval.filtered or ()
        ],
        chunks=_chunks(retrieval),
        **(answer_columns(retrieval.answer) if isinstance(retrieval, Answered) else {}),
    )


def _lists(retrieval: Retrieval) -> list[tuple[str, list[Candidate]]]:
    found = list((retrieval.channels or {}).items())
    for stage in ("fused", "reranked", "results"):
        candidates = getattr(retrieval, stage)
        if candidates is not None:
            found.append((stage, candidates))
    return found


def _stages(retrieval: Retrieval) -> dict[str, StageList]:
    stages = {name: _stage_list(candidates) for name, candidates in _lists(retrieval)}
    if retrieval.context is not None:
        stages["context"] = StageList(retrieval.context)
    return stages


def _stage_list(candidates: list[Candidate]) -> StageList:
    return StageList(
        [candidate.chunk_id for candidate in candidates],
        _known([candidate.score for candidate in candidates]),
        _known([candidate.document_id for candidate in candidates]),
        _known([candidate.document_version for candidate in candidates]),
    )


def _known(values: list[Any]) -> list[Any] | None:
    return values if any(value is not None for value in values) else None


def _distinct_candidates(retrieval: Retrieval) -> int | None:
    if retrieval.channels is None:
        return None
    return len({c.chunk_id for channel in retrieval.channels.values() for c in channel})


def _chunks(retrieval: Retrieval) -> list[ChunkText]:
    """Each distinct chunk of a reply once; of several accounts one with a text."""
    found: dict[str, Candidate] = {}
    for _, candidates in _lists(retrieval):
        for candidate in candidates:
            known = found.get(candidate.chunk_id)
            if known is None or (known.text is None and candidate.text is not None):
                found[candidate.chunk_id] = candidate
    texts = [
        ChunkText(c.chunk_id, c.document_id, c.document_version, c.title, c.text)
        for c in found.values()
    ]
    known_ids = set(found)
    return texts + [
        ChunkText(i) for i in dict.fromkeys(retrieval.context or ()) if i not in known_ids
    ]
