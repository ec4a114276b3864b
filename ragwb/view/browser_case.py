"""One case of the browser: what was asked, where it broke, its journey, and what can be done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from ragwb.html import escape, tag

if TYPE_CHECKING:
    from ragwb.triage.result import Triage
    from ragwb.triage.verdict import TriagedCase
    from ragwb.view.case_view import CaseView

# Pictures of cases that were looked at; drawing one takes about as long as all else of a case.
_KEPT_PICTURES = 64
_EVIDENCE = ""
_STEP = 75  # pixels from stage to stage: the picture stands beside the list


class Pane(Protocol):
    """What stands behind a tab of a case."""

    title: str
    widget: Any

    def show(self, triaged: TriagedCase, view: CaseView) -> None:
        """Show it for a case; called when its tab is looked at."""


class CasePanel:
    """The case that is looked at; what stands behind a tab is made when the tab is opened.

    Attributes:
        widget: head, journey and tabs.
        tabs: the tabs, in the order of the panes.
    """

    def __init__(self, triage: Triage, panes: Sequence[Pane]) -> None:
        import ipywidgets as widgets

        self._triage = triage
        self._panes = panes
        self._head, self._journey = widgets.HTML(), widgets.HTML()
        self._head.add_class("rw-head")
        self._journey.add_class("rw-journey")
        self.tabs = widgets.Tab(
            [pane.widget for pane in panes], titles=[pane.title for pane in panes]
        )
        self.tabs.add_class("rw-tabs")
        self.widget = widgets.VBox([self._head, self._journey, self.tabs])
        self.widget.add_class("rw-case-panel")
        self._shown: tuple[TriagedCase, CaseView] | None = None
        self._fresh: set[int] = set()
        self._draw = lru_cache(_KEPT_PICTURES)(self._drawn)

    def show(self, triaged: TriagedCase) -> None:
        """Show a case."""
        self._shown = triaged, self._view(triaged)
        self._fresh.clear()
        self._head.value = _head(*self._shown)
        self._journey.value = self._draw(triaged.case_id)
        self.show_tab()

    def retitle(self, pane: Pane, title: str) -> None:
        """Give a pane's tab another title."""
        at = self._panes.index(pane)
        titles = self.tabs.titles
        self.tabs.titles = (*titles[:at], title, *titles[at + 1 :])

    def show_tab(self, _: object = None) -> None:
        """Make what stands behind the open tab, once a case."""
        at = self.tabs.selected_index
        if self._shown is not None and at is not None and at not in self._fresh:
            self._panes[at].show(*self._shown)
            self._fresh.add(at)

    def _view(self, triaged: TriagedCase) -> CaseView:
        from ragwb.view.case_view import view_case

        traces, verdict = self._triage.traces, triaged.verdict
        trace = traces[verdict.case_id, verdict.repeat]
        return view_case(traces, trace, k=self._triage.k, verdict=verdict)

    def _drawn(self, case_id: str) -> str:
        from ragwb.view.journey import journey_spec
        from ragwb.view.theme import chart_panel

        assert self._shown is not None
        assert self._shown[1].case_id == case_id
        return chart_panel(journey_spec(self._shown[1], step=_STEP)).html


def _head(triaged: TriagedCase, view: CaseView) -> str:
    """The facts and the verdict, and how often it failed so."""
    from ragwb.view.case_parts import facts_part
    from ragwb.view.findings import repeats_part, verdict_part

    name = tag("h4", escape(view.case_id))
    return name + facts_part(view).html + verdict_part(view).html + repeats_part(triaged).html


class StagesPane:
    """What every stage held: the evidence over all of them, or one stage's whole list."""

    title = "Stages"

    def __init__(self, on_pick: Callable[[], None]) -> None:
        import ipywidgets as widgets

        self._view: CaseView | None = None
        self._stage = widgets.ToggleButtons(options=[("evidence, all stages", _EVIDENCE)])
        self._stage.observe(lambda _: on_pick(), names="value")
        self._table = widgets.HTML()
        self.widget = widgets.VBox([self._stage, self._table])
        self.widget.add_class("rw-stages")

    def show(self, _: TriagedCase, view: CaseView) -> None:
        """Show a case's stages; the list that was looked at stays open where the case has it."""
        self._view = None
        before = self._stage.value
        options = [("evidence, all stages", _EVIDENCE), *((name, name) for name in view.stages)]
        if tuple(options) != tuple(self._stage.options):
            self._stage.options = options
            self._stage.value = before if before in view.stages else _EVIDENCE
        self._view = view
        self.draw()

    def draw(self) -> None:
        """Write the table that is picked."""
        from ragwb.view.case_parts import evidence_part, stage_part

        if self._view is None:
            return
        stage = self._stage.value
        part = stage_part(self._view, stage) if stage else evidence_part(self._view)
        self._table.value = part.html


class AnswerPane:
    """What the service answered, with its citations."""

    title = "Answer"

    def __init__(self) -> None:
        import ipywidgets as widgets

        self.widget = widgets.HTML()

    def show(self, _: TriagedCase, view: CaseView) -> None:
        """Show a case's answer, or that the run has none."""
        from ragwb.view.case_parts import answer_part

        none = tag("p", "This run asked for evidence only: there is no answer.", class_="rw-none")
        self.widget.value = answer_part(view).html or none
