"""What may stand in a request: nothing but these fields, and never an identity or a time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from ragwb.records import MAX_TOP_K
from ragwb.service.problems import ProblemError

MAX_QUESTION_CHARS = 4000
MAX_IDS = 1000
DEFAULT_TOP_K = 5


def _not_blank(text: str) -> str:
    if not text.strip():
        raise PydanticCustomError("blank", "must not be blank")
    return text


Question = Annotated[str, Field(max_length=MAX_QUESTION_CHARS), AfterValidator(_not_blank)]
ChunkIds = Annotated[list[Annotated[str, Field(min_length=1)]], Field(max_length=MAX_IDS)]


class Body(BaseModel):
    """Base of the requests: camelCase only, exact types, unknown fields refused."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", strict=True, frozen=True)


class RetrieveRequest(Body):
    """A question and how many results are wanted."""

    question: Question
    top_k: int = Field(default=DEFAULT_TOP_K, ge=1, le=MAX_TOP_K)


class HistoryRequest(RetrieveRequest):
    """A question at a past time that the service's configuration names."""

    period: str = Field(min_length=1)


class ExplainRequest(Body):
    """A question and the chunks to be explained for it."""

    question: Question
    chunk_ids: ChunkIds


class DocumentRef(Body):
    """A document, and a version of it or all of them."""

    document_id: str = Field(min_length=1)
    document_version: str | None = None


class ChunksRequest(Body):
    """Chunks by their ids, or page by page by their documents; one of the two."""

    chunk_ids: ChunkIds | None = None
    documents: list[DocumentRef] | None = Field(default=None, max_length=MAX_IDS)
    cursor: str | None = None

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.chunk_ids is None) == (self.documents is None):
            raise PydanticCustomError("one_of", "give either chunkIds or documents")
        if self.cursor is not None and self.documents is None:
            raise PydanticCustomError("one_of", "cursor belongs to documents")
        return self


Request = TypeVar("Request", bound=Body)


def parse(model: type[Request], body: bytes) -> Request:
    """The request that a body holds.

    Raises:
        ProblemError: 400 when it is not a JSON object, 422 with every field at fault.
    """
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ProblemError(400, "the body is not JSON") from error
    if not isinstance(value, dict):
        raise ProblemError(400, "the body is not a JSON object")
    try:
        return model.model_validate(value)
    except ValidationError as error:
        fields = [(_field(item["loc"]), _message(item)) for item in error.errors()]
        detail = "; ".join(f"{name}: {text}" for name, text in fields[:5])
        raise ProblemError(422, detail, fields=fields) from error


def _field(location: Sequence[int | str]) -> str:
    return ".".join(str(part) for part in location) or "body"


def _message(item: Any) -> str:
    if item["type"] == "extra_forbidden":
        return "unknown field; identity comes from the token and time from the server's clock"
    return str(item["msg"])
