"""How sure are we: intervals of rates and means, an exact paired test, a correction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ragwb.errors import MetricError

RESAMPLES = 10_000
SEED = 20_250_101
CONFIDENCE = 0.95
_Z = 1.959963984540054  # the normal distribution's 97.5 % point
_CELLS = 4_000_000  # weights held at a time: resamples of a block times changed cases
_MANY = 5_000  # from so many changed cases on, counting a resample at a time is faster
_ALIKE = 50  # so often must rows be alike, on average, for a draw of each kind of row to be faster

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Interval:
    """A 95 % interval and how it was made.

    Attributes:
        low, high: its ends, in the unit of the figure.
        method: "wilson", or "bootstrap" with resamples and seed.
        resamples, seed: None unless method is bootstrap.
    """

    low: float
    high: float
    method: str
    resamples: int | None = None
    seed: int | None = None


def wilson(successes: int, n: int) -> Interval | None:
    """Wilson's 95 % score interval of a rate.

    Args:
        successes: 0 to n.
        n: trials; 0 gives None, for nothing is known.

    Raises:
        MetricError: successes are not between 0 and n.

    Source: E. B. Wilson, JASA 22 (1927) 209-212.
    Example: 9 of 10 -> 0.596 to 0.982
    """
    if not 0 <= successes <= n:
        raise MetricError(f"{successes} successes of {n}: give a number from 0 to {n}")
    if n == 0:
        return None
    rate, square = successes / n, _Z * _Z
    centre = (rate + square / (2 * n)) / (1 + square / n)
    half = _Z / (1 + square / n) * math.sqrt(rate * (1 - rate) / n + square / (4 * n * n))
    # The ends are exact at 0 and n, where rounding would leave them a hair inside.
    low = 0.0 if successes == 0 else centre - half
    high = 1.0 if successes == n else centre + half
    return Interval(low, high, "wilson")


def bootstrap_means(
    values: npt.ArrayLike, *, resamples: int = RESAMPLES, seed: int = SEED
) -> list[Interval | None]:
    """95 % percentile intervals of the means of columns, cases resampled jointly.

    Only rows that are not all zero are drawn: how many of them a resample holds is binomial, which
    gives the same distribution and costs little where few cases changed between two runs.

    Args:
        values: shape (cases,) or (cases, figures); one row a case, its mean over repeats, no nulls.
        resamples: number of resamples.
        seed: of the generator; the same gives the same ends.

    Returns:
        An interval a column; None for each when there are no cases.

    Raises:
        MetricError: a value is null.

    Source: B. Efron, R. J. Tibshirani, An Introduction to the Bootstrap (1993), 13.3.
    """
    table = np.asarray(values, dtype=np.float64)
    table = table[:, None] if table.ndim == 1 else table
    if np.isnan(table).any():
        raise MetricError("bootstrap: a value is null; leave such cases out and count them")
    if not len(table):
        return [None] * table.shape[1]
    means = _resampled_means(table, resamples, np.random.default_rng(seed))
    ends = np.percentile(means, [50 * (1 - CONFIDENCE), 50 * (1 + CONFIDENCE)], axis=0)
    return [
        Interval(float(low), float(high), "bootstrap", resamples, seed)
        for low, high in zip(*ends, strict=True)
    ]


def bootstrap_ratio(
    numerators: npt.ArrayLike,
    denominators: npt.ArrayLike,
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Interval | None:
    """95 % percentile interval of a ratio of two sums over the same cases.

    Resamples without a denominator are left out, for their ratio is undefined.

    Args:
        numerators: shape (cases,).
        denominators: shape (cases,); 0 or more.
        resamples: number of resamples.
        seed: of the generator.

    Returns:
        None when every denominator is 0.

    Raises:
        MetricError: a value is null.
    """
    table = np.column_stack([np.asarray(numerators, float), np.asarray(denominators, float)])
    if np.isnan(table).any():
        raise MetricError("bootstrap: a value is null; leave such cases out and count them")
    if not table[:, 1].any():
        return None
    means = _resampled_means(table, resamples, np.random.default_rng(seed))
    means = means[means[:, 1] > 0]
    low, high = np.percentile(
        means[:, 0] / means[:, 1], [50 * (1 - CONFIDENCE), 50 * (1 + CONFIDENCE)]
    )
    return Interval(float(low), float(high), "bootstrap", resamples, seed)


def bootstrap_ratio_change(
    before: tuple[npt.ArrayLike, npt.ArrayLike],
    after: tuple[npt.ArrayLike, npt.ArrayLike],
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Interval | None:
    """95 % percentile interval of the change of a ratio of two sums over the same cases.

    For figures whose denominator is what the system did, such as the precision of refusals. Cases
    are resampled jointly; resamples in which a side has no denominator are left out.

    Args:
        before: numerators and denominators of the baseline, each of shape (cases,).
        after: those of the candidate; row i is the same case.
        resamples: number of resamples.
        seed: of the generator.

    Returns:
        None when the denominators of a side are all 0.

    Raises:
        MetricError: a value is null.
    """
    table = np.column_stack([np.asarray(part, np.float64) for part in (*before, *after)])
    if np.isnan(table).any():
        raise MetricError("bootstrap: a value is null; leave such cases out and count them")
    if not (table[:, 1].any() and table[:, 3].any()):
        return None
    means = _resampled_means(table, resamples, np.random.default_rng(seed))
    means = means[(means[:, 1] > 0) & (means[:, 3] > 0)]
    changes = means[:, 2] / means[:, 3] - means[:, 0] / means[:, 1]
    low, high = np.percentile(changes, [50 * (1 - CONFIDENCE), 50 * (1 + CONFIDENCE)])
    return Interval(float(low), float(high), "bootstrap", resamples, seed)


def paired_bootstrap(
    baseline: npt.ArrayLike,
    candidate: npt.ArrayLike,
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> list[Interval | None]:
    """95 % percentile intervals of the mean differences candidate - baseline over the same cases.

    Args:
        baseline: shape (cases,) or (cases, figures).
        candidate: the same shape; row i of both is the same case.
        resamples: number of resamples.
        seed: of the generator.

    Raises:
        MetricError: the shapes differ or a value is null.
    """
    before, after = np.asarray(baseline, np.float64), np.asarray(candidate, np.float64)
    if before.shape != after.shape:
        raise MetricError(f"paired bootstrap: shapes {before.shape} and {after.shape} differ")
    return bootstrap_means(after - before, resamples=resamples, seed=seed)


def mcnemar(fixed: int, broken: int) -> float:
    """Two-sided p-value of the exact McNemar test on the cases that changed.

    Args:
        fixed: cases that failed before and pass now.
        broken: cases that passed before and fail now.

    Returns:
        In (0, 1]; 1.0 when nothing changed.

    Raises:
        MetricError: a count is negative.

    Source: Q. McNemar, Psychometrika 12 (1947) 153-157, with binomial probabilities.
    Example: 1 fixed, 0 broken -> 1.0; 8 fixed, 0 broken -> 0.0078125
    """
    if fixed < 0 or broken < 0:
        raise MetricError(f"McNemar: {fixed} fixed and {broken} broken: counts are 0 or more")
    n = fixed + broken
    # Each binomial coefficient follows from the one before it; the quotient is rounded once.
    tail = term = 1
    for i in range(min(fixed, broken)):
        term = term * (n - i) // (i + 1)
        tail += term
    return min(1.0, 2 * tail / (1 << n))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values, in the order given; valid whatever the tests' dependence.

    Raises:
        MetricError: a value is not in [0, 1].

    Source: S. Holm, Scandinavian Journal of Statistics 6 (1979) 65-70.
    Example: 0.01, 0.04, 0.03 -> 0.03, 0.06, 0.06
    """
    if any(not 0 <= p <= 1 for p in p_values):
        raise MetricError("Holm: a p-value is not between 0 and 1")
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, highest = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = highest
    return adjusted


def _resampled_means(table: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    changed = table[np.any(table != 0, axis=1)]
    n, m = len(table), len(changed)
    if m >= _MANY:
        alike, sizes = np.unique(changed, axis=0, return_counts=True)
        if _ALIKE * len(alike) <= m:
            return _means_of_alike(alike, sizes, n, resamples, rng)
    means = np.zeros((resamples, table.shape[1]))
    step = max(1, _CELLS // max(m, 1))
    for start in range(0, resamples if m else 0, step):
        size = min(step, resamples - start)
        drawn = rng.binomial(n, m / n, size=size)
        weights = _few_weights(drawn, m, rng) if m < _MANY else _many_weights(drawn, m, rng)
        means[start : start + size] = weights @ changed / n
    return means


def _means_of_alike(
    alike: Floats,
    sizes: npt.NDArray[np.int64],
    n: int,
    resamples: int,
    rng: np.random.Generator,
) -> Floats:
    """The means of resamples of n cases, of which so many have each of these rows, the rest zeros.

    How often rows that are alike are drawn together is multinomial: the same distribution again.
    """
    shares = np.append(sizes, n - sizes.sum()) / n
    step = max(1, _CELLS // len(shares))
    starts = range(0, resamples, step)
    drawn = (rng.multinomial(n, shares, size=min(step, resamples - i)) for i in starts)
    return np.vstack([weights[:, :-1] @ alike / n for weights in drawn])


def _few_weights(drawn: npt.NDArray[np.int64], m: int, rng: np.random.Generator) -> Floats:
    """How often each of m rows is drawn in each resample: all resamples counted in one call."""
    cell = np.repeat(np.arange(len(drawn)) * m, drawn) + rng.integers(0, m, size=int(drawn.sum()))
    counts = np.bincount(cell, minlength=len(drawn) * m)
    return counts.reshape(len(drawn), m).astype(np.float64)


def _many_weights(drawn: npt.NDArray[np.int64], m: int, rng: np.random.Generator) -> Floats:
    """The same from the same draws, a resample at a time: its counts then stay in the cache."""
    weights = np.empty((len(drawn), m))
    for row, size in zip(weights, drawn, strict=True):
        row[:] = np.bincount(rng.integers(0, m, size=size), minlength=m)
    return weights
