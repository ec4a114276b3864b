"""What several commands share: reading options, and printing rows in the asked format."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from ragwb.errors import UsageError
from ragwb.html import terminal_json, visible


class Format(StrEnum):
    """How results are printed on stdout."""

    table = "table"
    json = "json"
    csv = "csv"


Verdicts = Annotated[
    list[Path] | None, typer.Option(help="A judge's verdicts on the run's answers.")
]
Rubrics = Annotated[list[Path] | None, typer.Option(help="The rubric that the verdicts follow.")]
OutputFormat = Annotated[Format, typer.Option("--format", help="How results go to stdout.")]


def parse_ks(text: str | None, *, top_k: int) -> list[int] | None:
    """The Ks of `--k 1,3,5`, sorted and distinct; None when none were given.

    Raises:
        UsageError: one is not a whole number from 1 to 100, or lies beyond top K.
    """
    from ragwb.records import MAX_TOP_K

    if not 1 <= top_k <= MAX_TOP_K:
        raise UsageError(f"--top-k {top_k}: must be a whole number from 1 to {MAX_TOP_K}")
    if text is None:
        return None
    ks = sorted({_parse_k(part.strip(), MAX_TOP_K) for part in text.split(",")})
    if ks[-1] > top_k:
        raise UsageError(f"--k {ks[-1]}: nothing was asked for beyond top K = {top_k}")
    return ks


def _parse_k(text: str, largest: int) -> int:
    if not (re.fullmatch("[0-9]{1,3}", text) and 1 <= int(text) <= largest):
        raise UsageError(f"--k {text!r}: must be whole numbers from 1 to {largest}, such as 1,3,5")
    return int(text)


def parse_identities(pairs: Sequence[str]) -> dict[str, Path]:
    """`LABEL=TOKEN_FILE` pairs by label.

    Raises:
        UsageError: a pair has no label or no file, a label comes twice, or a file is not there.
    """
    identities: dict[str, Path] = {}
    for pair in pairs:
        label, equals, name = pair.partition("=")
        if not (label and equals and name):
            raise UsageError("--identity needs LABEL=TOKEN_FILE")
        if label in identities:
            raise UsageError(f"--identity {label}: given twice")
        if not Path(name).is_file():
            raise UsageError(f"--identity {label}: no file {name}")
        identities[label] = Path(name)
    return identities


def print_json(value: object) -> None:
    """One JSON value to stdout; a terminal cannot be driven by what it holds."""
    text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)
    typer.echo(terminal_json(text))


def print_rows(
    rows: Sequence[Mapping[str, Any]], output: Format, *, with_head: bool = True
) -> None:
    """Rows of the same keys to stdout; NaN and None are unknown: null, an empty cell or –.

    Args:
        rows: what is printed.
        output: how.
        with_head: whether CSV begins with the names; without them rows go on after others.
    """
    clean = [{name: _known(value) for name, value in row.items()} for row in rows]
    if output == Format.json:
        print_json(clean)
        return
    columns = list(clean[0]) if clean else []
    if output == Format.csv:
        writer = csv.DictWriter(sys.stdout, columns, lineterminator="\n")
        if with_head:
            writer.writeheader()
        writer.writerows({name: _csv_cell(value) for name, value in row.items()} for row in clean)
        return
    # A column without a single known value says nothing in a table.
    columns = [name for name in columns if any(row[name] is not None for row in clean)]
    from ragwb.view.panel import text_table

    typer.echo(
        text_table([{n: _shown(v) for n, v in row.items()} for row in clean], columns)
        if clean
        else "none"
    )


def _csv_cell(value: Any) -> Any:
    """A cell that neither drives a terminal nor is run as a formula by a spreadsheet."""
    if not isinstance(value, str):
        return value
    text = visible(value)
    return f"'{text}" if text.lstrip().startswith(("=", "+", "-", "@")) else text


def _known(value: Any) -> Any:
    return None if isinstance(value, float) and value != value else value


def _shown(value: Any) -> Any:
    return f"{value:.4f}".rstrip("0").rstrip(".") if isinstance(value, float) else value
