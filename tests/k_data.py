"""Runs whose first K results are known, for the tests of sweeps over K."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from answer_run_data import says
from loopback import FakeService
from run_data import case, golden, no_wait, run, service, settings

from ragwb.runs.store import Run
from ragwb.sweep.timing import Measurement, measure_ks

TOP_K = 6
# Every question gets doc-0, doc-1, … in this order, so that c<n> is found from K = n + 1 on.
CASES = [
    case(0, tags={"kind": "a"}),
    case(1, tags={"kind": "a"}),
    case(1, id="c1b", question="q1b", tags={"kind": "b"}),
    case(3, tags={"kind": "b"}, risk="high"),
    # Found at once, and lost at K = 5: what it forbids comes in.
    case(0, id="forbids", question="qf", forbidden_chunk_ids=["doc-4"]),
    case(9, id="never", question="qn"),
    case(0, id="refuses", question="qr", mode="refuse", expected_chunk_ids=[]),
    # No evidence of its own, and yet evidence that must not be there.
    case(
        0,
        id="refuses all",
        question="qra",
        mode="refuse",
        expected_chunk_ids=[],
        forbidden_chunk_ids=["doc-2"],
    ),
    case(5, tier="shadow"),
]


def swept_run(folder: Path, fake: FakeService | None = None, **given: Any) -> Run:
    """The run of `CASES`, asked for six results."""
    folder.mkdir(parents=True, exist_ok=True)
    return run(folder, fake or service(10), CASES, **{"top_k": TOP_K, **given})


def measured(folder: Path, ks: list[int], fake: FakeService | None = None, **given: Any) -> Any:
    """Runs of `CASES` made in turn, one a K."""
    fake = fake or service(10)
    folder.mkdir(parents=True, exist_ok=True)
    given = {"repeats": 2, "transport": fake.transport(), "sleep": no_wait, **given}
    found: Measurement = measure_ks(golden(folder, CASES), settings(folder), ks, **given)
    return found


def fickle_answers() -> FakeService:
    """A service that answers c1 rightly at K = 2 alone, and refuses all other questions."""
    fake = service(10, answers={"q1": says("三天到账。", "doc-1")})
    whole = fake._answer

    def answer(data: dict[str, Any], answers: dict[str, dict[str, Any]]) -> Any:
        known = answers if data["topK"] == 2 else {}
        return whole(data, known)

    fake._answer = answer  # type: ignore[method-assign]  # it has no seam for K
    return fake
