"""What code finds in answers: broken hard rules, chains of evidence, evidence in conflict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ragwb.html import escape, plain, tag
from ragwb.measure.answer_figures import AnswerOutcome
from ragwb.measure.answered import AnsweredCase
from ragwb.measure.chains import Hop, whole_chain
from ragwb.measure.listed import count, first_of, listed, some
from ragwb.view.panel import Panel, frame_rows, stack, table_panel

if TYPE_CHECKING:
    from ragwb.report.answer_evaluation import AnswerEvaluation

RULE_COLUMNS = ("case_id", "rule", "where", "proof")
_MOST_CASES = 60
# Places at which one answer breaks one rule; one word or citation may be repeated without end.
_MOST_PLACES = 5
_STEP_WORDS = {
    "there": "in the knowledge",
    "retrieved": "retrieved",
    "in_context": "in the context",
    "cited": "cited",
}


def evidence(evaluation: AnswerEvaluation) -> Panel:
    """How far each hop got, and contexts in conflict."""
    return stack(
        {
            "Several pieces of evidence": chains(evaluation),
            "Evidence in conflict": conflicts(evaluation),
        }
    )


def rules(evaluation: AnswerEvaluation) -> Panel:
    """Every broken hard rule, the gravest first: rule, place and proof."""
    rows = rule_rows(evaluation)
    pack = f"{plain(evaluation.pack.name)} {plain(evaluation.pack.version)}"
    if not rows:
        n_answers = count(len(evaluation.answers.outcomes), "answer")
        words = f"None of {n_answers} breaks a hard rule ({pack})."
        return Panel(words, tag("p", escape(words), class_="rw-none"))
    n_cases = count(len({row["case_id"] for row in rows}), "case")
    words = f"{_n_broken(evaluation)} in {n_cases} (rules {pack})"
    left_out = {row["case_id"] for row in rows} - set(evaluation.rule_case_ids)
    if left_out:
        words += f"; of these {some(sorted(map(str, left_out)))} do not count in the verdict"
    table = table_panel(rows, _rule_columns(evaluation), empty="")
    html = tag("p", escape(words + ".")) + tag("div", table.html, class_="rw-rules")
    return Panel(f"{words}\n{table.text}", html)


def _rule_columns(evaluation: AnswerEvaluation) -> tuple[str, ...]:
    if evaluation.answers.repeats == 1:
        return RULE_COLUMNS
    return ("case_id", "repeat", *RULE_COLUMNS[1:])


def _n_broken(evaluation: AnswerEvaluation) -> str:
    n_broken = len(evaluation.answers.failures())
    return f"{n_broken:,} broken rules" if n_broken > 1 else "1 broken rule"


def rule_rows(evaluation: AnswerEvaluation) -> list[dict[str, object]]:
    """A row a place at which a rule is broken; beyond the first of one answer they are counted."""
    places: dict[tuple[str, int, str], list[dict[str, object]]] = {}
    for row in frame_rows(evaluation.answers.failures()):
        found = {
            "case_id": row["case_id"],
            "repeat": row["repeat"],
            "rule": _rule_name(row),
            "where": _where(row),
            "proof": row["proof"],
        }
        places.setdefault((row["case_id"], row["repeat"], _rule_name(row)), []).append(found)
    return [row for of_rule in places.values() for row in _first_places(of_rule)]


def _first_places(rows: Sequence[dict[str, object]]) -> Iterator[dict[str, object]]:
    shown, more = first_of(rows, _MOST_PLACES)
    yield from shown
    if more:
        yield {**rows[0], "where": None, "proof": more}


def _rule_name(row: dict[str, Any]) -> str:
    """The reason code, and the name of a pack's own rule."""
    reason: str = row["reason"]
    return reason if row["rule"] == reason else f"{reason}: {row['rule']}"


def _where(row: dict[str, Any]) -> str:
    """The part of the reply, and the code points of its text."""
    return row["where"] if row["start"] is None else f"{row['where']} {row['start']}–{row['end']}"


def chains(evaluation: AnswerEvaluation) -> Panel:
    """Cases that need several pieces of evidence: how many of their hops got how far.

    Broken chains first, with the hops that are missing; beyond the most that are shown counted.
    """
    answers = evaluation.answers
    frame = answers.frame
    kept = (frame["status"] == "scored") & (frame["expected"] == "answer")
    scored = set(frame.loc[kept, "case_id"])
    found = [
        (pair, outcome.hops)
        for pair, outcome in answers.outcomes.items()
        if len(outcome.hops) > 1 and pair[0] in scored
    ]
    if not found:
        words = "No scored case needs several pieces of evidence."
        return Panel(words, tag("p", words, class_="rw-none"))
    found.sort(key=lambda entry: whole_chain(entry[1], "cited") is True)
    rows = [
        {"case_id": case_id, "repeat": repeat, **_chain_row(hops)}
        for (case_id, repeat), hops in found[:_MOST_CASES]
    ]
    columns = tuple(name for name in rows[0] if name != "repeat" or answers.repeats > 1)
    table = table_panel(rows, columns, empty="")
    n_more = len(found) - len(rows)
    words = f"{n_more} more, of which most are whole, are not listed here." if n_more else ""
    note = tag("p", words, class_="rw-none") if words else ""
    return Panel(f"{table.text}\n{words}".rstrip(), table.html + note)


def _chain_row(hops: Sequence[Hop]) -> dict[str, object]:
    """At each step how many hops got there, and those that did not."""
    labels = [f"{hop.index + 1} {hop.hop}" if hop.hop else str(hop.index + 1) for hop in hops]
    row: dict[str, object] = {"hops": " · ".join(labels)}
    for step, words in _STEP_WORDS.items():
        whole = whole_chain(hops, step)
        lost = [label for label, hop in zip(labels, hops, strict=True) if not getattr(hop, step)]
        counts = f"{len(hops) - len(lost)}/{len(hops)}"
        row[words] = (
            None
            if whole is None
            else f"✔ {counts}"
            if whole
            else f"✖ {counts}, not {', '.join(lost)}"
        )
    return row


def conflicts(evaluation: AnswerEvaluation) -> Panel:
    """Contexts that contradict themselves, and of how many that is known."""
    answers = evaluation.answers
    scored = set(answers.frame.loc[answers.frame["status"] == "scored", "case_id"])
    held = {
        pair: outcome
        for pair, outcome in answers.outcomes.items()
        if pair[0] in scored and outcome.figures["evidence_conflict"] is not None
    }
    rows = [
        {
            "case_id": pair[0],
            "expected": outcome.answered.case.case.mode,
            "mode": outcome.answered.mode,
            "the context holds": _conflict(outcome),
        }
        for pair, outcome in held.items()
        if outcome.figures["evidence_conflict"]
    ]
    words = f"{len(rows)} of {count(len(held), 'context')} hold evidence in conflict"
    unknown = sum(pair[0] in scored for pair in answers.outcomes) - len(held)
    words += f"; of {unknown} it is not known." if unknown else "."
    if not rows:
        return Panel(words, tag("p", escape(words), class_="rw-none"))
    table = table_panel(rows, tuple(rows[0]), empty="")
    html = tag("p", escape(words)) + tag("div", table.html, class_="rw-conflicts")
    return Panel(f"{words}\n{table.text}", html)


def _conflict(outcome: AnswerOutcome) -> str:
    """The documents of a context that stand in it in several versions, or the marked passages."""
    answered = outcome.answered
    context = dict.fromkeys(answered.context or ())
    versions: dict[str, set[str]] = {}
    for chunk_id in context:
        chunk = answered.chunks.get(chunk_id)
        if chunk is not None and chunk.document_id and chunk.document_version:
            versions.setdefault(chunk.document_id, set()).add(chunk.document_version)
    several = [f"{name} {', '.join(sorted(of))}" for name, of in versions.items() if len(of) > 1]
    marked = {name for group in answered.case.groups for name in group.chunk_ids}
    named = (_document(answered, name) for name in context if name in marked)
    if several:
        return "; ".join(listed(several))
    return "against each other: " + " and ".join(listed(dict.fromkeys(named)))


def _document(answered: AnsweredCase, chunk_id: str) -> str:
    """Title and version of a chunk, or its id."""
    chunk = answered.chunks.get(chunk_id)
    if chunk is None or not (chunk.title or chunk.document_id):
        return chunk_id
    name = chunk.title or chunk.document_id
    return f"{name} ({chunk.document_version})" if chunk.document_version else f"{name}"
