"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def write_whole(path: Path, content: bytes | Iterable[bytes]) -> None:
    """Write a file so that a reader sees the old content or the new, never a part.

    As with any writing, a link stays a link, a file that is there keeps its permissions, and a new
    one gets those that the process gives to new files.

    Args:
        path: the file; its folder must be there.
        content: all of it, or its parts in order, which are never held together.

    Raises:
        OSError: the system does not take it; `filename` is the path, which is as it was before.
    """
    target = Path(os.path.realpath(path))
    # A short name of its own: two writers at once must not share it, nor may it be too long.
    part = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        _write(part, (content,) if isinstance(content, bytes) else content)
        with suppress(FileNotFoundError):
            part.chmod(target.stat().st_mode & 0o7777)
        part.replace(target)
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        with suppress(OSError):  # where it could not be made either
            part.unlink()


def _write(path: Path, parts: Iterable[bytes]) -> None:
    with path.open("xb") as file:
        file.writelines(parts)
        file.flush()
        os.fsync(file.fileno())
