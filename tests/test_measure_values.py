"""Values of a text: one spelling for all, and no value equal to one that only begins like it."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwb.measure.numerals import parse_number
from ragwb.measure.statements import find_contradiction, find_same
from ragwb.measure.values import find_values


def values(text):
    return [(value.kind, value.value) for value in find_values(text)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,300.5", Fraction(2601, 2)),
        ("一千三百", 1300),
        ("两百零五", 205),
        ("十二", 12),
        ("二十", 20),
        ("1.3万", 13_000),
        ("三万五千", 35_000),
        ("一亿零三", 100_000_003),
        ("二〇二五", 2025),
        ("半", Fraction(1, 2)),
        ("twelve", 12),
        ("百合", None),
        ("", None),
        ("1.2.3", None),
        ("9" * 5_000, None),
    ],
)
def test_a_number_is_read_in_arabic_chinese_and_english(text, value):
    assert parse_number(text) == value


@given(st.integers(1, 99_999_999))
def test_chinese_numerals_are_read_back(number):
    assert parse_number(in_chinese(number)) == number


def in_chinese(number):
    if number >= 10_000:
        rest = number % 10_000
        gap = "零" if 0 < rest < 1_000 else ""
        return in_chinese(number // 10_000) + "万" + gap + (in_chinese(rest) if rest else "")
    places = [(1000, "千"), (100, "百"), (10, "十"), (1, "")]
    written, gap = "", False
    for size, name in places:
        digit = number // size % 10
        if digit:
            written += ("零" if gap and written else "") + "零一二三四五六七八九"[digit] + name
        gap = not digit
    return written


SAME = [
    ["３ 个工作日", "三个工作日", "3 working days", "three business days", "3 business-days"],
    ["¥1,300", "1300 元", "一千三百元", "￥1300", "RMB 1300", "1,300.0 yuan"],
    ["2025年3月1日", "2025-03-01", "２０２５/3/1", "March 1, 2025", "1st Mar 2025", "2025.3.1"],
    ["11月20日", "十一月二十日", "11 月 20 号", "November 20", "20 Nov"],
    ["E-1042", "E1042", "Ｅ－１０４２", "E‑1042"],
    ["80%", "百分之八十", "８０％", "80 percent"],
    ["八五折", "8.5折", "85 折"],
    ["半小时", "0.5 小时", "0.5 hours"],
    ["v2.6.1", "版本 2.6.1", "2.6.1 版", "version 2.6.1"],
    ["1.3 万元", "13000 元"],
]


@pytest.mark.parametrize("spellings", SAME, ids=lambda spellings: spellings[0])
def test_spellings_of_one_value_are_equal(spellings):
    assert len({(value.kind, value.value) for s in spellings for value in find_values(s)}) == 1
    assert all(len(find_values(spelling)) == 1 for spelling in spellings)


DIFFERENT = [
    ("2025.3 版", "2025.30 版"),
    ("v2.6.1", "v2.6"),
    ("3 天", "13 天"),
    ("3 天", "3 个工作日"),
    ("E-1042", "M-1042"),
    ("E-1042", "E-104"),
    ("2025年3月1日", "2025年3月10日"),
    ("3 天", "3.5 天"),
    ("99 元", "99.5 元"),
]


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_values_that_begin_alike_are_not_equal(one, other):
    assert values(one)
    assert values(other)
    assert values(one) != values(other)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("价格 9.90 元，USB3.0 接口", [("quantity", "9.9 yuan")]),
        ("自 2025.11 起", []),
        ("3 dogs, 5 dishes", []),
        ("第三次", []),
        ("2025年13月，3月", []),
        ("编号 E-1042.5", []),
        ("", []),
    ],
)
def test_what_looks_like_a_value_and_is_none(text, found):
    assert values(text) == found


def test_values_know_where_they_stand():
    text = "退款３个工作日到账，E-1042 除外"
    assert [text[v.start : v.end] for v in find_values(text)] == ["３个工作日", "E-1042"]
    assert [v.text for v in find_values(text)] == ["３个工作日", "E-1042"]


@given(st.text(alphabet="三十3.,天元月日号年v版%E-1 2025", max_size=40))
def test_values_stand_in_their_text_and_do_not_overlap(text):
    found = find_values(text)
    assert all(text[value.start : value.end] == value.text for value in found)
    ends = [0, *(value.end for value in found)]
    assert all(value.start >= end for value, end in zip(found, ends, strict=False))


PINNED = "审核通过后 3 个工作日内到账"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("审核通过后五个工作日内到账", "五个工作日"),
        ("审核通过后３０个工作日内到账", "３０个工作日"),
        ("审核通过后三个工作日内到账", None),
        ("审核通过后 3 天内到账", None),
        ("审核 5 个工作日内完成", None),
        ("", None),
    ],
)
def test_the_same_words_with_another_value_contradict(text, said):
    found = find_contradiction(PINNED, text)
    assert (found.said.text if found else None) == said


def test_a_statement_of_little_but_a_value_pins_nothing():
    assert find_contradiction("3 天", "5 天") is None
    assert find_contradiction("没有数值的一句话", "没有数值的一句话") is None


def test_the_same_statement_is_found_however_its_values_are_spelt():
    assert find_same("7 天无理由退货", "仍可七天无理由退货。") == (2, 9)
    assert find_same("7 天无理由退货", "仍可 17 天无理由退货。") is None
    assert find_same("无理由退货", "无理由退货") is None
    text = "\ue0003 天到账"
    assert find_same("3 天到账", text) == (1, len(text))
