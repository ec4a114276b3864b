from __future__ import annotations

import json
from typing import Any

import pytest

from ragwb.errors import ReplyError, UsageError
from ragwb.records import Retrieval
from ragwb.sources.mapping import SourceMapping, load_base_path, load_mapping

SOURCE: dict[str, Any] = {
    "path": "/search",
    "body": {"query": "{question}", "size": "{topK}", "options": ["Q: {question}", 3]},
    "results": "data.items[].{chunkId: id, score: score, documentId: doc}",
    "traceId": "meta.trace",
    "channels": {"vector": "debug.ann[].{chunkId: id}"},
    "context": "data.used",
    "tokens": {"context": "usage.ctx"},
}
BODY = {
    "data": {"items": [{"id": 7, "score": 0.5, "doc": "d"}, {"id": "a"}], "used": [7]},
    "meta": {"trace": 12},
    "debug": {"ann": []},
    "usage": {"ctx": 31},
}


def mapped(source: dict[str, Any]) -> SourceMapping:
    mapping = load_mapping(source)
    assert mapping is not None
    return mapping


def read(mapping: SourceMapping, body: object) -> dict[str, Any]:
    return mapping.read(json.dumps(body).encode())


def test_a_table_without_expressions_is_the_protocol() -> None:
    assert load_mapping({}) is None
    assert load_mapping({"base_path": "/eval"}) is None


def test_the_request_is_the_filled_template() -> None:
    path, body, params = mapped(SOURCE).request("怎么退款 {topK}？", 5)
    assert path == "/search"
    assert body == {"query": "怎么退款 {topK}？", "size": 5, "options": ["Q: 怎么退款 {topK}？", 3]}
    assert params == {}


def test_a_get_puts_the_question_into_path_and_query() -> None:
    source = {"path": "/s/{question}", "method": "get", "params": {"k": "{topK}"}, "results": "r"}
    mapping = mapped(source)
    assert mapping.method == "GET"
    assert mapping.request("a/b?", 3) == ("/s/a%2Fb%3F", None, {"k": "3"})


def test_a_reply_is_read_into_the_protocol_and_numbers_become_ids() -> None:
    retrieval = Retrieval.model_validate(read(mapped(SOURCE), BODY))
    assert [(c.chunk_id, c.score, c.document_id) for c in retrieval.results] == [
        ("7", 0.5, "d"),
        ("a", None, None),
    ]
    assert retrieval.trace_id == "12"
    assert retrieval.context == ["7"]
    assert retrieval.tokens is not None
    assert retrieval.tokens.context == 31


def test_empty_is_observed_and_absent_is_not() -> None:
    assert read(mapped(SOURCE), BODY)["channels"] == {"vector": []}
    without = {name: value for name, value in BODY.items() if name != "debug"}
    assert "channels" not in read(mapped(SOURCE), without)
    assert "filtered" not in read(mapped(SOURCE), BODY)


def test_no_results_is_an_error_and_an_empty_list_is_not() -> None:
    with pytest.raises(ReplyError, match="no results where"):
        read(mapped(SOURCE), {"data": {}})
    assert read(mapped(SOURCE), {"data": {"items": []}})["results"] == []


def test_what_is_not_json_is_said() -> None:
    with pytest.raises(ReplyError, match="not JSON"):
        mapped(SOURCE).read(b"<html>")


def test_an_expression_that_fails_on_a_reply_is_named() -> None:
    with pytest.raises(ReplyError, match=r"results fails on this reply"):
        read(mapped({"results": "sum(a)"}), {"a": ["x"]})


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"path": "/s"}, "results: missing"),
        ({"results": "a", "resluts": "b"}, "resluts: unknown key"),
        ({"results": "a[", "path": "/s"}, "is no JMESPath expression"),
        ({"results": 5}, "JMESPath expression in quotes"),
        ({"results": "a", "path": "s"}, "begins with /"),
        ({"results": "a", "method": "PUT"}, "not one of POST, GET"),
        ({"results": "a", "params": "k=5"}, "table of names and values"),
        ({"results": "a", "body": {"q": {"Tenant-Id": "t"}}}, "carries no identity"),
        ({"results": "a", "body": [{"effective_at": "2025"}]}, "carries no identity"),
        ({"results": "a", "params": {"departments": "hr"}}, "carries no identity"),
        *(
            ({"results": "a", "body": {"q": "{question}", name: "x"}}, f"body.{name}: a request")
            for name in ("dept", "deptId", "tenantCode", "user_name", "date", "callerTenant")
        ),
        ({"results": "a", "path": "/search?tenant=x"}, "path.tenant: a request carries no"),
        ({"results": "a", "path": "/s?q={question}&x%5Ften%61nt=x"}, "path.x_tenant: a request"),
        ({"results": "a", "path": "/s;tenantId=x?q={question}"}, "path.tenantId: a request"),
        ({"results": "a", "path": "/s?q={question}", "params": {"k": 1}}, "put all into params"),
    ],
)
def test_a_wrong_mapping_is_one_clear_line(source: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        load_mapping(source)
    assert str(caught.value).startswith("[tool.ragwb.source]")
    assert "\n" not in str(caught.value)


def test_a_chat_message_and_ordinary_names_are_no_identity() -> None:
    body = {"messages": [{"role": "user", "content": "{question}"}], "timeout": 5}
    params = {"user_query": "{question}", "updated": "true", "candidates": 50}
    mapping = mapped({"results": "a", "body": body, "params": params})
    assert mapping.request("问", 5)[1]["messages"] == [{"role": "user", "content": "问"}]


def test_a_query_string_in_the_path_is_kept() -> None:
    path, _, params = mapped({"results": "a", "path": "/s?q={question}&k={topK}"}).request("a&b", 3)
    assert (path, params) == ("/s?q=a%26b&k=3", {})


def test_the_base_path_is_a_path() -> None:
    assert load_base_path({}) == "/internal/eval/v1"
    assert load_base_path({"base_path": "/eval/"}) == "/eval"
    assert load_base_path({"base_path": "/"}) == ""


@pytest.mark.parametrize("path", ["/eval?tenant=x", "/eval;tenant=x", "/eval#a", "eval", 5])
def test_a_base_path_that_is_more_than_a_path_is_refused(path: object) -> None:
    with pytest.raises(UsageError, match=r"^\[tool.ragwb.source\] base_path: give a path"):
        load_base_path({"base_path": path})


@pytest.mark.parametrize(
    "results", ["data.items[].{chunkId: id}", "data.items[?id]", "sort_by(data.items, &id)"]
)
def test_the_hint_to_cut_a_page_is_an_expression_that_does(results: str) -> None:
    hint = mapped({"results": results}).cut_hint(2)
    given = json.loads(hint.rpartition("results = ")[2])
    page = {"data": {"items": [{"id": str(n)} for n in range(1, 10)]}}
    assert len(read(mapped({"results": results}), page)["results"]) == 9
    assert len(read(mapped({"results": given}), page)["results"]) == 2
