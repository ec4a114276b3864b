"""Opening cases of a comparison: which repeat stands for a side, and what cannot be opened."""

import pytest
from compared_data import BEFORE, CASES, FOUND, LOST, K, compared, compared_answers, staged_run
from run_data import case, run
from view_data import staged_service

from ragwb.decide.compare import compare, compare_outcomes
from ragwb.decide.outcomes import outcomes_from
from ragwb.errors import DataError, UsageError
from ragwb.report.compare_cases import case_marks, open_cases


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
    return compared(tmp_path_factory.mktemp("runs"))


def test_cases_come_in_the_order_asked_for(comparison):
    found = open_cases(comparison, ["c5", "c1"])
    assert [one.case_id for one in found] == ["c5", "c1"]
    assert [one.change for one in found] == ["still_failing", "fixed"]
    assert found[1].figures == {"recall@3": ("0", "1"), "mrr@3": ("0", "1")}
    assert open_cases(comparison, []) == []


def test_each_side_carries_its_run_and_its_verdict(comparison):
    (broken,) = open_cases(comparison, ["c3"])
    assert broken.baseline.name == comparison.baseline.name
    assert broken.baseline.view.verdict is None
    assert broken.candidate.view.verdict.reason == "NOT_IN_CANDIDATES"
    assert broken.candidate.view.k == comparison.k


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"risk": "high", "permission": True, "weight": 2.0}, 3),
        ({"risk": "normal", "permission": False, "weight": 1.0}, 0),
        ({"risk": "normal", "permission": None, "weight": None}, 0),
    ],
)
def test_marks_say_why_a_case_weighs_more(row, said):
    marks = case_marks(row)
    assert marks == ("high risk", "permission", "high value")[:said]


def test_a_case_that_is_in_no_pair_says_why(comparison):
    with pytest.raises(UsageError, match="case c7 is not compared: excluded: no evidence groups"):
        open_cases(comparison, ["c7"])
    with pytest.raises(UsageError, match="no case 'c99'; 6 are compared, such as c1, c2, c3"):
        open_cases(comparison, ["c1", "c99"])


def test_figures_that_are_no_run_open_no_case():
    frame = [{"case_id": "c1", "recall@5": 1.0}]
    side = outcomes_from(frame, name="elsewhere", k=5, metrics=["recall@5"])
    with pytest.raises(UsageError, match="elsewhere holds figures only"):
        open_cases(compare_outcomes(side, side), ["c1"])


@pytest.fixture
def unstable(tmp_path):
    """The case fails in 1 of 3 repeats before, and in 2 of 3 after."""
    runs = []
    for name, replies in (("a", [LOST, FOUND, FOUND]), ("b", [FOUND, LOST, LOST])):
        fakes = iter([staged_service({"one": stages}) for stages in replies])
        fake = staged_service({"one": FOUND})

        def reply(data, fakes=fakes):
            return next(fakes).retrieve(data)

        fake.retrieve = reply
        (tmp_path / name).mkdir()
        given = case(1, question="one")
        made = run(tmp_path / name, fake, [given], top_k=K, repeats=3, concurrency=1)
        runs.append(made)
    return compare(*runs)


def test_the_repeat_that_stands_for_a_side_is_shown(unstable):
    assert unstable.broken == unstable.unstable == ("c1",)
    (found,) = open_cases(unstable, ["c1"])
    assert found.unstable
    assert found.baseline.repeats == "1 of 3 repeats failed"
    assert found.baseline.view.trace.repeat == 2
    assert found.candidate.repeats == "2 of 3 repeats failed"
    assert found.candidate.view.trace.repeat == 2
    assert found.candidate.view.verdict is not None


def test_answers_are_opened_with_what_was_found_in_them(tmp_path):
    found = compared_answers(tmp_path)
    (fixed,) = open_cases(found, ["c5"])
    assert fixed.change == "fixed"
    assert fixed.baseline.outcome.figures["claim_coverage"] == 0.5
    assert fixed.candidate.outcome.figures["claim_coverage"] == 1
    assert fixed.figures["correct_rate"] == ("0", "1")


def test_rules_of_their_own_are_read_from_a_file(tmp_path):
    found = compared_answers(tmp_path)
    broken = tmp_path / "rules.toml"
    broken.write_text("no = [", encoding="utf-8")
    with pytest.raises(DataError, match=r"rules\.toml"):
        open_cases(found, ["c1"], rules=broken)


def test_a_run_against_itself_opens_both_sides_alike(tmp_path):
    made = staged_run(tmp_path, BEFORE, CASES)
    (found,) = open_cases(compare(made, made), ["c1"])
    assert found.change == "still_failing"
    assert found.baseline.view.ranks == found.candidate.view.ranks
