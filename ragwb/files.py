"""Files that are written whole or not at all, and files of people that are read or refused.

What people give as a file may be anything that has a path. Read are plain files and pipes that
somebody writes into (`<(…)`, `/dev/stdin`), up to a size; a device would never end. A pipe or a
terminal is written into as it stands; a disk is not touched.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import tomllib
from collections.abc import Iterable
from contextlib import suppress
from datetime import date, time
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from ragwb.errors import RagwbError
from ragwb.html import plain

# What people write by hand, with a wide margin; a parser takes seconds for a megabyte.
MOST_TOML_BYTES = 4_000_000
# A file that is held in memory.
MOST_TEXT_BYTES = 64_000_000

_WIDEST_VALUE = 60
# A pipe would keep its opener until somebody opens the other end.
_AT_ONCE = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)


def write_whole(path: Path, content: bytes | Iterable[bytes]) -> None:
    """Write a file so that a reader sees the old content or the new, never a part.

    As with any writing, a link stays a link, a file that is there keeps its permissions, and a new
    one gets those that the process gives to new files. What is no file but takes bytes (a pipe
    that is read, a terminal, `/dev/stdout`) gets them one after the other and stays what it is.

    Args:
        path: the file; its folder must be there.
        content: all of it, or its parts in order, which are never held together.

    Raises:
        OSError: the system does not take it, or it is a disk, a socket or a pipe that nobody
            reads; `filename` is the path, which is as it was before.
    """
    parts = (content,) if isinstance(content, bytes) else content
    try:
        if is_stream(path):
            with os.fdopen(_open_stream(path), "wb") as stream:
                stream.writelines(parts)
        else:
            _replace(Path(os.path.realpath(path)), parts)
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def is_stream(path: Path) -> bool:
    """Whether a path leads to what is written into as it stands: neither a file nor a folder.

    `/dev/stdout` and its like are streams also where the shell has put a file behind them.
    """
    if _descriptor(path) is not None:
        return True
    try:
        mode = path.stat().st_mode
    except OSError:  # what is wrong with it shows when it is written
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def open_plain(path: Path, *, most: int = MOST_TEXT_BYTES) -> BinaryIO:
    """A file to read from its start: it can be read again from there, and it has an end.

    Args:
        path: a plain file of any size, or a pipe, which is held in memory.
        most: bytes that a pipe may hold.

    Raises:
        OSError: it cannot be opened, is neither a file nor a pipe, nobody writes into the pipe, or
            more than `most` bytes come out of it; `filename` is the path.
    """
    fd = os.open(path, os.O_RDONLY | _AT_ONCE)
    try:
        first = _look(fd, path)
        os.set_blocking(fd, True)
    except OSError:
        os.close(fd)
        raise
    file = os.fdopen(fd, "rb")
    if first is None:
        return file
    with file:
        return BytesIO(first + _at_most(file, most - len(first), path, most))


def read_bytes(path: Path, *, most: int = MOST_TEXT_BYTES) -> bytes:
    """The bytes of a file or of a pipe.

    Args:
        path: as of `open_plain`.
        most: bytes that it may have.

    Raises:
        OSError: as of `open_plain`, or it has more bytes; the line for people is `strerror`.
    """
    with open_plain(path, most=most) as file:
        return _at_most(file, most, path, most)


def read_text(path: Path, error: type[RagwbError], *, most: int = MOST_TEXT_BYTES) -> str:
    """The text in a file or a pipe, in UTF-8 with or without a byte order mark.

    Every line ends in a line feed alone, whatever it ended in.

    Args:
        path: as of `open_plain`.
        error: what is raised when it cannot be read, is too large, or is not UTF-8 (with the line).
        most: bytes that it may have.
    """
    try:
        data = read_bytes(path, most=most)
    except OSError as fault:
        raise error(f"{path}: cannot be read: {fault.strerror}") from fault
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        line = fault.object.count(b"\n", 0, fault.start) + 1
        raise error(f"{path}:{line}: not UTF-8: save the file as UTF-8") from fault
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_toml(path: Path, error: type[RagwbError]) -> dict[str, Any]:
    """The table in a TOML file, with or without a byte order mark.

    Args:
        path: the file.
        error: as of `read_text` with `MOST_TOML_BYTES`, and of `parse_toml`.
    """
    return parse_toml(read_text(path, error, most=MOST_TOML_BYTES), path, error)


def parse_toml(text: str, path: Path, error: type[RagwbError]) -> dict[str, Any]:
    """The table in the text of a TOML file.

    Args:
        text: what was read; a caller that needs the lines too reads once, for a pipe has no second
            reading.
        path: where it was read, for the message.
        error: what is raised when it is not TOML; also for a number of thousands of digits, and
            for tables nested without end.
    """
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as fault:
        raise error(f"{path}: not TOML: {plain(fault, width=160)}") from fault


def as_written(value: object, *, width: int = _WIDEST_VALUE) -> str:
    """A value of TOML or JSON in one line, as the file's language writes it.

    Args:
        value: what a parser made of it.
        width: characters that are shown of it.

    Example: date(1979, 5, 27) -> 1979-05-27, True -> true, [1, "a"] -> [1, "a"], None -> null
    """
    try:
        # A text of megabytes is cut before each of its characters is looked at.
        return plain(_as_written(value)[: 10 * width], width=width)
    except RecursionError:
        return "a value nested too deeply to show"


def _as_written(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_as_written, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key} = {_as_written(held)}' for key, held in value.items())}}}"
    return str(value)


def _look(fd: int, path: Path) -> bytes | None:
    """What a pipe holds already; None for a plain file, and all else is refused."""
    # Looked at after it was opened, so that what is read is what was looked at.
    mode = os.fstat(fd).st_mode
    if stat.S_ISREG(mode):
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISFIFO(mode):
        raise OSError(errno.EINVAL, "not a plain file", str(path))
    try:
        data = os.read(fd, 65536)
    except BlockingIOError:
        return b""
    if not data:
        raise OSError(errno.EINVAL, "an empty pipe that nobody writes into", str(path))
    return data


def _at_most(file: BinaryIO, rest: int, path: Path, most: int) -> bytes:
    data = file.read(rest + 1) if rest >= 0 else b""
    if len(data) > rest:
        raise OSError(errno.EFBIG, f"more than {most:,} bytes, too many for such a file", str(path))
    return data


def _replace(target: Path, parts: Iterable[bytes]) -> None:
    # A short name of its own: two writers at once must not share it, nor may it be too long.
    part = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        _write(part, parts)
        with suppress(FileNotFoundError):
            part.chmod(target.stat().st_mode & 0o7777)
        part.replace(target)
    finally:
        with suppress(OSError):  # where it could not be made either
            part.unlink()


def _write(path: Path, parts: Iterable[bytes]) -> None:
    with path.open("xb") as file:
        file.writelines(parts)
        file.flush()
        os.fsync(file.fileno())


def _descriptor(path: Path) -> int | None:
    """The number of the open file of this process that a path names, such as 1 of /dev/stdout."""
    own = {"/dev/fd", f"/proc/{os.getpid()}/fd"}
    for _ in range(8):  # a link to a link to it; those that lead nowhere end too
        if re.fullmatch(r"\d{1,9}", path.name) and os.path.realpath(path.parent) in own:
            return int(path.name)
        try:
            path = path.parent / path.readlink()
        except OSError:
            return None
    return None


def _open_stream(path: Path) -> int:
    number = _descriptor(path)
    if number is not None:
        # Opened again by its path, a file would be written from its start once more.
        return os.dup(number)
    mode = path.stat().st_mode
    if stat.S_ISBLK(mode) or stat.S_ISSOCK(mode):
        raise OSError(errno.EINVAL, "neither a file nor a pipe: give another path")
    try:
        fd = os.open(path, os.O_WRONLY | _AT_ONCE)
    except OSError as error:
        if stat.S_ISFIFO(mode) and error.errno == errno.ENXIO:
            raise OSError(errno.ENXIO, "a pipe that nobody reads: start its reader first") from None
        raise
    os.set_blocking(fd, True)
    return fd
