"""A sheet for blind review tells nothing but the material, and its labels come back."""

import csv
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge_data import rubric

from ragwb.errors import DataError, UsageError
from ragwb.judge.items import Item
from ragwb.judge.labels import load_labels
from ragwb.judge.sampling import draw_sample, restore_ids, write_sheet
from ragwb.judge.scale import read_value

ITEMS = [
    Item(
        f"gpt4-{at}",
        {"question": f"问 {at}", "answer": "=1+1" if at == 0 else f"答 {at}"},
        {"system": "gpt4", "kind": "rare" if at < 2 else "common"},
    )
    for at in range(40)
]


def read(path):
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def test_a_sample_keeps_the_shares_and_one_of_each_stratum():
    found = draw_sample(ITEMS, 10, by=["kind"])
    # 38 and 2: one of each first, the other eight by what is left: 8·37/38 and 8·1/38.
    assert found.strata == (("common", 9, 38), ("rare", 1, 2))
    assert len({item.item_id for item in found.items}) == 10


@given(
    st.lists(st.sampled_from("abcd"), min_size=4, max_size=60).flatmap(
        lambda kinds: st.tuples(st.just(kinds), st.integers(len(set(kinds)), len(kinds)))
    )
)
def test_every_size_can_be_drawn(given_kinds):
    kinds, size = given_kinds
    items = [Item(str(at), {"answer": "x"}, {"k": kind}) for at, kind in enumerate(kinds)]
    found = draw_sample(items, size, by=["k"])
    assert sum(drawn for _, drawn, _ in found.strata) == size
    assert all(1 <= drawn <= there for _, drawn, there in found.strata)
    assert {name: there for name, _, there in found.strata} == Counter(kinds)


def test_a_seed_is_a_sheet():
    assert draw_sample(ITEMS, 10, seed=1) == draw_sample(ITEMS, 10, seed=1)
    assert draw_sample(ITEMS, 10, seed=1) != draw_sample(ITEMS, 10, seed=2)


@pytest.mark.parametrize("size", [1, 41])
def test_a_size_that_cannot_be_is_refused(size):
    with pytest.raises(UsageError, match="there are 40 in 2 strata"):
        draw_sample(ITEMS, size, by=["kind"])


def test_a_tag_is_found_as_labels_and_items_write_it():
    assert draw_sample(ITEMS, 10, by=["tags.kind"]) == draw_sample(ITEMS, 10, by=["kind"])
    odd = [Item("a", {}, {"tags.kind": "x", "kind": "y"}), Item("b", {}, {"kind": "y"})]
    assert [name for name, _, _ in draw_sample(odd, 2, by=["tags.kind"]).strata] == ["x", "–"]


def test_the_ids_of_a_sheet_are_nothing_that_a_spreadsheet_would_compute():
    sample = draw_sample([Item(str(at), {"answer": "x"}) for at in range(2000)], 2000)
    # Of 2,000 ids of hex digits some 16 would be such as 12e3456789.
    assert not [
        sheet_id for sheet_id in sample.key if isinstance(read_value(sheet_id), float | int)
    ]
    assert all(sheet_id[0] == "s" for sheet_id in sample.key)


def test_an_unknown_tag_is_refused():
    with pytest.raises(UsageError, match="no tag 'mood'; there is kind, system"):
        draw_sample(ITEMS, 5, by=["mood"])


def test_a_sheet_shows_the_material_and_nothing_else(tmp_path):
    sample = draw_sample(ITEMS, 40, by=["kind"])
    path = tmp_path / "sheet.csv"
    key = write_sheet(sample, rubric(tmp_path), path)
    written = path.read_text(encoding="utf-8-sig")
    assert "gpt4" not in written
    assert "rare" not in written
    rows = read(path)
    assert list(rows[0]) == [
        "item_id", "annotator", "question", "reference", "context", "answer", "good", "comment",
    ]  # fmt: skip
    assert {row["good"] for row in rows} == {""}
    assert "'=1+1" in {row["answer"] for row in rows}
    assert "gpt4-0" in key.read_text(encoding="utf-8")


def test_labels_come_back_under_the_items_ids(tmp_path):
    sample = draw_sample(ITEMS, 3)
    path = tmp_path / "sheet.csv"
    one = rubric(tmp_path)
    key = write_sheet(sample, one, path)
    rows = read(path)
    for row in rows:
        row |= {"annotator": "甲", "good": "2"}
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    found = restore_ids(load_labels(path, scales=one.scales), key)
    assert found.of("good") == {item: {"甲": 2} for item in sample.key.values()}


def test_a_sheet_is_never_replaced(tmp_path):
    sample, path = draw_sample(ITEMS, 3), tmp_path / "sheet.csv"
    write_sheet(sample, rubric(tmp_path), path)
    with pytest.raises(UsageError, match="may hold labels"):
        write_sheet(sample, rubric(tmp_path), path)


def test_a_key_of_another_sheet_is_refused(tmp_path):
    path = tmp_path / "l.csv"
    path.write_text("item_id,annotator,good\nx,a,1\n", encoding="utf-8")
    key = tmp_path / "k.json"
    key.write_text("{}", encoding="utf-8")
    with pytest.raises(DataError, match="does not know 'x'"):
        restore_ids(load_labels(path), key)
    with pytest.raises(DataError, match="No such file"):
        restore_ids(load_labels(path), tmp_path / "none")
    key.write_bytes(b"\n\xff")
    with pytest.raises(DataError, match=r"k\.json:2: not UTF-8"):
        restore_ids(load_labels(path), key)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"nonsense", "not JSON"),
        (b'["x"]', "it must be an object of ids"),
        (b"3", "it must be an object of ids"),
        (b'{"x": ["a"]}', "'x' must stand for one item"),
        (b'{"x": "a", "y": ["b", "c"]}', "'y' must stand for one item"),
        (b'{"x": 3}', "'x' must stand for one item"),
        (b'{"x": " "}', "'x' must stand for one item"),
        (b'{"x": null}', "'x' must stand for one item"),
        (b'{"x": "a", "y": "b", "z": "a"}', "'x' and 'z' both stand for item 'a'"),
        (b'{"x": "a", "x": "b"}', "a name stands twice"),
        (b'{"x": "\\ud800"}', "half a character"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_a_broken_key_is_never_taken_as_far_as_it_goes(tmp_path, content, said):
    path, key = tmp_path / "l.csv", tmp_path / "k.json"
    path.write_text("item_id,annotator,good\nx,a,1\n", encoding="utf-8")
    key.write_bytes(content)
    with pytest.raises(DataError, match=r"k\.json: not the key of a sheet: ") as caught:
        restore_ids(load_labels(path), key)
    assert said in str(caught.value)
