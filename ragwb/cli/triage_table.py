"""What `ragwb triage` says to people: where the cases of a run broke, and one case in full."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from ragwb.html import plain
from ragwb.measure.listed import first_of, some

if TYPE_CHECKING:
    from ragwb.triage.found import FoundGroup
    from ragwb.triage.result import Triage
    from ragwb.triage.verdict import AnswerFinding, CaseVerdict, GroupVerdict, Leak, TriagedCase

UNOBSERVED = "?"
NOT_REQUIRED = "·"
# Columns of the overview that hold no rank.
_WORDS = ("case", "stage", "reason", "repeats", "proof")
_WIDEST_TEXT = 300
_MOST_NAMED = 8


def print_overview(triage: Triage) -> None:
    """Counts by stage and reason, every failed case with its proof, and what was not judged."""
    from ragwb.triage.beyond import beyond_words, count_beyond
    from ragwb.triage.result import WORST_FIRST
    from ragwb.view.panel import frame_rows, text_table

    typer.echo(triage.title())
    if triage.cases:
        columns = ["stage", "reason", "n", "high_risk"]
        typer.echo("\n" + text_table(frame_rows(triage.stages()), columns))
        if words := beyond_words(count_beyond((c.verdict for c in triage.cases), k=triage.k)):
            typer.echo(words)
        typer.echo(
            "\nfailed cases: where each was lost, and the rank of its evidence at every stage; "
            f"{WORST_FIRST}"
        )
        rows = [_failed_row(triage, case) for case in triage.cases]
        typer.echo(text_table(rows, _columns(rows)))
        if legend := _legend(rows):
            typer.echo(legend)
    for line in _left_out(triage):
        typer.echo(f"\n{line}")


def print_case(triage: Triage, case: TriagedCase) -> None:
    """One failed case in full: what was asked, what was lost where, and what to look at."""
    from ragwb.triage.reasons import REASONS

    verdict = case.verdict
    reason = REASONS[verdict.reason]
    typer.echo(f"{plain(case.case_id)}: {verdict.stage}, {verdict.reason} ({reason.meaning})")
    for name, value in _facts(triage, case):
        typer.echo(f"  {name:<10} {plain(value, width=_WIDEST_TEXT)}")
    leaks = [f"must not be there: {one.reason}\n  {plain(one.proof)}" for one in verdict.leaks]
    findings = [
        f"its answer: {one.reason}, {_place(one)}\n  {plain(one.proof)}" for one in verdict.findings
    ]
    for said in (leaks, findings):
        shown, more = first_of(said)
        for words in (*shown, *filter(None, (more,))):
            typer.echo(f"\n{words}")
    if verdict.groups:
        typer.echo(f"\n{_groups_table(triage, case)}")
    if found := _found_table(triage, case):
        typer.echo(f"\n{found}")
    for group in verdict.groups:
        typer.echo(f"\n{_group_text(group)}")
    typer.echo("\nlook at")
    for line in _advice(verdict):
        typer.echo(f"  {line}")


def print_next(triage: Triage, case: TriagedCase | None, *, hint: str, what_if: bool) -> None:
    """What to type next, if anything is left to look at.

    Args:
        triage: what was found.
        case: the one that is shown in full, if any.
        hint: the command so far, without what it shows.
        what_if: whether the remedies are shown already.
    """
    commands = []
    if case is None and triage.cases:
        commands.append(f"{hint} --case {quoted(triage.cases[0].case_id)}")
    asked = triage.cases if case is None else [case]
    if not what_if and any(one.verdict.is_lost_before_answer for one in asked):
        shown = "" if case is None else f" --case {quoted(case.case_id)}"
        commands.append(f"{hint}{shown} --what-if")
    if commands:
        typer.echo(f"\nnext: {' · '.join(commands)}")


def quoted(text: str) -> str:
    """A word for a shell that is shown on a terminal."""
    return shlex.quote(plain(text))


def _failed_row(triage: Triage, case: TriagedCase) -> dict[str, Any]:
    verdict = case.verdict
    lost = _decisive(verdict)
    ranks = _found_ranks(triage, case) if lost is None else _ranks(triage, lost.ranks)
    repeats = {} if case.n_repeats == 1 else {"repeats": _repeats(case)}
    return {
        "case": plain(case.case_id, width=60),
        "stage": verdict.stage,
        "reason": verdict.reason,
        **repeats,
        **ranks,
        "proof": plain(verdict.proof, width=_WIDEST_TEXT),
    }


def _decisive(verdict: CaseVerdict) -> GroupVerdict | None:
    """The lost group that gives a case its stage; behind a leak the one that was lost earliest."""
    from ragwb.triage.reasons import depth

    is_other = [(g.stage, g.reason) != (verdict.stage, verdict.reason) for g in verdict.groups]
    ordered = sorted(
        zip(is_other, verdict.groups, strict=True),
        key=lambda pair: (pair[0], depth(pair[1].stage)),
    )
    return ordered[0][1] if ordered else None


def _columns(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Every column that a row has, the proof last."""
    names = dict.fromkeys(name for row in rows for name in row)
    return [*(name for name in names if name != "proof"), "proof"]


def _ranks(triage: Triage, ranks: Mapping[str, int | None]) -> dict[str, int | str | None]:
    """The rank at every stage that any result of the run shows."""
    return {stage: ranks.get(stage, UNOBSERVED) for stage in _stages(triage)}


def _found(triage: Triage, case: TriagedCase) -> tuple[FoundGroup, ...]:
    """The required groups that were before the answer, in the repeat that stands for a case."""
    from ragwb.triage.found import found_groups

    return found_groups(triage.traces, (case.case_id, case.verdict.repeat), k=triage.k)


def _found_ranks(triage: Triage, case: TriagedCase) -> dict[str, int | str | None]:
    """The ranks of a case that lost nothing: of its groups the one that stands lowest."""
    found = _found(triage, case)
    if not found:
        return dict.fromkeys(_stages(triage), NOT_REQUIRED)
    return _ranks(triage, max(found, key=lambda group: group.ranks["results"] or 0).ranks)


def _found_table(triage: Triage, case: TriagedCase) -> str:
    """Where the groups stood that were not lost; empty when there are none."""
    from ragwb.view.panel import text_table

    lost = {group.index for group in case.verdict.groups}
    rows = [
        {"group": group.index, "chunk": group.chunk_id, **_ranks(triage, group.ranks)}
        for group in _found(triage, case)
        if group.index not in lost
    ]
    return f"found, ranks, K = {triage.k}\n" + text_table(rows, list(rows[0])) if rows else ""


def _legend(rows: Sequence[Mapping[str, Any]]) -> str:
    """What the marks among the ranks mean, as far as any stands there."""
    marks = {
        None: "– not there",
        UNOBSERVED: f"{UNOBSERVED} not observed",
        NOT_REQUIRED: f"{NOT_REQUIRED} no evidence is required",
    }
    shown = {value for row in rows for name, value in row.items() if name not in _WORDS}
    return " · ".join(words for mark, words in marks.items() if mark in shown)


def _stages(triage: Triage) -> list[str]:
    """All stages of the run in pipeline order, as far as a failed case shows them."""
    from ragwb.runs.results import LATER_STAGES

    pairs = ((case.case_id, case.verdict.repeat) for case in triage.cases)
    shown = {stage for pair in pairs for stage in triage.traces[pair].stages}
    return [name for name in (*triage.traces.channels, *LATER_STAGES) if name in shown]


def _repeats(case: TriagedCase) -> str:
    return f"{case.n_failed}/{case.n_repeats}" + (" unstable" if case.unstable else "")


def _left_out(triage: Triage) -> Iterator[str]:
    """What was not judged, and why, grouped by the reason; and the errors."""
    by_why: dict[str, list[str]] = {}
    for case_id, why in triage.unjudged:
        by_why.setdefault(why, []).append(case_id)
    for why, case_ids in by_why.items():
        named = some(case_ids, _MOST_NAMED, width=60)
        yield f"not judged ({len(case_ids)}), {plain(why, width=160)}: {named}"
    by_error: dict[str, list[str]] = {}
    for case_id, error in triage.errors:
        by_error.setdefault(error, []).append(case_id)
    for error, case_ids in by_error.items():
        named = some(case_ids, _MOST_NAMED, width=60)
        yield f"errors ({len(case_ids)}), {plain(error, width=160)}: {named}"


def _facts(triage: Triage, case: TriagedCase) -> Iterator[tuple[str, str]]:
    golden = triage.traces.cases[case.case_id].case
    result = triage.traces.result((case.case_id, case.verdict.repeat))
    yield "question", golden.question
    if result["rewritten_query"]:
        yield "rewritten", result["rewritten_query"]
    if result["answer"]:
        yield "answer", result["answer"]
    tags = " · ".join(f"{name} {value}" for name, value in golden.tags.items())
    yield "labels", " · ".join(filter(None, (f"risk {golden.risk}", f"tier {golden.tier}", tags)))
    if golden.access:
        yield "asked as", golden.access
    if case.n_repeats > 1:
        counts = ", ".join(f"{reason} {n}" for (_, reason), n in case.counts.items())
        yield "repeats", f"{_repeats(case)}: {counts}; shown is repeat {case.verdict.repeat}"
    if result["trace_id"]:
        yield "trace", result["trace_id"]


def _groups_table(triage: Triage, case: TriagedCase) -> str:
    from ragwb.view.panel import text_table

    rows = [
        {"group": group.index, "reason": group.reason, **_ranks(triage, group.ranks)}
        for group in case.verdict.groups
    ]
    return "ranks, K = " + f"{triage.k}\n" + text_table(rows, list(rows[0]))


def _group_text(group: GroupVerdict) -> str:
    seen = f"last seen in {plain(group.last_seen)}" if group.last_seen else "seen in no stage"
    gone = f", not in {plain(group.first_missing)}" if group.first_missing else ""
    lines = [
        f"group {group.index}: {group.stage}, {group.reason}",
        f"  chunk      {plain(group.chunk_id) if group.chunk_id else '–'}",
        f"  seen       {seen}{gone}",
        f"  proof      {plain(group.proof)}",
    ]
    if group.missing_field:
        lines.append(f"  missing    the field that would decide: {plain(group.missing_field)}")
    return "\n".join(lines)


def _place(finding: AnswerFinding) -> str:
    is_span = finding.start is not None and finding.end is not None
    return finding.where + (f" {finding.start}–{finding.end}" if is_span else "")


def _advice(verdict: CaseVerdict) -> list[str]:
    from ragwb.triage.reasons import REASONS

    said: Sequence[Leak | GroupVerdict | AnswerFinding]
    said = (*verdict.leaks, *verdict.groups, *verdict.findings)
    reasons = dict.fromkeys(one.reason for one in said)
    return [f"{reason}: {REASONS[reason].advice}" for reason in reasons]
