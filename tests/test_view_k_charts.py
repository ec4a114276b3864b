"""Charts of a sweep over K: what they draw, what they say instead, hostile names, a live page."""

import json

import pytest
from browser import opened
from hostile import SCRIPT
from k_data import TOP_K, fickle_answers, measured, swept_run
from run_data import case, run, service

from ragwb.errors import UsageError
from ragwb.sweep import sweep_k
from ragwb.view import k_charts as charts
from ragwb.view.interactive import live_page, live_panel
from ragwb.view.k_slices import k_slices
from ragwb.view.panel import Panel
from ragwb.view.theme import chart_panel, svg


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    made = measured(tmp_path_factory.mktemp("runs"), [1, 3, TOP_K])
    return sweep_k(made.largest, measured=made.runs.values())


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    cases = [case(n, id=f"c{n}{SCRIPT}", tags={"kind": f"{n}{SCRIPT}"}) for n in (0, 1, 3)]
    return sweep_k(run(tmp_path_factory.mktemp("run"), service(6), cases, top_k=5))


def rows(chart):
    """Every row of data of a chart, wherever it stands in it."""

    def walk(part):
        if isinstance(part, dict):
            yield from part.get("data", {}).get("values", ())
            for value in part.values():
                yield from walk(value)
        elif isinstance(part, list):
            for value in part:
                yield from walk(value)

    spec = chart.to_dict()
    held = [row for values in spec.get("datasets", {}).values() for row in values]
    return [*walk(spec), *held]


def curve(sweep, **given):
    return charts.k_linked(sweep, **given).vconcat[0].hconcat[0]


def tokens(sweep):
    return charts.k_linked(sweep).vconcat[0].hconcat[1]


def latency(sweep):
    return charts.k_linked(sweep).vconcat[1].hconcat[0]


def marginal(sweep):
    return charts.k_linked(sweep).vconcat[1].hconcat[1]


def param(chart):
    (found,) = chart.to_dict()["params"]
    return found


def test_the_linked_view_holds_four_charts_and_a_slider_that_stands_at_the_recommended_k(swept):
    chart = charts.k_linked(swept)
    assert param(chart)["value"] == swept.recommend().k
    assert param(chart)["bind"] == {
        "input": "range",
        "min": 1,
        "max": TOP_K,
        "step": 1,
        "name": "K ",
    }
    assert [len(part["hconcat"]) for part in chart.to_dict()["vconcat"]] == [2, 2]
    assert chart.to_dict()["title"]["text"] == "recall at every K and what it costs, 6 cases"
    assert param(charts.k_linked(swept, k=2))["value"] == 2
    assert svg(chart.to_dict()).startswith("<svg")


def test_the_curve_holds_every_k_and_what_the_slider_means_by_it(swept):
    drawn = rows(curve(swept))
    recall = [row for row in drawn if row["metric"] == "recall"]
    assert [row["k"] for row in recall] == [1, 2, 3, 4, 5, 6]
    assert [row["until"] for row in recall][:-1] == [1, 2, 3, 4, 5]
    assert {row["metric"] for row in drawn} == {"recall", "hit_rate", "mrr", "ndcg"}
    hits = [row["words"] for row in drawn if row["metric"] == "hit_rate"]
    assert hits[2] == "4/6, 0.667"


def test_a_k_that_was_not_observed_is_not_drawn(tmp_path):
    found = sweep_k(swept_run(tmp_path), [6, 9])
    assert {row["k"] for row in rows(curve(found))} == {6}
    assert [row["k"] for row in rows(tokens(found))] == [6]


def test_a_slider_between_two_ks_stands_for_the_lower(tmp_path):
    found = sweep_k(swept_run(tmp_path), [1, 3, 6])
    drawn = [row for row in rows(curve(found)) if row["metric"] == "recall"]
    assert [(row["k"], row["until"] >= 5) for row in drawn] == [(1, False), (3, True), (6, True)]
    assert drawn[1]["until"] == 5


def test_the_front_is_marked_by_shape_and_line(swept):
    drawn = {row["k"]: row for row in rows(tokens(swept))}
    assert {k for k, row in drawn.items() if row["kind"] == "not beaten"} == set(swept.pareto())
    assert drawn[1]["price"] == "9 tokens a case"
    shapes = json.dumps(tokens(swept).to_dict())
    assert '"diamond"' in shapes
    assert '"step-after"' in shapes


def test_only_measured_ks_stand_in_the_plane_of_latency(swept):
    drawn = rows(latency(swept))
    assert [row["k"] for row in drawn] == [1, 3, TOP_K]
    assert all(row["price"].endswith(" ms") for row in drawn)


def test_a_cost_that_is_not_known_is_said_instead(swept):
    frame = swept.frame.assign(
        value=swept.frame["value"].where(swept.frame["metric"] != "p95_ms"),
    )
    bare = type(swept)(swept.run, swept.ks, swept.scores, frame, swept.steps)
    (row,) = rows(latency(bare))
    assert row["words"] == "recall against cost: latency was not measured at any K"
    assert svg(charts.k_linked(bare).to_dict()).startswith("<svg")


def test_steps_carry_their_cases_and_what_a_gained_one_costs(swept):
    drawn = {row["step"]: row for row in rows(marginal(swept)) if "step" in row}
    assert drawn["1→2"]["cases gained"] == "c1, c1b"
    assert drawn["4→5"]["cases lost"] == "forbids"
    assert (drawn["4→5"]["gained"], drawn["4→5"]["lost"]) == (0, 1)
    assert drawn["1→2"]["label"] == "27"
    assert drawn["4→5"]["label"] == ""


def test_many_names_are_counted(tmp_path):
    cases = [case(1, id=f"w{n}", question=f"w{n}") for n in range(20)]
    found = sweep_k(run(tmp_path, service(4), cases, top_k=3))
    drawn = {row["step"]: row for row in rows(marginal(found)) if "step" in row}
    assert drawn["1→2"]["cases gained"].endswith("w11 and 8 more")


def test_one_k_has_no_step(tmp_path):
    found = sweep_k(swept_run(tmp_path), [3])
    assert "there is no step" in json.dumps(marginal(found).to_dict())
    assert svg(charts.k_linked(found).to_dict()).startswith("<svg")


def test_of_many_steps_those_that_change_something_are_drawn(tmp_path):
    # The corpus gives out at 45: gains at 2 and 31 alone.
    cases = [case(1), case(30)]
    found = sweep_k(run(tmp_path, service(45), cases, top_k=45), range(1, 46))
    drawn = {row["step"] for row in rows(marginal(found)) if "step" in row}
    assert drawn == {"1→2", "30→31"}


def test_many_steps_in_which_nothing_changes_are_still_drawn(tmp_path):
    found = sweep_k(run(tmp_path, service(40), [case(0)], top_k=40), range(1, 41))
    drawn = {row["step"] for row in rows(marginal(found)) if "step" in row}
    assert drawn == {str(k) for k in range(2, 27)}


def test_large_prices_are_short():
    step = type("Step", (), {"tokens_per_gained": 15_217.0})
    assert charts._label(step) == "15k"
    step.tokens_per_gained = 7_638.0
    assert charts._label(step) == "7.6k"


def test_answers_have_a_curve_of_their_own(tmp_path):
    made = measured(tmp_path, [1, 2], fickle_answers(), answers=True, repeats=1)
    found = sweep_k(made.largest, measured=made.runs.values())
    drawn = rows(curve(found, metric="correct_rate"))
    assert [row["k"] for row in drawn if row["metric"] == "correct_rate"] == [1, 2]
    assert svg(charts.k_linked(found, metric="correct_rate").to_dict()).startswith("<svg")


def test_slices_are_small_multiples_the_lowest_first(swept):
    chart = k_slices(swept, "tags.kind")
    names = list(dict.fromkeys(row["slice"] for row in rows(chart)))
    assert names == ["(none) (n=2)", "a (n=2)", "b (n=2)"]
    assert k_slices(swept).to_dict()["title"]["text"].startswith("recall against K by tags.kind")
    with pytest.raises(UsageError, match="no slice"):
        k_slices(swept, "nosuch")
    assert svg(chart.to_dict()).startswith("<svg")


def test_hostile_names_stay_text(hostile):
    for chart in (charts.k_linked(hostile), k_slices(hostile, "tags.kind")):
        assert "<script" not in chart_panel(chart).html
    live = live_panel(charts.k_linked(hostile))
    before, _, data = live.html.rpartition("window.vegaEmbed(")
    assert SCRIPT not in data
    assert "\\u003cscript>" in data
    assert before.count("<script>") == 2


@pytest.mark.slow
@pytest.mark.browser
def test_the_live_page_moves_needs_no_network_and_runs_nothing_of_the_data(hostile, tmp_path):
    page_file = tmp_path / "live.html"
    parts = {"": Panel("t", "<p>first</p>"), "Charts": live_panel(charts.k_linked(hostile, k=4))}
    page_file.write_text(live_page(SCRIPT, parts), encoding="utf-8")
    with opened(page_file.as_uri(), width=1280) as page:
        page.wait_for_selector(".rw-live svg")
        marked = page.get_by_text("K = 4: ")
        assert marked.count() == 1
        slide = "e => { e.value = 2; e.dispatchEvent(new Event('input')); }"
        page.eval_on_selector(".rw-live input[type=range]", slide)
        page.get_by_text("K = 2: ").wait_for()
        assert marked.count() == 0
        assert page.asked == [page_file.as_uri()]
        assert page.evaluate("window.owned") is None
        assert page.title() == SCRIPT
        assert page.evaluate("document.documentElement.scrollWidth") <= 1280
