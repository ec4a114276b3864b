"""The rules of metrics.md, "Evidence as passages", one by one."""

from __future__ import annotations

import random
import unicodedata
from typing import Any

import pytest
from golden_data import case_data, cut, evidence_data, make_dataset, windows
from hypothesis import given, settings
from hypothesis import strategies as st
from passage_data import BODY, SENTENCES, any_of, groups_of, kinds_of, passage, resolve

from ragwb.errors import GoldenError
from ragwb.golden.case import quote_sha256
from ragwb.golden.passages import resolve_dataset
from ragwb.golden.spans import Span
from ragwb.records import Chunk

# A chunk holds a passage when it contains all of it; all that hold it form one group.


def test_a_passage_in_one_chunk_is_a_group_of_one() -> None:
    case = resolve(any_of(passage("三个工作日内到账")), cut(BODY, SENTENCES))

    (group,) = case.groups
    assert (group.index, group.chunk_ids, group.split) == (0, ("c0",), False)
    assert (group.hop, group.label) == ("到账时间", "evidence[0]")
    assert (case.excluded, case.notes) == (None, ())


def test_all_chunks_that_hold_it_form_one_group() -> None:
    overlapping = cut(BODY, [(0, 20), (5, 25), (8, 30), (10, len(BODY))])

    assert groups_of(evidence_data(passage("三个工作日")), overlapping) == [("c0", "c1", "c2")]


def test_any_occurrence_counts() -> None:
    body = "运费不退。其他。运费不退。"

    assert groups_of(evidence_data(passage("运费不退")), cut(body, [(0, 5), (5, 8), (8, 13)])) == [
        ("c0", "c2")
    ]


def test_a_held_occurrence_beats_a_split_one() -> None:
    body = "运费不退。其他。运费不退。"

    assert groups_of(evidence_data(passage("运费不退")), cut(body, [(0, 2), (2, 8), (8, 13)])) == [
        ("c2",)
    ]


def test_without_a_version_any_version_will_do() -> None:
    chunks = [*cut(BODY, SENTENCES), *cut(BODY, SENTENCES, document_version="2024.1", prefix="old")]

    found = groups_of(evidence_data(passage("节假日顺延", document_version=None)), chunks)
    assert [set(group) for group in found] == [{"c1", "old1"}]


# No chunk holds it: the smallest set of consecutive chunks, one group each.


def test_a_split_passage_is_one_group_a_chunk_and_is_marked() -> None:
    chunks = cut(BODY, [(0, 10), (10, 20), (20, len(BODY))])
    case = resolve(any_of(passage(BODY[5:24])), chunks)

    assert [group.chunk_ids for group in case.groups] == [("c0",), ("c1",), ("c2",)]
    assert [group.index for group in case.groups] == [0, 1, 2]
    assert all(group.split and group.hop == "到账时间" for group in case.groups)
    assert kinds_of(case) == ["split"]
    assert case.excluded is None


def test_the_smallest_cover_is_taken() -> None:
    # 6..14 is covered by c0+c1+c2, by c1+c2, and by c0+c1+c2+c3: two will do.
    chunks = cut(BODY, [(0, 8), (4, 10), (9, 16), (12, 20)])

    assert groups_of(evidence_data(passage(BODY[6:14])), chunks) == [("c1",), ("c2",)]


def test_of_equal_covers_the_earliest_is_taken() -> None:
    # One occurrence has one smallest cover; a second one can have an equal one.
    body = "运费不退。其他。运费不退。"
    chunks = cut(body, [(0, 2), (2, 6), (6, 10), (10, 13)])

    assert groups_of(evidence_data(passage("运费不退")), chunks) == [("c0",), ("c1",)]


def test_a_smaller_cover_of_a_later_occurrence_beats_an_earlier_one() -> None:
    body = "运费不退。其他。运费不退。"
    chunks = cut(body, [(0, 1), (1, 2), (2, 6), (6, 10), (10, 13)])

    assert groups_of(evidence_data(passage("运费不退")), chunks) == [("c3",), ("c4",)]


def test_a_text_indexed_twice_is_split_once_with_two_ids_a_group() -> None:
    # Two tenants may hold one and the same document: each finds it under ids of its own.
    chunks = [*cut(BODY, SENTENCES), *cut(BODY, SENTENCES, prefix="copy")]

    assert groups_of(evidence_data(passage(BODY[10:20])), chunks) == [
        ("c0", "copy0"),
        ("c1", "copy1"),
    ]


# With alternatives.


def test_the_group_is_the_holders_of_all_alternatives() -> None:
    data = any_of(passage("节假日顺延"), passage("三个工作日"), passage("退款审核通过后，三个"))

    assert groups_of(data, cut(BODY, SENTENCES)) == [("c1", "c0")]


def test_one_alternative_held_whole_is_enough() -> None:
    case = resolve(
        any_of(passage(BODY[10:20]), passage("运费不退"), passage(BODY[15:20])),
        cut(BODY, SENTENCES),
    )

    assert [group.chunk_ids for group in case.groups] == [("c2",)]
    assert not case.groups[0].split
    assert kinds_of(case) == []


def test_only_if_all_are_split_the_first_one_s_cover_is_used() -> None:
    data = any_of(passage(BODY[20:28]), passage(BODY[10:20]))

    assert groups_of(data, cut(BODY, SENTENCES)) == [("c1",), ("c2",)]


def test_alternatives_that_are_gone_are_noted() -> None:
    case = resolve(
        any_of(
            passage("不在了"),
            passage("运费不退"),
            passage("x", document_id="faq"),
            passage("x", document_version="2026.1"),
        ),
        cut(BODY, SENTENCES),
    )

    assert [group.chunk_ids for group in case.groups] == [("c2",)]
    assert kinds_of(case) == ["gone", "gone", "gone"]
    assert case.notes[0].startswith("gone evidence[0].any_of[0]: refund-policy version 2025.3 no l")
    assert case.excluded is None


# Drifted is a fault of the label, missing one of the knowledge.


def test_a_drifted_case_is_left_out_and_listed() -> None:
    data = evidence_data(passage("五个工作日"), passage("运费不退"))
    case = resolve(data, cut(BODY, SENTENCES))

    assert case.excluded == (
        "drifted: evidence[0]: refund-policy version 2025.3 no longer holds '五个工作日'"
    )
    assert kinds_of(case) == ["drifted"]


@pytest.mark.parametrize(
    ("changes", "detail"),
    [
        ({"document_id": "faq"}, "document faq is not in the knowledge"),
        ({"document_version": "2026.1"}, "refund-policy has no version 2026.1, only 2025.3"),
    ],
)
def test_what_the_knowledge_lacks_is_scored_as_not_found(
    changes: dict[str, Any], detail: str
) -> None:
    data = evidence_data(passage("运费不退"), passage("x", **changes))
    case = resolve(data, cut(BODY, SENTENCES))

    assert case.excluded is None
    assert [group.chunk_ids for group in case.groups] == [("c2",), ()]
    assert case.notes == (f"missing evidence[1]: {detail}",)


def test_a_drifted_alternative_beside_a_missing_one_is_a_fault_of_the_label() -> None:
    data = any_of(passage("x", document_id="faq"), passage("不在了"))

    assert kinds_of(resolve(data, cut(BODY, SENTENCES))) == ["drifted"]


# Another id space.


@pytest.mark.parametrize(
    "data",
    [
        case_data(),
        evidence_data(passage("x", document_id="faq")),
        case_data(evidence=[{"any_of": [passage("x", document_id="faq")]}]),
        case_data(mode="refuse", expected_chunk_ids=None, forbidden_chunk_ids=["x"]),
    ],
)
@pytest.mark.parametrize(
    ("chunks", "message"),
    [
        (cut(BODY, SENTENCES), "another id space"),
        ([], "documents: not one chunk can be read: check who asks"),
    ],
)
def test_when_nothing_is_known_it_is_another_id_space(
    data: dict[str, Any], chunks: list[Chunk], message: str
) -> None:
    with pytest.raises(GoldenError, match=message):
        resolve(data, chunks)


def test_one_known_id_or_document_is_enough() -> None:
    chunks = cut(BODY, SENTENCES)
    unknown = evidence_data(passage("x", document_id="faq"))

    dataset = make_dataset(unknown, case_data(expected_chunk_ids=["c0"]))
    assert len(resolve_dataset(dataset, chunks)) == 2
    assert len(resolve_dataset(make_dataset(unknown, any_of(passage("drifted"))), chunks)) == 2


def test_a_set_without_labels_has_no_id_space() -> None:
    assert resolve(case_data(mode="refuse", expected_chunk_ids=None), []).excluded == (
        "no evidence groups"
    )


# Offsets and quotes.


def test_offsets_are_code_points_beyond_the_basic_plane_too() -> None:
    body = "𠮷野家😀：退款。𠮷三个工作日。"
    chunks = cut(body, [(0, 8), (8, len(body))])

    case = resolve(evidence_data(passage("三个工作日")), chunks)
    assert [group.chunk_ids for group in case.groups] == [("c1",)]
    assert case.spans == (
        Span(document_id="refund-policy", document_version="2025.3", start=9, end=14),
    )
    assert body[9:14] == "三个工作日"
    assert groups_of(evidence_data(passage(start=5, end=8)), chunks) == [("c0",)]


@pytest.mark.parametrize(
    ("body", "quote"),
    [
        ("cafe\u0301 与茶。", "café 与"),
        ("café 与茶。", "cafe\u0301 与"),
        ("甲  \n乙。", "甲\n乙"),
        ("甲\n乙。", "甲 \r\n乙\n"),
    ],
)
def test_quotes_are_matched_on_the_normalised_view(body: str, quote: str) -> None:
    assert groups_of(evidence_data(passage(quote)), cut(body, [(0, len(body))])) == [("c0",)]


def test_the_view_leads_back_to_offsets() -> None:
    body = "cafe\u0301  \n退款三日。"
    case = resolve(evidence_data(passage("退款三日")), cut(body, [(0, 8), (8, len(body))]))

    assert (case.spans[0].start, case.spans[0].end) == (8, 12)
    assert case.groups[0].chunk_ids == ("c1",)


@pytest.mark.parametrize(
    ("place", "group"),
    [
        ({"lines": [1, 1]}, ("c0",)),
        ({"lines": [3, 4]}, ("c1",)),
        ({"start": 4, "end": 6, "sha256": quote_sha256("乙一")}, ("c1",)),
    ],
)
def test_lines_and_offsets_are_places_in_the_body(
    place: dict[str, Any], group: tuple[str, ...]
) -> None:
    body = "甲一\n\n乙一\n乙二\n"

    assert groups_of(evidence_data(passage(**place)), cut(body, [(0, 4), (4, 10)])) == [group]


@pytest.mark.parametrize(
    "place",
    [
        {"lines": [2, 2]},
        {"lines": [4, 9]},
        {"start": 2, "end": 4},
        {"start": 8, "end": 11},
        {"start": 4, "end": 6, "sha256": quote_sha256("乙三")},
    ],
)
def test_a_place_that_says_something_else_has_drifted(place: dict[str, Any]) -> None:
    body = "甲一\n\n乙一\n乙二\n"
    case = resolve(evidence_data(passage(**place)), cut(body, [(0, 4), (4, 10)]))

    assert kinds_of(case) == ["drifted"]


def test_a_quote_decides_over_its_lines() -> None:
    body = "新的一行\n甲一\n"

    case = resolve(evidence_data(passage("甲一", lines=[1, 1])), cut(body, [(0, 5), (5, 8)]))
    assert [group.chunk_ids for group in case.groups] == [("c1",)]


# Services that trim, or tell no offsets.


def test_white_space_between_trimmed_chunks_needs_no_cover() -> None:
    body = "甲一。\n\n乙一。"
    chunks = cut(body, [(0, 3), (5, 8)])

    assert groups_of(evidence_data(passage("甲一。\n\n乙一。")), chunks) == [("c0",), ("c1",)]


def test_without_offsets_a_chunk_still_holds_a_quote() -> None:
    chunks = [
        Chunk(chunk_id=name, document_id="refund-policy", document_version="2025.3", text=text)
        for name, text in (("a", "运费不退。"), ("b", "三日到账。"))
    ]

    assert groups_of(evidence_data(passage("三日")), chunks) == [("b",)]
    case = resolve(evidence_data(passage("不退。三日")), chunks)
    assert case.excluded is not None
    assert "without offsets a split cannot be told from a drift" in case.excluded
    assert kinds_of(resolve(evidence_data(passage(start=0, end=2)), chunks)) == ["drifted"]


# Properties, against the definitions taken literally.


def occurrences(body: str, quote: str) -> list[int]:
    return [at for at in range(len(body)) if body.startswith(quote, at)]


def expected_groups(body: str, spans: list[tuple[int, int]], quote: str) -> list[tuple[str, ...]]:
    """Holders as one group, else the smallest and earliest window of chunks as groups of one."""
    places = [(at, at + len(quote)) for at in occurrences(body, quote)]
    held = {
        place
        for place, (start, end) in enumerate(spans)
        for first, last in places
        if start <= first and last <= end
    }
    if held:
        return [tuple(f"c{place}" for place in sorted(held))]
    covers = [
        (after - before, first, before)
        for first, last in places
        for before in range(len(spans))
        for after in range(before + 1, len(spans) + 1)
        if spans[before][0] <= first < spans[before][1] and last <= spans[after - 1][1]
    ]
    size, _, start = min(covers)
    return [(f"c{place}",) for place in range(start, start + size)]


@given(
    st.text("ab退𠮷", min_size=1, max_size=40),
    st.integers(1, 12),
    st.integers(1, 12),
    st.integers(0, 39),
    st.integers(1, 12),
    st.randoms(use_true_random=False),
)
@settings(deadline=None, database=None, max_examples=300)
def test_passages_resolve_as_defined(
    body: str, size: int, step: int, start: int, length: int, order: random.Random
) -> None:
    spans = windows(len(body), size, min(step, size))
    start %= len(body)
    quote = body[start : start + length]
    chunks = cut(body, spans)
    order.shuffle(chunks)

    found = groups_of(evidence_data(passage(quote)), chunks)
    expected = expected_groups(body, spans, quote)
    assert [set(group) for group in found] == [set(group) for group in expected]


@given(
    st.text("aé退한𠮷", min_size=1, max_size=30),
    st.integers(1, 8),
    st.sampled_from(["NFC", "NFD"]),
    st.sampled_from(["NFC", "NFD"]),
)
@settings(deadline=None, database=None)
def test_the_unicode_form_does_not_matter(text: str, size: int, one: Any, two: Any) -> None:
    body, quote = unicodedata.normalize(one, text), unicodedata.normalize(two, text)
    case = resolve(evidence_data(passage(quote)), cut(body, windows(len(body), size, size)))

    assert len(case.groups) == -(-len(body) // size)
    assert [(span.start, span.end) for span in case.spans] == [(0, len(body))]
