"""Items, labels and verdicts are read whole, or refused with every fault and its line."""

import csv
import json

import pytest
from judge_data import rubric, verdicts, write_lines

from ragwb.errors import DataError
from ragwb.judge.items import load_items
from ragwb.judge.labels import check_known, load_labels
from ragwb.judge.scale import Scale
from ragwb.judge.verdicts import Verdict, Verdicts, join_repeats, load_verdicts, save_verdicts

SCALES = {"good": Scale((1, 2, 3))}


def csv_file(folder, *rows, name="labels.csv"):
    path = folder / name
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


HEAD = ("item_id", "annotator", "good")


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
        ([("a", "甲", "nan")], "not on the scale"),
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
    with pytest.raises(DataError, match="labels of 1 items that the run does not know: z"):
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
    ],
)
def test_broken_items_are_refused(tmp_path, kind, row, said):
    path = tmp_path / "i.jsonl"
    path.write_text(json.dumps(row), encoding="utf-8")
    with pytest.raises(DataError, match=said):
        load_items(path, kind)


def test_an_item_twice_is_refused(tmp_path):
    path = write_lines(tmp_path / "i.jsonl", [{"item_id": "a", "answer": "x"}] * 2)
    with pytest.raises(DataError, match="'a' twice, first at"):
        load_items(path, "answer")


def test_the_rubric_of_the_fixture_has_the_scale_of_these_tests(tmp_path):
    assert rubric(tmp_path).scales == SCALES
