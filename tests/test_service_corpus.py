from __future__ import annotations

from pathlib import Path

from service_corpus import write_corpus, write_document

from ragwb.knowledge.chunking import ChunkingSpec
from ragwb.service.corpus import read_corpus, sentences, text_hash, words


def test_sentences_end_at_chinese_marks_and_leave_headings_out() -> None:
    text = "## 到账时间\n\n储蓄卡三天内到账。信用卡要五天！“是不是到账了？”客服会告诉你。\n"

    assert sentences(text) == [
        "储蓄卡三天内到账。",
        "信用卡要五天！",
        "“是不是到账了？”",
        "客服会告诉你。",
    ]


def test_a_short_piece_stays_with_the_next_and_the_last_with_the_one_before() -> None:
    assert sentences("好的。请在三天内寄回商品。谢谢。") == ["好的。请在三天内寄回商品。谢谢。"]


def test_a_text_without_sentences_is_one() -> None:
    assert sentences("# 只有标题\n") == ["# 只有标题"]
    assert sentences("短") == ["短"]


def test_words_of_two_characters_and_codes_are_tokens() -> None:
    found = words("错误码 E-1047：员工ＶＰＮ，版本 2025.3。")

    assert {"错误", "e-1047", "员工", "vpn", "2025.3"} <= set(found)
    assert not {"：", " ", "。"} & set(found)


def test_text_hash_ignores_outer_white_space_and_unicode_form() -> None:
    assert text_hash("café  \r\n") == text_hash("café\n\n")
    assert text_hash("a") != text_hash("b")


def test_snapshot_covers_published_documents_only(tmp_path: Path) -> None:
    folder = write_corpus(tmp_path)
    before = read_corpus(folder, ChunkingSpec())
    write_document(folder, "draft", "# 草稿\n\n改过。\n", status="unpublished")
    after_draft = read_corpus(folder, ChunkingSpec())
    write_document(folder, "codes", "# 错误码\n\n改过。\n")
    after_published = read_corpus(folder, ChunkingSpec())

    assert before.snapshot == after_draft.snapshot
    assert before.digest != after_draft.digest
    assert after_draft.snapshot != after_published.snapshot
