"""Points one after the other, in processes of this machine, or on a Dask cluster: the same results.

Each process works on one point with one thread. What a lost process was working on is done again;
a point under which processes die again and again becomes a result with its error.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any

from ragwb.errors import MissingExtraError, UnreachableError, UsageError
from ragwb.html import plain
from ragwb.sweep.points import Task, run_point
from ragwb.sweep.results import PointResult

Run = Callable[[Task], PointResult]
OnPoint = Callable[[PointResult], None]

ROUNDS = 2
"""How often all unfinished points are given to a new pool before each gets a process of its own."""

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_CONNECT_TIMEOUT_S = 10
_LOST = "its process died each time it was tried: look for memory, or try it alone"


def run_tasks(
    tasks: Sequence[Task],
    *,
    workers: int = 1,
    dask: str | None = None,
    on_point: OnPoint | None = None,
    run: Run = run_point,
) -> list[PointResult]:
    """The results of all points, in their order.

    Args:
        tasks: the points.
        workers: processes; 1 works in this one.
        dask: address of a `dask.distributed` scheduler, whose workers do the work instead; they
            must have ragwb, and see the same folders under the same names.
        on_point: told each result as it comes, in any order.
        run: does a point; a seam for tests. It must be importable by name.

    Raises:
        UsageError: workers is less than 1.
        MissingExtraError: the extra dask is not installed.
        UnreachableError: no scheduler answers at the address.
    """
    if workers < 1:
        raise UsageError(f"workers {workers}: give at least 1")
    if dask is not None:
        done = _on_dask(tasks, dask, run)
    elif workers == 1 or len(tasks) < 2:
        done = ((i, run(task)) for i, task in enumerate(tasks))
    else:
        done = _in_processes(tasks, min(workers, len(tasks)), run)
    found: dict[int, PointResult] = {}
    for place, result in done:
        found[place] = result
        if on_point is not None:
            on_point(result)
    return [found[place] for place in range(len(tasks))]


def _in_processes(
    tasks: Sequence[Task], workers: int, run: Run
) -> Iterator[tuple[int, PointResult]]:
    left = dict(enumerate(tasks))
    for _ in range(ROUNDS):
        for place, result in _one_pool(left, workers, run):
            del left[place]
            yield place, result
        if not left:
            return
    # One of these ends its process. Alone in a pool, it takes no other with it.
    for place, task in list(left.items()):
        alone = list(_one_pool({place: task}, 1, run))
        yield alone[0] if alone else (place, _lost(task))


def _one_pool(tasks: dict[int, Task], workers: int, run: Run) -> Iterator[tuple[int, PointResult]]:
    """The results that come before a process dies; all of them when none does."""
    # Not forked: a fork copies locks that threads of this process hold.
    context = multiprocessing.get_context("spawn")
    with _one_thread_each(), ProcessPoolExecutor(workers, mp_context=context) as pool:
        places: dict[Future[PointResult], int] = {}
        try:
            for place, task in list(tasks.items()):
                places[pool.submit(run, task)] = place
            for future in as_completed(places):
                yield places[future], future.result()
        except BrokenProcessPool:
            return
        finally:
            pool.shutdown(cancel_futures=True)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Children that read their number of threads when numpy is loaded get one each."""
    held = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in held.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _lost(task: Task, error: str = _LOST) -> PointResult:
    return PointResult(task.point, task.key, error=error, top_k=task.top_k)


def _on_dask(tasks: Sequence[Task], address: str, run: Run) -> Iterator[tuple[int, PointResult]]:
    distributed = _dask()
    try:
        _check_address(address)
        client = distributed.Client(address, timeout=_CONNECT_TIMEOUT_S, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise UnreachableError(
            f"--dask {plain(address)}: no scheduler answers ({type(error).__name__}); is it "
            "running? `dask scheduler` prints its address"
        ) from error
    lost = []
    with client:
        # Never by value: two sweeps at once must not be given each other's results.
        futures = {client.submit(run, task, pure=False): i for i, task in enumerate(tasks)}
        for future in distributed.as_completed(futures, loop=client.loop):
            place = futures[future]
            if isinstance(future.exception(), distributed.KilledWorker):
                lost.append(place)
            else:
                yield place, _of_future(future, tasks[place])
        # Dask gives up all that waited at a worker that was lost too often, not what ended it.
        for place in sorted(lost):
            yield place, _of_future(client.submit(run, tasks[place], pure=False), tasks[place])


def _check_address(address: str) -> None:
    """Refuse what is no address before a client is made, which would complain again as it goes."""
    addressing = importlib.import_module("distributed.comm.addressing")
    registry = importlib.import_module("distributed.comm.registry")
    scheme, _ = addressing.parse_address(address, strict=True)
    registry.get_backend(scheme)
    if scheme in {"tcp", "tls", "ws", "wss"}:
        addressing.get_address_host_port(address, strict=True)


def _of_future(future: Any, task: Task) -> PointResult:
    """What a worker gave; what kept it from giving anything is the point's error."""
    fault = future.exception()
    if fault is None:
        result: PointResult = future.result()
        return result
    name = type(fault).__name__
    return _lost(task) if name == "KilledWorker" else _lost(task, f"{name}: {fault}")


def _dask() -> Any:
    try:
        return importlib.import_module("distributed")
    except ImportError as error:
        raise MissingExtraError("--dask", "dask") from error
