"""A judge in a gate blocks with the calibration that the policy asks for, and advises else."""

import json

import pytest
from answer_run_data import answer_run
from gate_data import LENIENT, policy_file, rule
from judge_data import rubric_file, write_lines

from ragwb.errors import UsageError
from ragwb.judge.rubric import load_rubric
from ragwb.report.gating import gate
from ragwb.settings import Settings

MODEL = "judge-1"
VALUES = {"c1": 1, "c3": 3, "c5": 3, "c7": 3, "c8": None}
ACCEPTED = LENIENT.replace('"]', '", "unknown_citation"]') + (
    '[[floors]]\nmetric = "accepted"\nmin = 0.9\n'
)


@pytest.fixture
def judged(tmp_path):
    """Gate a run of answers with verdicts by a judge of this kappa, on record or not."""
    opened = answer_run(tmp_path)
    file = rubric_file(tmp_path)
    rubric = load_rubric(file)
    settings = Settings(root=tmp_path, home=tmp_path / "home")
    head = {"model": MODEL, "rubric": rubric.label, "rubric_hash": rubric.hash}
    rows = [
        {
            "item_id": item_id,
            "scores": None if value is None else {"good": value},
            "unscored": "malformed" if value is None else None,
            **head,
        }
        for item_id, value in VALUES.items()
    ]
    verdicts = write_lines(tmp_path / "verdicts.jsonl", rows)

    def hold(policy, *, kappa=None):
        if kappa is not None:
            decision = {"kappa": kappa, "low": None, "high": None, "ceiling": None}
            decision |= {"n_items": 80, "n_labels": 80, "n_unscored": 0}
            record = {**head, "decisions": {"good": decision}}
            record["recorded_at"] = "2026-11-30T08:00:00+00:00"
            (settings.home / "calibrations.json").write_text(json.dumps([record]), "utf-8")
        return gate(
            opened,
            policy_file(tmp_path, policy),
            verdicts=[verdicts],
            rubrics=[file],
            settings=settings,
        )

    return hold


def test_without_a_calibration_on_record_the_rule_advises(judged):
    one = rule(judged(ACCEPTED), "min accepted")
    assert (one.status, one.value) == ("advises", None)
    assert "no calibration on record" in one.words


def test_with_one_the_rule_blocks_and_a_hard_rule_blocks_before_it(judged):
    found = judged(ACCEPTED, kappa=0.7)
    one = rule(found, "min accepted")
    assert (one.status, one.counts) == ("fail", "2/4")
    assert set(one.case_ids) == {"c1", "c2"}
    assert [blocker.rule for blocker in found.blockers] == ["forbidden_claim", "min accepted"]


@pytest.mark.parametrize(
    ("wanted", "status"),
    [
        ("min_kappa = 0.8\n", "advises"),
        ("min_labels = 81\n", "advises"),
        ("min_kappa = 0.7\nmin_labels = 80\n", "fail"),
    ],
)
def test_the_policy_says_what_a_calibration_must_show(judged, wanted, status):
    found = judged(f"{ACCEPTED}[judge]\n{wanted}", kappa=0.7)
    assert rule(found, "min accepted").status == status


def test_a_policy_that_asks_for_less_than_the_default_lets_the_judge_decide(judged):
    assert rule(judged(ACCEPTED, kappa=0.5), "min accepted").status == "advises"
    found = judged(f"{ACCEPTED}[judge]\nmin_kappa = 0.4\n", kappa=0.5)
    one = rule(found, "min accepted")
    assert (one.status, one.counts) == ("fail", "2/4")


def test_verdicts_on_another_run_are_refused(judged, tmp_path):
    stranger = write_lines(
        tmp_path / "other.jsonl", [{"item_id": "zz", "scores": {"good": 1}, "model": MODEL}]
    )
    opened = answer_run(tmp_path)
    with pytest.raises(UsageError):
        gate(
            opened,
            policy_file(tmp_path, ACCEPTED),
            verdicts=[stranger],
            rubrics=[rubric_file(tmp_path)],
        )
