"""An event loop in a thread of its own: callers stay synchronous, also inside a running loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, wait
from typing import Any, TypeVar

T = TypeVar("T")

NOTICE_INTERRUPT_S = 0.2


def run_in_thread(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end in a new thread with its own loop, and return what it returns.

    Jupyter's kernel runs a loop in the main thread, where `asyncio.run` is refused; another thread
    is free.

    Args:
        main: makes the coroutine; called in the new thread.

    Raises:
        KeyboardInterrupt: the caller was interrupted; the coroutine was cancelled and has cleaned
            up. When it ended in spite of that, its result is returned.
        BaseException: whatever the coroutine raises.
    """
    done: Future[T] = Future()
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[T]]] = Future()
    # The thread begins its work when this one is inside the try, so that no interrupt is missed.
    go = threading.Event()
    thread = threading.Thread(
        target=_serve, args=(main, go, started, done), name="ragwb-run", daemon=True
    )
    thread.start()
    try:
        go.set()
        _await_done(done)
        return done.result()
    except KeyboardInterrupt:
        if not done.done():
            loop, task = started.result()
            loop.call_soon_threadsafe(task.cancel)
        return _after_interrupt(done)
    finally:
        thread.join()


def _serve(
    main: Callable[[], Coroutine[Any, Any, T]],
    go: threading.Event,
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[T]]],
    done: Future[T],
) -> None:
    async def supervised() -> T:
        task = asyncio.ensure_future(main())
        started.set_result((asyncio.get_running_loop(), task))
        return await task

    go.wait()
    try:
        done.set_result(asyncio.run(supervised()))
    except BaseException as error:  # handed to the waiting thread, which raises it
        done.set_exception(error)


def _await_done(done: Future[T]) -> None:
    # A signal that arrives just before a thread begins to wait does not wake it, so that waiting
    # without end could miss a Ctrl-C; each turn of the loop gives Python a chance to see it.
    while not done.done():
        wait([done], timeout=NOTICE_INTERRUPT_S)


def _after_interrupt(done: Future[T]) -> T:
    try:
        return done.result()
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
