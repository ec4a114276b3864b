"""A small run of answers that is wrong in every way a report tells apart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from loopback import FakeService
from run_data import case, golden, no_wait, service, settings

from ragwb.runs.runner import run_answers
from ragwb.runs.store import Run


def says(text: str, *cites: str, claim: str | None = None, **fields: Any) -> dict[str, Any]:
    """An answer whose text rests, as a whole or by these words of it, on the chunks it cites."""
    citations = [{"chunkId": name, "claim": text if claim is None else claim} for name in cites]
    return {"mode": "answer", "text": text, "citations": citations, **fields}


REFUSAL = {"mode": "refuse", "expected_chunk_ids": [], "refusal_trigger": ["NO_EVIDENCE"]}
CASES = [
    case(1, required_claims=[{"text": "三天到账"}], tags={"kind": "fact"}),
    case(2, risk="high", forbidden_claims=[{"text": "七天到账"}], tags={"kind": "trap"}),
    case(3, **REFUSAL, tags={"kind": "closed"}),
    case(4, tags={"kind": "fact"}),
    case(5, required_claims=[{"text": "免费"}, {"text": "当天"}], tags={"kind": "fact"}),
    case(6, **REFUSAL),
    case(7, tier="shadow"),
    case(8, expected_chunk_ids=["doc-1", "doc-77"], required_claims=[{"text": "十元"}]),
]
ANSWERS = {
    "q1": says("审核后三天到账。", "doc-1"),
    "q2": says("一般七天到账。", "doc-2"),
    "q3": says("是的。", "doc-3"),
    "q5": says("当天送达。", "doc-5"),
    "q7": says("见别处。", "elsewhere"),
    "q8": says("收费。", "doc-1"),
}


def answer_service(**given: Any) -> FakeService:
    """A service that answers so; a question without an answer is refused."""
    results = {"q5": ["doc-5", "doc-0"]}
    return service(**{"answers": ANSWERS, "results": results, **given})


def answer_run(
    folder: Path,
    fake: FakeService | None = None,
    cases: Sequence[dict[str, Any]] = CASES,
    **given: Any,
) -> Run:
    """A sealed run of answers."""
    fake = fake or answer_service()
    given = {"top_k": 5, "transport": fake.transport(), "sleep": no_wait, **given}
    return run_answers(golden(folder, cases), settings(folder), **given)
