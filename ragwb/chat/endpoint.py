"""A model behind an OpenAI-compatible chat endpoint: what it is asked, and what it wrote."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
import pydantic_core

from ragwb.chat.connection import DEFAULT_TIMEOUT_S, Connection, Reply, check_endpoint
from ragwb.errors import UsageError

PATH = "/v1/chat/completions"
DEFAULT_MAX_TOKENS = 1024

# A role and a content.
Message = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatModel:
    """A model and where it is asked.

    Attributes:
        url: base URL, the part before `/v1/chat/completions`; never with credentials.
        model: the model's name, as the endpoint knows it.
        key_env: name of the environment variable that holds the key; None sends none.
        temperature: 0 to 2; 0 varies least.
        max_tokens: most tokens of a completion, at least 1.
        timeout_s: deadline of one attempt in seconds, > 0.
        seed: for endpoints that take one; None sends none.
    """

    url: str
    model: str
    key_env: str | None = None
    temperature: float = 0.0
    max_tokens: int = DEFAULT_MAX_TOKENS
    timeout_s: float = DEFAULT_TIMEOUT_S
    seed: int | None = None

    def __post_init__(self) -> None:
        check_endpoint(self.url, "the chat endpoint")
        _check_number("temperature", self.temperature, 0, 2)
        _check_number("max_tokens", self.max_tokens, 1, 1_000_000)
        _check_number("timeout_s", self.timeout_s, 0.001, 3600)
        if not isinstance(self.model, str) or not self.model.strip():
            raise UsageError("a chat model needs a name: say which one the endpoint has to use")

    @property
    def address(self) -> str:
        """Where the calls go."""
        return self.url.rstrip("/").removesuffix("/v1") + PATH


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model wrote, and what the call took.

    Attributes:
        text: "" when the model wrote nothing.
        finish_reason: `stop`, `length` when it was cut off at `max_tokens`, or the endpoint's own.
        model: what the endpoint says that it used; None when it does not.
        prompt_tokens, completion_tokens: usage as the endpoint counts it; None when it does not.
        attempts: number of calls made, from 1.
        latency_ms: of the call that succeeded; waited_ms: of all before it.
    """

    text: str
    finish_reason: str | None = None
    model: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    attempts: int = 1
    latency_ms: float = 0.0
    waited_ms: float = 0.0


class ChatClient:
    """The connection to one model; safe to call from several threads.

    Args:
        model: which one.
        transport: replaces the network; a seam for tests.
        sleep: waits so many seconds; a seam for tests.

    Raises:
        UsageError: the variable that should hold the key is empty.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.model = model
        self._connection = Connection(
            model.address,
            key_env=model.key_env,
            timeout_s=model.timeout_s,
            transport=transport,
            sleep=sleep,
        )

    def __enter__(self) -> ChatClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def complete(
        self, messages: Sequence[Message], *, response_format: Mapping[str, Any] | None = None
    ) -> Completion:
        """What the model writes after these messages.

        Args:
            messages: in order, each with a role and a content.
            response_format: e.g. a JSON schema as the OpenAI API takes it; None asks for text.

        Raises:
            UnreachableError: no whole answer, or not within the deadline.
            AccessError: 401 or 403.
            ReplyError: any other status than 2xx, or no chat completion.
        """
        return self._read(self._connection.post(self._request(messages, response_format)))

    def _request(
        self, messages: Sequence[Message], response_format: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.model.model,
            "messages": [dict(message) for message in messages],
            "temperature": self.model.temperature,
            "max_tokens": self.model.max_tokens,
            "stream": False,
        }
        if self.model.seed is not None:
            body["seed"] = self.model.seed
        if response_format is not None:
            body["response_format"] = dict(response_format)
        return body

    def _read(self, reply: Reply) -> Completion:
        try:
            said = pydantic_core.from_json(reply.body)
            choice = said["choices"][0]
            message = choice["message"]
            text = message.get("content") or message.get("refusal") or ""
            usage = said.get("usage") or {}
            return Completion(
                text=self._connection.scrub(_text(text)),
                finish_reason=_word(choice.get("finish_reason")),
                model=_word(said.get("model")),
                prompt_tokens=_count(usage.get("prompt_tokens")),
                completion_tokens=_count(usage.get("completion_tokens")),
                attempts=reply.attempts,
                latency_ms=reply.latency_ms,
                waited_ms=reply.waited_ms,
            )
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            raise self._connection.wrong_shape("not a chat completion", reply.attempts) from error


def _text(content: Any) -> str:
    """The content of a message: a text, or the texts of its parts."""
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in content if part.get("type") == "text")


def _count(value: Any) -> int | None:
    """A number of tokens as far as a run's tables can keep it; anything else is unknown."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
    return value if is_count else None


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _check_number(name: str, value: float, low: float, high: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise UsageError(f"{name} {value!r}: must be a number from {low:g} to {high:g}")
