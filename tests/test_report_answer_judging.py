"""A judge's verdicts beside the hard rules: what decides, what advises, what is refused."""

import json

import pytest
from answer_run_data import CASES, answer_run
from judge_data import rubric_file, write_lines

from ragwb.errors import UsageError
from ragwb.judge.answers import run_answers_of
from ragwb.judge.rubric import default_rubric, load_rubric
from ragwb.report import answer_sections as sections
from ragwb.report.answer_evaluation import evaluate_answers
from ragwb.settings import Settings

MODEL = "judge-1"


@pytest.fixture
def judged(tmp_path):
    """Evaluate the run with verdicts by item id, by a judge that is or is not on record."""
    source = answer_run(tmp_path)
    file = rubric_file(tmp_path)
    rubric = load_rubric(file)
    settings = Settings(root=tmp_path, home=tmp_path / "home")

    def evaluate(values, *, kappa=None, limits=None, **fields):
        head = {"model": MODEL, "rubric": rubric.label, "rubric_hash": rubric.hash, **fields}
        rows = [
            {
                "item_id": item_id,
                "scores": None if value is None else {"good": value},
                "unscored": "malformed" if value is None else None,
                "rationale": "weil <b>nein</b>",
                **head,
            }
            for item_id, value in values.items()
        ]
        verdicts = write_lines(tmp_path / "verdicts.jsonl", rows)
        if kappa is not None:
            decision = {"kappa": kappa, "low": None, "high": None, "ceiling": None}
            decision |= {"n_items": 80, "n_labels": 80, "n_unscored": 0}
            record = {"model": MODEL, "rubric": rubric.label, "rubric_hash": rubric.hash}
            record |= {"decisions": {"good": decision}, "recorded_at": "2026-11-30T08:00:00+00:00"}
            (settings.home / "calibrations.json").write_text(json.dumps([record]), "utf-8")
        return evaluate_answers(
            source, limits=limits, verdicts=[verdicts], rubrics=[file], settings=settings
        )

    return evaluate


VALUES = {"c1": 1, "c2": 3, "c3": 3, "c5": 3, "c7": 3, "c8": None}


def test_without_a_calibration_on_record_a_judge_only_advises(judged):
    evaluation = judged(VALUES, limits={"min_accepted": 0.1})
    words = repr(evaluation)
    assert words.startswith("The judge only advises, and decides nothing here: judge-1 by test 1")
    assert "no calibration on record" in words
    assert "min_accepted decides nothing: accepted is a judge's advice" in words
    assert evaluation.figures["accepted"] is None
    assert evaluation.rejected_case_ids == ()
    assert "c1" not in evaluation.failed_case_ids
    (judge,) = evaluation.to_dict()["judges"]
    assert (judge["may_block"], judge["n_items"], judge["n_unscored"]) == (False, 6, 1)
    assert "It would accept 4 of 5 answers" in sections.judges(evaluation).text


def test_a_calibrated_judge_decides_and_a_hard_rule_decides_before_it(judged):
    evaluation = judged(VALUES, kappa=0.8, limits={"min_accepted": 0.9})
    # c1 is rejected, c2 breaks a rule, c3 and c5 are accepted, c8 is unscored, c7 is a shadow.
    assert evaluation.figures["accepted"] == 0.5
    assert evaluation.thresholds[0].passed is False
    assert evaluation.rejected_case_ids == ("c1",)
    assert evaluation.failed_case_ids[0] == "c1"
    assert "Rejected by the calibrated judge: 1 case (c1)" in repr(evaluation)
    assert "decides: calibrated on 2026-11-30, kappa 0.800" in sections.judges(evaluation).text
    opened = sections.failed(evaluation, limit=9)
    assert "judge: good 1; hard rules pass; the calibrated judge rejects" in opened.text
    assert "<b>nein" not in opened.html
    assert "judge: good 3; a hard rule fails" in opened.text
    (row,) = [one for one in sections.failed_rows(evaluation) if one["case_id"] == "c1"]
    assert row["why"] == "rejected by the judge"


def test_below_the_policy_a_judge_on_record_only_advises(judged):
    evaluation = judged(VALUES, kappa=0.4)
    assert "kappa 0.400 of good is below 0.6" in repr(evaluation)
    assert evaluation.figures["accepted"] is None


def test_verdicts_that_do_not_say_their_judge_advise(judged):
    evaluation = judged(VALUES, kappa=0.8, model=None, rubric_hash=None)
    assert "do not say this rubric and their model" in repr(evaluation)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"rubric_hash": "0" * 64}, "which is not given as it was: --rubric"),
        ({"length_chars": 3}, "was judged on 3 characters and has 8 in run"),
    ],
)
def test_verdicts_by_another_rubric_or_on_other_answers_are_refused(judged, fields, message):
    with pytest.raises(UsageError, match=message):
        judged(VALUES, **fields)


def test_verdicts_on_another_set_are_refused(judged):
    with pytest.raises(UsageError, match="no verdict in it is on an answer of run"):
        judged({"elsewhere": 3})


def support_file(folder, source, *, name="support.jsonl"):
    """A verdict on every claim and chunk: supported by the chunk that is cited for it alone."""
    rubric = default_rubric("support")
    head = {"model": MODEL, "rubric": rubric.label, "rubric_hash": rubric.hash}
    rows = []
    for answer in run_answers_of(source):
        claims = list(answer.claims.items())
        for item, (at, chunk) in zip(
            answer.support_items(),
            [(at, chunk) for at in range(len(claims)) for chunk in answer.context],
            strict=True,
        ):
            label = "supported" if chunk in claims[at][1] else "unsupported"
            rows.append({"item_id": item.item_id, "scores": {"support": label}, **head})
    return write_lines(folder / name, rows)


def test_a_judge_of_support_gives_its_figures_and_no_acceptance(tmp_path):
    source = answer_run(tmp_path, cases=CASES[:1])
    settings = Settings(root=tmp_path, home=tmp_path / "home")
    limits = {"min_citation_support": 0.5}
    file = support_file(tmp_path, source)
    evaluation = evaluate_answers(source, limits=limits, verdicts=[file], settings=settings)
    assert evaluation.figures["citation_support"] == 1
    assert evaluation.figures["unsupported_rate"] == 0
    assert evaluation.figures["accepted"] is None
    assert evaluation.verdict == "undecided"
    rows = {row["figure"]: row["what it is"] for row in sections.figure_rows(evaluation)}
    assert "the judge only advises" in str(rows["citation_support"])
    assert "would accept" not in sections.judges(evaluation).text
    with pytest.raises(UsageError, match="a second judge of kind support"):
        evaluate_answers(source, verdicts=[file, file], settings=settings)


def test_a_judge_that_compares_pairs_has_no_say_in_one_run(tmp_path):
    source = answer_run(tmp_path, cases=CASES[:1])
    file = rubric_file(tmp_path, kind="pair", scale="[-1, 0, 1]", rest="", name="pair.toml")
    verdicts = write_lines(
        tmp_path / "v.jsonl",
        [{"item_id": "c1", "scores": {"good": 1}, "rubric_hash": load_rubric(file).hash}],
    )
    with pytest.raises(UsageError, match="compares two answers, and a run holds one each"):
        evaluate_answers(source, verdicts=[verdicts], rubrics=[file])
