"""Where the time of two runs differs: the stage that moved most, and whether a change touches it.

Two runs of the same service under another load of the machine differ in time as well. What tells a
change from the load is where the time went: into a stage that something changed could touch, or
into one that nothing did.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ragwb.decide.conditions import Factor
from ragwb.decide.outcomes import Outcomes
from ragwb.decide.thresholds import ROUNDING
from ragwb.measure.cost import PERCENTILES, percentile

OUTSIDE = "outside the service"
"""What the client waited beyond the service's own total: the network, a queue, the machine."""

REST = "the rest of the service"
"""What the service's total holds beyond the stages that it names."""

_TOTAL = "total"
# What a search goes over: the chunks that there are, and those that may be seen.
_CHUNKS = ("chunking", "knowledge_snapshot", "index_version", "identity")
_VECTOR = ("embedding_model", "embedding_dimensions", "distance")
_TOUCHED: Mapping[str, tuple[str, ...]] = {
    "rewrite": ("rewrite",),
    "embedding": ("embedding_model", "embedding_dimensions", "rewrite"),
    "vector": (*_VECTOR, *_CHUNKS, "candidate_k"),
    "keyword": ("keyword", "rewrite", *_CHUNKS, "candidate_k"),
    "filter": _CHUNKS,
    "fusion": ("fusion", "keyword", "candidate_k", "threshold", *_CHUNKS),
    "rerank": ("rerank", "fusion", "keyword", "candidate_k", "threshold", *_VECTOR, *_CHUNKS),
    "context": ("top_k", "context_budget_tokens", "fusion", *_CHUNKS),
    # A reply holds what was found.
    OUTSIDE: ("top_k", "candidate_k", "keyword", "threshold", "packages", *_CHUNKS),
}
# Changes that may touch every stage, and those that touch none: they come after the answers.
_EVERYWHERE = ("service", "code_version", "concurrency")
_NOWHERE = ("judge_model", "rubric_hash")


@dataclass(frozen=True, slots=True)
class Moved:
    """The stage in which most of a difference of time lies.

    Attributes:
        stage: its name as the service gives it, or `REST` or `OUTSIDE`.
        ms: the median over the pairs of its difference, candidate - baseline.
        is_touched: whether something that changed may touch it.
    """

    stage: str
    ms: float
    is_touched: bool


def moved_stage(
    baseline: Outcomes,
    candidate: Outcomes,
    case_ids: Iterable[str],
    factors: Iterable[Factor],
    *,
    sign: int,
) -> Moved | None:
    """The stage whose median paired difference went furthest in one direction.

    Args:
        baseline: the one side.
        candidate: the other side.
        case_ids: the pairs; those without timings on a side are left aside.
        factors: what changed between the two.
        sign: 1 for the stage that rose most, -1 for that which fell most.

    Returns:
        None where a side has no timings by stage, or no stage went that way.
    """
    before, after = (_by_case(side, set(case_ids)) for side in (baseline, candidate))
    both = before.index.intersection(after.index)
    if not len(both):
        return None
    names = before.columns.union(after.columns, sort=False)
    # A stage that a side does not have took no time there.
    sides = [one.loc[both].reindex(columns=names).fillna(0.0) for one in (before, after)]
    medians = sign * (sides[1] - sides[0]).median()
    stage = str(medians.idxmax())
    if medians[stage] <= ROUNDING:
        return None
    # What one of the two does not do at all, a change has brought or taken.
    is_new = (stage in before) != (stage in after)
    is_touched = any(is_new or touches(factor, stage) for factor in factors)
    return Moved(stage, float(sign * medians[stage]), is_touched)


def is_explained(
    baseline: Outcomes,
    candidate: Outcomes,
    case_ids: Iterable[str],
    factors: Iterable[Factor],
    *,
    sign: int,
) -> tuple[bool, Moved | None]:
    """Whether something that changed may explain a difference of time; arguments: `moved_stage`.

    Returns:
        False where nothing that takes time is known to have changed, or where the stages are told
        and most of the difference lies in none that a change touches. And the stage, if it is told.
    """
    known = [factor for factor in factors if factor.name.partition(".")[0] not in _NOWHERE]
    moved = moved_stage(baseline, candidate, case_ids, known, sign=sign)
    if not known or moved is not None:
        return moved is not None and moved.is_touched, moved
    return not (_has_stages(baseline) and _has_stages(candidate)), None


def _has_stages(side: Outcomes) -> bool:
    return "timings_ms" in side.latencies and bool(side.latencies["timings_ms"].notna().any())


def touches(factor: Factor, stage: str) -> bool:
    """Whether a change may make a stage slower or faster; of a stage not known here it may."""
    place = factor.name.partition(".")[0]
    if place in _NOWHERE:
        return False
    return place in _EVERYWHERE or place in _TOUCHED.get(stage, (place,))


def slowest_cases(side: Outcomes, case_ids: pd.Series[Any]) -> tuple[str, ...]:
    """Those of the cases of which a call took at least the side's p95, the slowest first."""
    mine = side.latencies[side.latencies["case_id"].isin(case_ids)]
    p95 = percentile(mine["latency_ms"], PERCENTILES["p95_ms"])
    if p95 is None:
        return ()
    slow = mine[mine["latency_ms"] >= p95].sort_values("latency_ms", ascending=False, kind="stable")
    return tuple(dict.fromkeys(str(case_id) for case_id in slow["case_id"]))


def _by_case(side: Outcomes, case_ids: set[str]) -> pd.DataFrame:
    """Milliseconds by case and stage, as means over the repeats; empty where none are told."""
    if not _has_stages(side):
        return pd.DataFrame()
    told = side.latencies[side.latencies["timings_ms"].notna()]
    told = told[told["case_id"].isin(case_ids)]
    columns = (told[name].tolist() for name in ("latency_ms", "timings_ms"))
    rows = [_stages(latency, timings) for latency, timings in zip(*columns, strict=True)]
    frame = pd.DataFrame(rows, dtype="float64").fillna(0.0)
    return frame.groupby(told["case_id"].to_numpy(), sort=False).mean()


def _stages(latency_ms: float, timings: Any) -> dict[str, float]:
    """One call's milliseconds by stage, in the service beside them, and outside of it."""
    by_stage: dict[str, float] = dict(timings)
    total = by_stage.pop(_TOTAL, None)
    if total is None:
        return by_stage
    named = sum(by_stage.values())
    by_stage[REST] = total - named
    if not pd.isna(latency_ms):
        by_stage[OUTSIDE] = latency_ms - total
    return by_stage
