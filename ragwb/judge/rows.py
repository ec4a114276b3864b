"""Rows of a JSON Lines or CSV file with the line that each stands on."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ragwb.errors import DataError, Fault
from ragwb.files import read_text, write_whole
from ragwb.html import plain
from ragwb.judge.strict_json import read_strictly

Row = tuple[str, dict[str, Any]]
MOST_FAULTS = 1000
# Verdicts on tens of thousands of items, each with its rationale; more would not fit in memory.
MOST_ROWS_BYTES = 500_000_000
# A cell holds an answer or its context; csv's own limit of 128 kB is below some of them.
_LARGEST_CELL = 16_000_000
# A spreadsheet runs a cell that begins so; the writer puts an apostrophe before it.
_FORMULA = ("=", "+", "-", "@")
# What spreadsheets of other languages put between cells.
_OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs", "；": "semicolons"}


def read_rows(path: Path) -> Iterator[Row]:
    """Each row of a file as (path:line, fields); `.csv` has a head line, all else is JSON Lines.

    Raises:
        DataError: the file cannot be read, has more than `MOST_ROWS_BYTES`, is not UTF-8, or a line
            is no object; a head line names a column twice, or separates by something else than
            commas; names the line.
    """
    text = read_text(path, DataError, most=MOST_ROWS_BYTES)
    return _csv_rows(path, text) if path.suffix.lower() == ".csv" else _json_rows(path, text)


def raise_faults(faults: list[Fault]) -> None:
    """Raise all faults of a file as one error, when there are any.

    Raises:
        DataError: with every fault, up to `MOST_FAULTS`.
    """
    if faults:
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        raise DataError(f"{faults[0]}{more}", faults[:MOST_FAULTS])


def write_csv(path: Path, columns: list[str], rows: list[dict[str, str]]) -> None:
    """Write rows for a spreadsheet: a byte order mark, and no cell that it would run."""
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, lineterminator="\r\n")
    writer.writeheader()
    writer.writerows({name: _inert(text) for name, text in row.items()} for row in rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Excel takes a file without the mark for one in the system's own encoding.
    write_whole(path, out.getvalue().encode("utf-8-sig"))


def _inert(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) else text


def _csv_rows(path: Path, text: str) -> Iterator[Row]:
    csv.field_size_limit(_LARGEST_CELL)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    names: list[str] | None = None
    try:
        for cells in reader:
            where = f"{path}:{reader.line_num}"
            if names is None:
                names = _columns(where, cells)
            elif cells:
                yield where, _by_name(where, names, cells)
    except csv.Error as error:
        raise DataError(f"{path}:{reader.line_num}: not CSV: {error}") from error


def _columns(where: str, cells: list[str]) -> list[str]:
    """The names of a head line, each once; a spreadsheet may leave some empty at its end."""
    names = [cell.strip() for cell in cells]
    for sign, name in _OTHER_SEPARATORS.items():
        if len(names) == 1 and sign in names[0]:
            raise DataError(
                f"{where}: looks separated by {name}: save it with commas between the cells "
                "(in a spreadsheet: CSV UTF-8, comma delimited)"
            )
    twice = next((name for name in names if name and names.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"{where}: the column {plain(twice, width=60)} stands twice: keep one")
    return names


def _by_name(where: str, names: list[str], cells: list[str]) -> dict[str, str]:
    if len(cells) != len(names):
        raise DataError(
            f"{where}: not as many cells as the head line has: {len(cells)}, not {len(names)}"
        )
    row = {name: cell.strip() for name, cell in zip(names, cells, strict=True) if name}
    if any(cell.strip() for name, cell in zip(names, cells, strict=True) if not name):
        raise DataError(f"{where}: a value in a column that the head line gives no name")
    return row


def _json_rows(path: Path, text: str) -> Iterator[Row]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = read_strictly(line)
        except ValueError as error:
            raise DataError(f"{path}:{number}: {error}") from error
        if not isinstance(row, dict):
            raise DataError(f"{path}:{number}: not an object")
        yield f"{path}:{number}", row


def name_of(said: Any) -> str:
    """An id or an annotator's name as text; empty where it is none."""
    return "" if said is None or isinstance(said, bool | list | dict) else str(said).strip()
