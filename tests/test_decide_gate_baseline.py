"""A file of figures as a baseline: what it can hold, what it cannot, and impossible figures."""

import json

import pytest
from gate_data import LENIENT, policy_file, rule
from run_data import case, run, service

from ragwb.decide.gate.baseline import load_stored
from ragwb.decide.gate.gate import gate
from ragwb.decide.gate.policy_rules import Figure
from ragwb.errors import DataError
from ragwb.report.evaluation import evaluate

POLICY = (
    LENIENT
    + """
[regression]
max_broken = 0
[[regression.drops]]
metric = "recall@5"
max_drop = 0.1
[[regression.drops]]
metric = "recall@5"
max_drop = 0.1
slice = "risk=high"
[budget]
max_p95_increase_ms = 10000
"""
)
CASES = [case(1, risk="high"), case(2), case(3), case(4, mode="refuse", expected_chunk_ids=[])]


def write(folder, value, name="baseline.json"):
    path = folder / name
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


@pytest.fixture
def report(tmp_path):
    """The report of a run in which c3 failed, as JSON."""
    found = evaluate(run(tmp_path, service(results={"q3": ["doc-0"]}), CASES))
    return write(tmp_path, found.to_dict())


def test_the_report_of_an_eval_tells_which_cases_passed(tmp_path, report):
    worse = run(tmp_path, service(results={"q1": [], "q3": ["doc-3"]}), CASES)
    found = gate(worse, policy_file(tmp_path, POLICY), baseline=report)
    assert found.baseline == str(report)
    assert rule(found, "max_broken").case_ids == ("c1",)
    assert rule(found, "max_broken_high_risk").case_ids == ("c1",)
    assert found.verdict == "fail"
    assert rule(found, "max_p95_increase_ms").status == "pass"
    assert any("is a file of figures" in note for note in found.notes)


def test_means_are_held_and_slices_are_not_known(tmp_path, report):
    same = run(tmp_path, service(results={"q3": ["doc-0"]}), CASES)
    found = gate(same, policy_file(tmp_path, POLICY), baseline=report)
    whole, part = (one for one in found.rules if one.rule == "max_drop recall@5")
    assert (whole.status, whole.value, whole.n) == ("pass", 0.0, 3)
    assert part.status == "undecided"
    assert "without slices" in part.words


def test_another_set_or_k_tells_nothing_of_single_cases(tmp_path, report):
    other = run(tmp_path, service(), CASES[:2])
    found = gate(other, policy_file(tmp_path, POLICY), baseline=report)
    assert rule(found, "max_broken").status == "undecided"
    shorter = policy_file(tmp_path, LENIENT + "[regression]\n", head='policy = "p"\nk = 3\n')
    found = gate(run(tmp_path, service(), CASES), shorter, baseline=report)
    assert rule(found, "max_broken_high_risk").status == "undecided"


def test_names_and_numbers_of_another_tool_are_read(tmp_path):
    said = {"case_count": 10, "recall_at_5": 0.9, "mrr": 0.75, "note": "x", "is_ci": True}
    stored = load_stored(write(tmp_path, said))
    assert stored.value(Figure("recall", 5)) == 0.9
    assert stored.value(Figure("recall", 3)) is None
    assert set(stored.metrics) == {"case_count", "recall_at_5", "mrr"}


def test_a_figure_that_is_not_in_the_file_is_undecided(tmp_path):
    opened = run(tmp_path, service(), CASES)
    found = gate(opened, policy_file(tmp_path, POLICY), baseline=write(tmp_path, {"mrr": 0.5}))
    words = [one.words for one in found.undecided]
    assert any("baseline.json does not hold it" in one for one in words)


def test_impossible_figures_are_an_error_that_says_why(tmp_path):
    path = write(tmp_path, {"hit_rate_at_5": 0.875, "ndcg_at_5": 0.0})
    opened = run(tmp_path, service(), CASES)
    with pytest.raises(DataError, match=r"baseline\.json: .*hit_rate_at_5 0\.875 .*ndcg_at_5"):
        gate(opened, policy_file(tmp_path, POLICY), baseline=path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not JSON"),
        ("[1]", "must be a JSON object"),
        ('{"metrics": [1]}', "must be figures by name"),
        ('{"metrics": {"recall@5": null}}', "holds no figure"),
        ('{"recall@5": NaN}', "recall@5 is n"),
        ("[" * 100_000, "not JSON"),
        ('{"recall@5": 0.1, "recall@5": 0.9}', "given twice"),
    ],
)
def test_a_wrong_file_is_one_line(tmp_path, content, message):
    with pytest.raises(DataError, match=message) as caught:
        load_stored(write(tmp_path, content))
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_one_line(tmp_path):
    with pytest.raises(DataError, match=r"no\.json: cannot be read"):
        load_stored(tmp_path / "no.json")


def test_cases_that_cannot_be_compared_are_not_known_of_figures(tmp_path, report):
    text = LENIENT + "[regression]\nmax_left_out = 0\n"
    found = gate(run(tmp_path, service(), CASES), policy_file(tmp_path, text), baseline=report)
    assert "a file of figures" in rule(found, "max_left_out").words
    assert found.verdict == "undecided"
