"""Whether a run asked for answers or only retrieved, and the newest run that did ask for them."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq

from ragwb.errors import RunError, UsageError
from ragwb.runs.store import Run, load_manifest
from ragwb.runs.tables import CASES
from ragwb.runs.writer import MANIFEST

Kind = Literal["retrieval", "answers"]


@dataclass(frozen=True, slots=True)
class Asked:
    """What the calls of a sealed run came to.

    Attributes:
        kind: retrieval or answers; None when no call succeeded, or the table cannot be read.
        n_errors: calls that failed for good; None when the table cannot be read.
    """

    kind: Kind | None
    n_errors: int | None


def asked_of(folder: Path) -> Asked:
    """What a sealed run asked for and how many of its calls failed, from its table of cases."""
    try:
        table = pq.read_table(folder / CASES, columns=["status", "mode"])
    except (OSError, pa.ArrowException):
        return Asked(None, None)
    status = Counter(table.column("status").to_pylist())
    n_ok, n_modes = status["ok"], table.num_rows - table.column("mode").null_count
    # A service that answers says in which mode; one that only retrieves has none.
    kind: Kind | None = "answers" if n_modes else "retrieval" if n_ok else None
    return Asked(kind, table.num_rows - n_ok)


def without_answers(run: Run) -> UsageError:
    """The error of a run that only retrieved where answers are needed: which run has them."""
    newest = _newest_answers(run.path.parent)
    way = (
        f"the newest run of answers is {newest}" if newest else "make one with `ragwb answer-eval`"
    )
    return UsageError(f"run {run.run_id} only retrieved: {way}")


def _newest_answers(folder: Path) -> str | None:
    """The id of the newest sealed run of answers in a folder of runs."""
    found = []
    for path in folder.iterdir() if folder.is_dir() else ():
        with suppress(RunError):
            if (path / MANIFEST).is_file() and (manifest := load_manifest(path)).sealed:
                found.append((manifest.created_at, path.name, path))
    newest_first = sorted(found, reverse=True)
    return next((name for _, name, at in newest_first if asked_of(at).kind == "answers"), None)
