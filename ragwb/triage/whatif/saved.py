"""What a run's traces allow to be computed anew: its lists, and whether they follow their rules.

Nothing is taken for granted: a list is made anew under other settings only where the declared
settings make exactly the list that was observed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ragwb.runs.results import LATER_STAGES
from ragwb.runs.traces import Pair, Traces
from ragwb.triage.whatif.declared import Declared, declared
from ragwb.triage.whatif.duplicates import deduplicated
from ragwb.triage.whatif.lists import (
    NONE,
    Bools,
    Floats,
    Ints,
    Order,
    by_slot,
    gather,
    number_chunks,
    order_of,
    positions,
    same_width,
    unit_range,
)

Whys = npt.NDArray[np.object_]
# Scores that differ by less come from the same arithmetic in another order.
_CLOSE = 1e-9
# A reranker's own scores are single precision.
_CLOSE_BLEND = 1e-6

NO_LIST = "neither a fused list nor a single channel was observed"
NO_CHANNELS = "the channels were not observed"
OTHER_FUSION = "the fused list is not what the declared fusion makes of the channels"
RERANK_UNSEEN = "a reranker ran and its list was not observed"
RERANK_NO_SCORES = "the reranker's scores were not observed"
OTHER_RERANK = "the reranked list is not what its declared blend makes of the fused list"
LATER_STEP = "what lies between the final list and the results is not in the trace"


@dataclass(frozen=True, slots=True)
class Seen:
    """The lists of many results as they were observed.

    Attributes:
        traces: the run's traces.
        pairs: which results, in the order of the rows.
        said: what the service declares.
        channels: names of the channels.
        names: chunk id by code, None at the end; evidence that no list holds has codes too.
        code_of: code by chunk id, of what these results name.
        codes, scores: by stage (rows, positions), NONE and NaN beyond a list's end.
        has: by field of the protocol (rows,) whether it was observed.
    """

    traces: Traces
    pairs: Sequence[Pair]
    said: Declared
    channels: Sequence[str]
    names: npt.NDArray[np.object_]
    code_of: Mapping[str, int]
    codes: Mapping[str, Ints]
    scores: Mapping[str, Floats]
    has: Mapping[str, Bools]


@dataclass(frozen=True, slots=True)
class Saved:
    """The lists of many results in slots (see `whatif_lists`), and what may be done with them.

    Attributes:
        seen: the lists as observed.
        codes: (rows, slots) chunk by slot, a code of `Seen.names`.
        ranks: by channel (rows, slots) the rank in it from 1, inf where it does not hold the chunk.
        merged: the list that goes into the reranker, or into the results without one.
        reranked: the reranker's list; empty where none ran or none was observed.
        similarity: (rows, slots) the reranker's own score, up to its scale; NaN where unknown.
        final: the list that the results are cut from; the results where that was not observed.
        is_whole: (rows,) whether nothing comes after the final list's end.
        no_merged, no_fusion, no_rerank, no_final: (rows,) why the merged list, another fusion,
            another rerank and what makes the results cannot be told; "" where they can.
    """

    seen: Seen
    codes: Ints
    ranks: Mapping[str, Floats]
    merged: Order
    reranked: Order
    similarity: Floats
    final: Order
    is_whole: Bools
    no_merged: Whys
    no_fusion: Whys
    no_rerank: Whys
    no_final: Whys

    @property
    def n_rows(self) -> int:
        """Number of results."""
        return len(self.codes)


def saved_lists(traces: Traces, pairs: Sequence[Pair]) -> Saved:
    """The lists of these results, ready to be ordered anew."""
    seen = _seen(traces, pairs)
    merged_codes = _merged_codes(seen)
    named = [*seen.channels, "reranked", "results"]
    lists = {"merged": merged_codes, **{name: seen.codes[name] for name in named}}
    codes, slots = number_chunks(lists, len(seen.names))
    n_slots = codes.shape[1]
    ranks = {name: positions(slots[name], n_slots) for name in seen.channels}
    merged, reranked = order_of(slots["merged"]), order_of(slots["reranked"])
    fused_as_said = by_slot(slots["merged"], _fused_scores(seen, merged_codes), n_slots)
    fused = fused_scores(codes, ranks, seen.said.weights_of(seen.channels), seen.said.rrf_k or 0.0)
    no_merged = _no_merged(seen)
    no_fusion = _no_fusion(seen, merged, fused, fused_as_said)
    known = np.where(np.isnan(fused_as_said), fused, fused_as_said)
    rerank_scores = by_slot(slots["reranked"], seen.scores["reranked"], n_slots)
    similarity, no_rerank = _rerank(seen, merged, reranked, known, rerank_scores)
    final, is_whole, no_final = _final(seen, codes, merged, reranked, order_of(slots["results"]))
    return Saved(
        seen=seen,
        codes=codes,
        ranks=ranks,
        merged=merged,
        reranked=reranked,
        similarity=similarity,
        final=final,
        is_whole=is_whole,
        no_merged=no_merged,
        no_fusion=no_fusion,
        no_rerank=no_rerank,
        no_final=no_final,
    )


def fused_scores(
    codes: Ints, ranks: Mapping[str, Floats], weights: Mapping[str, float], k: float
) -> Floats:
    """(rows, slots) weighted reciprocal rank fusion, the sum of weight / (k + rank); 0 for none."""
    scores = np.zeros(codes.shape)
    for name, rank in ranks.items():
        if weights[name] > 0:
            scores += weights[name] / (k + rank)
    return scores


def _seen(traces: Traces, pairs: Sequence[Pair]) -> Seen:
    observed = [frozenset(traces.result(pair)["observed"]) for pair in pairs]
    fields = ("channels", "context", "fused", "reranked")
    said = declared(traces.run)
    # A channel that is empty in every result stands in no table, and is there all the same.
    channels = list(dict.fromkeys((*traces.channels, *(said.weights or {}))))
    padded = {name: traces.padded(name, pairs) for name in (*channels, *LATER_STAGES)}
    names, code_of = _names(traces, pairs, [codes for codes, _ in padded.values()])
    return Seen(
        traces=traces,
        pairs=pairs,
        said=said,
        channels=channels,
        names=names,
        code_of=code_of,
        codes={name: codes for name, (codes, _) in padded.items()},
        scores={name: scores for name, (_, scores) in padded.items()},
        has={name: np.array([name in fields_of for fields_of in observed]) for name in fields},
    )


def _names(
    traces: Traces, pairs: Sequence[Pair], lists: Sequence[Ints]
) -> tuple[npt.NDArray[np.object_], dict[str, int]]:
    """Chunk ids by code and codes by chunk id, of the lists, the evidence and the threshold."""
    names = traces.chunk_names
    is_used = np.zeros(len(names), dtype=bool)
    for codes in lists:
        is_used[codes.ravel()] = True
    is_used[NONE] = False
    code_of = {names[code]: code for code in np.flatnonzero(is_used).tolist()}
    cases = {pair[0]: traces.cases[pair[0]] for pair in pairs}
    more = [i for case in cases.values() for group in case.groups for i in group.chunk_ids]
    more += [i for case in cases.values() for i in case.forbidden_chunk_ids]
    if traces.run.manifest.threshold is not None:
        more += [chunk.chunk_id for pair in pairs for chunk in traces.filtered(pair) or ()]
    extra = [name for name in dict.fromkeys(more) if name not in code_of]
    code_of |= {name: len(names) - 1 + place for place, name in enumerate(extra)}
    ends = np.array([*extra, None], dtype=object)
    return np.concatenate([names[:-1], ends]), code_of


def _merged_codes(seen: Seen) -> Ints:
    """The fused list; where none was observed, the only channel."""
    fused = seen.codes["fused"]
    if len(seen.channels) != 1:
        return fused
    fused, single = same_width(fused, seen.codes[seen.channels[0]])
    return np.where(seen.has["fused"][:, None], fused, single)


def _fused_scores(seen: Seen, merged: Ints) -> Floats:
    """The scores of the merged list where it is a fused one, else NaN."""
    scores = seen.scores["fused"]
    missing = merged.shape[1] - scores.shape[1]
    return np.pad(scores, ((0, 0), (0, missing)), constant_values=np.nan)


def _no_merged(seen: Seen) -> Whys:
    is_single = seen.has["channels"] & (len(seen.channels) == 1)
    return np.where(seen.has["fused"] | is_single, "", NO_LIST).astype(object)


def _no_fusion(seen: Seen, merged: Order, fused: Floats, as_said: Floats) -> Whys:
    """Whether the declared fusion of the channels is the list; of several, with its scores."""
    is_member = positions(merged.slots, fused.shape[1]) < np.inf
    agrees = _falls(fused, merged, _CLOSE) & (is_member == (fused > 0)).all(axis=1)
    if len(seen.channels) > 1:
        agrees &= np.full(len(agrees), seen.said.rrf_k is not None)
        agrees &= (np.isnan(as_said) | (np.abs(as_said - fused) < _CLOSE)).all(axis=1)
    why = np.where(agrees, "", OTHER_FUSION).astype(object)
    return np.where(seen.has["channels"], why, NO_CHANNELS)


def _falls(scores: Floats, order: Order, close: float) -> Bools:
    """Whether scores by slot never rise along a list, and are all known."""
    along = np.where(order.slots == NONE, -np.inf, gather(scores, order))
    with np.errstate(invalid="ignore"):  # the difference of two ends of lists
        rises = np.diff(along, axis=1) > close
    is_broken = rises.any(axis=1) | np.isnan(along).any(axis=1)
    return np.array(~is_broken)


def _rerank(
    seen: Seen, merged: Order, reranked: Order, fused: Floats, scores: Floats
) -> tuple[Floats, Whys]:
    """The reranker's own scores, and why they cannot be told."""
    blend = seen.said.blend
    falls = _falls(scores, reranked, _CLOSE)
    if blend is None:
        similarity, agrees = scores, falls
    else:
        is_member = positions(merged.slots, fused.shape[1]) < np.inf
        similarity = _unblended(scores, unit_range(fused, is_member), blend)
        agrees = falls & (is_member == ~np.isnan(similarity)).all(axis=1)
        agrees &= _is_unit(similarity, is_member)
    why = np.where(agrees, "", OTHER_RERANK).astype(object)
    has_scores = (~np.isnan(scores)).any(axis=1) | (reranked.n == 0)
    why = np.where(has_scores, why, RERANK_NO_SCORES)
    unseen = "" if seen.said.reranks is False else RERANK_UNSEEN
    starts = _starts_with(_merged_codes(seen), seen.codes["results"])
    without = np.where(starts & (not seen.said.reranks), "", unseen)
    return similarity, np.where(seen.has["reranked"], why, without).astype(object)


def _unblended(scores: Floats, fused: Floats, weight: float) -> Floats:
    """What was blended with the fused score: scores = weight × it + (1 - weight) × fused."""
    if weight == 0:
        return np.where(np.isnan(scores), np.nan, 1.0)
    # Rounded, since equal scores must stay equal through the detour.
    return np.round((scores - (1 - weight) * fused) / weight, 10)


def _is_unit(values: Floats, members: Bools) -> Bools:
    """Whether the values of each row reach from 0 to 1, or are all 1."""
    low = np.min(values, axis=1, where=members, initial=np.inf)
    high = np.max(values, axis=1, where=members, initial=-np.inf)
    is_empty = ~members.any(axis=1)
    reaches = (np.abs(low) < _CLOSE_BLEND) | (np.abs(low - 1) < _CLOSE_BLEND)
    is_unit: Bools = is_empty | (reaches & (np.abs(high - 1) < _CLOSE_BLEND))
    return is_unit


def _final(
    seen: Seen, codes: Ints, merged: Order, reranked: Order, results: Order
) -> tuple[Order, Bools, Whys]:
    """The list that the results are cut from, where cutting it gives them; else the results."""
    top_k = seen.said.top_k
    slots, merged_slots = same_width(reranked.slots, merged.slots)
    final = order_of(np.where(seen.has["reranked"][:, None], slots, merged_slots))
    distinct, _ = deduplicated(seen.traces, seen.names, codes, final, seen.said.deduplicate, top_k)
    cut, as_seen = same_width(distinct.slots[:, :top_k], results.slots)
    agrees = (cut == as_seen).all(axis=1)
    if seen.said.reranks:
        agrees &= seen.has["reranked"]
    slots, result_slots = same_width(final.slots, results.slots)
    final = order_of(np.where(agrees[:, None], slots, result_slots))
    is_whole = agrees | (results.n < top_k)
    return final, is_whole, np.where(agrees, "", LATER_STEP).astype(object)


def _starts_with(longer: Ints, start: Ints) -> Bools:
    longer, start = same_width(longer, start)
    starts: Bools = ((longer == start) | (start == NONE)).all(axis=1)
    return starts
