"""Files of a run folder: hashed, and full disks said in one line."""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from ragwb.errors import RunError


def open_part(path: Path) -> BufferedReader:
    """A file of a run folder, which may come from somebody else, for reading.

    Raises:
        OSError: it cannot be read, or is no plain file: a pipe or a device would never end.
    """
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "not a plain file", str(path))
    return path.open("rb")


def file_hash(path: Path) -> str:
    """SHA-256 of a file in hex.

    Raises:
        OSError: as of `open_part`.
    """
    with open_part(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


_FORBIDDEN = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})


@contextmanager
def disk_faults(folder: Path, then: str) -> Iterator[None]:
    """Turn what the system says of a full or read-only disk into one line.

    Raises:
        RunError: an OSError came out of the block; it says how to make the folder take files, and
            `then` what to do next.
    """
    try:
        yield
    except OSError as error:
        raise disk_fault(folder, error, then) from error


def disk_fault(folder: Path, error: OSError, then: str) -> RunError:
    """One line for what the system says of a disk, with the remedy that fits."""
    reason = error.strerror or str(error).splitlines()[0]
    remedy = "make it writable" if error.errno in _FORBIDDEN else "make room"
    return RunError(f"{error.filename or folder}: {reason}; {remedy}, then {then}")
