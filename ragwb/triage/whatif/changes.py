"""One changed setting, in words, and the changes that are worth trying on a run."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from ragwb.html import plain
from ragwb.records import MAX_TOP_K
from ragwb.runs.traces import Trace
from ragwb.triage.whatif.declared import Declared, declared
from ragwb.triage.whatif.explained import needed_candidates, waivable

if TYPE_CHECKING:
    from ragwb.triage.result import Triage

Setting = Literal[
    "k",
    "rerank",
    "rrf_k",
    "weights",
    "channel",
    "deduplicate",
    "context_budget_tokens",
    "threshold",
    "candidate_k",
    "waive",
]
Weights = tuple[tuple[str, float], ...]
Value = int | float | str | Weights | None

_KS = (1, 2, 3, 5, 10, 20, 50, MAX_TOP_K)
_RRF_KS = (1, 10, 20, 60)
_RATIOS = (0.25, 0.5, 1.0, 2.0, 4.0)
_BUDGETS = (1.5, 2, 3, 4)
_CANDIDATE_KS = (100, 200)


@dataclass(frozen=True, slots=True)
class Change:
    """One setting changed, all others as in the run.

    Attributes:
        setting: `k` (top K), `rerank` (value "off"), `rrf_k`, `weights` (pairs of channel and
            weight), `channel` (only this one), `deduplicate` ("id" or "text", before the cut at K),
            `context_budget_tokens`, `threshold` (value None: without), `candidate_k`, or `waive`
            (what a filter of this reason took comes back).
        value: what it is changed to.
        before: what it was, for people; two changes to the same value are equal.
    """

    setting: Setting
    value: Value
    before: Value = field(default=None, compare=False)

    @property
    def is_remedy(self) -> bool:
        """Whether it may be done at all: a filter is waived only to show its effect."""
        return self.setting != "waive"

    @property
    def label(self) -> str:
        """The change in words, such as "K = 10" or "fusion weight keyword 0.5 → 1"."""
        match self.setting:
            case "k":
                return f"K = {self.value}"
            case "rerank":
                return "no reranker"
            case "weights":
                return self._weights_label()
            case "channel":
                return f"only {plain(self.value)}"
            case "deduplicate":
                return f"duplicates removed by {self.value}"
            case "waive":
                return f"filter reason {plain(self.value)} waived"
            case _:
                return self._number_label()

    @property
    def distance(self) -> float:
        """How far the value is from what it was, as a logarithm; 0 for what is no number."""
        if isinstance(self.value, tuple) and isinstance(self.before, tuple):
            before = dict(self.before)
            return sum(_log_ratio(weight, before.get(name)) for name, weight in self.value)
        return _log_ratio(self.value, self.before)

    def _number_label(self) -> str:
        name, unit = {
            "rrf_k": ("RRF constant", ""),
            "context_budget_tokens": ("context budget", " tokens"),
            "threshold": ("threshold", ""),
            "candidate_k": ("candidate K", ""),
        }[self.setting]
        before = "" if self.before is None else f"{_number(self.before)} → "
        return f"{name} {before}{_number(self.value)}{unit}"

    def _weights_label(self) -> str:
        before = dict(self.before) if isinstance(self.before, tuple) else {}
        after = dict(self.value) if isinstance(self.value, tuple) else {}
        changed = {name: weight for name, weight in after.items() if before.get(name) != weight}
        parts = (
            f"{plain(name)} {_number(before[name])} → {_number(weight)}"
            if name in before
            else f"{plain(name)} {_number(weight)}"
            for name, weight in changed.items()
        )
        return f"fusion weight {', '.join(parts)}"


def _log_ratio(value: Value, before: Value) -> float:
    if not isinstance(value, int | float) or not isinstance(before, int | float):
        return 0.0
    # By one more, since a weight or a constant may be 0.
    return abs(math.log((1 + value) / (1 + before)))


def _number(value: Value) -> str:
    return f"{value:g}" if isinstance(value, int | float) else "none"


def grid(triage: Triage) -> tuple[Change, ...]:
    """The changes that are tried on a run: a grid over every setting that it tells of."""
    said = declared(triage.run)
    observed = {name for pair in triage.traces for name in triage.traces.result(pair)["observed"]}
    return (
        *(Change("k", k, triage.k) for k in _KS if k != triage.k),
        *_rerank(observed),
        *_fusion(said, triage.traces.channels),
        *_duplicates(said),
        *_budget(said, observed),
        *_candidates(triage, said),
        *_waived(triage),
    )


def _rerank(observed: set[str]) -> Iterator[Change]:
    if "reranked" in observed:
        yield Change("rerank", "off")


def _fusion(said: Declared, channels: list[str]) -> Iterator[Change]:
    if len(channels) < 2:
        return
    yield from (Change("channel", name) for name in channels)
    if said.rrf_k is None:
        return
    yield from (Change("rrf_k", k, said.rrf_k) for k in _RRF_KS if k != said.rrf_k)
    weights = said.weights_of(channels)
    first, *others = channels
    for name in others:
        tried = (weights[first] * ratio for ratio in _RATIOS)
        for weight in tried:
            if weight not in (0, weights[name]):
                changed = {**weights, name: weight}
                yield Change("weights", tuple(changed.items()), tuple(weights.items()))


def _duplicates(said: Declared) -> Iterator[Change]:
    if said.deduplicate == "off":
        yield Change("deduplicate", "id")
    if said.deduplicate != "text":
        yield Change("deduplicate", "text")


def _budget(said: Declared, observed: set[str]) -> Iterator[Change]:
    budget = said.context_budget
    if budget is not None and "context" in observed:
        yield from (Change("context_budget_tokens", int(budget * x), budget) for x in _BUDGETS)


def _candidates(triage: Triage, said: Declared) -> Iterator[Change]:
    if said.threshold is not None:
        yield Change("threshold", None, said.threshold)
    if said.candidate_k is not None:
        for k in sorted({*_CANDIDATE_KS, *_needed_candidates(triage, said.candidate_k)}):
            if k > said.candidate_k:
                yield Change("candidate_k", k, said.candidate_k)


def _needed_candidates(triage: Triage, candidate_k: int) -> Iterator[int]:
    """The least candidate K that reaches all chunks which `/explain` ranks beyond the cut."""
    needed = [needed_candidates(trace, candidate_k) or 0 for trace in _explained(triage)]
    if max(needed, default=0):
        yield max(needed)


def _waived(triage: Triage) -> Iterator[Change]:
    reasons = {reason for trace in _explained(triage) for reason in waivable(trace).values()}
    yield from (Change("waive", reason) for reason in sorted(reasons))


def _explained(triage: Triage) -> Iterator[Trace]:
    """The results of failed cases of which `/explain` said anything."""
    for case in triage.cases:
        for repeat in range(1, triage.run.manifest.repeats + 1):
            pair = (case.case_id, repeat)
            if triage.traces.explanations(pair):
                yield triage.traces[pair]
