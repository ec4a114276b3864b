"""`ragwb compare` says what a change fixed and broke, and whether the size can show it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragwb.cli.eval_options import Report
from ragwb.cli.options import Format, OutputFormat, print_json, print_rows

if TYPE_CHECKING:
    from ragwb.decide.comparison import Comparison
    from ragwb.measure.rule_pack import RulePack

compare_app = typer.Typer()

_RUN = "Run id, unique prefix, path, baseline name or latest."


@compare_app.command("compare", short_help="What one run fixed and broke against another.")
def compare_command(
    baseline: Annotated[str, typer.Argument(help=f"What it was. {_RUN}")],
    candidate: Annotated[str, typer.Argument(help=f"What it would be. {_RUN}")],
    top_k: Annotated[
        int | None, typer.Option(help="The cut of the results; default the smaller top K.")
    ] = None,
    by: Annotated[
        str | None, typer.Option(help="Slice by tags.NAME, risk, set, mode or access.")
    ] = None,
    case: Annotated[str | None, typer.Option(help="One case in full, both runs beside it.")] = None,
    rules: Annotated[
        Path | None, typer.Option(help="Of answers: the hard rules, TOML; default those of ragwb.")
    ] = None,
    report: Report = None,
    output: OutputFormat = Format.table,
) -> None:
    """Compare two saved runs case by case: fixed, broken, differences with their intervals.

    A comparison decides nothing, so it exits with 0; `ragwb gate` decides.
    """
    from ragwb.decide.compare import compare
    from ragwb.measure.rule_pack import load_pack
    from ragwb.report.files import check_report_path

    if report is not None:
        check_report_path(report)
    pack = None if rules is None else load_pack(rules)
    found = compare(baseline, candidate, k=top_k, rules=pack)
    if by is not None:
        # A field that is not there is said before anything is printed.
        found.deltas(by=by)
    if case is not None:
        _print_case(found, case, pack, output)
    else:
        _print(found, by, output)
    if report is not None:
        _write(found, report, by, rules)
    if output == Format.table:
        _print_next(found, baseline, candidate, top_k, case)


def _print(found: Comparison, by: str | None, output: Format) -> None:
    from ragwb.cli.compare_table import print_overview
    from ragwb.view.panel import frame_rows

    if output == Format.table:
        print_overview(found, by)
    elif output == Format.json:
        sliced = {} if by is None else {"by": by, "deltas_by": frame_rows(found.deltas(by=by))}
        print_json({**found.to_dict(), **sliced})
    else:
        print_rows(frame_rows(found.deltas(by=by) if by else found.deltas()), output)


def _print_case(found: Comparison, case_id: str, pack: RulePack | None, output: Format) -> None:
    from ragwb.cli.compare_table import case_dict, print_case, rank_rows
    from ragwb.report.compare_cases import open_cases

    (case,) = open_cases(found, [case_id], rules=pack)
    if output == Format.table:
        print_case(case)
    elif output == Format.json:
        print_json(case_dict(case))
    else:
        print_rows(rank_rows(case), output)


def _write(found: Comparison, report: Path, by: str | None, rules: Path | None) -> None:
    from ragwb.report.compare_report import write_compare_report

    typer.echo("writing the report", err=True)
    pack = "" if rules is None else str(rules.absolute())
    files = write_compare_report(found, report, by=by or "", rules=pack)
    typer.echo(f"report: {files.html} (and .json, .md)", err=True)


def _print_next(
    found: Comparison, baseline: str, candidate: str, top_k: int | None, case: str | None
) -> None:
    """What to type next: the case that broke first, and the gate."""
    from ragwb.cli.triage_table import quoted

    runs = f"{quoted(baseline)} {quoted(candidate)}"
    cut = "" if top_k is None else f" --top-k {top_k}"
    first = next((ids[0] for ids in (found.broken, found.fixed) if ids), None)
    if case is None and first is not None:
        typer.echo(f"\nnext: ragwb compare {runs}{cut} --case {quoted(first)}")
