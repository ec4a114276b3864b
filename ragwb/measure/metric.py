"""Names of figures: a name parses and prints back, and stands unchanged in tables and files."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ragwb.errors import MetricError
from ragwb.records import MAX_TOP_K

HEADLINE = ("recall", "hit_rate", "mrr", "ndcg", "map", "precision", "duplicate_rate")
"""Retrieval figures that a summary gives at each K, in this order."""

AT_K = (
    *HEADLINE,
    "forbidden",
    "failed",
    "passage_recall",
    "passage_precision",
    "passage_iou",
)
WITHOUT_K = (
    "p50_ms",
    "p95_ms",
    "p99_ms",
    "context_tokens",
    "prompt_tokens",
    "completion_tokens",
    "model_calls",
    "candidates",
    "precision_omega",
    "precision_omega_strict",
    "knowledge_coverage",
    "split_rate",
    "corpus_duplicate_rate",
)
_NAME = re.compile(r"(?P<name>[a-z][a-z0-9_]*)(?:@(?P<k>[1-9][0-9]*))?")


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure, at a cutoff where it has one.

    Attributes:
        name: as in metrics.md, for instance recall or p95_ms.
        k: cutoff from 1 to 100, None for a figure without one.
    """

    name: str
    k: int | None = None

    def __str__(self) -> str:
        return self.name if self.k is None else f"{self.name}@{self.k}"

    @property
    def column(self) -> str:
        """The column of the per-case table: a hit rate is the mean of `hit`."""
        return str(self).replace("hit_rate", "hit")


def parse_metric(text: str) -> Metric:
    """The figure that a name stands for.

    Raises:
        MetricError: the name is not known, lacks its K or has one too many, or K is not in 1..100.
    Example: parse_metric("recall@5") -> Metric("recall", 5), which prints as recall@5
    """
    match = _NAME.fullmatch(text.strip())
    name = match["name"] if match else text
    if match is None or name not in (*AT_K, *WITHOUT_K):
        known = ", ".join([*(f"{known}@K" for known in AT_K), *WITHOUT_K])
        raise MetricError(f"{text!r} is no figure; known: {known}")
    k = int(match["k"]) if match["k"] else None
    if (k is None) != (name in WITHOUT_K):
        right = name if name in WITHOUT_K else f"{name}@5"
        raise MetricError(f"{text!r} is no figure: write {right}")
    if k is not None and k > MAX_TOP_K:
        raise MetricError(f"{text!r}: K goes from 1 to {MAX_TOP_K}")
    return Metric(name, k)


def default_ks(top_k: int) -> tuple[int, ...]:
    """The cutoffs shown when none are asked for: those of 1, 3, 5, 10 up to top K, and top K."""
    return tuple(sorted({k for k in (1, 3, 5, 10) if k <= top_k} | {top_k}))
