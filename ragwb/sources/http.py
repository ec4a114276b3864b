"""One HTTP call that ends: a deadline, a size limit, bounded retries, one clear line per fault.

Redirects are not followed, since the token would go with them. A call that fails connecting, is cut
off or is answered 429, 502, 503 or 504 is made again, at most `retry.MAX_ATTEMPTS` times in all:
every call of the protocol only reads, so asking twice changes nothing. It is never made earlier
than `Retry-After` says; a wait above the limits of `retry` ends the call. A deadline that passes is
not tried again: a service that needs more than that for one question would only be asked to do the
work again.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from ragwb.errors import AccessError, ReplyError, SourceError, UnreachableError, UsageError
from ragwb.html import plain
from ragwb.retry import MAX_ATTEMPTS, RETRIED_STATUS, refused_wait, retry_delay
from ragwb.sources.body import ACCEPTED_CODING, read_body
from ragwb.sources.token import TokenSource

# After so many calls in a row without any answer the service is taken for down: the rest of the
# calls are still made, once each, so that a dead service costs seconds and not hours of waiting.
PATIENCE = 5
# Waits so many seconds.
Sleep = Callable[[float], Awaitable[None]]
LAST_PORT = 65535
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


@dataclass(frozen=True, slots=True)
class Answer:
    """The body of a successful call and what it took.

    Attributes:
        body: as received, decompressed, tokens scrubbed.
        content_type: media type without parameters, cut, "" when not given.
        latency_ms: from sending the attempt that succeeded to the last byte of its body.
        waited_ms: everything before that attempt: failed attempts and the waits between them.
        attempts: number of attempts made, from 1.
    """

    body: bytes
    content_type: str
    latency_ms: float
    waited_ms: float
    attempts: int


@dataclass(frozen=True, slots=True)
class _Body:
    content: bytes
    content_type: str


@dataclass(frozen=True, slots=True)
class _Failure:
    error: SourceError
    again: bool = False
    retry_after: str | None = None


class Link:
    """A connection to one service: an HTTP client, a token and the rules of calling.

    Args:
        client: the HTTP client; shared by the identities of a run.
        tokens: whose token goes into every call.
        timeout_s: deadline of one attempt in seconds, connecting and reading the body included.
        max_attempts: how often a call is made at most, 1 or more.
        sleep: how to wait; a seam for tests.
    """

    def __init__(
        self,
        client: httpx.AsyncClient,
        tokens: TokenSource,
        *,
        timeout_s: float,
        max_attempts: int = MAX_ATTEMPTS,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._client = client
        self._tokens = tokens
        self._timeout_s = timeout_s
        self._max_attempts = max_attempts
        self._sleep = sleep
        self._unanswered = 0

    async def call(
        self,
        method: str,
        url: str,
        *,
        body: object = None,
        params: Mapping[str, str] | None = None,
    ) -> Answer:
        """The answer to one call, retried as the module says.

        Raises:
            UnreachableError: no answer: refused, TLS, cut off, or not within the deadline.
            AccessError: 401 (also with a renewed token) or 403.
            ReplyError: any other status than 2xx, or a body that is too large.
        """
        content = None if body is None else json.dumps(body, separators=(",", ":")).encode()
        token = await self._tokens.get()
        renewed = False
        slept = 0.0
        began = time.perf_counter()
        for attempt in range(1, MAX_ATTEMPTS + 2):
            sent = time.perf_counter()
            outcome = await self._attempt(method, url, content, params, token)
            if isinstance(outcome, _Body):
                received = time.perf_counter()
                self._unanswered = 0
                return Answer(
                    body=self._tokens.secrets.scrub_body(outcome.content),
                    content_type=outcome.content_type,
                    latency_ms=(received - sent) * 1000,
                    waited_ms=(sent - began) * 1000 if attempt > 1 else 0.0,
                    attempts=attempt,
                )
            failure = outcome
            if failure.error.status == 401 and not renewed:
                renewed = True
                token = await self._tokens.renew(token)
                if token is not None:
                    continue
            if not failure.again or attempt >= self._attempts_allowed():
                break
            delay = retry_delay(attempt, failure.retry_after)
            if (refused := refused_wait(delay, slept)) is not None:
                failure.error.args = (f"{failure.error}; {refused}",)
                break
            slept += delay
            await self._sleep(delay)
        self._count_unanswered(failure.error)
        raise self._finished(failure.error, attempt)

    def _attempts_allowed(self) -> int:
        return 1 if self._unanswered >= PATIENCE else self._max_attempts

    def _count_unanswered(self, error: SourceError) -> None:
        self._unanswered = self._unanswered + 1 if isinstance(error, UnreachableError) else 0

    async def _attempt(
        self,
        method: str,
        url: str,
        content: bytes | None,
        params: Mapping[str, str] | None,
        token: str | None,
    ) -> _Body | _Failure:
        call = f"{method} {url}"
        headers = {} if content is None else {"content-type": "application/json"}
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        try:
            async with asyncio.timeout(self._timeout_s):
                request = self._client.build_request(
                    method, url, content=content, params=params, headers=headers
                )
                response = await self._client.send(request, stream=True)
                try:
                    read = await read_body(response, call)
                finally:
                    await response.aclose()
        except TimeoutError:
            return _Failure(UnreachableError(f"{call}: no whole answer in {self._timeout_s:g} s"))
        except ReplyError as error:
            return _Failure(error)
        except httpx.TransportError as error:
            return self._unreachable(call, error)
        except ExceptionGroup as group:
            # How the attempts at several addresses of one host fail in ways that nobody foresaw.
            first = self._quote(_innermost(group))
            return _Failure(UnreachableError(f"{call}: no connection ({first})"))
        if response.is_success:
            kind = response.headers.get("content-type", "").split(";")[0].strip().lower()
            return _Body(read, self._quote(kind, width=60))
        return self._refusal(call, response, read)

    def _unreachable(self, call: str, error: httpx.TransportError) -> _Failure:
        if _is_tls(error):
            said = f"{call}: TLS failed: {self._quote(error)}"
            return _Failure(UnreachableError(f"{said}; is it https, with a known certificate?"))
        if isinstance(error, httpx.ConnectError):
            message = f"{call}: no connection ({self._quote(error)}); is the service started?"
        else:
            message = f"{call}: the connection was cut off ({self._quote(error)})"
        return _Failure(UnreachableError(message), again=True)

    def _quote(self, text: object, *, width: int = 200) -> str:
        # Scrubbed before it is cut, so that no part of a token is left at the end.
        quoted = plain(self._tokens.secrets.scrub(str(text)), width=width)
        return quoted or (type(text).__name__ if isinstance(text, Exception) else "")

    def _finished(self, error: SourceError, attempts: int) -> SourceError:
        """The error as it leaves: every message of a call passes here, and is scrubbed whole."""
        error.attempts = attempts
        said = f"{error}; {attempts} attempts" if attempts > 1 else str(error)
        error.args = (self._tokens.secrets.scrub(said),)
        return error

    def _refusal(self, call: str, response: httpx.Response, body: bytes) -> _Failure:
        status = response.status_code
        detail = self._quote(_detail(body)) if body else ""
        said = f"{call}: {status}" + (f" ({detail})" if detail else "")
        if status in {401, 403}:
            return _Failure(AccessError(f"{said}; {_ACCESS_HELP[status]}", status=status))
        if response.is_redirect:
            host = _host(response.headers.get("location", ""), response.request.url)
            message = f"{call}: {status}, a redirect to {self._quote(host)}; it is not followed, "
            message += "since the token would go there: give the final address as the base URL"
            return _Failure(ReplyError(message, status=status))
        if status == 404:
            said += "; nothing stands at this address: check the base URL"
        return _Failure(
            ReplyError(said, status=status),
            again=status in RETRIED_STATUS,
            retry_after=response.headers.get("retry-after"),
        )


_ACCESS_HELP = {
    401: "give a valid token by RAGWB_TOKEN, --token-file or --token-command",
    403: "the token does not allow this call: it needs the scope knowledge:eval",
}


def open_http_client(
    base_url: str, *, concurrency: int, transport: httpx.AsyncBaseTransport | None = None
) -> httpx.AsyncClient:
    """An HTTP client for one service with as many connections as calls at a time.

    Args:
        base_url: as checked by `check_base_url`.
        concurrency: calls at a time, at least 1.
        transport: replaces the network; a seam for tests.
    """
    url = httpx.URL(base_url)
    plain_local = url.scheme == "http" and url.host in LOOPBACK
    return httpx.AsyncClient(
        transport=transport,
        timeout=None,  # one deadline over the whole attempt stands around every call
        limits=httpx.Limits(max_connections=concurrency, max_keepalive_connections=concurrency),
        follow_redirects=False,
        # A proxy for the outside world must not get the calls to this very machine.
        trust_env=not plain_local,
        headers={
            "accept": "application/json",
            "accept-encoding": ACCEPTED_CODING,
            "user-agent": "ragwb",
        },
    )


def check_base_url(base_url: str) -> str:
    """The base URL, when it is an http or https address without credentials, query and fragment.

    Raises:
        UsageError: it is something else. A base URL goes into manifests and messages, so none of
            those that could carry a secret is accepted or repeated.
    """
    try:
        url = httpx.URL(base_url)
    except (httpx.InvalidURL, ValueError) as error:
        raise UsageError(
            "the base URL cannot be read: give one like http://127.0.0.1:8080"
        ) from error
    if url.userinfo or url.query or url.fragment:
        raise UsageError(
            "the base URL carries credentials, a query or a fragment: give only scheme, host, port "
            "and path, and the token by RAGWB_TOKEN, --token-file or --token-command"
        )
    if url.scheme not in {"http", "https"} or not url.host:
        raise UsageError(
            f"the base URL {plain(base_url, width=80)!r} is no http address: "
            "give one like http://127.0.0.1:8080"
        )
    if url.port is not None and not 1 <= url.port <= LAST_PORT:
        raise UsageError(
            f"the base URL names the port {url.port}: a port is a number from 1 to {LAST_PORT}"
        )
    return base_url.rstrip("/")


def _innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _is_tls(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _host(location: str, base: httpx.URL) -> str:
    try:
        target = base.join(location)
    except (httpx.InvalidURL, ValueError):
        return "an address that cannot be read"
    return f"{target.scheme}://{target.netloc.decode('ascii', 'replace')}"


def _detail(body: bytes) -> str:
    """What an error's body says in words: RFC 9457's detail or title, or nothing."""
    try:
        problem: Any = json.loads(body[:65536])
    except (ValueError, RecursionError):
        return ""
    if not isinstance(problem, dict):
        return ""
    said = [
        str(problem[key]) for key in ("detail", "title", "message", "error") if problem.get(key)
    ]
    return said[0] if said else ""
