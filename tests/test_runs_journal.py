from __future__ import annotations

from pathlib import Path

import pytest

from ragwb.errors import RunError
from ragwb.runs.journal import JOURNAL, Journal, locked


def line(case_id: str, repeat: int = 1) -> bytes:
    return f'{{"case_id": "{case_id}", "repeat": {repeat}, "question": "问"}}\n'.encode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    journal = Journal(tmp_path)
    for case_id in ("a", "b"):
        journal.append((case_id, 1), line(case_id))
    journal.close()
    return tmp_path


def test_what_was_appended_is_read_back(folder: Path) -> None:
    journal = Journal(folder)
    journal.append(("a", 2), line("a", 2))
    journal.sync()
    assert len(journal) == 3
    assert ("a", 2) in journal
    assert ("b", 2) not in journal
    assert journal.read(("b", 1)) == line("b")
    assert journal.read(("a", 2)) == line("a", 2)
    journal.close()
    assert (folder / JOURNAL).read_bytes() == line("a") + line("b") + line("a", 2)


@pytest.mark.parametrize(
    "torn",
    [
        line("c")[:-1],
        line("c")[:9],
        b"\x00" * 50,
        b"{}\n",
        b"null\n",
        b'{"case_id": "c"}\n',
        b"\xff\n",
    ],
)
def test_a_torn_end_is_dropped_and_counted(folder: Path, torn: bytes) -> None:
    with (folder / JOURNAL).open("ab") as file:
        file.write(torn)
    journal = Journal(folder)
    assert journal.torn_lines == 1
    assert len(journal) == 2
    journal.append(("d", 1), line("d"))
    assert journal.read(("d", 1)) == line("d")
    journal.close()
    assert (folder / JOURNAL).read_bytes() == line("a") + line("b") + line("d")


def test_a_whole_journal_has_no_torn_line(folder: Path) -> None:
    journal = Journal(folder)
    journal.close()
    assert journal.torn_lines == 0


def test_a_break_in_the_middle_is_not_skipped(folder: Path) -> None:
    (folder / JOURNAL).write_bytes(line("a") + b"{broken\n" + line("b"))
    with pytest.raises(RunError, match=r"journal\.jsonl:2: broken in the middle"):
        Journal(folder)


def test_lines_longer_than_a_read_are_whole(tmp_path: Path) -> None:
    long = b'{"case_id": "a", "repeat": 1, "x": "' + b"y" * 3_000_000 + b'"}\n'
    journal = Journal(tmp_path)
    journal.append(("a", 1), long)
    journal.append(("b", 1), line("b"))
    journal.close()
    again = Journal(tmp_path)
    assert again.read(("a", 1)) == long
    assert again.read(("b", 1)) == line("b")
    again.close()


def test_the_lock_is_held_once_and_given_back(tmp_path: Path) -> None:
    with locked(tmp_path), pytest.raises(RunError, match="another process"), locked(tmp_path):
        pass
    with locked(tmp_path):
        pass
