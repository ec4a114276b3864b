"""Chunks that a greater candidate K or a lower threshold would let into the channels.

Of most of them nothing is known but that they would stand behind what a channel holds now. So a
result is told only where that suffices, whichever they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from ragwb.runs.traces import Trace
from ragwb.triage.whatif.changes import Change
from ragwb.triage.whatif.explained import THRESHOLD, beyond_the_cut
from ragwb.triage.whatif.labels import Labels
from ragwb.triage.whatif.lists import NONE, Floats, Ints
from ragwb.triage.whatif.orders import reasons
from ragwb.triage.whatif.saved import Saved, Whys

FILTERED_UNSEEN = "what the threshold took was not observed"
_VECTOR = "vector"


@dataclass(frozen=True, slots=True)
class Newcomers:
    """Channels with what would come into them; (rows, …) arrays, a row a result.

    Attributes:
        codes: (rows, slots) chunk by slot: those of the saved lists, then newcomers that are known.
        ranks: by channel (rows, slots) the rank in it from 1, inf where it does not hold the chunk.
        tail: by channel (rows,) the first rank that an unknown newcomer could take.
        n_unknown: by channel (rows,) the most unknown newcomers.
        why: (rows,) why nothing can be said, else "".
    """

    codes: Ints
    ranks: Mapping[str, Floats]
    tail: Mapping[str, Ints]
    n_unknown: Mapping[str, Ints]
    why: Whys


# What would come in at which rank of which channel.
Known = tuple[int, str, int]


def newcomers(saved: Saved, labels: Labels, change: Change) -> Newcomers:
    """What a change of the candidate K or of the threshold would let in."""
    if change.setting == "candidate_k" and isinstance(change.value, int):
        return _by_candidate_k(saved, labels, change.value)
    return _by_threshold(saved)


def _by_candidate_k(saved: Saved, labels: Labels, candidate_k: int) -> Newcomers:
    """A channel that is not full has nothing more to give."""
    now = saved.seen.said.candidate_k or candidate_k
    n = _lengths(saved)
    known: dict[int, list[Known]] = {}
    for row in np.unique(labels.row).tolist():
        if saved.seen.traces.explanations(saved.seen.pairs[row]):
            trace = saved.seen.traces[saved.seen.pairs[row]]
            known[row] = list(_explained(saved, trace, now, candidate_k))
    codes, ranks = _with_known(saved, known)
    return Newcomers(
        codes=codes,
        ranks=ranks,
        tail={name: n[name] + 1 for name in n},
        n_unknown={name: np.where(n[name] >= now, candidate_k - now, 0) for name in n},
        why=reasons(np.zeros(saved.n_rows, dtype=bool), ""),
    )


def _explained(saved: Saved, trace: Trace, now: int, candidate_k: int) -> Iterable[Known]:
    for chunk_id in beyond_the_cut(trace, now):
        ranks = trace.explanations[chunk_id].ranks or {}
        for name in trace.channels:
            rank = ranks.get(name)
            if rank is not None and now < rank <= candidate_k:
                yield saved.seen.code_of[chunk_id], name, rank


def _by_threshold(saved: Saved) -> Newcomers:
    """What `filtered` names stands behind its channel, in its order; the rest is not known."""
    said, n = saved.seen.said, _lengths(saved)
    limit = said.candidate_k
    unseen = np.zeros(saved.n_rows, dtype=bool)
    tail = {name: n[name] + 1 for name in n}
    n_unknown = {name: np.zeros(saved.n_rows, dtype=np.int64) for name in n}
    known: dict[int, list[Known]] = {}
    for row, pair in enumerate(saved.seen.pairs):
        filtered = saved.seen.traces.filtered(pair)
        unseen[row] = filtered is None or limit is None
        taken = [] if filtered is None or limit is None else filtered
        names = {_VECTOR, *(f.channel for f in taken if f.reason == THRESHOLD)}
        for name in (name for name in saved.seen.channels if name in names):
            own = [f for f in taken if f.channel == name]
            low = [f.chunk_id for f in own if f.reason == THRESHOLD]
            first, room = int(n[name][row]) + 1, (limit or 0) - int(n[name][row])
            entries = enumerate(low[: max(room, 0)], first)
            known.setdefault(row, []).extend((saved.seen.code_of[i], name, r) for r, i in entries)
            tail[name][row] = first + len(low)
            n_unknown[name][row] = max(min(room - len(low), len(own) - len(low)), 0)
    codes, ranks = _with_known(saved, known)
    return Newcomers(codes, ranks, tail, n_unknown, reasons(unseen, FILTERED_UNSEEN))


def _lengths(saved: Saved) -> dict[str, Ints]:
    """How many chunks each channel holds."""
    return {name: (saved.seen.codes[name] != NONE).sum(axis=1) for name in saved.seen.channels}


def _with_known(
    saved: Saved, known: Mapping[int, Iterable[Known]]
) -> tuple[Ints, dict[str, Floats]]:
    """The slots and ranks of the saved lists, and the newcomers that are known."""
    new = {
        row: [c for c in dict.fromkeys(e[0] for e in entries) if c not in saved.codes[row]]
        for row, entries in known.items()
    }
    width = max(map(len, new.values()), default=0)
    n_slots = saved.codes.shape[1]
    codes = np.pad(saved.codes, ((0, 0), (0, width)), constant_values=NONE)
    ranks = {
        name: np.pad(rank, ((0, 0), (0, width)), constant_values=np.inf)
        for name, rank in saved.ranks.items()
    }
    for row, entries in known.items():
        codes[row, n_slots : n_slots + len(new[row])] = new[row]
        slot_of = {code: slot for slot, code in enumerate(codes[row].tolist())}
        for code, name, rank in entries:
            ranks[name][row, slot_of[code]] = rank
    return codes, ranks
