"""The chart of a judge: two marks a figure, the judge's and the people's."""

import pytest
from hostile import SCRIPT
from judge_data import labels, verdicts

from ragwb.judge.calibration import calibrate
from ragwb.view import charts, theme
from ragwb.view.judge_charts import JUDGE, PEOPLE


@pytest.fixture
def chart():
    people = labels([(i, who, at % 3) for at, i in enumerate("abcdef") for who in "xy"])
    said = verdicts({i: at % 2 for at, i in enumerate("abcdef")})
    return charts.judge_agreement([calibrate(people, said, "good", resamples=50)])


def test_the_judge_stands_beside_the_ceiling(chart):
    spec = chart.to_dict()
    (rows,) = spec["datasets"].values()
    assert {(row["figure"], row["between"]) for row in rows} >= {
        ("kappa", JUDGE),
        ("kappa", PEOPLE),
    }
    assert spec["title"] == "Agreement on 6 labelled items, 95 % intervals over items"
    assert {row["n_items"] for row in rows} == {6}


def test_a_figure_that_is_undefined_has_no_mark():
    people = labels([("a", "x", SCRIPT), ("b", "x", "no")])
    found = calibrate(people, verdicts({"a": SCRIPT, "b": "no"}), "good", resamples=50)
    (rows,) = charts.judge_agreement([found]).to_dict()["datasets"].values()
    assert {row["figure"] for row in rows} == {"raw_agreement", "kappa"}


@pytest.mark.slow
def test_it_draws(chart):
    drawn = theme.render(chart.to_dict())["text/html"]
    assert drawn.startswith("<svg")
    assert "people among themselves" in drawn
