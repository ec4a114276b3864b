"""A run held against limits: the figures, the verdict, and the case ids behind both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from ragwb.decide.thresholds import Threshold, Verdict, check_thresholds, decide_verdict
from ragwb.errors import MetricError
from ragwb.measure.cost import cost_metrics
from ragwb.measure.scores import checked_ks
from ragwb.runs.scoring import score
from ragwb.view.panel import Panel

if TYPE_CHECKING:
    from ragwb.measure.summary import Scores
    from ragwb.runs.store import Run


@dataclass(frozen=True, slots=True, repr=False)
class Evaluation:
    """One run, scored and held against limits.

    Attributes:
        run: the saved run.
        scores: per-case figures at every K asked for.
        metrics: headline figures by name, such as `recall@5` and `p95_ms`; None where undefined.
        thresholds: the limits that were set, as checked.
        verdict: pass, fail or undecided.
        failed_case_ids: blocking cases with recall < 1 at top K in any repeat.
        forbidden_case_ids: blocking cases that returned evidence that must not be there.
    """

    run: Run
    scores: Scores
    metrics: Mapping[str, float | None]
    thresholds: tuple[Threshold, ...]
    verdict: Verdict
    failed_case_ids: tuple[str, ...]
    forbidden_case_ids: tuple[str, ...]

    @property
    def top_k(self) -> int:
        """The K of the verdict: what the service was asked for."""
        return self.run.manifest.top_k

    def to_dict(self) -> dict[str, Any]:
        """The JSON of an eval report, with the keys that scripts rely on."""
        frame = self.scores.frame
        return {
            "run_id": self.run.manifest.run_id,
            "dataset_version": self.run.manifest.dataset_version,
            "top_k": self.top_k,
            "n_cases": self.scores.n_cases,
            "n_scored": self.scores.n_scored,
            "n_excluded": self.scores.n_excluded,
            "n_errors": self.scores.n_errors,
            "metrics": dict(self.metrics),
            "thresholds": [threshold.to_dict() for threshold in self.thresholds],
            "failed_case_ids": list(self.failed_case_ids),
            "forbidden_case_ids": list(self.forbidden_case_ids),
            "excluded": _reasons(frame, "excluded", "reason"),
            "errors": _reasons(frame, "error", "error"),
            "verdict": self.verdict,
        }

    def __repr__(self) -> str:
        return self.headline().text

    def _repr_html_(self) -> str:
        return self.headline().html

    def headline(self) -> Panel:
        """The verdict in a line, and what to do next."""
        from ragwb.report.sections import headline

        return headline(self)


def _reasons(frame: pd.DataFrame, status: str, key: str) -> list[dict[str, str]]:
    rows = frame[frame["status"] == status]
    return [
        {"case_id": case_id, key: reason}
        for case_id, reason in zip(rows["case_id"], rows["reason"], strict=True)
    ]


def evaluate(
    run: Run,
    *,
    k: Sequence[int] | None = None,
    limits: Mapping[str, float | None] | None = None,
) -> Evaluation:
    """Score a run and hold it against limits at its top K.

    Args:
        run: a saved run.
        k: the Ks to score at, 1 to the run's top K; by default 1, 3, 5 and 10 up to it, and it.
        limits: limits by name, such as `{"min_recall": 0.8, "max_p95_ms": 1500}`.
    Raises:
        MetricError: a K beyond the run's top K.
        UsageError: an unknown limit, or one outside its range.
    """
    top_k = run.manifest.top_k
    if k and (largest := checked_ks(k)[-1]) > top_k:
        raise MetricError(f"K is {largest}: nothing was asked for beyond top K = {top_k}")
    scores = score(run, None if not k else {*k, top_k})
    metrics = _headline_metrics(scores, run.cases())
    thresholds = check_thresholds(metrics, limits or {}, top_k=top_k)
    forbidden = scores.forbidden_case_ids(top_k)
    verdict = decide_verdict(
        thresholds,
        n_errors=scores.n_errors,
        n_forbidden=len(forbidden),
    )
    return Evaluation(
        run=run,
        scores=scores,
        metrics=metrics,
        thresholds=thresholds,
        verdict=verdict,
        failed_case_ids=tuple(scores.failed_case_ids(top_k)),
        forbidden_case_ids=tuple(forbidden),
    )


def _headline_metrics(scores: Scores, results: pd.DataFrame) -> dict[str, float | None]:
    summary = scores.summary()
    means = {
        metric: None if pd.isna(value) else float(value)
        for metric, value in zip(summary["metric"], summary["value"], strict=True)
    }
    return {**means, **cost_metrics(results)}
