"""Chunkers of the user's own, and what tells one that loses text."""

import re
import sys

import pytest
import sweep_data
from hypothesis import given
from hypothesis import strategies as st

from ragwb.errors import DocumentError, UsageError
from ragwb.knowledge.document import Document
from ragwb.service.corpus import make_corpus
from ragwb.sweep.cutting import (
    articles,
    at_matches,
    character_windows,
    check_tiles,
    chunker_version,
    cut_corpus,
    load_chunker,
)


def document(body: str, name: str = "refund") -> Document:
    return Document("starmall", name, "1", "退款", "published", (), None, None, None, body)


@pytest.mark.parametrize(
    ("length", "size", "overlap", "spans"),
    [
        (10, 4, 0, [(0, 4), (4, 8), (8, 10)]),
        (8, 4, 0, [(0, 4), (4, 8)]),
        (10, 4, 2, [(0, 4), (2, 6), (4, 8), (6, 10)]),
        (3, 4, 0, [(0, 3)]),
        (1, 4, 2, [(0, 1)]),
    ],
)
def test_windows_start_at_every_step_before_the_last_overlap(length, size, overlap, spans):
    assert character_windows("x" * length, size, overlap) == spans


@given(st.text(min_size=1), st.integers(1, 30), st.data())
def test_windows_tile_any_text(text, size, data):
    overlap = data.draw(st.integers(0, size - 1))
    check_tiles(document(text), character_windows(text, size, overlap), overlap)


STATUTE = (
    "# 退货法\n\n2025年3月1日起施行\n\n## 第一章 总则\n\n### 第一节 范围\n\n"
    "第一条 本法适用于退货。\n\n第二条规定的除外。\n\n"
    "第二条之一\u3000退货期为七日，\n自签收之日起算。\n\n## 第二章 附则\n\n第10条【附则】完。\n"
)


def test_articles_take_the_headings_above_them_along():
    pieces = [STATUTE[start:end].strip() for start, end in articles(STATUTE, 400, 0)]
    assert [piece.split()[0] for piece in pieces] == ["#", "##", "第二条之一", "##"]
    # A line that cites an article begins none.
    assert pieces[1].endswith("第二条规定的除外。")
    assert pieces[1].startswith("## 第一章 总则\n\n### 第一节 范围\n\n第一条 ")
    assert pieces[3] == "## 第二章 附则\n\n第10条【附则】完。"


def test_a_text_without_articles_is_cut_by_size_alone():
    assert articles("退款三天内到账", 4, 0) == character_windows("退款三天内到账", 4, 0)


def test_only_a_long_piece_is_cut_and_only_there_is_an_overlap():
    text = "# a\n# bbbbbbbb\n# c"
    spans = at_matches(text, re.compile("^# ", re.MULTILINE), 6, 2)
    assert [text[start:end] for start, end in spans] == ["# a\n", "# bbbb", "bbbbbb", "bb\n", "# c"]


@given(
    st.lists(st.sampled_from(["第一条 ", "\n", "# 章\n", "退款", "x", "第二条\u3000"])), st.data()
)
def test_articles_tile_any_text(parts, data):
    text = "x" + "".join(parts)
    size = data.draw(st.integers(1, 12))
    overlap = data.draw(st.integers(0, size - 1))
    check_tiles(document(text), articles(text, size, overlap), overlap)


@pytest.mark.parametrize(
    ("spans", "overlap", "said"),
    [
        ([(0, 2)], 0, "lost the text from character 2"),
        ([(2, 6)], 0, "lost the text from character 0"),
        ([(0, 2), (3, 6)], 0, "lost the text from character 2"),
        ([(0, 4), (2, 6)], 0, "repeats the text from character 2"),
        ([(0, 4), (0, 6)], 1, "gave 0:6, no piece after 0"),
        ([(0, 0), (0, 6)], 0, "gave 0:0"),
        ([(0, 7)], 0, "gave 0:7"),
        ([(-1, 6)], 0, "gave -1:6"),
        ([], 0, "lost the text from character 0"),
    ],
)
def test_pieces_that_do_not_tile_are_refused(spans, overlap, said):
    with pytest.raises(DocumentError) as caught:
        check_tiles(document("退款三天到账"), spans, overlap)
    assert str(caught.value).startswith("refund version 1: the chunker ")
    assert said in str(caught.value)


def test_white_space_between_pieces_may_be_left_out():
    check_tiles(document("\n退款\n\n 到账\n"), [(1, 3), (6, 8)], 0)


def test_a_corpus_is_cut_by_a_function():
    corpus = make_corpus([(document("退款\n\n三天到账"), ())])
    cut = cut_corpus(corpus, "sweep_data:by_line", 1, 0)
    ((first, second),) = cut.chunks
    assert (first.text, second.text) == ("退款", "三天到账")
    assert (second.start, second.end, second.ordinal, second.title) == (4, 8, 1, "退款")
    assert cut.digest != corpus.digest


def test_pieces_of_white_space_make_no_chunk():
    cut = cut_corpus(
        make_corpus([(document("退款    三天"), ())]), "ragwb.sweep.cutting:character_windows", 2, 0
    )
    assert [chunk.text for chunk in cut.chunks[0]] == ["退款", "三天"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("sweep_data:loses_text", "lost the text from character 4"),
        ("sweep_data:repeats_text", "repeats the text from character 4"),
        ("sweep_data:raises", "failed: RuntimeError: no cut for today"),
    ],
)
def test_a_chunker_at_fault_names_the_document(name, said):
    corpus = make_corpus([(document("退款三天内到账的"), ())])
    with pytest.raises(DocumentError) as caught:
        cut_corpus(corpus, name, 10, 0)
    assert said in str(caught.value)
    assert "refund version 1" in str(caught.value)


@pytest.mark.parametrize("spans", [[(0.9, 8.9)], [("0", "8")], [(0, None)]])
def test_places_that_are_no_whole_numbers_are_refused(monkeypatch, spans):
    monkeypatch.setattr(sweep_data, "by_line", lambda *_: spans)
    corpus = make_corpus([(document("退款三天内到账的"), ())])
    with pytest.raises(DocumentError, match="failed: TypeError"):
        cut_corpus(corpus, "sweep_data:by_line", 10, 0)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import sys; sys.exit(0)", "RuntimeError: it raised SystemExit: 0"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("def cut(:", "SyntaxError"),
        ("print('HELLO'); cut = 5", "is not a function"),
    ],
)
def test_a_module_that_cannot_be_imported_is_one_line(tmp_path, monkeypatch, capsys, source, said):
    (tmp_path / "own_chunker_at_fault.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_chunker_at_fault", raising=False)
    with pytest.raises(UsageError, match=said):
        load_chunker("own_chunker_at_fault:cut")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("name", ["no_such_module:cut", "sweep_data:no_such_cut", "sweep_data:NOW"])
def test_a_chunker_that_is_none_is_refused(name):
    with pytest.raises(UsageError, match=r"chunker "):
        load_chunker(name)


def test_the_version_is_that_of_the_source():
    version = chunker_version("sweep_data:by_line")
    assert len(version) == 16
    assert version != chunker_version("ragwb.sweep.cutting:character_windows")
    # No file holds a function of the interpreter: its name must do.
    assert len(chunker_version("builtins:len")) == 16
