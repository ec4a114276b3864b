"""Charts of a period: what they encode, what is marked, and that names from data stay text."""

import json

import pytest
from hostile import SCRIPT
from weekly_data import BASE, Week, case_id, settings, store, write_week

from ragwb.decide.weekly.drift import UnstableCase
from ragwb.decide.weekly.period import period
from ragwb.view import trend_charts as charts
from ragwb.view.theme import TRIAGE_COLOURS, svg

DAYS = {"since": "2026-01-01", "until": "2026-12-31"}
SMALLER = {"chunking": {**BASE["chunking"], "size": 200}}


@pytest.fixture(scope="module")
def series(tmp_path_factory):
    folder = tmp_path_factory.mktemp("charts")
    weeks = [
        Week(strength=1.0),
        Week(strength=1.0, lost=frozenset({1, 2})),
        Week(strength=1.0, lost=frozenset({1}), manifest=SMALLER, slower=2.0),
    ]
    store(folder, weeks, n_cases=24)
    return period(settings(folder), **DAYS).series[0]


def values(layer):
    return layer["data"]["values"]


def test_a_trend_has_a_point_a_run_with_its_interval(series):
    spec = charts.trend(series).to_dict()
    band, line, *_ = spec["layer"]
    rows = values(line) if "data" in line else values(spec)
    assert [row["value"] for row in rows] == [1.0, pytest.approx(22 / 24), pytest.approx(23 / 24)]
    assert all(row["low"] <= row["value"] <= row["high"] for row in rows)
    assert spec["title"]["text"] == "recall@5, 3 runs, 24 cases in the last"
    assert band["mark"]["type"] == "area"


def test_changes_are_marked_by_their_number_before_the_run(series):
    spec = charts.trend(series).to_dict()
    rules, words = spec["layer"][-2:]
    assert rules["mark"]["type"] == "rule"
    assert rules["encoding"]["x"]["bandPosition"] == 0
    assert values(words) == [{"i": 2, "number": "1"}]
    assert ">1</text>" in svg(spec)


def test_sets_are_lines_of_their_own(series):
    spec = charts.trend_by_set(series).to_dict()
    names = {row["name"] for layer in spec["layer"][:1] for row in values(layer)}
    n_of = {row["set"]: row["n"] for row in series.latest.sets}
    assert names == {f"{name} (n={n})" for name, n in n_of.items()}


def test_figures_that_never_move_are_told_apart(series):
    moved, still = charts.moving_figures(series)
    assert "model_calls" in still
    assert "recall@5" in moved
    assert "p95_ms" in moved
    assert "p50_ms" not in moved
    spec = charts.figure_trends(series, moved).to_dict()
    assert len(spec["concat"]) == len(moved)


def test_stages_are_stacked_in_their_colours(series):
    spec = charts.stages_over_time(series).to_dict()
    rows = values(spec["layer"][0])
    assert {(row["i"], row["stage"], row["n"]) for row in rows} == {
        (1, "rerank", 1),
        (1, "fusion", 1),
        (2, "rerank", 1),
    }
    scale = spec["layer"][0]["encoding"]["color"]["scale"]
    assert dict(zip(scale["domain"], scale["range"], strict=True)) == {
        name: TRIAGE_COLOURS[name] for name in scale["domain"]
    }


def test_runs_of_one_day_are_told_apart_by_their_time(tmp_path):
    write_week(tmp_path, 0, Week())
    later = {"run_id": "later", "created_at": "2026-01-05T10:15:00+00:00"}
    write_week(tmp_path, 0, Week(manifest=later))
    write_week(tmp_path, 1, Week())
    (found,) = period(settings(tmp_path), **DAYS).series
    assert charts.run_labels(found) == ["01-05 08:30", "01-05 10:15", "01-12"]


def test_every_chart_of_a_single_run_is_drawn(tmp_path):
    store(tmp_path, [Week(strength=0.5)])
    (found,) = period(settings(tmp_path), **DAYS).series
    moved, still = charts.moving_figures(found)
    assert not still
    for chart in (
        charts.trend(found),
        charts.trend_by_set(found),
        charts.figure_trends(found, moved),
        charts.stages_over_time(found),
    ):
        assert svg(chart.to_dict()).startswith("<svg")


def test_the_history_of_cases_is_a_box_a_run(series):
    states = ("pass", "fail", "absent")
    cases = [UnstableCase(name, "high", states, 1, 1, False) for name in ("退款", SCRIPT)]
    spec = charts.case_history(series, cases).to_dict()
    rows = values(spec["layer"][0])
    # Nothing is drawn where nothing is known.
    assert [(row["i"], row["state"]) for row in rows] == [(0, "pass"), (1, "fail")] * 2
    drawn = svg(spec)
    assert "退款" in drawn
    assert "<script" not in drawn
    assert "\u2063" not in drawn


def test_ids_that_are_cut_to_the_same_text_keep_rows_of_their_own(series):
    long = "很长的名字" * 20
    cases = [UnstableCase(long + end, "normal", ("fail",), 1, 1, False) for end in "ab"]
    spec = charts.case_history(series, cases).to_dict()
    assert len({row["name"] for row in values(spec["layer"][0])}) == 2


def test_labels_are_json_and_nothing_else(series):
    spec = charts.trend(series).to_dict()
    text = json.dumps(spec)
    assert case_id(1) not in text
    expression = spec["layer"][1]["encoding"]["x"]["axis"]["labelExpr"]
    assert expression == '["01-05", "01-12", "01-19"][datum.value]'
