from __future__ import annotations

import asyncio
import gzip
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager

import httpx
import pytest

from ragwb.errors import AccessError, ReplyError, SourceError, UnreachableError, UsageError
from ragwb.sources import http as http_module
from ragwb.sources.body import LARGEST_BODY
from ragwb.sources.http import (
    PATIENCE,
    Answer,
    Link,
    check_base_url,
    open_http_client,
)
from ragwb.sources.token import TokenSource

URL = "http://service.example/internal/eval/v1/retrieve"
TOKEN = "secret-token-1234"

Handler = Callable[[httpx.Request], httpx.Response]


def fixed(*tokens: str) -> TokenSource:
    waiting = iter(tokens)
    return TokenSource(lambda: next(waiting), renewable=len(tokens) > 1)


def call(
    handler: Handler,
    *,
    tokens: TokenSource | None = None,
    waits: list[float] | None = None,
    times: int = 1,
) -> Answer:
    """The answer of the last of several calls over one link; the waits are noted, not waited."""

    async def sleep(seconds: float) -> None:
        if waits is not None:
            waits.append(seconds)

    async def run() -> Answer:
        async with open_http_client(
            "http://service.example", concurrency=1, transport=httpx.MockTransport(handler)
        ) as client:
            link = Link(client, tokens or fixed(TOKEN), timeout_s=5, sleep=sleep)
            for _ in range(times - 1):
                with pytest.raises(SourceError):
                    await link.call("POST", URL, body={"question": "q"})
            return await link.call("POST", URL, body={"question": "q"})

    return asyncio.run(run())


def replies(*responses: httpx.Response | Exception) -> tuple[Handler, list[httpx.Request]]:
    """A service that gives these responses in turn, the last for ever; and the requests it saw."""
    seen: list[httpx.Request] = []

    def handle(request: httpx.Request) -> httpx.Response:
        response = responses[min(len(seen), len(responses) - 1)]
        seen.append(request)
        if isinstance(response, Exception):
            raise response
        return response

    return handle, seen


def failure(handler: Handler, **given: object) -> SourceError:
    with pytest.raises(SourceError) as caught:
        call(handler, **given)  # type: ignore[arg-type]
    message = str(caught.value)
    assert "\n" not in message
    assert TOKEN not in message
    return caught.value


def test_an_answer_says_what_it_took() -> None:
    handler, seen = replies(
        httpx.Response(200, content=b"{}", headers={"content-type": "a/B; x=1"})
    )
    answer = call(handler)
    assert (answer.body, answer.content_type, answer.attempts) == (b"{}", "a/b", 1)
    assert answer.waited_ms == 0.0
    assert answer.latency_ms > 0
    assert seen[0].headers["authorization"] == f"Bearer {TOKEN}"
    assert seen[0].content == b'{"question":"q"}'


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_busy_service_is_asked_again_as_it_wishes(status: int) -> None:
    waits: list[float] = []
    handler, seen = replies(
        httpx.Response(status, headers={"retry-after": "7"}),
        httpx.Response(status),
        httpx.Response(200, content=b"{}"),
    )
    answer = call(handler, waits=waits)
    assert answer.attempts == 3
    assert waits == [7.0, 1.0]
    assert len(seen) == 3


def test_retries_are_bounded_and_counted_in_the_message() -> None:
    waits: list[float] = []
    handler, seen = replies(httpx.Response(429, headers={"retry-after": "9"}))
    error = failure(handler, waits=waits)
    assert isinstance(error, ReplyError)
    assert error.status == 429
    assert error.attempts == 4 == len(seen)
    assert waits == [9.0, 9.0, 9.0]
    assert str(error) == f"POST {URL}: 429; 4 attempts"


def test_a_service_is_never_asked_earlier_than_it_said() -> None:
    waits: list[float] = []
    handler, seen = replies(httpx.Response(503, headers={"retry-after": "3600"}))
    error = failure(handler, waits=waits)
    assert error.status == 503
    assert (error.attempts, len(seen), waits) == (1, 1, [])
    assert str(error) == (
        f"POST {URL}: 503; it asks for a wait of 3600 s, and ragwb waits 60 s at most"
    )


def test_the_waits_of_one_call_have_a_sum() -> None:
    waits: list[float] = []
    handler, seen = replies(httpx.Response(429, headers={"retry-after": "50"}))
    error = failure(handler, waits=waits)
    assert (error.attempts, len(seen), waits) == (3, 3, [50.0, 50.0])
    assert "another wait of 50 s after 100 s" in str(error)
    assert str(error).endswith("; 3 attempts")


@pytest.mark.parametrize(
    ("status", "kind", "said"),
    [
        (400, ReplyError, "400"),
        (401, AccessError, "give a valid token by RAGWB_TOKEN"),
        (403, AccessError, "scope knowledge:eval"),
        (404, ReplyError, "check the base URL"),
        (413, ReplyError, "413"),
        (422, ReplyError, "topK: too large"),
        (500, ReplyError, "500"),
    ],
)
def test_other_refusals_are_final(status: int, kind: type[SourceError], said: str) -> None:
    handler, seen = replies(httpx.Response(status, json={"detail": "topK: too large"}))
    error = failure(handler)
    assert type(error) is kind
    assert error.status == status
    assert said in str(error)
    assert len(seen) == 1


def test_connection_faults_are_tried_again() -> None:
    waits: list[float] = []
    handler, _ = replies(
        httpx.ConnectError("refused"), httpx.ReadError(""), httpx.Response(200, content=b"{}")
    )
    assert call(handler, waits=waits).attempts == 3
    assert waits == [0.5, 1.0]


def test_a_dead_service_costs_no_more_waiting_after_a_few_calls() -> None:
    waits: list[float] = []
    handler, seen = replies(httpx.ConnectError("refused"))
    with pytest.raises(UnreachableError, match="no connection"):
        call(handler, waits=waits, times=PATIENCE + 2)
    assert len(seen) == 4 * PATIENCE + 2
    assert len(waits) == 3 * PATIENCE


def test_a_rejected_token_is_renewed_once() -> None:
    handler, seen = replies(httpx.Response(401), httpx.Response(200, content=b"{}"))
    assert call(handler, tokens=fixed("first-token", "second-token")).attempts == 2
    assert [r.headers["authorization"] for r in seen] == [
        "Bearer first-token",
        "Bearer second-token",
    ]


def test_a_renewed_token_that_is_rejected_too_is_the_end() -> None:
    handler, seen = replies(httpx.Response(401))
    assert failure(handler, tokens=fixed(TOKEN, TOKEN + "2", TOKEN + "3")).status == 401
    assert len(seen) == 2


def test_a_redirect_is_not_followed_with_the_token() -> None:
    handler, seen = replies(
        httpx.Response(302, headers={"location": f"https://other.example/x?t={TOKEN}"})
    )
    error = failure(handler)
    assert "a redirect to https://other.example" in str(error)
    assert len(seen) == 1


def test_a_token_that_the_service_echoes_is_nowhere() -> None:
    handler, _ = replies(httpx.Response(422, json={"detail": f"bad header Bearer {TOKEN}"}))
    assert "bad header Bearer [token]" in str(failure(handler))
    handler, _ = replies(httpx.Response(200, json={"traceId": TOKEN}))
    assert call(handler).body == b'{"traceId":"[token]"}'


def test_hostile_details_cannot_drive_a_terminal() -> None:
    handler, _ = replies(httpx.Response(500, json={"detail": "a\x1b[2Jb\nc" + "x" * 5000}))
    message = str(failure(handler))
    assert "\x1b" not in message
    assert len(message) < 400


def test_a_body_without_end_is_cut_by_size() -> None:
    with pytest.raises(ReplyError, match="more than 32 MiB"):
        call(lambda _: httpx.Response(200, stream=Endless()))


class Endless(httpx.AsyncByteStream):
    async def __aiter__(self):  # type: ignore[no-untyped-def]
        while True:
            yield b" " * 1_000_000


@contextmanager
def raw_service(*sent: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """A socket that answers whatever it gets with these bytes, and then keeps silent."""
    got: list[bytes] = []
    silent = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                threads.append(threading.Thread(target=talk, args=(connection,)))
                threads[-1].start()

        def talk(connection: socket.socket) -> None:
            with connection:
                got.append(connection.recv(65536))
                for part in sent:
                    connection.sendall(part)
                if sent and sent[-1] == b"":
                    silent.wait(30)

        threads = [threading.Thread(target=answer)]
        threads[0].start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}", got
        finally:
            silent.set()
            server.shutdown(socket.SHUT_RDWR)
            server.close()
            for thread in threads:
                thread.join()


def real_call(url: str, *, timeout_s: float = 5.0) -> Answer:
    async def no_wait(_: float) -> None:
        return None

    async def run() -> Answer:
        async with open_http_client(url, concurrency=1) as client:
            link = Link(client, fixed(TOKEN), timeout_s=timeout_s, sleep=no_wait)
            return await link.call("GET", url)

    return asyncio.run(run())


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
    with pytest.raises(UnreachableError, match=r"no connection.*is the service started") as caught:
        real_call(url)
    assert caught.value.attempts == 4


def test_https_to_a_plain_port_is_a_tls_fault_and_final() -> None:
    with raw_service(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n") as (url, got):
        with pytest.raises(UnreachableError, match="TLS failed"):
            real_call(url.replace("http:", "https:"))
        assert len(got) == 1


@pytest.mark.parametrize(
    "sent",
    [
        (HEAD + b'content-length: 500\r\n\r\n{"results": [',),
        (HEAD + b'transfer-encoding: chunked\r\n\r\n5\r\n{"res',),
        (b"",)[:0],
        (b"no HTTP at all\r\n\r\n",),
    ],
    ids=["short body", "broken chunk", "closed at once", "another protocol"],
)
def test_a_reply_that_is_cut_off_is_asked_again_and_then_said(sent: Sequence[bytes]) -> None:
    with raw_service(*sent) as (url, got):
        with pytest.raises(UnreachableError, match="cut off"):
            real_call(url)
        assert len(got) == 4


def test_a_body_that_never_ends_meets_the_deadline_and_is_not_asked_again() -> None:
    with raw_service(HEAD + b"content-length: 500\r\n\r\n{", b"") as (url, got):
        with pytest.raises(UnreachableError, match=r"no whole answer in 0\.2 s"):
            real_call(url, timeout_s=0.2)
        assert len(got) == 1


def test_a_broken_compression_is_said() -> None:
    body = HEAD + b"content-encoding: gzip\r\ncontent-length: 4\r\n\r\nabcd"
    with raw_service(body) as (url, _), pytest.raises(ReplyError, match="compression is broken"):
        real_call(url)


@pytest.mark.parametrize(
    "url",
    [
        "http://user:secret-value@host",
        "http://host/?key=secret-value",
        "http://host#secret-value",
        "ftp://host",
        "host:8080",
        "http://",
        "http://[::1",
        "",
    ],
)
def test_base_urls_that_are_refused_without_repeating_a_secret(url: str) -> None:
    with pytest.raises(UsageError, match="base URL") as caught:
        check_base_url(url)
    assert "secret-value" not in str(caught.value)


def test_a_base_url_loses_its_last_slash() -> None:
    assert check_base_url("https://host:8443/knowledge/") == "https://host:8443/knowledge"


def test_no_environment_proxy_between_this_machine_and_itself() -> None:
    def trusts(url: str) -> bool:
        client = http_module.open_http_client(url, concurrency=1)
        return client.trust_env

    assert not trusts("http://127.0.0.1:8080")
    assert trusts("http://service.example")


def coded(coding: str, body: bytes, status: int = 200) -> Handler:
    class Stream(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield body

    headers = {"content-encoding": coding, "content-type": "application/json"}
    return lambda _: httpx.Response(status, headers=headers, stream=Stream())


def test_gzip_is_asked_for_and_read() -> None:
    asked: list[str] = []
    answer = coded("gzip", gzip.compress(b'{"a":1}'))

    def handle(request: httpx.Request) -> httpx.Response:
        asked.append(request.headers["accept-encoding"])
        return answer(request)

    assert (call(handle).body, asked) == (b'{"a":1}', ["gzip"])


def test_a_body_is_never_decompressed_beyond_the_limit() -> None:
    bomb = gzip.compress(b" " * (LARGEST_BODY + 1))
    assert "more than 32 MiB" in str(failure(coded("gzip", bomb)))


def test_gzip_that_ends_too_early_is_an_error() -> None:
    assert "compression is broken" in str(failure(coded("gzip", gzip.compress(b"{}" * 9)[:-9])))


@pytest.mark.parametrize("coding", ["gzip, gzip", "br", "deflate"])
def test_other_codings_are_refused(coding: str) -> None:
    assert f"content coding {coding!r}" in str(failure(coded(coding, b"xxx")))


def test_a_refusal_in_another_coding_keeps_its_status() -> None:
    assert failure(coded("br", b"xxx", 404)).status == 404


@pytest.mark.parametrize("token", [TOKEN, "AbCdEf-123456"])
def test_a_token_is_in_no_error(token: str) -> None:
    escaped = "".join(f"\\u{ord(char):04x}" for char in token)
    for response in (
        httpx.Response(307, headers={"location": f"http://{token}.example/"}),
        httpx.Response(400, content=f'{{"detail": "bad {escaped}"}}'.encode()),
        httpx.Response(400, json={"detail": token[:4] + "\x1b[0m" + token[4:]}),
    ):
        handler, _ = replies(response)
        said = str(failure(handler, tokens=fixed(token)))
        assert token.lower() not in said.lower()
        assert "[token]" in said


def test_a_content_type_is_scrubbed_and_cut() -> None:
    handler, _ = replies(httpx.Response(200, headers={"content-type": f"text/{TOKEN}{'x' * 999}"}))
    kind = call(handler).content_type
    assert kind.startswith("text/[token]")
    assert len(kind) <= 60


def test_a_group_of_errors_is_its_first() -> None:
    handler, _ = replies(ExceptionGroup("all", [OverflowError("port must be 0-65535")]))
    error = failure(handler)
    assert isinstance(error, UnreachableError)
    assert "port must be 0-65535" in str(error)


@pytest.mark.parametrize("port", [0, 65536, 99999])
def test_a_port_that_is_none_is_refused(port: int) -> None:
    with pytest.raises(UsageError, match="1 to 65535"):
        check_base_url(f"http://127.0.0.1:{port}")
