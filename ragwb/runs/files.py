"""Files of a run folder: hashed, and full disks said in one line."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ragwb.errors import RunError


def file_hash(path: Path) -> str:
    """SHA-256 of a file in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def disk_faults(folder: Path, advice: str) -> Iterator[None]:
    """Turn what the system says of a full or read-only disk into one line.

    Raises:
        RunError: an OSError came out of the block; `advice` says what to do.
    """
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error).splitlines()[0]
        raise RunError(f"{error.filename or folder}: {reason}; {advice}") from error
