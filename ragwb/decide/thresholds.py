"""Absolute limits on the figures of one run, and the verdict that follows from them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Literal

from ragwb.errors import UsageError
from ragwb.html import plain

Verdict = Literal["pass", "fail", "undecided"]
EXIT_CODES: Mapping[Verdict, int] = {"pass": 0, "fail": 1, "undecided": 3}

# A mean of floats may miss its exact value by the last bits: that of 0.2, 0.2, 0.2 is above 0.2.
ROUNDING = 1e-9

Limits = Mapping[str, tuple[str, Literal["min", "max"]]]

# The limits that a person may set: the figure each one holds (K stands for top K), and which way.
LIMITS: Limits = {
    "min_recall": ("recall@K", "min"),
    "min_hit_rate": ("hit_rate@K", "min"),
    "min_mrr": ("mrr@K", "min"),
    "min_ndcg": ("ndcg@K", "min"),
    "max_duplicate_rate": ("duplicate_rate@K", "max"),
    "max_p95_ms": ("p95_ms", "max"),
}
# Further ones where answers were asked for. Hard rules have none: their tolerance is zero.
ANSWER_LIMITS: Limits = {
    "min_correct_rate": ("correct_rate", "min"),
    "min_mode_accuracy": ("mode_accuracy", "min"),
    "min_refusal_precision": ("refusal_precision", "min"),
    "min_refusal_recall": ("refusal_recall", "min"),
    "max_over_refusal": ("over_refusal_rate", "max"),
    "min_clarify_precision": ("clarify_precision", "min"),
    "min_clarify_recall": ("clarify_recall", "min"),
    "min_citation_precision": ("citation_precision", "min"),
    "min_citation_recall": ("citation_recall", "min"),
    "min_claim_coverage": ("claim_coverage", "min"),
    "min_citation_support": ("citation_support", "min"),
    "max_unsupported_rate": ("unsupported_rate", "max"),
    "min_accepted": ("accepted", "min"),
}
ALL_LIMITS: Limits = {**ANSWER_LIMITS, **LIMITS}


@dataclass(frozen=True, slots=True)
class Threshold:
    """One limit held against one figure.

    Attributes:
        name: one of `LIMITS` or `ANSWER_LIMITS`, such as `min_recall`.
        metric: the figure's name, such as `recall@5`.
        limit: the limit, in the figure's own unit; meeting it exactly passes.
        value: the figure, None when it was not observed or is undefined.
        passed: None when there is no figure to hold against the limit.
    """

    name: str
    metric: str
    limit: float
    value: float | None
    passed: bool | None

    def to_dict(self) -> dict[str, object]:
        """The fields as JSON values."""
        return asdict(self)


def check_thresholds(
    metrics: Mapping[str, float | None],
    limits: Mapping[str, float | None],
    *,
    top_k: int,
    known: Limits = LIMITS,
) -> tuple[Threshold, ...]:
    """Hold figures against limits; a limit that is None was not set.

    Args:
        metrics: figures by name, such as `recall@5` and `p95_ms`.
        limits: limits by the names of `known`; rates in [0, 1], milliseconds ≥ 0.
        top_k: the K at which the figures are held.
        known: the limits that may be set.
    Raises:
        UsageError: an unknown name, or a limit outside its range.
    """
    return tuple(
        _check(name, limit, metrics, top_k, known)
        for name, limit in limits.items()
        if limit is not None
    )


def _check(
    name: str, limit: float, metrics: Mapping[str, float | None], top_k: int, known: Limits
) -> Threshold:
    if name not in known:
        raise UsageError(f"unknown threshold {name!r}; known: {', '.join(known)}")
    pattern, direction = known[name]
    metric = pattern.replace("@K", f"@{top_k}")
    upper = math.inf if metric.endswith("_ms") else 1.0
    if isinstance(limit, bool) or not isinstance(limit, int | float):
        raise UsageError(f"{name} {plain(limit, width=40)!r}: must be a number")
    if not 0 <= limit <= upper or math.isinf(limit):
        scope = "at least 0" if upper == math.inf else "between 0 and 1"
        raise UsageError(f"--{name.replace('_', '-')} {limit:g}: must be {scope}")
    value = metrics.get(metric)
    return Threshold(name, metric, limit, value, _is_met(value, limit, direction))


def _is_met(value: float | None, limit: float, direction: Literal["min", "max"]) -> bool | None:
    if value is None:
        return None
    return value >= limit - ROUNDING if direction == "min" else value <= limit + ROUNDING


def decide_verdict(thresholds: Iterable[Threshold], *, n_errors: int, n_forbidden: int) -> Verdict:
    """Fail for a missed limit or a broken hard rule; else undecided when incomplete; else pass.

    Args:
        thresholds: limits as checked; one without a figure to hold decides nothing.
        n_errors: cases whose call failed for good.
        n_forbidden: cases that returned evidence that must not be there, or broke a hard rule.
    Source: metrics.md, "Verdict".
    """
    results = [threshold.passed for threshold in thresholds]
    if n_forbidden or False in results:
        return "fail"
    if n_errors or None in results:
        return "undecided"
    return "pass"
