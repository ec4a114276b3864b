"""Expected chunk ids filled in from the evidence, for services and tools that only know ids."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import ValidationError

from ragwb.golden.case import Case
from ragwb.golden.passages import ResolvedCase


def fill_expected_ids(resolved: Iterable[ResolvedCase]) -> tuple[list[Case], list[str]]:
    """The cases with `expected_chunk_ids` set to the first holder of each group.

    A case without evidence, with evidence that was not found, or whose required chunk is forbidden
    too is left as it is.

    Returns:
        All cases in order, and the ids of those that have evidence and were left as they are.
    """
    cases: list[Case] = []
    left: list[str] = []
    for item in resolved:
        filled = _fill(item) if item.case.evidence else item.case
        if filled is None:
            left.append(item.case.id)
        cases.append(filled or item.case)
    return cases, left


def _fill(item: ResolvedCase) -> Case | None:
    if not item.groups or not all(group.chunk_ids for group in item.groups):
        return None
    # A chunk that satisfies two groups is one id: an id may stand in the list once.
    names = list(dict.fromkeys(group.chunk_ids[0] for group in item.groups))
    try:
        return Case.model_validate(item.case.model_dump() | {"expected_chunk_ids": names})
    except ValidationError:
        return None
