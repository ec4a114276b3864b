"""Files beside a sealed run: they grow by whole lines, or stay as they are."""

import resource
from contextlib import contextmanager

import pytest

from ragwb.errors import RunError
from ragwb.runs.sidecar import append_lines


@contextmanager
def room_for(n_bytes):
    """A disk on which no file can be longer than this."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_lines_are_added_at_the_end(tmp_path):
    path = tmp_path / "side.jsonl"
    append_lines(path, b"1\n", then="try again")
    append_lines(path, b"2\n3\n", then="try again")
    assert path.read_bytes() == b"1\n2\n3\n"


def test_a_torn_last_line_stays_a_line_of_its_own(tmp_path):
    path = tmp_path / "side.jsonl"
    path.write_bytes(b"1\n2")
    append_lines(path, b"3\n", then="try again")
    assert path.read_bytes() == b"1\n2\n3\n"


@pytest.mark.parametrize("room", [4, 20])
def test_a_full_disk_is_one_line_and_the_file_is_as_before(tmp_path, room):
    path = tmp_path / "side.jsonl"
    append_lines(path, b"old\n", then="try again")
    with room_for(room), pytest.raises(RunError, match="File too large; make room, then try"):
        append_lines(path, b"a line of thirty characters...\n", then="try again")
    assert path.read_bytes() == b"old\n"


def test_a_folder_that_is_gone_is_one_line(tmp_path):
    with pytest.raises(RunError, match="No such file or directory"):
        append_lines(tmp_path / "gone" / "side.jsonl", b"1\n", then="try again")
