"""The client of any OpenAI-compatible chat endpoint: one call that ends, and one line per fault.

As with the calls of the protocol, a call that is cut off or answered 429, 502, 503 or 504 is made
again, never earlier than `Retry-After` says; a deadline that passes and a 500 are not. Redirects
are not followed, since the key would go with them, and the key is taken out of all that is said.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
import pydantic_core

from ragwb.chat.reply import WRONG_SHAPE
from ragwb.errors import AccessError, ReplyError, SourceError, UnreachableError, UsageError
from ragwb.html import plain
from ragwb.retry import MAX_ATTEMPTS, RETRIED_STATUS, refused_wait, retry_delay
from ragwb.secrets import Secrets, key_from_environment

PATH = "/v1/chat/completions"
# An answer has some thousand characters; a body beyond is a fault.
LARGEST_BODY = 8 * 1024 * 1024
DEFAULT_TIMEOUT_S = 60.0
DEFAULT_MAX_TOKENS = 1024
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})

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


@dataclass(frozen=True, slots=True)
class _Failure:
    error: SourceError
    again: bool = False
    retry_after: str | None = None


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
        self._sleep = sleep
        self._secrets = Secrets()
        url = httpx.URL(model.address)
        self._client = httpx.Client(
            headers={**_key_header(model.key_env, self._secrets), "accept-encoding": "identity"},
            timeout=model.timeout_s,
            transport=transport,
            follow_redirects=False,
            # A proxy for the outside world must not get the calls to this very machine.
            trust_env=not (url.scheme == "http" and url.host in _LOOPBACK),
        )

    def __enter__(self) -> ChatClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

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
        body = self._request(messages, response_format)
        slept = 0.0
        began = time.perf_counter()
        for attempt in range(1, MAX_ATTEMPTS + 1):
            sent = time.perf_counter()
            outcome = self._attempt(body)
            if isinstance(outcome, bytes):
                spent = (time.perf_counter() - sent) * 1000
                waited = (sent - began) * 1000 if attempt > 1 else 0.0
                return self._read(outcome, attempt, spent, waited)
            failure = outcome
            if not failure.again or attempt == MAX_ATTEMPTS:
                break
            delay = retry_delay(attempt, failure.retry_after)
            if (refused := refused_wait(delay, slept)) is not None:
                failure.error.args = (f"{failure.error}; {refused}",)
                break
            slept += delay
            self._sleep(delay)
        raise self._finished(failure.error, attempt)

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

    def _attempt(self, body: Mapping[str, Any]) -> bytes | _Failure:
        call = f"POST {self.model.address}"
        try:
            with self._client.stream("POST", self.model.address, json=body) as response:
                read = self._body(response, call)
                if response.is_success:
                    return _as_json(response, read, call)
                return self._refusal(call, response, read)
        except ReplyError as error:
            return _Failure(error)
        except (httpx.TimeoutException, TimeoutError):
            said = f"{call}: no whole answer in {self.model.timeout_s:g} s"
            return _Failure(UnreachableError(said))
        except httpx.ConnectError as error:
            said = f"{call}: no connection ({self._quote(error)}); is the endpoint started?"
            return _Failure(UnreachableError(said), again=True)
        except httpx.TransportError as error:
            said = f"{call}: the connection was cut off ({self._quote(error)})"
            return _Failure(UnreachableError(said), again=True)

    def _body(self, response: httpx.Response, call: str) -> bytes:
        """The whole body; the deadline holds for all of it, however slowly it drips."""
        ends = time.perf_counter() + self.model.timeout_s
        coding = response.headers.get("content-encoding", "identity")
        if coding != "identity":
            raise ReplyError(f"{call}: a body in the coding {plain(coding, width=40)!r}, unasked")
        body = bytearray()
        for piece in response.stream:  # type: ignore[union-attr]  # sync: a Client's
            body += piece
            if len(body) > LARGEST_BODY:
                raise ReplyError(f"{call}: a body of more than {LARGEST_BODY // 2**20} MiB")
            if time.perf_counter() > ends:
                raise TimeoutError
        return bytes(body)

    def _refusal(self, call: str, response: httpx.Response, body: bytes) -> _Failure:
        status = response.status_code
        detail = self._quote(_detail(body))
        said = f"{call}: {status}" + (f" ({detail})" if detail else "")
        if status in {401, 403}:
            help_ = "is the key the right one?" if self.model.key_env else "it needs a key"
            return _Failure(AccessError(f"{said}; {help_}", status=status))
        if status == 404:
            said += "; is the address the part before /v1, and the model there?"
        return _Failure(
            ReplyError(said, status=status),
            again=status in RETRIED_STATUS,
            retry_after=response.headers.get("retry-after"),
        )

    def _read(self, body: bytes, attempt: int, spent: float, waited: float) -> Completion:
        try:
            said = pydantic_core.from_json(body)
            choice = said["choices"][0]
            message = choice["message"]
            text = message.get("content") or message.get("refusal") or ""
            usage = said.get("usage") or {}
            return Completion(
                text=self._secrets.scrub(_text(text)),
                finish_reason=_word(choice.get("finish_reason")),
                model=_word(said.get("model")),
                prompt_tokens=_count(usage.get("prompt_tokens")),
                completion_tokens=_count(usage.get("completion_tokens")),
                attempts=attempt,
                latency_ms=spent,
                waited_ms=waited,
            )
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            call = f"POST {self.model.address}"
            raise self._finished(
                ReplyError(f"{call}: {WRONG_SHAPE}: not a chat completion"), attempt
            ) from error

    def _quote(self, text: object, *, width: int = 200) -> str:
        # Scrubbed before it is cut, so that no part of a key is left at the end.
        return plain(self._secrets.scrub(str(text)), width=width)

    def _finished(self, error: SourceError, attempts: int) -> SourceError:
        error.attempts = attempts
        said = f"{error}; {attempts} attempts" if attempts > 1 else str(error)
        error.args = (self._secrets.scrub(said),)
        return error


def _as_json(response: httpx.Response, body: bytes, call: str) -> bytes | _Failure:
    kind = response.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind == "text/event-stream":
        return _Failure(ReplyError(f"{call}: a stream of events, where one reply was asked for"))
    return body


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


def _detail(body: bytes) -> str:
    """What an error's body says in words, or nothing."""
    try:
        said = pydantic_core.from_json(body[:65536])
    except ValueError:
        return ""
    for name in ("error", "detail", "message"):
        found = said.get(name) if isinstance(said, dict) else None
        if isinstance(found, dict):
            found = found.get("message")
        if isinstance(found, str) and found:
            return found
    return ""


def _key_header(variable: str | None, secrets: Secrets) -> dict[str, str]:
    if variable is None:
        return {}
    key = key_from_environment(variable)
    secrets.add(key)
    return {"authorization": f"Bearer {key}"}


def check_endpoint(text: str, what: str) -> None:
    """Refuse an address that is none of http, or that carries a secret.

    Args:
        text: the part before `/v1`.
        what: whose it is, such as "the chat endpoint".

    Raises:
        UsageError: it is something else; the address itself is not repeated.
    """
    try:
        url = httpx.URL(text)
    except (httpx.InvalidURL, ValueError, TypeError) as error:
        raise UsageError(f"{what}'s address cannot be read: give http://host") from error
    if url.scheme not in {"http", "https"} or not url.host:
        raise UsageError(f"{what}'s address is no http address: give http://host")
    if url.userinfo or url.query or url.fragment:
        raise UsageError(
            f"{what}'s address carries credentials or a query: give only scheme, host "
            "and path, and the key by an environment variable"
        )


def _check_number(name: str, value: float, low: float, high: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise UsageError(f"{name} {value!r}: must be a number from {low:g} to {high:g}")
