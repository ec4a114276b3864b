"""Whether a text states a claim, and which claims it is made of."""

import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ragwb.errors import MetricError
from ragwb.golden.case import Claim
from ragwb.measure import patterns
from ragwb.measure.claims import find_claim, split_claims
from ragwb.measure.patterns import search
from ragwb.measure.wording import fold, fold_widths


@pytest.mark.parametrize(
    ("wording", "text", "found"),
    [
        ("３個工作日", "約 3 個 工作日 到帳", "3 個 工作日"),
        ("E-1042", "错误码 ｅ－１０４２ 表示", "ｅ－１０４２"),
        ("e-1042", "错误码 E‑1042", "E‑1042"),
        ("Refund", "a REFUND is due", "REFUND"),
        ("straße", "STRASSE 12", "STRASSE"),
        ("满 99", "满 99. 另计", "满 99"),
        ("原路退回", "款项原路\n退回", "原路\n退回"),
        ("3天", "1,3天均可", "3天"),
        ("2025.3", "见 2025.3。", "2025.3"),
        ("ガス", "ｶﾞｽ 料金", "ｶﾞｽ"),
    ],
)
def test_a_wording_is_found_whatever_its_width_case_and_white_space(wording, text, found):
    claim = find_claim(Claim(text=wording), text)
    assert claim is not None
    assert (claim.how, claim.text) == ("variant", found)
    assert text[claim.start : claim.end] == found


@pytest.mark.parametrize(
    ("wording", "text"),
    [
        ("3 天", "13 天"),
        ("3 天", "0.3 天"),
        ("2025.3", "2025.30"),
        ("2025.3", "2025.3.1"),
        ("满 99", "满 99.5 元"),
        ("300 元", "1,300 元"),
        ("三天", "十三天"),
        ("E-104", "E-1042"),
    ],
)
def test_a_number_must_be_the_whole_number(wording, text):
    assert find_claim(Claim(text=wording), text) is None


def test_a_later_place_counts_when_an_earlier_one_cuts_a_number():
    found = find_claim(Claim(text="3 天"), "13 天或 3 天")
    assert found is not None
    assert found.start == 6


def test_variants_come_before_the_pattern_and_both_are_named():
    claim = Claim(text="三日", variants=("3 天",), pattern=r"3\s*days")
    assert find_claim(claim, "3 days, 3 天").how == "variant"
    assert find_claim(claim, "in 3 days").how == "pattern"
    assert find_claim(claim, "in ３ days").text == "３ days"
    assert find_claim(claim, "") is None


def test_a_pattern_that_matches_nothing_visible_states_nothing():
    assert find_claim(Claim(text="x", pattern="y*"), "abc") is None


def test_a_pattern_that_backtracks_for_ever_is_named():
    with pytest.raises(MetricError, match=r"took more than 0.01 s on a text of 60 characters"):
        search(SLOW, "a" * 60, limit_s=0.01)


def test_a_pattern_that_is_none_is_named():
    with pytest.raises(MetricError, match="not a regular expression"):
        patterns.compile_pattern("(")


SLOW = r"(a|aa)+(?=[^a]x)"
SPLIT = [
    ("3 天到账[1]，但周末除外。", ["3 天到账", "但周末除外"]),
    ("审核后到账。[1] 逾期可申诉；不受理！", ["审核后到账", "逾期可申诉", "不受理"]),
    (
        "See No. 5 of version 2025.3. Refunds, e.g. vouchers, take 3 days, and fees apply [2].",
        ["See No. 5 of version 2025.3", "Refunds, e.g. vouchers, take 3 days", "and fees apply"],
    ),
    ("# 运费\n- 满 99 元包邮[1]\n- 不满收 8 元", ["满 99 元包邮", "不满收 8 元"]),
    ("1. 先登录。\n(2) 再重试", ["先登录", "再重试"]),
    ("```\na. b。c\n```\n完成。", ["完成"]),
    ("您用的是哪个版本？请告诉我。", ["请告诉我"]),
    ("退款（含运费，但不含税）三天到账", ["退款（含运费，但不含税）三天到账"]),
    ("他说：“三天到账。”之后关闭。", ["他说：“三天到账。”", "之后关闭"]),
    ("", []),
    ("[1][2]。", []),
    (" \n\t", []),
]


@pytest.mark.parametrize(("text", "claims"), SPLIT)
def test_a_text_is_split_into_its_claims(text, claims):
    assert [claim.text for claim in split_claims(text)] == claims


HOSTILE = [
    "." * 50_000 + "x",
    " " * 50_000 + "x",
    "a. " * 17_000,
    "[1]" * 16_000,
    "(" * 50_000 + "，但x",
    "，但" * 16_000,
    "`" * 50_000,
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:3])
def test_50_000_characters_are_split_whatever_they_are(text):
    # A rule that goes over the text again for every sign would take minutes here.
    for claim in split_claims(text):
        assert text[claim.start : claim.end] == claim.text
    assert find_claim(Claim(text="三天到账"), text) is None


@given(st.text(alphabet="天 3[1]。，但.a?？\n#-（）(）“”`", max_size=60))
def test_claims_stand_in_their_text_in_order_and_do_not_overlap(text):
    claims = split_claims(text)
    for claim in claims:
        assert text[claim.start : claim.end] == claim.text
        assert re.search(r"\w", claim.text)
    ends = [0, *(claim.end for claim in claims)]
    assert all(claim.start >= end for claim, end in zip(claims, ends, strict=False))


def reference_fold(text):
    spelt = re.sub("[\u2010\u2011\u2012\u2212]", "-", text)
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", spelt).casefold())
    invisible = "\u200b\u2060\ufeff\u00ad"
    return "".join(c for c in folded if not c.isspace() and c not in invisible)


@given(st.text(max_size=40))
@example("ｶﾞ e\u0301 ㎏ ﬁ")
@example("\u1100\u1161\u11a8")
def test_the_folded_view_is_nfkc_and_leads_back(text):
    view = fold(text)
    assert view.text == reference_fold(text)
    assert list(view.starts) == sorted(view.starts)
    for at, character in enumerate(view.text):
        start, end = view.span(at, at + 1)
        assert character in reference_fold(text[start:end])


@given(st.text(alphabet="ａA １1。 ¥￥", max_size=30))
def test_widths_alone_are_folded_for_patterns(text):
    assert fold_widths(text).text == unicodedata.normalize("NFKC", text)


@given(st.text(alphabet="天到账ab", min_size=1, max_size=8), st.text(max_size=20))
def test_a_claim_is_found_in_what_quotes_it(wording, around):
    # Letters after white space stand apart; a mark that would melt into the wording does not.
    found = find_claim(Claim(text=wording), f"{around}\n{wording}\n")
    assert found is not None
