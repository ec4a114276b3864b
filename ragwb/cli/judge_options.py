"""What the commands of `ragwb judge` share: the rubric, and what is judged."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragwb.errors import UsageError
from ragwb.html import plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from ragwb.judge.answers import RunAnswer
    from ragwb.judge.items import Item
    from ragwb.judge.rubric import Rubric

    Split = Callable[[list[RunAnswer]], list[RunAnswer]]

Items = Annotated[
    Path | None, typer.Option(help="What to judge, JSON Lines or CSV: item_id and its texts.")
]
OfRun = Annotated[str | None, typer.Option("--run", help="Judge the answers of a saved run.")]
RubricFile = Annotated[
    Path | None, typer.Option("--rubric", help="A rubric's file, or one of --kind.")
]
KindOption = Annotated[
    str, typer.Option("--kind", help="The rubric that comes with ragwb: answer, support, pair.")
]


def rubric_of(path: Path | None, kind: str) -> Rubric:
    """The rubric of a file, else the one of a kind that comes with ragwb."""
    from ragwb.judge.rubric import load_rubric

    return load_rubric(path if path is not None else own_rubric(kind))


def own_rubric(kind: str) -> Path:
    """The file of a rubric that comes with ragwb."""
    from typing import cast

    from ragwb.judge.rubric import MATERIAL, Kind, default_rubric_file

    if kind not in MATERIAL:
        raise UsageError(f"--kind {plain(kind, width=60)}: must be {', '.join(MATERIAL)}")
    return default_rubric_file(cast("Kind", kind))


def material_of(
    items: Path | None, run: str | None, rubric: Rubric, split: Split | None = None
) -> tuple[list[RunAnswer], list[Item]]:
    """What is judged: a file's items, or a run's answers with theirs."""
    from ragwb.judge.items import load_items

    if (items is None) == (run is None):
        raise UsageError("give --items FILE or --run RUN, one of them")
    if items is not None:
        return [], load_items(items, rubric.kind)
    from ragwb.judge.answers import items_of, run_answers_of
    from ragwb.runs.store import load_run

    saved = load_run(str(run))
    answers = run_answers_of(saved)
    n_calls = len(saved.cases())
    if len(answers) < n_calls:
        left = f"{n_calls - len(answers)} of {n_calls} calls of the run"
        typer.echo(f"not judged: {left}, which were refused, asked back or failed", err=True)
    if split is not None and rubric.kind == "support":
        answers = split(answers)
    material = items_of(answers, rubric)
    if not material:
        raise UsageError(
            f"run {plain(run, width=60)} holds nothing that a {rubric.kind} rubric judges"
        )
    return answers, material
