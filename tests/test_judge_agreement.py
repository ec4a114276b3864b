from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ragwb.judge.agreement import Paired, agreement, confusion, resampled
from ragwb.judge.scale import Scale

FIVE = Scale((-2, -1, 0, 1, 2))
WORDS = Scale(("no", "yes"), is_ordered=False)


def paired(left, right, scale=FIVE, item=None):
    item = np.arange(len(left)) if item is None else np.array(item)
    return Paired(left, right, item, len(set(item.tolist())), scale)


def figures(*args, **named):
    return agreement(paired(*args, **named), resamples=0)


def of_table(table, figure="kappa"):
    cells = [(i, j) for i, row in enumerate(table) for j, n in enumerate(row) for _ in range(n)]
    return figures(*zip(*cells, strict=True), scale=Scale(tuple(range(len(table)))))[figure].value


# TP 13, FP 2, TN 9, FN 0: agree 22/24; by chance (13·15 + 11·9)/24² = 294/576;
# (22/24 - 294/576) / (1 - 294/576) = 234/282.
def test_kappa_worked_by_hand():
    assert of_table([[13, 0], [2, 9]]) == pytest.approx(234 / 282)
    assert of_table([[13, 0], [2, 9]]) == pytest.approx(0.8298, abs=5e-5)
    assert of_table([[13, 0], [4, 7]]) == pytest.approx(0.6547, abs=5e-5)


# Costs |i - j|: seen 1; by chance (1·1·1 + 1·1·2 + 1·0·… ) of rows (1, 1, 1), columns (1, 0, 2):
# 0: 0 + 2·2 = 4, 1: 1 + 2 = 3, 2: 2 + 0 = 2, all / 3 = 3; 1 - 1/3. Squares: seen 1,
# 0: 2·4 = 8, 1: 1 + 2 = 3, 2: 4, all / 3 = 5; 1 - 1/5.
def test_weighted_kappa_worked_by_hand():
    table = [[1, 0, 0], [0, 0, 1], [0, 0, 1]]
    assert of_table(table, "kappa_linear") == pytest.approx(2 / 3)
    assert of_table(table, "kappa_quadratic") == pytest.approx(4 / 5)


def test_kappa_is_undefined_where_all_ratings_are_equal():
    found = figures([1, 1, 1], [1, 1, 1])
    assert found["raw_agreement"].value == 1
    assert found["kappa"].value is None
    assert found["kappa"].why == "one rater gives one value only"
    assert found["pearson"].value is None


def test_nothing_to_compare_is_null_everywhere():
    found = figures([], [])
    assert {figure.value for figure in found.values()} == {None}
    assert {figure.why for figure in found.values()} == {"nothing to compare"}


def test_two_values_have_no_weighted_kappa_and_words_no_order():
    assert "same as kappa" in figures([0, 1], [0, 1], scale=Scale((0, 1)))["kappa_linear"].why
    words = figures(["no", "yes"], ["no", "yes"], scale=WORDS)
    assert words["kappa"].value == 1
    assert words["pearson"].why == "the values have no order"
    assert words["mae"].value is None


def test_words_in_order_are_compared_by_their_place():
    scale = Scale(("bad", "fair", "good"))
    found = figures(["bad", "fair", "good"], ["bad", "good", "good"], scale=scale)
    assert found["mae"].value == pytest.approx(1 / 3)
    assert found["pearson"].value == pytest.approx(stats.pearsonr([0, 1, 2], [0, 2, 2])[0])


def test_values_off_the_scale_leave_correlations_alone():
    found = figures([1, 2, 0], [0.3, 0.9, 0.1], scale=None)
    assert found["kappa"].why == "a rater gives values that are not on the scale"
    assert found["spearman"].value == pytest.approx(1)


def test_the_confusion_matrix_is_left_by_right():
    found = confusion(paired([0, 0, 1], [0, 1, 1], scale=Scale((0, 1))))
    assert found.tolist() == [[1, 1], [0, 1]]
    assert confusion(paired([0.5], [0.7], scale=None)) is None


ratings = st.lists(
    st.tuples(st.sampled_from(FIVE.values), st.sampled_from(FIVE.values)), min_size=2, max_size=40
)


@given(ratings)
def test_correlations_agree_with_scipy(rows):
    left, right = map(list, zip(*rows, strict=True))
    found = figures(left, right)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", stats.ConstantInputWarning)
        theirs = {"pearson": stats.pearsonr(left, right)[0]}
        theirs["spearman"] = stats.spearmanr(left, right)[0]
    for name, value in theirs.items():
        ours = found[name].value
        assert (ours is None) == bool(np.isnan(value))
        assert ours is None or ours == pytest.approx(value, abs=1e-9)


@given(ratings)
def test_swapping_the_raters_changes_nothing(rows):
    left, right = map(list, zip(*rows, strict=True))
    one, other = figures(left, right), figures(right, left)
    for name in one:
        assert one[name].value == pytest.approx(other[name].value, abs=1e-9)


@given(ratings)
def test_full_agreement_is_one_or_undefined(rows):
    left = [value for value, _ in rows]
    found = figures(left, left)
    assert found["raw_agreement"].value == 1
    assert found["kappa_quadratic"].value in (None, pytest.approx(1))
    assert found["mae"].value == 0


@settings(max_examples=20)
@given(ratings, st.integers(0, 3))
def test_the_order_of_the_items_changes_no_figure(rows, turn):
    turned = rows[turn:] + rows[:turn]
    one, other = (figures(*map(list, zip(*each, strict=True))) for each in (rows, turned))
    assert one["spearman"].value == pytest.approx(other["spearman"].value, abs=1e-9)
    assert one["kappa"].value == pytest.approx(other["kappa"].value, abs=1e-9)


def test_a_resample_in_which_a_rater_gives_one_value_has_no_correlation():
    # Only the 2 of the left is drawn; its distance to the mean of all must not leave a spread.
    left, right = [2, 0, 2, 1, 1], [2, 2, -1, 0, 0]
    from ragwb.judge.agreement import _statistics

    for name in ("pearson", "spearman"):
        statistic, _ = _statistics(paired(left, right))[name]
        drawn, whole = statistic(np.array([[2.0, 0, 3, 0, 0], [1, 1, 1, 1, 1]]))
        assert np.isnan(drawn)
        assert whole < 0


@settings(max_examples=20, deadline=None)
@given(ratings)
def test_a_resample_weighs_as_the_items_repeated_would(rows):
    left, right = map(list, zip(*rows, strict=True))
    drawn = np.random.default_rng(3).multinomial(len(rows), [1 / len(rows)] * len(rows))
    again = [i for i, n in enumerate(drawn) for _ in range(n)]
    from ragwb.judge.agreement import _statistics  # the piece that the bootstrap rests on

    repeated = figures([left[i] for i in again], [right[i] for i in again])
    for name, (statistic, _) in _statistics(paired(left, right)).items():
        value = statistic(drawn[None].astype(float))[0]
        ours = repeated[name].value
        assert (ours is None) == bool(np.isnan(value))
        assert ours is None or ours == pytest.approx(value, abs=1e-9)


def test_items_are_resampled_and_not_their_labels():
    left, right = [0, 1, 2, -1, 1, 0] * 4, [0, 1, 1, -1, 2, 0] * 4
    alone = agreement(paired(left, right), resamples=2000)["pearson"].interval
    doubled = agreement(paired(left * 2, right * 2, item=list(range(24)) * 2), resamples=2000)[
        "pearson"
    ].interval
    assert (doubled.low, doubled.high) == pytest.approx((alone.low, alone.high))


def test_an_interval_holds_its_figure_and_is_that_of_the_seed():
    pairs = paired([0, 1, 2, -1, 1, 0] * 5, [0, 1, 1, -1, 2, 0] * 5)
    found = agreement(pairs, resamples=1000, seed=1)["kappa"]
    again = agreement(pairs, resamples=1000, seed=1)["kappa"]
    assert found.interval.low < found.value < found.interval.high
    assert found == again


def test_there_is_no_interval_when_resamples_have_no_value():
    assert resampled(lambda w: np.where(w[:, 0] > 0, 1.0, np.nan), 3, resamples=500) is None
    assert resampled(lambda w: w[:, 0], 0) is None
    assert agreement(paired([0, 0, 1], [0, 0, 1]), resamples=500)["kappa"].interval is None
