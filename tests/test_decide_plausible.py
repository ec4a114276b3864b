from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from retrieval_reference import figures

from ragwb.decide.plausible import check_figures

SOUND = {
    "recall@5": 0.8,
    "hit_rate@5": 0.9,
    "mrr@5": 0.6,
    "ndcg@5": 0.7,
    "map@5": 0.55,
    "precision@5": 0.2,
    "duplicate_rate@5": 0.0,
    "recall@10": 0.8,
    "hit_rate@10": 1.0,
    "p50_ms": 20.0,
    "p95_ms": 20.0,
    "p99_ms": 31.5,
    "context_tokens": 830.0,
    "correct_rate": 0.4,
    "refusal_precision": None,
}


def test_figures_that_can_stand_beside_each_other() -> None:
    assert check_figures(SOUND) == ()
    assert check_figures({}) == ()


def test_a_hit_without_gain_is_impossible_in_foreign_spellings_too() -> None:
    (said,) = check_figures({"hit_rate_at_5": 0.875, "mrr": 0.75, "ndcg_at_5": 0.0})
    assert said == (
        "hit_rate_at_5 0.875 cannot stand beside ndcg_at_5 0: "
        "at one K all of them are above 0, or none is"
    )


@pytest.mark.parametrize(
    ("figures", "said"),
    [
        ({"mrr@5": 0.9, "hit_rate@5": 0.8}, "mrr@5 0.9 is above hit_rate@5 0.8: "),
        ({"Recall@5": 0.9, "hits@5": 0.8}, "Recall@5 0.9 is above hits@5 0.8: "),
        ({"ndcg": 0.9, "hit_rate": 0.8}, "ndcg 0.9 is above hit_rate 0.8: "),
        ({"map_cut_10": 0.9, "success_10": 0.8}, "map_cut_10 0.9 is above success_10 0.8: "),
        ({"P_5": 0.9, "hit@5": 0.8}, "P_5 0.9 is above hit@5 0.8: "),
        ({"mrr@3": 0.2, "hit_rate@3": 0.9}, "mrr@3 0.2 is too low for hit_rate@3 0.9: "),
        ({"precision@3": 0.2, "hit@3": 0.9}, "precision@3 0.2 is too low for hit@3 0.9: "),
        ({"recall@10": 0.8, "recall@5": 0.9}, "recall@10 0.8 is below recall@5 0.9: "),
        ({"hit_rate@1": 0.7, "hit@20": 0.6}, "hit@20 0.6 is below hit_rate@1 0.7: "),
        ({"hit_rate@5": 0.7, "hit@5": 0.6}, "hit_rate@5 0.7 and hit@5 0.6 are the same figure"),
        ({"p95_ms": 10, "p50_ms": 20}, "p95_ms 10 is below p50_ms 20"),
        ({"p99_ms": 10, "p50_ms": 20}, "p99_ms 10 is below p50_ms 20"),
        ({"recall@5": 1.0001}, "recall@5 1.0001 is no rate: it must be between 0 and 1"),
        ({"ndcg@3": 1.3066}, "ndcg@3 1.3066 is no rate"),
        ({"refusal_recall": -0.1}, "refusal_recall -0.1 is no rate"),
        ({"no_answer_false_positive_rate": 100.0}, "no_answer_false_positive_rate 100 is no rate"),
        ({"p95_retrieval_ms": -1.0}, "p95_retrieval_ms -1 is below 0"),
        ({"context_tokens": -3}, "context_tokens -3 is below 0"),
        ({"forbidden_claims": -0.5}, "forbidden_claims -0.5 is below 0"),
        ({"faithfulness": math.nan}, "faithfulness is no number: "),
        ({"recall@5": math.inf}, "recall@5 is infinite: "),
        ({"context_tokens": 10**400}, "context_tokens is infinite: "),
        ({"recall@5": "0,8"}, "recall@5 is no number: "),
        ({"a\nb\x1b[0m\u202e": math.nan}, "a b⟨U+202E⟩ is no number: "),
    ],
)
def test_what_is_impossible_is_said_once(figures: dict[str, float], said: str) -> None:
    found = check_figures(figures)
    assert len(found) == 1
    assert found[0].startswith(said)


@pytest.mark.parametrize(
    "figures",
    [
        # Another K, or none, is another figure.
        {"mrr": 0.95, "hit_rate@5": 0.9},
        {"mrr@10": 0.9, "hit_rate@5": 0.8},
        {"recall_at_k": 0.5, "mrr": 0.6666666666666666},
        # ndcg may fall with K: its ideal grows.
        {"ndcg@1": 0.9, "ndcg@5": 0.6},
        # Rounded to three digits, and no more than that.
        {"mrr@5": 0.8754, "hit_rate@5": 0.875},
        # No figure of ours: only its being a number is known.
        {"p95": 120.0, "judge_score": 4.2, "faithfulness": 0.0},
        # Counts of claims are no rates.
        {"forbidden_claims": 2.0},
        {"hit_rate@5": 0.0, "recall@5": 0.0, "mrr@5": 0.0},
    ],
)
def test_what_is_possible_is_not_complained_about(figures: dict[str, float]) -> None:
    assert check_figures(figures) == ()


IDS = st.sampled_from("abcdef")
GROUPS = st.lists(st.lists(IDS, min_size=1, max_size=3), min_size=1, max_size=4)
CASES = st.lists(st.tuples(st.lists(IDS, max_size=8), GROUPS), min_size=1, max_size=6)


@given(CASES, st.sampled_from([3, 4, 12]))
def test_nothing_that_can_be_measured_is_called_impossible(
    cases: list[tuple[list[str], list[list[str]]]], digits: int
) -> None:
    metrics = {}
    for k in (1, 2, 5):
        rows = [figures(retrieved, groups, (), k) for retrieved, groups in cases]
        for name in ("recall", "hit", "mrr", "ndcg", "map", "precision", "duplicate_rate"):
            metrics[f"{name}@{k}"] = round(float(np.mean([row[name] for row in rows])), digits)
    assert check_figures(metrics) == ()
