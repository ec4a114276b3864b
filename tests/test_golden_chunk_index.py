from __future__ import annotations

from golden_data import cut

from ragwb.golden.chunk_index import ChunkIndex
from ragwb.records import Chunk

BODY = "甲甲甲。乙乙乙。丙丙丙。"
TILES = [(0, 4), (4, 8), (8, 12)]


def test_chunks_are_known_by_id_and_document() -> None:
    index = ChunkIndex([*cut(BODY, TILES), *cut("旧", [(0, 1)], document_version="1", prefix="d")])

    assert len(index) == 4
    assert "c0" in index
    assert "x" not in index
    assert index.versions("refund-policy") == ["1", "2025.3"]
    assert [body.text for body in index.bodies("refund-policy", "2025.3")] == [BODY]
    assert [body.text for body in index.bodies("refund-policy", None)] == ["旧", BODY]
    assert index.bodies("refund-policy", "2") == index.bodies("fee", None) == []


def test_the_order_of_the_chunks_does_not_matter() -> None:
    chunks = cut(BODY, [(0, 5), (3, 9), (8, 12)])

    (body,) = ChunkIndex(chunks[::-1]).bodies("refund-policy", "2025.3")
    assert body.text == BODY
    assert [name for _, _, name in body.chunks] == ["c0", "c1", "c2"]


def test_a_chunk_told_twice_is_one() -> None:
    (body,) = ChunkIndex(cut(BODY, TILES) * 2).bodies("refund-policy", "2025.3")

    assert body.smallest_cover((2, 10)) == [("c0",), ("c1",), ("c2",)]


def test_one_text_under_two_ids_is_held_twice_and_covers_once() -> None:
    chunks = [*cut(BODY, TILES), *cut(BODY, TILES, prefix="copy")]
    (body,) = ChunkIndex(chunks).bodies("refund-policy", "2025.3")

    assert body.holders((5, 7)) == ["c1", "copy1"]
    assert body.smallest_cover((2, 6)) == [("c0", "copy0"), ("c1", "copy1")]


def test_two_tenants_may_have_a_document_of_one_name() -> None:
    other = "丁丁丁丁丁。戊戊。"
    chunks = [*cut(BODY, TILES), *cut(other, [(0, 6), (6, 9)], prefix="d")]

    texts = {body.text for body in ChunkIndex(chunks).bodies("refund-policy", "2025.3")}
    assert texts == {BODY, other}


def test_a_gap_between_chunks_is_white_space() -> None:
    (body,) = ChunkIndex(cut("甲。\n\n乙。", [(0, 2), (4, 6)])).bodies("refund-policy", "2025.3")

    assert body.text == "甲。\n\n乙。"
    assert body.smallest_cover((0, 6)) == [("c0",), ("c1",)]
    assert body.touching((2, 4)) == body.smallest_cover((2, 4)) == []


def test_chunks_without_code_point_offsets_are_texts_of_their_own() -> None:
    chunks = [
        Chunk(chunk_id="a", document_id="d", document_version="1", text="甲"),
        Chunk(chunk_id="b", document_id="d", document_version="1", text="𠮷乙", start=0, end=3),
        Chunk(chunk_id="c", document_id="d", document_version="1", text="丙", start=0, end=1),
    ]

    bodies = ChunkIndex(chunks).bodies("d", "1")
    assert sorted((body.text, body.is_whole) for body in bodies) == [
        ("丙", True),
        ("甲", False),
        ("𠮷乙", False),
    ]


def test_a_chunk_without_text_is_known_by_its_id_alone() -> None:
    index = ChunkIndex([Chunk(chunk_id="a"), Chunk(chunk_id="b", document_id="d")])

    assert "a" in index
    assert index.bodies("d", None) == []
