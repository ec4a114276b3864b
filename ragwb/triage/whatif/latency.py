"""Latency where it was measured: in a saved run that differs in the changed setting alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ragwb.measure.cost import percentile
from ragwb.runs.listing import runs_in
from ragwb.runs.manifest import RunManifest, diff_manifests
from ragwb.runs.store import Run
from ragwb.triage.whatif.changes import Change

_QUANTILE = 0.95
# What a change of one setting shows in the manifest, where it is not a field of its own.
_IN_FUSION = {"rrf_k": "k", "deduplicate": "deduplicate"}


@dataclass(frozen=True, slots=True)
class Measured:
    """The latency of a saved run.

    Attributes:
        p95_ms: at the client, by nearest rank.
        run_id: which run.
    """

    p95_ms: float
    run_id: str


def saved_runs(run: Run) -> list[Run]:
    """The sealed runs beside a run, the newest first."""
    return [
        Run(entry.path, entry.manifest)
        for entry in runs_in(run.path.parent)
        if entry.status == "sealed" and entry.manifest is not None and entry.run_id != run.run_id
    ]


def measured_latency(run: Run, change: Change, others: list[Run]) -> Measured | None:
    """The latency of the newest run that differs from one in a changed setting alone.

    Args:
        run: what was changed.
        change: the setting.
        others: saved runs, the newest first.
    """
    wanted = changed_manifest(run.manifest, change)
    if wanted is None:
        return None
    for other in others:
        if not diff_manifests(wanted, other.manifest):
            frame = other.cases()
            p95 = percentile(frame.loc[frame["status"] == "ok", "latency_ms"], _QUANTILE)
            return None if p95 is None else Measured(p95, other.run_id)
    return None


def changed_manifest(manifest: RunManifest, change: Change) -> RunManifest | None:
    """The manifest that a run under a change would have; None for what no service can be set to."""
    fields = dict(_changed_fields(manifest, change))
    return manifest.model_copy(update=fields) if fields else None


def _changed_fields(manifest: RunManifest, change: Change) -> Iterator[tuple[str, Any]]:
    fusion: Mapping[str, Any] = manifest.fusion or {}
    match change.setting:
        case "k":
            yield "top_k", change.value
        case "rerank":
            yield "rerank", None
        case "context_budget_tokens" | "threshold" | "candidate_k":
            yield change.setting, change.value
        case "rrf_k" | "deduplicate":
            yield "fusion", {**fusion, _IN_FUSION[change.setting]: change.value}
        case "weights":
            yield "fusion", {**fusion, "weights": dict(_pairs(change))}
        case "channel":
            weights = fusion.get("weights") or {}
            kept = {name: weight for name, weight in weights.items() if name == change.value}
            yield "fusion", {**fusion, "weights": kept}
            yield "keyword", change.value == "keyword"


def _pairs(change: Change) -> tuple[tuple[str, float], ...]:
    return change.value if isinstance(change.value, tuple) else ()
