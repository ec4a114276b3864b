"""Where a required group was lost: that of its chunks which got furthest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ragwb.golden.passages import ResolvedGroup, suspects
from ragwb.html import plain
from ragwb.runs.results import LATER_STAGES
from ragwb.triage.beyond import RANKED_BELOW_K, fall_beyond
from ragwb.triage.locate import Location, Reach, locate
from ragwb.triage.observed import Observed, best_ranks
from ragwb.triage.reasons import NOT_OBSERVED, UNCITED
from ragwb.triage.unseen import HIDDEN
from ragwb.triage.verdict import GroupVerdict

_LAST = 10**9


def lost_groups(
    groups: Sequence[ResolvedGroup], top: Sequence[str], context: Sequence[str] | None
) -> list[ResolvedGroup]:
    """The groups without a chunk in the results at K, or with none of those in the context.

    Args:
        groups: those that the case requires.
        top: the results, cut at K.
        context: what was put before the model; None when it was not observed.
    """
    kept = set(top) if context is None else set(top).intersection(context)
    return [group for group in groups if kept.isdisjoint(group.chunk_ids)]


def judge_group(observed: Observed, group: ResolvedGroup) -> GroupVerdict:
    """Where and why a lost group was lost, with the position of its best chunk at every stage."""
    chunk_ids = group.chunk_ids or _suspects(observed, group)
    found = [(chunk_id, _locate(observed, group, chunk_id)) for chunk_id in chunk_ids]
    if found:
        chunk_id, location = min(found, key=lambda pair: _order(pair[1]))
    else:
        chunk_id, location = None, _without_chunks(observed, group)
    verdict = _verdict(observed, group, chunk_ids, chunk_id, location)
    return _as_split(verdict, group) if group.split else verdict


def uncited_groups(observed: Observed) -> Iterator[GroupVerdict]:
    """The groups that stood before the model and that its answer does not cite."""
    cited = set(observed.trace.result["citations"] or ())
    stage = "context" if "context" in observed.ranks else "results"
    held = observed.ranks[stage]
    among = f"not among the {len(cited)} cited" if cited else "and nothing is cited"
    for group in observed.trace.case.groups:
        if cited.isdisjoint(group.chunk_ids):
            rank, chunk_id = min((held[i], i) for i in group.chunk_ids if i in held)
            proof = f"{plain(chunk_id, width=60)} at position {rank} of the {stage}, {among}"
            location = Location(UNCITED, Reach.TOP_K, rank, proof)
            yield _verdict(observed, group, group.chunk_ids, chunk_id, location)


def _verdict(
    observed: Observed,
    group: ResolvedGroup,
    chunk_ids: Sequence[str],
    chunk_id: str | None,
    location: Location,
) -> GroupVerdict:
    ranks = best_ranks(observed.ranks, chunk_ids)
    last_seen, first_missing = _turning_point(observed, ranks)
    proof = location.proof
    if location.reason == RANKED_BELOW_K:
        proof += f"; {fall_beyond(ranks, k=observed.k).words}"
    return GroupVerdict(
        index=group.index,
        stage=location.stage,
        reason=location.reason,
        chunk_id=chunk_id,
        ranks=ranks,
        last_seen=last_seen,
        first_missing=first_missing,
        proof=proof,
        missing_field=location.missing_field,
    )


def _suspects(observed: Observed, group: ResolvedGroup) -> tuple[str, ...]:
    """What may be the chunks of a group whose passage was not found, where such ids are in use."""
    if not observed.conditions.knows_labels:
        return ()
    return suspects(observed.trace.case).get(group.index, ())


def _locate(observed: Observed, group: ResolvedGroup, chunk_id: str) -> Location:
    """Where a chunk was lost; a suspect that came back shows that the label is not what is lost."""
    if group.chunk_ids or not _is_kept(observed, chunk_id):
        return locate(observed, chunk_id)
    rank = observed.rank("results", chunk_id)
    proof = (
        f"the expected chunk came back at rank {rank}, but no chunk that the service tells holds "
        f"{_label(observed, group)}"
    )
    return Location(NOT_OBSERVED, Reach.TOP_K, rank, proof, "chunks")


def _is_kept(observed: Observed, chunk_id: str) -> bool:
    rank = observed.rank("results", chunk_id)
    in_context = "context" not in observed.ranks or chunk_id in observed.ranks["context"]
    return rank is not None and rank <= observed.k and in_context


def _order(location: Location) -> tuple[int, bool, int]:
    """The furthest first; of equals what is known, then the better rank."""
    rank = _LAST if location.rank is None else location.rank
    return (-location.reach, location.reason == NOT_OBSERVED, rank)


def _without_chunks(observed: Observed, group: ResolvedGroup) -> Location:
    """A passage that was not found among the chunks that the service tells, and no id for it."""
    label = _label(observed, group)
    if observed.conditions.hides_nothing:
        proof = f"{label}; nothing is hidden from this identity"
        return Location("KNOWLEDGE_MISSING", Reach.KNOWLEDGE, None, proof)
    proof = f"{label}: {HIDDEN}; expected_chunk_ids would let /explain decide"
    return Location(NOT_OBSERVED, Reach.FILTER, None, proof, "explain")


def _label(observed: Observed, group: ResolvedGroup) -> str:
    """What resolving the label found, in the words of its note."""
    start = f"missing {group.label}: "
    notes = observed.trace.case.notes
    found = next((note.removeprefix(start) for note in notes if note.startswith(start)), None)
    return plain(f"{group.label}: {found}" if found else group.label, width=200)


def _turning_point(
    observed: Observed, ranks: Mapping[str, int | None]
) -> tuple[str | None, str | None]:
    """The last stage where the group was seen, and the first observed one after it without it.

    Channels stand side by side: the last of them is the one that held it best.
    """
    seen = dict(_seen_ranks(observed, ranks))
    later = [stage for stage in seen if stage in LATER_STAGES]
    held = [stage for stage in later if seen[stage] is not None]
    if held:
        last: str | None = held[-1]
        after = later[later.index(held[-1]) + 1 :]
    else:
        channels = {name: rank for name in observed.channels if (rank := ranks[name]) is not None}
        last = min(channels, key=channels.__getitem__) if channels else None
        after = later if channels else list(seen)
    return last, next((stage for stage in after if seen[stage] is None), None)


def _seen_ranks(
    observed: Observed, ranks: Mapping[str, int | None]
) -> Iterator[tuple[str, int | None]]:
    """The ranks of a group, of the results only those within K, of the context only with those."""
    in_top = (ranks["results"] or _LAST) <= observed.k
    for stage, rank in ranks.items():
        yield stage, rank if in_top or stage not in ("results", "context") else None


def _as_split(verdict: GroupVerdict, group: ResolvedGroup) -> GroupVerdict:
    """A piece of a split passage: that it is cut is what was wrong first."""
    proof = (
        f"a piece of {plain(group.label)}, which no chunk holds whole; lost here: {verdict.proof}"
    )
    return replace(
        verdict, stage="knowledge", reason="CHUNK_SPLIT", proof=proof, missing_field=None
    )
