from __future__ import annotations

import pandas as pd

from ragwb.measure.cost import cost_metrics, cost_table, latencies, latency_table, percentile

RESULTS = pd.DataFrame(
    {
        "status": ["ok", "ok", "error", "ok"],
        "latency_ms": [100.0, 300.0, 9000.0, 200.0],
        "waited_ms": [0.0, 0.0, 500.0, 40.0],
        "timings_ms": [[("vector", 10.0), ("total", 90.0)], {"total": 250.0}, None, None],
        "context_tokens": [1000, 2000, None, None],
        "model_calls": [None, None, None, None],
    }
)


def test_percentiles_are_values_that_were_observed() -> None:
    values = [100.0] * 18 + [900.0, 2000.0]
    assert percentile(values, 0.95) == 900.0  # numpy's default says 955
    assert percentile(values, 0.99) == 2000.0
    assert percentile([5.0, None, float("nan")], 0.5) == 5.0
    assert percentile([], 0.95) is None


def test_latency_by_stage_counts_answered_results_and_keeps_waits_apart() -> None:
    table = latency_table(RESULTS).set_index(["source", "stage"])
    assert table.loc[("client", "end_to_end")].tolist() == [3.0, 200.0, 300.0, 300.0]
    assert table.loc[("client", "waited"), "p95_ms"] == 40.0
    assert table.loc[("service", "vector")].tolist() == [1.0, 10.0, 10.0, 10.0]
    assert table.loc[("service", "total"), "n"] == 2


def test_costs_give_mean_and_p95_of_what_was_observed() -> None:
    table = cost_table(RESULTS).set_index("measure")
    assert table.loc["context_tokens"].tolist() == [2.0, 1500.0, 2000.0]
    assert table.loc["model_calls", "n"] == 0
    assert table.loc["model_calls", ["mean", "p95"]].isna().all()
    assert table.loc["candidates", "mean"] != 0


def test_figures_for_a_report_are_none_when_unobserved() -> None:
    figures = cost_metrics(RESULTS)
    assert (figures["p50_ms"], figures["p95_ms"]) == (200.0, 300.0)
    assert figures["context_tokens"] == 1500.0
    assert figures["model_calls"] is None
    assert figures["candidates"] is None


def test_a_run_without_answers_has_no_figures() -> None:
    nothing = RESULTS[RESULTS["status"] == "error"]
    assert set(cost_metrics(nothing).values()) == {None}
    assert latency_table(nothing)["p95_ms"].isna().all()


def test_every_call_and_stage_that_was_observed_is_a_row() -> None:
    rows = latencies(RESULTS)
    assert list(zip(rows["stage"], rows["ms"], strict=True)) == [
        ("end to end", 100.0),
        ("end to end", 300.0),
        ("end to end", 200.0),
        ("vector", 10.0),
    ]
    assert latencies(RESULTS[RESULTS["status"] == "error"]).empty
