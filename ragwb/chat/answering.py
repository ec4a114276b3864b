"""From a question and passages to an answer: a model is asked, and what it writes is read.

A citation is a number in brackets, such as [1], [1, 3] or 【2】, of a passage as numbered in the
prompt. Numbers in code are none. A number of no passage is kept as a citation of `[9]`: it is an
unknown citation, and must not vanish.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, get_args

from ragwb.chat.endpoint import ChatClient, Completion
from ragwb.chat.prompt import Passage, Prompt, build_messages
from ragwb.chat.reply import WRONG_SHAPE, find_object
from ragwb.errors import ReplyError
from ragwb.html import plain
from ragwb.records import Answer, Citation, Mode

MODES: tuple[str, ...] = get_args(Mode)
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "mode": {"type": "string", "enum": list(MODES)},
        "text": {"type": "string"},
        "reason": {"type": ["string", "null"]},
        "actions": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["mode", "text", "reason", "actions"],
    "additionalProperties": False,
}
RESPONSE_FORMAT: Mapping[str, Any] = {
    "type": "json_schema",
    "json_schema": {"name": "answer", "strict": True, "schema": SCHEMA},
}

_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_LIST = r"\d{1,3}(?:\s*[,，、;；]\s*\d{1,3})*"
# From the first blank on alone: from each of many, a text of blanks would take time without end.
_MARK = re.compile(
    rf"(?<![ \t])[ \t]*(?:\[\s*({_LIST})\s*\]|［\s*({_LIST})\s*］|【\s*({_LIST})\s*】)"
)
_NUMBER = re.compile(r"\d+")
# Where a sentence ends; what cites directly behind still belongs to it.
_END = re.compile(r"[。！？!?；;\n]+|\.(?=\s|\Z)")
_PLAIN_MODE = re.compile(r"\s*(REFUSE|CLARIFY)\b[ :：]*([A-Z][A-Z_]{1,39})?[ :：。.]*")
_HALF = re.compile("[\ud800-\udfff]")
# Of an object of another shape so many of its keys are named.
_MOST_KEYS = 8
_REASON = re.compile(r"[A-Z][A-Z_]{1,39}")


@dataclass(frozen=True, slots=True)
class Written:
    """An answer, and the call that it took; None when no model was asked."""

    answer: Answer
    completion: Completion | None = None


def ask_model(
    client: ChatClient, prompt: Prompt, question: str, passages: Sequence[Passage]
) -> Written:
    """A model's answer to a question over passages.

    Raises:
        SourceError: the endpoint failed, or its reply cannot be used: cut off, or JSON of another
            shape than was asked for.
    """
    asked = RESPONSE_FORMAT if prompt.structured else None
    completion = client.complete(build_messages(prompt, question, passages), response_format=asked)
    call = f"POST {client.model.address}"
    if completion.finish_reason == "length":
        said = f"{call}: cut off at max_tokens {client.model.max_tokens}: raise it"
        raise ReplyError(said, attempts=completion.attempts)
    try:
        return Written(read_answer(completion.text, passages), completion)
    except ReplyError as error:
        raise ReplyError(f"{call}: {error}", attempts=completion.attempts) from error


def read_answer(text: str, passages: Sequence[Passage]) -> Answer:
    """The answer that a model's text is: an object as asked for, or plain words with citations.

    A text that begins with REFUSE or CLARIFY and a reason code has that mode.

    Raises:
        ReplyError: an object of another shape.
    """
    said = find_object(text)
    if said is not None and {"mode", "text"} & said.keys():
        return _from_object(said, passages)
    stated = _PLAIN_MODE.match(text)
    if stated is None:
        return _answer("answer", text, passages)
    return _answer(stated[1].lower(), text[stated.end() :], passages, reason=stated[2])


def _from_object(said: Mapping[str, Any], passages: Sequence[Passage]) -> Answer:
    mode, text, actions = said.get("mode"), said.get("text"), said.get("actions") or []
    if mode not in MODES:
        raise _wrong(said, "mode", f"none of {', '.join(MODES)}")
    if not isinstance(text, str):
        raise _wrong(said, "text", "not a text")
    if not isinstance(actions, list) or not all(isinstance(name, str) for name in actions):
        raise _wrong(said, "actions", "not a list of texts")
    reason = said.get("reason")
    known = isinstance(reason, str) and _REASON.fullmatch(reason)
    return _answer(mode, text, passages, reason=reason if known else None, actions=actions)


def _wrong(said: Mapping[str, Any], key: str, fault: str) -> ReplyError:
    """What is wrong with a key of an object, or that it is missing and which are there."""
    if key in said:
        return ReplyError(f"{WRONG_SHAPE}: {key} {plain(repr(said[key]), width=40)} is {fault}")
    there = ", ".join(plain(name, width=20) for name in list(said)[:_MOST_KEYS])
    return ReplyError(f"{WRONG_SHAPE}: the key {key} is missing, there is {there}")


def _answer(
    mode: str,
    text: str,
    passages: Sequence[Passage],
    *,
    reason: str | None = None,
    actions: Sequence[str] = (),
) -> Answer:
    if any(_HALF.search(part) for part in (text, *actions)):
        raise ReplyError("half a character (a lone surrogate) in its text, which no file can keep")
    return Answer.model_validate(
        {
            "mode": mode,
            "text": without_marks(text).strip(),
            "citations": find_citations(text, passages),
            "refusal_reason": None if mode == "answer" else reason,
            "actions": list(actions),
        }
    )


def find_citations(text: str, passages: Sequence[Passage]) -> list[Citation]:
    """What a text cites, each with the sentence that it stands in or behind; each pair once."""
    found: dict[tuple[str, str | None], None] = {}
    for claim, numbers in _cited_sentences(text):
        for number in numbers:
            known = 1 <= number <= len(passages)
            chunk_id = passages[number - 1].chunk_id if known else f"[{number}]"
            found[(chunk_id, claim or None)] = None
    return [Citation(chunk_id=chunk_id, claim=claim) for chunk_id, claim in found]


def without_marks(text: str) -> str:
    """A text without its citations; brackets in code stay."""
    kept, at = [], 0
    for mark in _MARK.finditer(_blanked(text)):
        kept.append(text[at : mark.start()])
        at = mark.end()
    return "".join(kept) + text[at:]


def _cited_sentences(text: str) -> list[tuple[str, list[int]]]:
    """Sentences without their marks, and the numbers in them, in order."""
    blanked = _blanked(text)
    borders = [0, *(_behind_marks(blanked, end.end()) for end in _END.finditer(blanked))]
    found = []
    for start, end in pairwise([*borders, len(text)]):
        marks = _MARK.findall(blanked[start:end]) if start < end else []
        numbers = [int(n) for mark in marks for n in _NUMBER.findall("".join(mark))]
        if numbers:
            found.append((without_marks(text[start:end]).strip(), numbers))
    return found


def _behind_marks(blanked: str, at: int) -> int:
    while (mark := _MARK.match(blanked, at)) is not None:
        at = mark.end()
    return at


def _blanked(text: str) -> str:
    """A text of the same length in which code cites nothing and ends no sentence."""
    return _CODE.sub(lambda code: "x" * len(code[0]), text)
