"""Only a judge that is calibrated to the letter may block."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from judge_data import labels, rubric, verdicts
from run_data import settings

from ragwb.errors import DataError, UsageError
from ragwb.judge.calibration import calibrate
from ragwb.judge.standing import (
    CALIBRATIONS,
    JudgePolicy,
    Standing,
    accept,
    find_record,
    judge_standing,
    load_records,
    record_calibration,
)
from ragwb.judge.verdicts import Verdicts

NOW = datetime(2026, 11, 30, tzinfo=UTC)


def decided(one, n, wrong=0, *, model="judge"):
    """A calibration at the rubric's decision on n items, some of them judged wrongly."""
    human = {str(at): 3 if at % 2 else 1 for at in range(n)}
    said = {i: (4 - v if int(i) < wrong else v) for i, v in human.items()}
    judged = Verdicts(
        tuple(replace(v, rubric_hash=one.hash, model=model) for v in verdicts(said).verdicts)
    )
    people = labels([(i, "x", value) for i, value in human.items()])
    return calibrate(people, judged, "good", scale=one.criteria[0].scale, cut=2, resamples=50)


@pytest.fixture
def one(tmp_path):
    return rubric(tmp_path)


def test_a_record_is_found_for_exactly_its_model_and_rubric(one, tmp_path):
    here = settings(tmp_path)
    record = record_calibration([decided(one, 60)], one, here, now=NOW)
    assert record.decisions["good"].kappa == pytest.approx(1)
    assert record.decisions["good"].n_items == 60
    assert find_record("judge", one.hash, here) == record
    assert find_record("judge-2", one.hash, here) is None
    assert find_record("judge", rubric(tmp_path, rest="accept_from = 3").hash, here) is None


def test_a_later_record_replaces_an_earlier_one_of_the_same_judge(one, tmp_path):
    here = settings(tmp_path)
    record_calibration([decided(one, 60)], one, here, now=NOW)
    record_calibration([decided(one, 60, model="other")], one, here, now=NOW)
    last = record_calibration([decided(one, 60, wrong=6)], one, here, now=NOW)
    assert len(load_records(here.home / CALIBRATIONS)) == 2
    assert find_record("judge", one.hash, here) == last
    assert last.decisions["good"].kappa == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("n", "wrong", "may_block", "said"),
    [
        (60, 0, True, "decides: calibrated on 2026-11-30, kappa 1.000"),
        (60, 18, False, "advises: kappa 0.400 of good is below 0.6"),
        (48, 0, False, "advises: 48 labels of good, 50 are needed"),
    ],
)
def test_a_policy_asks_for_kappa_and_labels(one, tmp_path, n, wrong, may_block, said):
    record = record_calibration([decided(one, n, wrong)], one, settings(tmp_path), now=NOW)
    assert judge_standing(one, record) == Standing(may_block, said)


def test_without_a_record_a_judge_advises(one, tmp_path):
    assert judge_standing(one, None).why.endswith(
        "no calibration on record for this model and rubric"
    )
    other = rubric(tmp_path, rest="accept_from = 3")
    record = record_calibration([decided(one, 60)], one, settings(tmp_path), now=NOW)
    assert not judge_standing(other, record).may_block


def test_a_rubric_that_decides_nothing_only_advises(tmp_path):
    assert "accepts and rejects nothing" in judge_standing(rubric(tmp_path, rest=""), None).why


def test_an_undefined_kappa_is_none_that_suffices(one, tmp_path):
    record = record_calibration([decided(one, 60)], one, settings(tmp_path), now=NOW)
    blank = replace(record, decisions={"good": replace(record.decisions["good"], kappa=None)})
    assert "undefined" in judge_standing(one, blank).why
    assert not judge_standing(one, replace(record, decisions={})).may_block


MAY, ADVISES = Standing(True, "decides"), Standing(False, "advises: no labels")


@pytest.mark.parametrize(
    ("rules", "score", "standing", "accepted"),
    [
        (True, 3, MAY, True),
        (True, 1, MAY, False),
        (True, None, MAY, None),
        (False, 3, MAY, False),
        (False, None, MAY, False),
        (True, 1, ADVISES, True),
        (True, None, ADVISES, True),
        (False, 3, ADVISES, False),
    ],
)
def test_accepted_is_rules_and_judge(one, rules, score, standing, accepted):
    scores = None if score is None else {"good": score}
    found = accept(rules, scores, one, standing)
    assert found.accepted is accepted
    assert found.judged is (None if score is None else score >= 2)
    if rules and not standing.may_block:
        assert found.why == "hard rules pass; the judge advises: no labels"


def test_what_cannot_be_put_on_record_is_refused(one, tmp_path):
    here = settings(tmp_path)
    with pytest.raises(UsageError, match="which model"):
        record_calibration([decided(one, 60, model=None)], one, here)
    with pytest.raises(UsageError, match="another rubric"):
        record_calibration([decided(one, 60)], rubric(tmp_path, rest="accept_from = 3"), here)
    with pytest.raises(UsageError, match="no label"):
        record_calibration([], one, here)
    uncut = replace(decided(one, 60), cut=None)
    with pytest.raises(UsageError, match="good decides"):
        record_calibration([uncut], one, here)


@pytest.mark.parametrize("value", [4, 0, 2.5])
def test_scores_off_the_rubrics_scale_are_not_put_on_record(one, tmp_path, value):
    human = {str(at): 3 if at % 2 else 1 for at in range(60)}
    rows = verdicts({**human, "3": value}).verdicts
    judged = Verdicts(tuple(replace(row, rubric_hash=one.hash) for row in rows))
    people = labels([(i, "x", value) for i, value in human.items()])
    scale = one.criteria[0].scale
    found = calibrate(people, judged, "good", scale=scale, cut=2, resamples=0)
    assert found.n_off_scale == 1
    assert "1 verdicts with a score that is not on the scale" in repr(found)
    with pytest.raises(UsageError, match=r"1 verdicts score good .* not on the scale of test 1"):
        record_calibration([found], one, settings(tmp_path))
    assert load_records(settings(tmp_path).home / CALIBRATIONS) == []


def test_repeats_that_differ_are_on_the_scale(one, tmp_path):
    """Their mean, 1.5 of 1 and 2, is not; what the judge said is."""
    human = {str(at): 3 if at % 2 else 1 for at in range(60)}
    rows = verdicts(human).verdicts
    rows += tuple(replace(row, repeat=2, scores={"good": 2}) for row in rows)
    judged = Verdicts(tuple(replace(row, rubric_hash=one.hash) for row in rows))
    people = labels([(i, "x", value) for i, value in human.items()])
    found = calibrate(people, judged, "good", scale=one.criteria[0].scale, cut=2, resamples=0)
    assert record_calibration([found], one, settings(tmp_path)).decisions["good"].n_items == 60


def test_a_broken_file_of_records_is_named(one, tmp_path):
    here = settings(tmp_path)
    here.home.mkdir()
    (here.home / CALIBRATIONS).write_text('[{"model": 3}]', encoding="utf-8")
    with pytest.raises(DataError, match=rf"{CALIBRATIONS}: not a file of calibrations"):
        find_record("judge", one.hash, here)


@pytest.mark.parametrize("kappa", ["NaN", "Infinity"])
def test_a_kappa_on_record_that_is_no_number_lets_no_judge_decide(one, tmp_path, kappa):
    here = settings(tmp_path)
    record_calibration([decided(one, 60, wrong=18)], one, here, now=NOW)
    path = here.home / CALIBRATIONS
    told = json.loads(path.read_text(encoding="utf-8"))
    told[0]["decisions"]["good"]["kappa"] = float(kappa)
    path.write_text(json.dumps(told), encoding="utf-8")
    with pytest.raises(DataError, match=r"not a file of calibrations: .*good\.kappa"):
        find_record("judge", one.hash, here)


@pytest.mark.parametrize("given", [{"min_kappa": 2}, {"min_labels": 0}])
def test_a_policy_out_of_range_is_refused(given):
    with pytest.raises(UsageError, match="min_"):
        JudgePolicy(**given)
