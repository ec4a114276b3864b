"""What one trace shows of its stages, ready to be asked of single chunks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ragwb.runs.results import FilteredChunk
from ragwb.runs.traces import Trace, Traces


@dataclass(frozen=True, slots=True)
class Conditions:
    """What holds for all results of a run.

    Attributes:
        k: the cut of the results.
        candidate_k: the candidates of a channel, None when the service did not say.
        context_budget: in the service's tokens, None when it did not say.
        reranks: whether a reranker runs, None when the service did not say.
        hides_nothing: whether the service says that the identity of the run sees every chunk.
        knows_labels: whether any expected chunk id of the set is among the run's chunks.
        unasked: why `/explain` was not asked now, by the label of who asked (None: the default
            identity); a label that is not there was asked, or nobody says.
    """

    k: int
    candidate_k: int | None
    context_budget: int | None
    reranks: bool | None
    hides_nothing: bool
    knows_labels: bool
    unasked: Mapping[str | None, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Observed:
    """One trace, with the first position of every chunk at every stage that was observed.

    Attributes:
        ranks: by stage in pipeline order, then by chunk id, from 1.
        channels: names of the channels that were observed; () when none were.
        merged: the list that goes into the reranker: fused, or the only channel where no fusion
            was observed; None when neither was.
        final: the list that the results are cut from: the reranked one, or the merged one when no
            reranker ran; None when that was not observed.
        filtered: by chunk id what the filters said of it.
    """

    trace: Trace
    traces: Traces
    conditions: Conditions
    ranks: Mapping[str, Mapping[str, int]]
    channels: tuple[str, ...]
    merged: str | None
    final: str | None
    filtered: Mapping[str, Sequence[FilteredChunk]]

    @property
    def k(self) -> int:
        """The cut of the results."""
        return self.conditions.k

    @property
    def candidate_k(self) -> int:
        """The candidates of a channel; at least those that one had, when the service is silent."""
        if self.conditions.candidate_k is not None:
            return self.conditions.candidate_k
        return max((len(self.ids(name)) for name in self.channels), default=0)

    @property
    def has_channels(self) -> bool:
        """Whether the channels were observed, be they empty."""
        return "channels" in self.trace.result["observed"]

    def ids(self, stage: str) -> Sequence[str]:
        """The chunks of an observed stage, in its order, duplicates kept."""
        return self.trace.stages[stage].chunk_ids

    def rank(self, stage: str | None, chunk_id: str) -> int | None:
        """The first position of a chunk at a stage; None where it is not, or was not observed."""
        return None if stage is None else self.ranks.get(stage, {}).get(chunk_id)

    def channel_ranks(self, chunk_id: str) -> dict[str, int]:
        """The positions of a chunk in the channels that hold it, the best first."""
        held = {name: self.rank(name, chunk_id) for name in self.channels}
        known = ((name, rank) for name, rank in held.items() if rank is not None)
        return dict(sorted(known, key=lambda pair: pair[1]))

    def is_head_of(self, stage: str) -> bool:
        """Whether the results start as this stage does, down to K."""
        return list(self.ids("results")[: self.k]) == list(self.ids(stage)[: self.k])


def observe(traces: Traces, trace: Trace, conditions: Conditions) -> Observed:
    """A trace with the positions of its chunks."""
    channels = tuple(trace.channels)
    ranks = {name: first_ranks(held.chunk_ids) for name, held in trace.stages.items()}
    merged = "fused" if "fused" in ranks else channels[0] if len(channels) == 1 else None
    return Observed(
        trace=trace,
        traces=traces,
        conditions=conditions,
        ranks=ranks,
        channels=channels,
        merged=merged,
        final="reranked" if "reranked" in ranks else _unreranked(trace, merged, conditions),
        filtered=_by_chunk(trace.filtered or ()),
    )


def first_ranks(chunk_ids: Sequence[str]) -> dict[str, int]:
    """The first position of each chunk, from 1."""
    # Backwards, so that of several positions the first is written last.
    last = len(chunk_ids)
    return {chunk_id: last - i for i, chunk_id in enumerate(reversed(chunk_ids))}


def best_ranks(
    ranks: Mapping[str, Mapping[str, int]], chunk_ids: Sequence[str]
) -> dict[str, int | None]:
    """The best rank that any of the chunks has at each stage; None where none stands."""
    return {
        stage: min((held[i] for i in chunk_ids if i in held), default=None)
        for stage, held in ranks.items()
    }


def _unreranked(trace: Trace, merged: str | None, conditions: Conditions) -> str | None:
    """The merged list when no reranker ran: the service says so, or the results are its start."""
    if merged is None or conditions.reranks:
        return None
    if conditions.reranks is False:
        return merged
    results = list(trace.stages["results"].chunk_ids)
    is_start = list(trace.stages[merged].chunk_ids[: len(results)]) == results
    return merged if results and is_start else None


def _by_chunk(filtered: Iterable[FilteredChunk]) -> dict[str, list[FilteredChunk]]:
    found: dict[str, list[FilteredChunk]] = {}
    for chunk in filtered:
        found.setdefault(chunk.chunk_id, []).append(chunk)
    return found
