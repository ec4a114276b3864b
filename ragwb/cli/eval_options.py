"""What the two eval commands share: their flags, and how an evaluation is printed and handed on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from ragwb.cli.options import Format, print_json, print_rows
from ragwb.cli.progress import progress_bar

if TYPE_CHECKING:
    from ragwb.decide.thresholds import Verdict
    from ragwb.report.files import ReportFiles
    from ragwb.runs.store import Run

Limit = float | None
BaseUrl = Annotated[
    str | None, typer.Option(help="The service; default RAGWB_BASE_URL or the project's setting.")
]
Ks = Annotated[str | None, typer.Option("--k", help="Positions to score at, such as 1,3,5.")]
Concurrency = Annotated[int, typer.Option(help="Questions under way at once.")]
Resume = Annotated[str | None, typer.Option(help="An unfinished run to go on with.")]
MinRecall = Annotated[Limit, typer.Option(help="Fail below this recall at top K.")]
MinHitRate = Annotated[Limit, typer.Option(help="Fail below this hit rate at top K.")]
MinMrr = Annotated[Limit, typer.Option(help="Fail below this MRR at top K.")]
MinNdcg = Annotated[Limit, typer.Option(help="Fail below this nDCG at top K.")]
MaxDuplicateRate = Annotated[Limit, typer.Option(help="Fail above this share of repeated ids.")]
MaxP95Ms = Annotated[Limit, typer.Option(help="Fail above this 95th percentile, ms.")]
Report = Annotated[Path | None, typer.Option(help="Write REPORT.json, REPORT.md and REPORT.html.")]
TokenFile = Annotated[Path | None, typer.Option(help="A file that holds the token.")]
TokenCommand = Annotated[str | None, typer.Option(help="A command that prints the token.")]
Identities = Annotated[
    list[str] | None, typer.Option(help="LABEL=TOKEN_FILE for cases with that access label.")
]
IndexPath = Annotated[
    Path | None,
    typer.Option(
        help="Documents or index to resolve passages with, when the service has no /chunks."
    ),
]


class Evaluated(Protocol):
    """A run held against limits, as the commands hand it on."""

    @property
    def run(self) -> Run:
        """The saved run."""

    @property
    def verdict(self) -> Verdict:
        """Pass, fail or undecided."""

    def to_dict(self) -> dict[str, Any]:
        """The JSON of the report."""


def finish(
    evaluation: Evaluated,
    output: Format,
    *,
    table: Callable[[], str],
    figures: Mapping[str, float | None],
    report: Path | None,
    write: Callable[[Path], ReportFiles],
) -> None:
    """Print an evaluation, write its report, and leave with the verdict's exit code.

    Args:
        evaluation: what is printed.
        output: table, JSON or CSV.
        table: makes the text of the table.
        figures: what a CSV has a line for, by name.
        report: the report's path without an ending; None writes none.
        write: writes the report's files.
    """
    from ragwb.decide.thresholds import EXIT_CODES

    if output == Format.table:
        typer.echo(table())
    elif output == Format.json:
        print_json(evaluation.to_dict())
    else:
        print_rows([{"metric": name, "value": value} for name, value in figures.items()], output)
    if report is not None:
        typer.echo("writing the report", err=True)
        with progress_bar("writing the report"):
            files = write(report)
        typer.echo(f"report: {files.html} (and .json, .md)", err=True)
    run_id = evaluation.run.manifest.run_id
    typer.echo(f"next: ragwb triage {run_id}\nrun: {run_id}", err=True)
    raise typer.Exit(EXIT_CODES[evaluation.verdict])
