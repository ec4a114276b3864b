"""Evidence that came back and must not be there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ragwb.html import plain
from ragwb.measure.leaks import LEAKS, leak_reason
from ragwb.records import Explanation
from ragwb.triage.verdict import Leak

FORBIDDEN = "FORBIDDEN_RETRIEVED"
_GRAVITY = [*dict.fromkeys(LEAKS.values()), FORBIDDEN]
_WHERE = ("results", "context", "citations")


def find_leaks(
    lists: Mapping[str, Sequence[str]],
    explanations: Mapping[str, Explanation],
    forbidden: Iterable[str],
    *,
    k: int,
) -> tuple[Leak, ...]:
    """The chunks that must not have come back, each where it stands first, the gravest first.

    Args:
        lists: chunk ids in the results, the context and the citations, as far as observed.
        explanations: what `/explain` said, by chunk id; a chunk without one can only be forbidden.
        forbidden: ids that the case forbids.
        k: the cut of the results.
    """
    suspicious = {i for i, said in explanations.items() if not said.visible}.union(forbidden)
    if all(suspicious.isdisjoint(chunk_ids) for chunk_ids in lists.values()):
        return ()
    found = _leaks(suspicious, _returned(lists, k), explanations, frozenset(forbidden))
    return tuple(
        sorted(found, key=lambda x: (_GRAVITY.index(x.reason), _WHERE.index(x.where), x.position))
    )


def _returned(lists: Mapping[str, Sequence[str]], k: int) -> dict[str, tuple[str, int]]:
    """Where each chunk that came back stands first, and its position there.

    The context of a greater top K holds chunks that a smaller K would not have brought.
    """
    results = lists.get("results", ())
    beyond = set(results[k:]).difference(results[:k])
    found: dict[str, tuple[str, int]] = {}
    for where in _WHERE:
        for position, chunk_id in enumerate(lists.get(where, ()), 1):
            if where == "citations" or chunk_id not in beyond:
                found.setdefault(chunk_id, (where, position))
    return found


def _leaks(
    suspicious: Iterable[str],
    came_back: Mapping[str, tuple[str, int]],
    explanations: Mapping[str, Explanation],
    forbidden: frozenset[str],
) -> Iterator[Leak]:
    for chunk_id in came_back.keys() & suspicious:
        said = explanations.get(chunk_id)
        where, position = came_back[chunk_id]
        reason = leak_reason(said) if said is not None else None
        if reason is None and chunk_id in forbidden:
            reason = FORBIDDEN
        if reason is not None:
            stands = f"at position {position} of the {where}"
            proof = f"{plain(chunk_id, width=60)} {stands}; {_proof(reason, said)}"
            yield Leak(chunk_id, reason, where, position, proof)


def _proof(reason: str, said: Explanation | None) -> str:
    if reason == FORBIDDEN or said is None:
        return "the case forbids it"
    by = ", ".join(plain(name, width=40) for name in said.filtered_by or ())
    return f"/explain: {said.state}, not visible" + (f", filtered by {by}" if by else "")
