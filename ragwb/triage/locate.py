"""How far one chunk got, and what stopped it there."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from ragwb.html import plain
from ragwb.measure.listed import count
from ragwb.triage.observed import Observed
from ragwb.triage.reasons import NOT_OBSERVED, REASONS, Stage
from ragwb.triage.unseen import Unseen, explain_unseen


class Reach(IntEnum):
    """How far a chunk got; of one whose end was not observed, the farthest that it may have got."""

    KNOWLEDGE = 0
    FILTER = 1
    RECALL = 2
    CHANNEL = 3
    MERGED = 4
    FINAL = 5
    TOP_K = 6


@dataclass(frozen=True, slots=True)
class Location:
    """Where and why one chunk was lost.

    Attributes:
        reason: a reason code.
        reach: how far it got.
        rank: its position where it was last seen, or in `/explain`; None when it has none.
        proof: what the trace or `/explain` says, in a sentence.
        missing_field: with NOT_OBSERVED the field that would decide.
    """

    reason: str
    reach: Reach
    rank: int | None
    proof: str
    missing_field: str | None = None

    @property
    def stage(self) -> Stage:
        """The stage of the reason."""
        return REASONS[self.reason].stage


def locate(observed: Observed, chunk_id: str) -> Location:
    """Where and why a chunk was lost; it must not stand in the results and the context both."""
    rank = observed.rank("results", chunk_id)
    if rank is not None and rank <= observed.k:
        return _cut_from_context(observed, rank)
    if rank is not None:
        return _below_k(observed, "results", chunk_id, rank)
    rank = observed.rank(observed.final, chunk_id)
    if rank is not None and observed.final is not None:
        if rank > observed.k:
            return _below_k(observed, observed.final, chunk_id, rank)
        return _gone_after_final(observed, observed.final, chunk_id, rank)
    rank = observed.rank(observed.merged, chunk_id)
    if rank is not None and observed.merged is not None:
        return _gone_after_merging(observed, observed.merged, rank)
    return _gone_in_channels(observed, chunk_id)


def _cut_from_context(observed: Observed, rank: int) -> Location:
    proof = f"in the top {observed.k} at rank {rank}, {_end_of_context(observed)}"
    return Location("CONTEXT_TRUNCATED", Reach.TOP_K, rank, proof)


def _end_of_context(observed: Observed) -> str:
    n_chunks = len(observed.ids("context"))
    used, budget = observed.trace.result["context_tokens"], observed.conditions.context_budget
    tokens = ""
    if used is not None and budget is not None:
        tokens = f" with {used:,} of {budget:,} tokens"
    elif used is not None:
        tokens = f" with {used:,} tokens"
    return f"the context ends after {count(n_chunks, 'chunk')}{tokens}"


def _below_k(observed: Observed, stage: str, chunk_id: str, rank: int) -> Location:
    stands = f"rank {rank} of {stage}, K = {observed.k}"
    # Duplicates of the list crowd out only what the results took from it as it stands.
    is_taken = stage == "results" or observed.is_head_of(stage)
    text = _place_among_texts(observed, stage if is_taken else "results", chunk_id)
    if text is None:
        return Location("RANKED_BELOW_K", Reach.FINAL, rank, stands)
    proof = f"{stands}; {_would_be(*text, rank, chunk_id)}"
    return Location("CROWDED_OUT_BY_DUPLICATES", Reach.FINAL, rank, proof)


def _place_among_texts(observed: Observed, stage: str, chunk_id: str) -> tuple[int, str] | None:
    """The place of a chunk's text among distinct texts and who holds it; None beyond K of them."""
    wanted = observed.traces.text_key(chunk_id)
    seen: set[str] = set()
    for other in observed.ids(stage):
        key = observed.traces.text_key(other)
        seen.add(key)
        if len(seen) > observed.k:
            return None
        if key == wanted:
            return len(seen), other
    return None


def _would_be(place: int, holder: str, rank: int, chunk_id: str) -> str:
    if holder != chunk_id:
        other = plain(holder, width=60)
        return f"without duplicates its text would be at {place}, under another id, {other}"
    return f"without {count(rank - place, 'duplicate')} it would be at {place}"


def _gone_after_final(observed: Observed, stage: str, chunk_id: str, rank: int) -> Location:
    stands = f"rank {rank} of {stage}, K = {observed.k}, and not in the results"
    text = _place_among_texts(observed, "results", chunk_id)
    if text is not None:
        proof = f"{stands}; {_would_be(*text, rank, chunk_id)}"
        return Location("CROWDED_OUT_BY_DUPLICATES", Reach.FINAL, rank, proof)
    return Location(
        NOT_OBSERVED,
        Reach.FINAL,
        rank,
        f"{stands}: a step after {stage} is not in the trace",
        f"results: a step after {stage}",
    )


def _gone_after_merging(observed: Observed, stage: str, rank: int) -> Location:
    stands = f"rank {rank} of {stage}"
    if "reranked" in observed.ranks:
        left = count(len(observed.ids("reranked")), "candidate")
        proof = f"{stands}, gone after reranking ({left})"
        return Location("RERANK_DROPPED", Reach.MERGED, rank, proof)
    proof = f"{stands}, not in the results: whether a reranker ran, and its list, were not observed"
    return Location(NOT_OBSERVED, Reach.FINAL, rank, proof, "reranked")


def _gone_in_channels(observed: Observed, chunk_id: str) -> Location:
    held = observed.channel_ranks(chunk_id)
    if not held:
        return _in_no_list(observed, chunk_id)
    best = min(held.values())
    stands = "rank " + " and ".join(f"{rank} of {name}" for name, rank in held.items())
    if "fused" in observed.ranks:
        left = count(len(observed.ids("fused")), "candidate")
        return Location(
            "FUSION_DROPPED", Reach.CHANNEL, best, f"{stands}, gone after fusion ({left})"
        )
    # Without the fused list it may have been lost there or later, but not beyond a list without it.
    farthest = Reach.MERGED if "reranked" in observed.ranks else Reach.FINAL
    proof = f"{stands}, not in the results: the fused list was not observed"
    return Location(NOT_OBSERVED, farthest, best, proof, "fused")


def _in_no_list(observed: Observed, chunk_id: str) -> Location:
    rank = observed.rank("context", chunk_id)
    if rank is None:
        return _unseen(observed, explain_unseen(observed, chunk_id))
    proof = (
        f"position {rank} of the context, and in no list before it: how it came there is not told"
    )
    return Location(NOT_OBSERVED, Reach.FINAL, rank, proof, "results: a step before the context")


def _unseen(observed: Observed, found: Unseen) -> Location:
    reach = Reach[REASONS[found.reason].stage.upper()] if found.reason != NOT_OBSERVED else None
    if reach is None:
        reach = Reach.FILTER if found.is_filtered else _farthest_unseen(observed)
    return Location(found.reason, reach, found.rank, found.proof, found.missing_field)


def _farthest_unseen(observed: Observed) -> Reach:
    """How far a chunk may have got that no observed list holds."""
    if observed.has_channels:
        return Reach.RECALL
    if "fused" in observed.ranks:
        return Reach.CHANNEL
    return Reach.MERGED if "reranked" in observed.ranks else Reach.FINAL
