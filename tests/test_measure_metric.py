from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwb.errors import MetricError
from ragwb.measure.metric import AT_K, WITHOUT_K, Metric, default_ks, parse_metric


@given(st.sampled_from(AT_K), st.integers(1, 100))
def test_a_name_with_a_k_parses_and_prints_back(name: str, k: int) -> None:
    assert parse_metric(f"{name}@{k}") == Metric(name, k)
    assert str(Metric(name, k)) == f"{name}@{k}"


@pytest.mark.parametrize("name", WITHOUT_K)
def test_a_name_without_a_k_parses_and_prints_back(name: str) -> None:
    assert str(parse_metric(name)) == name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("recal@5", "known: recall@K"),
        ("recall", "write recall@5"),
        ("p95_ms@5", "write p95_ms"),
        ("recall@0", "no figure"),
        ("recall@101", "K goes from 1 to 100"),
        ("recall@05", "no figure"),
        ("", "no figure"),
    ],
)
def test_anything_else_is_refused_with_what_would_be_right(text: str, message: str) -> None:
    with pytest.raises(MetricError, match=message):
        parse_metric(text)


def test_the_hit_rate_is_the_mean_of_the_column_hit() -> None:
    assert parse_metric("hit_rate@5").column == "hit@5"
    assert parse_metric("recall@5").column == "recall@5"


@pytest.mark.parametrize(
    ("top_k", "expected"), [(1, (1,)), (5, (1, 3, 5)), (7, (1, 3, 5, 7)), (50, (1, 3, 5, 10, 50))]
)
def test_default_cutoffs_go_up_to_top_k_and_hold_it(top_k: int, expected: tuple[int, ...]) -> None:
    assert default_ks(top_k) == expected
