from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest
from loopback import FakeService, Reply, json_reply

from ragwb.errors import AccessError, ReplyError, UnreachableError
from ragwb.settings import Settings
from ragwb.sources.service import (
    BATCH,
    MOST_PAGES,
    ServiceClient,
    open_clients,
)
from ragwb.sources.token import TokenSource

T = TypeVar("T")
CHUNKS = {"doc-0": "一", "doc-1": "二", "other-0": "三"}


def settings(**given: Any) -> Settings:
    return Settings(root=Path(), home=Path(), base_url="http://service.example", **given)


def with_client(
    transport: httpx.AsyncBaseTransport, use: Callable[[ServiceClient], Awaitable[T]], **given: Any
) -> T:
    async def run() -> T:
        async with open_clients(settings(**given), transport=transport) as clients:
            return await use(clients[None])

    return asyncio.run(run())


def retrieve_from(reply: Reply, top_k: int = 5) -> Any:
    service = FakeService(retrieve=lambda _: reply)
    return with_client(service.transport(), lambda client: client.retrieve("问", top_k))


def test_manifest_with_what_it_says_beyond_the_protocol() -> None:
    service = FakeService(
        manifest={"service": "s", "embeddingModel": "e5", "chunks": {"visible": 9}}
    )
    said = with_client(service.transport(), lambda client: client.get_manifest())
    assert said is not None
    assert (said.service, said.embedding_model, said.candidate_k) == ("s", "e5", None)
    assert said.model_dump()["chunks"] == {"visible": 9}


UNREADABLE = {
    "rerank": False,
    "fusion": "rrf",
    "keyword": "bm25",
    "threshold": [0.5],
    "chunking": {"strategy": ["heading"], "version": 1, "size": 400},
    "identity": {"tenant": "t", "departments": ["a", None]},
}


def test_a_field_of_a_manifest_that_cannot_be_read_is_null_and_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    service = FakeService(manifest={"service": "s", "candidateK": 50, **UNREADABLE})
    said = with_client(service.transport(), lambda client: client.get_manifest())
    assert said is not None
    assert (said.service, said.candidate_k) == ("s", 50)
    assert (said.rerank, said.fusion, said.keyword, said.threshold) == (None,) * 4
    assert said.chunking is not None
    assert said.chunking.model_dump(exclude_none=True) == {"version": "1", "size": 400}
    assert said.identity is not None
    assert said.identity.model_dump(exclude_none=True) == {"tenant": "t"}
    (warning,) = caplog.messages
    assert warning.startswith("GET http://service.example/internal/eval/v1/manifest: not readable")
    for named in ("rerank false", 'fusion "rrf"', 'keyword "bm25"', "threshold [0.5]"):
        assert named in warning
    assert "chunking.strategy" in warning
    assert "identity.departments" in warning
    assert "candidateK" not in warning


def test_the_warning_is_given_once_for_all_identities(caplog: pytest.LogCaptureFixture) -> None:
    service = FakeService(manifest={"rerank": False})

    async def run() -> None:
        label = TokenSource(lambda: "other-token", renewable=False)
        async with open_clients(
            settings(), identities={"hr": label}, transport=service.transport()
        ) as clients:
            for client in clients.values():
                await client.get_manifest()

    asyncio.run(run())
    assert len(caplog.messages) == 1


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'"manifest"', b""])
def test_what_is_no_manifest_at_all_is_an_error(body: bytes) -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=body))
    with pytest.raises(
        ReplyError, match=r"GET .*/manifest: (a reply of a wrong shape: )?the reply"
    ):
        with_client(transport, lambda client: client.get_manifest())


def test_null_entries_of_a_reply_are_not_observed() -> None:
    body = {
        "results": [{"chunkId": "a"}],
        "channels": {"vector": [{"chunkId": "a"}], "keyword": None},
        "timingsMs": {"rerank": None},
    }
    said = retrieve_from(json_reply(body)).retrieval
    assert list(said.channels) == ["vector"]
    assert said.observed == ("channels", "results")


def test_an_explanation_with_nulls_is_read() -> None:
    nulls = {"movedTo": None, "filteredBy": None, "ranks": None}
    told = {"chunkId": "a", "state": "published", "visible": True, **nulls}
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json={"chunks": [told]}))
    said = with_client(transport, lambda client: client.explain("q", ["a"]))
    assert said is not None
    assert (said[0].moved_to, said[0].ranks) == (None, None)


def test_optional_calls_that_are_not_there_are_not_observed() -> None:
    service = FakeService(manifest=None, explain=False, chunk_call=False)

    async def all_calls(client: ServiceClient) -> list[object]:
        return [
            await client.get_manifest(),
            await client.explain("q", ["a"]),
            await client.get_chunks(["a"]),
            await client.get_document_chunks([("doc", "1")]),
        ]

    assert with_client(service.transport(), all_calls) == [None] * 4


def test_a_scope_that_is_missing_closes_explain_but_fails_the_manifest() -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(403))
    assert with_client(transport, lambda client: client.explain("q", ["a"])) is None
    with pytest.raises(AccessError, match="scope"):
        with_client(transport, lambda client: client.get_manifest())


def test_retrieve_asks_question_and_top_k_and_nothing_else() -> None:
    bodies: list[dict[str, Any]] = []

    def note(body: dict[str, Any]) -> Reply:
        bodies.append(body)
        return json_reply({"results": []})

    service = FakeService(retrieve=note)
    reply = with_client(service.transport(), lambda client: client.retrieve("退款？", 7))
    assert bodies == [{"question": "退款？", "topK": 7}]
    assert reply.retrieval.results == []
    assert reply.retrieval.observed == ("results",)


def test_a_byte_order_mark_is_no_fault() -> None:
    reply = retrieve_from((200, {}, b'\xef\xbb\xbf{"results": []}'))
    assert reply.retrieval.results == []


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (
            (200, {"content-type": "application/json"}, b'{"results": ['),
            "not JSON (application/json)",
        ),
        ((200, {"content-type": "text/html"}, b"<html>"), "not JSON (text/html)"),
        ((200, {}, b""), "not JSON (no content type)"),
        ((200, {}, b'{"results": [{"chunkId": "\xff"}]}'), "not JSON"),
        (json_reply([]), "the reply:"),
        (json_reply({"results": ["chunk-a"]}), "results.0:"),
        (json_reply({"results": [{"chunkId": None}]}), "results.0.chunkId:"),
        (json_reply({"results": [{"chunkId": ""}]}), "results.0.chunkId:"),
        (json_reply({"results": [{"text": "t"}]}), "results.0.chunkId:"),
        (json_reply({"results": None}), "results:"),
        (json_reply({}), "results:"),
        (json_reply({"results": [], "channels": {"context": []}}), "a channel 'context'"),
        ((200, {}, b'{"results": [{"chunkId": "a", "score": NaN}]}'), "results.0.score: "),
        ((200, {}, b'{"results": [], "timingsMs": {"total": Infinity}}'), "timingsMs.total: "),
    ],
)
def test_a_reply_of_another_shape_is_one_line_that_says_where(reply: Reply, said: str) -> None:
    with pytest.raises(ReplyError) as caught:
        retrieve_from(reply)
    message = str(caught.value)
    assert message.startswith("POST http://service.example/internal/eval/v1/retrieve: ")
    assert said in message
    assert "\n" not in message


def test_deep_nesting_is_a_fault_and_no_crash() -> None:
    with pytest.raises(ReplyError, match="not JSON"):
        retrieve_from((200, {}, b'{"results":' + b"[" * 100_000))


def test_more_results_than_asked_for_is_an_error_that_names_both_numbers() -> None:
    many = json_reply({"results": [{"chunkId": f"c{n}"} for n in range(10_000)]})
    with pytest.raises(ReplyError, match=r"10,000 results for topK 5"):
        retrieve_from(many)


def test_fewer_results_and_duplicates_are_kept_as_they_are() -> None:
    reply = retrieve_from(json_reply({"results": [{"chunkId": "b"}, {"chunkId": "b"}]}))
    assert [c.chunk_id for c in reply.retrieval.results] == ["b", "b"]


def test_long_lists_of_ids_are_asked_in_batches() -> None:
    service = FakeService(chunks={f"doc-{n}": "t" for n in range(BATCH + 1)})
    ids = list(service.chunks)
    explained = with_client(service.transport(), lambda client: client.explain("q", ids))
    assert explained is not None
    assert [e.chunk_id for e in explained] == ids
    assert [len(body["chunkIds"]) for body in service.explained] == [BATCH, 1]
    chunks = with_client(service.transport(), lambda client: client.get_chunks(ids))
    assert chunks is not None
    assert len(chunks) == BATCH + 1


def paged(*pages: dict[str, Any]) -> tuple[httpx.MockTransport, list[Any]]:
    bodies: list[Any] = []

    def handle(request: httpx.Request) -> httpx.Response:
        bodies.append(json.loads(request.content))
        return httpx.Response(200, json=pages[min(len(bodies), len(pages)) - 1])

    return httpx.MockTransport(handle), bodies


def test_pages_of_chunks_are_followed_to_the_end() -> None:
    transport, bodies = paged(
        {"chunks": [{"chunkId": "a"}], "nextCursor": "2"},
        {"chunks": [{"chunkId": "b"}], "nextCursor": None},
    )
    documents: list[tuple[str, str | None]] = [("doc", "1"), ("any", None)]
    found = with_client(transport, lambda client: client.get_document_chunks(documents))
    assert found is not None
    assert [chunk.chunk_id for chunk in found] == ["a", "b"]
    named = [{"documentId": "doc", "documentVersion": "1"}, {"documentId": "any"}]
    assert bodies == [{"documents": named}, {"documents": named, "cursor": "2"}]


def test_a_cursor_that_comes_again_would_never_end() -> None:
    transport, _ = paged({"chunks": [], "nextCursor": "2"})
    with pytest.raises(ReplyError, match="a second time"):
        with_client(transport, lambda client: client.get_document_chunks([("doc", None)]))


def test_the_base_path_is_a_setting_and_is_not_doubled() -> None:
    seen: list[str] = []

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(request.url.path)
        return httpx.Response(200, json={})

    for given in (
        settings(),
        settings(source={"base_path": "/eval/"}),
        Settings(root=Path(), home=Path(), base_url="http://service.example/internal/eval/v1"),
    ):

        async def run(given: Settings = given) -> None:
            async with open_clients(given, transport=httpx.MockTransport(handle)) as clients:
                await clients[None].get_manifest()

        asyncio.run(run())
    assert seen == ["/internal/eval/v1/manifest", "/eval/manifest", "/internal/eval/v1/manifest"]


MAPPED = {"path": "/search", "body": {"q": "{question}"}, "results": "hits[].{chunkId: id}"}


def test_a_mapped_endpoint_is_asked_its_own_way_and_nothing_else_of_it() -> None:
    asked: list[tuple[str, bytes]] = []

    def handle(request: httpx.Request) -> httpx.Response:
        asked.append((request.url.path, request.content))
        return httpx.Response(200, json={"hits": [{"id": 3}]})

    async def all_calls(client: ServiceClient) -> list[object]:
        reply = await client.retrieve("问", 5)
        assert [c.chunk_id for c in reply.retrieval.results] == ["3"]
        return [await client.explain("q", ["3"]), await client.get_chunks(["3"])]

    assert with_client(httpx.MockTransport(handle), all_calls, source=MAPPED) == [None, None]
    assert asked == [("/search", b'{"q":"\\u95ee"}')]


def test_a_mapped_reply_that_cannot_be_used_names_the_call() -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json={"hits": [{"id": None}]}))
    with pytest.raises(
        ReplyError,
        match=r"POST http://service.example/search: a reply of a wrong shape: results.0.c",
    ):
        with_client(transport, lambda client: client.retrieve("q", 5), source=MAPPED)


def test_a_mapped_page_that_is_too_large_says_how_to_cut_it() -> None:
    page = {"hits": [{"id": n} for n in range(10)]}
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=page))
    with pytest.raises(ReplyError) as caught:
        with_client(transport, lambda client: client.retrieve("q", 5), source=MAPPED)
    message = str(caught.value)
    assert message.startswith("POST http://service.example/search: 10 results for topK 5; ")
    assert 'results = "hits[].{chunkId: id} | [:5]"' in message


def test_a_mapped_host_only_has_to_answer_before_the_run() -> None:
    there = httpx.MockTransport(lambda _: httpx.Response(404))
    assert with_client(there, lambda client: client.get_manifest(), source=MAPPED) is None

    def refuse(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("no certificate") from ssl.SSLError("bad")

    with pytest.raises(UnreachableError, match="TLS"):
        with_client(
            httpx.MockTransport(refuse), lambda client: client.get_manifest(), source=MAPPED
        )


def test_a_cursor_that_is_always_new_ends() -> None:
    pages = 0

    def handle(request: httpx.Request) -> httpx.Response:
        nonlocal pages
        pages += 1
        return httpx.Response(200, json={"chunks": [], "nextCursor": str(pages)})

    with pytest.raises(ReplyError, match="nextCursor leads on after 10,000 pages"):
        with_client(
            httpx.MockTransport(handle), lambda client: client.get_document_chunks([("doc", None)])
        )
    assert pages == MOST_PAGES


def test_numbers_that_json_does_not_know_are_null_in_a_manifest(
    caplog: pytest.LogCaptureFixture,
) -> None:
    body = b'{"threshold": NaN, "service": "s", "fusion": {"k": 1e400}, "own": [-Infinity, 1]}'
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=body))
    said = with_client(transport, lambda client: client.get_manifest())
    assert said is not None
    assert (said.threshold, said.service, said.fusion) == (None, "s", {"k": None})
    assert said.model_dump()["own"] == [None, 1]
    for place in ("threshold NaN", "fusion.k Infinity", "own.0 -Infinity"):
        assert place in caplog.text


def test_each_client_scrubs_the_tokens_of_all(tmp_path: Path) -> None:
    tokens = {"hr": "hr-secret-token", "it": "it-secret-token"}
    said = " ".join(tokens.values())
    service = FakeService(retrieve=lambda _: json_reply({"results": [], "traceId": said}))

    async def run() -> list[str | None]:
        sources = {
            label: TokenSource(lambda token=token: token, renewable=False)  # type: ignore[misc]
            for label, token in tokens.items()
        }
        async with open_clients(
            settings(), identities=sources, transport=service.transport()
        ) as clients:
            return [(await c.retrieve("q", 1)).retrieval.trace_id for c in clients.values()]

    assert asyncio.run(run()) == ["[token] [token]"] * 3
