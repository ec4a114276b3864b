"""What a service declares of how it makes its results, as far as other settings follow from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ragwb.runs.store import Run


@dataclass(frozen=True, slots=True)
class Declared:
    """The settings of a run; None where the service did not say.

    Attributes:
        top_k: results asked for.
        candidate_k: candidates of a channel.
        threshold: lowest score of the vector channel.
        rrf_k: the constant of reciprocal rank fusion; None also for another fusion.
        weights: fusion weight by channel.
        blend: share of the reranker's score in the reranked list, the rest is the fused score, both
            scaled to 0..1 over the fused list.
        reranks: whether a reranker runs.
        deduplicate: what leaves the final list before the cut at K: off, id or text; off unless
            said.
        context_budget: in the service's tokens.
    """

    top_k: int
    candidate_k: int | None
    threshold: float | None
    rrf_k: float | None
    weights: Mapping[str, float] | None
    blend: float | None
    reranks: bool | None
    deduplicate: str
    context_budget: int | None

    def weights_of(self, channels: Sequence[str]) -> dict[str, float]:
        """The fusion weight of these channels, 1 where the service names none."""
        known = self.weights or {}
        return {name: known.get(name, 1.0) for name in channels}


def declared(run: Run) -> Declared:
    """What the service of a run says in its manifest.

    Its `fusion` may hold, beside `method`, `k` and `weights`, how a reranker's score is blended
    (`rerank`: `{"method": "unit", "weight": 0.25}`) and `deduplicate`.
    """
    manifest, said = run.manifest, run.service()
    fusion = manifest.fusion or {}
    return Declared(
        top_k=manifest.top_k,
        candidate_k=manifest.candidate_k,
        threshold=manifest.threshold,
        rrf_k=_number(fusion.get("k")) if fusion.get("method") == "rrf" else None,
        weights=_weights(fusion.get("weights")),
        blend=_blend(fusion.get("rerank")),
        reranks=said["rerank"] is not None if "rerank" in said else None,
        deduplicate=_deduplicate(fusion.get("deduplicate")),
        context_budget=manifest.context_budget_tokens,
    )


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and value >= 0 else None


def _weights(value: Any) -> dict[str, float] | None:
    if not isinstance(value, Mapping):
        return None
    weights = {str(name): _number(weight) for name, weight in value.items()}
    return {name: weight for name, weight in weights.items() if weight is not None}


def _blend(value: Any) -> float | None:
    if not isinstance(value, Mapping) or value.get("method") != "unit":
        return None
    weight = _number(value.get("weight"))
    return weight if weight is not None and weight <= 1 else None


def _deduplicate(value: Any) -> str:
    return value if value in ("id", "text") else "off"
