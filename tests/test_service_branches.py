"""Where documents branch: codes of several documents, conflicting numbers, hardly a word."""

from __future__ import annotations

from pathlib import Path

import pytest
from service_corpus import make_pipeline, write_document

from ragwb.service.branches import (
    Quote,
    about_codes,
    find_branching,
    holds_codes,
    missing_code,
    named_codes,
)
from ragwb.service.corpus import sentences
from ragwb.service.extractive import Calibration
from ragwb.service.index import Index

BORDERS = Calibration(evidence=0.5, scope=0.4, closed=0.1, near=0.2, rival=0.1, same=0.2)
NEW = "# 设备\n\n## 扫地机器人 RV-520\n\n代码 H03 主刷缠绕，清理主刷。H07 尘盒未装好。\n"
OLD = "# 旧设备\n\n## 扫地机器人 RV-310\n\n代码 H03 边刷脱落，重新卡紧。H07 水箱未装。\n"
APP = "# App 错误码\n\n## 登录\n\n错误码 E-1042 会话过期，重新登录。\n"
SHOP = "# 商家错误码\n\n## 权限\n\n错误码 M-1042 子账号停用，联系店主。\n"
DEPOT = "# 仓库\n\n## 时限\n\n现货订单应在付款后 24 小时内发出。\n"
MERCHANT = "# 店铺\n\n## 时限\n\n现货订单应在付款后 72 小时内发出。\n"


def index_of(folder: Path, **bodies: str) -> Index:
    (folder / "corpus").mkdir()
    for name, body in bodies.items():
        write_document(folder / "corpus", name, body, title=name)
    return make_pipeline(folder).index


def quotes_of(index: Index, scores: dict[str, float] | None = None) -> list[Quote]:
    """Every sentence, with the score of the first of these texts that stands in it."""
    found = []
    for row, chunk in enumerate(index.chunks(range(len(index.chunk_ids)))):
        for place, text in enumerate(sentences(chunk.text or "")):
            score = next((s for part, s in (scores or {}).items() if part in text), 0.5)
            found.append(Quote(row, place, chunk.title or "", text, score))
    return sorted(found, key=lambda quote: -quote.score)


@pytest.fixture
def devices(tmp_path: Path) -> Index:
    return index_of(tmp_path, new=NEW, old=OLD)


def ask(question: str, index: Index, **scores: float):
    return find_branching(question, quotes_of(index, scores), index, BORDERS)


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("RV-720 报 H15", ["rv-720", "h15"]),
        ("ｅ－１０４７ 怎么办", ["e-1047"]),
        ("版本 v8.3.0 与 2025.3", ["v8"]),
        ("订单 AS1234567890", []),
        ("没有代码，1042 也不是", []),
        ("E-1047 和 e-1047", ["e-1047"]),
    ],
)
def test_codes_of_a_text(text, codes):
    assert named_codes(text) == codes


def test_a_code_of_two_documents_leaves_the_model_open(devices):
    found = ask("扫地机器人报 H03 是什么问题", devices)
    assert found is not None
    assert found.reason == "VERSION_MISSING"
    assert {quote.text for quote in found.quotes} == {
        "代码 H03 主刷缠绕，清理主刷。",
        "代码 H03 边刷脱落，重新卡紧。",
    }
    assert set(found.names) == {"扫地机器人 RV-520", "扫地机器人 RV-310"}


def test_the_model_settles_it(devices):
    assert ask("RV-520 报 H03 是什么问题", devices) is None


def test_a_number_without_its_letter_may_be_either(tmp_path):
    index = index_of(tmp_path, app=APP, shop=SHOP)
    found = ask("报错 1042 是什么", index)
    assert found is not None
    assert found.reason == "CONDITION_MISSING"
    assert len(found.quotes) == 2
    assert ask("商家 报错 1042 是什么", index) is None
    assert ask("报错 E-1042 是什么", index) is None


def test_documents_that_contradict_one_another(tmp_path):
    index = index_of(tmp_path, depot=DEPOT, merchant=MERCHANT)
    found = find_branching("现货订单付款后多久必须发出", quotes_of(index), index, BORDERS)
    assert found is not None
    assert found.reason == "EVIDENCE_CONFLICT"
    assert {"24" in quote.text for quote in found.quotes} == {True, False}


@pytest.mark.parametrize(
    "other", [DEPOT, MERCHANT.replace("72 小时", "24 小时").replace("店铺", "x")]
)
def test_the_same_number_is_no_conflict(tmp_path, other):
    index = index_of(tmp_path, depot=DEPOT, other=other)
    assert find_branching("现货订单付款后多久必须发出", quotes_of(index), index, BORDERS) is None


def test_a_worse_sentence_is_no_rival(tmp_path):
    index = index_of(tmp_path, depot=DEPOT, merchant=MERCHANT)
    quotes = quotes_of(index, {"24": 0.9, "72": 0.7})
    assert find_branching("现货订单付款后多久必须发出", quotes, index, BORDERS) is None


def test_hardly_a_word_and_three_documents(tmp_path):
    bodies = {
        f"d{place}": f"# {thing}\n\n## {thing}期限\n\n{thing}自开通之日起计算。\n"
        for place, thing in enumerate(["积分", "礼品卡", "优惠券"])
    }
    index = index_of(tmp_path, **bodies)
    found = find_branching("有效期是多久", quotes_of(index), index, BORDERS)
    assert found is not None
    assert found.reason == "CONDITION_MISSING"
    assert len(found.names) == 3
    many_words = "手机刚买完就降价，几天之内可以要求补差价"
    assert find_branching(many_words, quotes_of(index), index, BORDERS) is None


def test_without_borders_only_codes_branch(tmp_path):
    index = index_of(tmp_path, depot=DEPOT, merchant=MERCHANT)
    assert find_branching("多久发出", quotes_of(index), index, None) is None


def test_what_a_code_is_about(devices):
    left = about_codes("RV-520 报 H03", quotes_of(devices))
    assert [quote.text for quote in left] == ["代码 H03 主刷缠绕，清理主刷。"]


def test_without_codes_every_sentence_stays(devices):
    assert len(about_codes("扫地机器人", quotes_of(devices))) == 4


def test_codes_that_are_held_or_missing(devices):
    quotes = quotes_of(devices)
    assert holds_codes("RV-310 报 H07", quotes)
    assert not holds_codes("RV-310 报 H99", quotes)
    assert not holds_codes("没有代码", quotes)
    assert missing_code("RV-910 吸力多大", quotes) == "rv-910"
    assert missing_code("RV-310 吸力多大", quotes) is None
    assert missing_code("H99 是什么", quotes) is None


def test_a_row_of_a_table_is_quoted_without_its_bars():
    assert Quote(0, 0, "", "| E-1 | 过期 |", 0.5).said == "E-1 | 过期"
