"""From a question to an answer: the search, and what the answerer makes of its context."""

from __future__ import annotations

import time

from ragwb.chat.answering import Written
from ragwb.errors import SourceError
from ragwb.records import Answered, Retrieval, Tokens
from ragwb.service.answerer import Answerer
from ragwb.service.pipeline import Pipeline, search
from ragwb.service.problems import ProblemError
from ragwb.service.visibility import Caller


def answer_question(
    pipeline: Pipeline,
    answerer: Answerer,
    caller: Caller,
    question: str,
    top_k: int,
    *,
    explain: bool,
) -> Answered:
    """The answer to a question for a caller, with everything that the search held.

    The arguments are those of `pipeline.retrieve`.

    Raises:
        ProblemError: 500 when the endpoint of a chat model failed; it was asked again already, so
            that asking at once a second time is of no use.
    """
    found = search(pipeline, caller, question, top_k, explain=explain)
    began = time.perf_counter()
    try:
        written = answerer.write(found.evidence)
    except SourceError as error:
        raise ProblemError(500, f"the answerer failed: {error}") from error
    said = pipeline.between(question).answer(written.answer)
    spent_ms = round((time.perf_counter() - began) * 1000, 3)
    retrieval = found.retrieval
    timings = dict(retrieval.timings_ms or {})
    total = round(timings.pop("total", 0.0) + spent_ms, 3)
    return Answered(
        **{name: getattr(retrieval, name) for name in _KEPT},
        answer=said,
        tokens=_tokens(retrieval, written),
        timings_ms={**timings, "answer": spent_ms, "total": total},
        model_calls=(retrieval.model_calls or 0) + (written.completion is not None),
    )


_KEPT = tuple(
    name for name in Retrieval.model_fields if name not in {"tokens", "timings_ms", "model_calls"}
)


def _tokens(retrieval: Retrieval, written: Written) -> Tokens:
    """Those of the context, and of a model's usage what its endpoint counts."""
    context = retrieval.tokens.context if retrieval.tokens else None
    done = written.completion
    if done is None:
        return Tokens(context=context)
    return Tokens(context=context, prompt=done.prompt_tokens, completion=done.completion_tokens)
