"""The triage browser: filter the failed cases of a run, walk them one by one, write a review note.

It is made of ipywidgets alone and needs no network; its only script leaves the keys to the
controls. Whatever goes wrong in one of them is said in a line.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragwb.errors import RagwbError
from ragwb.html import escape, plain, tag
from ragwb.view.browser_case import AnswerPane, CasePanel, StagesPane
from ragwb.view.browser_filters import Filters, Row, rows_of
from ragwb.view.browser_notes import NotesPane
from ragwb.view.browser_overview import Overview, bar_styles
from ragwb.view.browser_whatif import WhatIfPane

if TYPE_CHECKING:
    from ragwb.runs.store import Run
    from ragwb.settings import Settings
    from ragwb.triage.result import Triage

# JupyterLab takes the arrow keys for its cells from whatever has the focus, unless that says no.
_KEEP_KEYS = """if (!window.ragwbKeepsKeys) {
  window.ragwbKeepsKeys = true;
  document.addEventListener("focusin", (event) => {
    if (event.target.closest(".rw-browser")) {
      event.target.setAttribute("data-lm-suppress-shortcuts", "true");
    }
  });
}"""
_log = logging.getLogger(__name__)


def browse(run: Run, k: int | None = None, *, settings: Settings | None = None) -> Browser:
    """The triage browser of a run, to be shown as the last value of a notebook cell.

    Args:
        run: a saved run.
        k: positions that count, 1 to the run's top K, which is the default.
        settings: who writes notes; default the settings in force.

    Raises:
        MetricError: k is out of range.
        RunError: a table of the run cannot be read.
    """
    from ragwb.runs.notes import default_author
    from ragwb.runs.writer import utc_now
    from ragwb.triage.attribute import triage

    return Browser(triage(run, k=k), author=default_author(settings), now=utc_now)


class Browser:
    """A run's failed cases in JupyterLab.

    Attributes:
        triage: what is shown.
        widget: the whole as one ipywidget.
    """

    def __init__(self, triage: Triage, *, author: str, now: Callable[[], datetime]) -> None:
        import ipywidgets as widgets

        self.triage = triage
        self._cases = {triaged.case_id: triaged for triaged in triage.cases}
        self._rows = rows_of(triage)
        self._shown: str | None = None
        self._quiet = False
        self._line, self._found = widgets.HTML(), widgets.HTML()
        self._line.add_class("rw-line")
        self._filters = Filters(self._rows, self._guarded(self._refilter))
        self._overview = Overview(
            triage,
            on_pick=self._guarded(self._filters.toggle),
            on_turn=self._guarded(lambda _: self._overview.draw()),
        )
        self._list = widgets.Select(rows=30)
        self._list.observe(self._guarded(self._pick), names="value")
        self._notes = NotesPane(triage.run, author, now, self._guarded(self._save))
        stages = StagesPane(self._guarded(lambda: stages.draw()))
        what_if = WhatIfPane(triage, self._guarded(lambda: what_if.draw()))
        self._panel = CasePanel(triage, [stages, what_if, AnswerPane(), self._notes])
        self._panel.tabs.observe(self._guarded(self._panel.show_tab), names="selected_index")
        self.widget = self._laid_out()
        self._guarded(self._open)()

    def __repr__(self) -> str:
        return f"Browser: {self._summary()}"

    def _repr_mimebundle_(self, **given: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = self.widget._repr_mimebundle_(**given)
        return {**bundle, "text/plain": repr(self)}

    def _open(self) -> None:
        self._refilter()
        self._overview.draw()
        self._notes.load()
        if self._notes.notes:
            self._refilter()

    def _refilter(self, _: Any = None) -> None:
        """List the cases that are looked for; the one that is shown stays, else its place does."""
        choice, noted = self._filters.choice, self._notes.notes
        rows = [row for row in self._rows if row.fits(choice, noted)]
        place = self._list.index or 0
        places = {row.case_id: at for at, row in enumerate(rows)}
        self._quiet = True
        try:
            self._list.options = [(_label(row, row.case_id in noted), row.case_id) for row in rows]
            last = len(rows) - 1
            self._list.index = places.get(self._shown or "", min(place, last)) if rows else None
        finally:
            self._quiet = False
        self._overview.mark(choice.stage, choice.reason)
        self._show()

    def _pick(self, _: Any) -> None:
        if not self._quiet:
            self._show()

    def _show(self) -> None:
        """Show the case that is picked in the list."""
        case_id, n = self._list.value, len(self._list.options)
        at = 0 if case_id is None else self._list.index + 1
        self._found.value = tag("p", f"{at} of {n}" + _of_all(n, len(self._rows)))
        if case_id is None or case_id != self._shown:
            self._show_case(case_id)
        n_notes = len(self._notes.notes.get(case_id or "", ()))
        self._panel.retitle(self._notes, f"{self._notes.title} ({n_notes})")

    def _show_case(self, case_id: str | None) -> None:
        """Show a case whole, else none: never one case's name over another's figures."""
        layout = self._panel.widget.layout
        self._shown = None
        try:
            if case_id is not None:
                self._panel.show(self._cases[case_id])
                self._shown = case_id
        finally:
            layout.display = "none" if self._shown is None else None

    def step(self, by: int) -> None:
        """Look at the case so many places further in the list, as far as there is one."""
        if self._list.index is not None:
            last = len(self._list.options) - 1
            self._list.index = min(max(self._list.index + by, 0), last)

    def _save(self, _: Any) -> None:
        from ragwb.runs.notes import NOTES

        self._notes.save()
        self._refilter()
        place = self.triage.run.path / NOTES
        self._line.value = tag("p", escape(f"The note is saved in {place}"), class_="rw-said")

    def _guarded(self, act: Callable[..., None]) -> Callable[..., None]:
        """An action of a control: what goes wrong in it is said in the line at the top."""

        def call(*given: Any) -> None:
            self._line.value = ""
            try:
                act(*given)
            except RagwbError as error:
                self._warn(str(error))
            except Exception as error:  # a control must not fail in silence, whatever it is
                _log.debug("a control of the browser failed", exc_info=True)
                self._warn(f"this did not work: {type(error).__name__}: {error}")

        return call

    def _warn(self, words: str) -> None:
        self._line.value = tag("p", escape(plain(words, width=400)), class_="rw-warning")

    def _summary(self) -> str:
        triage = self.triage
        parts = [f"{len(self._rows)} of {triage.n_cases} cases fail at K = {triage.k}"]
        if triage.n_errors:
            parts.append(f"{triage.n_errors} could not be asked")
        if triage.unjudged:
            parts.append(f"{len(triage.unjudged)} not judged")
        return f"run {triage.run.run_id}: {', '.join(parts)}"

    def _laid_out(self) -> Any:
        import ipywidgets as widgets

        back, forth = (widgets.Button(description=words) for words in ("◀ previous", "next ▶"))
        back.on_click(self._guarded(lambda _: self.step(-1)))
        forth.on_click(self._guarded(lambda _: self.step(1)))
        steps = widgets.HBox([back, self._found, forth])
        steps.add_class("rw-steps")
        listed = widgets.VBox([steps, self._list])
        listed.add_class("rw-list")
        title = widgets.HTML(_styles() + tag("h3", escape(self._summary())))
        walk = widgets.HBox([listed, self._panel.widget])
        walk.add_class("rw-walk")
        parts = [title, self._overview.widget, self._filters.widget, self._line, walk, _keys()]
        whole = widgets.VBox(parts)
        whole.add_class("rw-browser")
        return whole


def _keys() -> Any:
    """What leaves the arrow keys to the list; it shows nothing."""
    import ipywidgets as widgets

    data = {"application/javascript": _KEEP_KEYS}
    return widgets.Output(outputs=({"output_type": "display_data", "data": data, "metadata": {}},))


def _label(row: Row, is_noted: bool) -> str:
    """A case in the list: its marks, stage and id, and the start of its question."""
    marks = ("✎" if is_noted else "") + ("!" if row.risk == "high" else "")
    return f"{marks + ('~' if row.unstable else ''):3}{row.label}"


def _of_all(n: int, n_all: int) -> str:
    return "" if n == n_all else f" (of {n_all})"


def _styles() -> str:
    from ragwb.view.theme import stage_styles

    here = Path(__file__).parent
    sheets = [(here / name).read_text(encoding="utf-8") for name in ("style.css", "browser.css")]
    return tag("style", "\n".join([*sheets, stage_styles(), bar_styles()]))
