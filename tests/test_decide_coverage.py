"""Simulated comparisons: the intervals hold the truth as often as they say.

2,000 comparisons of two systems whose true difference is known, at each number of cases. All of
them go through `paired_bootstrap` as columns of one table, so they share their resamples; each
column by itself is what one comparison would get.
"""

import numpy as np
import pytest

from ragwb.measure.statistics import mcnemar, paired_bootstrap

COMPARISONS = 2_000
BLOCK = 500


def pass_or_fail(rng, shape):
    """One case in seven fixed, one in ten broken."""
    change = rng.choice([1.0, -1.0, 0.0], p=[0.15, 0.10, 0.75], size=shape)
    before = np.where(change == 0, rng.integers(0, 2, shape), change < 0).astype(float)
    return before, before + change


def recalls(rng, shape):
    """Cases of two or three groups that win and lose some of them."""
    steps = np.array([-1, -1 / 2, -1 / 3, 0, 1 / 3, 1 / 2, 1])
    change = rng.choice(steps, p=[0.04, 0.05, 0.05, 0.66, 0.08, 0.07, 0.05], size=shape)
    before = np.maximum(0, -change)
    return before, before + change


def reciprocal_ranks(rng, shape):
    """Ranks that move in almost every case."""
    before = rng.beta(2, 1.5, shape) * rng.binomial(1, 0.75, shape)
    return before, rng.beta(2, 1, shape) * rng.binomial(1, 0.8, shape)


TRUTHS = {
    pass_or_fail: 0.05,
    recalls: -0.04 - 0.05 / 2 - 0.05 / 3 + 0.08 / 3 + 0.07 / 2 + 0.05,
    reciprocal_ranks: 0.8 * 2 / 3 - 0.75 * 2 / 3.5,
}


def coverage(draw, n_cases):
    """The share of intervals that hold the true difference."""
    rng = np.random.default_rng([3, n_cases])
    before, after = draw(rng, (n_cases, COMPARISONS))
    held = 0
    for first in range(0, COMPARISONS, BLOCK):
        block = slice(first, first + BLOCK)
        intervals = paired_bootstrap(before[:, block], after[:, block])
        held += sum(one.low - 1e-9 <= TRUTHS[draw] <= one.high + 1e-9 for one in intervals)
    return held / COMPARISONS


@pytest.mark.parametrize("n_cases", [50, 100, 500])
@pytest.mark.parametrize("draw", list(TRUTHS), ids=lambda draw: draw.__name__)
def test_intervals_hold_the_true_difference(draw, n_cases):
    assert 0.93 <= coverage(draw, n_cases) <= 0.97


def test_at_thirty_cases_they_hold_it_less_often(capsys):
    found = {draw.__name__: coverage(draw, 30) for draw in TRUTHS}
    with capsys.disabled():
        print("\n95 % intervals at n = 30 hold the truth in", found)
    # Below their name, as the percentile bootstrap is known to be with few cases.
    assert 0.90 <= min(found.values()) < 0.95


@pytest.mark.parametrize("n_cases", [30, 50, 100, 500])
def test_false_alarms_of_mcnemar_stay_at_their_level(n_cases):
    rng = np.random.default_rng([4, n_cases])
    flips = rng.multinomial(n_cases, [0.1, 0.1, 0.8], COMPARISONS)
    alarms = [mcnemar(int(fixed), int(broken)) < 0.05 for fixed, broken, _ in flips]
    assert 0 < np.mean(alarms) <= 0.05
