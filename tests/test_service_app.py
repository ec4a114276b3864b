from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from service_corpus import (
    KEY,
    NOW,
    create_app,
    make_pipeline,
    make_running,
    write_corpus,
    write_document,
)

from ragwb import records
from ragwb.errors import UnreachableError
from ragwb.knowledge.chunking import ChunkingSpec
from ragwb.service.auth import SCOPE_ASK, SCOPE_EVAL, SCOPE_EXPLAIN, SCOPE_HISTORY, mint_token
from ragwb.service.embedding import Kind, Vectors
from ragwb.service.pipeline import Pipeline
from ragwb.settings import EVAL_PATH

QUESTION = {"question": "退款多久到账", "topK": 3}
POSTS = ("/retrieve", "/answer", "/explain", "/chunks", "/history/retrieve")


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    return make_pipeline(tmp_path)


def send(
    pipeline: Pipeline | None,
    method: str,
    path: str,
    *,
    config_of: Pipeline | None = None,
    key: bytes | None = None,
    host: str = "127.0.0.1",
    **request: Any,
) -> httpx.Response:
    """One request to a fresh application, through ASGI."""
    known = pipeline or config_of
    assert known is not None
    app = create_app(make_running(pipeline, known.config, key=key))

    async def go() -> httpx.Response:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=f"http://{host}") as client:
            return await client.request(method, path, **request)

    return anyio.run(go)


def post(pipeline: Pipeline, call: str, body: object, **request: Any) -> httpx.Response:
    return send(pipeline, "POST", EVAL_PATH + call, json=body, **request)


def bearer(scopes: Sequence[str], **changes: Any) -> dict[str, str]:
    identity = {"subject": "eval", "tenant": "starmall", "departments": ["support"], **changes}
    token = mint_token(KEY, scopes=scopes, now=NOW, **identity)
    return {"Authorization": f"Bearer {token}"}


def assert_problem(reply: httpx.Response, status: int) -> dict[str, Any]:
    """The body of an error, checked to be one."""
    assert reply.status_code == status
    assert reply.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = reply.json()
    assert body["status"] == status
    assert set(body) - {"errors"} == {"type", "title", "status", "detail"}
    return body


def test_manifest_says_what_is_locked(pipeline: Pipeline) -> None:
    body = send(pipeline, "GET", f"{EVAL_PATH}/manifest").json()
    read = records.ServiceManifest.model_validate(body)

    assert set(body) == {
        "protocol", "service", "codeVersion", "knowledgeSnapshot", "indexVersion", "chunking",
        "embeddingModel", "embeddingDimensions", "distance", "candidateK", "threshold", "keyword",
        "rewrite", "fusion", "rerank", "contextBudgetTokens", "answerModel", "promptVersion",
        "temperature", "identity", "chunks",
    }  # fmt: skip
    assert read.protocol == "1"
    assert read.embedding_model == "hash"
    assert body["chunking"] == {"strategy": "heading", "version": "1", "size": 400, "overlap": 0}
    assert body["fusion"] == {
        "method": "rrf",
        "k": pipeline.config.rrf_k,
        "weights": {"vector": 1.0, "keyword": pipeline.config.keyword_weight},
        "rerank": {"method": "unit", "weight": pipeline.config.rerank_weight},
        "deduplicate": "off",
    }
    assert body["identity"] == {
        "subject": "local",
        "tenant": "starmall",
        "departments": ["support"],
    }
    assert body["answerModel"] is None


def test_manifest_differs_where_the_service_does(tmp_path: Path) -> None:
    def manifest(**settings: object) -> dict[str, Any]:
        made = make_pipeline(tmp_path, **settings)
        body: dict[str, Any] = send(made, "GET", f"{EVAL_PATH}/manifest").json()
        return body

    plain = manifest()
    other = manifest(mode="VECTOR", rerank=False, threshold=0.5, chunking=ChunkingSpec(size=50))

    assert (plain["keyword"], other["keyword"]) == (True, False)
    assert other["rerank"] is None
    assert other["threshold"] == 0.5
    assert other["chunking"]["size"] == 50
    assert other["indexVersion"] != plain["indexVersion"]
    assert other["knowledgeSnapshot"] == plain["knowledgeSnapshot"]


def test_retrieve_gives_every_stage(pipeline: Pipeline) -> None:
    reply = post(pipeline, "/retrieve", QUESTION)
    body = reply.json()
    read = records.Retrieval.model_validate(body)

    assert reply.status_code == 200
    assert list(body["channels"]) == ["vector", "keyword"]
    assert set(body["channels"]["vector"][0]) == {"chunkId", "score"}
    assert set(body["results"][0]) == {
        "chunkId", "score", "documentId", "documentVersion", "title", "text",
    }  # fmt: skip
    assert len(read.results) == 3
    assert body["rewrittenQuery"] is None
    assert body["effectiveAt"] == "2026-11-30T08:00:00Z"
    assert body["context"] == [candidate.chunk_id for candidate in read.results]
    assert set(read.observed) == set(records.Retrieval.model_fields) - {"rewritten_query"}


def test_top_k_defaults_and_bounds(pipeline: Pipeline) -> None:
    assert post(pipeline, "/retrieve", {"question": "退款"}).status_code == 200
    for top_k in (0, 101, -1, 2.5, "5", None, True):
        body = assert_problem(post(pipeline, "/retrieve", {**QUESTION, "topK": top_k}), 422)
        assert [entry["field"] for entry in body["errors"]] == ["topK"]


@pytest.mark.parametrize(
    ("call", "body", "field"),
    [
        ("/retrieve", {"topK": 5}, "question"),
        ("/retrieve", {"question": "", "topK": 5}, "question"),
        ("/retrieve", {"question": " \n", "topK": 5}, "question"),
        ("/retrieve", {"question": 7}, "question"),
        ("/retrieve", {"question": "退" * 4001}, "question"),
        ("/retrieve", {**QUESTION, "tenantId": "yunshang"}, "tenantId"),
        ("/retrieve", {**QUESTION, "effectiveAt": "2020-01-01"}, "effectiveAt"),
        ("/retrieve", {"question": "a", "top_k": 5}, "top_k"),
        ("/answer", {**QUESTION, "departments": []}, "departments"),
        ("/explain", QUESTION, "chunkIds"),
        ("/explain", {"question": "a", "chunkIds": [1]}, "chunkIds.0"),
        ("/explain", {"question": "a", "chunkIds": ["c"] * 1001}, "chunkIds"),
        ("/chunks", {}, "body"),
        ("/chunks", {"chunkIds": [], "documents": []}, "body"),
        ("/chunks", {"chunkIds": [], "cursor": "x"}, "body"),
        ("/chunks", {"documents": [{"documentId": "a", "tenant": "b"}]}, "documents.0.tenant"),
        ("/chunks", {"documents": [{"documentId": "a"}], "cursor": "zz"}, "cursor"),
    ],
)
def test_a_wrong_field_is_422_and_named(
    call: str, body: dict[str, Any], field: str, pipeline: Pipeline
) -> None:
    errors = assert_problem(post(pipeline, call, body), 422)["errors"]

    assert field in [entry["field"] for entry in errors]


def test_every_field_at_fault_is_named(pipeline: Pipeline) -> None:
    body = assert_problem(post(pipeline, "/retrieve", {"topK": 0, "tenant": "x"}), 422)

    assert {entry["field"] for entry in body["errors"]} == {"question", "topK", "tenant"}


@pytest.mark.parametrize(
    ("raw", "field"),
    [(b'{"question": "a", "\\ud800": 1}', "body"), (b'{"question": "\\ud800"}', "question")],
)
def test_half_a_code_point_is_a_wrong_field(raw: bytes, field: str, pipeline: Pipeline) -> None:
    reply = send(pipeline, "POST", f"{EVAL_PATH}/retrieve", content=raw)

    assert assert_problem(reply, 422)["errors"][0]["field"] == field


@pytest.mark.parametrize("call", POSTS)
@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b'"a"', b"null", b"\xff", b"[" * 100_000])
def test_what_is_no_json_object_is_400(raw: bytes, call: str, pipeline: Pipeline) -> None:
    headers = bearer([SCOPE_EVAL, SCOPE_EXPLAIN, SCOPE_HISTORY])
    reply = send(pipeline, "POST", EVAL_PATH + call, content=raw, key=KEY, headers=headers)

    assert_problem(reply, 400)


def test_a_body_over_the_limit_is_413(pipeline: Pipeline) -> None:
    fits = json.dumps(QUESTION).encode()
    limit = 1024 * 1024
    reply = send(
        pipeline, "POST", f"{EVAL_PATH}/retrieve", content=fits + b" " * (limit - len(fits))
    )
    assert reply.status_code == 200
    over = fits + b" " * (limit - len(fits) + 1)
    assert_problem(send(pipeline, "POST", f"{EVAL_PATH}/retrieve", content=over), 413)


def test_a_query_string_is_refused(pipeline: Pipeline) -> None:
    path = f"{EVAL_PATH}/manifest?tenant=yunshang"
    body = assert_problem(send(pipeline, "GET", path), 422)

    assert body["errors"][0]["field"] == "tenant"


def test_unknown_paths_and_methods_are_problems(pipeline: Pipeline) -> None:
    assert_problem(send(pipeline, "GET", "/nothing"), 404)
    reply = send(pipeline, "GET", f"{EVAL_PATH}/retrieve")
    assert_problem(reply, 405)
    assert "POST" in reply.headers["allow"]


def test_a_fault_of_the_service_is_500_without_its_reason(pipeline: Pipeline) -> None:
    def broken(_question: str) -> str:
        raise RuntimeError("secret place")

    reply = post(dataclasses.replace(pipeline, rewrite=broken), "/retrieve", QUESTION)

    assert "secret" not in reply.text
    assert_problem(reply, 500)


def test_an_embedding_endpoint_that_fails_is_502(pipeline: Pipeline) -> None:
    def encode(_texts: Sequence[str], _kind: Kind) -> Vectors:
        raise UnreachableError("POST http://embeddings.test: ConnectError; is it running?")

    embedder = dataclasses.replace(pipeline.embedder, encode=encode)
    reply = post(dataclasses.replace(pipeline, embedder=embedder), "/retrieve", QUESTION)

    assert "embedding endpoint" in assert_problem(reply, 502)["detail"]


def test_while_the_index_is_built_calls_are_503(pipeline: Pipeline) -> None:
    path = f"{EVAL_PATH}/retrieve"
    reply = send(None, "POST", path, json=QUESTION, config_of=pipeline)

    assert_problem(reply, 503)
    assert int(reply.headers["retry-after"]) > 0
    assert send(None, "GET", "/openapi.json", config_of=pipeline).status_code == 200


def test_without_an_answerer_answer_is_501(pipeline: Pipeline) -> None:
    assert "ask /retrieve" in assert_problem(post(pipeline, "/answer", QUESTION), 501)["detail"]


def test_history_is_501(pipeline: Pipeline) -> None:
    headers = bearer([SCOPE_EVAL, SCOPE_HISTORY])
    asked = {**QUESTION, "period": "2025-Q3"}
    reply = post(pipeline, "/history/retrieve", asked, key=KEY, headers=headers)
    assert_problem(reply, 501)


@pytest.mark.parametrize(
    ("method", "call"), [("GET", "/manifest"), *(("POST", call) for call in POSTS)]
)
def test_every_call_asks_for_a_token_and_its_scope(
    method: str, call: str, pipeline: Pipeline
) -> None:
    path = EVAL_PATH + call
    anonymous = send(pipeline, method, path, json={}, key=KEY)
    ordinary = send(pipeline, method, path, json={}, key=KEY, headers=bearer([SCOPE_ASK]))

    assert_problem(anonymous, 401)
    assert anonymous.headers["www-authenticate"] == "Bearer"
    assert SCOPE_EVAL in assert_problem(ordinary, 403)["detail"]


def test_the_token_is_checked_before_the_body_is_read(pipeline: Pipeline) -> None:
    reply = send(pipeline, "POST", f"{EVAL_PATH}/retrieve", content=b"x" * 2**21, key=KEY)

    assert_problem(reply, 401)


def test_history_needs_its_own_scope(pipeline: Pipeline) -> None:
    asked = {**QUESTION, "period": "2025-Q3"}
    headers = bearer([SCOPE_EVAL, SCOPE_EXPLAIN])
    reply = post(pipeline, "/history/retrieve", asked, key=KEY, headers=headers)

    assert SCOPE_HISTORY in assert_problem(reply, 403)["detail"]


def test_the_explain_scope_opens_filtered_and_explain(pipeline: Pipeline) -> None:
    asked = {"question": "退款", "chunkIds": [pipeline.index.chunk_ids[0]]}
    plain, wide = bearer([SCOPE_EVAL]), bearer([SCOPE_EVAL, SCOPE_EXPLAIN])

    closed = post(pipeline, "/retrieve", QUESTION, key=KEY, headers=plain).json()
    opened = post(pipeline, "/retrieve", QUESTION, key=KEY, headers=wide).json()
    assert "filtered" not in closed
    assert opened["filtered"]
    assert set(opened["filtered"][0]) == {"chunkId", "channel", "reason"}
    refused = post(pipeline, "/explain", asked, key=KEY, headers=plain)
    assert SCOPE_EXPLAIN in assert_problem(refused, 403)["detail"]
    assert post(pipeline, "/explain", asked, key=KEY, headers=wide).status_code == 200


def test_explain_without_the_eval_scope_is_refused(pipeline: Pipeline) -> None:
    asked = {"question": "退款", "chunkIds": []}
    reply = post(pipeline, "/explain", asked, key=KEY, headers=bearer([SCOPE_EXPLAIN]))

    assert_problem(reply, 403)


def test_identity_comes_from_the_token(pipeline: Pipeline) -> None:
    headers = bearer([SCOPE_EVAL], tenant="yunshang", departments=[])
    body = post(pipeline, "/retrieve", {**QUESTION, "topK": 100}, key=KEY, headers=headers).json()

    assert [result["text"].split("\n\n")[1].strip() for result in body["results"]] == [
        "云裳退款当天到账。"
    ]
    manifest = send(pipeline, "GET", f"{EVAL_PATH}/manifest", key=KEY, headers=headers).json()
    assert manifest["identity"] == {"subject": "eval", "tenant": "yunshang", "departments": []}


def test_explain_gives_ids_and_reasons_only(pipeline: Pipeline) -> None:
    ids = [*pipeline.index.chunk_ids, "chunk-none"]
    body = post(pipeline, "/explain", {"question": "退款", "chunkIds": ids}).json()

    assert [entry["chunkId"] for entry in body["chunks"]] == ids
    for entry in body["chunks"]:
        assert set(entry) == {"chunkId", "state", "movedTo", "visible", "filteredBy", "ranks"}
        assert set(entry["ranks"]) == {"vector", "keyword", "fused", "reranked"}


def test_chunks_by_id_gives_what_may_be_read_in_the_order_asked(pipeline: Pipeline) -> None:
    ids = ["chunk-none", *reversed(pipeline.index.chunk_ids)]
    chunks = post(pipeline, "/chunks", {"chunkIds": ids}).json()["chunks"]
    documents = {(chunk["documentId"], chunk["documentVersion"]) for chunk in chunks}

    assert documents == {
        ("refund", "2025.10"),
        ("refund", "2025.9"),
        ("codes", "1"),
        ("future", "1"),
    }
    assert [c["chunkId"] for c in chunks] == [
        i for i in ids if i in {chunk["chunkId"] for chunk in chunks}
    ]
    assert set(chunks[0]) == {
        "chunkId", "documentId", "documentVersion", "title", "text", "start", "end",
    }  # fmt: skip
    assert len(chunks[0]["text"]) == chunks[0]["end"] - chunks[0]["start"]


@pytest.mark.parametrize(
    ("reference", "versions"),
    [
        ({"documentId": "refund", "documentVersion": "2025.10"}, {"2025.10"}),
        ({"documentId": "refund", "documentVersion": None}, {"2025.10", "2025.9"}),
        ({"documentId": "refund"}, {"2025.10", "2025.9"}),
        ({"documentId": "finance"}, set()),
        ({"documentId": "nothing"}, set()),
    ],
)
def test_chunks_by_document(
    reference: dict[str, Any], versions: set[str], pipeline: Pipeline
) -> None:
    body = post(pipeline, "/chunks", {"documents": [reference]}).json()

    assert {chunk["documentVersion"] for chunk in body["chunks"]} == versions
    assert body["nextCursor"] is None


@pytest.mark.parametrize("row", ["9" * 5000, "٣", "+1", "1_0", " 1", ""])
def test_a_cursor_that_the_service_never_wrote_is_422(row: str, pipeline: Pipeline) -> None:
    cursor = f"{pipeline.index.meta['index_version'][:8]}-{row}"
    body = {"documents": [{"documentId": "refund"}], "cursor": cursor}

    errors = assert_problem(post(pipeline, "/chunks", body), 422)["errors"]
    assert [entry["field"] for entry in errors] == ["cursor"]


def test_chunks_by_document_come_page_by_page(tmp_path: Path) -> None:
    write_corpus(tmp_path / "corpus")
    body = "# 长文\n\n" + "".join(f"## 第{n}节\n\n第{n}节的正文。\n\n" for n in range(450))
    write_document(tmp_path / "corpus", "long", body)
    pipeline = make_pipeline(tmp_path)
    asked: dict[str, Any] = {"documents": [{"documentId": "long"}], "cursor": None}
    pages = []
    while True:
        page = post(pipeline, "/chunks", asked).json()
        pages.append([chunk["chunkId"] for chunk in page["chunks"]])
        if page["nextCursor"] is None:
            break
        asked["cursor"] = page["nextCursor"]

    assert [len(page) for page in pages] == [200, 200, 50]
    long = [i for i in pipeline.index.chunk_ids if _document(pipeline, i) == "long"]
    assert [chunk_id for page in pages for chunk_id in page] == long


def _document(pipeline: Pipeline, chunk_id: str) -> str:
    return pipeline.index.document(pipeline.index.row_of[chunk_id]).document_id


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1", 200),
        ("localhost:8080", 200),
        ("[::1]:8080", 200),
        ("127.0.0.2:8080", 200),
        ("evil.example", 400),
        ("localhost:80@evil.example", 400),
        ("[::1]evil.example", 400),
        ("[::1", 400),
        ("10.0.0.1", 400),
        ("", 400),
        ("127.0.0.1.evil.example", 400),
    ],
)
def test_without_tokens_only_this_machines_names_are_answered(
    host: str, status: int, pipeline: Pipeline
) -> None:
    reply = send(pipeline, "GET", f"{EVAL_PATH}/manifest", headers={"Host": host})

    assert reply.status_code == status
    if status != 200:
        assert_problem(reply, status)


def test_with_tokens_any_name_is_answered(pipeline: Pipeline) -> None:
    path = f"{EVAL_PATH}/manifest"
    headers = bearer([SCOPE_EVAL])

    assert send(pipeline, "GET", path, host="eval.test", key=KEY, headers=headers).is_success


def test_openapi_describes_every_call(pipeline: Pipeline) -> None:
    document = send(pipeline, "GET", "/openapi.json").json()

    assert document["openapi"] == "3.1.0"
    assert set(document["paths"]) == {EVAL_PATH + call for call in ("/manifest", *POSTS)}
    schemas = document["components"]["schemas"]
    assert schemas["RetrieveRequest"]["additionalProperties"] is False
    assert set(schemas["RetrieveRequest"]["properties"]) == {"question", "topK"}
    text = json.dumps(document)
    for reference in set(_references(document)):
        assert reference.startswith("#/components/schemas/")
        assert reference.rpartition("/")[2] in schemas, text


def _references(value: object) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [found for item in value.values() for found in _references(item)]
    if isinstance(value, list):
        return [found for item in value for found in _references(item)]
    return []
