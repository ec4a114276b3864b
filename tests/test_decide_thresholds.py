"""Limits and the verdict: a missed limit fails, an unknown decides nothing, the rest passes."""

import pytest

from ragwb.decide.thresholds import check_thresholds, decide_verdict
from ragwb.errors import UsageError

METRICS = {"recall@5": 0.8, "hit_rate@5": 0.9, "duplicate_rate@5": 0.0, "p95_ms": 120.0}


def check(**limits):
    return check_thresholds(METRICS, limits, top_k=5)


def verdict(thresholds=(), *, n_errors=0, n_forbidden=0):
    return decide_verdict(thresholds, n_errors=n_errors, n_forbidden=n_forbidden)


@pytest.mark.parametrize(
    ("name", "limit", "passed"),
    [
        ("min_recall", 0.8, True),
        ("min_recall", 0.81, False),
        ("max_duplicate_rate", 0.0, True),
        ("max_p95_ms", 119.0, False),
        ("max_p95_ms", 1500, True),
        ("min_mrr", 0.5, None),
    ],
)
def test_a_limit_is_met_when_reached_exactly_and_undecided_when_unobserved(name, limit, passed):
    (threshold,) = check(**{name: limit})
    assert threshold.passed is passed
    assert threshold.to_dict()["limit"] == limit


@pytest.mark.parametrize(
    ("name", "metric", "values"),
    [("max_duplicate_rate", "duplicate_rate@5", [0.2] * 3), ("min_recall", "recall@5", [0.6] * 10)],
)
def test_a_mean_that_misses_its_value_by_the_last_bits_still_meets_the_limit(name, metric, values):
    mean = sum(values) / len(values)
    assert mean != values[0]
    (threshold,) = check_thresholds({metric: mean}, {name: values[0]}, top_k=5)
    assert threshold.passed is True


def test_limits_that_were_not_set_are_not_checked():
    assert check(min_recall=None, max_p95_ms=None) == ()


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"min_recal": 0.5}, "unknown threshold 'min_recal'"),
        ({"min_recall": 1.5}, "--min-recall 1.5: must be between 0 and 1"),
        ({"min_recall": float("nan")}, "must be between 0 and 1"),
        ({"max_p95_ms": -1}, "must be at least 0"),
        ({"max_p95_ms": float("inf")}, "must be at least 0"),
        ({"min_recall": "0.8"}, "min_recall '0.8': must be a number"),
        ({"min_recall": True}, "min_recall 'True': must be a number"),
        ({"min_recall": [1]}, "must be a number"),
    ],
)
def test_an_impossible_limit_is_refused(limits, message):
    with pytest.raises(UsageError, match=message):
        check(**limits)


def test_the_order_of_the_verdict():
    missed, unknown = check(min_recall=0.9), check(min_mrr=0.5)
    assert verdict() == "pass"
    assert verdict(missed, n_errors=3) == "fail"
    assert verdict(n_forbidden=1, n_errors=3) == "fail"
    assert verdict(n_errors=1) == "undecided"
    assert verdict(unknown) == "undecided"
