"""The journal of a run that is under way: append-only, one finished question a line, under a lock.

A line is handed to the system in a single write before the next question counts as finished, so
that a process killed at any moment loses nothing that was finished; `sync` puts it on the disk, for
a machine that loses power. The lock is `flock`: it is held by the process and dies with it. Windows
has no flock and is not supported for making runs; reading them works everywhere.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pydantic_core

from ragwb.errors import RunError, UsageError
from ragwb.runs.files import disk_fault

JOURNAL = "journal.jsonl"
LOCK = "lock"
_READ_BYTES = 1 << 20

# A golden case and a repeat from 1.
Pair = tuple[str, int]


class Journal:
    """An open journal; opening it drops a torn last line, which is what a kill can leave.

    Attributes:
        torn_lines: lines at the end that were not whole and were dropped, usually 0 or 1.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / JOURNAL
        self._resume = f"go on with --resume {folder.name}"
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        self._places: dict[Pair, tuple[int, int]] = {}
        self.torn_lines = 0
        self._end = 0
        try:
            self._scan()
        except BaseException:
            self.close()
            raise

    def __contains__(self, pair: Pair) -> bool:
        return pair in self._places

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[Pair]:
        return iter(self._places)

    def append(self, pair: Pair, line: bytes) -> None:
        """Add a finished question.

        Raises:
            RunError: the line could not be written, as on a full disk; the journal is as before.
        """
        try:
            written = 0
            # One write is the rule; a full disk takes a part, and says why when asked for the rest.
            while written < len(line):
                written += os.write(self._fd, line[written:])
        except OSError as error:
            os.ftruncate(self._fd, self._end)
            raise disk_fault(self._path, error, self._resume) from error
        self._places[pair] = (self._end, len(line))
        self._end += written

    def read(self, pair: Pair) -> bytes:
        """The line of a finished question."""
        start, length = self._places[pair]
        return os.pread(self._fd, length, start)

    def sync(self) -> None:
        """Have the system put what was appended on the disk."""
        os.fsync(self._fd)

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)

    def _scan(self) -> None:
        bad: int | None = None
        start = 0
        for number, line in enumerate(_lines(self._fd), 1):
            pair = _pair(line)
            if pair is None:
                bad = bad or number
                self.torn_lines += 1
            elif bad is not None:
                raise RunError(f"{self._path}:{bad}: broken in the middle; this run cannot go on")
            else:
                self._places[pair] = (start, len(line))
                self._end = start + len(line)
            start += len(line)
        if bad is not None:
            os.ftruncate(self._fd, self._end)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a run folder for this process, until the block ends or the process dies.

    Raises:
        RunError: another process holds it.
        UsageError: the system has no flock (Windows).
    """
    try:
        import fcntl
    except ImportError as error:
        raise UsageError(
            "runs cannot be made on Windows: it has no lock that dies with its process"
        ) from error
    fd = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise RunError(
                f"{folder}: another process is working on this run; wait for it or stop it"
            ) from error
        yield
    finally:
        os.close(fd)


def _lines(fd: int) -> Iterator[bytes]:
    """Lines with their line ends; the last one comes without when it is torn."""
    offset = 0
    rest = b""
    while piece := os.pread(fd, _READ_BYTES, offset):
        offset += len(piece)
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield line + b"\n"
    if rest:
        yield rest


def _pair(line: bytes) -> Pair | None:
    if not line.endswith(b"\n"):
        return None
    try:
        data = pydantic_core.from_json(line)
        return str(data["case_id"]), int(data["repeat"])
    except (ValueError, KeyError, TypeError):
        return None
