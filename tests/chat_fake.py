"""A chat endpoint in a few lines, as a transport of httpx or behind a real socket."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
from loopback import Reply, json_reply, serve

from ragwb.chat.endpoint import PATH, ChatClient, ChatModel

URL = "http://model.example"


def completion(text: str | None, *, finish: str = "stop", **more: Any) -> Reply:
    """A whole reply of the protocol."""
    return json_reply(
        {
            "model": "fake-1",
            "choices": [
                {"message": {"role": "assistant", "content": text}, "finish_reason": finish}
            ],
            "usage": {"prompt_tokens": 11, "completion_tokens": 5},
            **more,
        }
    )


@dataclass
class FakeModel:
    """Replies in order, the last one for ever; each a text, a reply, or a function of the body."""

    replies: list[str | Reply | Callable[[dict[str, Any]], Reply]]
    asked: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def answer(self, _method: str, path: str, headers: dict[str, str], body: bytes) -> Reply:
        said = json.loads(body)
        self.asked.append(said)
        self.paths.append(path)
        self.headers.append(headers)
        reply = self.replies[min(len(self.asked), len(self.replies)) - 1]
        if callable(reply):
            return reply(said)
        return completion(reply) if isinstance(reply, str) else reply

    def transport(self) -> httpx.MockTransport:
        def handle(request: httpx.Request) -> httpx.Response:
            status, headers, body = self.answer(
                request.method, request.url.path, dict(request.headers), request.content
            )
            return httpx.Response(status, headers=headers, content=body)

        return httpx.MockTransport(handle)

    @contextmanager
    def serve(self) -> Iterator[str]:
        with serve(self.answer) as url:
            yield url


def client(
    fake: FakeModel | None = None, *, waits: list[float] | None = None, **settings: Any
) -> ChatClient:
    """A client of the fake, or of another transport."""
    transport = settings.pop("transport", None) or (fake.transport() if fake else None)
    model = ChatModel(**{"url": URL, "model": "m", **settings})
    return ChatClient(model, transport=transport, sleep=(waits if waits is not None else []).append)


__all__ = ["PATH", "URL", "FakeModel", "client", "completion"]
