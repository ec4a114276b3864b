"""The service's calls as an OpenAPI 3.1 document, made from the records that it answers with."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, create_model
from pydantic.json_schema import models_json_schema

from ragwb.records import Answered, Chunk, Explanation, Record, Retrieval, ServiceManifest
from ragwb.service.problems import MEDIA_TYPE
from ragwb.service.requests import (
    ChunksRequest,
    ExplainRequest,
    HistoryRequest,
    RetrieveRequest,
)
from ragwb.settings import EVAL_PATH

_ERRORS = {
    "400": "not JSON",
    "401": "no, bad or expired token",
    "403": "the token lacks a scope",
    "413": "the body is over 1 MiB",
    "422": "a field is wrong, and named",
    "500": "the chat model that answers failed, asked as often as it makes sense",
    "501": "not offered by this service",
    "502": "the embedding endpoint failed",
    "503": "the index is being built; see Retry-After",
}
_PROBLEM = {
    "type": "object",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"field": {"type": "string"}, "message": {"type": "string"}},
            },
        },
    },
    "required": ["type", "title", "status", "detail"],
}

ExplainReply = create_model("ExplainReply", __base__=Record, chunks=(list[Explanation], ...))
ChunksReply = create_model(
    "ChunksReply", __base__=Record, chunks=(list[Chunk], ...), next_cursor=(str | None, None)
)

# path, method, request, reply, what it does, scope
_CALLS: tuple[tuple[str, str, type[BaseModel] | None, type[BaseModel], str, str], ...] = (
    ("/manifest", "get", None, ServiceManifest, "What is locked for a run", "knowledge:eval"),
    ("/retrieve", "post", RetrieveRequest, Retrieval, "Results of a question", "knowledge:eval"),
    ("/answer", "post", RetrieveRequest, Answered, "Results and an answer", "knowledge:eval"),
    (
        "/explain",
        "post",
        ExplainRequest,
        ExplainReply,
        "What is known of given chunks for a question",
        "knowledge:eval:explain",
    ),
    ("/chunks", "post", ChunksRequest, ChunksReply, "Chunks by id or document", "knowledge:eval"),
    (
        "/history/retrieve",
        "post",
        HistoryRequest,
        Retrieval,
        "Results at a past time that the configuration names",
        "knowledge:eval:history",
    ),
)


def openapi(version: str) -> dict[str, Any]:
    """The OpenAPI 3.1 document of a service of this version."""
    models = {model for call in _CALLS for model in call[2:4] if model is not None}
    ordered = sorted(models, key=lambda model: model.__name__)
    _, definitions = models_json_schema(
        [(model, "validation") for model in ordered],
        by_alias=True,
        ref_template="#/components/schemas/{model}",
    )
    return {
        "openapi": "3.1.0",
        "info": {"title": "ragwb reference knowledge service", "version": version},
        "paths": {EVAL_PATH + call[0]: {call[1]: _operation(*call)} for call in _CALLS},
        "components": {
            "schemas": {**definitions["$defs"], "Problem": _PROBLEM},
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}
            },
        },
    }


def _operation(
    path: str,
    _method: str,
    request: type[BaseModel] | None,
    reply: type[BaseModel],
    summary: str,
    scope: str,
) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": path.strip("/").replace("/", "_"),
        "summary": summary,
        "description": f"Needs the scope {scope}.",
        "security": [{"token": []}],
        "responses": {
            "200": _content("the answer", "application/json", reply.__name__),
            **{status: _content(text, MEDIA_TYPE, "Problem") for status, text in _ERRORS.items()},
        },
    }
    if request is not None:
        content = _content("", "application/json", request.__name__)["content"]
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _content(text: str, media_type: str, schema: str) -> dict[str, Any]:
    reference = {"$ref": f"#/components/schemas/{schema}"}
    return {"description": text, "content": {media_type: {"schema": reference}}}
