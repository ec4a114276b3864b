"""From a question to results: rewrite, channels, filter, fusion, rerank, context; all visible."""

from __future__ import annotations

import datetime
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar
from zoneinfo import ZoneInfo

import numpy as np

from ragwb.own_code import contained, load_function
from ragwb.records import Answer, Candidate, Filtered, Retrieval, Tokens
from ragwb.service.answerer import Answerer
from ragwb.service.config import ServiceConfig
from ragwb.service.embedding import Embedder, Vectors
from ragwb.service.evidence import Evidence
from ragwb.service.index import Index
from ragwb.service.ranking import Channel, Mask, Ranking, Scores, distinct, fuse, rerank
from ragwb.service.visibility import Caller, filter_reasons, newest_versions

Clock = Callable[[], datetime.datetime]
Rewrite = Callable[[str], str | None]
T = TypeVar("T")


def _as_it_is(outcome: T) -> T:
    return outcome


@dataclass(frozen=True, slots=True)
class Between:
    """What becomes of a stage's outcome before the next stage takes it: nothing, unless planted.

    Attributes:
        visible: of the rows that the filters leave.
        fused: of the fused list.
        reranked: of the reranked one.
        answer: of the answer.
    """

    visible: Callable[[Mask], Mask] = _as_it_is
    fused: Callable[[Ranking], Ranking] = _as_it_is
    reranked: Callable[[Ranking], Ranking] = _as_it_is
    answer: Callable[[Answer], Answer] = _as_it_is


NOTHING = Between()


@dataclass(frozen=True, slots=True)
class Pipeline:
    """What answers a question.

    Attributes:
        rewrite: gives the question that is searched with; None where none is rewritten.
        between: by question what becomes of the stages' outcomes; `/explain` knows nothing of it.
        faults: names of the faults that are planted; a sound service has none.
        answerer: makes answers of contexts; None where there is no `/answer`.
    """

    config: ServiceConfig
    index: Index
    embedder: Embedder
    clock: Clock
    rewrite: Rewrite | None = None
    between: Callable[[str], Between] = lambda _question: NOTHING
    faults: tuple[str, ...] = ()
    answerer: Answerer | None = None

    def close(self) -> None:
        """Close the index and what the answerer holds."""
        self.index.close()
        if self.answerer is not None:
            self.answerer.close()


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found: all that is told of it, and what an answer can be made of."""

    retrieval: Retrieval
    evidence: Evidence


@dataclass(slots=True)
class Timings:
    """Milliseconds by stage, in the order in which the stages ended."""

    by_stage: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def measure(self, stage: str) -> Iterator[None]:
        """Add the time spent inside to a stage."""
        start = time.perf_counter()
        yield
        spent = (time.perf_counter() - start) * 1000
        self.by_stage[stage] = round(self.by_stage.get(stage, 0.0) + spent, 3)


def utc_now() -> datetime.datetime:
    """The clock of a service that is not under test."""
    return datetime.datetime.now(datetime.UTC)


def load_rewrite(name: str | None) -> Rewrite | None:
    """The function that `module:function` names, or None.

    Raises:
        UsageError: the name has another form, or nothing callable stands there.
    """
    if name is None:
        return None
    return load_function(name, "rewrite")


def retrieve(
    pipeline: Pipeline, caller: Caller, question: str, top_k: int, *, explain: bool
) -> Retrieval:
    """The results of a question for a caller, with everything that the stages held (`search`)."""
    return search(pipeline, caller, question, top_k, explain=explain).retrieval


def search(
    pipeline: Pipeline, caller: Caller, question: str, top_k: int, *, explain: bool
) -> Found:
    """What the stages hold for a question and a caller, and what an answerer takes from there.

    Args:
        pipeline: the service.
        caller: who asks; decides what the filters leave.
        question: the text, not blank.
        top_k: results wanted, 1 to 100.
        explain: whether what the filters took is named too; else `filtered` is not observed.
    """
    timings, index = Timings(), pipeline.index
    now = pipeline.clock()
    between = pipeline.between(question)
    with timings.measure("total"):
        rewritten = _rewrite(pipeline, question, timings)
        query = rewritten or question
        asked, vector = ask_channels(pipeline, query, timings)
        with timings.measure("filter"):
            reasons = document_reasons(pipeline, caller, now)
            visible = between.visible(visible_rows(index, reasons))
        channels = cut_channels(pipeline.config, asked, visible, timings)
        fused, reranked = order(pipeline, channels, vector, timings, between)
        final = without_duplicates(pipeline, reranked or fused)
        rows = final.rows[:top_k].tolist()
        with timings.measure("context"):
            context = _fit(pipeline, rows)
        results = _results(index, rows, final.scores[:top_k])
    ids = index.chunk_ids
    taken = _filtered(pipeline, asked, visible, reasons) if explain else None
    retrieval = Retrieval(
        trace_id=uuid.uuid4().hex,
        effective_at=now.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        rewritten_query=rewritten,
        channels={name: _candidates(ids, ranking) for name, ranking in channels.items()},
        filtered=taken,
        fused=_candidates(ids, fused),
        reranked=_candidates(ids, reranked) if reranked else None,
        results=results,
        context=[ids[row] for row in context],
        tokens=Tokens(context=int(index.tokens_of[context].sum()) if context else 0),
        timings_ms=timings.by_stage,
        model_calls=0 if vector is None else 1,
    )
    closed = np.array([found == ("ACL",) for found in reasons], dtype=np.bool_)
    evidence = Evidence(question, vector, tuple(context), np.flatnonzero(closed[index.document_of]))
    return Found(retrieval, evidence)


def ask_channels(
    pipeline: Pipeline, query: str, timings: Timings
) -> tuple[dict[str, Channel], Vectors | None]:
    """The question as each channel of the mode sees it, and its vector when needed."""
    config, index = pipeline.config, pipeline.index
    vector = None
    if "vector" in config.channels or config.rerank:
        with timings.measure("embedding"):
            vector = pipeline.embedder.query(query)
    asked: dict[str, Channel] = {}
    if "vector" in config.channels and vector is not None:
        with timings.measure("vector"):
            asked["vector"] = index.vector_channel(vector)
    if "keyword" in config.channels:
        with timings.measure("keyword"):
            asked["keyword"] = index.keyword_channel(query)
    return asked, vector


def document_reasons(
    pipeline: Pipeline, caller: Caller, now: datetime.datetime
) -> list[tuple[str, ...]]:
    """By document number what keeps it from the caller at this moment, () when nothing does."""
    today = now.astimezone(ZoneInfo(pipeline.config.timezone)).date()
    documents = pipeline.index.documents
    newest = newest_versions(documents, today)
    return [filter_reasons(document, caller, today, newest) for document in documents]


def visible_rows(index: Index, reasons: Sequence[tuple[str, ...]]) -> Mask:
    """By row whether nothing keeps its document away."""
    of_document = np.array([not found for found in reasons], dtype=np.bool_)
    return of_document[index.document_of]


def cut_channels(
    config: ServiceConfig, asked: dict[str, Channel], visible: Mask, timings: Timings
) -> dict[str, Ranking]:
    """Each channel's candidates: visible, not below the threshold, at most candidate K."""
    found: dict[str, Ranking] = {}
    for name, channel in asked.items():
        with timings.measure(name):
            ranking = channel.best(visible, config.candidate_k)
        kept = ~below_threshold(config, name, ranking.scores)
        found[name] = Ranking(ranking.rows[kept], ranking.scores[kept])
    return found


def order(
    pipeline: Pipeline,
    channels: dict[str, Ranking],
    vector: Vectors | None,
    timings: Timings,
    between: Between = NOTHING,
) -> tuple[Ranking, Ranking | None]:
    """The fused list, and the reranked one when the service reranks."""
    config = pipeline.config
    with timings.measure("fusion"):
        fused = between.fused(fuse(channels, config.weights, config.rrf_k))
    if not config.rerank or vector is None:
        return fused, None
    with timings.measure("rerank"):
        reranked = rerank(pipeline.index, fused, vector, config.rerank_weight)
        return fused, between.reranked(reranked)


def without_duplicates(pipeline: Pipeline, final: Ranking) -> Ranking:
    """The final list as it is cut at top K: without later duplicates when that is configured."""
    index, kind = pipeline.index, pipeline.config.deduplicate
    if kind == "off":
        return final
    return distinct(final, index.text_of if kind == "text" else np.arange(len(index.chunk_ids)))


def _rewrite(pipeline: Pipeline, question: str, timings: Timings) -> str | None:
    if pipeline.rewrite is None:
        return None
    with timings.measure("rewrite"), contained():
        rewritten = (pipeline.rewrite(question) or "").strip()
    return rewritten if rewritten and rewritten != question else None


def below_threshold(config: ServiceConfig, channel: str, scores: Scores) -> Mask:
    """Which scores are under the threshold, a cosine that says nothing about BM25."""
    if config.threshold is None or channel != "vector":
        return np.zeros(len(scores), dtype=np.bool_)
    return scores < config.threshold


def _filtered(
    pipeline: Pipeline,
    asked: dict[str, Channel],
    visible: Mask,
    reasons: Sequence[tuple[str, ...]],
) -> list[Filtered]:
    """What would stand in a channel's first candidate K without the filters, and why it is not."""
    index, found = pipeline.index, []
    for name, channel in asked.items():
        first = channel.best(None, pipeline.config.candidate_k)
        below = below_threshold(pipeline.config, name, first.scores)
        for row, is_below in zip(first.rows.tolist(), below.tolist(), strict=True):
            if not visible[row]:
                reason = reasons[int(index.document_of[row])][0]
            elif is_below:
                reason = "THRESHOLD"
            else:
                continue
            found.append(Filtered(chunk_id=index.chunk_ids[row], channel=name, reason=reason))
    return found


def _fit(pipeline: Pipeline, rows: Sequence[int]) -> list[int]:
    """The longest start of the results whose titles and texts fit the token budget."""
    used, kept = 0, []
    for row in rows:
        used += int(pipeline.index.tokens_of[row])
        if used > pipeline.config.context_budget_tokens:
            break
        kept.append(row)
    return kept


def _candidates(ids: Sequence[str], ranking: Ranking) -> list[Candidate]:
    pairs = zip(ranking.rows.tolist(), ranking.scores.tolist(), strict=True)
    return [Candidate(chunk_id=ids[row], score=score) for row, score in pairs]


def _results(index: Index, rows: Sequence[int], scores: Scores) -> list[Candidate]:
    chunks = index.chunks(rows)
    return [
        Candidate(
            chunk_id=chunk.chunk_id,
            score=score,
            document_id=chunk.document_id,
            document_version=chunk.document_version,
            title=chunk.title,
            text=chunk.text,
        )
        for chunk, score in zip(chunks, scores.tolist(), strict=True)
    ]
