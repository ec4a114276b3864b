"""Run the service: build the index, listen, say so in one line, end cleanly on a signal."""

from __future__ import annotations

import logging
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn

from ragwb.errors import UsageError
from ragwb.service.app import Running, create_app
from ragwb.service.auth import read_key
from ragwb.service.build import Progress, build_index
from ragwb.service.config import ServiceConfig
from ragwb.service.embedding import load_embedder
from ragwb.service.index import open_index
from ragwb.service.pipeline import Clock, Pipeline, load_rewrite, utc_now

READY_LINE = "ragwb serve: {url}"
_START_TIMEOUT_S = 30.0


def serve(running: Running) -> None:
    """Serve until SIGINT or SIGTERM; on stdout one line with the URL as soon as it accepts.

    Args:
        running: what `prepare` made; it is closed at the end.

    Raises:
        UsageError: the address is taken.
    """
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    listening = _listen(running.config.host, running.config.port)
    url = _url(listening)
    server = _Server(running, lambda: print(READY_LINE.format(url=url), flush=True))  # noqa: T201
    # uvicorn raises a signal again after it has shut down: without these the process would die.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _ended)
    server.run(sockets=[listening])
    _close(running)


@contextmanager
def serving(
    config: ServiceConfig,
    *,
    progress: Progress = lambda _stage, _done, _total: None,
    clock: Clock = utc_now,
) -> Iterator[str]:
    """A service in a thread of this process; gives its base URL while the block runs.

    Raises:
        UsageError: as `serve`, or it did not start in time.
    """
    running = prepare(config, progress=progress, clock=clock)
    listening = _listen(config.host, config.port)
    ready = threading.Event()
    server = _Server(running, ready.set)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        if not ready.wait(_START_TIMEOUT_S):
            raise UsageError(f"the service did not start within {_START_TIMEOUT_S:g} s")
        yield _url(listening)
    finally:
        server.should_exit = True
        thread.join()
        listening.close()
        _close(running)


def prepare(
    config: ServiceConfig,
    *,
    progress: Progress = lambda _stage, _done, _total: None,
    clock: Clock = utc_now,
) -> Running:
    """A service that is ready to answer: key read, index up to date and open, model loaded.

    Raises:
        UsageError, MissingExtraError, DocumentError, SourceError: what of these cannot be had.
    """
    key = read_key(config.key_file) if config.key_file else None
    rewrite = load_rewrite(config.rewrite)
    embedder = load_embedder(config)
    index = open_index(build_index(config, embedder, progress))
    pipeline = Pipeline(config, index, embedder, clock, rewrite)
    return Running(config=config, key=key, clock=clock, pipeline=pipeline)


class _Server(uvicorn.Server):
    """uvicorn that tells when it accepts."""

    def __init__(self, running: Running, on_ready: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                create_app(running),
                log_config=None,
                access_log=False,
                lifespan="off",
                server_header=False,
                timeout_graceful_shutdown=5,
            )
        )
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_ready()


def _listen(host: str, port: int) -> socket.socket:
    name = host.strip("[]")
    family = socket.AF_INET6 if ":" in name else socket.AF_INET
    # asyncio turns Nagle's algorithm off only where the protocol is named: 40 ms a reply otherwise.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((name, port))
    except OSError as error:
        listening.close()
        raise UsageError(
            f"{host}:{port}: cannot listen here ({error.strerror}); "
            "give another --port, 0 for a free one"
        ) from error
    return listening


def _url(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _close(running: Running) -> None:
    if running.pipeline is not None:
        running.pipeline.index.close()


def _ended(_number: int, _frame: FrameType | None) -> None:
    """Nothing: the server has shut down already."""
