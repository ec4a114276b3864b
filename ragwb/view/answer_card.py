"""One answered case as a part that opens on a click: question, context, answer, what is wrong."""

from __future__ import annotations

from collections.abc import Sequence

from ragwb.html import escape, plain, tag
from ragwb.measure.answer_figures import AnswerOutcome
from ragwb.view.answer_parts import (
    answered_part,
    claims_part,
    context_part,
    done_words,
    repeats_table,
    short_why,
    why_part,
)
from ragwb.view.answer_text import answer_text
from ragwb.view.case_parts import cut, evidence_part, facts_part
from ragwb.view.case_view import CaseView
from ragwb.view.findings import stage_badge
from ragwb.view.panel import Panel, fold

_QUESTION_LIMIT = 100


def answer_card(
    view: CaseView,
    outcomes: Sequence[AnswerOutcome],
    outcome: AnswerOutcome,
    *,
    opinion: str = "",
    is_open: bool,
) -> Panel:
    """An answered case with all that decides it.

    Args:
        view: the case in the repeat that is shown.
        outcomes: its answers in every repeat, in order.
        outcome: the one of them that is shown.
        opinion: what the judge says of it; empty without a judge.
        is_open: whether it is open before anybody clicks.
    """
    why = short_why(outcome)
    parts = {
        "": why_part(outcome, opinion),
        f"Repeats (shown: {outcome.answered.repeat})": repeats_table(outcomes),
        "Answer": _under(answered_part(outcome), answer_text(outcome)),
        "Claims": claims_part(outcome),
        "Context": context_part(view, outcome),
        "Where the evidence stood (rank and score at each stage)": _evidence(view, outcome),
        "The case": facts_part(view),
    }
    content = "".join(
        (tag("h4", escape(name)) if name else "") + part.html
        for name, part in parts.items()
        if part.html
    )
    line = f"{plain(view.case_id)}  {plain(view.trace.case.case.question, width=60)}"
    said = [parts[""].text, parts["Answer"].text, parts["Claims"].text]
    body = "\n".join(f"  {row}" for part in said if part for row in part.splitlines())
    return Panel(
        f"{line}  {', '.join(why) or 'right'}\n{body}", _card(view, outcome, content, is_open)
    )


def _evidence(view: CaseView, outcome: AnswerOutcome) -> Panel:
    """Where evidence is missing from the context, how far it got; else nothing."""
    is_lost = any(not hop.in_context for hop in outcome.hops)
    return evidence_part(view, with_others=False) if is_lost else Panel("", "")


def _card(view: CaseView, outcome: AnswerOutcome, content: str, is_open: bool) -> str:
    why, case = short_why(outcome), view.trace.case.case
    lead = "".join(
        stage_badge("security" if outcome.failures and at == 0 else "generation", words)
        for at, words in enumerate(why)
    )
    risk = tag("span", "high risk", class_="rw-bad") if case.risk == "high" else ""
    done = tag("span", escape(f" {done_words(outcome)}"), class_="rw-figures") if not why else ""
    summary = (
        lead
        + tag("code", escape(view.case_id))
        + tag("span", escape(cut(case.question, _QUESTION_LIMIT)), class_="rw-question")
        + risk
        + done
    )
    return fold(summary, content, is_open=is_open, class_="rw-fold rw-case")


def _under(*parts: Panel) -> Panel:
    text = "\n".join(part.text for part in parts if part.text)
    return Panel(text, "".join(part.html for part in parts))
