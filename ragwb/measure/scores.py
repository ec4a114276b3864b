"""The retrieval figures of each result at any number of cutoffs, as arithmetic on its hits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ragwb.errors import DataError, MetricError
from ragwb.measure.asked import Asked, cases_in, encoded
from ragwb.measure.background import in_background
from ragwb.measure.hits import Hits
from ragwb.measure.ragged import Ints
from ragwb.records import MAX_TOP_K

METRICS = (
    "recall",
    "hit",
    "mrr",
    "ndcg",
    "map",
    "precision",
    "duplicate_rate",
    "forbidden",
    "failed",
)
STRETCH = 10_000
"""Results that are scored at a time."""

Floats = npt.NDArray[np.float64]
Int32s = npt.NDArray[np.int32]
Integers = npt.NDArray[np.integer[Any]]


def checked_ks(ks: int | Iterable[int]) -> tuple[int, ...]:
    """Cutoffs in ascending order, each once.

    Raises:
        MetricError: no cutoff, or one that is not a whole number from 1 to 100.
    """
    given = (ks,) if isinstance(ks, int) else tuple(ks)
    for k in given:
        if not isinstance(k, int | np.integer) or isinstance(k, bool) or not 1 <= k <= MAX_TOP_K:
            raise MetricError(f"K is {k!r}: give a whole number from 1 to {MAX_TOP_K}")
    if not given:
        raise MetricError("no K is given: give at least one from 1 to 100")
    return tuple(sorted({int(k) for k in given}))


def score_hits(hits: Hits, ks: int | Iterable[int]) -> pd.DataFrame:
    """Every retrieval figure of metrics.md at every K, one row a (case, repeat).

    Args:
        hits: first hits of groups, first positions of labelled chunks, positions of repeats.
        ks: cutoffs, 1 to 100; fewer than K results is allowed.

    Returns:
        case_id str, repeat int32, then for each K: recall@K, hit@K, mrr@K, ndcg@K, map@K,
        precision@K, duplicate_rate@K float64 in [0, 1]; forbidden@K int32 ≥ 0; failed@K nullable
        boolean. A case without groups has nulls except in duplicate_rate and forbidden; a result
        without positions scores 0. Rows stand in the order of hits.repeats.

    Raises:
        MetricError: a K is outside 1..100.
        DataError: the tables of hits do not belong together.

    Source: metrics.md; with one chunk a group and no duplicates these are trec_eval's recall,
        success, recip_rank at a cutoff, ndcg_cut, map_cut and P.
    Example: groups {a}, {b}, returned [a, x], k=2 -> recall@2 0.5, mrr@2 1.0
    """
    cutoffs = np.array(checked_ks(ks))
    asked = Asked.of(hits.repeats)
    figures = _Figures.empty(len(cutoffs), len(asked))
    enter = partial(figures.enter, cutoffs=cutoffs)
    # Stretches fill places of their own, so that two may be worked on at once.
    for _ in in_background(enter, _stretches(hits, asked), workers=2):
        pass
    columns: dict[str, object] = {
        "case_id": asked.case_ids.take(pa.array(asked.case)).to_pandas(),
        "repeat": asked.repeat,
    }
    for name in METRICS:
        by_k = figures.column(name)
        columns |= {f"{name}@{k}": by_k(i) for i, k in enumerate(cutoffs)}
    return pd.DataFrame(columns, copy=False)


@dataclass(frozen=True, slots=True)
class _Stretch:
    """The hits of some neighbouring results; rows count from 0 within it.

    Attributes:
        place: where the results stand among all.
        group_row, first_hit: one entry a group; first_hit 0 when it was not hit.
        chunk_row, position, forbidden: one entry a labelled chunk that came back.
        n_results, repeat_positions, ideal_gains: one entry a result.
    """

    place: slice
    group_row: Int32s
    first_hit: Int32s
    chunk_row: Int32s
    position: Int32s
    forbidden: npt.NDArray[np.bool_]
    n_results: Int32s
    repeat_positions: pa.ListArray
    ideal_gains: pa.ListArray

    def __len__(self) -> int:
        return len(self.n_results)


def _stretches(hits: Hits, asked: Asked) -> Iterator[_Stretch]:
    """The hits in stretches of STRETCH results, so that sums over them stay small."""
    places = hits.labelled.select(["case_id", "repeat", "forbidden", "position"])
    came_back = places.filter(places.column("position").is_valid())
    groups, group_row = _in_order(hits.groups, asked)
    chunks, chunk_row = _in_order(came_back, asked)
    first_hit = pc.fill_null(groups.column("first_hit"), 0).to_numpy()
    position = chunks.column("position").to_numpy()
    forbidden = chunks.column("forbidden").to_numpy()
    repeats = hits.repeats.combine_chunks()
    for start in range(0, len(asked), STRETCH):
        place = slice(start, min(start + STRETCH, len(asked)))
        mine = slice(*np.searchsorted(group_row, (place.start, place.stop)))
        ours = slice(*np.searchsorted(chunk_row, (place.start, place.stop)))
        part = repeats[place]
        yield _Stretch(
            place,
            group_row[mine] - start,
            first_hit[mine],
            chunk_row[ours] - start,
            position[ours],
            forbidden[ours],
            part.column("n_results").to_numpy(),
            part.column("repeat_positions").chunk(0),
            part.column("ideal_gains").chunk(0),
        )


def _in_order(table: pa.Table, asked: Asked) -> tuple[pa.Table, Int32s]:
    """The rows ordered by the result that they belong to, and the place of that result."""
    case_id = encoded(table.column("case_id"))
    case = cases_in(asked.case_ids, case_id.dictionary)[case_id.indices.to_numpy()]
    rows = asked.rows(case, table.column("repeat").to_numpy())
    if len(rows) and rows.min() < 0:
        raise DataError("hits: a row belongs to a result that repeats.parquet does not list")
    if np.any(rows[1:] < rows[:-1]):
        order = np.argsort(rows, kind="stable")
        return table.take(pa.array(order)), rows[order]
    return table, rows


@dataclass(frozen=True, slots=True)
class _Figures:
    """The figures of all results, each as a matrix of cutoffs and results.

    Attributes:
        shares: float64 figures by name.
        forbidden: counts. failed: recall < 1. has_groups: of each result.
    """

    shares: dict[str, Floats]
    forbidden: Int32s
    failed: npt.NDArray[np.bool_]
    has_groups: npt.NDArray[np.bool_]

    @classmethod
    def empty(cls, n_cutoffs: int, n_results: int) -> _Figures:
        shape = (n_cutoffs, n_results)
        names = [name for name in METRICS if name not in ("forbidden", "failed")]
        return cls(
            {name: np.empty(shape) for name in names},
            np.empty(shape, dtype=np.int32),
            np.empty(shape, dtype=bool),
            np.empty(n_results, dtype=bool),
        )

    def column(self, name: str) -> Callable[[int], object]:
        """A figure's column at each cutoff, by the cutoff's place."""
        if name == "failed":
            return lambda i: pd.arrays.BooleanArray(self.failed[i], ~self.has_groups)
        matrix = self.forbidden if name == "forbidden" else self.shares[name]
        return lambda i: matrix[i]

    def enter(self, stretch: _Stretch, cutoffs: Ints) -> None:
        """Fills in the columns of a stretch."""
        place = stretch.place
        n_groups = np.bincount(stretch.group_row, minlength=len(stretch))
        n_hit, group_figures = _group_figures(stretch, cutoffs)
        n_right, n_wrong = _chunk_counts(stretch, cutoffs)
        has_groups = n_groups > 0
        group_figures["recall"] = n_hit / np.maximum(n_groups, 1)
        group_figures["map"] /= np.maximum(n_groups, 1)
        group_figures["precision"] = n_right / cutoffs[:, None]
        for name, values in group_figures.items():
            self.shares[name][:, place] = np.where(has_groups, values, np.nan)
        self.shares["duplicate_rate"][:, place] = _duplicate_rate(stretch, cutoffs)
        self.forbidden[:, place] = n_wrong
        self.failed[:, place] = n_hit < n_groups
        self.has_groups[place] = has_groups


def _group_figures(stretch: _Stretch, cutoffs: Ints) -> tuple[Floats, dict[str, Floats]]:
    """Groups hit within each cutoff, and what follows from first hits; `map` still as a sum."""
    hit = stretch.first_hit > 0
    row, first_hit = stretch.group_row[hit], stretch.first_hit[hit]
    within = _Within(len(stretch), cutoffs, row, first_hit)
    n_hit = within.total()
    return n_hit, {
        "hit": (n_hit > 0).astype(np.float64),
        "mrr": _reciprocal_ranks(row, first_hit, len(stretch), cutoffs),
        "ndcg": _ndcg(within.total(_discount(first_hit)), stretch.ideal_gains, cutoffs),
        "map": within.total(_precision_at(row, first_hit)),
    }


def _reciprocal_ranks(row: Int32s, first_hit: Int32s, n_rows: int, cutoffs: Ints) -> Floats:
    first = np.full(n_rows, np.inf)
    np.minimum.at(first, row, first_hit)
    ranks: Floats = np.where(first <= cutoffs[:, None], 1 / first, 0.0)
    return ranks


def _ndcg(gain: Floats, ideal_gains: pa.ListArray, cutoffs: Ints) -> Floats:
    row, rank = _entries(ideal_gains)
    within = _Within(len(ideal_gains), cutoffs, row, rank)
    ideal = within.total(ideal_gains.flatten().to_numpy() * _discount(rank))
    # The greedy order is not always the best one: an order that beats it counts 1. A result
    # without groups has no ideal and becomes null later.
    return np.minimum(1.0, gain / np.where(ideal > 0, ideal, 1.0))


def _discount(rank: Integers) -> Floats:
    discount: Floats = 1 / np.log2(1.0 + rank)
    return discount


def _precision_at(row: Int32s, first_hit: Int32s) -> Floats:
    """Groups of the same result hit no later than this one, over its first hit, at most 1."""
    floor = row.astype(np.int64) << 32
    keys = floor | first_hit
    ordered = np.sort(keys)
    before = np.searchsorted(ordered, floor)
    precision: Floats = (np.searchsorted(ordered, keys, side="right") - before) / first_hit
    return np.minimum(1.0, precision)


def _chunk_counts(stretch: _Stretch, cutoffs: Ints) -> tuple[Floats, Floats]:
    """Distinct labelled and distinct forbidden chunks within each cutoff."""
    right, wrong = (
        _Within(len(stretch), cutoffs, stretch.chunk_row[mine], stretch.position[mine]).total()
        for mine in (~stretch.forbidden, stretch.forbidden)
    )
    return right, wrong


def _duplicate_rate(stretch: _Stretch, cutoffs: Ints) -> Floats:
    row, _ = _entries(stretch.repeat_positions)
    positions = stretch.repeat_positions.flatten().to_numpy()
    n_repeats = _Within(len(stretch), cutoffs, row, positions).total()
    return n_repeats / np.maximum(1, np.minimum(stretch.n_results, cutoffs[:, None]))


class _Within:
    """Sums per result over what stands within each cutoff: one pass serves every K.

    Args:
        n_rows: number of results.
        cutoffs: in ascending order.
        row, position: the result and the position, from 1, of each thing to be counted.
    """

    def __init__(self, n_rows: int, cutoffs: Ints, row: Integers, position: Integers) -> None:
        self._shape = (len(cutoffs) + 1, n_rows)
        self._cell = np.searchsorted(cutoffs, position) * n_rows + row

    def total(self, weights: Floats | None = None) -> Floats:
        """Sum of the weights, or the number, per cutoff (first axis) and result."""
        sums = np.bincount(self._cell, weights, minlength=self._shape[0] * self._shape[1])
        by_bucket = sums.astype(np.float64, copy=False).reshape(self._shape)[:-1]
        return np.cumsum(by_bucket, axis=0, out=by_bucket)


def _entries(lists: pa.ListArray) -> tuple[Ints, Ints]:
    """The list and the place in it, from 1, of every entry of all lists."""
    lengths = np.diff(lists.offsets.to_numpy())
    row = np.repeat(np.arange(len(lists)), lengths)
    return row, np.arange(1, len(row) + 1) - np.repeat(np.cumsum(lengths) - lengths, lengths)
