"""Charts of a comparison: what they draw, what they leave out and say so, and hostile names."""

import pytest
from answer_run_data import CASES as ASKED
from answer_run_data import answer_run, answer_service
from compared_data import AFTER, BEFORE, CASES, compared, staged_run
from hostile import SCRIPT
from loopback import json_reply
from run_data import run

from ragwb.decide.compare import compare, compare_outcomes
from ragwb.decide.outcomes import outcomes_from
from ragwb.errors import UsageError
from ragwb.view import compare_charts as charts
from ragwb.view.compare_reading import is_rate, reading, signed
from ragwb.view.theme import chart_panel


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
    return compared(tmp_path_factory.mktemp("runs"))


def row(delta, low, high, *, direction="higher", metric="recall@5", values=(0.5, 0.6)):
    return {
        **dict(zip(("baseline", "candidate"), values, strict=True)),
        "metric": metric,
        "delta": delta,
        "low": low,
        "high": high,
        "direction": direction,
    }


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (row(0.1, 0.02, 0.18), "better"),
        (row(-0.1, -0.18, -0.02), "worse"),
        (row(0.1, 0.02, 0.18, direction="lower", metric="hard_failure_rate"), "worse"),
        (row(0.1, 0.02, 0.18) | {"p": 0.03}, "better"),
        (row(0.1, 0.02, 0.18) | {"p": 0.06}, "within chance"),
        (row(0.1, 0.02, 0.18) | {"p": 0.03, "p_adjusted": 0.09}, "within chance"),
        (row(-1.0, -1.0, -1.0), "not tested"),
        (row(-1.0, -1.0, -1.0) | {"p": 0.25}, "within chance"),
        (row(-1.0, -1.0, -1.0) | {"p": 0.002}, "worse"),
        (row(0.1, 0.0, 0.2), "within chance"),
        (row(0.1, 1e-17, 0.2), "within chance"),
        (row(-0.1, -0.2, 1e-17), "within chance"),
        (row(0.1, None, None), "not tested"),
        (row(0.0, 0.0, 0.0), "unchanged"),
        (row(0.0, None, None), "unchanged"),
        (row(0.0, None, None) | {"win": 2, "loss": 1}, "not tested"),
        (row(1.0, None, None) | {"p": 1.0}, "within chance"),
        (row(0.0, -0.1, 0.1), "within chance"),
        (row(None, None, None), "not observed"),
        (
            row(90.0, 20.0, 160.0, metric="p95_ms", direction="lower", values=(1.0, 91.0)),
            "higher here",
        ),
        (row(-9.0, -16.0, -2.0, metric="p50_ms", direction="lower"), "lower here"),
        (row(70.0, None, None, metric="p99_ms", direction="lower"), "not tested"),
        (row(None, None, None, metric="p95_ms"), "not comparable"),
        (row(None, None, None, metric="p95_ms", values=(None, 3.0)), "not observed"),
        (row(None, None, None, metric="refusal_precision", values=(0.5, None)), "undefined"),
        (row(-9.0, -16.0, -2.0, metric="context_tokens", direction="lower"), "less"),
    ],
)
def test_what_an_interval_says(given, said):
    assert reading(given) == said


def test_a_rate_lies_between_0_and_1_and_is_no_cost():
    assert is_rate(row(0, 0, 0))
    assert not is_rate(row(0, 0, 0, values=(0.5, 1.5)))
    assert not is_rate(row(0, 0, 0, values=(None, 0.5)))
    assert not is_rate(row(0, 0, 0, metric="p95_ms"))
    assert not is_rate(row(0, 0, 0, metric="model_calls"))


@pytest.mark.parametrize(
    ("value", "said"), [(0.1234, "+0.123"), (-0.5, "-0.500"), (1e-17, "0"), (0.0001, "+0.0001")]
)
def test_a_difference_carries_its_sign(value, said):
    assert signed(value) == said


def drawn(chart):
    """The rows of the right-hand chart."""
    return chart.to_dict()["hconcat"][1]["layer"][1]["data"]["values"]


def test_figures_that_moved_are_drawn_with_counts_and_the_others_counted(comparison):
    chart = charts.compare_figures(comparison)
    rows = drawn(chart)
    assert [one["name"] for one in rows][:2] == ["recall@3", "hit_rate@3"]
    assert rows[0]["words"] == "-0.333 (1 better, 3 worse)"
    title = chart.to_dict()["title"]
    assert title["text"] == f"{len(rows)} of {len(rows) + 1} figures moved, 6 cases in both runs"
    assert "1 that moved in no case is not drawn" in title["subtitle"]
    assert "<svg" in chart_panel(chart).html


def test_both_runs_keep_their_colour_and_shape(comparison):
    dots = charts.compare_figures(comparison).to_dict()["hconcat"][0]["layer"][1]
    assert {one["run"] for one in dots["data"]["values"]} == {"baseline", "candidate"}
    scale = dots["encoding"]["color"]["scale"]
    assert dict(zip(scale["domain"], scale["range"], strict=True)) == charts.RUN_COLOURS
    assert dots["encoding"]["shape"]["scale"]["range"] == ["circle", "diamond"]


def test_slices_come_with_their_n_the_greatest_loss_first(comparison):
    rows = drawn(charts.compare_slices(comparison, "tags.kind"))
    assert [one["name"] for one in rows] == ["b (n=3)", "(none) (n=1)", "a (n=2)"]
    assert [one["delta"] for one in rows] == [-1.0, 0.0, 0.5]
    by_default = charts.compare_slices(comparison).to_dict()["title"]["text"]
    assert by_default == "recall@3 by tags.kind, 6 cases in both runs"


def test_an_unknown_figure_or_field_names_those_that_are_there(comparison):
    with pytest.raises(UsageError, match=r"no figure 'recal'; there are: recall@3, "):
        charts.compare_slices(comparison, "risk", metric="recal")
    with pytest.raises(UsageError, match=r"no figure 'recal'; there are: recall@3, "):
        charts.quality_against_cost(comparison, quality="recal")
    with pytest.raises(UsageError, match=r"tags\.kind"):
        charts.compare_slices(comparison, "tags.nothing")


def test_quality_stands_against_each_cost_that_both_runs_know(comparison):
    spec = charts.quality_against_cost(comparison).to_dict()
    (plane,) = spec["hconcat"]
    points = plane["layer"][2]["data"]["values"]
    assert [one["quality"] for one in points] == pytest.approx([4 / 6, 2 / 6])
    (box,) = plane["layer"][0]["data"]["values"]
    assert box["quality_low"] <= points[1]["quality"] <= box["quality_high"]
    assert plane["layer"][1]["encoding"]["x"]["title"] == "p95 latency, ms"


def imported(name, values):
    frame = [{"case_id": f"c{n}", "recall@5": value} for n, value in enumerate(values)]
    return outcomes_from(frame, name=name, k=5, metrics=["recall@5"])


def test_where_nothing_pairs_every_chart_says_why(tmp_path):
    answers = answer_run(tmp_path)
    failed = answer_run(tmp_path, answer_service(retrieve=lambda _: json_reply({}, 500)))
    found = compare(answers, failed)
    for draw in (charts.compare_figures, charts.compare_slices, charts.quality_against_cost):
        assert "nothing pairs: 8 errors in the candidate" in chart_panel(draw(found)).text


def test_latencies_of_other_work_are_not_drawn(tmp_path):
    answers = answer_run(tmp_path)
    only = run(tmp_path, answer_service(), ASKED)
    planes = charts.quality_against_cost(compare(answers, only)).to_dict()["hconcat"]
    titles = [plane["layer"][0]["encoding"]["x"]["title"] for plane in planes]
    assert titles == ["context tokens a case"]


def test_without_costs_it_says_so_and_draws_no_plane():
    found = compare_outcomes(imported("a", [0.0, 1.0, 0.5]), imported("b", [1.0, 1.0, 0.5]))
    chart = charts.quality_against_cost(found)
    assert "neither latency nor tokens were observed" in chart_panel(chart).text
    assert charts.lead_figure(found) == "recall@5"


def test_the_same_run_twice_draws_no_row(tmp_path):
    run = staged_run(tmp_path, BEFORE)
    chart = charts.compare_figures(compare(run, run))
    assert drawn(chart) == []
    assert "<svg" in chart_panel(chart).html


def test_names_from_data_stay_text(tmp_path):
    cases = [{**one, "tags": {"kind": f"{SCRIPT}\n{one['id']}"}} for one in CASES]
    sides = [staged_run(tmp_path / n, s, cases) for n, s in (("a", BEFORE), ("b", AFTER))]
    panel = chart_panel(charts.compare_slices(compare(*sides), "tags.kind"))
    assert "<script" not in panel.html
    assert "&lt;script" in panel.html
