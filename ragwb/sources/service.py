"""The client of the evaluation protocol, and of other endpoints through a mapping.

`/manifest`, `/explain` and `/chunks` are optional: a service without them (404, 405, 501), or one
that does not open them to this token (403, but for `/manifest`), gives None, which means "not
observed".
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlsplit

import httpx
from pydantic import ConfigDict, ValidationError

from ragwb.errors import ReplyError, SourceError, UsageError
from ragwb.html import plain
from ragwb.records import (
    CHANNEL_STAGES,
    STAGES,
    Chunk,
    Explanation,
    Record,
    Retrieval,
    ServiceManifest,
)
from ragwb.settings import EVAL_PATH, Settings
from ragwb.sources.background import run_in_thread
from ragwb.sources.http import Answer, Link, Sleep, check_base_url, open_http_client
from ragwb.sources.mapping import SourceMapping, load_mapping
from ragwb.sources.token import TokenSource, token_from_file, token_source

DEFAULT_CONCURRENCY = 4
DEFAULT_TIMEOUT_S = 30.0
# Ids in one call of /explain or /chunks, and documents in one call of /chunks.
BATCH = 100
# Names that a channel cannot have: ranks of channels and of later stages stand in one table.
RESERVED_STAGES = frozenset(STAGES) - frozenset(CHANNEL_STAGES)
_NOT_THERE = frozenset({403, 404, 405, 501})
_BOM = b"\xef\xbb\xbf"

R = TypeVar("R", bound=Record)
# A document and one of its versions; None stands for the version in force.
DocumentRef = tuple[str, str | None]


@dataclass(frozen=True, slots=True)
class Reply:
    """What a service answered to one question, and what the call took (see `http.Answer`)."""

    retrieval: Retrieval
    latency_ms: float
    waited_ms: float
    attempts: int


class FullManifest(ServiceManifest):
    """A service's manifest with whatever it says beyond the protocol."""

    model_config = ConfigDict(extra="allow")


class _Chunks(Record):
    chunks: list[Chunk]
    next_cursor: str | None = None


class _Explanations(Record):
    chunks: list[Explanation]


class ServiceClient:
    """The calls of one service as one identity.

    Args:
        base_url: as checked by `http.check_base_url`.
        link: the connection that makes the calls.
        mapping: how to read the endpoint, None when it speaks the protocol.
        base_path: where the protocol stands below the base URL.
    """

    def __init__(
        self,
        base_url: str,
        link: Link,
        *,
        mapping: SourceMapping | None = None,
        base_path: str = EVAL_PATH,
    ) -> None:
        self._link = link
        self._mapping = mapping
        self._base_url = base_url
        path = base_path.rstrip("/")
        self._root = base_url if urlsplit(base_url).path.endswith(path) else base_url + path

    async def get_manifest(self) -> FullManifest | None:
        """What the service locks for a run; None when it does not say.

        An endpoint that is mapped has no manifest; the call then only finds out whether the host
        answers, so that a wrong address is one clear line and not an error of every case.

        Raises:
            SourceError: no answer, a rejected token (401, 403), or a reply that cannot be used.
        """
        if self._mapping is not None:
            await self._check_host()
            return None
        url = f"{self._root}/manifest"
        try:
            answer = await self._link.call("GET", url)
        except ReplyError as error:
            if error.status in _NOT_THERE:
                return None
            raise
        return _parsed(FullManifest, answer, f"GET {url}")

    async def retrieve(self, question: str, top_k: int) -> Reply:
        """The service's answer to one question.

        Args:
            question: as it stands in the golden case; no identity and no time go with it.
            top_k: number of results asked for, 1 to 100.

        Raises:
            SourceError: no answer, a refusal, or a reply that cannot be used; also one with more
                than `top_k` results, since no position in it is what it would have been for
                `top_k`.
        """
        if self._mapping is not None:
            retrieval, answer = await self._retrieve_mapped(self._mapping, question, top_k)
            call = self._mapping.path
        else:
            call = f"POST {self._root}/retrieve"
            answer = await self._link.call(
                "POST", f"{self._root}/retrieve", body={"question": question, "topK": top_k}
            )
            retrieval = _parsed(Retrieval, answer, call)
        fault = _misfit(retrieval, top_k)
        if fault is not None:
            raise ReplyError(f"{call}: {fault}", attempts=answer.attempts)
        return Reply(retrieval, answer.latency_ms, answer.waited_ms, answer.attempts)

    async def explain(self, question: str, chunk_ids: Sequence[str]) -> list[Explanation] | None:
        """What the service knows of each chunk for a question; None: not observed."""
        found: list[Explanation] = []
        for batch in _batches(chunk_ids):
            answer = await self._optional(
                "/explain", {"question": question, "chunkIds": list(batch)}
            )
            if answer is None:
                return None
            found += _parsed(_Explanations, answer, f"POST {self._root}/explain").chunks
        return found

    async def get_chunks(self, chunk_ids: Iterable[str]) -> list[Chunk] | None:
        """The chunks with these ids that the identity may read; None: not observed."""
        found: list[Chunk] = []
        for batch in _batches(list(chunk_ids)):
            page = await self._chunk_page({"chunkIds": list(batch)})
            if page is None:
                return None
            found += page.chunks
        return found

    async def get_document_chunks(self, documents: Sequence[DocumentRef]) -> list[Chunk] | None:
        """All chunks of these documents that the identity may read; None: not observed.

        Raises:
            ReplyError: a cursor that comes again, which would never end.
        """
        found: list[Chunk] = []
        for batch in _batches(documents):
            body: dict[str, object] = {"documents": [_document(ref) for ref in batch]}
            cursors: set[str] = set()
            while (page := await self._chunk_page(body)) is not None:
                found += page.chunks
                if page.next_cursor is None:
                    break
                if page.next_cursor in cursors:
                    raise ReplyError(f"POST {self._root}/chunks: nextCursor came a second time")
                cursors.add(page.next_cursor)
                body = {**body, "cursor": page.next_cursor}
            else:
                return None
        return found

    async def _retrieve_mapped(
        self, mapping: SourceMapping, question: str, top_k: int
    ) -> tuple[Retrieval, Answer]:
        path, body, params = mapping.request(question, top_k)
        url = self._base_url + path
        call = f"{mapping.method} {self._base_url}{mapping.path}"
        answer = await self._link.call(
            mapping.method,
            url,
            body=body if mapping.method == "POST" else None,
            params=params or None,
        )
        try:
            return Retrieval.model_validate(mapping.read(_without_bom(answer.body))), answer
        except ReplyError as error:
            raise ReplyError(f"{call}: {error}", attempts=answer.attempts) from error
        except ValidationError as error:
            raise _unusable(error, answer, call) from error

    async def _check_host(self) -> None:
        try:
            await self._link.call("GET", self._base_url + "/")
        except SourceError as error:
            if error.status is None:
                raise

    async def _chunk_page(self, body: Mapping[str, object]) -> _Chunks | None:
        answer = await self._optional("/chunks", body)
        if answer is None:
            return None
        return _parsed(_Chunks, answer, f"POST {self._root}/chunks")

    async def _optional(self, path: str, body: Mapping[str, object]) -> Answer | None:
        if self._mapping is not None:
            return None
        try:
            return await self._link.call("POST", self._root + path, body=body)
        except SourceError as error:
            if error.status in _NOT_THERE:
                return None
            raise


@asynccontextmanager
async def open_clients(
    settings: Settings,
    *,
    identities: Mapping[str, TokenSource] | None = None,
    concurrency: int = DEFAULT_CONCURRENCY,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    transport: httpx.AsyncBaseTransport | None = None,
    sleep: Sleep = asyncio.sleep,
) -> AsyncIterator[dict[str | None, ServiceClient]]:
    """Clients of the settings' service by label of identity; None is the default identity.

    Args:
        settings: base URL, token source and mapping.
        identities: further token sources by label (`--identity label=TOKEN_FILE`).
        concurrency: calls at a time, over all identities.
        timeout_s: deadline of one attempt in seconds.
        transport: replaces the network; a seam for tests.
        sleep: replaces the waits between attempts; a seam for tests.
    """
    base_url = check_base_url(settings.base_url)
    mapping = load_mapping(settings.source)
    base_path = str(settings.source.get("base_path", EVAL_PATH))
    tokens: dict[str | None, TokenSource] = {None: token_source(settings)}
    tokens.update(identities or {})
    async with open_http_client(base_url, concurrency=concurrency, transport=transport) as http:
        yield {
            label: ServiceClient(
                base_url,
                Link(http, source, timeout_s=timeout_s, sleep=sleep),
                mapping=mapping,
                base_path=base_path,
            )
            for label, source in tokens.items()
        }


def fetch_document_chunks(
    settings: Settings,
    documents: Sequence[DocumentRef],
    *,
    transport: httpx.AsyncBaseTransport | None = None,
) -> list[Chunk]:
    """All chunks of these documents as the service cuts them now; synchronous.

    Raises:
        UsageError: the service has no /chunks.
        SourceError: no answer, a refusal, or a reply that cannot be used.
    """

    async def fetch() -> list[Chunk] | None:
        async with open_clients(settings, transport=transport) as clients:
            return await clients[None].get_document_chunks(documents)

    chunks = run_in_thread(fetch)
    if chunks is None:
        raise UsageError(
            f"the service at {settings.base_url} has no /chunks, from which passages are resolved: "
            "give a local index with --index"
        )
    return chunks


__all__ = [
    "Reply",
    "ServiceClient",
    "fetch_document_chunks",
    "open_clients",
    "token_from_file",
]


def _parsed(model: type[R], answer: Answer, call: str) -> R:
    try:
        return model.model_validate_json(_without_bom(answer.body))
    except ValidationError as error:
        raise _unusable(error, answer, call) from error


def _without_bom(body: bytes) -> bytes:
    return body.removeprefix(_BOM)


def _unusable(error: ValidationError, answer: Answer, call: str) -> ReplyError:
    """One line for the first fault of a reply: where it stands and what is wrong."""
    first = error.errors(include_url=False, include_input=False)[0]
    if first["type"] == "json_invalid":
        kind = answer.content_type or "no content type"
        message = f"{call}: the reply is not JSON ({kind}): {plain(first['msg'], width=120)}"
    else:
        where = ".".join(str(part) for part in first["loc"]) or "the reply"
        message = f"{call}: {plain(where, width=80)}: {plain(first['msg'], width=120)}"
    return ReplyError(message, attempts=answer.attempts)


def _misfit(retrieval: Retrieval, top_k: int) -> str | None:
    """What is wrong with a reply whose fields are all right one by one."""
    if len(retrieval.results) > top_k:
        n_results = len(retrieval.results)
        return f"{n_results:,} results for topK {top_k}; a service must cut its list itself"
    for channel in retrieval.channels or ():
        if channel in RESERVED_STAGES:
            return f"a channel {channel!r}, which is the name of a later stage"
    return None


def _document(ref: DocumentRef) -> dict[str, str]:
    document_id, version = ref
    named = {"documentId": document_id}
    return named if version is None else {**named, "documentVersion": version}


T = TypeVar("T")


def _batches(items: Sequence[T]) -> list[Sequence[T]]:
    return [items[start : start + BATCH] for start in range(0, len(items), BATCH)]
