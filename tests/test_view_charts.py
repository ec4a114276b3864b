"""Charts: what they encode, what their titles say, and that they draw without a network."""

import pandas as pd
import pytest
from hostile import SCRIPT
from run_data import case, run, service

from ragwb.runs.scoring import score
from ragwb.view import charts, theme


@pytest.fixture
def scores(tmp_path):
    cases = [
        case(1, tags={"domain": "退款"}),
        case(2, tags={"domain": SCRIPT}),
        case(3, tags={"domain": "退款"}, risk="high"),
    ]
    return score(run(tmp_path, service(results={"q2": ["doc-7"]}), cases), k=[1, 3, 5])


def test_score_by_k_draws_every_metric_at_every_k(scores):
    chart = charts.score_by_k(scores)
    spec = chart.to_dict()
    assert spec["title"]["text"] == "Score against K, 3 cases"
    (rows,) = spec["datasets"].values()
    assert {(row["metric"], row["k"]) for row in rows} == {
        (metric, k) for metric in charts.CURVE_METRICS for k in (1, 3, 5)
    }
    assert [layer["mark"]["type"] for layer in spec["layer"]] == ["area", "line", "point"]


def test_score_by_slice_says_n_and_puts_the_lowest_first(scores):
    spec = charts.score_by_slice(scores, metric="recall@5").to_dict()
    rows = spec["data"]["values"]
    first = min((row for row in rows if row["group"] == "tags.domain"), key=lambda r: r["order"])
    assert first["name"] == f"{SCRIPT} (n=1)"
    assert first["value"] == 0
    assert spec["title"] == "recall@5 by slice, 3 cases"


def test_cases_without_a_tag_are_a_slice_of_their_own(tmp_path):
    cases = [case(1, tags={"domain": "退款"}), case(2)]
    rows = charts._slice_rows(score(run(tmp_path, service(), cases)), "recall@5")
    assert "(none) (n=1)" in [row["name"] for row in rows if row["group"] == "tags.domain"]


def test_latency_by_stage_puts_the_slowest_first_and_says_its_percentiles():
    frame = pd.DataFrame({"stage": ["vector", "end to end"] * 2, "ms": [1.0, 20.0, 0.0, 30.0]})
    spec = charts.latency_by_stage(frame).to_dict()
    ticks, dots, _ = spec["layer"]
    assert ticks["encoding"]["y"]["sort"] == ["end to end", "vector"]
    assert len(ticks["data"]["values"]) == 4
    words = {row["stage"]: row["words"] for row in dots["data"]["values"]}
    assert words["end to end"] == "p50 20 · p95 30 ms"
    assert spec["title"] == "Latency by stage, 2 calls"


@pytest.mark.slow
def test_drawing_escapes_text_and_takes_the_colour_of_the_page(scores):
    drawn = theme.render(charts.score_by_slice(scores, metric="recall@5").to_dict())["text/html"]
    assert drawn.startswith("<svg")
    assert "<script" not in drawn
    assert "currentColor" in drawn
    assert theme._INK not in drawn


def test_setup_brings_the_style_sheet_and_shows_nothing():
    panel = theme.setup()
    assert panel.text == ""
    assert panel.html.startswith("<style>")
