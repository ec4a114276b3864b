from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragwb.golden.quotes import normalise_text


@pytest.mark.parametrize(
    ("text", "quote", "spans"),
    [
        ("甲乙丙", "乙", [(1, 2)]),
        ("甲乙甲乙", "甲乙", [(0, 2), (2, 4)]),
        ("aaa", "aa", [(0, 2), (1, 3)]),
        ("甲乙丙", "丁", []),
        ("甲乙丙", " ", []),
        # Code points, not bytes or UTF-16 units.
        ("𠮷😀退款", "退款", [(2, 4)]),
        # NFD in the text, NFC in the quote, and the other way round.
        ("x cafe\u0301 y", "café", [(2, 7)]),
        ("x café y", "cafe\u0301", [(2, 6)]),
        # Three jamo compose to one syllable; a mark can reorder before it composes.
        ("\u1112\u1161\u11ab글", "한", [(0, 3)]),
        ("a\u0323\u0307b", "a\u0307\u0323b", [(0, 4)]),
        # White space at line ends, and the line ends themselves.
        ("甲  \n乙\t\n丙", "甲\n乙\n丙", [(0, 8)]),
        ("甲\n乙", "甲  \r\n乙 \n", [(0, 3)]),
        ("甲\r\n乙\r丙", "甲\n乙\n丙", [(0, 6)]),
        # White space elsewhere counts.
        ("甲 乙", "甲乙", []),
        ("甲\n  乙", "甲\n乙", []),
    ],
)
def test_places_of_a_quote(text: str, quote: str, spans: list[tuple[int, int]]) -> None:
    assert normalise_text(text).find(quote) == spans


TEXTS = st.text("ae\u0301\u0323\u0307é한\u1112\u1161\u11ab退𠮷 \n", max_size=30)


@given(TEXTS)
@settings(deadline=None, database=None)
def test_the_view_is_the_nfc_and_leads_back(text: str) -> None:
    view = normalise_text(text)
    lines = [line.rstrip(" ") for line in text.split("\n")]

    assert view.text == unicodedata.normalize("NFC", "\n".join(lines))
    assert len(view.starts) == len(view.ends) == len(view.text)
    for start, end, after in zip(view.starts, view.ends, view.text, strict=True):
        assert after in unicodedata.normalize("NFC", text[start:end])


@given(TEXTS, st.integers(0, 30), st.integers(1, 10), st.sampled_from(["NFC", "NFD"]))
@settings(deadline=None, database=None)
def test_a_part_of_a_text_is_found_in_it(text: str, start: int, length: int, form: str) -> None:
    view = normalise_text(text)
    part = view.text[start : start + length].rstrip()
    quote = unicodedata.normalize("NFC", part)
    found = view.find(unicodedata.normalize(form, quote))  # type: ignore[arg-type]

    if quote and quote == part and unicodedata.is_normalized("NFC", quote):
        assert (view.starts[start], view.ends[start + len(part) - 1]) in found
