"""Which K under a budget: the best that it allows, what a smaller one gives up, and why."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwb.errors import UsageError
from ragwb.sweep.budget import FLAT, Budget, Gain, Point, pareto_ks, recommend_k


def point(k, score, tokens=None, p95=None, counts=None):
    return Point(k, score, counts, {"context_tokens": tokens, "p95_ms": p95})


def gains(n=40, level=(), gained=("c7",)):
    """Each smaller K can be told from the larger one, but for those named."""

    def over(smaller, k):
        return {one: Gain(0.0 if one in level else 0.01, 0.2, tuple(gained), n) for one in smaller}

    return over


POINTS = [point(1, 0.5, 100, 10), point(3, 0.8, 300, 20), point(5, 0.9, 500, 30)]


def test_without_a_budget_the_best_score_counts():
    found = recommend_k(POINTS, gains(), Budget(), "recall")
    assert (found.k, found.best_k, found.flat_from, found.gives_up) == (5, 5, None, ())
    assert found.sentence == "K = 5: recall 0.900 for 500 tokens a case and p95 30 ms"


def test_a_budget_leaves_out_what_costs_more():
    found = recommend_k(POINTS, gains(), Budget(max_tokens=300), "recall")
    assert (found.k, found.within) == (3, (1, 3))
    assert found.sentence.endswith(", within 300 tokens a case")
    assert recommend_k(POINTS, gains(), Budget(max_p95_ms=19), "recall").k == 1
    both = recommend_k(POINTS, gains(), Budget(max_tokens=500, max_p95_ms=20), "recall")
    assert both.k == 3
    assert both.sentence.endswith(", within 500 tokens a case and p95 20 ms")


def test_of_equal_scores_the_smallest_k_is_taken_and_nothing_is_added_beyond():
    points = [point(1, 0.5), point(3, 0.9), point(5, 0.9), point(8, 0.9)]
    found = recommend_k(points, gains(), Budget(), "recall")
    assert found.k == 3
    assert found.sentence.endswith("up to K = 8 nothing is added")


def test_a_later_k_that_is_worse_is_not_said_to_add_nothing():
    found = recommend_k([point(1, 0.9), point(3, 0.5)], gains(), Budget(), "precision")
    assert found.sentence == "K = 1: precision 0.900"


def test_a_small_set_keeps_its_cases_and_says_that_the_curve_is_flat():
    found = recommend_k(POINTS, gains(n=100, level=(3,)), Budget(), "recall")
    assert (found.k, found.best_k, found.flat_from, found.gives_up) == (5, 5, 3, ("c7",))
    assert f"from K = 3 to 5 {FLAT}, but K = 3 scores less in 1 case (c7)" in found.sentence
    assert found.sentence.endswith("and saves 200 tokens a case")


def test_over_many_cases_the_smallest_k_on_the_flat_part_is_taken():
    found = recommend_k(POINTS, gains(n=101, level=(1, 3)), Budget(), "recall")
    assert (found.k, found.best_k, found.flat_from) == (1, 5, 1)
    assert f"{FLAT}; K = 5 scores more in 1 case (c7) and costs 400 tokens a case" in found.sentence


def test_without_tokens_no_price_is_named():
    points = [point(1, 0.5), point(3, 0.8)]
    found = recommend_k(points, gains(level=(1,)), Budget(), "recall")
    assert found.sentence.endswith("but K = 1 scores less in 1 case (c7)")


def test_many_cases_are_counted_and_the_first_named():
    named = tuple(f"c{n}" for n in range(9))
    found = recommend_k(POINTS, gains(level=(3,), gained=named), Budget(), "recall")
    assert "9 cases (c0, c1, c2, c3 and 5 more)" in found.sentence


def test_a_budget_that_nothing_meets_names_the_nearest_k():
    found = recommend_k(POINTS, gains(), Budget(max_tokens=50, max_p95_ms=40), "recall")
    assert (found.k, found.nearest_k, found.within) == (None, 1, ())
    assert found.sentence == (
        "no K meets 50 tokens a case and p95 40 ms: the nearest is K = 1 with 100 tokens a case "
        "and p95 10 ms"
    )
    # The limit that is missed most decides, not the sum.
    points = [point(1, 0.5, 100, 200), point(3, 0.8, 130, 130)]
    assert recommend_k(points, gains(), Budget(50, 50), "recall").nearest_k == 1 + 2


def test_a_cost_that_is_not_known_never_meets_a_budget():
    points = [point(1, 0.5, 100), point(3, 0.8, 300, 20)]
    found = recommend_k(points, gains(), Budget(max_p95_ms=30), "recall")
    assert (found.k, found.unknown) == (3, (1,))
    assert "(of K = 1 a cost is not known)" in found.sentence
    unmet = recommend_k(points, gains(), Budget(max_tokens=200, max_p95_ms=3), "recall")
    assert (unmet.k, unmet.nearest_k, unmet.unknown) == (None, 3, (1,))
    assert unmet.sentence == (
        "no K is known to meet 200 tokens a case and p95 3 ms: of K = 1 the latency was not "
        "measured (--measure asks at each K); K = 3 misses it with 300 tokens a case and p95 20 ms"
    )
    missed = recommend_k(points, gains(), Budget(max_tokens=50, max_p95_ms=3), "recall")
    assert missed.sentence.startswith("no K meets 50 tokens a case and p95 3 ms: the nearest is")


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        (Budget(max_p95_ms=30), "p95 30 ms: latency was not measured at any K"),
        (Budget(max_tokens=9), "9 tokens a case: the texts of the results were not observed"),
    ],
)
def test_without_any_known_cost_nothing_is_near(budget, said):
    found = recommend_k([point(1, 0.5), point(3, 0.8)], gains(), budget, "recall")
    assert (found.k, found.nearest_k) == (None, None)
    assert found.sentence == f"no K can be held against {said}"


def test_two_costs_each_known_somewhere_and_nowhere_both():
    points = [point(1, 0.5, tokens=10), point(3, 0.8, p95=10)]
    found = recommend_k(points, gains(), Budget(100, 100), "recall")
    assert found.sentence.endswith("no K has every cost that it limits")


def test_without_a_score_there_is_nothing_to_choose():
    found = recommend_k([point(1, None, 5)], gains(), Budget(), "recall")
    assert found.k is None
    assert "nothing to choose" in found.sentence


def test_counts_lead_a_rate():
    found = recommend_k([point(1, 0.9, counts="9/10")], gains(), Budget(), "hit_rate")
    assert found.sentence == "K = 1: hit_rate 9/10 (0.900)"


def test_as_json_values():
    said = recommend_k(POINTS, gains(level=(3,)), Budget(max_tokens=500), "recall").to_dict()
    assert said["gives_up"] == ["c7"]
    assert said["within"] == [1, 3, 5]
    assert said["budget"] == {"max_tokens": 500, "max_p95_ms": None}


@pytest.mark.parametrize("limit", [0, -1, float("inf"), float("nan")])
def test_a_limit_is_a_number_above_0(limit):
    with pytest.raises(UsageError, match=r"--max-tokens .*: must be a number above 0"):
        Budget(max_tokens=limit)


def test_the_front_leaves_out_what_another_beats():
    points = [point(1, 0.5, 100), point(2, 0.4, 200), point(3, 0.8, 300), point(5, 0.8, 500)]
    assert pareto_ks(points, "context_tokens") == (1, 3)
    assert pareto_ks(points, "p95_ms") == ()


_SHARES = st.integers(0, 8).map(lambda n: n / 8)
_PLANE = st.lists(st.tuples(_SHARES, st.integers(1, 6)), min_size=1, max_size=10)


@given(_PLANE)
def test_everything_beyond_the_front_is_beaten_and_nothing_on_it(plane):
    points = [point(k, score, cost) for k, (score, cost) in enumerate(plane, 1)]
    front = set(pareto_ks(points, "context_tokens"))

    def beats(one, other):
        mine, theirs = plane[one - 1], plane[other - 1]
        return mine[0] >= theirs[0] and mine[1] <= theirs[1] and mine != theirs

    ks = range(1, len(plane) + 1)
    assert front == {k for k in ks if not any(beats(one, k) for one in ks)}
    assert front


@given(_PLANE, st.integers(1, 6))
def test_the_recommended_k_is_within_the_budget_and_none_there_is_better(plane, limit):
    points = [point(k, score, cost) for k, (score, cost) in enumerate(plane, 1)]
    found = recommend_k(points, gains(), Budget(max_tokens=limit), "recall")
    allowed = {k: score for k, (score, cost) in enumerate(plane, 1) if cost <= limit}
    if not allowed:
        assert found.k is None
        assert plane[found.nearest_k - 1][1] == min(cost for _, cost in plane)
    else:
        best = max(allowed.values())
        assert found.k == min(k for k, score in allowed.items() if score == best)
