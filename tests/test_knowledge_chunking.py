from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragwb.errors import DocumentError, UsageError
from ragwb.knowledge import chunking
from ragwb.knowledge.chunking import ChunkingSpec, chunk_document, chunk_documents
from ragwb.knowledge.document import Document
from ragwb.knowledge.tokens import count_tokens

STRATEGIES = ["fixed", "recursive", "heading"]


def make_document(body: str, **changes: Any) -> Document:
    fields: dict[str, Any] = {
        "tenant": "starmall",
        "document_id": "refund-policy",
        "version": "2025.3",
        "title": "退款政策",
        "status": "published",
        "departments": (),
        "effective_from": None,
        "effective_to": None,
        "source": None,
        "body": body,
    }
    return Document(**{**fields, **changes})


def texts(body: str, spec: ChunkingSpec) -> list[str]:
    return [chunk.text for chunk in chunk_document(make_document(body), spec)]


MARKDOWN = (
    "前言。\n\n"
    "# 退款\n\n"
    "## 到账时间\n\n三个工作日。\n\n"
    "### 例外\n\n节假日顺延。\n\n"
    "## **费用** `A1`\n\n运费不退。\n"
)


def test_a_heading_starts_a_chunk_and_names_its_path() -> None:
    chunks = chunk_document(make_document(MARKDOWN), ChunkingSpec())

    assert [chunk.heading_path for chunk in chunks] == [
        (),
        ("退款", "到账时间"),
        ("退款", "到账时间", "例外"),
        ("退款", "费用 A1"),
    ]
    assert [chunk.title for chunk in chunks] == [
        "退款政策",
        "退款 / 到账时间",
        "退款 / 到账时间 / 例外",
        "退款 / 费用 A1",
    ]
    assert [chunk.ordinal for chunk in chunks] == [0, 1, 2, 3]


def test_a_heading_without_text_goes_before_its_first_subsection() -> None:
    # "# 退款" alone would be a chunk that is found for every question on refunds and says nothing.
    assert texts(MARKDOWN, ChunkingSpec())[1] == "# 退款\n\n## 到账时间\n\n三个工作日。\n\n"


def test_a_heading_without_text_or_subsection_stays_a_chunk() -> None:
    assert texts("# 甲\n\n# 乙\n\n文。\n", ChunkingSpec()) == ["# 甲\n\n", "# 乙\n\n文。\n"]


def test_what_looks_like_a_heading_in_code_or_a_list_is_none() -> None:
    body = "# 甲\n\n```\n# 乙\n```\n\n- # 丙\n\n丁\n===\n\n文。\n"

    paths = [chunk.heading_path for chunk in chunk_document(make_document(body), ChunkingSpec())]
    assert paths == [("甲",), ("丁",)]


def test_a_carriage_return_is_a_line_end_for_headings_too() -> None:
    assert texts("一\r\r# 乙\r文", ChunkingSpec()) == ["一\r\r", "# 乙\r文"]


def test_a_long_section_is_cut_at_its_strongest_separators() -> None:
    body = "# 退款\n\n第一段，很长很长。第二句。\n\n第二段。\n"

    spec = ChunkingSpec("heading", size=12)
    assert texts(body, spec) == ["# 退款\n\n", "第一段，很长很长。第二句。\n\n", "第二段。\n"]


@pytest.mark.parametrize(
    ("body", "pieces"),
    [
        ("甲甲。乙乙！丙丙", ["甲甲。", "乙乙！", "丙丙"]),
        ("“甲甲。”乙乙", ["“甲甲。”", "乙乙"]),
        ("甲甲；乙乙", ["甲甲；", "乙乙"]),
        ("甲甲，乙乙", ["甲甲，", "乙乙"]),
        ("第3.5条。乙", ["第3.5条。", "乙"]),
    ],
)
def test_chinese_punctuation_separates(body: str, pieces: list[str]) -> None:
    size = max(count_tokens(piece) for piece in pieces)

    assert texts(body, ChunkingSpec("recursive", size=size)) == pieces


def test_fixed_windows_overlap_by_tokens() -> None:
    # Each letter with its space is one token: windows of 3 that repeat 1.
    chunks = chunk_document(make_document("a b c d e f g"), ChunkingSpec("fixed", 3, 1))

    assert [chunk.text for chunk in chunks] == ["a b c", " c d e", " e f g"]
    assert [(chunk.start, chunk.end) for chunk in chunks] == [(0, 5), (3, 9), (7, 13)]


def test_overlap_stays_inside_a_section() -> None:
    body = "# 甲\n\n一一。二二。三三。\n\n# 乙\n\n四四。\n"
    chunks = chunk_document(make_document(body), ChunkingSpec("heading", size=10, overlap=3))

    first = [chunk for chunk in chunks if chunk.heading_path == ("甲",)]
    second = [chunk for chunk in chunks if chunk.heading_path == ("乙",)]
    assert len(first) > 1
    assert all(after.start < before.end for before, after in pairwise(first))
    assert second[0].start == first[-1].end


def test_blank_pieces_are_joined_to_a_neighbour() -> None:
    assert texts("\n\n\n甲\n\n\n\n", ChunkingSpec("fixed", size=1)) == ["\n\n\n甲\n\n\n\n"]
    assert texts("\n \n \n甲", ChunkingSpec("fixed", size=1)) == ["\n \n \n甲"]
    assert texts(" \n\n", ChunkingSpec()) == []


def test_offsets_are_code_points() -> None:
    body = "𠮷😀退款。e\u0301完"
    chunks = chunk_document(make_document(body), ChunkingSpec("fixed", size=4))

    assert len(chunks) > 2
    assert all(chunk.text == body[chunk.start : chunk.end] for chunk in chunks)


def test_a_chunk_as_a_service_tells_it() -> None:
    (chunk,) = chunk_document(make_document("# 甲\n文。"), ChunkingSpec())
    record = chunk.to_record()

    assert record.chunk_id == chunk.chunk_id
    assert (record.document_id, record.document_version) == ("refund-policy", "2025.3")
    assert (record.title, record.text, record.start, record.end) == ("甲", "# 甲\n文。", 0, 6)
    assert chunk.n_tokens == count_tokens("# 甲\n文。")


def test_ids_are_pinned_and_differ_by_tenant() -> None:
    documents = [make_document(MARKDOWN), make_document(MARKDOWN, tenant="yunshang")]
    ids = [chunk.chunk_id for chunk in chunk_documents(documents, ChunkingSpec())]

    assert ids[1] == "chunk-6f7ba88795b388176e5a708f"
    assert len(set(ids)) == 8


@pytest.mark.parametrize(
    ("given_spec", "message"),
    [
        ({"strategy": "semantic"}, "'semantic' is not one of fixed, recursive, heading"),
        ({"size": 0}, "at least 1 token"),
        ({"size": 10, "overlap": 10}, "0 to 9"),
        ({"overlap": -1}, "0 to 399"),
    ],
)
def test_a_spec_out_of_range_is_refused(given_spec: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ChunkingSpec(**given_spec)


@pytest.mark.parametrize(
    ("spans", "message"),
    [([(0, 2), (3, 5)], "broke at character 2"), ([(0, 4)], "lost the text from character 4")],
)
def test_a_chunking_that_loses_text_is_an_error(spans: list[tuple[int, int]], message: str) -> None:
    with pytest.raises(DocumentError, match=message):
        chunking._check_cover(make_document("甲乙丙丁戊"), spans, ChunkingSpec())


WORDS = st.lists(
    st.sampled_from(
        [
            *["退款", "审核通过后", "a", "word", "𠮷", "😀", "e\u0301", "。", "；", "，", "."],
            *["\n# 标题\n", "\n## **二** 级\n", "\n```\n", "\n- 项\n"],
            *[" ", "  ", "\n", "\n\n", "\u3000", "\t"],
        ]
    ),
    max_size=60,
).map("".join)


@given(WORDS, st.sampled_from(STRATEGIES), st.integers(1, 30), st.integers(0, 29), st.booleans())
@settings(deadline=None, database=None)
def test_chunks_cover_the_body(
    body: str, strategy: str, size: int, overlap: int, overlapping: bool
) -> None:
    spec = ChunkingSpec(strategy, size, min(overlap, size - 1) if overlapping else 0)
    chunks = chunk_document(make_document(body), spec)

    assert all(chunk.text == body[chunk.start : chunk.end] for chunk in chunks)
    assert all(chunk.text.strip() for chunk in chunks)
    assert len({chunk.chunk_id for chunk in chunks}) == len(chunks)
    if spec.overlap == 0 and body.strip():
        assert "".join(chunk.text for chunk in chunks) == body
    covered = {at for chunk in chunks for at in range(chunk.start, chunk.end)}
    assert covered == (set(range(len(body))) if body.strip() else set())
    assert all(one.start <= two.start for one, two in pairwise(chunks))


@given(
    st.text("退款审核ab𠮷😀。，", min_size=1, max_size=60),
    st.sampled_from(STRATEGIES),
    st.integers(1, 12),
    st.integers(0, 11),
)
@settings(deadline=None, database=None)
def test_a_chunk_is_not_above_its_size(body: str, strategy: str, size: int, overlap: int) -> None:
    spec = ChunkingSpec(strategy, size, min(overlap, size - 1))

    for chunk in chunk_document(make_document(body), spec):
        assert chunk.n_tokens == count_tokens(chunk.text)
        assert chunk.n_tokens <= size or len(chunk.text) == 1
