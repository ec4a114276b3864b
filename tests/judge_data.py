"""Small rubrics, labels, verdicts and judges for tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx

from ragwb.chat.endpoint import ChatClient, ChatModel
from ragwb.judge.labels import Label, Labels
from ragwb.judge.rubric import load_rubric
from ragwb.judge.verdicts import Verdict, Verdicts

RUBRIC = """
name = "test"
version = "1"
kind = "{kind}"
instructions = "Decide."
[[criteria]]
name = "good"
question = "Is it good?"
scale = {scale}
{rest}
"""


def rubric_file(folder, *, kind="answer", scale="[1, 2, 3]", rest="accept_from = 2", name="r.toml"):
    path = folder / name
    path.write_text(RUBRIC.format(kind=kind, scale=scale, rest=rest), encoding="utf-8")
    return path


def rubric(folder, **given):
    return load_rubric(rubric_file(folder, **given))


def labels(rows, *, tags=None):
    """Labels of `(item, annotator, value)` on the criterion `good`."""
    return Labels(tuple(Label(i, who, "good", value) for i, who, value in rows), tags or {})


def verdicts(values, **given):
    """One verdict an item on the criterion `good`; None is unscored."""
    return Verdicts(
        tuple(
            Verdict(
                item_id=item_id,
                scores=None if value is None else {"good": value},
                unscored="malformed" if value is None else None,
                model="judge",
                rubric_hash="h",
                **given,
            )
            for item_id, value in values.items()
        )
    )


def completion(text, *, finish="stop", status=200):
    body = {
        "choices": [{"message": {"content": text}, "finish_reason": finish}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5},
    }
    return httpx.Response(status, json=body)


def judge(answer: Callable[[dict[str, Any]], httpx.Response], **given: Any) -> ChatClient:
    """A client whose endpoint is a function from the request's body to a response."""
    model = ChatModel(url="http://judge.example", model="judge", **given)
    transport = httpx.MockTransport(lambda asked: streamed(answer(json.loads(asked.content))))
    return ChatClient(model, transport=transport, sleep=lambda _: None)


def streamed(reply: httpx.Response) -> httpx.Response:
    """The same reply, its body not read yet, as one comes from the network."""
    body = httpx.ByteStream(reply.content)
    return httpx.Response(reply.status_code, headers=reply.headers, stream=body)


def says(text: str, **given: Any) -> ChatClient:
    """A judge that always says the same."""
    return judge(lambda _: completion(text), **given)


def write_lines(path, rows):
    """JSON Lines of some rows; gives the path."""
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_text("".join(lines), encoding="utf-8")
    return path
