"""The connection to an OpenAI-compatible endpoint: one call that ends, and one line per fault.

As with the calls of the protocol, a call that is cut off or answered 429, 502, 503 or 504 is made
again, never earlier than `Retry-After` says; a deadline that passes and a 500 are not. Redirects
are not followed, since the key would go with them, and the key is taken out of all that is said.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import pydantic_core

from ragwb.chat.reply import WRONG_SHAPE
from ragwb.errors import AccessError, ReplyError, SourceError, UnreachableError, UsageError
from ragwb.html import plain
from ragwb.retry import MAX_ATTEMPTS, RETRIED_STATUS, refused_wait, retry_delay
from ragwb.secrets import Secrets, key_from_environment

DEFAULT_TIMEOUT_S = 60.0
# An answer has some thousand characters; a body beyond is a fault.
LARGEST_BODY = 8 * 1024 * 1024
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


@dataclass(frozen=True, slots=True)
class Reply:
    """A body that came whole, and what the call took.

    Attributes:
        attempts: number of calls made, from 1.
        latency_ms: of the call that succeeded; waited_ms: of all before it.
    """

    body: bytes
    attempts: int
    latency_ms: float
    waited_ms: float


@dataclass(frozen=True, slots=True)
class _Failure:
    error: SourceError
    again: bool = False
    retry_after: str | None = None


class Connection:
    """The connection to one address; safe to call from several threads.

    Args:
        address: where the calls go, with the path.
        key_env: name of the environment variable that holds the key; None sends none.
        timeout_s: deadline of one attempt in seconds, > 0.
        largest: most bytes of a body.
        transport: replaces the network; a seam for tests.
        sleep: waits so many seconds; a seam for tests.

    Raises:
        UsageError: the variable that should hold the key is empty.
    """

    def __init__(
        self,
        address: str,
        *,
        key_env: str | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        largest: int = LARGEST_BODY,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._address, self._key_env = address, key_env
        self._timeout_s, self._largest = timeout_s, largest
        self._sleep = sleep
        self._secrets = Secrets()
        url = httpx.URL(address)
        self._client = httpx.Client(
            headers={**_key_header(key_env, self._secrets), "accept-encoding": "identity"},
            timeout=timeout_s,
            transport=transport,
            follow_redirects=False,
            # A proxy for the outside world must not get the calls to this very machine.
            trust_env=not (url.scheme == "http" and url.host in _LOOPBACK),
        )

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def post(self, body: Mapping[str, Any]) -> Reply:
        """What the endpoint replies to a JSON body.

        Raises:
            UnreachableError: no whole reply, or not within the deadline.
            AccessError: 401 or 403.
            ReplyError: any other status than 2xx, or a stream.
        """
        slept = 0.0
        began = time.perf_counter()
        for attempt in range(1, MAX_ATTEMPTS + 1):
            sent = time.perf_counter()
            outcome = self._attempt(body)
            if isinstance(outcome, bytes):
                spent = (time.perf_counter() - sent) * 1000
                waited = (sent - began) * 1000 if attempt > 1 else 0.0
                return Reply(outcome, attempt, spent, waited)
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

    def scrub(self, text: str) -> str:
        """The text without the key, should it repeat it."""
        return self._secrets.scrub(text)

    def wrong_shape(self, said: str, attempts: int) -> SourceError:
        """The error of a reply that is none of what was asked for."""
        error = ReplyError(f"POST {self._address}: {WRONG_SHAPE}: {said}")
        return self._finished(error, attempts)

    def _attempt(self, body: Mapping[str, Any]) -> bytes | _Failure:
        call = f"POST {self._address}"
        try:
            with self._client.stream("POST", self._address, json=body) as response:
                read = self._body(response, call)
                if response.is_success:
                    return _as_json(response, read, call)
                return self._refusal(call, response, read)
        except ReplyError as error:
            return _Failure(error)
        except (httpx.TimeoutException, TimeoutError):
            said = f"{call}: no whole answer in {self._timeout_s:g} s"
            return _Failure(UnreachableError(said))
        except httpx.ConnectError as error:
            said = f"{call}: no connection ({self._quote(error)}); is the endpoint started?"
            return _Failure(UnreachableError(said), again=True)
        except httpx.TransportError as error:
            said = f"{call}: the connection was cut off ({self._quote(error)})"
            return _Failure(UnreachableError(said), again=True)

    def _body(self, response: httpx.Response, call: str) -> bytes:
        """The whole body; the deadline holds for all of it, however slowly it drips."""
        ends = time.perf_counter() + self._timeout_s
        coding = response.headers.get("content-encoding", "identity")
        if coding != "identity":
            raise ReplyError(f"{call}: a body in the coding {plain(coding, width=40)!r}, unasked")
        body = bytearray()
        for piece in response.stream:  # type: ignore[union-attr]  # sync: a Client's
            body += piece
            if len(body) > self._largest:
                raise ReplyError(f"{call}: a body of more than {self._largest // 2**20} MiB")
            if time.perf_counter() > ends:
                raise TimeoutError
        return bytes(body)

    def _refusal(self, call: str, response: httpx.Response, body: bytes) -> _Failure:
        status = response.status_code
        detail = self._quote(_detail(body))
        said = f"{call}: {status}" + (f" ({detail})" if detail else "")
        if status in {401, 403}:
            help_ = "is the key the right one?" if self._key_env else "it needs a key"
            return _Failure(AccessError(f"{said}; {help_}", status=status))
        if response.is_redirect:
            said += "; a redirect is not followed, for texts and key would go there: "
            said += "give the final address"
        if status == 404:
            said += "; is the address the part before /v1, and the model there?"
        return _Failure(
            ReplyError(said, status=status),
            again=status in RETRIED_STATUS,
            retry_after=response.headers.get("retry-after"),
        )

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
