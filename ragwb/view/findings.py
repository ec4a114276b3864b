"""What is found of a case: where and why it broke, what would bring it back, what people say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ragwb.html import escape, plain, tag
from ragwb.measure.listed import first_of
from ragwb.runs.notes import Note
from ragwb.triage.beyond import RANKED_BELOW_K, SINCE_WORDS, since_of
from ragwb.triage.reasons import REASONS
from ragwb.triage.verdict import CaseVerdict, GroupVerdict, TriagedCase
from ragwb.view.case_view import CaseView
from ragwb.view.panel import Panel, fold, table_panel

if TYPE_CHECKING:
    from ragwb.triage.whatif import CaseRemedy

_MOST_LINES = 6
_NO_REMEDY = "No single change of those that the saved candidates can tell brings it back."


def stage_badge(stage: str, words: str | None = None) -> str:
    """A stage's name, or other words, as HTML with the stage's colour beside them."""
    return tag("span", escape(words or stage), class_=f"rw-badge rw-stage-{escape(stage)}")


def verdict_badge(verdict: CaseVerdict) -> str:
    """Where a case failed, in the colour of its stage; beyond K no stage is blamed yet."""
    return stage_badge(verdict.stage, "beyond K" if verdict.reason == RANKED_BELOW_K else None)


def verdict_part(view: CaseView) -> Panel:
    """The verdict in a sentence, its proof, and what to look at first.

    With several lost groups or leaks a line for each follows.
    """
    verdict = view.verdict
    if verdict is None:
        words = f"Nothing is lost at K = {view.k}."
        return Panel(words, tag("p", words, class_="rw-finding rw-stage-none"))
    reason = REASONS.get(verdict.reason)
    sentence = _sentence(verdict, k=view.k)
    advice = f"First: {reason.advice}." if reason else ""
    lines = list(_lines(view, verdict))
    html = tag("b", escape(sentence)) + " " + tag("code", escape(verdict.reason))
    html += tag("p", escape(verdict.proof)) + (tag("p", escape(advice)) if advice else "")
    html += _list(lines) if len(lines) > 1 else ""
    text = [f"{sentence} ({verdict.reason})", verdict.proof, advice]
    text += (*first_of(lines)[0], first_of(lines)[1]) if len(lines) > 1 else ()
    class_ = f"rw-finding rw-stage-{escape(verdict.stage)}"
    return Panel("\n".join(plain(line) for line in text if line), tag("div", html, class_=class_))


def _list(lines: Sequence[str]) -> str:
    """The first lines, and the others behind a click; of very many the last are counted."""
    shown, rest = lines[:_MOST_LINES], lines[_MOST_LINES:]
    html = tag("ul", "".join(tag("li", escape(line)) for line in shown))
    if rest:
        first, more = first_of(rest)
        listed = [*first, *([more] if more else [])]
        html += fold(
            f"{len(rest):,} more", tag("ul", "".join(tag("li", escape(line)) for line in listed))
        )
    return html


def _sentence(verdict: CaseVerdict, *, k: int) -> str:
    """What happened; beyond K the stage that put it there, which need not be the one of the cut."""
    if (since := since_of(verdict, k=k)) is not None:
        return f"Ranked beyond K {SINCE_WORDS[since]}"
    reason = REASONS.get(verdict.reason)
    return f"{_where(verdict)}: {reason.meaning if reason else verdict.reason}"


def _where(verdict: CaseVerdict) -> str:
    special = {
        "security": "Security",
        "unknown": "Not observed",
        "generation": "Answered wrongly",
    }
    return special.get(verdict.stage) or f"Lost in {verdict.stage}"


def _lines(view: CaseView, verdict: CaseVerdict) -> Iterator[str]:
    for leak in verdict.leaks:
        yield f"{leak.where} {leak.position}: {leak.reason}: {leak.proof}"
    for group in verdict.groups:
        missing = f" (undecided without: {group.missing_field})" if group.missing_field else ""
        name = f"required {group.index + 1}{_hop(view, group)}"
        yield f"{name}: {group.stage}, {group.reason}: {group.proof}{missing}"
    for finding in verdict.findings:
        yield f"answer, {finding.where}: {finding.reason}: {finding.proof}"


def _hop(view: CaseView, lost: GroupVerdict) -> str:
    hops = {group.index: group.hop for group in view.trace.case.groups}
    hop = hops.get(lost.index)
    return f" ({hop})" if hop else ""


def repeats_part(triaged: TriagedCase) -> Panel:
    """Over several repeats how many failed, and in which ways; nothing with one repeat."""
    if triaged.n_repeats < 2:
        return Panel("", "")
    ways = ", ".join(f"{n} × {stage} {reason}" for (stage, reason), n in triaged.counts.items())
    words = f"{triaged.n_failed} of {triaged.n_repeats} repeats failed: {ways}"
    mark = tag("b", "unstable", class_="rw-bad") + " " if triaged.unstable else ""
    text = f"unstable: {words}" if triaged.unstable else words
    return Panel(plain(text), tag("p", mark + escape(words)))


def remedies_part(remedies: Sequence[CaseRemedy]) -> Panel:
    """The changes that bring the case's evidence back, the least first, each with its cost."""
    rows = [
        {
            "change": remedy.change.label,
            "rank before": remedy.rank_before,
            "rank after": remedy.rank_after,
            "positions": remedy.positions,
            "tokens added": _signed(remedy.tokens_added),
            "note": remedy.note if remedy.change.is_remedy else f"no remedy: {remedy.note}",
        }
        for remedy in remedies
    ]
    columns = ("change", "rank before", "rank after", "positions", "tokens added", "note")
    return table_panel(rows, columns, numeric=columns[1:5], empty=_NO_REMEDY)


def _signed(tokens: int | None) -> str | None:
    return None if tokens is None else f"{tokens:+,}" if tokens else "0"


def notes_part(notes: Sequence[Note]) -> Panel:
    """What people wrote of the case, the oldest first; nothing when nobody did."""
    if not notes:
        return Panel("", "")
    heads = [f"{note.author}, {note.written_at}: {_opinion(note)}" for note in notes]
    text = "\n".join(plain(f"{head} {note.text}") for head, note in zip(heads, notes, strict=True))
    html = "".join(
        tag("li", tag("b", escape(head)) + tag("div", escape(note.text), class_="rw-text"))
        for head, note in zip(heads, notes, strict=True)
    )
    return Panel(text, tag("ul", html, class_="rw-notes"))


def _opinion(note: Note) -> str:
    if note.agreed:
        return f"agrees with {note.stage}, {note.reason}"
    right = ", ".join(name for name in (note.corrected_stage, note.corrected_reason) if name)
    if right:
        return f"{right} instead of {note.stage}, {note.reason}"
    disagrees = note.agreed is False
    return f"disagrees with {note.stage}, {note.reason}" if disagrees else "says"
