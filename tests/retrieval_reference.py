"""The retrieval figures of metrics.md, written down as plainly as they can be."""

from __future__ import annotations

import math
from collections.abc import Sequence


def first_hit(retrieved: Sequence[str], group: Sequence[str]) -> int | None:
    return next((i for i, chunk in enumerate(retrieved, 1) if chunk in group), None)


def greedy_gains(groups: Sequence[Sequence[str]]) -> list[int]:
    still_open = {i: set(group) for i, group in enumerate(groups)}
    gains = []
    while any(still_open.values()):
        chunks = sorted({chunk for group in still_open.values() for chunk in group})
        counts = [sum(chunk in group for group in still_open.values()) for chunk in chunks]
        best = chunks[counts.index(max(counts))]
        gains.append(max(counts))
        still_open = {i: group for i, group in still_open.items() if best not in group}
    return gains + [1] * len(still_open)


def figures(
    retrieved: Sequence[str], groups: Sequence[Sequence[str]], forbidden: Sequence[str], k: int
) -> dict[str, float | bool | None]:
    top = list(retrieved)[:k]
    chunk_figures = {
        "duplicate_rate": (len(top) - len(set(top))) / len(top) if top else 0.0,
        "forbidden": len(set(top) & set(forbidden)),
    }
    names = ("recall", "hit", "mrr", "ndcg", "map", "precision", "failed")
    if not groups:
        return {**dict.fromkeys(names), **chunk_figures}
    first = [f for f in (first_hit(top, group) for group in groups) if f]
    ideal = sum(gain / math.log2(1 + rank) for rank, gain in enumerate(greedy_gains(groups)[:k], 1))
    labelled = {chunk for group in groups for chunk in group}
    return chunk_figures | {
        "recall": len(first) / len(groups),
        "hit": float(bool(first)),
        "mrr": 1 / min(first) if first else 0.0,
        "ndcg": min(1.0, sum(1 / math.log2(1 + f) for f in first) / ideal),
        "map": sum(min(1.0, sum(g <= f for g in first) / f) for f in first) / len(groups),
        "precision": len(set(top) & labelled) / k,
        "failed": len(first) < len(groups),
    }
