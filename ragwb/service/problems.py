"""Errors on the wire: RFC 9457 problem details, for every status that the service gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse

MEDIA_TYPE = "application/problem+json"


class ProblemError(Exception):
    """A request that is refused.

    Args:
        status: the HTTP status.
        detail: what is wrong and what would be right; never a token and never a chunk's text.
        fields: (field, message) for each field at fault, on a 422.
        headers: further headers of the reply.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        fields: Sequence[tuple[str, str]] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.fields = tuple(fields)
        self.headers = dict(headers or {})


def problem(error: ProblemError) -> JSONResponse:
    """The reply that says what was refused."""
    body: dict[str, object] = {
        "type": "about:blank",
        "title": HTTPStatus(error.status).phrase,
        "status": error.status,
        "detail": error.detail,
    }
    if error.fields:
        body["errors"] = [{"field": name, "message": text} for name, text in error.fields]
    return JSONResponse(body, error.status, headers=error.headers, media_type=MEDIA_TYPE)


async def on_problem(_request: Request, error: Exception) -> JSONResponse:
    """Answer a request that an endpoint refused."""
    return problem(error if isinstance(error, ProblemError) else _unexpected())


async def on_http_exception(request: Request, error: Exception) -> JSONResponse:
    """Answer what the router refused: no such path, or not with this method."""
    if not isinstance(error, HTTPException):
        return problem(_unexpected())
    details = {
        404: "no such path; /openapi.json lists them",
        405: f"{request.method} is not answered here; /openapi.json lists the calls",
    }
    detail = details.get(error.status_code, str(error.detail))
    return problem(ProblemError(error.status_code, detail, headers=error.headers))


async def on_failure(_request: Request, _error: Exception) -> JSONResponse:
    """Answer a fault of the service itself; what happened stands in its log, not in the reply."""
    return problem(_unexpected())


def _unexpected() -> ProblemError:
    return ProblemError(500, "the service failed; its log says why")
