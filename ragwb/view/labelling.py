"""A sheet of blind review in a notebook: one item at a time, a button a value, saved as it goes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragwb.errors import DataError, RagwbError, UsageError
from ragwb.html import escape, plain, tag
from ragwb.judge.labels import load_labels
from ragwb.judge.rows import read_rows
from ragwb.judge.rubric import MATERIAL, Criterion, Rubric, default_rubric, load_rubric
from ragwb.view.keys import LABEL_KEYS, script_output
from ragwb.view.panel import fold

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

        self._rows = sheet_rows(sheet)
        self._annotator, self._rubric = annotator.strip(), rubric
        self._path = labels_path(sheet, annotator)
        self._said = saved_labels(self._path, rubric)
        self._head, self._material, self._judged, self._line = (widgets.HTML() for _ in range(4))
        self._values = {one.name: _choice(one) for one in rubric.criteria}
        self._known = widgets.HTML()
        for buttons in self._values.values():
            buttons.observe(self._tell_chosen, names="index")
        self.widget = self._laid_out()
        open_items = (at for at in range(len(self._rows)) if not self._is_done(at))
        self._show(next(open_items, 0))

    def _id(self, at: int) -> str:
        return str(self._rows[at]["item_id"])

    def _is_done(self, at: int) -> bool:
        return len(self._said.get(self._id(at), {})) == len(self._values)

    def _show(self, at: int) -> None:
        self._at = at
        row, said = self._rows[at], self._said.get(self._id(at), {})
        shown = MATERIAL[self._rubric.kind]
        judged = shown[shown.index("context") + 1 :]
        self._material.value = item_html(row, [name for name in shown if name not in judged])
        self._judged.value = item_html(row, judged)
        for name, buttons in self._values.items():
            buttons.value = said.get(name)
            if name not in said:
                buttons.index = None  # "not said" is a button too, and has no value either
        self._head.value = self._head_html()

        self._tell_chosen()

    def _tell_chosen(self, _: Any = None) -> None:
        """Say to the browser what the kernel knows to be chosen; a step waits for it."""
        at = (-1 if one.index is None else one.index for one in self._values.values())
        self._known.value = tag("i", "", data_chosen=",".join(map(str, at)))

    def _head_html(self) -> str:
        n, n_done = len(self._rows), sum(map(self._is_done, range(len(self._rows))))
        words = f"item {self._at + 1} of {n}; {n_done} labelled by {self._annotator}"
        bar = tag("progress", "", value=str(n_done), max=str(n))
        return _styles() + tag("h3", bar + escape(words)) + self._task_html()

    def _task_html(self) -> str:
        """What the annotator is asked to do, and the keys."""
        keys = "Keys in the form: 1, 2, 3 … choose, 0 takes back, Enter saves."
        return fold(
            escape(f"What to do ({self._rubric.label})"),
            tag("div", escape(self._rubric.instructions), class_="rw-text"),
        ) + tag("p", escape(keys), class_="rw-figures")

    def _go(self, step: int) -> None:
        given = {name: buttons.value for name, buttons in self._values.items()}
        said = {name: value for name, value in given.items() if value is not None}
        try:
            is_new = said != self._said.get(self._id(self._at), {})
            if is_new:
                self._save(self._id(self._at), said)
        except (RagwbError, OSError) as error:
            self._warn(f"not saved: {error}")
            return
        self._show(min(max(self._at + step, 0), len(self._rows) - 1))
        self._line.value = tag("p", escape(self._told(is_new)), class_="rw-said")

    def _save(self, item_id: str, said: dict[str, Any]) -> None:
        """Keep what is said of one item, beside what another window has saved since."""
        held = {**saved_labels(self._path, self._rubric), item_id: said}
        save_labels(self._path, self._annotator, held)
        self._said = held

    def _told(self, is_new: bool) -> str:
        if all(map(self._is_done, range(len(self._rows)))):
            return f"All {len(self._rows)} items are labelled; the labels are in {self._path}"
        return f"saved in {self._path}" if is_new else ""

    def _warn(self, words: str) -> None:
        self._line.value = tag("p", escape(plain(words, width=400)), class_="rw-warning")

    def _laid_out(self) -> Any:
        import ipywidgets as widgets

        material, judged = widgets.VBox([self._material]), widgets.VBox([self._judged])
        asked = [
            part
            for one in self._rubric.criteria
            for part in (widgets.HTML(_asked_html(one)), self._values[one.name])
        ]
        decision = widgets.VBox([judged, *asked, self._buttons(), self._line])
        item = widgets.HBox([material, decision])
        whole = widgets.VBox([self._head, item, self._known, script_output(LABEL_KEYS)])
        for part, class_ in (
            *((self._head, "rw-label-head"), (item, "rw-label-item"), (whole, "rw-labelling")),
            *((self._line, "rw-line"), (self._known, "rw-known")),
            *((material, "rw-material"), (judged, "rw-judged"), (decision, "rw-decision")),
        ):
            part.add_class(class_)
        return whole

    def _buttons(self) -> Any:
        import ipywidgets as widgets

        back, onward = (widgets.Button(description=name) for name in ("back", "save, next"))
        onward.button_style = "primary"
        onward.add_class("rw-onward")
        for button, step in ((back, -1), (onward, 1)):
            button.add_class("rw-step")
            button.on_click(lambda _, by=step: self._go(by))
        steps = widgets.HBox([back, onward])
        steps.add_class("rw-steps")
        return steps


def _choice(criterion: Criterion) -> Any:
    """A button a value, with what the value means where the rubric says it."""
    import ipywidgets as widgets

    values = criterion.scale.values
    words = [f"{v}  {criterion.meanings.get(str(v), '')}" for v in values]
    named = [(plain(word), value) for word, value in zip(words, values, strict=True)]
    buttons = widgets.ToggleButtons(options=[*named, (OPEN, None)], value=None)
    buttons.add_class("rw-criterion")
    if criterion.meanings:
        buttons.add_class("rw-rows")
    return buttons


def _asked_html(criterion: Criterion) -> str:
    name = tag("small", escape(f" ({criterion.name.replace('_', ' ')})"))
    return tag("p", escape(criterion.question) + name, class_="rw-asked")


def _styles() -> str:
    here = Path(__file__).parent
    sheets = [(here / name).read_text(encoding="utf-8") for name in ("style.css", "labelling.css")]
    return tag("style", "\n".join(sheets))


def sheet_rows(sheet: Path) -> list[Row]:
    """The items of a sheet.

    Raises:
        UsageError: there is none.
        DataError: the file cannot be read, or an item has no id or that of another.
    """
    rows: dict[str, Row] = {}
    for where, row in read_rows(sheet):
        item_id = str(row.get("item_id") or "")
        if not item_id:
            raise DataError(f"{where}: item_id: empty; give the sheet of ragwb judge sample")
        if item_id in rows:
            raise DataError(f"{where}: item {plain(item_id, width=60)!r} comes twice")
        rows[item_id] = row
    if not rows:
        raise UsageError(f"{sheet}: no item in it")
    return list(rows.values())


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


def item_html(row: Row, names: Sequence[str]) -> str:
    """Parts of the material of one item, escaped, each under its name."""
    parts = [(name, _as_written(str(row.get(name) or ""))) for name in names]
    return "".join(
        tag("h4", escape(name)) + tag("div", escape(text), class_="rw-text")
        for name, text in parts
        if text
    )


def _as_written(text: str) -> str:
    """A cell without the apostrophe that keeps a spreadsheet from running it."""
    return text[1:] if text.startswith(("'=", "'+", "'-", "'@")) else text
