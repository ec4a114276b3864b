"""One case in one repeat, with all that is needed to show it, gathered from a run's traces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from ragwb.golden.passages import ResolvedGroup
from ragwb.runs.results import LATER_STAGES, ChunkText
from ragwb.runs.traces import Trace, Traces
from ragwb.triage.verdict import CaseVerdict

Role = Literal["required", "forbidden", "other"]


@dataclass(frozen=True)
class CaseView:
    """What is needed to show one case in one repeat; unknown values are None.

    Attributes:
        trace: the case as scored, and what was seen of it.
        chunks: what the run knows of every chunk that the trace or the case names, by id.
        k: the positions that count.
        verdict: why this repeat failed; None when it passed, or was not judged.
        figures: what is said beside the question, such as recall@5 and 0/1.
    """

    trace: Trace
    chunks: Mapping[str, ChunkText]
    k: int
    verdict: CaseVerdict | None = None
    figures: Mapping[str, str] = field(default_factory=dict)

    @property
    def case_id(self) -> str:
        """The case's id."""
        return self.trace.case_id

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages that were observed, in pipeline order, the channels first."""
        return tuple(self.trace.stages)

    @cached_property
    def ranks(self) -> dict[str, dict[str, int]]:
        """By stage the first position of each chunk, from 1."""
        return {
            stage: {
                chunk_id: len(held.chunk_ids) - back
                for back, chunk_id in enumerate(reversed(held.chunk_ids))
            }
            for stage, held in self.trace.stages.items()
        }

    @cached_property
    def returned(self) -> frozenset[str]:
        """The chunks in the first K of the results."""
        results = self.trace.stages.get("results")
        return frozenset(results.chunk_ids[: self.k] if results else ())

    @cached_property
    def forbidden(self) -> tuple[str, ...]:
        """Chunks that must not come back: those that the case names, then those that leaked."""
        leaked = self.verdict.leaks if self.verdict else ()
        named = (*self.trace.case.forbidden_chunk_ids, *(leak.chunk_id for leak in leaked))
        return tuple(dict.fromkeys(named))

    @cached_property
    def required(self) -> frozenset[str]:
        """Chunks of which a group of the case is made."""
        return frozenset(i for group in self.trace.case.groups for i in group.chunk_ids)

    def role(self, chunk_id: str) -> Role:
        """What a chunk is to the case; evidence that must not be there is that before all."""
        if chunk_id in self.forbidden:
            return "forbidden"
        return "required" if chunk_id in self.required else "other"

    def is_lost(self, group: ResolvedGroup) -> bool:
        """Whether a group is missing from the first K, or none of it there is in the context."""
        found = self.returned.intersection(group.chunk_ids)
        context = self.ranks.get("context")
        return not found or (context is not None and found.isdisjoint(context))


def view_case(
    traces: Traces,
    trace: Trace,
    *,
    k: int,
    verdict: CaseVerdict | None = None,
    figures: Mapping[str, str] | None = None,
) -> CaseView:
    """One case of a run, ready to be shown.

    Args:
        traces: the traces of the run.
        trace: the one of them to show.
        k: the positions that count, from 1.
        verdict: why it failed, of the same repeat.
        figures: what is said beside the question.
    """
    chunks = {
        chunk_id: traces.chunk(chunk_id) for chunk_id in dict.fromkeys(_named(trace, verdict))
    }
    return CaseView(trace, chunks, k, verdict, figures or {})


def _named(trace: Trace, verdict: CaseVerdict | None) -> Iterator[str]:
    """Ids of the chunks that are shown of a case."""
    for held in trace.stages.values():
        yield from held.chunk_ids
    for group in trace.case.groups:
        yield from group.chunk_ids
    yield from trace.case.forbidden_chunk_ids
    yield from (leak.chunk_id for leak in verdict.leaks) if verdict else ()
    yield from trace.result["citations"] or ()


def stage_sequence(stages: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The steps that a chunk takes through the stages: the channels as one step, side by side."""
    channels = tuple(stage for stage in stages if stage not in LATER_STAGES)
    later: list[tuple[str, ...]] = [(stage,) for stage in stages if stage in LATER_STAGES]
    return [channels, *later] if channels else later
