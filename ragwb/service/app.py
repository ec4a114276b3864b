"""The evaluation protocol over HTTP, as one ASGI application."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from ragwb.errors import SourceError
from ragwb.records import Chunk, Record, Retrieval
from ragwb.service.answering import answer_question
from ragwb.service.auth import SCOPE_EVAL, SCOPE_EXPLAIN, SCOPE_HISTORY, identify, require
from ragwb.service.chunks import chunks_by_document, chunks_by_id
from ragwb.service.config import ServiceConfig, is_loopback
from ragwb.service.database import DatabaseLostError
from ragwb.service.explain import explain
from ragwb.service.openapi import openapi
from ragwb.service.pipeline import (
    Clock,
    Pipeline,
    document_reasons,
    retrieve,
    utc_now,
    visible_rows,
)
from ragwb.service.problems import ProblemError, on_failure, on_http_exception, on_problem, problem
from ragwb.service.requests import (
    ChunksRequest,
    ExplainRequest,
    HistoryRequest,
    RetrieveRequest,
    parse,
)
from ragwb.service.said import said_of
from ragwb.service.visibility import Caller
from ragwb.settings import EVAL_PATH

MAX_BODY_BYTES = 1024 * 1024
RETRY_AFTER_S = 5
# RFC 9110, 7.2: a name or a bracketed address and a port, and nothing like user@ beside them.
_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[0-9a-z.-]+)(?::[0-9]{0,5})?")

Answer = Callable[[Pipeline, Caller, bytes], dict[str, Any]]


@dataclass(slots=True)
class Running:
    """What the application answers with; `pipeline` is None while the index is being built."""

    config: ServiceConfig
    key: bytes | None
    clock: Clock = utc_now
    pipeline: Pipeline | None = None


def create_app(running: Running) -> Starlette:
    """The application of a service.

    Args:
        running: configuration, key (None: the fixed local identity), clock, and the pipeline,
            which may be set later; until then the calls answer 503.
    """
    calls = [
        _call(running, "GET", "/manifest", SCOPE_EVAL, _manifest),
        _call(running, "POST", "/retrieve", SCOPE_EVAL, _retrieve),
        _call(running, "POST", "/answer", SCOPE_EVAL, _answer),
        _call(running, "POST", "/explain", SCOPE_EXPLAIN, _explain),
        _call(running, "POST", "/chunks", SCOPE_EVAL, _chunks),
        _call(running, "POST", "/history/retrieve", SCOPE_HISTORY, _history),
    ]
    return Starlette(
        routes=[Route("/openapi.json", _openapi, methods=["GET"]), *calls],
        middleware=[Middleware(HostCheck, local=running.key is None)],
        exception_handlers={
            ProblemError: on_problem,
            HTTPException: on_http_exception,
            Exception: on_failure,
        },
    )


class HostCheck:
    """Middleware that, without tokens, answers only requests to localhost or a loopback address.

    Otherwise a page in a browser could point its own name at 127.0.0.1 and read the knowledge
    (DNS rebinding).
    """

    def __init__(self, app: ASGIApp, *, local: bool) -> None:
        self.app = app
        self.local = local

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it with 400."""
        if not self.local or scope["type"] != "http" or is_loopback(_host(scope)):
            await self.app(scope, receive, send)
            return
        refusal = problem(ProblemError(400, "address this service as 127.0.0.1 or localhost"))
        await refusal(scope, receive, send)


def _host(scope: Scope) -> str:
    """The name in the Host header without its port; "" when it is none."""
    headers = dict(scope["headers"])
    host: str = headers.get(b"host", b"").decode("latin-1").strip().casefold()
    match = _HOST.fullmatch(host)
    return match["name"] if match else ""


def _call(running: Running, method: str, path: str, scope: str, answer: Answer) -> Route:
    """A route that identifies the caller, checks its scope, reads the body and answers."""

    async def endpoint(request: Request) -> Response:
        caller = identify(
            request.headers.get("authorization"),
            running.key,
            now=running.clock(),
            issuer=running.config.issuer,
            audience=running.config.audience,
        )
        # An evaluation call is closed to a token that lacks this scope, whatever else it has.
        require(caller, SCOPE_EVAL)
        require(caller, scope)
        _refuse_query(request)
        body = b"" if method == "GET" else await _read_body(request)
        if running.pipeline is None:
            raise ProblemError(
                503, "the index is being built", headers={"Retry-After": str(RETRY_AFTER_S)}
            )
        try:
            return JSONResponse(await run_in_threadpool(answer, running.pipeline, caller, body))
        except DatabaseLostError as error:
            raise ProblemError(
                503, str(error), headers={"Retry-After": str(RETRY_AFTER_S)}
            ) from error
        except SourceError as error:
            raise ProblemError(502, f"the embedding endpoint failed: {error}") from error

    return Route(EVAL_PATH + path, endpoint, methods=[method], name=path.strip("/"))


def _refuse_query(request: Request) -> None:
    names = sorted(set(request.query_params))
    if names:
        fields = [(name, "unknown field; a call takes no query string") for name in names]
        raise ProblemError(422, f"{names[0]}: a call takes no query string", fields=fields)


async def _read_body(request: Request) -> bytes:
    """The body, read no further than the limit, whatever its header claims."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > MAX_BODY_BYTES:
            raise ProblemError(413, f"the body is over {MAX_BODY_BYTES} bytes")
    return bytes(body)


def _manifest(pipeline: Pipeline, caller: Caller, _body: bytes) -> dict[str, Any]:
    # Beside the protocol's fields: how much of the knowledge this identity can be shown at all.
    reasons = document_reasons(pipeline, caller, pipeline.clock())
    visible = int(visible_rows(pipeline.index, reasons).sum())
    total = len(pipeline.index.chunk_ids)
    return {**_json(said_of(pipeline, caller)), "chunks": {"total": total, "visible": visible}}


def _retrieve(pipeline: Pipeline, caller: Caller, body: bytes) -> dict[str, Any]:
    asked = parse(RetrieveRequest, body)
    named = SCOPE_EXPLAIN in caller.scopes
    return _told(retrieve(pipeline, caller, asked.question, asked.top_k, explain=named), named)


def _answer(pipeline: Pipeline, caller: Caller, body: bytes) -> dict[str, Any]:
    asked = parse(RetrieveRequest, body)
    if pipeline.answerer is None:
        raise ProblemError(501, "this service does not answer; ask /retrieve")
    named = SCOPE_EXPLAIN in caller.scopes
    found = answer_question(
        pipeline, pipeline.answerer, caller, asked.question, asked.top_k, explain=named
    )
    return _told(found, named)


def _told(found: Retrieval, named: bool) -> dict[str, Any]:
    """A reply as it is sent: what a candidate or the token counts do not say is left out."""
    reply = found.model_dump(mode="json", by_alias=True, exclude_unset=True)
    if not named:
        # Not observed is said by absence: an empty list would claim that nothing was filtered.
        del reply["filtered"]
    return reply


def _history(_pipeline: Pipeline, _caller: Caller, body: bytes) -> dict[str, Any]:
    parse(HistoryRequest, body)
    raise ProblemError(501, "this service knows no past periods")


def _explain(pipeline: Pipeline, caller: Caller, body: bytes) -> dict[str, Any]:
    asked = parse(ExplainRequest, body)
    found = explain(pipeline, caller, asked.question, asked.chunk_ids)
    return {"chunks": [_json(explanation) for explanation in found]}


def _chunks(pipeline: Pipeline, caller: Caller, body: bytes) -> dict[str, Any]:
    asked = parse(ChunksRequest, body)
    if asked.documents is None:
        return {"chunks": _listed(chunks_by_id(pipeline.index, caller, asked.chunk_ids or []))}
    wanted = [(ref.document_id, ref.document_version) for ref in asked.documents]
    page, cursor = chunks_by_document(pipeline.index, caller, wanted, asked.cursor)
    return {"chunks": _listed(page), "nextCursor": cursor}


def _listed(chunks: list[Chunk]) -> list[dict[str, Any]]:
    return [_json(chunk) for chunk in chunks]


async def _openapi(_request: Request) -> Response:
    return JSONResponse(openapi(_version()))


def _json(record: Record) -> dict[str, Any]:
    return record.model_dump(mode="json", by_alias=True)


def _version() -> str:
    from ragwb import __version__

    return __version__
