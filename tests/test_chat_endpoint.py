"""The client of a chat endpoint: what is sent, what is read, and one line for every fault."""

from __future__ import annotations

import gzip
import json
import socket
import threading
from collections.abc import Iterator

import httpx
import pytest
from chat_fake import PATH, URL, FakeModel, client, completion
from loopback import json_reply

from ragwb.chat.connection import LARGEST_BODY
from ragwb.chat.endpoint import ChatClient, ChatModel
from ragwb.errors import AccessError, ReplyError, UnreachableError, UsageError

ASKED = [{"role": "user", "content": "几天到账？"}]
KEY = "sk-0123456789abcdef"


def test_what_is_asked_and_what_comes_back():
    fake = FakeModel(["三天。"])
    found = client(fake, temperature=0.5, max_tokens=7, seed=3).complete(ASKED)
    assert fake.paths == [PATH]
    assert fake.asked[0] == {
        "model": "m",
        "messages": ASKED,
        "temperature": 0.5,
        "max_tokens": 7,
        "stream": False,
        "seed": 3,
    }
    assert (found.text, found.finish_reason, found.model) == ("三天。", "stop", "fake-1")
    assert (found.prompt_tokens, found.completion_tokens, found.attempts) == (11, 5, 1)
    assert found.latency_ms > 0
    assert found.waited_ms == 0


def test_a_schema_goes_with_the_question_only_when_it_is_given():
    fake = FakeModel(["{}"])
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": {}}}
    client(fake).complete(ASKED, response_format=form)
    client(fake).complete(ASKED)
    assert fake.asked[0]["response_format"] == form
    assert "response_format" not in fake.asked[1]


@pytest.mark.parametrize("url", [URL, URL + "/", URL + "/v1", URL + "/v1/"])
def test_the_address_may_end_in_v1(url):
    assert ChatModel(url=url, model="m").address == f"{URL}{PATH}"


def test_the_key_goes_into_the_header_and_into_no_message(monkeypatch):
    monkeypatch.setenv("MODEL_KEY", KEY)
    refusal = json_reply({"error": {"message": f"Incorrect API key provided: {KEY}"}}, 401)
    fake = FakeModel([refusal])
    with pytest.raises(AccessError, match=r"401.*\[token\].*key") as caught:
        client(fake, key_env="MODEL_KEY").complete(ASKED)
    assert fake.headers[0]["authorization"] == f"Bearer {KEY}"
    assert KEY not in str(caught.value)
    assert caught.value.attempts == 1


def test_an_answer_that_repeats_the_key_is_scrubbed(monkeypatch):
    monkeypatch.setenv("MODEL_KEY", KEY)
    assert client(FakeModel([f"the key is {KEY}"]), key_env="MODEL_KEY").complete(ASKED).text == (
        "the key is [token]"
    )


@pytest.mark.parametrize("key", ["", "  ", "a\nb", "schlüssel"])
def test_a_key_that_is_none_is_a_usage_error(monkeypatch, key):
    monkeypatch.setenv("MODEL_KEY", key)
    with pytest.raises(UsageError, match="MODEL_KEY holds no key"):
        client(FakeModel(["x"]), key_env="MODEL_KEY")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"url": "ftp://x"}, "no http address"),
        ({"url": "model"}, "no http address"),
        ({"url": "http://u:p@x"}, "credentials"),
        ({"url": "http://x?key=1"}, "query"),
        ({"url": "http://[::1"}, "cannot be read"),
        ({"model": " "}, "needs a name"),
        ({"temperature": 3}, "temperature 3"),
        ({"max_tokens": 0}, "max_tokens 0"),
        ({"timeout_s": 0}, "timeout_s 0"),
    ],
)
def test_settings_that_cannot_be_are_named(settings, said):
    with pytest.raises(UsageError, match=said):
        ChatModel(**{"url": URL, "model": "m", **settings})


def test_too_many_requests_are_asked_again_when_the_endpoint_says():
    waits: list[float] = []
    fake = FakeModel([json_reply({}, 429, retry_after="7"), "好"])
    found = client(fake, waits=waits).complete(ASKED)
    assert (found.text, found.attempts, waits) == ("好", 2, [7.0])
    assert found.waited_ms > 0


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_an_endpoint_that_stays_busy_is_given_up_after_four_attempts(status):
    waits: list[float] = []
    fake = FakeModel([json_reply({"error": {"message": "busy"}}, status)])
    with pytest.raises(ReplyError, match=rf"{status} \(busy\); 4 attempts") as caught:
        client(fake, waits=waits).complete(ASKED)
    assert (len(fake.asked), waits) == (4, [0.5, 1.0, 2.0])
    assert (caught.value.status, caught.value.attempts) == (status, 4)


def test_nobody_is_asked_earlier_than_they_say():
    fake = FakeModel([json_reply({}, 503, retry_after="3600")])
    with pytest.raises(ReplyError, match="waits 60 s at most"):
        client(fake).complete(ASKED)
    assert len(fake.asked) == 1


@pytest.mark.parametrize(("status", "said"), [(500, "500"), (400, "400"), (404, "before /v1")])
def test_other_refusals_are_not_asked_again(status, said):
    fake = FakeModel([json_reply({"detail": "no"}, status)])
    with pytest.raises(ReplyError, match=said) as caught:
        client(fake).complete(ASKED)
    assert len(fake.asked) == 1
    assert caught.value.status == status


def test_a_redirect_is_not_followed():
    fake = FakeModel([json_reply({}, 302, location="http://elsewhere.example/")])
    with pytest.raises(ReplyError, match="302; a redirect is not followed"):
        client(fake).complete(ASKED)
    assert len(fake.asked) == 1


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b'{"choices": []}',
        b'{"choices": [{}]}',
        b'{"choices": [{"message": null}]}',
        b'{"choices": [{"message": {"content": 3}}]}',
        b'{"choices": [{"message": {"content": "x"}',
    ],
)
def test_what_is_no_completion_is_said_in_a_line(body):
    fake = FakeModel([(200, {"content-type": "application/json"}, body)])
    with pytest.raises(ReplyError, match="not a chat completion"):
        client(fake).complete(ASKED)


def test_nothing_written_is_an_empty_text():
    assert client(FakeModel([completion(None)])).complete(ASKED).text == ""
    assert client(FakeModel([completion("")])).complete(ASKED).text == ""


def test_a_refusal_of_the_model_is_its_text():
    reply = json_reply({"choices": [{"message": {"content": None, "refusal": "I cannot."}}]})
    assert client(FakeModel([reply])).complete(ASKED).text == "I cannot."


def test_a_text_in_parts_is_joined():
    parts = [{"type": "text", "text": "三"}, {"type": "image"}, {"type": "text", "text": "天"}]
    reply = json_reply({"choices": [{"message": {"content": parts}}]})
    assert client(FakeModel([reply])).complete(ASKED).text == "三天"


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": -1}, {"prompt_tokens": "many"}])
def test_usage_that_is_not_told_is_unknown(usage):
    reply = json_reply({"choices": [{"message": {"content": "x"}}], "usage": usage})
    found = client(FakeModel([reply])).complete(ASKED)
    assert (found.prompt_tokens, found.completion_tokens) == (None, None)


def test_a_stream_where_none_was_asked_for():
    fake = FakeModel([(200, {"content-type": "text/event-stream"}, b"data: {}\n\n")])
    with pytest.raises(ReplyError, match="a stream of events"):
        client(fake).complete(ASKED)


def test_an_unasked_coding_is_not_unpacked():
    packed = gzip.compress(b"x" * 1000)
    fake = FakeModel([(200, {"content-encoding": "gzip"}, packed)])
    with pytest.raises(ReplyError, match="coding 'gzip'"):
        client(fake).complete(ASKED)


def test_a_body_without_end_is_not_read_to_its_end():
    read = 0

    class Endless(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            nonlocal read
            while True:
                read += 1 << 20
                yield b"x" * (1 << 20)

    transport = httpx.MockTransport(lambda _: httpx.Response(200, stream=Endless()))
    with pytest.raises(ReplyError, match="more than 8 MiB"):
        client(transport=transport).complete(ASKED)
    assert read <= LARGEST_BODY + (1 << 20)


def test_an_endpoint_that_is_down():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    waits: list[float] = []
    model = ChatModel(url=f"http://127.0.0.1:{port}", model="m")
    with (
        ChatClient(model, sleep=waits.append) as asking,
        pytest.raises(UnreachableError, match=r"is the endpoint started.*4 attempts"),
    ):
        asking.complete(ASKED)
    assert len(waits) == 3


def test_a_reply_that_is_cut_off_in_the_middle_is_asked_for_again():
    """A real socket that promises more than it sends."""
    listening = socket.create_server(("127.0.0.1", 0))
    calls = []

    def answer() -> None:
        for _ in range(4):
            connection, _ = listening.accept()
            with connection:
                calls.append(connection.recv(65536))
                connection.sendall(b'HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{"choices": [')

    thread = threading.Thread(target=answer)
    thread.start()
    model = ChatModel(url=f"http://127.0.0.1:{listening.getsockname()[1]}", model="m")
    with (
        listening,
        ChatClient(model, sleep=lambda _: None) as asking,
        pytest.raises(UnreachableError, match=r"cut off.*4 attempts"),
    ):
        asking.complete(ASKED)
    thread.join()
    assert len(calls) == 4


def test_a_slow_endpoint_is_not_asked_twice():
    fake_calls = 0

    def slow(_: httpx.Request) -> httpx.Response:
        nonlocal fake_calls
        fake_calls += 1
        raise httpx.ReadTimeout("slow")

    with pytest.raises(UnreachableError, match="no whole answer in 60 s"):
        client(transport=httpx.MockTransport(slow)).complete(ASKED)
    assert fake_calls == 1


def test_the_deadline_holds_for_a_body_that_drips():
    class Dripping(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            while True:
                yield b" "

    transport = httpx.MockTransport(lambda _: httpx.Response(200, stream=Dripping()))
    with pytest.raises(UnreachableError, match=r"no whole answer in 0\.01 s"):
        client(transport=transport, timeout_s=0.01).complete(ASKED)


def test_one_client_serves_several_threads():
    fake = FakeModel([lambda said: completion(said["messages"][0]["content"])])
    found: dict[int, str] = {}
    with fake.serve() as url, ChatClient(ChatModel(url=url, model="m")) as asking:

        def ask(number: int) -> None:
            found[number] = asking.complete([{"role": "user", "content": str(number)}]).text

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == {number: str(number) for number in range(8)}
    assert json.dumps(fake.asked[0]["messages"])
