"""The client of the evaluation protocol, and of other endpoints through a mapping.

`/manifest`, `/explain` and `/chunks` are optional: a service without them (404, 405, 501), or one
that does not open them to this token (403, but for `/manifest`), gives None, which means "not
observed".
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlsplit

import httpx
from pydantic import ValidationError

from ragwb.errors import ReplyError, SourceError
from ragwb.records import (
    CHANNEL_STAGES,
    STAGES,
    Answered,
    Chunk,
    Explanation,
    Record,
    Retrieval,
)
from ragwb.retry import MAX_ATTEMPTS
from ragwb.secrets import Secrets
from ragwb.settings import EVAL_PATH, Settings
from ragwb.sources.http import Answer, Link, Sleep, check_base_url, open_http_client
from ragwb.sources.mapping import SourceMapping, load_base_path, load_mapping
from ragwb.sources.reading import FullManifest, parsed, read_manifest, unusable, without_bom
from ragwb.sources.token import TokenSource, token_source

DEFAULT_CONCURRENCY = 4
DEFAULT_TIMEOUT_S = 30.0
# Ids in one call of /explain or /chunks, and documents in one call of /chunks.
BATCH = 100
# Chunks of the documents of one golden set, and pages of them: a cursor that leads on and on must
# end somewhere.
MOST_CHUNKS = 1_000_000
MOST_PAGES = 10_000
# Names that a channel cannot have: ranks of channels and of later stages stand in one table.
RESERVED_STAGES = frozenset(STAGES) - frozenset(CHANNEL_STAGES)
_NOT_THERE = frozenset({403, 404, 405, 501})

_log = logging.getLogger(__name__)

T = TypeVar("T")
# A document and one of its versions; None stands for all of them.
DocumentRef = tuple[str, str | None]


@dataclass(frozen=True, slots=True)
class Reply:
    """What a service answered to one question, and what the call took (see `http.Answer`).

    Of a call of `answer` the retrieval is an `Answered`, which holds the answer too.
    """

    retrieval: Retrieval
    latency_ms: float
    waited_ms: float
    attempts: int


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
        base_path: where the protocol stands below the base URL, without a slash at its end.
        told: warnings that were given already; shared by the identities of a run.
    """

    def __init__(
        self,
        base_url: str,
        link: Link,
        *,
        mapping: SourceMapping | None = None,
        base_path: str = EVAL_PATH,
        told: set[str] | None = None,
    ) -> None:
        self._link = link
        self._mapping = mapping
        self._base_url = base_url
        self._told = set() if told is None else told
        spoken_here = urlsplit(base_url).path.endswith(base_path)
        self._root = base_url if spoken_here else base_url + base_path

    async def get_manifest(self) -> FullManifest | None:
        """What the service locks for a run; None when it does not say.

        A field that cannot be read is None too, and is warned of by name: it is no reason to ask
        nothing.

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
        manifest, unread = read_manifest(answer, f"GET {url}")
        if unread:
            self._warn(f"GET {url}: not readable, taken as not said: {'; '.join(unread)}")
        return manifest

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
        return await self._ask(Retrieval, "/retrieve", question, top_k)

    async def answer(self, question: str, top_k: int) -> Reply:
        """The service's answer to one question, with all of its retrieval.

        Arguments and errors are those of `retrieve`; a service without `/answer` refuses it with a
        404, 405 or 501.
        """
        return await self._ask(Answered, "/answer", question, top_k)

    async def explain(self, question: str, chunk_ids: Sequence[str]) -> list[Explanation] | None:
        """What the service knows of each chunk for a question; None: not observed."""
        found: list[Explanation] = []
        for batch in _batches(chunk_ids):
            answer = await self._optional(
                "/explain", {"question": question, "chunkIds": list(batch)}
            )
            if answer is None:
                return None
            found += parsed(_Explanations, answer, f"POST {self._root}/explain").chunks
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
            ReplyError: a cursor that comes again, or leads beyond `MOST_PAGES` pages or
                `MOST_CHUNKS` chunks: it would never end.
        """
        found: list[Chunk] = []
        pages = 0
        for batch in _batches(documents):
            body: dict[str, object] = {"documents": [_document(ref) for ref in batch]}
            cursors: set[str] = set()
            while (page := await self._chunk_page(body)) is not None:
                found += page.chunks
                pages += 1
                if page.next_cursor is None:
                    break
                if page.next_cursor in cursors:
                    raise ReplyError(f"POST {self._root}/chunks: nextCursor came a second time")
                if pages >= MOST_PAGES or len(found) >= MOST_CHUNKS:
                    raise ReplyError(
                        f"POST {self._root}/chunks: nextCursor leads on after {pages:,} pages with "
                        f"{len(found):,} chunks; {MOST_PAGES:,} pages and {MOST_CHUNKS:,} chunks "
                        "are read at most"
                    )
                cursors.add(page.next_cursor)
                body = {**body, "cursor": page.next_cursor}
            else:
                return None
        return found

    async def _ask(self, model: type[Retrieval], path: str, question: str, top_k: int) -> Reply:
        if self._mapping is not None:
            call = f"{self._mapping.method} {self._base_url}{self._mapping.path}"
            retrieval, answer = await self._ask_mapped(self._mapping, model, call, question, top_k)
        else:
            call = f"POST {self._root}{path}"
            answer = await self._link.call(
                "POST", self._root + path, body={"question": question, "topK": top_k}
            )
            retrieval = parsed(model, answer, call)
        fault = _misfit(retrieval, top_k, self._mapping)
        if fault is not None:
            raise ReplyError(f"{call}: {fault}", attempts=answer.attempts)
        return Reply(retrieval, answer.latency_ms, answer.waited_ms, answer.attempts)

    async def _ask_mapped(
        self,
        mapping: SourceMapping,
        model: type[Retrieval],
        call: str,
        question: str,
        top_k: int,
    ) -> tuple[Retrieval, Answer]:
        path, body, params = mapping.request(question, top_k)
        answer = await self._link.call(
            mapping.method,
            self._base_url + path,
            body=body if mapping.method == "POST" else None,
            params=params or None,
        )
        try:
            return model.model_validate(mapping.read(without_bom(answer.body))), answer
        except ReplyError as error:
            raise ReplyError(f"{call}: {error}", attempts=answer.attempts) from error
        except ValidationError as error:
            raise unusable(error, answer, call) from error

    async def _check_host(self) -> None:
        try:
            await self._link.call("GET", self._base_url + "/")
        except SourceError as error:
            if error.status is None:
                raise

    def _warn(self, warning: str) -> None:
        if warning not in self._told:
            self._told.add(warning)
            _log.warning("%s", warning)

    async def _chunk_page(self, body: Mapping[str, object]) -> _Chunks | None:
        answer = await self._optional("/chunks", body)
        if answer is None:
            return None
        return parsed(_Chunks, answer, f"POST {self._root}/chunks")

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
    max_attempts: int = MAX_ATTEMPTS,
    transport: httpx.AsyncBaseTransport | None = None,
    sleep: Sleep = asyncio.sleep,
) -> AsyncIterator[dict[str | None, ServiceClient]]:
    """Clients of the settings' service by label of identity; None is the default identity.

    Args:
        settings: base URL, token source and mapping.
        identities: further token sources by label (`--identity label=TOKEN_FILE`).
        concurrency: calls at a time, over all identities.
        timeout_s: deadline of one attempt in seconds.
        max_attempts: how often a call is made at most, 1 or more.
        transport: replaces the network; a seam for tests.
        sleep: replaces the waits between attempts; a seam for tests.
    """
    base_url = check_base_url(settings.base_url)
    mapping = load_mapping(settings.source)
    base_path = load_base_path(settings.source)
    told: set[str] = set()
    tokens: dict[str | None, TokenSource] = {None: token_source(settings)}
    tokens.update(identities or {})
    secrets = Secrets()
    for source in tokens.values():
        source.share(secrets)
        # All of them before the first call: a service may know a token from an earlier run.
        await source.get()
    async with open_http_client(base_url, concurrency=concurrency, transport=transport) as http:
        yield {
            label: ServiceClient(
                base_url,
                Link(http, source, timeout_s=timeout_s, max_attempts=max_attempts, sleep=sleep),
                mapping=mapping,
                base_path=base_path,
                told=told,
            )
            for label, source in tokens.items()
        }


def _misfit(retrieval: Retrieval, top_k: int, mapping: SourceMapping | None) -> str | None:
    """What is wrong with a reply whose fields are all right one by one."""
    if len(retrieval.results) > top_k:
        help_ = "a service must cut its list itself" if mapping is None else mapping.cut_hint(top_k)
        return f"{len(retrieval.results):,} results for topK {top_k}; {help_}"
    for channel in retrieval.channels or ():
        if channel in RESERVED_STAGES:
            return f"a channel {channel!r}, which is the name of a later stage"
    return None


def _document(ref: DocumentRef) -> dict[str, str]:
    document_id, version = ref
    named = {"documentId": document_id}
    return named if version is None else {**named, "documentVersion": version}


def _batches(items: Sequence[T]) -> list[Sequence[T]]:
    return [items[start : start + BATCH] for start in range(0, len(items), BATCH)]
