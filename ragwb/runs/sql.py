"""DuckDB within bounds: no file, no network, a share of the memory, and an end when stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from ragwb.errors import RunError, UsageError
from ragwb.html import plain

if TYPE_CHECKING:
    import duckdb

T = TypeVar("T")

BATCH_ROWS = 10_000
MEMORY_SHARE = 0.5
"""Of what DuckDB would take by itself, which is 80 % of what the process may have."""

# Nothing but the registered tables can be read: no file, no network, no variable of the caller.
# The last two close the door behind the others.
_LOCKS = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "enable_external_access": "false",
    "lock_configuration": "true",
}
_UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_NOTICE_S = 0.05
_ENDS_OF_MEMORY = ("Out of Memory", "Allocation failure")


@contextmanager
def connect(memory: int | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
    """A locked connection to an empty database that writes nothing to disk.

    Args:
        memory: bytes that a query may hold; default `MEMORY_SHARE` of what DuckDB would take.
    """
    import duckdb

    # Without a folder for temporary files a query that outgrows the memory ends with an error.
    with duckdb.connect(config={"temp_directory": ""}) as connection:
        limit = int(memory_of(connection) * MEMORY_SHARE) if memory is None else memory
        connection.execute(f"SET memory_limit = '{limit}B'")
        for name, value in _LOCKS.items():
            connection.execute(f"SET {name} = {value}")
        yield connection


def memory_of(connection: duckdb.DuckDBPyConnection) -> int:
    """The bytes that the queries of a connection may hold."""
    # All rows are fetched: a result that is not at its end holds the connection.
    ((said,),) = connection.execute("SELECT current_setting('memory_limit')").fetchall()
    number, unit = said.split()
    return int(float(number) * _UNITS[unit])


def stoppable(
    step: Callable[[], T], stop: Callable[[], object], *, timeout_s: float | None = None
) -> T:
    """What a step returns; it runs in a thread, so that Ctrl-C is heard while it works.

    Args:
        step: what takes long and hears no signal.
        stop: makes it end; called until it has.
        timeout_s: seconds that it may take; None for no end.

    Raises:
        KeyboardInterrupt: the caller was interrupted; the step has ended.
        UsageError: it took too long; it has ended.
        BaseException: whatever the step raises.
    """
    done: Future[T] = Future()
    # The thread begins its work when this one is inside the try, so that no interrupt is missed.
    go = threading.Event()
    thread = threading.Thread(target=_serve, args=(step, go, done), name="ragwb-sql", daemon=True)
    thread.start()
    try:
        go.set()
        wait([done], timeout=timeout_s)
        if not done.done():
            _end(done, stop)
            raise UsageError(
                f"SQL: no row within {timeout_s:g} s: ask for less, or give more time by --timeout"
            )
        return done.result()
    except KeyboardInterrupt:
        go.set()
        _end(done, stop)
        raise
    finally:
        thread.join()


def _end(done: Future[T], stop: Callable[[], object]) -> None:
    # A query that has not begun does not hear the first call.
    while not done.done():
        stop()
        wait([done], timeout=_NOTICE_S)


def _serve(step: Callable[[], T], go: threading.Event, done: Future[T]) -> None:
    go.wait()
    try:
        done.set_result(step())
    except BaseException as error:
        done.set_exception(error)


@contextmanager
def errors_in_words(memory: int) -> Iterator[None]:
    """What DuckDB and Arrow raise, as a line that says what to do.

    Args:
        memory: bytes that the query may hold.

    Raises:
        UsageError: DuckDB refuses the query, or it needs more memory than it may have.
        RunError: a file of a run cannot be read.
    """
    import duckdb

    try:
        yield
    except (duckdb.Error, OSError, pa.ArrowException) as error:
        text = str(error)
        if any(end in text for end in _ENDS_OF_MEMORY):
            raise too_large(memory) from error
        # While rows are read, Arrow hands on what DuckDB said.
        if isinstance(error, duckdb.Error) or _is_from_duckdb(text):
            raise UsageError(_said(text)) from error
        raise RunError(f"a run cannot be read: {plain(text, width=300)}") from error


def too_large(memory: int) -> UsageError:
    """The error of a query that needs more than the bytes that it may have."""
    return UsageError(
        f"SQL: the query needs more memory than the {memory / 1e9:.1f} GB that it may have: ask "
        "for fewer rows and columns, or add `where` or `limit`"
    )


def _is_from_duckdb(text: str) -> bool:
    return " Error: " in text.split("\n", 1)[0]


def _said(text: str) -> str:
    """DuckDB's first paragraph on one line; it repeats the query below, which the caller has."""
    lines = [line.strip() for line in text.split("\n\n")[0].splitlines() if line.strip()]
    return f"SQL: {plain(' '.join(lines), width=400)}"
