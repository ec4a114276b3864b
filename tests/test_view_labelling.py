"""The labelling form: walks a sheet, keeps labels as it goes, escapes what it shows."""

import pytest
from hostile import TEXTS
from judge_data import rubric, rubric_file
from widget_tree import button, marked, shown_html

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


class Form:
    """The form of a sheet, its parts as an annotator finds them."""

    def __init__(self, sheet, annotator="甲", **given):
        root = label_sheet(sheet, annotator, rubric=rubric_file(sheet.parent, **given))
        self.root, self.values = root, marked(root, "rw-criterion")
        self.back, self.onward = button(root, "back"), button(root, "save, next")

    @property
    def head(self):
        return marked(self.root, "rw-label-head").value

    @property
    def said(self):
        return marked(self.root, "rw-line").value

    @property
    def shown(self):
        return shown_html(marked(self.root, "rw-label-item"))

    def label(self, value):
        self.values.value = value
        self.onward.click()


def test_labels_are_kept_as_it_goes_and_read_back(sheet, tmp_path):
    form = Form(sheet)
    assert "item 1 of 3; 0 labelled by 甲" in form.head
    for value in (3, 1):
        form.label(value)
    assert "item 3 of 3; 2 labelled" in form.head
    assert "saved in" in form.said
    assert form.values.value is None
    found = load_labels(labels_path(sheet, "甲"), scales=rubric(tmp_path).scales)
    restored = restore_ids(found, tmp_path / "s.csv.key.json")
    assert sorted(said["甲"] for said in restored.of("good").values()) == [1, 3]


def test_the_last_label_is_followed_by_where_they_all_are(sheet):
    form = Form(sheet)
    for value in (3, 1, 2):
        form.label(value)
    assert "All 3 items are labelled" in form.said
    assert labels_path(sheet, "甲").name in form.said


def test_it_goes_on_where_it_was_left(sheet):
    form = Form(sheet)
    first = form.shown
    form.label(2)
    again = Form(sheet)
    assert "item 2 of 3; 1 labelled" in again.head
    again.back.click()
    assert "item 1 of 3" in again.head
    assert again.values.value == 2
    assert [part for part in first.split("</div>") if "答" in part] == [
        part for part in again.shown.split("</div>") if "答" in part
    ]


def test_two_windows_of_one_annotator_keep_the_labels_of_both(sheet):
    first, second = Form(sheet), Form(sheet)
    first.label(3)
    second.onward.click()
    second.label(1)
    said = load_labels(labels_path(sheet, "甲")).labels
    assert sorted(label.value for label in said) == [1, 3]
    assert "2 labelled" in second.head


def test_each_annotator_has_a_file_of_their_own(sheet):
    Form(sheet).label(2)
    assert "0 labelled by 乙" in Form(sheet, "乙").head


def test_an_item_without_a_label_is_none(sheet):
    form = Form(sheet)
    form.onward.click()
    assert "item 2 of 3" in form.head
    assert not labels_path(sheet, "甲").exists()


def test_a_label_can_be_taken_back(sheet):
    form = Form(sheet)
    form.label(2)
    form.back.click()
    form.values.index = len(form.values.options) - 1
    assert form.values.value is None
    form.onward.click()
    assert "0 labelled" in form.head
    assert "0 labelled" in Form(sheet).head


def test_a_value_shows_what_it_means(sheet):
    meant = 'accept_from = 2\n[criteria.meanings]\n1 = "no"\n3 = "yes"'
    assert [label for label, _ in Form(sheet, rest=meant).values.options] == [
        "1 no",
        "2",
        "3 yes",
        "not said",
    ]


def test_a_disk_that_does_not_take_it_is_said_and_nothing_is_lost(sheet):
    form = Form(sheet)
    labels_path(sheet, "甲").mkdir()
    form.label(2)
    assert "not saved" in form.said
    assert form.values.value == 2
    assert "item 1 of 3; 0 labelled" in form.head


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
        Form(sheet)


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (["item_id,answer", ",答"], "item_id: empty"),
        (["id,answer", "1,答"], "item_id: empty"),
        (["item_id,answer", "1,答", "1,问"], "'1' comes twice"),
    ],
)
def test_a_file_that_is_no_sheet_is_refused(tmp_path, lines, why):
    path = tmp_path / "s.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(DataError, match=why):
        label_sheet(path, "甲")


def test_an_answer_is_shown_as_it_was_written():
    assert '<div class="rw-text">- 一\n- 二</div>' in item_html(
        {"answer": "'- 一\n- 二"}, ["answer"]
    )
    assert "&#x27;引&#x27;" in item_html({"answer": "'引'"}, ["answer"])


@pytest.mark.parametrize("text", TEXTS)
def test_other_peoples_text_is_escaped(text):
    html = item_html({"question": text, "answer": text}, ["question", "answer"])
    for act in ("<script", "<img", "<svg", "\x1b", "\u202e"):
        assert act not in html
