"""What `/explain` says of chunks that other settings would bring among the candidates."""

from __future__ import annotations

from collections.abc import Iterator

from ragwb.records import Explanation
from ragwb.runs.traces import Trace
from ragwb.triage.whatif.labels import required_groups

THRESHOLD = "THRESHOLD"


def beyond_the_cut(trace: Trace, candidate_k: int) -> dict[str, int]:
    """The least candidate K that brings each lost chunk into a channel, by chunk id.

    Those that are visible, in no channel's candidates, and ranked beyond the cut. A rewritten
    question has other ranks than `/explain`, which never rewrites.
    """
    if trace.rewritten is not None or "channels" not in trace.result["observed"]:
        return {}
    found = {}
    for chunk_id, said in _lost(trace):
        rank = min(_channel_ranks(trace, said).values(), default=0)
        if said.visible and not said.filtered_by and rank > candidate_k:
            found[chunk_id] = rank
    return found


def needed_candidates(trace: Trace, candidate_k: int) -> int | None:
    """The least candidate K that reaches every lost group which lies beyond the cut; None for none.

    A group is reached by the nearest of its chunks.
    """
    beyond = beyond_the_cut(trace, candidate_k)
    groups = required_groups(trace.case)
    nearest = (min((beyond[i] for i in ids if i in beyond), default=0) for ids in groups)
    return max(nearest, default=0) or None


def waivable(trace: Trace) -> dict[str, str]:
    """The filter reason that alone keeps each lost chunk away, by chunk id; the threshold aside."""
    return {
        chunk_id: reasons[0]
        for chunk_id, said in _lost(trace)
        if len(reasons := said.filtered_by or []) == 1 and reasons[0] != THRESHOLD
    }


def below_threshold(trace: Trace) -> set[str]:
    """The lost chunks that nothing but the threshold keeps away."""
    return {chunk_id for chunk_id, said in _lost(trace) if said.filtered_by == [THRESHOLD]}


def final_rank(trace: Trace, chunk_id: str) -> int | None:
    """The rank in the final list that `/explain` gives a chunk, which knows no candidate cut."""
    said = trace.explanations.get(chunk_id)
    if said is None or trace.rewritten is not None:
        return None
    ranks = said.ranks or {}
    stage = "reranked" if "reranked" in trace.stages else "fused"
    if ranks.get(stage) is not None or stage == "reranked":
        return ranks.get(stage)
    channels = _channel_ranks(trace, said)
    return next(iter(channels.values())) if len(trace.channels) == len(channels) == 1 else None


def _lost(trace: Trace) -> Iterator[tuple[str, Explanation]]:
    """The explained chunks of required groups that no channel holds."""
    held = {i for name in trace.channels for i in trace.channels[name].chunk_ids}
    for chunk_ids in required_groups(trace.case):
        for chunk_id in chunk_ids:
            if chunk_id in trace.explanations and chunk_id not in held:
                yield chunk_id, trace.explanations[chunk_id]


def _channel_ranks(trace: Trace, said: Explanation) -> dict[str, int]:
    ranks = {name: (said.ranks or {}).get(name) for name in trace.channels}
    return {name: rank for name, rank in ranks.items() if rank is not None}
