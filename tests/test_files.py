from __future__ import annotations

import os
import pty
import re
import socket
import stat
import subprocess
import sys
import threading
import tty
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, date, datetime, time
from pathlib import Path

import pytest

from ragwb.errors import DataError, UsageError
from ragwb.files import (
    as_written,
    is_stream,
    open_plain,
    read_bytes,
    read_text,
    read_toml,
    write_whole,
)


@pytest.fixture
def umask() -> Iterator[None]:
    before = os.umask(0o027)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_a_file_is_replaced_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_whole(path, b"old")
    write_whole(path, (part for part in (b"n", b"ew")))

    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["a.json"]


def test_a_new_file_has_the_permissions_of_new_files(tmp_path: Path, umask: None) -> None:
    write_whole(tmp_path / "a", b"")

    assert mode(tmp_path / "a") == 0o640


def test_a_file_that_is_there_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.touch()
    path.chmod(0o604)
    write_whole(path, b"new")

    assert mode(path) == 0o604


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    folder = tmp_path / "far"
    folder.mkdir()
    link = tmp_path / "link"
    link.symlink_to(folder / "a")
    write_whole(link, b"new")

    assert link.is_symlink()
    assert (folder / "a").read_bytes() == b"new"
    assert (names(tmp_path), names(folder)) == (["far", "link"], ["a"])


def test_the_longest_name_is_written(tmp_path: Path) -> None:
    name = "n" * 255
    write_whole(tmp_path / name, b"new")

    assert names(tmp_path) == [name]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failure_leaves_the_old_file_alone(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def parts() -> Iterator[bytes]:
        yield b"ne"
        raise error

    with pytest.raises(type(error)) as caught:
        write_whole(path, parts())
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a"]
    if isinstance(caught.value, OSError):
        assert (caught.value.filename, caught.value.errno) == (str(path), 28)


@pytest.mark.parametrize("place", ["nowhere/a", "file/a", "folder"])
def test_what_cannot_be_written_is_named(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()

    with pytest.raises(OSError, match=place) as caught:
        write_whole(tmp_path / place, b"new")
    assert caught.value.filename == str(tmp_path / place)
    assert names(tmp_path) == ["file", "folder"]


@pytest.mark.parametrize("error", [DataError, UsageError])
@pytest.mark.parametrize("content", [b"a = [", b"a = " + b"1" * 5000, b"a = " + b"[" * 100_000])
def test_what_is_no_toml_is_one_error(tmp_path, error, content):
    path = tmp_path / "a.toml"
    path.write_bytes(content)
    with pytest.raises(error, match=r"a\.toml: not TOML"):
        read_toml(path, error)


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    return path


@pytest.fixture
def terminal() -> Iterator[tuple[int, Path]]:
    """A device of one's own: its other end, and its path."""
    master, slave = pty.openpty()
    tty.setraw(slave)
    yield master, Path(os.ttyname(slave))
    os.close(master)
    os.close(slave)


def test_a_pipe_that_is_read_is_written_into_and_stays_a_pipe(tmp_path: Path, fifo: Path) -> None:
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    write_whole(fifo, (part for part in (b"n", b"ew")))

    assert os.read(reader, 100) == b"new"
    os.close(reader)
    assert fifo.is_fifo()
    assert names(tmp_path) == ["fifo"]


def test_a_pipe_that_nobody_reads_is_refused_at_once(tmp_path: Path, fifo: Path) -> None:
    with pytest.raises(OSError, match="a pipe that nobody reads") as caught:
        write_whole(fifo, b"new")
    assert caught.value.filename == str(fifo)
    assert fifo.is_fifo()
    assert names(tmp_path) == ["fifo"]


def test_a_device_is_written_into_and_stays_a_device(tmp_path, terminal):
    master, path = terminal
    link = tmp_path / "link"
    link.symlink_to(path)
    write_whole(link, b"new")

    assert os.read(master, 100) == b"new"
    assert link.is_symlink()
    assert stat.S_ISCHR(path.stat().st_mode)


def test_a_socket_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    with closing(socket.socket(socket.AF_UNIX)) as server:
        server.bind("socket")
        with pytest.raises(OSError, match="neither a file nor a pipe"):
            write_whole(Path("socket"), b"new")
        with pytest.raises(OSError, match="No such device"):
            read_bytes(Path("socket"))
    assert (tmp_path / "socket").is_socket()


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_standard_output_is_written_into_also_where_it_is_a_file(tmp_path: Path, name: str) -> None:
    out = tmp_path / "out"
    code = (
        "from pathlib import Path; from ragwb.files import write_whole; "
        f"print('before', flush=True); write_whole(Path({name!r}), b'new\\n'); print('after')"
    )
    with out.open("wb") as file:
        done = subprocess.run([sys.executable, "-c", code], stdout=file, check=False)
    assert done.returncode == 0
    assert out.read_text().splitlines() == ["before", "new", "after"]
    piped = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert piped.stdout.splitlines() == [b"before", b"new", b"after"]
    assert names(tmp_path) == ["out"]


def test_a_closed_descriptor_is_named(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="Bad file descriptor: '/dev/fd/987654'"):
        write_whole(Path("/dev/fd/987654"), b"new")


def test_what_is_a_stream(tmp_path: Path, fifo: Path) -> None:
    (tmp_path / "1").touch()
    loop = tmp_path / "loop"
    loop.symlink_to(loop)

    assert is_stream(fifo)
    assert is_stream(Path("/dev/stdout"))
    for path in (tmp_path, tmp_path / "1", tmp_path / "none", loop):
        assert not is_stream(path)


def test_a_pipe_is_read_to_its_end_and_again_from_its_start() -> None:
    reader, writer = os.pipe()

    def feed() -> None:
        with os.fdopen(writer, "wb", buffering=0) as file:
            for _ in range(200):  # more than a pipe holds
                file.write(b"0123456789" * 100)

    thread = threading.Thread(target=feed)
    thread.start()
    with open_plain(Path(f"/dev/fd/{reader}")) as file:
        assert file.read() == b"0123456789" * 20_000
        file.seek(3)
        assert file.read(3) == b"345"
    thread.join()
    os.close(reader)


def test_a_pipe_whose_writer_has_ended_is_read() -> None:
    reader, writer = os.pipe()
    os.write(writer, b"a = 1")
    os.close(writer)
    assert read_toml(Path(f"/dev/fd/{reader}"), UsageError) == {"a": 1}
    os.close(reader)


def test_a_pipe_that_nobody_writes_into_is_refused_at_once(fifo: Path) -> None:
    with pytest.raises(UsageError) as caught:
        read_text(fifo, UsageError)
    assert str(caught.value) == f"{fifo}: cannot be read: an empty pipe that nobody writes into"


def test_a_device_is_not_read(terminal: tuple[int, Path]) -> None:
    _, path = terminal
    with pytest.raises(DataError, match=rf"{path}: cannot be read: not a plain file"):
        read_text(path, DataError)


@pytest.mark.parametrize("size", [9, 10, 11])
def test_a_file_and_a_pipe_have_the_same_bound(tmp_path: Path, size: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * size)
    reader, writer = os.pipe()
    os.write(writer, b"x" * size)
    os.close(writer)
    for given in (path, Path(f"/dev/fd/{reader}")):
        if size <= 10:
            assert read_bytes(given, most=10) == b"x" * size
            continue
        with pytest.raises(UsageError, match="cannot be read: more than 10 bytes"):
            read_text(given, UsageError, most=10)
    os.close(reader)


def test_a_pipe_that_never_ends_is_read_up_to_its_bound(fifo: Path) -> None:
    held = os.open(fifo, os.O_RDWR)  # a writer that never goes
    os.write(held, b"x" * 5000)
    with pytest.raises(OSError, match="more than 4,000 bytes"):
        read_bytes(fifo, most=4000)
    os.close(held)


@pytest.mark.parametrize(
    ("content", "line"),
    [(b"\xff", 1), (b"\xef\xbb\xbfa\n\xff", 2), ("好\r\n\n".encode() + b"\xe5", 3)],
)
def test_what_is_not_utf_8_is_told_with_its_line(tmp_path, content, line):
    path = tmp_path / "a"
    path.write_bytes(content)
    with pytest.raises(DataError, match=rf"a:{line}: not UTF-8: save the file as UTF-8$"):
        read_text(path, DataError)


def test_text_has_one_kind_of_line_ends(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes("\ufeffa\r\nb\rc\n".encode())
    assert read_text(tmp_path / "a", DataError) == "a\nb\nc\n"


def test_a_folder_and_nothing_are_named(tmp_path: Path) -> None:
    for path, said in ((tmp_path, "Is a directory"), (tmp_path / "none", "No such file")):
        with pytest.raises(DataError, match=rf"^{re.escape(str(path))}: cannot be read: {said}"):
            read_text(path, DataError)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (date(1979, 5, 27), "1979-05-27"),
        (datetime(1979, 5, 27, 7, 32, tzinfo=UTC), "1979-05-27T07:32:00+00:00"),
        (time(7, 32), "07:32:00"),
        (True, "true"),
        (None, "null"),
        (1.5, "1.5"),
        ("a", '"a"'),
        ([1, [False, "a"]], '[1, [false, "a"]]'),
        ({"a": True}, "{a = true}"),
        ("x" * 10_000_000, f'"{"x" * 58}…'),
    ],
)
def test_a_value_is_shown_as_its_file_writes_it(value, shown):
    assert as_written(value) == shown


def test_a_value_without_a_bottom_is_shown() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    assert as_written(deep) == "a value nested too deeply to show"


def test_toml_with_a_byte_order_mark_is_read(tmp_path):
    (tmp_path / "a.toml").write_bytes("\ufeffa = 1".encode())
    assert read_toml(tmp_path / "a.toml", UsageError) == {"a": 1}
