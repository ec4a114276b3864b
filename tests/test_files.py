from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragwb.errors import DataError, UsageError
from ragwb.files import read_toml, write_whole


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
@pytest.mark.parametrize(
    "content", [b"a = [", b"\xff", b"a = " + b"1" * 5000, b"a = " + b"[" * 100_000]
)
def test_what_is_no_toml_is_one_error(tmp_path, error, content):
    path = tmp_path / "a.toml"
    path.write_bytes(content)
    with pytest.raises(error, match=r"a\.toml: not TOML"):
        read_toml(path, error)


def test_toml_with_a_byte_order_mark_is_read(tmp_path):
    (tmp_path / "a.toml").write_bytes("\ufeffa = 1".encode())
    assert read_toml(tmp_path / "a.toml", UsageError) == {"a": 1}
