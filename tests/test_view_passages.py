"""Where a required passage stands in a chunk's text, and how it is marked."""

import pytest

from ragwb.golden.case import Case
from ragwb.golden.passages import ResolvedCase
from ragwb.golden.spans import Span
from ragwb.runs.results import ChunkText
from ragwb.view.passages import TEXT_LIMIT, marked_text, passage_spans

TEXT = "# 退款\n\n审核通过后 3 个工作日内到账。\n逾期可以投诉。"


def resolved(*passages, spans=()):
    evidence = [{"any_of": list(passages)}] if passages else []
    case = Case.model_validate(
        {"dataset_version": "v1", "id": "c1", "question": "q", "evidence": evidence}
        if passages
        else {"dataset_version": "v1", "id": "c1", "question": "q", "expected_chunk_ids": ["a"]}
    )
    return ResolvedCase(case=case, spans=spans)


def chunk(text=TEXT, document="refund", version="1", start=None):
    end = None if start is None else start + len(text)
    return ChunkText("a", document, version, "标题", text, start, end)


QUOTE = {"document_id": "refund", "quote": "3 个工作日内到账"}


def marked(case, one):
    return [one.text[start:end] for start, end in passage_spans(case, one)]


def test_a_quote_is_found_in_the_chunks_of_its_document():
    assert marked(resolved(QUOTE), chunk()) == ["3 个工作日内到账"]
    assert marked(resolved(QUOTE), chunk(document=None, version=None)) == ["3 个工作日内到账"]
    assert marked(resolved(QUOTE), chunk(document="other")) == []


def test_a_quote_of_another_version_is_not():
    passage = {**QUOTE, "document_version": "2"}
    assert marked(resolved(passage), chunk(version="1")) == []
    assert marked(resolved(passage), chunk(version="2")) == ["3 个工作日内到账"]


def test_white_space_at_line_ends_and_the_unicode_form_do_not_matter():
    passage = {"document_id": "refund", "quote": "cafe\u0301 到账。\n逾期"}
    assert marked(resolved(passage), chunk("caf\u00e9 到账。  \n逾期可以")) == [
        "caf\u00e9 到账。  \n逾期"
    ]


def test_the_part_of_a_split_passage_is_known_by_its_offsets():
    case = resolved(spans=(Span("refund", "1", 103, 120),))
    assert marked(case, chunk("0123456789", start=100)) == ["3456789"]
    assert marked(case, chunk("0123456789", start=110)) == ["0123456789"]
    assert marked(case, chunk("0123456789", start=200)) == []


def test_offsets_that_do_not_fit_the_text_mark_nothing():
    case = resolved(spans=(Span("refund", "1", 100, 104),))
    one = ChunkText("a", "refund", "1", None, "0123456789", 100, 150)
    assert passage_spans(case, one) == []


def test_passages_that_overlap_are_marked_once():
    case = resolved(QUOTE, {**QUOTE, "quote": "工作日内到账。"})
    assert marked(case, chunk()) == ["3 个工作日内到账。"]
    assert marked_text(case, chunk()).count("<mark>") == 1


@pytest.mark.parametrize("text", [None, ""])
def test_without_a_text_there_is_nothing_to_mark(text):
    one = ChunkText("a", "refund", "1", None, text)
    assert passage_spans(resolved(QUOTE), one) == []
    assert marked_text(resolved(QUOTE), one) == ("text not observed" if text is None else "")


def test_text_is_escaped_around_and_inside_a_mark():
    case = resolved({"document_id": "refund", "quote": "<b>到账</b>"})
    assert marked_text(case, chunk("<i><b>到账</b>")) == (
        "&lt;i&gt;<mark>&lt;b&gt;到账&lt;/b&gt;</mark>"
    )


def test_of_a_long_text_the_part_with_the_passage_is_shown():
    long = "长" * 5_000 + "3 个工作日内到账" + "尾" * 5_000
    shown = marked_text(resolved(QUOTE), chunk(long))
    assert "<mark>3 个工作日内到账</mark>" in shown
    assert shown.startswith("…长")
    assert shown.endswith("尾… (10,009 characters)")
    assert len(shown) < TEXT_LIMIT + 100
