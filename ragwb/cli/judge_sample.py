"""`ragwb judge sample`: a sheet for people, and how its labels come back."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragwb.cli.judge_options import (
    Items,
    KindOption,
    OfRun,
    RubricFile,
    material_of,
    rubric_of,
)
from ragwb.cli.options import Format, OutputFormat, print_rows
from ragwb.html import plain

if TYPE_CHECKING:
    from ragwb.judge.rubric import Rubric

judge_sample_app = typer.Typer()


@judge_sample_app.command("sample")
def sample_command(
    out: Annotated[Path, typer.Option(help="The sheet, CSV; its key goes beside it.")],
    items: Items = None,
    run: OfRun = None,
    rubric: RubricFile = None,
    kind: KindOption = "answer",
    size: Annotated[int | None, typer.Option(help="Items of the sheet; default 50 or all.")] = None,
    by: Annotated[list[str] | None, typer.Option(help="Tags that make the strata.")] = None,
    seed: Annotated[int, typer.Option(help="Of the drawing; the same, the same sheet.")] = 1,
    output: OutputFormat = Format.table,
) -> None:
    """Draw a stratified sample for blind review: no scores, no models, ids that tell nothing."""
    from ragwb.judge.sampling import SHEET_ITEMS, draw_sample, write_sheet

    asked = rubric_of(rubric, kind)
    _, material = material_of(items, run, asked)
    size = min(SHEET_ITEMS, len(material)) if size is None else size
    sample = draw_sample(material, size, by=by or (), seed=seed)
    key = write_sheet(sample, asked, out)
    print_rows(
        [{"stratum": plain(name), "drawn": n, "of": total} for name, n, total in sample.strata],
        output,
    )
    if size == len(material):
        typer.echo(f"all there are: {size} items", err=True)
    for line in _what_to_do(asked, out, key, rubric, kind):
        typer.echo(line, err=True)


def _what_to_do(asked: Rubric, sheet: Path, key: Path, rubric: Path | None, kind: str) -> list[str]:
    """Who gets which file of a sample, what they write, and how their labels come back."""
    by = ["--kind", kind] if rubric is None else ["--rubric", str(rubric)]
    call = ["ragwb", "judge", "calibrate", "--labels", str(sheet), "--key", str(key), *by]
    values = [
        f"{one.name} (one of {', '.join(plain(value, width=40) for value in one.scale.values)})"
        for one in asked.criteria
    ]
    return [
        f"for the annotators, a copy each: {sheet}",
        f"  to fill in: annotator (their name, in every row), {', '.join(values)}; comment is "
        "free, and what they cannot decide stays empty",
        f"for nobody but you: {key}, the ids behind those of the sheet",
        "when the copies are back, with a --labels for each of them:",
        f"  {shlex.join(call)} --verdicts VERDICTS.jsonl",
        "  VERDICTS.jsonl is what `ragwb judge run` wrote for the same items",
    ]
