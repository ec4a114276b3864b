"""How far two raters agree: each figure for the cases as they are, and for any weights on them.

A statistic takes weights of shape (resamples, items) and gives a value a resample, so that the
figure itself (all weights 1) and its bootstrap come from one piece of arithmetic. Items are drawn,
never rows: two labels of one item are not two independent cases.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ragwb.judge.scale import Scale, Value
from ragwb.measure.statistics import CONFIDENCE, RESAMPLES, SEED, Interval

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Statistic = Callable[[Floats], Floats]

FIGURES = (
    "raw_agreement",
    "kappa",
    "kappa_linear",
    "kappa_quadratic",
    "pearson",
    "spearman",
    "mae",
)
# Of more values there is no table to agree in, and one a resample would be beyond any memory.
MOST_VALUES = 100
# A percentile of what is left would be no interval of the figure when more resamples have none.
MOST_UNDEFINED = 0.05
_CELLS = 2_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Paired:
    """Two raters on the same items; row r is one pair of ratings of item `item[r]`.

    Attributes:
        left, right: the ratings as given, such as a person's and the judge's.
        item: index of the item of a row, 0 to n_items - 1; several rows may share one.
        n_items: number of items.
        scale: the values that both may take; None when one of them is not on a scale.
    """

    left: Sequence[Value]
    right: Sequence[Value]
    item: Integers
    n_items: int
    scale: Scale | None

    @property
    def categories(self) -> Scale | None:
        """The scale as far as ratings are counted by value; None without one, or with too many."""
        is_countable = self.scale is not None and len(self.scale.values) <= MOST_VALUES
        return self.scale if is_countable else None

    def numbers(self) -> tuple[Floats, Floats] | None:
        """Both as numbers, the place on an ordered scale of words; None where there are none."""
        sides = [_as_numbers(side, self.scale) for side in (self.left, self.right)]
        return None if sides[0] is None or sides[1] is None else (sides[0], sides[1])


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of agreement.

    Attributes:
        value: None when it is undefined; `why` then says the reason.
        n_rows, n_items: ratings compared, and the items that they are of.
        interval: 95 %, items resampled; None when undefined, or in more than one of twenty
            resamples.
    """

    value: float | None
    n_rows: int
    n_items: int
    interval: Interval | None = None
    why: str | None = None


def agreement(
    pairs: Paired, *, resamples: int = RESAMPLES, seed: int = SEED
) -> Mapping[str, Figure]:
    """Every figure of `FIGURES` for two raters.

    raw_agreement: share of rows with equal values. kappa: Cohen's; linear and quadratic weights on
    ordered scales of three or more values. pearson and spearman in -1..1, spearman with mid-ranks.
    mae: mean absolute difference, in units of the scale.

    Returns:
        By name; a figure that is undefined has value None and the reason (all ratings equal, no
        order, not on a scale or on one of more than 100 values, no rows).

    Source: J. Cohen, Educ. Psychol. Meas. 20 (1960) 37-46 and Psychol. Bull. 70 (1968) 213-220.
    """
    found = {}
    for name, (statistic, why) in _statistics(pairs).items():
        found[name] = _figure(pairs, statistic, why, resamples, seed)
    return found


def confusion(pairs: Paired) -> Integers | None:
    """Counts of rows, left by right, in the scale's order; None without a scale to count by."""
    if (scale := pairs.categories) is None:
        return None
    size = len(scale.values)
    cell = _cells(pairs, scale)
    counts: Integers = np.bincount(cell, minlength=size * size).reshape(size, size)
    return counts


def resampled(
    statistic: Statistic, n_items: int, *, resamples: int = RESAMPLES, seed: int = SEED
) -> Interval | None:
    """95 % percentile interval of a statistic, items drawn with replacement.

    Returns:
        None without items, or when more than one of twenty resamples has no value.
    """
    if not n_items or not resamples:
        return None
    values = np.empty(resamples)
    step = max(1, _CELLS // n_items)
    for block, start in enumerate(range(0, resamples, step)):
        size = min(step, resamples - start)
        drawn = _drawn(n_items, size, seed, block).astype(np.float64)
        values[start : start + size] = statistic(drawn)
    undefined = np.isnan(values)
    if undefined.mean() > MOST_UNDEFINED:
        return None
    ends = [50 * (1 - CONFIDENCE), 50 * (1 + CONFIDENCE)]
    low, high = np.percentile(values[~undefined], ends)
    return Interval(float(low), float(high), "bootstrap", resamples, seed)


@lru_cache(maxsize=16)
def _drawn(n_items: int, size: int, seed: int, block: int) -> npt.NDArray[np.uint16]:
    """How often each item is drawn, a row a resample; kept, for every figure asks for the same."""
    drawn = np.random.default_rng([seed, block]).integers(0, n_items, size=(size, n_items))
    cells = (drawn + np.arange(size)[:, None] * n_items).ravel()
    counts = np.bincount(cells, minlength=size * n_items).reshape(size, n_items)
    return counts.astype(np.uint16)


def _figure(
    pairs: Paired, statistic: Statistic | None, why: str | None, resamples: int, seed: int
) -> Figure:
    n_rows = len(pairs.left)
    if not n_rows or statistic is None:
        return Figure(None, n_rows, pairs.n_items, why=why if n_rows else "nothing to compare")
    value = _known(statistic(np.ones((1, pairs.n_items)))[0])
    if value is None:
        return Figure(None, n_rows, pairs.n_items, why="one rater gives one value only")
    found = resampled(statistic, pairs.n_items, resamples=resamples, seed=seed)
    return Figure(value, n_rows, pairs.n_items, found)


def _statistics(pairs: Paired) -> dict[str, tuple[Statistic | None, str | None]]:
    scale, numbers = pairs.categories, pairs.numbers() if len(pairs.left) else None
    off, no_order = "a rater gives values that are not on the scale", "the values have no order"
    if pairs.scale is not None:
        off = f"more than {MOST_VALUES} different values: nothing to count by"
    found: dict[str, tuple[Statistic | None, str | None]] = dict.fromkeys(FIGURES, (None, off))
    if scale is not None:
        tables = _tables(pairs, scale)
        found["raw_agreement"] = (lambda w: _raw(tables(w)), None)
        found["kappa"] = (lambda w: _kappa(tables(w), "none"), None)
        for name in ("linear", "quadratic"):
            found[f"kappa_{name}"] = _weighted(scale, tables, name)
    if numbers is None:
        return {**found, **dict.fromkeys(("pearson", "spearman", "mae"), (None, no_order))}
    left, right = numbers
    found["pearson"] = (_pearson(pairs.item, left, right), None)
    found["spearman"] = (_spearman(pairs.item, left, right), None)
    found["mae"] = (_mean(pairs.item, np.abs(left - right)), None)
    return found


def _weighted(scale: Scale, tables: Statistic, weights: str) -> tuple[Statistic | None, str | None]:
    if not scale.is_ordered:
        return None, "the values have no order"
    if len(scale.values) < 3:
        return None, "two values: the same as kappa"
    return (lambda w: _kappa(tables(w), weights)), None


def _cells(pairs: Paired, scale: Scale) -> Integers:
    left, right = (np.array([scale.place(v) for v in side]) for side in (pairs.left, pairs.right))
    return np.asarray(left * len(scale.values) + right, dtype=np.int64)


def _tables(pairs: Paired, scale: Scale) -> Statistic:
    """Weights to confusion matrices, shape (resamples, values, values)."""
    size = len(scale.values)
    # Only cells that hold anything: of a long scale they are few.
    cells, place = np.unique(_cells(pairs, scale), return_inverse=True)
    held = np.zeros((pairs.n_items, len(cells)))
    np.add.at(held, (pairs.item, place), 1)

    def count(weights: Floats) -> Floats:
        tables = np.zeros((len(weights), size * size))
        tables[:, cells] = weights @ held
        return tables.reshape(-1, size, size)

    return count


def _raw(tables: Floats) -> Floats:
    return _over(np.trace(tables, axis1=1, axis2=2), tables.sum(axis=(1, 2)))


def _kappa(tables: Floats, weights: str) -> Floats:
    size = tables.shape[1]
    apart = np.abs(np.subtract.outer(np.arange(size), np.arange(size))).astype(np.float64)
    cost = {"none": (apart > 0).astype(np.float64), "linear": apart, "quadratic": apart**2}[weights]
    total = tables.sum(axis=(1, 2))
    by_chance = tables.sum(axis=2)[:, :, None] * tables.sum(axis=1)[:, None, :]
    expected = _over((by_chance * cost).sum(axis=(1, 2)), total)
    return 1 - _over((tables * cost).sum(axis=(1, 2)), expected)


def _mean(item: Integers, value: Floats) -> Statistic:
    def mean(weights: Floats) -> Floats:
        rows = weights[:, item]
        return _over(rows @ value, rows.sum(axis=1))

    return mean


def _pearson(item: Integers, left: Floats, right: Floats) -> Statistic:
    # Without its mean, a column of large numbers keeps its digits when it is squared.
    x, y = left - left.mean(), right - right.mean()
    return lambda weights: _correlation(weights[:, item], x, y)


def _spearman(item: Integers, left: Floats, right: Floats) -> Statistic:
    ranks = [_mid_ranks(side) for side in (left, right)]

    def correlate(weights: Floats) -> Floats:
        rows = weights[:, item]
        x, y = (rank(rows) for rank in ranks)
        return _correlation(rows, x, y)

    return correlate


def _mid_ranks(values: Floats) -> Statistic:
    """Row weights to the mid-rank of each row's value, shape (resamples, rows)."""
    _, group = np.unique(values, return_inverse=True)
    order = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))

    def rank(rows: Floats) -> Floats:
        counts = np.add.reduceat(rows[:, order], starts, axis=1)
        middle = np.cumsum(counts, axis=1) - counts / 2 + 0.5
        ranks: Floats = middle[:, group]
        return ranks

    return rank


def _correlation(rows: Floats, x: Floats, y: Floats) -> Floats:
    """Of two columns, the same for every resample or one each; NaN where a rater gives one value.

    Args:
        rows: weights, shape (resamples, rows).
        x: shape (rows,) or (resamples, rows).
        y: of the same.
    """
    x, y = _centred(rows, x), _centred(rows, y)
    sxx, syy, sxy = ((rows * part).sum(axis=1) for part in (x * x, y * y, x * y))
    return _over(sxy, np.sqrt(sxx * syy))


def _centred(rows: Floats, side: Floats) -> Floats:
    """A column without its mean in each resample; 0 where that leaves nothing but rounding."""
    mean = _over((rows * side).sum(axis=1), rows.sum(axis=1))
    apart = side - mean[:, None]
    spread, size = ((rows * part * part).sum(axis=1) for part in (apart, side))
    apart[spread <= 1e-24 * size] = 0
    return apart


def _over(numerator: Floats, denominator: Floats) -> Floats:
    """A quotient, NaN where the denominator is 0."""
    found = np.full(np.broadcast(numerator, denominator).shape, np.nan)
    np.divide(numerator, denominator, out=found, where=denominator != 0)
    return found


def _as_numbers(side: Sequence[Value], scale: Scale | None) -> Floats | None:
    if not any(isinstance(value, str) for value in side):
        return np.array(side, dtype=np.float64)
    if scale is None or not scale.is_ordered:
        return None
    return np.array([scale.place(value) for value in side], dtype=np.float64)


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
