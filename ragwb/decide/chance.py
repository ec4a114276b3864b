"""What chance alone would do: how many flips tell something, and how sure a percentile's change is.

What is said of means and rates stands in `measure.statistics`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from ragwb.errors import MetricError
from ragwb.measure.listed import count
from ragwb.measure.statistics import CONFIDENCE, RESAMPLES, SEED, Interval, mcnemar

ALPHA = 0.05
"""A p-value below it says that a change is more than chance."""

LEAST_PAIRS = 20
"""With fewer pairs the percentile's change has no interval: it would rest on one or two calls."""

# How far a resample's percentile may lie from the sample's, in its standard errors: beyond five of
# them falls one resample of a million; it is then taken for the farthest value that is looked at.
_REACH = 5.0
_CELLS = 4_000_000

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Flips:
    """The cases that changed sides, and whether chance explains them.

    Attributes:
        fixed, broken: number of cases.
        n: pairs of which both sides are known to pass or fail.
        p: exact McNemar, two-sided; 1.0 when nothing changed.
        needed: least number of flips, all one way, that would have p < 0.05; None when there are
            fewer pairs than that.
    """

    fixed: int
    broken: int
    n: int
    p: float
    needed: int | None

    @property
    def tells(self) -> bool:
        """Whether the flips are more than chance would do."""
        return self.p < ALPHA

    @property
    def words(self) -> str:
        """What the size can show, in one sentence."""
        p = f"p = {self.p:.2g}" if self.p >= 0.001 else "p < 0.001"
        test = f"exact McNemar, {p}"
        if self.tells:
            more = "fixed" if self.fixed > self.broken else "broken"
            return f"more {more} than chance would do ({test})"
        if not self.fixed and not self.broken:
            few = (
                "too few to show any" if self.needed is None else f"{self.needed} flips would tell"
            )
            return f"nothing changed sides; {count(self.n, 'case')}: {few}"
        if self.needed is None:
            return f"{count(self.n, 'case')} cannot show any difference ({test})"
        return (
            f"a difference that {count(self.n, 'case')} cannot show ({test}): {self.needed} flips "
            "one way would be needed"
        )

    def to_dict(self) -> dict[str, object]:
        """The flips as JSON values."""
        return {
            "fixed": self.fixed,
            "broken": self.broken,
            "n": self.n,
            "p": self.p,
            "needed": self.needed,
        }


def flips_of(fixed: int, broken: int, n: int) -> Flips:
    """The flips with their p-value and the number that would tell something.

    Raises:
        MetricError: a count is negative, or more cases changed than there are.
    """
    if fixed + broken > n:
        raise MetricError(f"{fixed} fixed and {broken} broken of {n}: more changed than there are")
    return Flips(fixed, broken, n, mcnemar(fixed, broken), flips_needed(n))


def flips_needed(n: int) -> int | None:
    """The least number of flips, all one way, that has p < 0.05; None when n cases have too few.

    Example: 50 -> 6 (p = 0.03125), 5 -> None
    """
    least = _least_flips()
    return least if n >= least else None


@cache
def _least_flips() -> int:
    flips = 1
    while mcnemar(flips, 0) >= ALPHA:
        flips += 1
    return flips


@dataclass(frozen=True, slots=True)
class Observed:
    """Values observed of some cases.

    Attributes:
        case: the case of each value, from 0.
        values: finite numbers.
    """

    case: Ints
    values: Floats


def percentile_change(
    before: Observed,
    after: Observed,
    n: int,
    q: float,
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Interval | None:
    """95 % percentile bootstrap interval of the change of a nearest-rank percentile.

    Cases are resampled, not values: all values of a drawn case come with it, on both sides. Only
    values that could be the percentile of a resample are looked at one by one, which gives the
    same distribution and costs little.

    Args:
        before: values of the baseline's cases; a case may have several, or none.
        after: values of the same cases on the other side.
        n: number of cases.
        q: a share from 0 to 1.
        resamples: number of resamples.
        seed: of the generator; the same gives the same ends.

    Returns:
        None with fewer than `LEAST_PAIRS` cases, with so few that less than one is expected beyond
        the percentile, or when a side has no value.

    Source: B. Efron, R. J. Tibshirani, An Introduction to the Bootstrap (1993), 13.3.
    """
    least = max(LEAST_PAIRS, math.ceil(1 / (1 - q) - 1e-9) if q < 1 else LEAST_PAIRS)
    if n < least or not len(before.values) or not len(after.values):
        return None
    sides = [_side(side, n, q) for side in (before, after)]
    changes = _resampled_changes(sides, n, q, resamples, np.random.default_rng(seed))
    low, high = np.percentile(
        changes[~np.isnan(changes)], [50 * (1 - CONFIDENCE), 50 * (1 + CONFIDENCE)]
    )
    return Interval(float(low), float(high), "bootstrap", resamples, seed)


@dataclass(frozen=True, slots=True)
class _Side:
    """One side's values: those that a percentile could be, and how many each case has below.

    Attributes:
        case, values: near the percentile, in ascending order of values.
        below, total: a case's number of values below all of these, and of all values.
    """

    case: Ints
    values: Floats
    below: Ints
    total: Ints


def _side(observed: Observed, n: int, q: float) -> _Side:
    order = np.argsort(observed.values, kind="stable")
    case, values = observed.case[order], observed.values[order]
    reach = _REACH * math.sqrt(q * (1 - q) / n) + 2 / n
    first, last = (
        min(len(values) - 1, max(0, int((q + sign * reach) * len(values)))) for sign in (-1, 1)
    )
    near = (values >= values[first]) & (values <= values[last])
    below = np.bincount(case[values < values[first]], minlength=n)
    return _Side(case[near], values[near], below, np.bincount(case, minlength=n))


def _resampled_changes(
    sides: list[_Side], n: int, q: float, resamples: int, rng: np.random.Generator
) -> Floats:
    """The change of the percentile in each resample; NaN where a side has no value in it."""
    is_near = np.zeros(n, dtype=bool)
    for side in sides:
        is_near[side.case] = True
    # Cases far from both percentiles are alike when they have as many values below, and in all.
    counts = np.column_stack([column for side in sides for column in (side.below, side.total)])
    alike, sizes = np.unique(counts[~is_near], axis=0, return_counts=True)
    near, place = np.flatnonzero(is_near), np.cumsum(is_near) - 1
    step = max(1, _CELLS // max(len(near), *(len(side.values) for side in sides)))
    changes = np.empty(resamples)
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        drawn = rng.multinomial(n, np.array([len(near), *sizes]) / n, size=size)
        weights = _drawn_weights(drawn[:, 0], len(near), rng)
        sums = weights @ counts[near] + drawn[:, 1:] @ alike
        ends = [
            _percentiles(side, weights[:, place[side.case]], sums[:, 2 * i], sums[:, 2 * i + 1], q)
            for i, side in enumerate(sides)
        ]
        changes[start : start + size] = ends[1] - ends[0]
    return changes


def _drawn_weights(drawn: Ints, m: int, rng: np.random.Generator) -> Ints:
    """How often each of m cases is drawn in each resample, of as many draws as are given."""
    cell = np.repeat(np.arange(len(drawn)) * m, drawn) + rng.integers(0, m, size=int(drawn.sum()))
    return np.bincount(cell, minlength=len(drawn) * m).reshape(len(drawn), m)


def _percentiles(side: _Side, weights: Ints, below: Ints, total: Ints, q: float) -> Floats:
    # A hair less than the rank, for 0.95 * 60 is 57 and may come out above.
    rank = np.ceil(q * total - 1e-9)
    reached = below[:, None] + np.cumsum(weights, axis=1)
    place = (reached < rank[:, None]).sum(axis=1)
    values = side.values[np.minimum(place, len(side.values) - 1)]
    return np.where(total > 0, values, np.nan)
