"""The review of a judge and the sections of its report: text and HTML say the same."""

import json

import pytest
from hostile import SCRIPT
from judge_data import rubric_file, write_lines
from run_data import settings

from ragwb.errors import UsageError
from ragwb.judge.rubric import load_rubric
from ragwb.report import judge_sections
from ragwb.report.judging import review_judge


@pytest.fixture
def files(tmp_path):
    """Two people and two judges on 20 items; one item is unscored by the first judge."""
    people = {f"i{at}": 1 + at % 3 for at in range(20)}
    labels = [
        {"item_id": i, "annotator": who, "labels": {"good": v}, "tags": {"d": SCRIPT}}
        for i, v in people.items()
        for who in ("a", SCRIPT)
    ]
    first = [{"item_id": i, "scores": {"good": v}, "model": SCRIPT} for i, v in people.items()]
    first[0] |= {"scores": None, "unscored": SCRIPT}
    second = [{"item_id": i, "scores": {"good": 4 - v}} for i, v in people.items()]
    paths = {"labels": labels, "verdicts": first, "second": second}
    return {name: write_lines(tmp_path / f"{name}.jsonl", rows) for name, rows in paths.items()}


def test_every_section_is_there_and_escaped(files):
    review = review_judge(**files, by="d")
    sections = [
        review.headline(),
        judge_sections.figures(review),
        judge_sections.confusion(review),
        judge_sections.slices(review),
        judge_sections.comparison(review, limit=2),
    ]
    for panel in sections:
        assert "<script" not in panel.html
    assert "kappa 1.000 (people 1.000)" in sections[0].text
    assert "good: 1 labelled items are unscored, and outside." in sections[0].text
    assert "good: 19 labelled items, read the intervals first." in sections[0].html
    assert repr(review) == sections[0].text
    assert review._repr_html_() == sections[0].html
    assert "human \\ judge" in sections[2].text
    assert "share of each value" in sections[2].html
    assert "by d" in sections[3].text
    # Values 1 and 3 are turned round: of the 19 items that both scored, 6 each.
    compared = review.comparisons[0]
    assert (compared.only_first_right, compared.only_second_right) == (12, 0)
    assert "10 more not shown" in sections[4].text


def test_what_was_not_asked_is_said(files):
    review = review_judge(files["labels"], files["verdicts"])
    assert judge_sections.slices(review).text == "No tag to slice by was given."
    assert judge_sections.comparison(review).text == "No second judge was given."


def test_a_judge_in_other_numbers_has_no_confusion(files, tmp_path):
    rows = [{"item_id": f"i{at}", "scores": {"good": at / 7}} for at in range(20)]
    review = review_judge(files["labels"], write_lines(tmp_path / "v.jsonl", rows))
    assert "only correlations are defined" in judge_sections.confusion(review).text
    assert review.to_dict()["calibrations"][0]["confusion"] is None


def test_a_cut_as_people_type_it(files):
    review = review_judge(**files, cut="2")
    assert review.calibrations[0].scale.values == (0, 1)
    assert "≥ 2" in judge_sections.confusion(review).text
    assert len(review.comparisons[0].flips) == 12


def test_a_rubrics_decision_is_calibrated_beside_the_values(files, tmp_path):
    path = rubric_file(tmp_path)
    review = review_judge(files["labels"], files["verdicts"], rubric=path)
    assert [one.cut for one in review.decisions] == [2]
    assert review.standing.why == "advises: its verdicts do not say this rubric and their model"
    assert review.to_dict()["standing"]["may_block"] is False
    with pytest.raises(UsageError, match=r"which model|another rubric"):
        review_judge(files["labels"], files["verdicts"], rubric=path, record=True)


def test_scores_off_the_rubrics_scale_let_no_judge_decide(files, tmp_path):
    path = rubric_file(tmp_path)
    judge = {"model": "m", "rubric_hash": load_rubric(path).hash}
    rows = [{"item_id": f"i{at}", "scores": {"good": 1 + at % 3}, **judge} for at in range(20)]
    right = write_lines(tmp_path / "right.jsonl", rows)
    here = settings(tmp_path)
    given = {"rubric": path, "min_labels": 1, "settings": here}
    assert review_judge(files["labels"], right, record=True, **given).standing.may_block
    rows[4]["scores"] = {"good": 7}
    wrong = write_lines(tmp_path / "wrong.jsonl", rows)
    found = review_judge(files["labels"], wrong, **given).standing
    assert not found.may_block
    assert "1 of its scores are not on the rubric's scale (7 of i4)" in found.why
    with pytest.raises(UsageError, match="1 verdicts score good by a value that is not on the"):
        review_judge(files["labels"], wrong, record=True, **given)
    assert review_judge(files["labels"], right, **given).standing.may_block


@pytest.mark.parametrize("cut", ["nan", "inf", "1e400"])
def test_a_cut_that_is_no_rating_is_refused(files, cut):
    with pytest.raises(UsageError, match=f"cut '{cut}': is no rating"):
        review_judge(files["labels"], files["verdicts"], cut=cut)


def test_an_annotator_who_is_absent_on_some_items_is_said(files, tmp_path):
    rows = [json.loads(line) for line in files["labels"].read_text("utf-8").splitlines()]
    kept = [row for row in rows if row["annotator"] == "a" or row["item_id"] in ("i1", "i2", "i3")]
    review = review_judge(write_lines(tmp_path / "l.jsonl", kept), files["verdicts"])
    figures = judge_sections.figures(review).text
    assert (
        "17 items not labelled by every annotator: people are compared with each other" in figures
    )
    assert "with each other on 3 items" in figures
    assert review.to_dict()["calibrations"][0]["human_human"]["kappa"]["n_items"] == 3


def test_files_that_are_not_named_are_asked_for(files):
    with pytest.raises(UsageError, match="give labels and verdicts"):
        review_judge("", "")
    with pytest.raises(UsageError, match="give labels and verdicts"):
        review_judge(files["labels"], "")


def test_files_that_share_nothing_are_refused(files, tmp_path):
    rows = [{"item_id": f"i{at}", "scores": {"other": 1}} for at in range(20)]
    with pytest.raises(UsageError, match="nothing is shared"):
        review_judge(files["labels"], write_lines(tmp_path / "v.jsonl", rows))


def test_a_judge_that_scored_nothing_has_nothing_defined(files, tmp_path):
    rows = [{"item_id": f"i{at}", "unscored": "down"} for at in range(20)]
    review = review_judge(files["labels"], write_lines(tmp_path / "v.jsonl", rows))
    assert "good: nothing is defined" in repr(review)


def test_without_a_rubric_the_word_is_followed_by_what_is_not_known(files):
    panel = review_judge(**files).headline()
    assert "<b>ADVISES</b>no rubric was given" in panel.html
    assert "ADVISES: no rubric was given" in panel.text
