"""What `ragwb compare` says to people: what changed and whether it counts, and one case in full."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import typer

from ragwb.html import plain
from ragwb.measure.listed import some

if TYPE_CHECKING:
    from ragwb.decide.comparison import Comparison
    from ragwb.view.compared import ComparedCase, Side

_MOST_LISTED = 40
_WIDEST_TEXT = 300
_SAME_WORDS = ("still_failing", "unstable")


def print_overview(comparison: Comparison, by: str | None) -> None:
    """The words, then the cases that broke and were fixed, the figures, slices, what is left out.

    Args:
        comparison: two runs on the same cases.
        by: a field to slice by; None for no slices.
    """
    typer.echo("\n\n".join(_parts(comparison, by)))


def _parts(comparison: Comparison, by: str | None) -> Iterator[str]:
    from ragwb.report import compare_sections as sections
    from ragwb.view.panel import text_table

    yield sections.overview(comparison).text
    if comparison.patterns:
        yield "patterns\n" + sections.patterns(comparison).text
    for change in ("broken", "fixed"):
        if getattr(comparison, change):
            yield _listed(comparison, change)
    for name in _SAME_WORDS:
        if ids := getattr(comparison, name):
            yield f"{name.replace('_', ' ')} ({len(ids)}): {plain(some(ids, 12))}"
    yield "figures\n" + sections.figures(comparison).text
    if by is not None:
        yield f"by {plain(by)}\n" + sections.slices(comparison, by).text
    if rows := sections.condition_rows(comparison):
        yield "conditions that differ\n" + text_table(rows, sections.CONDITION_COLUMNS)
    if lines := sections.left_out_lines(comparison):
        yield "\n".join(["not compared", *(f"  {plain(line)}" for line in lines)])


def _listed(comparison: Comparison, change: str) -> str:
    from ragwb.report import compare_sections as sections
    from ragwb.view.panel import text_table

    rows = sections.changed_rows(comparison, change)
    lines = [f"{change} ({len(rows)})", text_table(rows[:_MOST_LISTED], sections.CHANGED_COLUMNS)]
    if len(rows) > _MOST_LISTED:
        lines.append(f"and {len(rows) - _MOST_LISTED} more: --format json names them all")
    return "\n".join(lines)


def print_case(case: ComparedCase) -> None:
    """One case in full: both verdicts, both rank journeys in one table, both answers."""
    from ragwb.view import compare_card as card
    from ragwb.view.compared import CHANGE_WORDS

    marks = [*case.marks, *(["unstable"] if case.unstable else [])]
    said = ", ".join([CHANGE_WORDS[case.change], *marks])
    typer.echo(f"{plain(case.case_id)}: {said}")
    typer.echo(f"  question  {plain(case.question, width=_WIDEST_TEXT)}")
    if case.figures:
        typer.echo(f"  figures   {card.figures_words(case)}")
    typer.echo("\n" + card.reasons_part(case).text)
    if ranks := card.ranks_part(case).text:
        typer.echo(f"\nrank at each stage, K = {case.candidate.view.k}\n{ranks}")
    for name, part in (("answers", card.answers_part(case)), ("claims", card.claims_part(case))):
        if part.text:
            typer.echo(f"\n{name}\n{part.text}")


def rank_rows(case: ComparedCase) -> list[dict[str, Any]]:
    """A row a chunk and stage: its rank in both runs, null where it is not there."""
    from ragwb.view.compared import rank_lines

    return [
        {
            "case_id": case.case_id,
            "evidence": line.name,
            "baseline_chunk": line.chunk_ids[0],
            "candidate_chunk": line.chunk_ids[1],
            "stage": stage,
            "baseline_rank": _rank(case.baseline, stage, line.chunk_ids[0]),
            "candidate_rank": _rank(case.candidate, stage, line.chunk_ids[1]),
        }
        for line in rank_lines(case)
        for stage in case.stages
    ]


def _rank(side: Side, stage: str, chunk_id: str | None) -> int | None:
    if chunk_id is None:
        return None
    return side.view.ranks.get(stage, {}).get(chunk_id)


def case_dict(case: ComparedCase) -> dict[str, Any]:
    """One compared case as JSON values."""
    return {
        "case_id": case.case_id,
        "question": case.question,
        "change": case.change,
        "unstable": case.unstable,
        "marks": list(case.marks),
        "baseline": _side_dict(case.baseline),
        "candidate": _side_dict(case.candidate),
        "ranks": [
            {name: value for name, value in row.items() if name != "case_id"}
            for row in rank_rows(case)
        ],
    }


def _side_dict(side: Side) -> dict[str, Any]:
    verdict, outcome = side.view.verdict, side.outcome
    return {
        "run": side.name,
        "repeat": side.view.trace.repeat,
        "stages": list(side.view.stages),
        "stage": None if verdict is None else verdict.stage,
        "reason": None if verdict is None else verdict.reason,
        "mode": None if outcome is None else outcome.answered.mode,
        "answer": None if outcome is None else outcome.answered.text,
    }
