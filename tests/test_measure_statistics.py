from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwb.errors import MetricError
from ragwb.measure.statistics import (
    RESAMPLES,
    SEED,
    bootstrap_means,
    bootstrap_ratio_change,
    holm,
    mcnemar,
    paired_bootstrap,
    wilson,
)

scipy_stats = pytest.importorskip("scipy.stats", reason="scipy is a development dependency")


@given(st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_agrees_with_scipy(pair: tuple[int, int]) -> None:
    successes, n = pair
    theirs = scipy_stats.binomtest(successes, n).proportion_ci(0.95, method="wilson")
    ours = wilson(successes, n)
    assert ours is not None
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_wilson_at_its_limits() -> None:
    nine = wilson(9, 10)
    assert nine is not None
    assert (round(nine.low, 3), round(nine.high, 3)) == (0.596, 0.982)
    assert wilson(0, 0) is None
    assert wilson(0, 10).low == 0.0
    assert wilson(10, 10).high == 1.0
    with pytest.raises(MetricError, match="from 0 to 10"):
        wilson(11, 10)


def test_the_bootstrap_agrees_with_scipy_and_tells_how_it_was_made() -> None:
    values = np.random.default_rng(3).beta(2, 1, 80)
    theirs = scipy_stats.bootstrap(
        (values,), np.mean, n_resamples=RESAMPLES, method="percentile", rng=1
    ).confidence_interval
    (ours,) = bootstrap_means(values)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.005)
    assert (ours.method, ours.resamples, ours.seed) == ("bootstrap", RESAMPLES, SEED)
    assert bootstrap_means(values) == [ours]
    assert bootstrap_means(values, seed=SEED + 1) != [ours]


def test_drawing_only_rows_that_are_not_zero_is_the_same_distribution() -> None:
    # 20 of 200 changed: the variance of the mean must count the 180 zeros too.
    values = np.zeros(200)
    values[:20] = np.random.default_rng(0).normal(1, 1, 20)
    theirs = scipy_stats.bootstrap(
        (values,), np.mean, n_resamples=RESAMPLES, method="percentile", rng=1
    ).confidence_interval
    (ours,) = bootstrap_means(values)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.006)


def test_figures_are_resampled_together() -> None:
    values = np.random.default_rng(1).random(50)
    one, other = bootstrap_means(np.column_stack([values, 1 - values]))
    assert (one.low, one.high) == pytest.approx((1 - other.high, 1 - other.low), abs=1e-12)


def test_the_paired_bootstrap_is_that_of_the_differences() -> None:
    before = np.array([0.0, 0.5, 1.0, 0.0, 1.0])
    after = np.array([1.0, 0.5, 1.0, 0.5, 0.0])
    assert paired_bootstrap(before, after) == bootstrap_means(after - before)
    (same,) = paired_bootstrap(before, before)
    assert (same.low, same.high) == (0.0, 0.0)
    with pytest.raises(MetricError, match=r"shapes \(5,\) and \(4,\) differ"):
        paired_bootstrap(before, after[:4])


def test_the_bootstrap_at_its_limits() -> None:
    assert bootstrap_means(np.zeros((0, 2))) == [None, None]
    (one,) = bootstrap_means([0.25])
    assert (one.low, one.high) == (0.25, 0.25)
    with pytest.raises(MetricError, match="null"):
        bootstrap_means([0.5, float("nan")])


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_the_exact_binomial_test(fixed: int, broken: int) -> None:
    theirs = scipy_stats.binomtest(fixed, fixed + broken).pvalue if fixed + broken else 1.0
    assert mcnemar(fixed, broken) == pytest.approx(theirs, rel=1e-9)


def test_mcnemar_where_a_percentage_would_mislead() -> None:
    assert mcnemar(1, 0) == 1.0  # 8/10 to 9/10
    assert mcnemar(8, 0) == 0.0078125
    with pytest.raises(MetricError, match="0 or more"):
        mcnemar(-1, 0)


def test_holm_by_hand() -> None:
    # Sorted 0.01 x 3, 0.03 x 2, 0.04 x 1, never below the one before.
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.6, 0.9]) == [1.0, 1.0]
    assert holm([]) == []
    with pytest.raises(MetricError, match="not between 0 and 1"):
        holm([1.2])


# Many changed cases.
@pytest.mark.parametrize("digits", [1, 12], ids=["many alike", "none alike"])
@pytest.mark.parametrize("n_unchanged", [0, 3_000])
def test_many_changed_cases_have_the_spread_of_their_mean(digits: int, n_unchanged: int) -> None:
    values = np.random.default_rng(1).normal(0.1, 1.0, (7_000, 2)).round(digits)
    values = np.vstack([values, np.zeros((n_unchanged, 2))])
    first = bootstrap_means(values, resamples=2_000)
    for column, interval in zip(values.T, first, strict=True):
        error = 1.959964 * column.std() / np.sqrt(len(column))
        assert interval.low == pytest.approx(column.mean() - error, abs=error / 10)
        assert interval.high == pytest.approx(column.mean() + error, abs=error / 10)
    assert bootstrap_means(values, resamples=2_000) == first


# The change of a ratio.
def test_the_change_of_a_ratio_is_that_of_its_sums():
    rng = np.random.default_rng(2)
    dens = [rng.integers(0, 2, 400).astype(float) for _ in range(2)]
    nums = [den * (rng.random(400) < share) for den, share in zip(dens, (0.5, 0.7), strict=True)]
    change = nums[1].sum() / dens[1].sum() - nums[0].sum() / dens[0].sum()
    found = bootstrap_ratio_change((nums[0], dens[0]), (nums[1], dens[1]))
    assert found.low < change < found.high
    # With one in every denominator it is the paired difference of means.
    ones = np.ones(400)
    same = bootstrap_ratio_change((nums[0], ones), (nums[1], ones))
    (paired,) = paired_bootstrap(nums[0], nums[1])
    assert same.low == pytest.approx(paired.low, abs=0.01)
    assert same.high == pytest.approx(paired.high, abs=0.01)


def test_a_ratio_without_a_denominator_on_a_side_has_no_change():
    one, zero = (np.ones(5), np.ones(5)), (np.zeros(5), np.zeros(5))
    assert bootstrap_ratio_change(zero, one) is None
    assert bootstrap_ratio_change(one, zero) is None
    with pytest.raises(MetricError, match="a value is null"):
        bootstrap_ratio_change((np.array([np.nan]), np.ones(1)), (np.ones(1), np.ones(1)))


def test_mcnemar_of_many_flips_is_that_of_the_normal_distribution() -> None:
    fixed, broken = 20_300, 20_000
    z = (fixed - broken - 1) / math.sqrt(fixed + broken)
    assert mcnemar(fixed, broken) == pytest.approx(math.erfc(z / math.sqrt(2)), rel=0.001)
