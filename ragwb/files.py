"""Files that are written whole or not at all, and TOML that is read or refused in one line."""

from __future__ import annotations

import os
import secrets
import tomllib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ragwb.errors import RagwbError


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


def read_toml(path: Path, error: type[RagwbError]) -> dict[str, Any]:
    """The table in a TOML file, with or without a byte order mark.

    Args:
        path: the file.
        error: what is raised when it cannot be read or is not TOML; also for a number of thousands
            of digits, and for tables nested without end.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as fault:
        raise error(f"{path}: cannot be read: {fault.strerror}") from fault
    except (ValueError, RecursionError) as fault:
        raise error(f"{path}: not TOML: {fault}") from fault


def _write(path: Path, parts: Iterable[bytes]) -> None:
    with path.open("xb") as file:
        file.writelines(parts)
        file.flush()
        os.fsync(file.fileno())
