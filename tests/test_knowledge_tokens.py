from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ragwb.knowledge.tokens import count_tokens, token_spans


def test_counts_of_the_named_vocabulary() -> None:
    # o200k_base knows 退款 and 审核 as one token each, and 𠮷 only by its four bytes.
    assert count_tokens("") == 0
    assert count_tokens("退款审核") == 2
    assert count_tokens("𠮷") == 4


def test_a_code_point_of_several_tokens_is_one_span() -> None:
    assert token_spans("退款𠮷。") == [(0, 2), (2, 3), (3, 4)]
    assert token_spans("") == []


def test_names_of_special_tokens_are_plain_text() -> None:
    assert count_tokens("<|endoftext|>") > 1


def test_a_lone_surrogate_keeps_the_offsets() -> None:
    assert token_spans("\ud83d\ude00退款")[-1] == (2, 4)


def test_a_text_longer_than_the_tokenizer_takes() -> None:
    # It refuses more than 200,000 tokens, and a million characters.
    text = "退款审核通过。\n" * 150_000

    assert count_tokens(text) == 150_000 * count_tokens("退款审核通过。\n")
    assert count_tokens("𠮷" * 60_000) == 240_000
    assert token_spans("a" * 1_000_001)[-1][1] == 1_000_001


@given(st.text(max_size=80))
@settings(deadline=None, database=None)
def test_spans_tile_the_text(text: str) -> None:
    spans = token_spans(text)

    assert [start for start, _ in spans] == [0, *(end for _, end in spans)][: len(spans)]
    assert all(start < end for start, end in spans)
    assert (spans[-1][1] if spans else 0) == len(text)
    assert len(spans) <= count_tokens(text)
