"""Review notes: appended beside the sealed run, read back, and never silently lost."""

import getpass
import json
import multiprocessing
import os
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from hostile import TEXTS
from run_data import case, run, service

from ragwb.errors import RunError, UsageError
from ragwb.runs.notes import MOST_CHARACTERS, NOTES, Note, add_note, default_author, load_notes
from ragwb.runs.store import Run, load_run
from ragwb.settings import Settings

NOTE = Note(
    case_id="c1",
    repeat=1,
    k=5,
    stage="rerank",
    reason="RANKED_BELOW_K",
    agreed=False,
    corrected_stage="knowledge",
    corrected_reason="CHUNK_SPLIT",
    text="切片把这一句切断了。",
    author="王芳",
    written_at="2026-11-30T08:00:00+00:00",
)


@pytest.fixture
def saved(tmp_path):
    return run(tmp_path, service(), [case(1), case(2)])


def lines(saved: Run) -> list[str]:
    return (saved.path / NOTES).read_text(encoding="utf-8").split("\n")


def test_a_run_without_notes_has_none(saved):
    assert load_notes(saved) == []


def test_a_note_is_read_back_and_an_older_one_stays(saved):
    later = replace(NOTE, case_id="c2", agreed=True, corrected_stage=None, corrected_reason=None)
    add_note(saved, NOTE)
    first = (saved.path / NOTES).read_bytes()
    add_note(saved, later)
    assert load_notes(saved) == [NOTE, later]
    assert (saved.path / NOTES).read_bytes().startswith(first)


def test_a_note_changes_nothing_that_is_sealed(saved):
    add_note(saved, NOTE)
    assert load_run(saved.path).manifest == saved.manifest


def test_chinese_stays_readable_and_a_note_is_one_line(saved):
    add_note(saved, replace(NOTE, text="第一行\n第二行"))
    line, rest = lines(saved)
    assert "第一行\\n第二行" in line
    assert "王芳" in line
    assert rest == ""
    assert list(json.loads(line))[:2] == ["case_id", "repeat"]


@pytest.mark.parametrize("text", TEXTS[:-1])
def test_hostile_text_stays_one_line_and_cannot_drive_a_terminal(saved, text):
    hostile = replace(NOTE, case_id=text, text=text + "\u2028\ud800\x85", author=text[:50])
    written = add_note(saved, hostile)
    (read,) = load_notes(saved)
    assert read == written
    assert read.case_id == text
    content = (saved.path / NOTES).read_bytes().decode()
    assert not set(content) & set("\x1b\x07\u202e\u2028\x85")
    assert len(lines(saved)) == 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"text": "长" * (MOST_CHARACTERS + 1)}, "10,001 characters, at most 10,000"),
        ({"author": "a" * 201}, "author's name has 201"),
        ({"author": " \n"}, "no author"),
        ({"agreed": True}, "agrees and corrects"),
        (
            {"agreed": None, "corrected_stage": None, "corrected_reason": None, "text": "  "},
            "says nothing",
        ),
    ],
)
def test_a_note_that_cannot_be_meant_is_refused_and_not_written(saved, given, message):
    with pytest.raises(UsageError, match=message):
        add_note(saved, replace(NOTE, **given))
    assert load_notes(saved) == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not a note: .*repair or remove"),
        ("[" * 100_000, "not a note"),
        ("3", "not a note"),
        ("{}", "case_id: .*repair or remove"),
        (json.dumps({**asdict(NOTE), "repeat": "1"}), "repeat: .*integer"),
        (json.dumps({**asdict(NOTE), "mood": 1}), "mood: .*newer ragwb"),
    ],
)
def test_a_broken_line_is_named(saved, line, message):
    add_note(saved, NOTE)
    with (saved.path / NOTES).open("a", encoding="utf-8") as file:
        file.write(line + "\n")
    with pytest.raises(RunError, match=rf"notes\.jsonl:2: .*{message}"):
        load_notes(saved)


def test_a_torn_last_line_takes_no_note_with_it(saved):
    (saved.path / NOTES).write_bytes(b'{"case_id": "c1", "rep')
    add_note(saved, NOTE)
    with pytest.raises(RunError, match=r"notes\.jsonl:1: not a note"):
        load_notes(saved)
    _, whole, _ = lines(saved)
    (saved.path / NOTES).write_text(whole + "\n", encoding="utf-8")
    assert load_notes(saved) == [NOTE]


def test_a_disk_that_takes_nothing_is_one_clear_line(saved):
    (saved.path / NOTES).mkdir()
    with pytest.raises(RunError, match=r"notes\.jsonl: Is a directory; make room, then save"):
        add_note(saved, NOTE)


def test_a_link_in_the_run_leads_nowhere(saved, tmp_path):
    target = tmp_path / "elsewhere"
    (saved.path / NOTES).symlink_to(target)
    with pytest.raises(RunError, match=r"notes\.jsonl: .*symbolic"):
        add_note(saved, NOTE)
    assert not target.exists()


def test_a_pipe_stops_nobody(saved):
    os.mkfifo(saved.path / NOTES)
    with pytest.raises(RunError, match="not a plain file"):
        add_note(saved, NOTE)
    with pytest.raises(RunError, match="not a plain file"):
        load_notes(saved)


def _write_many(path: Path, name: str) -> None:
    for number in range(50):
        add_note(load_run(path), replace(NOTE, author=name, text=f"{number} " + "字" * 3_000))


def test_two_writers_at_once_lose_nothing(saved):
    writers = [
        multiprocessing.get_context("spawn").Process(target=_write_many, args=(saved.path, name))
        for name in ("a", "b")
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    found = [(note.author, int(note.text.split()[0])) for note in load_notes(saved)]
    assert sorted(found) == [(name, number) for name in "ab" for number in range(50)]
    assert [n for name, n in found if name == "a"] == list(range(50))


def test_the_author_is_the_setting_and_else_the_user(tmp_path, monkeypatch):
    named = Settings(root=tmp_path, home=tmp_path, author="王芳")
    assert default_author(named) == "王芳"
    monkeypatch.setenv("LOGNAME", "ops")
    assert default_author(Settings(root=tmp_path, home=tmp_path)) == "ops"


def test_a_user_without_a_name_is_unknown(tmp_path, monkeypatch):
    def nobody():
        raise KeyError("getpwuid(): uid not found: 1234")

    monkeypatch.setattr(getpass, "getuser", nobody)
    assert default_author(Settings(root=tmp_path, home=tmp_path)) == "unknown"
