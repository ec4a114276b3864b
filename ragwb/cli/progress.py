"""Progress on stderr for anything that takes more than a moment."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import typer

OnProgress = Callable[[int, int], None]
Wait = Callable[[float], bool]

LINE_EVERY_S = 10


@dataclass(slots=True)
class Progress:
    """How far some work has come; a total of 0 is not known yet."""

    done: int = 0
    total: int = 0

    def tell(self, done: int, total: int) -> None:
        """Take note of how far it is."""
        self.done, self.total = done, total


@contextmanager
def progress_bar(label: str) -> Iterator[OnProgress]:
    """A function of (done, total): a bar on a terminal, elsewhere a line every ten seconds.

    The lines come from a thread of their own, so that there is one also while the work has nothing
    to tell, before its first step and after its last.
    """
    if sys.stderr.isatty():
        with _bar(label) as tell:
            yield tell
        return
    progress, ended = Progress(), threading.Event()
    teller = threading.Thread(target=tell_lines, args=(label, progress, ended.wait), daemon=True)
    teller.start()
    try:
        yield progress.tell
    finally:
        ended.set()
        teller.join()


@contextmanager
def _bar(label: str) -> Iterator[OnProgress]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def tell_lines(label: str, progress: Progress, wait: Wait) -> None:
    """Write a line of how far it is every ten seconds, until the wait says that it has ended.

    Args:
        label: what is done.
        progress: how far it is.
        wait: waits so many seconds, at most; whether the work ended meanwhile.
    """
    seconds = LINE_EVERY_S
    while not wait(LINE_EVERY_S):
        far = f"{progress.done}/{progress.total}, " if progress.total else ""
        typer.echo(f"{label}: {far}{seconds} s", err=True)
        seconds += LINE_EVERY_S
