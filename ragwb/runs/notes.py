"""Review notes: what a person says of a failed case, in `notes.jsonl` beside the sealed run.

One JSON object a line, append-only and outside the content hash: a note is never changed, a later
one stands beside it.
"""

from __future__ import annotations

import getpass
import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pydantic import ConfigDict, TypeAdapter, ValidationError

from ragwb.errors import RunError, UsageError
from ragwb.html import plain, terminal_json, visible
from ragwb.runs.files import open_part
from ragwb.runs.sidecar import append_lines
from ragwb.runs.store import Run
from ragwb.settings import Settings, load_settings

NOTES = "notes.jsonl"
# A note is read in a list beside its case; whoever has more to say links to it.
MOST_CHARACTERS = 10_000
MOST_OF_A_NAME = 200


@dataclass(frozen=True, slots=True)
class Note:
    """What a person says of one failed case.

    Attributes:
        case_id, repeat, k, stage, reason: what triage said, at which K.
        agreed: whether the person agrees with stage and reason; None when they do not say.
        corrected_stage, corrected_reason: what is right instead; None when they agree or know none.
        text: free text, may be empty; control characters are written out as ⟨U+XXXX⟩.
        author: who says so.
        written_at: UTC, ISO 8601.
    """

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)

    case_id: str
    repeat: int
    k: int
    stage: str
    reason: str
    agreed: bool | None
    corrected_stage: str | None
    corrected_reason: str | None
    text: str
    author: str
    written_at: str


_NOTE = TypeAdapter(Note)


def default_author(settings: Settings | None = None) -> str:
    """Who writes notes here: `RAGWB_AUTHOR`, `author` in the settings, else the system's user."""
    named = (settings or load_settings()).author
    if named:
        return str(named)
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):
        # A container may run as a number that has no name.
        return "unknown"


def add_note(run: Run, note: Note) -> Note:
    """Add a note to a run; what is there stays as it is.

    Returns:
        The note as written, its text and author cleaned of control characters.

    Raises:
        UsageError: it says nothing, contradicts itself, has no author, or is too long.
        RunError: the run's folder does not take it.
    """
    cleaned = replace(note, text=visible(note.text.strip()), author=plain(note.author))
    _check(cleaned)
    # What could drive a terminal is written as escapes; Chinese stays readable.
    line = terminal_json(json.dumps(asdict(cleaned), ensure_ascii=False))
    append_lines(run.path / NOTES, line.encode() + b"\n", then="save the note again")
    return cleaned


def load_notes(run: Run) -> list[Note]:
    """The notes of a run, the oldest first; empty when there are none.

    Raises:
        RunError: the file cannot be read, or a line is not a note.
    """
    path = run.path / NOTES
    if not path.exists():
        return []
    try:
        with open_part(path) as file:
            lines = file.read().splitlines()
    except OSError as error:
        raise RunError(f"{path}: {error.strerror}; make it readable, or move it away") from error
    return [_note(path, number, line) for number, line in enumerate(lines, 1)]


def _check(note: Note) -> None:
    corrected = note.corrected_stage is not None or note.corrected_reason is not None
    if note.agreed is None and not note.text and not corrected:
        raise UsageError("the note says nothing: agree, correct the stage, or write a text")
    if note.agreed and corrected:
        raise UsageError("the note agrees and corrects: leave one of them out")
    if not note.author:
        raise UsageError("the note has no author: write your name, or set RAGWB_AUTHOR")
    for what, text, most in (
        ("note's text", note.text, MOST_CHARACTERS),
        ("author's name", note.author, MOST_OF_A_NAME),
    ):
        if len(text) > most:
            raise UsageError(
                f"the {what} has {len(text):,} characters, at most {most:,} are kept: shorten it"
            )


def _note(path: Path, number: int, line: bytes) -> Note:
    try:
        return _NOTE.validate_json(line)
    except ValidationError as error:
        raise RunError(f"{path}:{number}: {_fault(error)}") from error


def _fault(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    said = f"{where}: {first['msg']}" if where else first["msg"]
    if first["type"] == "unexpected_keyword_argument":
        return plain(f"{said}; written by a newer ragwb: update ragwb", width=200)
    return plain(f"not a note: {said}; repair or remove the line", width=200)
