"""One case of a run as a part that opens on a click: what came back, or why it failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ragwb.html import escape, plain, tag
from ragwb.runs.notes import Note
from ragwb.triage.verdict import TriagedCase
from ragwb.view.case_parts import answer_part, cut, evidence_part, facts_part, stage_part
from ragwb.view.case_view import CaseView
from ragwb.view.findings import notes_part, remedies_part, repeats_part, verdict_badge, verdict_part
from ragwb.view.journey import journey_spec
from ragwb.view.panel import Panel, fold
from ragwb.view.theme import chart_panel

if TYPE_CHECKING:
    from ragwb.triage.whatif import CaseRemedy

_QUESTION_LIMIT = 100


def case_card(view: CaseView, *, is_open: bool) -> Panel:
    """A case with its evidence at every stage and the list that came back.

    Args:
        view: one case in one repeat.
        is_open: whether it is open before anybody clicks.
    """
    figures = " · ".join(f"{name} {value}" for name, value in view.figures.items())
    aside = tag("span", escape(figures), class_="rw-figures")
    evidence = evidence_part(view, with_others=False).html
    content = facts_part(view).html
    content += _headed("Where the evidence stood (rank and score at each stage)", evidence)
    content += _headed(f"Returned, the first {view.k} count", stage_part(view, "results").html)
    return Panel(f"{_line(view)}  {figures}", _card(view, "", aside, content, is_open=is_open))


def triage_card(
    view: CaseView,
    triaged: TriagedCase,
    *,
    remedies: Sequence[CaseRemedy] | None = None,
    notes: Sequence[Note] = (),
    is_open: bool,
) -> Panel:
    """A failed case: the verdict with its proof, the rank journey, the stages, what would help.

    Args:
        view: the case in the repeat that stands for it.
        triaged: the case over its repeats.
        remedies: the changes that bring it back, the least first; None when none were looked for.
        notes: what people wrote of it.
        is_open: whether it is open before anybody clicks.
    """
    verdict = triaged.verdict
    lead = verdict_badge(verdict)
    risk = "high risk" if view.trace.case.case.risk == "high" else ""
    aside = tag("code", escape(verdict.reason), class_="rw-figures")
    aside += " " + tag("span", risk, class_="rw-bad") if risk else ""
    parts = {
        "": _under(verdict_part(view), repeats_part(triaged), chart_panel(journey_spec(view))),
        "What people said": notes_part(notes),
        "The least change that brings it back": _remedies(remedies),
        f"Evidence, and the others in the first {view.k} (rank and score at each stage)": (
            evidence_part(view)
        ),
        "Answer": answer_part(view),
        "The case": facts_part(view),
    }
    content = "".join(_headed(name, part.html) for name, part in parts.items())
    text = "\n".join(f"  {line}" for line in parts[""].text.splitlines())
    return Panel(
        f"{_line(view)}  {verdict.stage} {verdict.reason}\n{text}",
        _card(view, lead, aside, content, is_open=is_open),
    )


def _remedies(remedies: Sequence[CaseRemedy] | None) -> Panel:
    return Panel("", "") if remedies is None else remedies_part(remedies)


def _under(*parts: Panel) -> Panel:
    """Parts under one another, without headings."""
    text = "\n".join(part.text for part in parts if part.text)
    return Panel(text, "".join(part.html for part in parts))


def _headed(heading: str, html: str) -> str:
    """A part with its heading; nothing when the part shows nothing."""
    return (tag("h4", escape(heading)) if heading else "") + html if html else ""


def _line(view: CaseView) -> str:
    return f"{plain(view.case_id)}  {plain(view.trace.case.case.question, width=60)}"


def _card(view: CaseView, lead: str, aside: str, content: str, *, is_open: bool) -> str:
    question = cut(view.trace.case.case.question, _QUESTION_LIMIT)
    summary = (
        lead
        + tag("code", escape(view.case_id))
        + tag("span", escape(question), class_="rw-question")
        + aside
    )
    return fold(summary, content, is_open=is_open, class_="rw-fold rw-case")
