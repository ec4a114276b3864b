from __future__ import annotations

import asyncio
import os
import signal
import threading

import pytest

from ragwb.sources.background import run_in_thread


async def answer() -> tuple[int, str]:
    return 42, threading.current_thread().name


def test_result_comes_from_another_thread() -> None:
    value, name = run_in_thread(answer)
    assert (value, name) == (42, "ragwb-run")
    assert threading.current_thread().name != name


def test_it_works_inside_a_running_loop_as_in_jupyter() -> None:
    async def cell() -> int:
        return run_in_thread(answer)[0]

    assert asyncio.run(cell()) == 42


def test_errors_come_through() -> None:
    async def fail() -> None:
        raise ValueError("from the thread")

    with pytest.raises(ValueError, match="from the thread"):
        run_in_thread(fail)


def test_an_interrupt_cancels_the_coroutine_and_lets_it_clean_up() -> None:
    cleaned = []

    async def wait() -> None:
        try:
            # The loop is up, so the caller waits: now press Ctrl-C.
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.Event().wait()
        finally:
            cleaned.append(True)

    with pytest.raises(KeyboardInterrupt):
        run_in_thread(wait)
    assert cleaned == [True]


def test_a_result_that_an_interrupt_did_not_stop_is_returned() -> None:
    async def stubborn() -> str:
        os.kill(os.getpid(), signal.SIGINT)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "finished"
        return "not reached"

    assert run_in_thread(stubborn) == "finished"
