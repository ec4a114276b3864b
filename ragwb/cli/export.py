"""`ragwb export`: a run as records that other tools read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragwb.cli.runs import RunName
from ragwb.errors import UsageError
from ragwb.html import plain, terminal_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ragwb.runs.store import Run

export_app = typer.Typer()

FORMATS = ("layers",)


@export_app.command()
def export(
    run: RunName,
    format_: Annotated[
        str, typer.Argument(metavar="FORMAT", help="layers: one layered record a case.")
    ],
    to: Annotated[
        Path | None, typer.Option("--to", "-o", help="The file to write; by default stdout.")
    ] = None,
) -> None:
    """Write a run as JSON Lines: what each layer came to, a record a case."""
    import json

    from ragwb.runs.layers import write_layers
    from ragwb.runs.store import load_run

    if format_ not in FORMATS:
        raise UsageError(f"format {plain(format_, width=60)!r}: give one of {', '.join(FORMATS)}")
    records = _layers(load_run(run))
    if to is None:
        for record in records:
            typer.echo(terminal_json(json.dumps(record, ensure_ascii=False, allow_nan=False)))
        return
    write_layers(records, to)
    typer.echo(str(to))


def _layers(run: Run) -> Iterator[dict[str, Any]]:
    """The layered records of a run, with what triage finds in its saved data."""
    from ragwb.runs.answered import answered_cases, score_answers
    from ragwb.runs.layers import layer_records
    from ragwb.triage.attribute import triage

    has_answers = any(one.mode is not None for one in answered_cases(run))
    scores = score_answers(run) if has_answers else None
    found = triage(run, scores=scores).cases
    verdicts = (case.verdict for case in found)
    findings = {one.case_id: (one.stage, one.reason, one.repeat) for one in verdicts}
    return layer_records(run, scores=scores, findings=findings)
