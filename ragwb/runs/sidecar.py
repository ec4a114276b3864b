"""Append-only files beside a sealed run: whole lines, under a lock, on the disk when it returns.

They stand outside the content hash and only ever grow. The lock is `flock` on the file itself, so
that two people, or a notebook and a command, may add to one run at once.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from ragwb.errors import RunError, UsageError
from ragwb.runs.far import FarPath
from ragwb.runs.files import disk_fault

# A run folder may come from somebody else: a link in it must not lead the writing elsewhere, and a
# pipe must not stop it.
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
_FLAGS |= getattr(os, "O_NONBLOCK", 0)


def append_lines(path: Path, lines: bytes | Callable[[], bytes], *, then: str) -> None:
    """Add lines to a file of a run folder; a last line that a crash tore stays a line of its own.

    Args:
        path: the file, made when it is not there; its folder must be there.
        lines: whole lines, each with its line end; or a function that gives them, called under the
            lock, so that what it reads of the file is what they follow. None are written as none.
        then: what to do once a fault of the disk is gone, such as "save the note again".

    Raises:
        RunError: the disk does not take it, or the path is not a plain file; the file is as before.
        UsageError: the system has no flock (Windows).
    """
    if isinstance(path, FarPath):
        raise RunError(f"{path}: nothing is added to a run at a URL; copy its folder here, {then}")
    try:
        import fcntl
    except ImportError as error:
        raise UsageError(
            "nothing can be added to a run on Windows: it has no lock that dies with its process"
        ) from error
    try:
        fd = os.open(path, _FLAGS, 0o644)
    except OSError as error:
        raise disk_fault(path, error, then) from error
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise RunError(f"{path}: not a plain file; move it away, then {then}")
        fcntl.flock(fd, fcntl.LOCK_EX)
        content = lines() if callable(lines) else lines
        if content:
            _append(fd, path, content, then)
    finally:
        os.close(fd)


def _append(fd: int, path: Path, lines: bytes, then: str) -> None:
    end = os.fstat(fd).st_size
    is_torn = end > 0 and os.pread(fd, 1, end - 1) != b"\n"
    content = b"\n" + lines if is_torn else lines
    try:
        written = 0
        # A full disk takes a part, and says why when asked for the rest.
        while written < len(content):
            written += os.write(fd, content[written:])
        os.fsync(fd)
    except OSError as error:
        os.ftruncate(fd, end)
        raise disk_fault(path, error, then) from error
