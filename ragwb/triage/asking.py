"""Which chunks triage would like explained: what was lost, and all that came back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ragwb.golden.passages import suspects
from ragwb.runs.explaining import Wanted
from ragwb.runs.traces import Pair, Traces
from ragwb.triage.attribute import checked_k, knows_labels
from ragwb.triage.groups import lost_groups


def unexplained(traces: Traces, *, k: int | None = None) -> list[Wanted]:
    """What `/explain` was not asked for yet: the chunks of lost groups, and every chunk returned.

    Args:
        traces: of a saved run.
        k: the cut of the results, 1 to the run's top K; by default top K.

    Returns:
        An entry a case that lacks any, in the order of the golden set.

    Raises:
        MetricError: K is outside 1..top K.
    """
    k = checked_k(traces.run, k)
    use_labels = knows_labels(traces)
    wanted: dict[str, dict[int, Sequence[str]]] = {}
    for pair in traces:
        known = traces.explanations(pair)
        names = dict.fromkeys((*_lost(traces, pair, k, use_labels), *_returned(traces, pair, k)))
        if left := [chunk_id for chunk_id in names if chunk_id not in known]:
            wanted.setdefault(pair[0], {})[pair[1]] = left
    return [
        _wanted(traces, case_id, wanted[case_id]) for case_id in traces.cases if case_id in wanted
    ]


def _wanted(traces: Traces, case_id: str, chunk_ids: Mapping[int, Sequence[str]]) -> Wanted:
    case = traces.cases[case_id].case
    return Wanted(case_id, case.question, case.access, chunk_ids)


def _lost(traces: Traces, pair: Pair, k: int, use_labels: bool) -> Iterator[str]:
    """Chunks of the groups that a result lost, and ids that may be those of an empty group."""
    resolved = traces.cases[pair[0]]
    if resolved.excluded is not None:
        return
    for group in lost_groups(resolved.groups, traces.ids(pair, "results")[:k], None):
        yield from group.chunk_ids
        if not group.chunk_ids and use_labels:
            yield from suspects(resolved)[group.index]


def _returned(traces: Traces, pair: Pair, k: int) -> Iterator[str]:
    yield from traces.ids(pair, "results")[:k]
    yield from traces.ids(pair, "context")
    yield from traces.result(pair)["citations"] or ()
