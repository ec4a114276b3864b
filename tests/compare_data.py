"""Two small runs of one golden set, and figures that are no run, for the tests of decisions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from answer_run_data import answer_run, answer_service
from loopback import FakeService
from run_data import case, no_wait, run, service, settings

from ragwb.decide.compare import compare_outcomes
from ragwb.decide.comparison import Comparison
from ragwb.decide.outcomes import Outcomes, outcomes_from
from ragwb.runs.explaining import explain_chunks
from ragwb.runs.store import Run
from ragwb.runs.traces import load_traces
from ragwb.triage.asking import unexplained

METRICS = ("recall@5", "mrr@5")
SAME_DAY = datetime(2026, 11, 30, 9, tzinfo=UTC)  # as the replies of the fake service


def finding(found: Collection[int], n_chunks: int = 12, **given: Any) -> FakeService:
    """A service that finds doc-<n> for q<n> when n is among `found`, and else nothing of use."""
    results = {f"q{n}": [f"doc-{n}"] if n in found else ["doc-0"] for n in range(1, n_chunks)}
    return service(n_chunks=n_chunks, results=results, **given)


def two_runs(
    folder: Path,
    before: Collection[int],
    after: Collection[int],
    cases: Sequence[dict[str, Any]] | None = None,
    **given: Any,
) -> tuple[Run, Run]:
    """Runs of c1 … c11 in which the given ones were found; `given` holds for the candidate."""
    cases = [case(n) for n in range(1, 12)] if cases is None else cases
    baseline = run(folder, finding(before), cases)
    return baseline, run(folder, finding(after), cases, **given)


def explained(run: Run, fake: FakeService) -> Run:
    """The run, of which the service was asked about every chunk that came back."""
    explain_chunks(
        run,
        unexplained(load_traces(run)),
        settings(run.path.parents[2]),
        transport=fake.transport(),
        sleep=no_wait,
        now=lambda: SAME_DAY,
    )
    return run


def two_answer_runs(folder: Path, **answers: dict[str, Any]) -> tuple[Run, Run]:
    """The run of answers that is wrong in every way, and the same with some answers replaced."""
    baseline = answer_run(folder)
    fake = answer_service()
    fake.answers = {**(fake.answers or {}), **answers}
    return baseline, answer_run(folder, fake)


def row(number: int, recall: float | None = 1.0, **given: Any) -> dict[str, Any]:
    """The figures of case c<n>."""
    return {"case_id": f"c{number}", "recall@5": recall, "mrr@5": recall, **given}


def side(rows: Sequence[dict[str, Any]], name: str = "figures", **given: Any) -> Outcomes:
    """Rows of figures as one side of a comparison."""
    return outcomes_from(rows, **{"name": name, "k": 5, "metrics": METRICS, **given})


def compared(before: Sequence[float | None], after: Sequence[float | None]) -> Comparison:
    """Recall of c0, c1, … on both sides, compared."""
    return compare_outcomes(
        side([row(n, value) for n, value in enumerate(before)], "before"),
        side([row(n, value) for n, value in enumerate(after)], "after"),
    )
