"""Progress on stderr for anything that takes more than a moment."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer

OnProgress = Callable[[int, int], None]
Clock = Callable[[], float]

LINE_EVERY_S = 10


@contextmanager
def progress_bar(label: str) -> Iterator[OnProgress]:
    """A function of (done, total): a bar on a terminal, elsewhere a line every ten seconds."""
    if not sys.stderr.isatty():
        yield progress_lines(label)
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def progress_lines(label: str, *, clock: Clock = time.monotonic) -> OnProgress:
    """A function of (done, total) that writes a line at most every ten seconds, for logs."""
    last = clock()

    def tell(done: int, total: int) -> None:
        nonlocal last
        if clock() - last >= LINE_EVERY_S:
            last = clock()
            typer.echo(f"{label}: {done}/{total}", err=True)

    return tell
