"""A small service of plain Python, to hold what-if against: whatever it answers is the truth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from triage_data import Shown

from ragwb.knowledge.tokens import count_tokens


@dataclass(frozen=True)
class World:
    """What one question finds; chunks are named so that those of one text share a first letter.

    Attributes:
        channels: every chunk that a channel ranks, best first, without any cut.
        own: the reranker's own score of each chunk.
        groups: chunks of each required group.
        hidden: chunks that a filter keeps away.
    """

    channels: Mapping[str, Sequence[str]]
    own: Mapping[str, float]
    groups: Sequence[Sequence[str]] = (("a0",),)
    forbidden: Sequence[str] = ()
    hidden: Sequence[str] = ()


@dataclass(frozen=True)
class Config:
    """Settings of the service; `above` is how many visible chunks of the vector channel are above
    the threshold, None without one."""

    top_k: int = 3
    candidate_k: int = 50
    above: int | None = None
    rrf_k: float = 10
    weights: Mapping[str, float] = field(default_factory=lambda: {"vector": 1.0, "keyword": 0.53})
    rerank: bool = True
    blend: float = 0.25
    deduplicate: str = "off"
    budget: int | None = 1000

    @property
    def manifest(self) -> dict[str, Any]:
        """What the service and the run say of these settings."""
        return {
            "top_k": self.top_k,
            "candidate_k": self.candidate_k,
            "threshold": None if self.above is None else 0.5,
            "context_budget_tokens": self.budget,
            "rerank": "model" if self.rerank else None,
            "fusion": {
                "method": "rrf",
                "k": self.rrf_k,
                "weights": dict(self.weights),
                "rerank": {"method": "unit", "weight": self.blend},
                "deduplicate": self.deduplicate,
            },
            "service": {"rerank": "model" if self.rerank else None},
        }


def text_of(chunk_id: str) -> str:
    """The text of a chunk: the same for all that share a first letter, some longer than others."""
    return f"{chunk_id[0]} 的条款。" * (1 + ord(chunk_id[0]) % 7)


def tokens_of(chunk_id: str) -> int:
    return count_tokens(f"\n{text_of(chunk_id)}")


def answer(world: World, config: Config) -> Shown:
    """What the service shows for a question."""
    channels = {
        name: _kept(world, config, name) for name in config.weights if name in world.channels
    }
    fused = _fused(channels, config)
    scores = {"fused": list(fused.values())}
    final, reranked = list(fused), None
    if config.rerank:
        ranked = _reranked(fused, world, config)
        final, reranked = list(ranked), list(ranked)
        scores["reranked"] = list(ranked.values())
    results = _distinct(final, config.deduplicate)[: config.top_k]
    context = _fitting(results, config.budget)
    return Shown(
        groups=world.groups,
        forbidden=world.forbidden,
        channels=channels,
        fused=list(fused),
        reranked=reranked,
        results=results,
        context=context,
        context_tokens=sum(map(tokens_of, context)),
        filtered=[entry for name in channels for entry in _taken(world, config, name)],
        scores=scores,
    )


def _above(world: World, config: Config, name: str) -> list[str]:
    visible = [i for i in world.channels[name] if i not in world.hidden]
    return visible if name != "vector" else visible[: config.above]


def _kept(world: World, config: Config, name: str) -> list[str]:
    return _above(world, config, name)[: config.candidate_k]


def _taken(world: World, config: Config, name: str) -> Iterator[tuple[str, str, str]]:
    """What would stand in the first candidate K without the filters, and why it does not."""
    above = _above(world, config, name)
    for chunk_id in world.channels[name][: config.candidate_k]:
        if chunk_id not in above:
            yield chunk_id, name, "ACL" if chunk_id in world.hidden else "THRESHOLD"


def _fused(channels: Mapping[str, Sequence[str]], config: Config) -> dict[str, float]:
    sums: dict[str, float] = {}
    for name, ids in channels.items():
        if config.weights[name] > 0:
            for rank, chunk_id in enumerate(ids, 1):
                share = config.weights[name] / (config.rrf_k + rank)
                sums[chunk_id] = sums.get(chunk_id, 0.0) + share
    return _best_first(sums)


def _reranked(fused: Mapping[str, float], world: World, config: Config) -> dict[str, float]:
    own, merged = _unit({i: world.own[i] for i in fused}), _unit(fused)
    return _best_first({i: config.blend * own[i] + (1 - config.blend) * merged[i] for i in fused})


def _best_first(scores: Mapping[str, float]) -> dict[str, float]:
    return dict(sorted(scores.items(), key=lambda pair: -pair[1]))


def _unit(scores: Mapping[str, float]) -> dict[str, float]:
    low, high = min(scores.values(), default=0), max(scores.values(), default=0)
    return {i: (s - low) / (high - low) if high > low else 1.0 for i, s in scores.items()}


def _distinct(ids: Sequence[str], kind: str) -> list[str]:
    if kind == "off":
        return list(ids)
    first: dict[str, str] = {}
    for chunk_id in ids:
        first.setdefault(chunk_id if kind == "id" else chunk_id[0], chunk_id)
    return list(first.values())


def _fitting(ids: Sequence[str], budget: int | None) -> list[str]:
    used, kept = 0, []
    for chunk_id in ids:
        used += tokens_of(chunk_id)
        if budget is not None and used > budget:
            break
        kept.append(chunk_id)
    return kept
