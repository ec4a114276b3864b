"""Evidence in several pieces: how far each hop got, and whether the context is in conflict."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ragwb.measure.answered import AnsweredCase


@dataclass(frozen=True, slots=True)
class Hop:
    """How far one evidence group of a case got; None where that was not observed.

    Attributes:
        index: the group's place in its case, from 0.
        hop: what it contributes, by its label.
        there: whether the knowledge has a chunk of it.
        retrieved, in_context, cited: whether one was.
    """

    index: int
    hop: str | None
    there: bool
    retrieved: bool
    in_context: bool | None
    cited: bool | None


STEPS = ("there", "retrieved", "in_context", "cited")
"""How far a hop can get, in order."""


def hops(answered: AnsweredCase) -> tuple[Hop, ...]:
    """The evidence groups of a case, in their order, and how far each got in one answer."""
    return tuple(
        Hop(
            group.index,
            group.hop,
            bool(group.chunk_ids),
            bool(_any_in(group.chunk_ids, answered.results)),
            _any_in(group.chunk_ids, answered.context),
            _any_in(group.chunk_ids, answered.cited),
        )
        for group in answered.case.groups
    )


def whole_chain(found: Iterable[Hop], step: str) -> bool | None:
    """Whether every hop got to a step; None where one was not observed."""
    values = [getattr(hop, step) for hop in found]
    return None if None in values else all(values)


def evidence_conflict(answered: AnsweredCase) -> bool | None:
    """Whether the context holds two versions of one document, or passages marked as contradictory.

    The evidence groups of a case whose `refusal_trigger` names EVIDENCE_CONFLICT are such passages:
    two of them in the context, in chunks of their own, are a conflict.

    Returns:
        None when the context was not observed, or when the version of a chunk in it is not known
        and no conflict was seen in what is.
    """
    if answered.context is None:
        return None
    if _holds_marked_passages(answered):
        return True
    versions: dict[str, set[str]] = {}
    is_known = True
    for chunk_id in answered.context:
        chunk = answered.chunks.get(chunk_id)
        if chunk is None or chunk.document_id is None or chunk.document_version is None:
            is_known = False
            continue
        versions.setdefault(chunk.document_id, set()).add(chunk.document_version)
    if any(len(found) > 1 for found in versions.values()):
        return True
    return False if is_known else None


def _holds_marked_passages(answered: AnsweredCase) -> bool:
    case = answered.case
    if "EVIDENCE_CONFLICT" not in case.case.refusal_trigger:
        return False
    context = set(answered.context or ())
    held = [context.intersection(group.chunk_ids) for group in case.groups]
    return len([ids for ids in held if ids]) > 1 and len(set().union(*held)) > 1


def _any_in(chunk_ids: Iterable[str], held: Iterable[str] | None) -> bool | None:
    return None if held is None else not set(held).isdisjoint(chunk_ids)
