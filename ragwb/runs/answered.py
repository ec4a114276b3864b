"""The answers of a saved run as they are measured, and their scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from ragwb.golden.passages import ResolvedCase
from ragwb.measure.answer_scores import AnswerScores
from ragwb.measure.answered import AnsweredCase, JudgedAnswer
from ragwb.measure.answers import score_answers as score_answered
from ragwb.measure.rule_pack import RulePack, load_pack
from ragwb.records import Chunk, Citation
from ragwb.runs.kinds import without_answers
from ragwb.runs.store import Run
from ragwb.runs.traces import Traces, load_traces

Pair = tuple[str, int]


def answered_cases(run: Run, traces: Traces | None = None) -> list[AnsweredCase]:
    """The results of a run as answers, in its order; a failed call carries its error.

    Args:
        run: a sealed run.
        traces: of this run, when they were loaded before.

    Raises:
        RunError: a table is absent or cannot be read.
    """
    traces = load_traces(run) if traces is None else traces

    @cache
    def chunk(chunk_id: str) -> Chunk:
        known = traces.chunk(chunk_id)
        return Chunk(
            chunk_id=chunk_id,
            document_id=known.document_id,
            document_version=known.document_version,
            title=known.title,
            text=known.text,
        )

    found = []
    for row in run.cases().to_dict("records"):
        named = {str(name): value for name, value in row.items()}
        case = traces.cases[named["case_id"]]
        if named["status"] == "ok":
            answered = _answered(case, named, traces)
            ids = _named_chunks(answered)
            found.append(_with_chunks(answered, {i: chunk(i) for i in ids if traces.knows(i)}))
        else:
            found.append(AnsweredCase(case, named["repeat"], error=named["error"]))
    return found


def score_answers(
    run: Run,
    pack: RulePack | None = None,
    *,
    judged: Mapping[Pair, JudgedAnswer] | None = None,
    traces: Traces | None = None,
) -> AnswerScores:
    """The answer scores of a run.

    Args:
        run: a sealed run that asked for answers.
        pack: the hard rules; by default those that come with ragwb.
        judged: what a judge or a person said, by (case id, repeat).
        traces: of this run, when they were loaded before.

    Raises:
        UsageError: the run only retrieved.
        DataError: the default pack is broken.
    """
    cases = answered_cases(run, traces)
    if cases and all(one.error is None and one.mode is None for one in cases):
        raise without_answers(run)
    return score_answered(
        cases,
        load_pack() if pack is None else pack,
        golden=run.golden() if traces is None else list(traces.cases.values()),
        repeats=run.manifest.repeats,
        judged=judged,
        run_id=run.run_id,
    )


def _answered(case: ResolvedCase, row: Mapping[str, Any], traces: Traces) -> AnsweredCase:
    pair = row["case_id"], row["repeat"]
    is_observed = "context" in row["observed"]
    return AnsweredCase(
        case=case,
        repeat=row["repeat"],
        mode=_known(row["mode"]),
        text=_known(row["answer"]),
        refusal_reason=_known(row["refusal_reason"]),
        citations=_citations(row),
        context=tuple(traces.ids(pair, "context")) if is_observed else None,
        results=tuple(traces.ids(pair, "results")),
        explanations=traces.explanations(pair),
        actions=_texts(row.get("actions")),
        context_tokens=_count(row["context_tokens"]),
        prompt_tokens=_count(row["prompt_tokens"]),
        completion_tokens=_count(row["completion_tokens"]),
        latency_ms=_known(row["latency_ms"]),
    )


def _with_chunks(answered: AnsweredCase, chunks: Mapping[str, Chunk]) -> AnsweredCase:
    from dataclasses import replace

    return replace(answered, chunks=chunks)


def _named_chunks(answered: AnsweredCase) -> Iterable[str]:
    groups = (name for group in answered.case.groups for name in group.chunk_ids)
    named = (*answered.results, *(answered.context or ()), *(answered.cited or ()), *groups)
    return dict.fromkeys(named)


def _citations(row: Mapping[str, Any]) -> tuple[Citation, ...] | None:
    ids = _texts(row["citations"])
    if ids is None:
        return None
    claims = _texts(row.get("citation_claims")) or (None,) * len(ids)
    pairs = zip(ids, claims, strict=True)
    return tuple(Citation(chunk_id=name, claim=claim) for name, claim in pairs)


def _texts(value: Any) -> tuple[Any, ...] | None:
    return tuple(value) if isinstance(value, list | tuple | np.ndarray) else None


def _known(value: Any) -> Any:
    return None if pd.isna(value) else value


def _count(value: Any) -> int | None:
    return None if pd.isna(value) else int(value)
