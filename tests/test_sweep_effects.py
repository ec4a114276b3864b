"""A factor is credited only from points that differ in it alone."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sweep_data import point

from ragwb.sweep.effects import main_effects, matched_pairs, uncredited
from ragwb.sweep.grid import make_grid


def figures(*values: float) -> pd.DataFrame:
    index = pd.Index([f"c{i}" for i in range(len(values))], name="case_id")
    return pd.DataFrame({"recall": np.array(values, dtype=float)}, index=index)


def test_the_effect_is_the_mean_over_cases_of_matched_differences():
    a, b = point(size=10), point(size=20)
    c, d = point(size=10, strategy="heading"), point(size=20, strategy="heading")
    held = {a: figures(0, 0), b: figures(1, 0), c: figures(0, 1), d: figures(1, 1)}
    effects = main_effects(held, a, ["recall"]).set_index("factor")
    size = effects.loc["size"]
    assert (size["before"], size["after"], size["n_pairs"], size["n"]) == (10, 20, 2, 2)
    assert (size["effect"], size["least"], size["most"]) == (0.5, 0.5, 0.5)
    assert (size["win"], size["loss"]) == (1, 0)
    strategy = effects.loc["strategy"]
    assert (strategy["effect"], strategy["win"], strategy["loss"]) == (0.5, 1, 0)
    assert size["low"] <= 0.5 <= size["high"]


def test_points_that_differ_in_two_factors_credit_neither():
    a, b = point(size=10), point(size=20, strategy="heading")
    held = {a: figures(0, 0), b: figures(1, 1)}
    assert main_effects(held, a, ["recall"]).empty
    assert [(one.factor, one.reason) for one in uncredited([a, b])] == [
        ("strategy", "no two points differ in it alone"),
        ("size", "no two points differ in it alone"),
    ]


def test_a_value_without_a_match_is_named():
    points = [point(size=10), point(size=20), point(size=30, strategy="heading")]
    found = {one.factor: one.reason for one in uncredited(points)}
    assert found["size"] == "30: no two points differ in it alone"
    assert "strategy" in found


def test_an_effect_that_depends_on_another_factor_shows_its_spread():
    a, b = point(size=10), point(size=20)
    c, d = point(size=10, mode="VECTOR"), point(size=20, mode="VECTOR")
    held = {a: figures(0, 0), b: figures(1, 1), c: figures(1, 1), d: figures(0, 0)}
    size = main_effects(held, a, ["recall"]).set_index("factor").loc["size"]
    assert (size["effect"], size["least"], size["most"]) == (0.0, -1.0, 1.0)


def test_effects_start_from_the_reference():
    points = [point(size=size) for size in (10, 20, 40)]
    held = {p: figures(p.size / 100) for p in points}
    effects = main_effects(held, points[1], ["recall"])
    assert effects[["before", "after"]].to_numpy().tolist() == [[20, 10], [20, 40]]
    assert effects["effect"].tolist() == pytest.approx([-0.1, 0.2])


def test_a_figure_without_a_value_at_one_point_leaves_its_case_out():
    a, b = point(size=10), point(size=20)
    held = {a: figures(0, np.nan), b: figures(1, 1)}
    row = main_effects(held, a, ["recall"]).iloc[0]
    assert (row["n"], row["effect"]) == (1, 1.0)


def test_a_figure_that_no_case_has_is_unknown():
    a, b = point(size=10), point(size=20)
    row = main_effects({a: figures(np.nan), b: figures(np.nan)}, a, ["recall"]).iloc[0]
    assert row["n"] == 0
    assert row[["effect", "low", "high", "least", "most"]].isna().all()


def test_pairs_are_the_same_whatever_the_order_of_the_points():
    points = list(
        make_grid(
            {"strategy": ["fixed", "heading"], "size": [10, 20], "rerank": [True, False]}
        ).points
    )
    pairs = matched_pairs(points, "rerank", True, False)
    assert len(pairs) == 4
    assert all(p == replace(q, rerank=True) and not q.rerank for p, q in pairs)
    assert set(matched_pairs(points[::-1], "rerank", True, False)) == set(pairs)
