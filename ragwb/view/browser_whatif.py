"""What if: one setting is changed, and at once it shows what that does to the case and the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from ragwb.html import escape, plain, tag
from ragwb.view.browser_controls import Controls
from ragwb.view.panel import fold

if TYPE_CHECKING:
    from ragwb.triage.result import Triage
    from ragwb.triage.verdict import GroupVerdict, TriagedCase
    from ragwb.triage.whatif import Change, Predicted, RunRemedy
    from ragwb.view.case_view import CaseView

_MOST_NAMED = 12  # cases in a line; the rest opens on a click
_KEPT_EFFECTS = 128
_HINT = "Change a setting: its effect on this case and on the whole run is shown here."
_NO_REMEDY = "A filter is there for a reason: this shows what it keeps out, and is no remedy."


class WhatIfPane:
    """Controls of the settings, the effect of the one that is changed, and the least remedies.

    Attributes:
        widget: controls, effect and remedies.
    """

    title = "What if"

    def __init__(self, triage: Triage, on_change: Callable[..., None]) -> None:
        import ipywidgets as widgets

        self._triage = triage
        self._on_change = on_change
        self._view: CaseView | None = None
        self._controls: Controls | None = None
        self._effect, self._remedies = widgets.HTML(), widgets.HTML()
        self._effect.add_class("rw-effect")
        self.widget = widgets.VBox([self._effect, self._remedies])
        self.widget.add_class("rw-what-if")
        self._effect_on_run = lru_cache(_KEPT_EFFECTS)(self._asked_effect)

    def show(self, triaged: TriagedCase, view: CaseView) -> None:
        """Show the change that is asked for on a case, and what would bring the case back."""
        from ragwb.triage.whatif import case_remedies
        from ragwb.view.findings import remedies_part

        if self._controls is None:
            # Not before it is looked at: the settings that can be told follow from all traces.
            self._controls = Controls(self._triage, self._on_change)
            self.widget.children = (self._controls.widget, *self.widget.children)
        self._view = view
        self.draw()
        heading = tag("h4", "What brings this case back, the least change first")
        found = case_remedies(self._triage, triaged.case_id)
        self._remedies.value = heading + remedies_part(found).html

    def draw(self) -> None:
        """Write the effect of the change that is asked for."""
        if self._view is None or self._controls is None:
            return
        change = self._controls.asked()
        if change is None:
            self._effect.value = tag("p", _HINT, class_="rw-none")
            return
        parts = [tag("b", escape(change.label))]
        parts += [] if change.is_remedy else [tag("p", _NO_REMEDY, class_="rw-bad")]
        parts.append(self._on_case(self._view, change))
        # The first change of a large run takes seconds for the whole run: the case need not wait.
        self._effect.value = "".join([*parts, _line("The whole run", "is being worked out …")])
        self._effect.value = "".join([*parts, _on_run(self._effect_on_run(change))])

    def _asked_effect(self, change: Change) -> RunRemedy:
        from ragwb.triage.whatif import effect

        return effect(self._triage, change)

    def _on_case(self, view: CaseView, change: Change) -> str:
        """What the change does to the case that is looked at."""
        from ragwb.triage.whatif import fails, predict, why_not

        traces, k = self._triage.traces, self._triage.k
        found = predict(traces, view.trace, change, k=k)
        if found is None:
            why = why_not(traces, view.trace, change, k=k) or "the trace cannot tell"
            return _line("This case", f"not known: {why}", "rw-none")
        outcome = (
            ("✖ still fails", "rw-bad") if fails(view.trace, found) else ("✔ passes", "rw-good")
        )
        return _line("This case", *outcome, "; ".join(_ranks(view, found)))


def _line(name: str, words: str, class_: str | None = None, more: str = "") -> str:
    said = tag("span", escape(words), class_=class_)
    return tag("p", f"{tag('b', escape(name))} {said} {escape(more)}")


def _ranks(view: CaseView, found: Predicted) -> Iterator[str]:
    """Each lost group's rank before and after."""
    verdict = view.verdict
    chunks = {group.index: group.chunk_ids for group in view.trace.case.groups}
    for lost in verdict.groups if verdict else ():
        wanted = chunks.get(lost.index, ())
        places = [found.results.index(i) + 1 for i in wanted if i in found.results]
        after = f"not in the first {len(found.results)}"
        if places:
            after = f"rank {min(places)}{_in_context(found, wanted)}"
        yield f"required {lost.index + 1}: {_rank_before(lost)} → {after}"


def _rank_before(lost: GroupVerdict) -> str:
    """The rank at the last stage before the context that holds one of its chunks."""
    ranks = {stage: rank for stage, rank in lost.ranks.items() if stage != "context"}
    held = [(stage, rank) for stage, rank in ranks.items() if rank is not None]
    return f"rank {held[-1][1]} in {held[-1][0]}" if held else "in no list"


def _in_context(found: Predicted, chunk_ids: Sequence[str]) -> str:
    if found.context is None:
        return ""
    return "" if set(chunk_ids).intersection(found.context) else ", cut from the context"


def _on_run(effect: RunRemedy) -> str:
    """What the change does to all cases, those it fixes and breaks by name."""
    fixed, broken, unknown = (
        _named(words, case_ids, class_)
        for words, case_ids, class_ in (
            ("fixed", effect.fixed, "rw-good"),
            ("broken", effect.broken, "rw-bad"),
            ("not known", effect.unknown, None),
        )
    )
    tokens = effect.tokens_per_case
    cost = "tokens a case: not known" if tokens is None else f"tokens a case: {tokens:+,.0f}"
    measured = effect.latency_ms
    cost += " · p95 latency: "
    cost += "not measured" if measured is None else f"{measured:,.0f} ms, run {effect.latency_run}"
    return tag("p", tag("b", "The whole run")) + fixed + broken + unknown + _line("Cost", cost)


def _named(words: str, case_ids: Sequence[str], class_: str | None) -> str:
    """A count with its cases; many of them behind a click."""
    head = tag("span", f"{len(case_ids)} {words}", class_=class_ if case_ids else None)
    names = escape(", ".join(plain(case_id, width=60) for case_id in case_ids))
    if len(case_ids) > _MOST_NAMED:
        return fold(head, tag("p", names))
    return tag("p", f"{head}: {names}" if names else head)
