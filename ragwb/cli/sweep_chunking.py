"""`ragwb sweep chunking`: every chunking of a grid, at equal K and at equal context tokens."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragwb.cli.options import Format, OutputFormat, print_json, print_rows
from ragwb.cli.service import need_service_extra
from ragwb.errors import RagwbError, UsageError
from ragwb.html import plain

if TYPE_CHECKING:
    from ragwb.sweep.outcome import ChunkingSweep
    from ragwb.sweep.results import PointResult

sweep_chunking_app = typer.Typer()

_WIDEST_NAME = 60


@sweep_chunking_app.command("chunking", short_help="Which chunking, and at what price.")
def chunking_command(
    grid: Annotated[
        Path | None, typer.Option(help="TOML file of the points; default: the one with ragwb.")
    ] = None,
    corpus: Annotated[
        Path | None, typer.Option(help="Folder of Markdown documents; default: the grid's.")
    ] = None,
    dataset: Annotated[
        Path | None, typer.Option(help="Golden set with passages; default: the grid's.")
    ] = None,
    reference: Annotated[
        str | None, typer.Option(help="Point to hold the others against, by the start of its name.")
    ] = None,
    k: Annotated[int | None, typer.Option(help="Results at equal K; default 5.")] = None,
    tokens: Annotated[
        int | None,
        typer.Option(help="Budget at equal tokens; default: what the reference delivers at K."),
    ] = None,
    held_out: Annotated[
        float | None, typer.Option(help="Share of the cases to report on; the rest chooses.")
    ] = None,
    by: Annotated[
        str | None, typer.Option(help="Tag within whose values the cases are split.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the split.")] = 1,
    workers: Annotated[int, typer.Option(min=1, help="Processes of this machine.")] = 1,
    dask: Annotated[
        str | None, typer.Option(help="Address of a dask.distributed scheduler to work on.")
    ] = None,
    case: Annotated[
        str | None, typer.Option(help="Draw one case's passages over the chunk borders.")
    ] = None,
    point: Annotated[
        list[str] | None, typer.Option(help="With --case: a point to draw; repeat for several.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Write REPORT.json, REPORT.md and REPORT.html.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="More than 500 points are meant.")] = False,
    output: OutputFormat = Format.table,
) -> None:
    """Build, ask and score every point of a grid; what was computed before is not computed again.

    Points are compared over the same cases, at equal K and at equal context tokens. A sweep that
    was stopped goes on where it was when the same command is given again.
    """
    need_service_extra()
    # Before numpy and the models are loaded: their threads spin when a neighbour holds a core.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    logging.captureWarnings(True)
    _check_flags(by=by, held_out=held_out, point=point, drawn=case or report)
    from ragwb.report.files import check_report_path
    from ragwb.settings import shared_file
    from ragwb.sweep.chunking import sweep_chunking
    from ragwb.sweep.grid import load_grid

    if report is not None:
        check_report_path(report)
    path = grid or shared_file("datasets", "chunking-grid.toml")
    points = load_grid(path, confirm=_confirm(yes))
    asked: dict[str, Any] = {
        "corpus": corpus,
        "dataset": dataset,
        "reference": reference,
        "k": k,
        "tokens": tokens,
        "held_out": held_out,
        "by": by,
        "seed": seed,
    }
    teller = Teller(len(points.points), time.monotonic)
    found = sweep_chunking(points, **asked, workers=workers, dask=dask, on_point=teller)
    if not found.measured:
        first = found.failed[0]
        raise RagwbError(
            f"no point was measured, {len(found.failed)} failed; {first.point.name}: {first.error}"
        )
    if case is not None:
        _print_case(found, case, point or [], output)
    else:
        _print(found, output)
    if report is not None:
        _write(found, report, {"grid": path, "case": case, "point": (point or [""])[0], **asked})


def _check_flags(
    *, by: str | None, held_out: float | None, point: list[str] | None, drawn: object
) -> None:
    """Refuse flags that would do nothing without another."""
    if by is not None and held_out is None:
        raise UsageError("--by says how cases are split: give --held-out as well")
    if point and drawn is None:
        raise UsageError("--point says what is drawn of a case: give --case or --report as well")


def _write(found: ChunkingSweep, report: Path, given: Mapping[str, Any]) -> None:
    from ragwb.report.chunking_report import write_chunking_report

    typer.echo("writing the report", err=True)
    # What was not given is not told to the notebook, whose own defaults mean the same.
    known = {name: value for name, value in given.items() if value not in (None, "")}
    parameters = {
        name: str(value.absolute()) if isinstance(value, Path) else value
        for name, value in known.items()
    }
    files = write_chunking_report(found, report, parameters)
    typer.echo(f"report: {files.html} (and .json, .md)", err=True)


def _confirm(yes: bool) -> Callable[[int], bool]:
    def confirm(n_points: int) -> bool:
        if yes or not sys.stdin.isatty():
            return yes
        return typer.confirm(f"{n_points:,} points: build and ask all of them?", err=True)

    return confirm


@dataclass(slots=True)
class Teller:
    """Says on stderr what each point gave, and how long the rest will take.

    Attributes:
        total: points of the sweep.
        clock: seconds.
    """

    total: int
    clock: Callable[[], float]
    done: int = 0
    computed: int = 0
    started: float | None = None

    def __post_init__(self) -> None:
        self.started = self.clock()

    def __call__(self, result: PointResult) -> None:
        """Take note of a result and tell it."""
        self.done += 1
        self.computed += not result.cached
        name = plain(result.point.name, width=_WIDEST_NAME)
        what = "from the cache" if result.cached else "done"
        if result.error is not None:
            what = f"failed: {plain(result.error, width=160)}"
        typer.echo(f"{self.done}/{self.total} {name}: {what}{self._left()}", err=True)

    def _left(self) -> str:
        left = self.total - self.done
        if not left or not self.computed:
            return ""
        # What came from the cache took no time; the rest may be in it too, so this is the most.
        seconds = (self.clock() - (self.started or 0.0)) / self.computed * left
        return f"; at most {_duration(seconds)} left"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def _print(found: ChunkingSweep, output: Format) -> None:
    if output == Format.json:
        print_json(found.to_dict())
    elif output == Format.csv:
        from ragwb.cli.sweep_chunking_table import csv_rows

        print_rows(csv_rows(found), output)
    else:
        from ragwb.cli.sweep_chunking_table import print_overview

        print_overview(found)


def _print_case(found: ChunkingSweep, case: str, points: list[str], output: Format) -> None:
    from ragwb.cli.sweep_chunking_table import piece_rows
    from ragwb.view.chunk_borders import borders_panel

    stretches = found.borders(case, *points)
    if output == Format.json:
        print_json([stretch.to_dict() for stretch in stretches])
    elif output == Format.csv:
        print_rows(piece_rows(stretches), output)
    else:
        unwanted = found.forbidden(case, *points)
        typer.echo(borders_panel(stretches, forbidden=unwanted).text)
