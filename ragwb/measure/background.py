"""Work on a stream in other threads, in order, with few of its pieces in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


def in_background(
    work: Callable[[Item], Outcome], items: Iterable[Item], *, workers: int = 1
) -> Iterator[Outcome]:
    """What `work` makes of each item, in their order, while this thread fetches the next ones.

    Pays where both let go of the interpreter for most of their time, as DuckDB, pyarrow and numpy
    do. With one worker the items are worked on one after the other.

    Args:
        work: called in another thread.
        items: fetched in this thread, at most `workers` + 1 ahead.
        workers: threads.
    """
    pending: deque[Future[Outcome]] = deque()
    with ThreadPoolExecutor(max_workers=workers) as pool:
        for item in items:
            pending.append(pool.submit(work, item))
            if len(pending) > workers + 1:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
