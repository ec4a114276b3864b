"""`ragwb triage --what-if`: what other settings would fix and break, for people and for scripts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import typer

from ragwb.cli.options import Format, print_json, print_rows
from ragwb.html import plain
from ragwb.measure.listed import some

if TYPE_CHECKING:
    from ragwb.triage.result import Triage
    from ragwb.triage.whatif import CaseRemedy, RunRemedy

NOT_MEASURED = "not measured"
# What they cannot tell is no "no": a case may be unknown under every change.
_AS_FAR = "of those that the saved candidates can tell"
_OF_ANSWERS = (
    "only evidence that is brought back is counted: whether the answer is right then is not told"
)
# Of those that it fixes, and of those that it breaks; JSON names all.
_MOST_FIXED = 3
_MOST_BROKEN = 8
_CASE_COLUMNS = ("change", "rank_before", "rank_after", "positions", "tokens_added", "note")


def print_remedies(triage: Triage, output: Format) -> None:
    """The changes that would fix failed cases of a run, the best first.

    A table for people, with the cases named; else all of them as JSON or CSV. What no service may
    be set to stands apart.
    """
    found = triage.what_if()
    if output == Format.json:
        print_json([remedy.to_dict() for remedy in found])
        return
    if output == Format.csv:
        print_rows([_csv_row(remedy) for remedy in found], output)
        return
    _print_head(triage)
    remedies = [remedy for remedy in found if remedy.change.is_remedy]
    _print_table(remedies, empty=f"no single change {_AS_FAR} fixes a failed case")
    if note := triage.basis.counting.note:
        typer.echo(f"{note}: this service counts otherwise than the workbench")
    waived = [remedy for remedy in found if not remedy.change.is_remedy]
    if waived:
        typer.echo("\neffect only, not a remedy: what the filters keep from this identity")
        _print_table(waived, empty="")


def print_case_remedies(triage: Triage, case_id: str, output: Format) -> None:
    """The least changes that would bring a failed case back, the least first."""
    from ragwb.triage.whatif import case_remedies

    found = case_remedies(triage, case_id)
    rows = [_case_row(remedy) for remedy in found]
    if output != Format.table:
        print_rows(rows, output)
        return
    _print_head(triage)
    if not rows:
        typer.echo(f"no single change {_AS_FAR} brings this case back")
        return
    print_rows([{name: row[name] for name in _CASE_COLUMNS} for row in rows], output)
    if not all(remedy.change.is_remedy for remedy in found):
        typer.echo("a waived filter shows an effect and is no remedy")


def _print_head(triage: Triage) -> None:
    """Where the forecasts come from, and of a run of answers what they leave open."""
    typer.echo("\nwhat if: predicted from the saved candidates alone, nothing was asked again")
    traces = triage.traces
    if any("answer" in traces.result(pair)["observed"] for pair in traces):
        typer.echo(_OF_ANSWERS)


def _print_table(remedies: Sequence[RunRemedy], *, empty: str) -> None:
    from ragwb.view.panel import text_table

    if not remedies:
        typer.echo(empty)
        return
    rows = [_row(remedy) for remedy in remedies]
    typer.echo(text_table(rows, list(rows[0])))
    if any(" more" in row[name] for row in rows for name in ("fixes", "breaks", "unknown")):
        typer.echo("every case by name: --format json")


def _row(remedy: RunRemedy) -> dict[str, Any]:
    tokens, latency = remedy.tokens_per_case, remedy.latency_ms
    return {
        "change": remedy.change.label,
        "fixes": _counted(remedy.fixed, _MOST_FIXED),
        "breaks": _counted(remedy.broken, _MOST_BROKEN),
        "unknown": _counted(remedy.unknown, _MOST_FIXED),
        "tokens a case": None if tokens is None else f"{tokens:+.0f}",
        "p95 ms": NOT_MEASURED if latency is None else f"{latency:.0f}",
    }


def _counted(case_ids: Sequence[str], most: int) -> str:
    """How many cases, and the first of them."""
    return f"{len(case_ids)}: {some(case_ids, most, width=40)}" if case_ids else "0"


def _csv_row(remedy: RunRemedy) -> dict[str, Any]:
    return {name: _joined(value) for name, value in remedy.to_dict().items()}


def _joined(value: Any) -> Any:
    return " ".join(_words(value)) if isinstance(value, list) else value


def _words(case_ids: Iterable[str]) -> list[str]:
    return [plain(case_id) for case_id in case_ids]


def _case_row(remedy: CaseRemedy) -> dict[str, Any]:
    return {
        "change": remedy.change.label,
        "rank_before": remedy.rank_before,
        "rank_after": remedy.rank_after,
        "positions": remedy.positions,
        "tokens_added": remedy.tokens_added,
        "note": remedy.note or None,
        "is_remedy": remedy.change.is_remedy,
    }
