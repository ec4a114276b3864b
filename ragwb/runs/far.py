"""Runs on another filesystem, read where they are through fsspec.

Only what is asked for is fetched: Parquet by column and row group, as from a disk. Nothing is ever
written there.
"""

from __future__ import annotations

import errno
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, NoReturn

from ragwb.errors import MissingExtraError, RunError
from ragwb.html import plain

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
# What a path on a disk can besides, and a run far away cannot: it would have to be here.
_HERE = frozenset(
    {
        *("write_bytes", "write_text", "mkdir", "unlink", "rename", "replace", "touch", "rmdir"),
        *("iterdir", "glob", "rglob", "stat", "samefile", "as_uri", "as_posix", "relative_to"),
    }
)


def is_far(text: str) -> bool:
    """Whether a text is the URL of a place on some filesystem."""
    return _URL.match(text) is not None


def far_folder(url: str) -> FarPath:
    """The folder at a URL.

    Raises:
        MissingExtraError: fsspec, or what it needs for this kind of URL, is not installed.
        RunError: no filesystem is known by that name.
    """
    try:
        import fsspec

        filesystem, path = fsspec.url_to_fs(url)
    except ImportError as error:
        raise MissingExtraError(f"a run at {plain(_shown(url))}", "remote") from error
    except Exception as error:  # a filesystem of anybody may refuse its settings in any way
        raise RunError(f"{plain(_shown(url))}: {_why(error)}") from error
    return FarPath(filesystem, path.rstrip("/"), _shown(url).rstrip("/"))


class FarPath(io.RawIOBase):
    """A path on another filesystem: what is read of a `Path`, and the file's bytes for Arrow.

    Arrow takes any file that can be read and sought; so a place of a table opens itself when it is
    first read.
    """

    def __init__(self, filesystem: Any, path: str, shown: str) -> None:
        super().__init__()
        self._filesystem = filesystem
        self._path = path
        self._shown = shown
        self._file: Any = None

    def __truediv__(self, name: str) -> FarPath:
        return FarPath(self._filesystem, f"{self._path}/{name}", f"{self._shown}/{name}")

    def __str__(self) -> str:
        return plain(self._shown)

    def __repr__(self) -> str:
        return f"FarPath({self._shown!r})"

    def __getattr__(self, name: str) -> NoReturn:
        if name in _HERE:
            raise RunError(f"{self}: read where it is, and no more: copy its folder here")
        raise AttributeError(name)

    @property
    def name(self) -> str:
        """The last part."""
        return self._path.rpartition("/")[2]

    @property
    def parent(self) -> FarPath:
        """The folder that it is in."""
        return FarPath(
            self._filesystem, self._path.rpartition("/")[0], self._shown.rpartition("/")[0]
        )

    def absolute(self) -> FarPath:
        """Itself: a URL is no relative place."""
        return self

    resolve = absolute

    def exists(self) -> bool:
        """Whether something is there."""
        with self._failures():
            return bool(self._filesystem.exists(self._path))

    def is_file(self) -> bool:
        """Whether a file is there."""
        with self._failures():
            return bool(self._filesystem.isfile(self._path))

    def is_dir(self) -> bool:
        """False: what is beside a run far away is not looked at."""
        return False

    def open(self, mode: str = "rb") -> BinaryIO:
        """The file, for reading."""
        if mode != "rb":
            self.__getattr__("write_bytes")
        with self._failures():
            opened: BinaryIO = self._filesystem.open(self._path, "rb")
            return opened

    def read_bytes(self) -> bytes:
        """All of the file."""
        with self._failures():
            content: bytes = self._filesystem.cat_file(self._path)
            return content

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place in the file."""
        return int(self._opened().seek(offset, whence))

    def tell(self) -> int:
        """Where in the file."""
        return int(self._opened().tell())

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        with self._failures():
            return bytes(self._opened().read(size))

    def close(self) -> None:
        """Close the file where it was opened."""
        if self._file is not None:
            self._file.close()
        super().close()

    def _opened(self) -> Any:
        if self._file is None:
            self._file = self.open()
        return self._file

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Failures of any filesystem as the one of a disk, which every reader handles."""
        try:
            yield
        except Exception as error:  # credentials, network: each filesystem has errors of its own
            if isinstance(error, OSError) and error.strerror is not None:
                raise
            # The number decides of what class the error is.
            kinds: dict[type[Exception], int] = {
                FileNotFoundError: errno.ENOENT,
                PermissionError: errno.EACCES,
            }
            raise OSError(kinds.get(type(error), errno.EIO), _why(error), str(self)) from error


def _shown(url: str) -> str:
    """A URL without user and password."""
    scheme, _, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"


def _why(error: Exception) -> str:
    said = str(error).splitlines()
    return plain(said[0] if said else type(error).__name__, width=160)
