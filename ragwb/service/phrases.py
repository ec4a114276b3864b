"""What the extractive answerer says in words of its own, and words that it never quotes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ragwb.records import Answer, RefusalReason

_HAN = re.compile(r"[\u3400-\u9fff]")
_REFUSALS: dict[str, tuple[str, str]] = {
    "NO_EVIDENCE": (
        "现有资料里没有能回答这个问题的内容。",
        "The documents hold nothing that answers this question.",
    ),
    "NOT_PERMITTED": (
        "回答这个问题需要你无权查看的资料。",
        "Answering this needs documents that you may not read.",
    ),
    "OUT_OF_SCOPE": (
        "这个问题不在资料的范围之内。",
        "This question is outside of what the documents are about.",
    ),
}
_BACK: dict[str, tuple[str, str]] = {
    "VERSION_MISSING": (
        "不同型号或版本的答案不同，请说明是哪一个",
        "The answer depends on the model or version; please say which one",
    ),
    "CONDITION_MISSING": (
        "不同情形的答案不同，请说明是哪一种",
        "The answer depends on the case; please say which one",
    ),
    "EVIDENCE_CONFLICT": (
        "资料里的说法不一致，请说明情形，或向负责人核实",
        "The documents contradict one another; please say more, or have it checked",
    ),
}
# A passage that tells a machine what to do is no statement of the documents.
_ADDRESSED = re.compile(
    r"(忽略|无视|忘记).{0,16}(规则|指令|政策|提示|要求)"
    r"|从现在起你(是|必须|要)"
    r"|(ignore|disregard|forget)\s.{0,24}\b(instructions?|rules|prompts?)\b"
    r"|you are now\b",
    re.IGNORECASE,
)


def is_addressed_to_machine(sentence: str) -> bool:
    """Whether a sentence gives orders to whoever reads it by machine: a planted instruction."""
    return _ADDRESSED.search(sentence) is not None


def refusal(question: str, reason: RefusalReason) -> Answer:
    """A refusal in the question's language, Chinese or English."""
    return Answer(
        mode="refuse",
        text=_REFUSALS[reason][_language(question)],
        citations=[],
        refusal_reason=reason,
        actions=[],
    )


def asking_back(question: str, reason: RefusalReason, names: Sequence[str]) -> str:
    """The question back: what has to be said, and between which names, in its language."""
    language = _language(question)
    asked = _BACK[reason][language]
    if not names:
        return asked + ("：" if language == 0 else ":")
    joined = " / ".join(names)
    return f"{asked}（{joined}）：" if language == 0 else f"{asked} ({joined}):"


def _language(question: str) -> int:
    return 0 if _HAN.search(question) else 1
