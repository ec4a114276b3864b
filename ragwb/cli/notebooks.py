"""`ragwb report` runs a notebook headless into one HTML file; `ragwb lab` opens the notebooks."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from ragwb.cli.progress import progress_bar
from ragwb.errors import UsageError

notebooks_app = typer.Typer()


@notebooks_app.command(short_help="Run a notebook headless into one HTML file.")
def report(
    notebook: Annotated[str, typer.Argument(help="A path, or a name such as 10_retrieval_run.")],
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            "-p", "--parameter", help="NAME VALUE or NAME=VALUE; JSON, or text as it stands."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The HTML file; default reports/NOTEBOOK.html."),
    ] = None,
) -> None:
    """Run a notebook headless and write one HTML file that needs no network."""
    from ragwb.report.notebook import find_notebook, run_notebook

    path = find_notebook(notebook)
    html = output or Path("reports") / f"{path.stem}.html"
    typer.echo(f"running {path.stem}, a kernel is started for it", err=True)
    with progress_bar(f"running {path.stem}"):
        run_notebook(path, parse_parameters(parameter or []), html, cwd=Path.cwd())
    typer.echo(f"report: {html}", err=True)


def join_parameters(arguments: Sequence[str]) -> list[str]:
    """The arguments of the command line with each `-p NAME VALUE` of `report` as `-p NAME=VALUE`.

    Typer knows options of two values, and options that come several times, but not both at once.
    """
    joined: list[str] = []
    rest = list(arguments)
    if rest[:1] != ["report"]:
        return rest
    while rest:
        joined.append(rest.pop(0))
        is_name = joined[-1] in ("-p", "--parameter") and rest and "=" not in rest[0]
        if is_name and len(rest) > 1:
            joined.append(f"{rest.pop(0)}={rest.pop(0)}")
    return joined


def parse_parameters(pairs: list[str]) -> dict[str, object]:
    """`NAME=VALUE` pairs by name: JSON where the value reads as JSON, else the text itself.

    Raises:
        UsageError: a pair has no `=`, or a name comes twice.
    """
    parameters: dict[str, object] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not (name and equals):
            raise UsageError(f"-p {pair}: needs NAME=VALUE")
        if name in parameters:
            raise UsageError(f"-p {name}: given twice")
        parameters[name] = _read_value(value)
    return parameters


def _read_value(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


@notebooks_app.command(short_help="Open the notebooks in JupyterLab.")
def lab() -> None:
    """Open the notebooks in JupyterLab, as copies in ./notebooks where there are none yet."""
    folder = Path("notebooks")
    copy_notebooks(folder)
    # In a container people are root, which JupyterLab refuses unless told that it is meant.
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    flags = ["--allow-root"] if is_root else []
    os.execv(sys.executable, [sys.executable, "-m", "jupyterlab", str(folder), *flags])


def copy_notebooks(folder: Path) -> None:
    """Put the notebooks that come with ragwb into a folder; what is there already stays."""
    from ragwb.settings import shared_file

    folder.mkdir(parents=True, exist_ok=True)
    for source in sorted(shared_file("notebooks").glob("*.ipynb")):
        if not (folder / source.name).exists():
            shutil.copyfile(source, folder / source.name)
