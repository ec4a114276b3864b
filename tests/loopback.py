"""A knowledge service in a few lines for tests, on loopback or as a transport of httpx.

`FakeService.answer` is the whole service; `transport()` hands it to httpx without a network,
`serve()` puts it behind a real socket.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx

from ragwb.settings import EVAL_PATH

Reply = tuple[int, dict[str, str], bytes]


def json_reply(value: object, status: int = 200, **headers: str) -> Reply:
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return status, {"content-type": "application/json", **named}, json.dumps(value).encode()


@dataclass
class FakeService:
    """Chunks by id, results by question; a question without results gets all chunks in order.

    Attributes:
        chunks: the text of each chunk; its id is "<document>-<n>".
        results: chunk ids by question.
        retrieve: replaces the reply to a question.
        answers: the answer by question; None answers 404, a question without one gets a refusal.
        manifest, chunk_call: None and False answer 404.
        explain: True answers, False is a 404, a number that status.
        states: what `/explain` says of a chunk beyond "published and visible", by id.
        tokens: accepted tokens; None accepts every call.
    """

    chunks: dict[str, str] = field(default_factory=dict)
    results: dict[str, list[str]] = field(default_factory=dict)
    retrieve: Callable[[dict[str, Any]], Reply] | None = None
    answers: dict[str, dict[str, Any]] | None = None
    manifest: dict[str, Any] | None = field(default_factory=lambda: {"service": "fake 1"})
    explain: bool | int = True
    states: dict[str, dict[str, Any]] = field(default_factory=dict)
    chunk_call: bool = True
    tokens: set[str] | None = None
    asked: list[str] = field(default_factory=list)
    explained: list[dict[str, Any]] = field(default_factory=list)
    authorizations: list[str | None] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Reply:
        with self.lock:
            self.authorizations.append(headers.get("authorization"))
        token = headers.get("authorization", "").removeprefix("Bearer ")
        if self.tokens is not None and token not in self.tokens:
            return json_reply({"title": "no valid token"}, 401)
        name = path.removeprefix(EVAL_PATH)
        data = json.loads(body) if body else {}
        if name == "/manifest" and self.manifest is not None:
            return json_reply(self.manifest)
        if name == "/retrieve":
            return self._retrieve(data)
        if name == "/answer" and self.answers is not None:
            return self._answer(data, self.answers)
        if name == "/chunks" and self.chunk_call:
            return json_reply({"chunks": self._chunks(data), "nextCursor": None})
        if name == "/explain" and self.explain:
            if self.explain is not True:
                return json_reply({"title": "not for this token"}, self.explain)
            self.explained.append(data)
            return json_reply({"chunks": [self._explained(i) for i in data["chunkIds"]]})
        return json_reply({"title": "not found"}, 404)

    def transport(self) -> httpx.MockTransport:
        def handle(request: httpx.Request) -> httpx.Response:
            status, headers, body = self.answer(
                request.method, request.url.path, dict(request.headers), request.content
            )
            return httpx.Response(status, headers=headers, content=body)

        return httpx.MockTransport(handle)

    @contextmanager
    def serve(self) -> Iterator[str]:
        """The service on a free port of loopback; gives its base URL."""
        with serve(self.answer) as url:
            yield url

    def _retrieve(self, data: dict[str, Any]) -> Reply:
        with self.lock:
            self.asked.append(data["question"])
        if self.retrieve is not None:
            return self.retrieve(data)
        found = self.results.get(data["question"], list(self.chunks))[: data["topK"]]
        return json_reply(
            {
                "traceId": f"t-{data['question']}",
                "effectiveAt": "2026-11-30T08:00:00Z",
                "channels": {"vector": [{"chunkId": i, "score": 0.5} for i in found]},
                "filtered": [],
                "fused": [{"chunkId": i} for i in found],
                "reranked": None,
                "results": [{"chunkId": i, "text": self.chunks.get(i)} for i in found],
                "context": found,
                "tokens": {"context": 7},
                "timingsMs": {"total": 1.5},
                "modelCalls": 1,
            }
        )

    def _answer(self, data: dict[str, Any], answers: dict[str, dict[str, Any]]) -> Reply:
        status, headers, body = self._retrieve(data)
        refusal = {"mode": "refuse", "text": "无", "citations": [], "refusalReason": "NO_EVIDENCE"}
        said = {**json.loads(body), "answer": answers.get(data["question"], refusal)}
        return status, headers, json.dumps(said).encode()

    def _chunks(self, data: dict[str, Any]) -> list[dict[str, Any]]:
        wanted = data.get("chunkIds")
        if wanted is None:
            documents = {entry["documentId"] for entry in data["documents"]}
            wanted = [i for i in self.chunks if i.rsplit("-", 1)[0] in documents]
        return [self._chunk(i) for i in wanted if i in self.chunks]

    def _chunk(self, chunk_id: str) -> dict[str, Any]:
        document = chunk_id.rsplit("-", 1)[0]
        before = [i for i in self.chunks if i.rsplit("-", 1)[0] == document]
        start = sum(len(self.chunks[i]) for i in before[: before.index(chunk_id)])
        text = self.chunks[chunk_id]
        return {
            "chunkId": chunk_id,
            "documentId": document,
            "documentVersion": "1",
            "title": document,
            "text": text,
            "start": start,
            "end": start + len(text),
        }

    def _explained(self, chunk_id: str) -> dict[str, Any]:
        known = chunk_id in self.chunks
        return {
            "chunkId": chunk_id,
            "state": "published" if known else "missing",
            "movedTo": [],
            "visible": known,
            "filteredBy": [],
            "ranks": {"vector": 17, "fused": None},
            **self.states.get(chunk_id, {}),
        }


@contextmanager
def serve(answer: Callable[[str, str, dict[str, str], bytes], Reply]) -> Iterator[str]:
    """A function behind a real socket of loopback; gives its base URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            named = {name.lower(): value for name, value in self.headers.items()}
            status, headers, content = answer(self.command, self.path, named, body)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = _answer  # noqa: N815 - the names that http.server calls

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            pass  # a client that was killed closes its connection in the middle of an answer

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
