"""The parts of a triage report, each as a `Panel`: the finding, remedies, every failed case."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ragwb.errors import RunError
from ragwb.html import escape, tag
from ragwb.measure.listed import count, some
from ragwb.report.words import (
    embedding_warning,
    failed_call_steps,
    n_opened,
    names_fold,
    run_line,
    verdict_panel,
)
from ragwb.runs.notes import Note, load_notes
from ragwb.triage.beyond import RANKED_BELOW_K, beyond_words, count_beyond, parts_words
from ragwb.triage.reasons import REASONS
from ragwb.triage.result import WORST_FIRST
from ragwb.view.case_card import triage_card
from ragwb.view.case_parts import cut
from ragwb.view.case_view import view_case
from ragwb.view.panel import Panel, frame_rows, stack, table_panel, text_table

if TYPE_CHECKING:
    from ragwb.triage.beyond import Since
    from ragwb.triage.result import Triage
    from ragwb.triage.verdict import TriagedCase
    from ragwb.triage.whatif import RunRemedy

_MOST_STEPS = 4
_MOST_OF_A_QUESTION = 120
_REST = ("case_id", "stage", "reason", "question", "risk")


def overview(triage: Triage) -> Panel:
    """How many cases fail and where most are lost, what to do first, and of which run this is."""
    n_judged = len(triage.cases) + triage.n_passed
    verdict = (
        "fail" if triage.cases else "pass" if n_judged and not triage.n_errors else "undecided"
    )
    return verdict_panel(
        verdict,
        f"{len(triage.cases)} of {triage.n_cases} cases fail at K = {triage.k}",
        words=_where_lost(triage),
        steps=list(_steps(triage)),
        warnings=list(embedding_warning(triage.run)),
        of_what=f"{run_line(triage.run)} · {_out_of(triage)}",
    )


def _where_lost(triage: Triage) -> str:
    """Number of failed cases by stage, the most first; security before all."""
    beyond = _beyond(triage)
    counts = Counter(case.verdict.stage for case in triage.cases)
    counts["rerank"] -= sum(beyond.values())
    leaked, unknown = counts.pop("security", 0), counts.pop("unknown", 0)
    parts = [f"{leaked} with evidence that must not be there"] if leaked else []
    answered = counts.pop("generation", 0)
    lost = [(n, f"{n} lost in {stage}") for stage, n in counts.items() if n > 0]
    lost += [(sum(beyond.values()), beyond_words(beyond))] if beyond else []
    parts += [words for _, words in sorted(lost, key=lambda entry: -entry[0])]
    parts += [f"{answered} answered wrongly from what was there"] if answered else []
    parts += [f"{unknown} of which the trace does not tell where"] if unknown else []
    # What is told apart itself holds commas.
    return ("; " if beyond else ", ").join(parts)


def _beyond(triage: Triage) -> dict[Since, int]:
    return count_beyond((case.verdict for case in triage.cases), k=triage.k)


def _out_of(triage: Triage) -> str:
    parts = [f"{triage.n_passed} passed"]
    parts += [f"{len(triage.unjudged)} not judged"] if triage.unjudged else []
    parts += [f"{count(triage.n_errors, 'error')}"] if triage.n_errors else []
    return ", ".join(parts)


def _steps(triage: Triage) -> Iterator[str]:
    """What to do first: leaks, then the reasons with most cases of high risk, then most cases."""
    rows = frame_rows(triage.stages())
    rows.sort(key=lambda row: (row["stage"] != "security", -row["high_risk"], -row["n"]))
    for row in rows[:_MOST_STEPS]:
        reason = REASONS[row["reason"]]
        high = f" ({row['high_risk']} of high risk)" if row["high_risk"] else ""
        meaning = reason.meaning
        if row["reason"] == RANKED_BELOW_K:
            meaning = f"ranked beyond K: {parts_words(_beyond(triage))}"
        yield (
            f"{count(row['n'], 'case')}{high}: {meaning}. First {reason.advice}. "
            f"Open {some(row['cases'], 3)}."
        )
    if len(rows) > _MOST_STEPS:
        yield f"{count(len(rows) - _MOST_STEPS, 'more reason')}: see the chart."
    yield from _best_remedy(triage)
    if unstable := [case.case_id for case in triage.cases if case.unstable]:
        yield f"Unstable, the repeats differ: {some(unstable)}."
    yield from failed_call_steps(dict(triage.errors))


def _best_remedy(triage: Triage) -> Iterator[str]:
    """The remedy that stands first, if there is any."""
    best = next((remedy for remedy in triage.what_if() if remedy.change.is_remedy), None)
    if best is not None:
        broken = f"and breaks {some(best.broken, 3)}" if best.broken else "and breaks none"
        yield (
            f"What if: {best.change.label} brings back {len(best.fixed)} of "
            f"{count(len(triage.cases), 'failed case')} {broken}."
        )


def remedies_panel(triage: Triage) -> Panel:
    """What one changed setting would do to the run, from the saved candidates alone.

    The best first: cases brought back for each case that it breaks, then the cost.
    """
    found = triage.what_if()
    if not found:
        words = "No single change of those that the saved candidates can tell brings a case back."
        return Panel(words, tag("p", words, class_="rw-none"))
    rows = [_remedy_row(remedy, len(triage.cases)) for remedy in found]
    columns = tuple(rows[0])
    body = "".join(tag("tr", _remedy_cells(remedy, len(triage.cases))) for remedy in found)
    head = "".join(tag("th", escape(name), scope="col") for name in columns)
    table = tag("thead", tag("tr", head)) + tag("tbody", body)
    return Panel(text_table(rows, columns), tag("table", table, class_="rw rw-remedies"))


def _remedy_row(remedy: RunRemedy, n_failed: int) -> dict[str, object]:
    return {
        "change": _label(remedy),
        "brings back": f"{len(remedy.fixed)} of {n_failed}: {some(remedy.fixed, 3)}",
        "breaks": _counted(remedy.broken),
        "cannot be told": _counted(remedy.unknown),
        "tokens a case": _tokens(remedy),
        "latency": _latency(remedy),
    }


def _remedy_cells(remedy: RunRemedy, n_failed: int) -> str:
    """The same as HTML, every name behind a click where there are many."""
    named = {
        "brings back": (f"{len(remedy.fixed)} of {n_failed}", remedy.fixed),
        "breaks": (str(len(remedy.broken) or "none"), remedy.broken),
        "cannot be told": (str(len(remedy.unknown) or "none"), remedy.unknown),
    }
    cells = tag("td", tag("b", escape(_label(remedy))))
    cells += "".join(tag("td", tag("b", n) + " " + names_fold(ids)) for n, ids in named.values())
    return cells + tag("td", escape(_tokens(remedy))) + tag("td", escape(_latency(remedy)))


def _label(remedy: RunRemedy) -> str:
    return remedy.change.label + (
        "" if remedy.change.is_remedy else " (shows its effect, no remedy)"
    )


def _counted(case_ids: Sequence[str]) -> str:
    return f"{len(case_ids)}: {some(case_ids, 3)}" if case_ids else "none"


def _tokens(remedy: RunRemedy) -> str:
    if remedy.tokens_per_case is None:
        return "–"
    tokens = round(remedy.tokens_per_case)
    return f"{tokens:+,}" if tokens else "0"


def _latency(remedy: RunRemedy) -> str:
    if remedy.latency_ms is None:
        return "not measured"
    return f"p95 {remedy.latency_ms:,.0f} ms in {remedy.latency_run}"


def cases(triage: Triage, *, limit: int) -> Panel:
    """Each failed case as a section, the worst first; beyond the limit counted and listed.

    The first of each stage is open.

    Args:
        triage: a run's failed cases.
        limit: number of sections, from 0.

    Raises:
        UsageError: the limit is below 0.
    """
    limit = n_opened(limit)
    if not triage.cases:
        return Panel("No case failed.", tag("p", "No case failed.", class_="rw-none"))
    notes, problem = _notes(triage)
    warned = Panel(problem, tag("p", escape(problem), class_="rw-warning")) if problem else None
    cards, seen = [], set[str]()
    for case in triage.cases[:limit]:
        is_first = case.verdict.stage not in seen
        seen.add(case.verdict.stage)
        cards.append(_section(triage, case, notes.get(case.case_id, ()), is_open=is_first))
    parts = [*([warned] if warned else []), *cards]
    if rest := triage.cases[limit:]:
        parts.append(_rest(triage, rest))
    return Panel("\n\n".join(part.text for part in parts), "".join(part.html for part in parts))


def _section(triage: Triage, case: TriagedCase, notes: Sequence[Note], *, is_open: bool) -> Panel:
    from ragwb.triage.whatif import case_remedies

    verdict = case.verdict
    trace = triage.traces[verdict.case_id, verdict.repeat]
    view = view_case(triage.traces, trace, k=triage.k, verdict=verdict)
    remedies = case_remedies(triage, case.case_id)
    return triage_card(view, case, remedies=remedies, notes=notes, is_open=is_open)


def _notes(triage: Triage) -> tuple[Mapping[str, list[Note]], str]:
    """The review notes by case, and why there are none where their file is broken."""
    found: dict[str, list[Note]] = defaultdict(list)
    try:
        for note in load_notes(triage.run):
            found[note.case_id].append(note)
    except RunError as error:
        return {}, f"Review notes are not shown: {error}"
    return found, ""


def _rest(triage: Triage, rest: Sequence[TriagedCase]) -> Panel:
    """The cases that have no section of their own, in a table."""
    rows = [_rest_row(triage, case) for case in rest]
    words = f"{count(len(rest), 'more case')} without a section of their own, {WORST_FIRST}:"
    if len(rest) == len(triage.cases):
        words = f"{count(len(rest), 'case')}, {WORST_FIRST}:"
    table = table_panel(rows, _REST, empty="")
    return Panel(f"{words}\n{table.text}", tag("p", escape(words)) + table.html)


def _rest_row(triage: Triage, case: TriagedCase) -> dict[str, Any]:
    golden = triage.traces.cases[case.case_id].case
    return {
        "case_id": case.case_id,
        "stage": case.verdict.stage,
        "reason": case.verdict.reason,
        "question": cut(golden.question, _MOST_OF_A_QUESTION),
        "risk": golden.risk,
    }


def not_judged(triage: Triage) -> Panel:
    """Cases outside the counts: whose call failed for good, and those without evidence to find."""
    errors = [{"case_id": case_id, "error": error} for case_id, error in triage.errors]
    unjudged = [{"case_id": case_id, "why": why} for case_id, why in triage.unjudged]
    return stack(
        {
            "Errors": table_panel(errors, ("case_id", "error"), empty="No call failed."),
            "Not judged": table_panel(unjudged, ("case_id", "why"), empty="Every case is judged."),
        }
    )
