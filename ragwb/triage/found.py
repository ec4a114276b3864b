"""Where the evidence of a failed case stood that was not lost: what an answer had before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ragwb.runs.traces import Pair, Traces
from ragwb.triage.groups import lost_groups
from ragwb.triage.observed import best_ranks, first_ranks


@dataclass(frozen=True, slots=True)
class FoundGroup:
    """A required group that came as far as it can be seen.

    Attributes:
        index: the group's place in its case, from 0.
        chunk_id: that of its chunks which stands best in the results.
        ranks: best position of any of its chunks at each observed stage, from 1, in pipeline
            order; None where the stage was observed and holds none of them.
    """

    index: int
    chunk_id: str
    ranks: Mapping[str, int | None]


def found_groups(traces: Traces, pair: Pair, *, k: int) -> tuple[FoundGroup, ...]:
    """The required groups of a result that are in its first K results, and in the context if told.

    Args:
        traces: of a saved run.
        pair: (case id, repeat) of a result that did not fail for good.
        k: the cut of the results.

    Returns:
        In the order of the case; () for a case without groups, or one that is excluded.
    """
    resolved, trace = traces.cases[pair[0]], traces[pair]
    if resolved.excluded is not None:
        return ()
    ids = {stage: held.chunk_ids for stage, held in trace.stages.items()}
    lost = {g.index for g in lost_groups(resolved.groups, ids["results"][:k], ids.get("context"))}
    ranks = {stage: first_ranks(chunk_ids) for stage, chunk_ids in ids.items()}
    found = []
    for group in resolved.groups:
        if group.index not in lost:
            best = best_ranks(ranks, group.chunk_ids)
            _, chunk_id = min(
                (ranks["results"][i], i) for i in group.chunk_ids if i in ranks["results"]
            )
            found.append(FoundGroup(group.index, chunk_id, best))
    return tuple(found)
