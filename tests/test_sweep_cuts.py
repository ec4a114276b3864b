"""Where results are cut: at a K, or at a number of tokens."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sweep_data import point

from ragwb.errors import MetricError
from ragwb.sweep.cuts import Cut, figures_at, least_tokens, n_short
from ragwb.sweep.results import BY_K, PointResult


def make_result(tokens: list[list[int]], top_k: int = 4, **columns: object) -> PointResult:
    """Results of so many tokens each; recall at K is K / 10, so that the cut can be read off it."""
    each = np.array([row + [0] * (top_k - len(row)) for row in tokens], dtype=float)
    shape = (len(tokens), top_k)
    by_k = {name: np.tile(np.arange(1, top_k + 1) / 10, (shape[0], 1)) for name in BY_K}
    cases = pd.DataFrame(
        {
            "case_id": [f"c{i}" for i in range(shape[0])],
            "status": "scored",
            "n_results": [float(len(row)) for row in tokens],
            **columns,
        }
    )
    by_k["tokens"] = np.cumsum(each, axis=1)
    return PointResult(point(), "key", top_k=top_k, cases=cases, by_k=by_k)


def test_at_a_k_every_case_is_cut_alike():
    figures = figures_at(make_result([[5, 5, 5], [9]]), Cut(k=2))
    assert figures["recall"].tolist() == [0.2, 0.2]
    assert figures["tokens"].tolist() == [10, 9]
    assert figures["n_used"].tolist() == [2, 1]


def test_at_a_budget_each_list_is_cut_where_it_is_reached():
    figures = figures_at(make_result([[5, 5, 5, 5], [9, 2], [3, 3]]), Cut(tokens=10))
    assert figures["n_used"].tolist() == [2, 1, 2]
    assert figures["recall"].tolist() == [0.2, 0.1, 0.2]
    assert figures["tokens"].tolist() == [10, 9, 6]


def test_a_first_result_over_the_budget_finds_nothing():
    figures = figures_at(make_result([[20, 1]]), Cut(tokens=10)).iloc[0]
    assert (figures["recall"], figures["hit"], figures["tokens"], figures["n_used"]) == (0, 0, 0, 0)
    assert math.isnan(figures["passage_precision"])


def test_what_was_not_observed_stays_unknown():
    result = make_result([[5], [5]], n_results=[1.0, np.nan])
    for name in BY_K:
        result.by_k[name][1] = np.nan
    figures = figures_at(result, Cut(tokens=1))
    assert figures["recall"].isna().tolist() == [False, True]
    assert figures["n_used"].isna().tolist() == [False, True]
    assert figures["tokens"].isna().tolist() == [False, True]


def test_a_k_beyond_what_was_asked_is_an_error():
    with pytest.raises(MetricError, match="nothing was asked for beyond 4"):
        figures_at(make_result([[5]]), Cut(k=5))


@pytest.mark.parametrize("given", [{}, {"k": 1, "tokens": 1}, {"k": 0}, {"tokens": 0}])
def test_a_cut_is_one_number_from_one(given):
    with pytest.raises(MetricError, match="a cut"):
        Cut(**given)


def test_a_cut_says_what_it_is():
    assert (str(Cut(k=5)), Cut(k=5).key) == ("K 5", "k=5")
    assert (str(Cut(tokens=80)), Cut(tokens=80).key) == ("80 tokens", "tokens=80")


def test_lists_that_end_before_the_budget_are_counted():
    result = make_result([[1, 1, 1, 1], [1, 1], [9, 9, 9, 9]])
    assert n_short(result, Cut(tokens=10)) == 1
    assert n_short(result, Cut(k=4)) == 0


def test_the_least_budget_is_the_smallest_first_result():
    failed = PointResult(point(), "key", error="no")
    assert least_tokens([make_result([[7, 1], [], [5]]), failed]) == 5
    assert least_tokens([failed]) is None


@given(
    st.lists(st.lists(st.integers(0, 9), max_size=4), min_size=1, max_size=8), st.integers(1, 40)
)
def test_a_budget_is_never_exceeded_and_always_used_up(tokens, budget):
    figures = figures_at(make_result(tokens), Cut(tokens=budget))
    for row, used, spent in zip(tokens, figures["n_used"], figures["tokens"], strict=True):
        assert spent == sum(row[: int(used)]) <= budget
        assert used == len(row) or spent + row[int(used)] > budget
