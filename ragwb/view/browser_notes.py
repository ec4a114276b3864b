"""The review note of a case: agree, or correct stage and reason; older notes stand below."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ragwb.html import tag

if TYPE_CHECKING:
    from ragwb.runs.notes import Note
    from ragwb.runs.store import Run
    from ragwb.triage.verdict import CaseVerdict, TriagedCase
    from ragwb.view.case_view import CaseView

AGREE, CORRECT, REMARK = "agree", "correct", "remark"
_NO_CODE = ""


@dataclass(frozen=True, slots=True)
class Draft:
    """What stands in the form and is not saved."""

    says: str = REMARK
    stage: str = "knowledge"
    reason: str = _NO_CODE
    text: str = ""


class NotesPane:
    """The form of review notes. What is typed and not saved waits for its case to be shown again.

    Attributes:
        widget: the form, and the case's notes.
        notes: the run's notes by case, the oldest first.
    """

    title = "Review note"

    def __init__(
        self, run: Run, author: str, now: Callable[[], datetime], on_save: Callable[..., None]
    ) -> None:
        import ipywidgets as widgets

        from ragwb.triage.reasons import STAGES

        self.notes: dict[str, list[Note]] = {}
        self._run, self._now = run, now
        self._shown: tuple[CaseVerdict, int] | None = None
        self._drafts: dict[str, Draft] = {}
        self._says = widgets.ToggleButtons(
            options=[("I agree", AGREE), ("I correct it", CORRECT), ("only a remark", REMARK)]
        )
        self._stage = widgets.Dropdown(options=STAGES, description="lost in")
        self._reason = widgets.Dropdown(description="because")
        self._correction = widgets.HBox([self._stage, self._reason])
        # Sent whole when it is left: of keystrokes the last could come after the click that saves.
        whole = {"continuous_update": False}
        hint = "What you saw, and what should be done"
        self._text = widgets.Textarea(placeholder=hint, **whole)
        self._author = widgets.Text(value=author, description="author", **whole)
        save = widgets.Button(description="save the note", button_style="primary")
        self._past = widgets.HTML()
        self._says.observe(self._show_correction, names="value")
        self._stage.observe(self._list_reasons, names="value")
        save.on_click(on_save)
        signed = widgets.HBox([self._author, save])
        self.widget = widgets.VBox([self._says, self._correction, self._text, signed, self._past])
        self.widget.add_class("rw-note-form")
        self._fill(Draft())

    def load(self) -> None:
        """Read the run's notes again.

        Raises:
            RunError: their file is broken; what was read before stays.
        """
        from ragwb.runs.notes import load_notes

        found = defaultdict(list)
        for note in load_notes(self._run):
            found[note.case_id].append(note)
        self.notes = dict(found)

    def show(self, triaged: TriagedCase, view: CaseView) -> None:
        """Show the form of a case, with what was typed before and its notes."""
        self.keep_draft()
        self._shown = triaged.verdict, view.k
        self._fill(self._drafts.get(triaged.case_id, Draft()))
        self._list()

    def keep_draft(self) -> None:
        """Keep what stands in the form for its case."""
        if self._shown is not None:
            self._drafts[self._shown[0].case_id] = self._draft()

    def save(self) -> None:
        """Add what stands in the form to the run, list it, and empty the form.

        Raises:
            RagwbError: it says nothing, or the run's folder does not take it; the form stays.
        """
        from ragwb.runs.notes import add_note

        assert self._shown is not None
        written = add_note(self._run, self._note(self._draft(), *self._shown))
        self.notes.setdefault(written.case_id, []).append(written)
        self._fill(Draft())
        self._list()

    def _note(self, draft: Draft, verdict: CaseVerdict, k: int) -> Note:
        from ragwb.runs.notes import Note

        corrects = draft.says == CORRECT
        return Note(
            case_id=verdict.case_id,
            repeat=verdict.repeat,
            k=k,
            stage=verdict.stage,
            reason=verdict.reason,
            agreed={AGREE: True, CORRECT: False}.get(draft.says),
            corrected_stage=draft.stage if corrects else None,
            corrected_reason=(draft.reason or None) if corrects else None,
            text=draft.text,
            author=self._author.value,
            written_at=self._now().isoformat(timespec="seconds"),
        )

    def _list(self) -> None:
        from ragwb.view.findings import notes_part

        assert self._shown is not None
        notes = self.notes.get(self._shown[0].case_id, [])
        none = tag("p", "No note on this case yet.", class_="rw-none")
        self._past.value = notes_part(notes[::-1]).html if notes else none

    def _draft(self) -> Draft:
        return Draft(self._says.value, self._stage.value, self._reason.value, self._text.value)

    def _fill(self, draft: Draft) -> None:
        self._stage.value = draft.stage
        self._list_reasons()
        self._says.value, self._reason.value = draft.says, draft.reason
        self._text.value = draft.text
        self._show_correction()

    def _show_correction(self, _: Any = None) -> None:
        self._correction.layout.display = None if self._says.value == CORRECT else "none"

    def _list_reasons(self, _: Any = None) -> None:
        from ragwb.triage.reasons import REASONS

        codes = [code for code, reason in REASONS.items() if reason.stage == self._stage.value]
        self._reason.options = [("no code says it", _NO_CODE), *((code, code) for code in codes)]
