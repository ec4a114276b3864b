"""Why a chunk is in no observed list: what `/explain` and the filters say of it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from ragwb.html import plain
from ragwb.records import Explanation
from ragwb.runs.results import LATER_STAGES
from ragwb.triage.observed import Observed
from ragwb.triage.reasons import FILTER_REASONS, NOT_OBSERVED

THRESHOLD = "THRESHOLD"
# The channel of the protocol that the threshold cuts.
_SCORED_CHANNEL = "vector"
HIDDEN = "missing or filtered: not visible to this token"


@dataclass(frozen=True, slots=True)
class Unseen:
    """Why a chunk was seen nowhere.

    Attributes:
        reason: a reason code of the stages knowledge, filter and recall, or NOT_OBSERVED.
        rank: its best rank in `/explain`, None when it has none.
        proof: what says so, in a sentence.
        missing_field: with NOT_OBSERVED the field that would decide.
        is_filtered: a filter kept it out, though not which; only with NOT_OBSERVED.
    """

    reason: str
    rank: int | None
    proof: str
    missing_field: str | None = None
    is_filtered: bool = False


def explain_unseen(observed: Observed, chunk_id: str) -> Unseen:
    """Why a chunk is in no observed list."""
    said = observed.trace.explanations.get(chunk_id)
    filtered = observed.filtered.get(chunk_id, ())
    if said is not None:
        # What a filter kept out was there when the question was asked.
        lost = None if said.state == "missing" and filtered else _lost_in_knowledge(said)
        if lost is not None:
            return lost
    if filtered:
        return _filtered(observed, chunk_id, said)
    if said is None:
        return _not_explained(observed)
    if not said.visible:
        return _hidden(said)
    return _visible(observed, said)


def _lost_in_knowledge(said: Explanation) -> Unseen | None:
    if said.state == "missing":
        if said.moved_to:
            where = _some(said.moved_to)
            return Unseen("CHUNK_ID_DRIFTED", None, f"/explain: missing; its text is now {where}")
        return Unseen("KNOWLEDGE_MISSING", None, f"{_told(said)}, and its text is nowhere else")
    if said.state == "unpublished":
        return Unseen("KNOWLEDGE_UNPUBLISHED", _best_rank(said), _told(said))
    if said.state == "retired":
        return Unseen("STATUS_FILTERED", _best_rank(said), _told(said))
    return None


def _filtered(observed: Observed, chunk_id: str, said: Explanation | None) -> Unseen:
    """What the trace says that a filter kept out of a channel's candidates."""
    entries = observed.filtered[chunk_id]
    reason = _first_reason(entry.reason for entry in entries)
    rank = None if said is None else _best_rank(said)
    if reason is None:
        return _unnamed_filter([entry.reason for entry in entries], rank)
    if reason == THRESHOLD and not observed.has_channels:
        proof = "below the threshold in one channel; whether another held it was not observed"
        return Unseen(NOT_OBSERVED, rank, proof, "channels")
    channels = [entry.channel for entry in entries if entry.reason == reason and entry.channel]
    where = f" in {' and '.join(map(plain, dict.fromkeys(channels)))}" if channels else ""
    also = "" if said is None else f"; {_told(said)}"
    if reason == THRESHOLD:
        return Unseen("BELOW_THRESHOLD", rank, f"filtered by THRESHOLD{where}, in no channel{also}")
    return Unseen(FILTER_REASONS[reason], rank, f"filtered by {reason}{where}{also}")


def _hidden(said: Explanation) -> Unseen:
    """What `/explain` says of a chunk that the identity does not see."""
    reasons = [reason for reason in said.filtered_by or () if reason != THRESHOLD]
    first = _first_reason(reasons)
    if first is None:
        return _unnamed_filter(reasons, _best_rank(said))
    return Unseen(FILTER_REASONS[first], _best_rank(said), _told(said))


def _visible(observed: Observed, said: Explanation) -> Unseen:
    """Why a chunk that the identity sees is in no channel's candidates."""
    rank = _best_rank(said)
    if not observed.has_channels:
        proof = f"{_told(said)}; the channels' candidates were not observed"
        return Unseen(NOT_OBSERVED, rank, proof, "channels")
    lost = _lost_by_rewriting(observed, said)
    if lost is not None:
        return lost
    if _is_cut_by_threshold(observed, said):
        return Unseen("BELOW_THRESHOLD", rank, f"{_told(said)}, {_ranked(said)}; in no channel")
    proof = f"visible, in no channel ({_lengths(observed)}); /explain: {_ranked(said)}"
    proof = f"{proof}, {_cut_of_candidates(observed)}"
    is_within = rank is not None and rank <= observed.candidate_k
    if is_within and observed.trace.rewritten is None:
        may_be_rewritten = observed.traces.run.manifest.rewrite is not False
        missing = "rewrittenQuery" if may_be_rewritten else "channels: a step before their cut"
        return Unseen(NOT_OBSERVED, rank, f"{proof}: the trace does not tell why", missing)
    return Unseen("NOT_IN_CANDIDATES", rank, proof)


def _lost_by_rewriting(observed: Observed, said: Explanation) -> Unseen | None:
    """REWRITE_DRIFT, or what would decide on it; None where rewriting is not at fault."""
    if observed.trace.rewritten is None:
        return None
    rank, cut = _best_rank(said), _cut_of_candidates(observed)
    query = f"in no channel with the rewritten one, {plain(observed.trace.rewritten, width=60)}"
    proof = f"with the original question {_ranked(said)}, {cut}; {query}"
    if _is_found_with_the_question(said, observed.candidate_k):
        return Unseen("REWRITE_DRIFT", rank, proof)
    if said.ranks is None:
        return Unseen(NOT_OBSERVED, None, proof, "ranks")
    if observed.conditions.candidate_k is None and _is_found_with_the_question(said, math.inf):
        return Unseen(NOT_OBSERVED, rank, proof, "candidateK")
    return None


def _cut_of_candidates(observed: Observed) -> str:
    told = observed.conditions.candidate_k
    return "candidate K is not told" if told is None else f"candidate K = {told}"


def _is_cut_by_threshold(observed: Observed, said: Explanation) -> bool:
    """Whether `/explain` shows the threshold at work, where the trace does not tell its filters."""
    if observed.trace.filtered is not None:
        return False
    rank = _best_rank(said)
    below = THRESHOLD in (said.filtered_by or ())
    return below and rank is not None and rank <= observed.candidate_k


def _is_found_with_the_question(said: Explanation, cut: float) -> bool:
    """Whether a channel would hold the chunk for the original question."""
    below = THRESHOLD in (said.filtered_by or ())
    ranks = _channel_ranks(said)
    return any(rank <= cut and not (below and name == _SCORED_CHANNEL) for name, rank in ranks)


def _not_explained(observed: Observed) -> Unseen:
    if observed.has_channels:
        proof = f"in no channel ({_lengths(observed)}); beyond their cut, {_untold(observed)}"
        return Unseen(NOT_OBSERVED, None, proof, "explain")
    lists = [name for name in ("fused", "reranked") if name in observed.ranks]
    seen = " and ".join([*lists, f"the {len(observed.ids('results'))} results"])
    unseen = "neither the channels' candidates nor /explain were observed"
    return Unseen(NOT_OBSERVED, None, f"not in {seen}; {unseen}", "channels")


def _untold(observed: Observed) -> str:
    """What a chunk may be of which `/explain` said nothing, and why it did not."""
    why = observed.conditions.unasked.get(observed.trace.case.case.access)
    if why is None:
        return HIDDEN
    return f"missing or filtered: /explain told nothing in the run and is not asked now, {why}"


def _unnamed_filter(reasons: list[str], rank: int | None) -> Unseen:
    named = (
        f"filtered by {_some(reasons)}, which is no reason of the protocol"
        if reasons
        else ("/explain: not visible, without a reason")
    )
    return Unseen(NOT_OBSERVED, rank, named, "filteredBy", is_filtered=True)


def _first_reason(reasons: Iterable[str]) -> str | None:
    found = set(reasons)
    return next((reason for reason in FILTER_REASONS if reason in found), None)


def _told(said: Explanation) -> str:
    """What `/explain` says of a chunk, as it says it."""
    visible = "visible" if said.visible else "not visible"
    parts: list[str] = [said.state] if said.state == "missing" else [said.state, visible]
    if said.filtered_by:
        parts.append(f"filtered by {_some(said.filtered_by)}")
    return f"/explain: {', '.join(parts)}"


def _ranked(said: Explanation) -> str:
    ranks = _channel_ranks(said)
    if not ranks:
        return "no rank in any channel" if said.ranks is not None else "its ranks are not told"
    return "rank " + " and ".join(f"{rank} of {plain(name)}" for name, rank in ranks)


def _channel_ranks(said: Explanation) -> list[tuple[str, int]]:
    """The channels that hold a chunk when nothing is cut, the best rank first."""
    ranks = (said.ranks or {}).items()
    held = [(name, rank) for name, rank in ranks if rank is not None and name not in LATER_STAGES]
    return sorted(held, key=lambda pair: pair[1])


def _best_rank(said: Explanation) -> int | None:
    return next((rank for _, rank in _channel_ranks(said)), None)


def _lengths(observed: Observed) -> str:
    lengths = (f"{plain(name)} {len(observed.ids(name))}" for name in observed.channels)
    return ", ".join(lengths) or "none held anything"


def _some(names: list[str]) -> str:
    shown = ", ".join(plain(name, width=60) for name in names[:3])
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown
