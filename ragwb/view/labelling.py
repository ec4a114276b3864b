"""A sheet of blind review in a notebook: one item at a time, a button a value, saved as it goes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragwb.errors import RagwbError, UsageError
from ragwb.html import escape, plain, tag
from ragwb.judge.labels import load_labels
from ragwb.judge.rows import read_rows
from ragwb.judge.rubric import MATERIAL, Rubric, default_rubric, load_rubric

if TYPE_CHECKING:
    import ipywidgets

OPEN = "not said"
Row = Mapping[str, Any]


def label_sheet(
    sheet: str | Path, annotator: str, *, rubric: Rubric | str | Path | None = None
) -> ipywidgets.VBox:
    """A form that walks through a sheet and keeps one annotator's labels beside it.

    The labels go to `<sheet>.<annotator>.jsonl`, replaced whole after each item, in the form that
    `ragwb judge calibrate --labels` reads; what was saved before is there again.

    Args:
        sheet: the CSV of `ragwb judge sample`.
        annotator: who labels; a word that can be part of a file's name.
        rubric: the rubric of the sheet, or its file; default the one for answers.

    Raises:
        UsageError: the annotator's name is none, or the sheet is empty.
        DataError: the sheet, the rubric or the saved labels are broken.
    """
    held = load_rubric(rubric) if isinstance(rubric, str | Path) else rubric or default_rubric()
    return _Form(Path(sheet), annotator, held).widget


class _Form:
    """The form: where it stands, and what was said so far.

    Attributes:
        widget: what the notebook shows.
    """

    def __init__(self, sheet: Path, annotator: str, rubric: Rubric) -> None:
        import ipywidgets as widgets

        self._rows = [row for _, row in read_rows(sheet)]
        if not self._rows:
            raise UsageError(f"{sheet}: no item in it")
        self._annotator, self._rubric = annotator, rubric
        self._path = labels_path(sheet, annotator)
        self._said = saved_labels(self._path, rubric)
        self._shown = widgets.HTML()
        self._status = widgets.HTML()
        self._values = {
            one.name: widgets.ToggleButtons(
                options=[(OPEN, None), *((str(value), value) for value in one.scale.values)],
                description=one.name,
                tooltips=["", *(one.meanings.get(str(v), "") for v in one.scale.values)],
            )
            for one in rubric.criteria
        }
        back, onward = (widgets.Button(description=name) for name in ("back", "save, next"))
        onward.button_style = "primary"
        back.on_click(lambda _: self._go(-1))
        onward.on_click(lambda _: self._go(1))
        questions = [
            part
            for one in rubric.criteria
            for part in (widgets.HTML(tag("p", escape(one.question))), self._values[one.name])
        ]
        buttons = widgets.HBox([back, onward])
        self.widget = widgets.VBox([self._shown, *questions, buttons, self._status])
        open_items = (at for at in range(len(self._rows)) if self._id(at) not in self._said)
        self._show(next(open_items, 0))

    def _id(self, at: int) -> str:
        return str(self._rows[at]["item_id"])

    def _show(self, at: int) -> None:
        self._at = at
        row, said = self._rows[at], self._said.get(self._id(at), {})
        self._shown.value = item_html(row, self._rubric)
        for name, buttons in self._values.items():
            buttons.value = said.get(name)
        done = sum(len(labels) == len(self._values) for labels in self._said.values())
        self._status.value = tag(
            "p", escape(f"item {at + 1} of {len(self._rows)}; {done} labelled by {self._annotator}")
        )

    def _go(self, step: int) -> None:
        given = {name: buttons.value for name, buttons in self._values.items()}
        said = {name: value for name, value in given.items() if value is not None}
        try:
            if said or self._id(self._at) in self._said:
                self._said[self._id(self._at)] = said
                save_labels(self._path, self._annotator, self._said)
        except (RagwbError, OSError) as error:
            self._status.value = tag("p", escape(f"not saved: {error}"), class_="rw-warning")
            return
        self._show(min(max(self._at + step, 0), len(self._rows) - 1))


def labels_path(sheet: Path, annotator: str) -> Path:
    """Where an annotator's labels of a sheet are kept.

    Raises:
        UsageError: the name is empty or could lead out of the folder.
    """
    if not annotator.strip() or any(not (c.isalnum() or c in "-_.@ ") for c in annotator):
        raise UsageError(f"annotator {plain(annotator, width=40)!r}: give a name of letters")
    return sheet.with_name(f"{sheet.name}.{annotator.strip()}.jsonl")


def saved_labels(path: Path, rubric: Rubric) -> dict[str, dict[str, Any]]:
    """What an annotator said before, by item and criterion; empty when there is nothing."""
    if not path.is_file() or not path.stat().st_size:
        return {}
    said: dict[str, dict[str, Any]] = {}
    for label in load_labels(path, scales=rubric.scales).labels:
        said.setdefault(label.item_id, {})[label.criterion] = label.value
    return said


def save_labels(path: Path, annotator: str, said: Mapping[str, Mapping[str, Any]]) -> None:
    """Write an annotator's labels, replacing the file in one step; items without any are left out.

    Raises:
        OSError: the disk does not take it; the file is as before.
    """
    from ragwb.files import write_whole

    lines = [
        json.dumps({"item_id": i, "annotator": annotator, "labels": dict(v)}, ensure_ascii=False)
        for i, v in said.items()
        if v
    ]
    write_whole(path, "".join(f"{line}\n" for line in lines).encode())


def item_html(row: Row, rubric: Rubric) -> str:
    """The material of one item, escaped, each part under its name."""
    parts = [(name, row.get(name)) for name in MATERIAL[rubric.kind]]
    return "".join(
        tag("h4", escape(name)) + tag("div", escape(text), class_="rw-text")
        for name, text in parts
        if text
    )
