"""The labelling form: walks a sheet, keeps labels as it goes, escapes what it shows."""

import pytest
from hostile import TEXTS
from judge_data import rubric, rubric_file

from ragwb.errors import DataError, UsageError
from ragwb.judge.items import Item
from ragwb.judge.labels import load_labels
from ragwb.judge.sampling import draw_sample, restore_ids, write_sheet
from ragwb.view.labelling import item_html, label_sheet, labels_path


@pytest.fixture
def sheet(tmp_path):
    items = [Item(f"i{at}", {"question": f"问 {at}", "answer": f"答 {at}"}) for at in range(3)]
    path = tmp_path / "s.csv"
    write_sheet(draw_sample(items, 3), rubric(tmp_path), path)
    return path


def parts(form):
    shown, _, values, buttons, status = form.children
    return shown, values, *buttons.children, status


def form_of(sheet, annotator="甲"):
    return parts(label_sheet(sheet, annotator, rubric=rubric_file(sheet.parent)))


def test_labels_are_kept_as_it_goes_and_read_back(sheet, tmp_path):
    _, values, _, onward, status = form_of(sheet)
    assert "item 1 of 3; 0 labelled by 甲" in status.value
    for value in (3, 1):
        values.value = value
        onward.click()
    assert "item 3 of 3; 2 labelled" in status.value
    assert values.value is None
    found = load_labels(labels_path(sheet, "甲"), scales=rubric(tmp_path).scales)
    restored = restore_ids(found, tmp_path / "s.csv.key.json")
    assert sorted(said["甲"] for said in restored.of("good").values()) == [1, 3]


def test_it_goes_on_where_it_was_left(sheet):
    shown, values, _, onward, _ = form_of(sheet)
    first = shown.value
    values.value = 2
    onward.click()
    shown, values, back, _, status = form_of(sheet)
    assert "item 2 of 3; 1 labelled" in status.value
    back.click()
    assert (shown.value, values.value) == (first, 2)


def test_each_annotator_has_a_file_of_their_own(sheet):
    _, values, _, onward, _ = form_of(sheet)
    values.value = 2
    onward.click()
    assert "0 labelled by 乙" in form_of(sheet, "乙")[-1].value


def test_an_item_without_a_label_is_none(sheet):
    _, _, _, onward, _ = form_of(sheet)
    onward.click()
    assert not labels_path(sheet, "甲").exists()


def test_a_label_can_be_taken_back(sheet):
    _, values, back, onward, status = form_of(sheet)
    values.value = 2
    onward.click()
    back.click()
    values.value = None
    onward.click()
    assert "0 labelled" in status.value
    assert "0 labelled" in form_of(sheet)[-1].value


def test_a_disk_that_does_not_take_it_is_said_and_nothing_is_lost(sheet, tmp_path):
    _, values, _, onward, status = form_of(sheet)
    labels_path(sheet, "甲").mkdir()
    values.value = 2
    onward.click()
    assert "not saved" in status.value
    assert values.value == 2


@pytest.mark.parametrize("name", ["", "  ", "../x", "a/b", "a\\b", "a\x00b"])
def test_a_name_that_leads_elsewhere_is_refused(sheet, name):
    with pytest.raises(UsageError, match="annotator"):
        label_sheet(sheet, name)


def test_an_empty_sheet_and_broken_labels_are_refused(sheet, tmp_path):
    empty = tmp_path / "e.csv"
    empty.write_text("item_id,annotator,answer,good\n", encoding="utf-8")
    with pytest.raises(UsageError, match="no item in it"):
        label_sheet(empty, "甲")
    labels_path(sheet, "甲").write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match="not JSON"):
        form_of(sheet)


@pytest.mark.parametrize("text", TEXTS)
def test_other_peoples_text_is_escaped(tmp_path, text):
    html = item_html({"question": text, "answer": text}, rubric(tmp_path))
    for act in ("<script", "<img", "<svg", "\x1b", "\u202e"):
        assert act not in html
