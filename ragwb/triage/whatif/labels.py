"""Whether results fail: required groups and chunks that must not come, looked up in arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ragwb.golden.passages import ResolvedCase
from ragwb.records import Explanation
from ragwb.runs.traces import Pair, Traces
from ragwb.triage.leaks import find_leaks
from ragwb.triage.whatif.lists import Bools, Ints, first_columns


@dataclass(frozen=True, slots=True)
class Labels:
    """What the cases of many results require and forbid, as codes of `Seen.names`.

    Attributes:
        row, group, code: of each chunk of a required group its result, its group (numbered through)
            and itself; sorted by group.
        row_of_group: the result of each group.
        watched_row, watched_code: chunks that must not come back.
        always: (rows,) whether a result fails under any settings: evidence is required that has no
            chunk, or a leak stands in its citations.
    """

    row: Ints
    group: Ints
    code: Ints
    row_of_group: Ints
    watched_row: Ints
    watched_code: Ints
    always: Bools

    def first_positions(self, codes: Ints) -> Ints:
        """Where each required chunk stands first in its row's list, from 0; the width for none."""
        return first_columns(codes[self.row] == self.code[:, None])

    def groups_with(self, chunks: Bools) -> Bools:
        """(groups,) whether any of some required chunks belongs to each."""
        found = np.zeros(len(self.row_of_group), dtype=bool)
        found[self.group[chunks]] = True
        return found

    def failed(self, codes: Ints, in_context: Ints) -> Bools:
        """(rows,) whether a result fails.

        Args:
            codes: (rows, K) results cut at K, NONE beyond the end.
            in_context: (rows,) how many of the results are in the context, or more than K where
                that does not matter.
        """
        position = self.first_positions(codes)
        kept = position < np.minimum(codes.shape[1], in_context[self.row])
        failed = self.always.copy()
        failed[self.row_of_group[~self.groups_with(kept)]] = True
        came = (codes[self.watched_row] == self.watched_code[:, None]).any(axis=1)
        failed[self.watched_row[came]] = True
        return failed


def labels_of(traces: Traces, pairs: Sequence[Pair], code_of: Mapping[str, int]) -> Labels:
    """What the cases of these results require and forbid.

    Args:
        traces: the run's traces.
        pairs: which results, in the order of the rows.
        code_of: the code of every chunk that they name, and of all evidence.
    """
    chunks: list[tuple[int, int, int]] = []
    row_of_group: list[int] = []
    watched: list[tuple[int, int]] = []
    always = np.zeros(len(pairs), dtype=bool)
    for row, pair in enumerate(pairs):
        case = traces.cases[pair[0]]
        for chunk_ids in required_groups(case):
            group = len(row_of_group)
            row_of_group.append(row)
            chunks.extend((row, group, code_of[i]) for i in chunk_ids)
            always[row] |= not chunk_ids
        cited = traces.result(pair)["citations"] or ()
        lists = {name: traces.ids(pair, name) for name in ("results", "context")}
        bad = must_not_come(case, traces.explanations(pair), {**lists, "citations": cited})
        watched.extend((row, code_of[i]) for i in bad if i in code_of)
        always[row] |= not bad.isdisjoint(cited)
    row_of, group_of, code = _columns(chunks, 3)
    watched_row, watched_code = _columns(watched, 2)
    return Labels(
        row=row_of,
        group=group_of,
        code=code,
        row_of_group=np.array(row_of_group, dtype=np.int64),
        watched_row=watched_row,
        watched_code=watched_code,
        always=always,
    )


def required_groups(case: ResolvedCase) -> Iterator[tuple[str, ...]]:
    """The chunks of each group that a case requires; none when it is left out of the means."""
    if case.excluded is None:
        yield from (group.chunk_ids for group in case.groups)


def must_not_come(
    case: ResolvedCase, explanations: Mapping[str, Explanation], lists: Mapping[str, Sequence[str]]
) -> set[str]:
    """Chunks that make a result of a case fail: those that it forbids, and those that leaked.

    Args:
        case: the case.
        explanations: what `/explain` said for the result.
        lists: results, context and citations as observed.
    """
    k = len(lists.get("results", ()))
    leaks = find_leaks(lists, explanations, case.forbidden_chunk_ids, k=k)
    return {*case.forbidden_chunk_ids, *(leak.chunk_id for leak in leaks)}


def _columns(rows: Iterable[tuple[int, ...]], width: int) -> Iterator[Ints]:
    return iter(np.array(list(rows), dtype=np.int64).reshape(-1, width).T)
