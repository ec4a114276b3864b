"""Two runs of one golden set that differ in every way a comparison tells apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from answer_run_data import ANSWERS, answer_run, answer_service, says
from answer_run_data import CASES as ASKED
from run_data import case, run
from view_data import staged_service

from ragwb.decide.compare import compare
from ragwb.decide.comparison import Comparison
from ragwb.runs.store import Run

K = 3


def ranked(*names: str, **stages: Any) -> dict[str, Any]:
    """The stages of a reply whose every stage holds these chunks, as far as others are not given.

    The results and the context hold the first K.
    """
    first = list(names[:K])
    whole = {"channels": {"vector": list(names)}, "fused": list(names), "reranked": list(names)}
    return {**whole, "results": first, "context": first, **stages}


FOUND, LOST = ranked("doc-1", "doc-2", "doc-3"), ranked("doc-2", "doc-3", "doc-4", "doc-1")
BEFORE = {
    "gains": LOST,
    "falls": FOUND,
    "falls high": FOUND,
    "falls alone": FOUND,
    "fails": LOST,
    "passes": FOUND,
    "refuses": FOUND,
}
AFTER = {
    "gains": FOUND,
    "falls": LOST,
    "falls high": ranked("doc-2", "doc-3", channels={"vector": ["doc-2"], "keyword": ["doc-9"]}),
    "falls alone": LOST,
    "fails": LOST,
    "passes": ranked("doc-2", "doc-1", "doc-3"),
    "refuses": FOUND,
}
_ONE = {"expected_chunk_ids": ["doc-1"]}
CASES = [
    case(1, question="gains", tags={"kind": "a"}, **_ONE),
    case(2, question="falls", tags={"kind": "b"}, weight=3.0, **_ONE),
    case(
        3,
        question="falls high",
        risk="high",
        tags={"kind": "b"},
        forbidden_chunk_ids=["doc-9"],
        **_ONE,
    ),
    case(4, question="falls alone", tags={"kind": "b"}, **_ONE),
    case(5, question="fails", tags={"kind": "a"}, **_ONE),
    case(6, question="passes", **_ONE),
    case(7, question="refuses", mode="refuse", expected_chunk_ids=[]),
]


def staged_run(
    folder: Path,
    stages: Mapping[str, Mapping[str, Any]],
    cases: Sequence[dict[str, Any]] = CASES,
    **given: Any,
) -> Run:
    """A run whose service shows these stages by question."""
    folder.mkdir(parents=True, exist_ok=True)
    return run(folder, staged_service(stages), cases, **{"top_k": K, **given})


def two_runs(folder: Path, **given: Any) -> tuple[Run, Run]:
    """The baseline and the candidate: 1 is fixed, 3 break, 1 still fails, 1 still passes."""
    return (
        staged_run(folder / "before", BEFORE, **given),
        staged_run(folder / "after", AFTER, **given),
    )


def compared(folder: Path, **given: Any) -> Comparison:
    """These two runs compared."""
    return compare(*two_runs(folder, **given))


SAID = {
    **ANSWERS,
    "q1": says("审核后当天到账。", "doc-1"),
    "q5": says("免费，当天送达。", "doc-5"),
}


def compared_answers(folder: Path, **given: Any) -> Comparison:
    """Two runs of answers: in the candidate the first answer is wrong, the fifth is right."""
    fakes = {"before": answer_service(), "after": answer_service(answers=SAID)}
    runs = []
    for name, fake in fakes.items():
        (folder / name).mkdir(parents=True)
        runs.append(answer_run(folder / name, fake, ASKED, **given))
    return compare(*runs)
