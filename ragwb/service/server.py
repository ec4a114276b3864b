"""Run the service: listen, build the index beside it, say so in one line, end on a signal.

The address is taken and answered first, so that whoever asks while the index is being built gets
503 with `Retry-After`, not a refused connection.
"""

from __future__ import annotations

import logging
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from types import FrameType

import uvicorn

from ragwb.errors import UsageError
from ragwb.service.answerer import load_answerer
from ragwb.service.app import Running, create_app
from ragwb.service.auth import read_key
from ragwb.service.build import Progress
from ragwb.service.config import ServiceConfig
from ragwb.service.embedding import Embedder, load_embedder
from ragwb.service.faults import NO_FAULTS, Plan
from ragwb.service.indexes import ready_index
from ragwb.service.pipeline import Clock, Pipeline, utc_now
from ragwb.service.planting import Planted, plant

READY_LINE = "ragwb serve: {url}"
# What shows the progress of a build, and goes away when the build is done.
Watch = Callable[[], AbstractContextManager[Progress]]
# A build notices between two batches that it is not wanted; a model that hangs is left behind.
_STOP_TIMEOUT_S = 5.0


def serve(config: ServiceConfig, *, watch: Watch | None = None, plan: Plan = NO_FAULTS) -> None:
    """Serve until SIGINT or SIGTERM; on stdout one line with the URL when the index is ready.

    Args:
        config: the service's configuration.
        watch: opened around the build of the index, in the thread that builds.
        plan: faults to plant.

    Raises:
        UsageError: the address is taken.
        UsageError, MissingExtraError, DocumentError, SourceError: the index cannot be built.
    """
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    service = _prepare(plant(config, plan), watch or _unwatched, utc_now)
    line = READY_LINE.format(url=_url(service.listening))
    # uvicorn raises a signal again after it has shut down: without these the process would die.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _ended)
    _run(service, lambda: print(line, flush=True))  # noqa: T201 - the ready line
    if service.fault is not None:
        raise service.fault


@contextmanager
def serving(
    config: ServiceConfig,
    *,
    progress: Progress = lambda _done, _total: None,
    clock: Clock = utc_now,
    plan: Plan = NO_FAULTS,
    embedder: Embedder | None = None,
) -> Iterator[str]:
    """A service in a thread of this process; gives its base URL while the block runs.

    Args:
        config: the service's configuration.
        progress: told what is built, in the thread that builds; the service answers meanwhile.
        clock: the service's time.
        plan: faults to plant.
        embedder: the model of the vectors where it is loaded already; None loads the configured.

    Raises:
        UsageError, MissingExtraError, DocumentError, SourceError: as `serve`.
    """
    service = _prepare(plant(config, plan), lambda: nullcontext(progress), clock, embedder)
    thread = threading.Thread(target=_run, args=(service, service.settled.set), daemon=True)
    thread.start()
    try:
        service.settled.wait()
        if service.fault is not None:
            raise service.fault
        yield _url(service.listening)
    finally:
        service.server.should_exit = True
        thread.join()


@dataclass(slots=True)
class _Service:
    """A service that listens, and what builds its index.

    Attributes:
        embedder: None until it is loaded, which may take a while.
        settled: set when the index is ready, or never will be.
        fault: why the index could not be built.
    """

    running: Running
    listening: socket.socket
    server: _Server
    watch: Watch
    planted: Planted
    embedder: Embedder | None = None
    settled: threading.Event = field(default_factory=threading.Event)
    fault: BaseException | None = None


class _Server(uvicorn.Server):
    """uvicorn that tells when it accepts."""

    def __init__(self, running: Running) -> None:
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
        self.accepts = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.accepts.set()


class _StoppedError(Exception):
    """The service ends while its index is being built."""


def _prepare(
    planted: Planted, watch: Watch, clock: Clock, embedder: Embedder | None = None
) -> _Service:
    """A service whose address is taken; what is wrong and quick to find is found before that."""
    config = planted.config
    key = read_key(config.key_file) if config.key_file else None
    running = Running(config=config, key=key, clock=clock)
    listening = _listen(config.host, config.port)
    return _Service(running, listening, _Server(running), watch, planted, embedder)


def _run(service: _Service, on_ready: Callable[[], None]) -> None:
    """Answer until told to end, build the index meanwhile, and leave nothing behind."""
    builder = threading.Thread(target=_build, args=(service, on_ready), daemon=True)
    builder.start()
    try:
        service.server.run(sockets=[service.listening])
    finally:
        service.server.should_exit = True  # also when it did not start
        service.server.accepts.set()
        builder.join(_STOP_TIMEOUT_S)
        service.settled.set()
        service.listening.close()
        if service.running.pipeline is not None:
            service.running.pipeline.close()


def _build(service: _Service, on_ready: Callable[[], None]) -> None:
    """Set the pipeline once the server accepts; a fault ends the server and is kept for it."""
    service.server.accepts.wait()
    try:
        pipeline = _make_pipeline(service)
        _check_wanted(service)
        service.running.pipeline = pipeline
        on_ready()
    except BaseException as fault:  # raised by the thread that serves
        # What goes wrong in a build that nobody wants any more is no fault.
        if not service.server.should_exit:
            service.fault = fault
            service.server.should_exit = True


def _make_pipeline(service: _Service) -> Pipeline:
    planted, config = service.planted, service.planted.config
    with service.watch() as progress:

        def watched(done: int, total: int) -> None:
            _check_wanted(service)
            progress(done, total)

        _check_wanted(service)
        embedder = service.embedder or load_embedder(config)
        index = ready_index(config, embedder, watched, edit=planted.edit)
    return Pipeline(
        config,
        index,
        embedder,
        service.running.clock,
        rewrite=planted.rewrite,
        between=planted.between(index),
        faults=planted.names,
        answerer=load_answerer(config, index, embedder),
    )


def _check_wanted(service: _Service) -> None:
    if service.server.should_exit:
        raise _StoppedError


@contextmanager
def _unwatched() -> Iterator[Progress]:
    yield lambda _done, _total: None


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


def _ended(_number: int, _frame: FrameType | None) -> None:
    """Nothing: the server has shut down already."""
