"""What chance alone would do: flips that tell something, and intervals of percentiles."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwb.decide.chance import Observed, flips_needed, flips_of, percentile_change
from ragwb.errors import MetricError
from ragwb.measure.cost import percentile
from ragwb.measure.statistics import SEED, mcnemar


def test_six_flips_one_way_tell_something_and_five_do_not():
    assert flips_needed(50) == 6
    assert mcnemar(6, 0) < 0.05 <= mcnemar(5, 0)
    assert flips_needed(6) == 6
    assert flips_needed(5) is None


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 1000))
def test_flips_tell_something_exactly_below_five_per_cent(fixed, broken, rest):
    found = flips_of(fixed, broken, fixed + broken + rest)
    assert found.p == mcnemar(fixed, broken)
    assert found.tells is (found.p < 0.05)
    assert found.tells is not ("cannot show" in found.words or "nothing" in found.words)


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        (
            (1, 0, 50),
            "a difference that 50 cases cannot show (exact McNemar, p = 1): "
            "6 flips one way would be needed",
        ),
        ((8, 0, 50), "more fixed than chance would do (exact McNemar, p = 0.0078)"),
        ((0, 20, 50), "more broken than chance would do (exact McNemar, p < 0.001)"),
        ((1, 0, 1), "1 case cannot show any difference (exact McNemar, p = 1)"),
        ((0, 0, 1234), "nothing changed sides; 1,234 cases: 6 flips would tell"),
        ((0, 0, 3), "nothing changed sides; 3 cases: too few to show any"),
    ],
)
def test_flips_in_words(counts, words):
    assert flips_of(*counts).words == words


def test_more_flips_than_cases_are_an_error():
    with pytest.raises(MetricError, match="3 fixed and 2 broken of 4"):
        flips_of(3, 2, 4)


# Percentiles.
def observed(values, repeats=1):
    return Observed(np.repeat(np.arange(len(values) // repeats), repeats), np.asarray(values))


def plainly(before, after, n, q, resamples, seed):
    """Each resample drawn, its values sorted and its percentile taken."""
    rng, changes = np.random.default_rng(seed), []
    of = [[side.values[side.case == i] for i in range(n)] for side in (before, after)]
    for _ in range(resamples):
        drawn = rng.integers(0, n, n)
        b, a = (percentile(np.concatenate([side[i] for i in drawn]), q) for side in of)
        changes.append(a - b)
    return np.percentile(changes, [2.5, 97.5])


@pytest.mark.parametrize("q", [0.5, 0.95])
@pytest.mark.parametrize(("n", "repeats"), [(30, 1), (200, 1), (60, 3)])
def test_the_interval_is_that_of_plain_resampling(q, n, repeats):
    rng = np.random.default_rng(5)
    before = observed(rng.lognormal(4, 0.6, n * repeats), repeats)
    after = observed(before.values * 1.2 + rng.normal(0, 5, n * repeats), repeats)
    found = percentile_change(before, after, n, q, resamples=4000)
    low, high = plainly(before, after, n, q, 600, seed=9)
    # Two draws of the same distribution: their ends differ by a share of its width.
    width = high - low
    assert found.low == pytest.approx(low, abs=0.25 * width)
    assert found.high == pytest.approx(high, abs=0.25 * width)


def test_the_same_seed_gives_the_same_ends():
    rng = np.random.default_rng(1)
    before, after = observed(rng.random(40)), observed(rng.random(40))
    first = percentile_change(before, after, 40, 0.95)
    assert percentile_change(before, after, 40, 0.95) == first
    assert (first.method, first.resamples, first.seed) == ("bootstrap", 10_000, SEED)


def test_a_constant_shift_is_certain():
    values = np.random.default_rng(2).random(200)
    found = percentile_change(observed(values), observed(values + 10), 200, 0.95)
    assert (found.low, found.high) == pytest.approx((10, 10))


@pytest.mark.parametrize(("n", "q"), [(19, 0.95), (19, 0.5), (99, 0.99)])
def test_few_pairs_have_no_interval(n, q):
    values = observed(np.arange(float(n)))
    assert percentile_change(values, values, n, q) is None
    more = observed(np.arange(n + 1.0))
    assert percentile_change(more, more, n + 1, q) is not None


def test_a_side_without_values_has_no_interval():
    some, none = observed(np.arange(30.0)), Observed(np.array([], int), np.array([]))
    assert percentile_change(some, none, 30, 0.5) is None


def test_cases_without_a_value_are_drawn_and_add_nothing():
    some = Observed(np.arange(30), np.full(30, 7.0))
    found = percentile_change(some, some, 60, 0.95)
    assert (found.low, found.high) == (0, 0)
