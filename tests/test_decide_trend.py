"""The figures of a run as a point of a trend: values, intervals, counts, and what is unknown."""

import numpy as np
import pandas as pd
import pytest
from weekly_data import Week, difficulty, settings, write_week

from ragwb.decide.outcomes import outcomes_from, outcomes_of
from ragwb.decide.weekly.trend import FIGURE_COLUMNS, figure_rows, percentile_interval, set_rows
from ragwb.measure.cost import percentile
from ragwb.runs.store import load_run

N = 40


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    run_id = write_week(folder, 0, Week(strength=0.7, errors=frozenset({3})), n_cases=N)
    return outcomes_of(load_run(run_id, settings(folder)))


@pytest.fixture(scope="module")
def rows(outcomes):
    return {row["metric"]: row for row in figure_rows(outcomes)}


def test_every_figure_has_its_value_and_counts(outcomes, rows):
    assert all(tuple(row) == FIGURE_COLUMNS for row in rows.values())
    assert {name: row["value"] for name, row in rows.items()} == pytest.approx(outcomes.figures())
    hit = rows["hit_rate@5"]
    # The fourth kind of lost case is cut from the context alone, and is a hit.
    failing = [n for n in range(N) if difficulty(n) > 0.7 and n % 5 != 3 and n != 3]
    assert hit["counts"] == f"{N - 1 - len(failing)}/{N - 1}"
    assert (hit["n"], hit["n_excluded"]) == (N - 1, 0)
    assert hit["low"] < hit["value"] < hit["high"]


def test_what_is_better_is_said(rows):
    lower = {name for name, row in rows.items() if row["direction"] == "lower"}
    costs = {"context_tokens", "model_calls", "candidates", "p50_ms", "p95_ms", "p99_ms"}
    assert lower == costs | {"duplicate_rate@5"}


def test_a_mean_of_zeros_is_no_rate(rows):
    assert rows["duplicate_rate@5"]["counts"] is None
    assert rows["duplicate_rate@5"]["high"] == 0


def test_sets_are_told_apart_and_add_up(outcomes):
    found = {row["set"]: row for row in set_rows(outcomes, "recall@5")}
    assert list(found) == ["core", "incremental", "online"]
    assert sum(row["n"] for row in found.values()) == N - 1
    assert sum(row["n_failed"] for row in found.values()) == int(outcomes.frame["failed"].sum())


def test_undefined_figures_are_unknown_and_counted():
    frame = pd.DataFrame({"case_id": ["a", "b"], "recall@5": [1.0, None], "mrr@5": [None, None]})
    given = outcomes_from(frame, name="given", k=5, metrics=("recall@5", "mrr@5"))
    rows = {row["metric"]: row for row in figure_rows(given)}
    assert (rows["recall@5"]["n"], rows["recall@5"]["n_excluded"]) == (1, 1)
    mrr = rows["mrr@5"]
    assert (mrr["value"], mrr["low"], mrr["high"], mrr["n"]) == (None, None, None, 0)
    assert rows["p95_ms"]["value"] is None


def test_the_interval_of_a_percentile_is_that_of_plain_resampling():
    rng = np.random.default_rng(5)
    values = rng.lognormal(5, 0.5, 60)
    found = percentile_interval([f"c{i}" for i in range(60)], values, 0.95, resamples=4000)
    again = np.random.default_rng(6).choice(values, (4000, 60))
    plain = np.quantile(again, 0.95, axis=1, method="inverted_cdf")
    low, high = np.quantile(plain, [0.025, 0.975])
    assert found.low == pytest.approx(low, rel=0.05)
    assert found.high == pytest.approx(high, rel=0.05)
    assert found.low <= percentile(values, 0.95) <= found.high


def test_repeats_of_a_case_are_drawn_together():
    values = np.random.default_rng(7).lognormal(5, 0.5, 40)
    once = percentile_interval([f"c{i}" for i in range(40)], values, 0.9)
    names = [f"c{i % 40}" for i in range(120)]
    thrice = percentile_interval(names, np.tile(values, 3), 0.9)
    assert (thrice.low, thrice.high) == (once.low, once.high)


def test_few_cases_have_no_interval_of_a_percentile():
    assert percentile_interval(["a"] * 50, np.arange(50.0), 0.95) is None
