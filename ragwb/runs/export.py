"""A run's tables as files that other tools read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ragwb.errors import UsageError
from ragwb.html import plain
from ragwb.runs.files import disk_faults
from ragwb.runs.store import Run

FORMATS = ("csv", "parquet", "jsonl")


def _hit_frame(run: Run) -> pd.DataFrame:
    frame: pd.DataFrame = run.hits().groups.to_pandas()
    return frame


TABLES: dict[str, Callable[[Run], pd.DataFrame]] = {
    "cases": Run.cases,
    "candidates": Run.candidates,
    "filtered": Run.filtered,
    "chunks": Run.chunks,
    "hits": _hit_frame,
    "facts": lambda run: run.facts().to_pandas(),
    "coverage": lambda run: run.coverage().to_pandas(),
}


def export_run(
    run: Run, folder: Path, file_format: str, tables: tuple[str, ...] = ()
) -> list[Path]:
    """Write tables of a run into a folder, one file a table; files there are replaced.

    A CSV cell that a spreadsheet would take for a formula begins with an apostrophe: questions and
    chunks are other people's text. Lists and maps are JSON in CSV.

    Args:
        run: the run.
        folder: made when it is not there.
        file_format: csv, parquet or jsonl.
        tables: names of `TABLES`; all when empty.

    Returns:
        The files, in the order of the tables.

    Raises:
        UsageError: an unknown format or table.
        RunError: a file cannot be written.
    """
    if file_format not in FORMATS:
        raise UsageError(
            f"format {plain(file_format, width=60)!r}: give one of {', '.join(FORMATS)}"
        )
    for name in tables:
        if name not in TABLES:
            raise UsageError(f"table {plain(name, width=60)!r}: give one of {', '.join(TABLES)}")
    written = []
    with disk_faults(folder, "export again, or give another folder"):
        folder.mkdir(parents=True, exist_ok=True)
        for name in tables or TABLES:
            path = folder / f"{name}.{file_format}"
            part = path.with_name(f"{path.name}.part")
            _write(run, name, part, file_format)
            part.replace(path)
            written.append(path)
    return written


def _write(run: Run, name: str, path: Path, file_format: str) -> None:
    if file_format == "parquet":
        with (run.path / f"{name}.parquet").open("rb") as held, path.open("wb") as copy:
            shutil.copyfileobj(held, copy)
        return
    frame = TABLES[name](run)
    if file_format == "jsonl":
        plain_maps = {
            str(column): frame[column].map(lambda value: dict(value) if _is_map(value) else value)
            for column in frame
            if pd.api.types.is_object_dtype(frame[column])
        }
        frame = frame.assign(**plain_maps)
        frame.to_json(path, orient="records", lines=True, force_ascii=False)
    else:
        safe = frame.copy()
        for column in frame:
            if not pd.api.types.is_numeric_dtype(frame[column]):
                safe[column] = frame[column].astype(object).map(_cell)
        safe.to_csv(path, index=False, lineterminator="\n")


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return f"'{value}" if value.startswith(("=", "+", "-", "@", "\t", "\r")) else value
    if value is None or isinstance(value, float):
        return None
    if isinstance(value, np.ndarray):
        value = value.tolist()
    return json.dumps(dict(value) if _is_map(value) else value, ensure_ascii=False)


def _is_map(value: Any) -> bool:
    """Whether a cell is a map, which pandas holds as a list of pairs."""
    is_list = isinstance(value, list) and len(value) > 0
    return is_list and all(isinstance(entry, tuple) for entry in value)
