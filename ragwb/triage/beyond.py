"""Since which stage evidence that is ranked beyond K stands there: the reranker may be blameless.

RANKED_BELOW_K is counted at the stage `rerank`, where the list ends that is cut at K. That tells
where the evidence was cut off, and not which stage put it so low.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ragwb.html import plain
from ragwb.runs.results import LATER_STAGES

if TYPE_CHECKING:
    from ragwb.triage.verdict import CaseVerdict

RANKED_BELOW_K = "RANKED_BELOW_K"

Since = Literal["channel", "fusion", "reranking", "results", "untold"]
"""What put evidence beyond K; `untold`: no stage before the first observed one that had it so."""

SINCE_WORDS: dict[Since, str] = {
    "channel": "since a channel",
    "fusion": "since fusion",
    "reranking": "since reranking",
    "results": "since a step before the results",
    "untold": "since a stage that was not observed",
}
"""Each as it stands behind a count, in pipeline order."""

_BY_STAGE: dict[str, Since] = {"fused": "fusion", "reranked": "reranking", "results": "results"}


@dataclass(frozen=True, slots=True)
class Fall:
    """How evidence came to stand beyond K.

    Attributes:
        since: what put it there: the first stage after the last at which it stood within K.
        path: its best rank at every stage that holds it, in a line.
        words: path and since in a sentence, with what the reranker did to it.
    """

    since: Since
    path: str
    words: str


def fall_beyond(ranks: Mapping[str, int | None], *, k: int) -> Fall:
    """How a group that ends beyond K came there.

    Args:
        ranks: its best rank at each observed stage, in pipeline order; at the last one above K.
        k: the cut of the results.

    Example:
        vector 4, fused 7, reranked 7 at K = 5 -> since fusion; "vector 4 → fused 7 → reranked 7:
        beyond K since fusion; the reranker moved it 7 → 7"
    """
    held = {stage: rank for stage, rank in ranks.items() if rank is not None}
    channels = {stage: rank for stage, rank in held.items() if stage not in LATER_STAGES}
    later = {stage: held[stage] for stage in _BY_STAGE if stage in held}
    since = _since(channels, later, k)
    steps = [", ".join(_at(*step) for step in sorted(channels.items(), key=lambda s: s[1]))]
    path = " → ".join(filter(None, (*steps, *(_at(*step) for step in later.items()))))
    words = f"beyond K {_since_words(since, list(channels))}"
    words = f"{path}: {words}" if "→" in path else words
    before = later.get("fused", min(channels.values(), default=None))
    if since in ("channel", "fusion") and "reranked" in later and before is not None:
        words += f"; the reranker moved it {before} → {later['reranked']}"
    return Fall(since, path, words)


def _since(channels: Mapping[str, int], later: Mapping[str, int], k: int) -> Since:
    """The first stage beyond K after the last within it."""
    steps: list[tuple[Since, int]] = [(_BY_STAGE[stage], rank) for stage, rank in later.items()]
    if channels:
        steps.insert(0, ("channel", min(channels.values())))
    within = [place for place, (_, rank) in enumerate(steps) if rank <= k]
    if within:
        return steps[min(within[-1] + 1, len(steps) - 1)][0]
    return "channel" if channels else "untold"


def _since_words(since: Since, channels: list[str]) -> str:
    if since == "channel":
        return f"since {plain(channels[0])}" if len(channels) == 1 else "since every channel"
    return SINCE_WORDS[since]


def _at(stage: str, rank: int) -> str:
    return f"{plain(stage)} {rank}"


def since_of(verdict: CaseVerdict, *, k: int) -> Since | None:
    """What put the evidence of a case beyond K; None when that is not why it fails."""
    if verdict.reason != RANKED_BELOW_K:
        return None
    ranks = next(group.ranks for group in verdict.groups if group.reason == RANKED_BELOW_K)
    return fall_beyond(ranks, k=k).since


def count_beyond(verdicts: Iterable[CaseVerdict], *, k: int) -> dict[Since, int]:
    """How many cases are ranked beyond K since what, in pipeline order; {} when none is."""
    found = Counter(since_of(verdict, k=k) for verdict in verdicts)
    return {since: found[since] for since in SINCE_WORDS if found[since]}


def beyond_words(counts: Mapping[Since, int]) -> str:
    """Such counts in words; "" when there are none.

    Example:
        "7 ranked beyond K: 4 since a channel, 2 since fusion, 1 since reranking"
    """
    return f"{sum(counts.values())} ranked beyond K: {parts_words(counts)}" if counts else ""


def parts_words(counts: Mapping[Since, int]) -> str:
    """The same without their sum: "4 since a channel, 2 since fusion"."""
    return ", ".join(f"{n} {SINCE_WORDS[since]}" for since, n in counts.items())
