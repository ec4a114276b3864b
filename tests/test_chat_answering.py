"""What a model writes, read as an answer: modes, citations, and what cannot be used."""

from __future__ import annotations

import json

import pytest
from chat_fake import FakeModel, client, completion
from hypothesis import given
from hypothesis import strategies as st

from ragwb.chat.answering import RESPONSE_FORMAT, ask_model, find_citations, read_answer
from ragwb.chat.prompt import Passage, Prompt
from ragwb.chat.reply import WRONG_SHAPE
from ragwb.errors import ReplyError
from ragwb.records import Answer, Citation

PASSAGES = [Passage("c1", "退款三天到账。"), Passage("c2", "运费自付。")]
PROMPT = Prompt("p@1", "系统", "[{number}] {text}", "{passages}\n{question}", structured=True)


def said(**fields: object) -> str:
    return json.dumps({"mode": "answer", "text": "", "reason": None, "actions": [], **fields})


def cited(text: str) -> list[tuple[str, str | None]]:
    return [(one.chunk_id, one.claim) for one in find_citations(text, PASSAGES)]


def test_an_object_as_asked_for():
    answer = read_answer(said(text="退款三天到账[1]。运费自付[2]。"), PASSAGES)
    assert answer == Answer(
        mode="answer",
        text="退款三天到账。运费自付。",
        citations=[
            Citation(chunk_id="c1", claim="退款三天到账。"),
            Citation(chunk_id="c2", claim="运费自付。"),
        ],
        refusal_reason=None,
        actions=[],
    )


@pytest.mark.parametrize(
    "wrapped",
    ["{}", "```json\n{}\n```", "```\n{}\n```", "好的：\n{}\n希望有帮助。", "{} {{more}}"],
)
def test_an_object_in_whatever_it_is_wrapped(wrapped):
    text = wrapped.replace("{}", said(mode="refuse", text="没有", reason="NO_EVIDENCE"), 1)
    answer = read_answer(text, PASSAGES)
    assert (answer.mode, answer.text, answer.refusal_reason) == ("refuse", "没有", "NO_EVIDENCE")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"mode": "maybe"}, "mode 'maybe'"),
        ({"mode": None}, "mode None is none of"),
        ({"text": 3}, "a reply of a wrong shape: text 3 is not a text"),
        ({"text": None}, "text None is not a text"),
        ({"actions": "refund"}, "actions"),
        ({"actions": [1]}, "actions"),
    ],
)
def test_an_object_of_another_shape_is_an_error(fields, message):
    with pytest.raises(ReplyError, match=message):
        read_answer(said(**fields), PASSAGES)


def test_a_key_that_is_missing_is_said_with_those_that_are_there():
    with pytest.raises(ReplyError) as raised:
        read_answer('{"mode": "answer", "answer": "三天"}', PASSAGES)
    assert str(raised.value) == (
        "a reply of a wrong shape: the key text is missing, there is mode, answer"
    )
    with pytest.raises(ReplyError, match="the key mode is missing, there is text"):
        read_answer('{"text": "三天"}', PASSAGES)


@pytest.mark.parametrize("reason", [7, "because it is so", "", "x" * 50])
def test_a_reason_that_is_no_code_is_none(reason):
    assert read_answer(said(mode="refuse", reason=reason), PASSAGES).refusal_reason is None


def test_an_answer_has_no_reason_to_refuse():
    assert read_answer(said(reason="NO_EVIDENCE"), PASSAGES).refusal_reason is None


def test_actions_are_kept():
    assert read_answer(said(actions=["refund"]), PASSAGES).actions == ["refund"]


@pytest.mark.parametrize(
    ("text", "mode", "reason", "left"),
    [
        ("退款三天到账[1]。", "answer", None, "退款三天到账。"),
        ("REFUSE: NO_EVIDENCE\n资料里没有。", "refuse", "NO_EVIDENCE", "资料里没有。"),
        ("  CLARIFY：VERSION_MISSING。哪个型号？", "clarify", "VERSION_MISSING", "哪个型号？"),
        ("REFUSE", "refuse", None, ""),
        ("REFUSED goods come back.", "answer", None, "REFUSED goods come back."),
        ("", "answer", None, ""),
    ],
)
def test_plain_words(text, mode, reason, left):
    answer = read_answer(text, PASSAGES)
    assert (answer.mode, answer.refusal_reason, answer.text) == (mode, reason, left)


def test_an_object_that_is_none_of_an_answer_is_text():
    assert read_answer('用 {"a": 1} 表示', PASSAGES).text == '用 {"a": 1} 表示'


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("三天[1]。", [("c1", "三天。")]),
        ("三天。[1]", [("c1", "三天。")]),
        ("三天 [1, 2]。", [("c1", "三天。"), ("c2", "三天。")]),
        ("三天［1］，运费自付【2】。", [("c1", "三天，运费自付。"), ("c2", "三天，运费自付。")]),
        ("三天[1][2]", [("c1", "三天"), ("c2", "三天")]),
        ("A [1]. B [2].", [("c1", "A."), ("c2", "B.")]),
        ("版本 2025.3 有效[1]。", [("c1", "版本 2025.3 有效。")]),
        ("三天[1]。\n\n自付[2]！", [("c1", "三天。"), ("c2", "自付！")]),
        ("[1]", [("c1", None)]),
        ("没有引用", []),
        ("数组 `a[1]` 与 a[x]", []),
        ("[1000] [a] [] [1.5]", []),
    ],
)
def test_citations(text, found):
    assert cited(text) == found


@pytest.mark.parametrize(
    ("text", "ids"), [("```\nprint(a[1])\n```\n三天[2]。", ["c2"]), ("```\n没有结束 [1]", [])]
)
def test_code_cites_nothing(text, ids):
    assert [name for name, _ in cited(text)] == ids


def test_a_citation_of_no_passage_is_kept_as_unknown():
    assert cited("三天[9]，四天[0]。") == [("[9]", "三天，四天。"), ("[0]", "三天，四天。")]


def test_the_same_citation_ten_times_is_one():
    assert cited("三天" + "[1]" * 10 + "。") == [("c1", "三天。")]


def test_code_keeps_its_brackets():
    assert read_answer("用 `a[1]` 取值[2]。", PASSAGES).text == "用 `a[1]` 取值。"


def test_an_answer_of_50000_characters_is_read():
    answer = read_answer("很长。" * 16_667 + "[1]", PASSAGES)
    assert len(answer.text) == 50_001
    assert answer.citations == [Citation(chunk_id="c1", claim="很长。")]


def test_a_text_of_blanks_is_read_in_one_pass():
    # Quadratic, this took minutes.
    blanks = " " * 200_000
    assert read_answer(f"a{blanks}[{blanks}b [1]", PASSAGES).citations == [
        Citation(chunk_id="c1", claim=f"a{blanks}[{blanks}b")
    ]


@pytest.mark.parametrize("fields", [{"text": "\ud800 三天"}, {"actions": ["\udfff"]}])
def test_half_a_character_is_an_error_of_its_case(fields):
    with pytest.raises(ReplyError, match="half a character"):
        read_answer(said(**fields), PASSAGES)


def test_a_count_that_no_table_can_keep_is_unknown():
    usage = {"prompt_tokens": 10**30, "completion_tokens": 2**63}
    reply = completion(said(text="三天[1]。"), usage=usage, model=["m"])
    written = ask_model(client(FakeModel([reply])), PROMPT, "几天？", PASSAGES)
    assert written.completion is not None
    assert written.completion.prompt_tokens is None
    assert written.completion.completion_tokens is None
    assert written.completion.model is None


@given(st.text(st.sampled_from("a。.[1]9 \n`【】"), max_size=60))
def test_no_text_is_lost_but_its_marks(text):
    answer = read_answer(text, PASSAGES)
    assert set(answer.text) <= set(text)
    known = {one.chunk_id for one in answer.citations or ()}
    assert all(name in {"c1", "c2"} or name.startswith("[") for name in known)


def test_a_model_is_asked_with_the_schema_and_its_usage_is_kept():
    fake = FakeModel([said(text="三天[1]。")])
    written = ask_model(client(fake), PROMPT, "几天？", PASSAGES)
    assert fake.asked[0]["response_format"] == RESPONSE_FORMAT
    assert written.answer.text == "三天。"
    assert written.completion is not None
    assert written.completion.prompt_tokens == 11


def test_without_a_schema_only_the_words_ask_for_one():
    fake = FakeModel(["三天[1]。"])
    prompt = Prompt("p@1", "s", "{number}{text}", "{passages}{question}", structured=False)
    ask_model(client(fake), prompt, "几天？", PASSAGES)
    assert "response_format" not in fake.asked[0]


def test_an_answer_that_is_cut_off_is_an_error():
    fake = FakeModel([completion('{"mode": "answer", "text": "三', finish="length")])
    with pytest.raises(ReplyError, match="cut off at max_tokens 1024"):
        ask_model(client(fake), PROMPT, "几天？", PASSAGES)


def test_an_unusable_answer_names_the_endpoint():
    call = r"POST http://model\.example/v1/chat/completions"
    with pytest.raises(ReplyError, match=f"{call}: {WRONG_SHAPE}: mode 'x' is none of"):
        ask_model(client(FakeModel([said(mode="x")])), PROMPT, "几天？", PASSAGES)


def test_an_empty_answer_states_nothing():
    written = ask_model(client(FakeModel([completion("")])), PROMPT, "几天？", PASSAGES)
    assert (written.answer.mode, written.answer.text, written.answer.citations) == (
        "answer",
        "",
        [],
    )
