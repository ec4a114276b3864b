"""Items, labels and verdicts are read whole, or refused with every fault and its line."""

import csv
import json

import pytest
from judge_data import rubric, verdicts, write_lines

from ragwb.errors import DataError
from ragwb.judge.items import load_items
from ragwb.judge.labels import check_known, load_labels
from ragwb.judge.rubric import MATERIAL
from ragwb.judge.scale import Scale
from ragwb.judge.verdicts import Verdict, Verdicts, join_repeats, load_verdicts, save_verdicts

SCALES = {"good": Scale((1, 2, 3))}


def csv_file(folder, *rows, name="labels.csv"):
    path = folder / name
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


HEAD = ("item_id", "annotator", "good")
NO_NUMBERS = ("nan", "inf", "-Infinity", "1e400", "1" + "0" * 30)


def test_labels_of_a_sheet(tmp_path):
    path = csv_file(
        tmp_path,
        (*HEAD, "tags.domain", "question", "comment"),
        ("a", "甲", "2", "refund", "多行\n问题", "好"),
        ("a", "乙", "3", "refund", "", ""),
        ("b", "甲", "", "", "", ""),
    )
    found = load_labels(path, scales=SCALES)
    assert found.of("good") == {"a": {"甲": 2, "乙": 3}}
    assert found.annotators == ("乙", "甲")
    assert found.tags["a"] == {"domain": "refund"}
    assert found.n_empty == 1


def test_copies_of_a_sheet_are_read_together(tmp_path):
    copies = []
    for who, value in (("甲", "2"), ("乙", "3")):
        folder = tmp_path / who
        folder.mkdir()
        copies.append(csv_file(folder, HEAD, ("a", who, value), ("b", who, "1")))
    found = load_labels(*copies, scales=SCALES)
    assert found.of("good") == {"a": {"甲": 2, "乙": 3}, "b": {"甲": 1, "乙": 1}}
    with pytest.raises(DataError, match=r"甲 labels a twice, first at \S+labels\.csv:2: keep one"):
        load_labels(copies[0], copies[0])


def test_labels_as_json_lines(tmp_path):
    path = write_lines(
        tmp_path / "l.jsonl",
        [{"item_id": 7, "annotator": "a", "labels": {"true": True, "x": -1.5}, "tags": {"d": 1}}],
    )
    found = load_labels(path)
    assert found.of("true") == {"7": {"a": "true"}}
    assert found.of("x") == {"7": {"a": -1.5}}
    assert found.tags == {"7": {"d": "1"}}


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([("a", "甲", "2"), ("a", "甲", "3")], "labels.csv:3: good: 甲 labels a twice, first at"),
        ([("a", "", "2")], "labels.csv:2: annotator: empty"),
        ([("", "甲", "2")], "labels.csv:2: item_id: empty"),
        ([("a", "甲", "9")], "'9' is not on the scale 1, 2, 3"),
        ([("a", "甲", "good")], "not on the scale"),
        *(([("a", "甲", said)], f"'{said}' is no rating") for said in NO_NUMBERS),
        ([("a", "甲")], "not as many cells"),
        ([("a", "甲", "")], "no label in it"),
        ([], "no label in it"),
    ],
)
def test_broken_labels_are_refused(tmp_path, rows, said):
    path = csv_file(tmp_path, HEAD, *rows)
    with pytest.raises(DataError) as caught:
        load_labels(path, scales=SCALES)
    assert said in str(caught.value).replace(str(tmp_path) + "/", "")


@pytest.mark.parametrize("scales", [None, SCALES])
@pytest.mark.parametrize(
    ("label", "said"),
    [
        ("NaN", "NaN is no number of JSON"),
        ("1e400", "a number beyond 1e308"),
        ("1" + "0" * 400, "a number beyond 1e308"),
        ("1" + "0" * 300, "good: '1000"),
        ('"nan"', "good: 'nan' is no rating"),
        ("[1]", "good: '[1]' is no label"),
        ('{"a": 1}', "is no label: write one number or one word"),
        ('"\\ud800"', "half a character"),
        ('1, "good": 2', "a name stands twice"),
    ],
)
def test_a_label_that_is_no_rating_is_refused_whatever_the_scale(tmp_path, label, said, scales):
    path = tmp_path / "l.jsonl"
    line = f'{{"item_id": "a", "annotator": "x", "labels": {{"good": {label}}}}}'
    path.write_text(line, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        load_labels(path, scales=scales)
    assert str(caught.value).startswith(f"{path}:1")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("item_id,annotator,good,good\na,x,1,3\n", "l.csv:1: the column good stands twice"),
        ("item_id,annotator,good, good\na,x,1,3\n", "the column good stands twice"),
        ("item_id;annotator;good\na;x;1\n", "l.csv:1: looks separated by semicolons: save it"),
        ("item_id\tannotator\tgood\na\tx\t1\n", "looks separated by tabs"),
        ("item_id,annotator,good,\na,x,1,3\n", "l.csv:2: a value in a column that the head line"),
        ('item_id,annotator,good\na,x,"1\n', "not CSV"),
    ],
)
def test_a_table_that_is_not_read_as_it_was_meant_is_refused(tmp_path, text, said):
    path = tmp_path / "l.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        load_labels(path)
    assert said in str(caught.value)


def test_a_label_whose_tags_are_none_is_refused(tmp_path):
    row = {"item_id": "a", "annotator": "x", "labels": {"good": 1}}
    for tags, said in ([1], "tags: must be an object"), ({"d": {}}, "tags: d must be one text"):
        path = write_lines(tmp_path / "l.jsonl", [{**row, "tags": tags}])
        with pytest.raises(DataError, match=said):
            load_labels(path)


def test_what_a_spreadsheet_leaves_empty_is_no_fault(tmp_path):
    path = tmp_path / "l.csv"
    path.write_text("item_id,annotator,good,,\n\na,x,2,,\nb,,,,\n", encoding="utf-8")
    found = load_labels(path, scales=SCALES)
    # The annotator has not come to b yet, and has not written a name there either.
    assert (found.of("good"), found.n_empty) == ({"a": {"x": 2}}, 1)


@pytest.mark.parametrize("kind", ["answer", "support", "pair"])
def test_what_a_sheet_shows_is_no_label(tmp_path, kind):
    shown = MATERIAL[kind]
    path = csv_file(tmp_path, (*HEAD, *shown), ("a", "x", "2", *("text" for _ in shown)))
    assert load_labels(path, scales=SCALES).criteria == ("good",)


def test_all_faults_of_a_file_are_told_at_once(tmp_path):
    path = csv_file(tmp_path, HEAD, ("a", "", "2"), ("b", "甲", "7"))
    with pytest.raises(DataError, match="and 1 more") as caught:
        load_labels(path, scales=SCALES)
    assert len(caught.value.faults) == 2


def test_a_criterion_that_the_rubric_has_not_is_refused(tmp_path):
    path = csv_file(tmp_path, ("item_id", "annotator", "bad"), ("a", "甲", "1"))
    with pytest.raises(DataError, match="no criterion of the rubric; it has good"):
        load_labels(path, scales=SCALES)


def test_labels_of_unknown_items_are_refused(tmp_path):
    path = csv_file(tmp_path, HEAD, ("a", "甲", "1"), ("z", "甲", "1"))
    with pytest.raises(DataError, match="labels of 1 item that the run does not know: z"):
        check_known(load_labels(path), ["a"], where="the run")


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"{", "not JSON"), (b"[1]", "not an object"), (b"\xff\xfe", "UTF-8"), (b"", "no ")],
)
@pytest.mark.parametrize("load", [load_labels, load_verdicts, lambda p: load_items(p, "answer")])
def test_a_file_of_another_kind_is_named(tmp_path, load, content, said):
    path = tmp_path / "f.jsonl"
    path.write_bytes(content)
    with pytest.raises(DataError, match=said) as caught:
        load(path)
    assert "f.jsonl" in str(caught.value)
    with pytest.raises(DataError, match="No such file"):
        load(tmp_path / "none.jsonl")


def test_verdicts_come_back_as_they_were_saved(tmp_path):
    said = [
        Verdict("a", {"good": 2}, rationale="\x1b[31m理由", model="m", tags={"d": "1"}),
        Verdict("b", unscored="malformed: not JSON", model="m"),
    ]
    path = tmp_path / "deep" / "v.jsonl"
    save_verdicts(said, path)
    assert b"\x1b" not in path.read_bytes()
    assert load_verdicts(path).verdicts == tuple(said)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"scores": {"good": 1}}], "item_id: Field required"),
        ([{"item_id": "a", "score": 1}], "score: Unexpected"),
        ([{"item_id": "a", "scores": {"good": [1]}}], "v.jsonl:1: scores"),
        ([{"item_id": "a", "scores": {"good": True}}], "v.jsonl:1: scores.good"),
        ([{"item_id": "a", "scores": {"good": float("nan")}}], "NaN is no number of JSON"),
        ([{"item_id": "a", "scores": {"good": float("inf")}}], "Infinity is no number of JSON"),
        ([{"item_id": "a", "scores": {"good": 10**400}}], "v.jsonl:1: a number beyond"),
        ([{"item_id": "a", "scores": {"good": 10**300}}], "v.jsonl:1: scores.good: 1000"),
        ([{"item_id": "a", "scores": {"good": -1e300}}], "scores.good: -1e+300 is no rating"),
        ([{"item_id": "a", "length_chars": 10**300}], "v.jsonl:1: length_chars: a number beyond"),
        (
            [{"item_id": "b"}, {"item_id": "a", "scores": {"good": 1}, "unscored": "malformed"}],
            "v.jsonl:2: unscored: the verdict has scores too",
        ),
        ([{"item_id": "a"}, {"item_id": "a"}], "v.jsonl:2: item_id: judged twice"),
        ([{"item_id": "a", "model": "m"}, {"item_id": "b"}], "several judges in one file"),
        ([{"item_id": "a", "rubric_hash": "x"}, {"item_id": "b"}], "rubric_hash is x, None"),
    ],
)
def test_broken_verdicts_are_refused(tmp_path, rows, said):
    path = write_lines(tmp_path / "v.jsonl", rows)
    with pytest.raises(DataError) as caught:
        load_verdicts(path)
    assert said in str(caught.value)


def test_repeats_are_joined_and_a_tie_is_nothing():
    assert join_repeats([1, 2]) == 1.5
    assert join_repeats([2, 2]) == 2
    assert join_repeats(["yes", "no", "yes"]) == "yes"
    assert join_repeats(["yes", "no"]) is None
    assert join_repeats([]) is None


def test_a_mean_takes_the_nearest_value_of_the_scale_the_repeats_are_on():
    scale = Scale((-2, -1, 0, 1, 2))
    said = Verdicts(
        (Verdict("a", {"good": 1}), Verdict("a", {"good": 2}, repeat=2), Verdict("b", {"good": -1}))
    )
    assert said.of("good", scale) == {"a": 1, "b": -1}
    assert said.of("good") == {"a": 1.5, "b": -1}
    assert verdicts({"a": 0.3}).of("good", scale) == {"a": 0.3}


def test_an_unscored_item_has_a_reason_and_no_value():
    said = verdicts({"a": 1, "b": None})
    assert said.of("good") == {"a": 1}
    assert said.unscored() == {"b": "malformed"}


def test_items_of_a_file(tmp_path):
    rows = [{"item_id": "a", "answer": "答", "context": ["一", "二"], "tags": {"d": "x"}}]
    (found,) = load_items(write_lines(tmp_path / "i.jsonl", rows), "answer")
    assert found.material == {"answer": "答", "context": "一\n\n二"}
    assert found.length_chars("answer") == 1
    assert found.tags == {"d": "x"}


@pytest.mark.parametrize(
    ("kind", "row", "said"),
    [
        ("answer", {"answer": "x"}, "item_id: empty"),
        ("answer", {"item_id": "a"}, "answer: missing"),
        ("answer", {"item_id": "a", "answer": "x", "model": "gpt"}, "model: unknown"),
        ("answer", {"item_id": "a", "answer": 3}, "answer: must be a text"),
        ("pair", {"item_id": "a", "first": "x"}, "second: missing"),
        ("support", {"item_id": "a", "claim": "x", "answer": "x"}, "answer: unknown"),
        ("answer", {"item_id": ["a"], "answer": "x"}, "item_id: empty"),
        ("answer", {"item_id": "a", "answer": "x", "tags": ["d"]}, "tags: must be an object"),
        ("answer", {"item_id": "a", "answer": "x", "tags": {"d": ["e"]}}, "tags: d must be one"),
        ("answer", {"item_id": "a", "answer": "\ud800"}, r"i\.jsonl:1: .*half a character"),
        ("answer", {"item_id": "\udfff", "answer": "x"}, r"i\.jsonl:1: .*half a character"),
    ],
)
def test_broken_items_are_refused(tmp_path, kind, row, said):
    path = tmp_path / "i.jsonl"
    path.write_text(json.dumps(row), encoding="utf-8")
    with pytest.raises(DataError, match=said):
        load_items(path, kind)


def test_tags_of_items_are_texts_whatever_they_were_written_as(tmp_path):
    tags = {"n": 3, "yes": True, "none": None, "empty": ""}
    rows = [{"item_id": "a", "answer": "x", "tags": tags, "tags.domain": "refund"}]
    (found,) = load_items(write_lines(tmp_path / "i.jsonl", rows), "answer")
    assert found.tags == {"n": "3", "yes": "true", "domain": "refund"}
    path = csv_file(tmp_path, ("item_id", "answer", "tags.domain"), ("a", "x", "refund"))
    assert load_items(path, "answer")[0].tags == {"domain": "refund"}


def test_an_item_twice_is_refused(tmp_path):
    path = write_lines(tmp_path / "i.jsonl", [{"item_id": "a", "answer": "x"}] * 2)
    with pytest.raises(DataError, match="'a' twice, first at"):
        load_items(path, "answer")


def test_the_rubric_of_the_fixture_has_the_scale_of_these_tests(tmp_path):
    assert rubric(tmp_path).scales == SCALES
