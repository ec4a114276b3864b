"""What a run asked for, answers or only retrievals, and what the time of one of its calls is of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq

from ragwb.errors import RunError, UsageError
from ragwb.runs.listing import RunEntry, runs_in
from ragwb.runs.store import Run
from ragwb.runs.tables import CASES

Kind = Literal["retrieval", "answers"]
Timed = Literal["retrieval", "answer", "model"]

CONTEXTS_FROM = "contextsFrom"
"""In `service.json`: the run whose saved contexts a model answered over; no service was asked."""

TIMED_WORDS: Mapping[Timed, str] = {
    "retrieval": "a retrieval",
    "answer": "a retrieval and its answer",
    "model": "the call of the model alone, over saved contexts",
}
"""What the milliseconds of a call are of, in words."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the calls of a run came to.

    Attributes:
        kind: retrieval or answers; None where nothing tells (see `kind_of`), or the table cannot be
            read.
        n_errors: calls that failed for good; None when the table cannot be read, or the run is not
            sealed.
    """

    kind: Kind | None
    n_errors: int | None


def asked_of(entry: RunEntry) -> Asked:
    """What a sealed run asked for and how many of its calls failed, from its table of cases."""
    if entry.status != "sealed" or entry.manifest is None:
        return Asked(None, None)
    try:
        n, n_ok, n_modes = _counts(entry.path)
    except (OSError, pa.ArrowException):
        return Asked(None, None)
    return Asked(_kind(n_ok, n_modes, entry.manifest.answer_model), n - n_ok)


def kind_of(run: Run) -> Kind | None:
    """What a sealed run asked for.

    A call that succeeded tells, by its answer. Where none did, a model that the manifest names
    does: a run of retrievals leaves it out. None where neither tells: no call succeeded, and the
    service did not name its model.

    Raises:
        RunError: the table of cases is absent or cannot be read.
    """
    try:
        _, n_ok, n_modes = _counts(run.path)
    except (OSError, pa.ArrowException) as error:
        raise RunError(f"{run.path / CASES}: cannot be read: {type(error).__name__}") from error
    return _kind(n_ok, n_modes, run.manifest.answer_model)


def _counts(folder: Path) -> tuple[int, int, int]:
    """Number of calls, of those that succeeded, and of those that came back with a mode."""
    table = pq.read_table(folder / CASES, columns=["status", "mode"])
    n_ok = Counter(table.column("status").to_pylist())["ok"]
    return table.num_rows, n_ok, table.num_rows - table.column("mode").null_count


def timed_of(run: Run, kind: Kind | None) -> Timed | None:
    """What the time of one call of a run is of; None where its kind is not known.

    Args:
        run: a sealed run.
        kind: what it asked for, by `kind_of`.
    """
    if run.service().get(CONTEXTS_FROM) is not None:
        return "model"
    if kind is None:
        return None
    return "answer" if kind == "answers" else "retrieval"


def _kind(n_ok: int, n_modes: int, answer_model: str | None) -> Kind | None:
    # A service that answers says in which mode; one that only retrieves has none.
    if n_modes or (not n_ok and answer_model is not None):
        return "answers"
    return "retrieval" if n_ok else None


def without_answers(run: Run) -> UsageError:
    """The error of a run that only retrieved where answers are needed: which run has them."""
    entries = runs_in(run.path.parent)
    newest = next((one.run_id for one in entries if asked_of(one).kind == "answers"), None)
    way = (
        f"the newest run of answers is {newest}" if newest else "make one with `ragwb answer-eval`"
    )
    return UsageError(f"run {run.run_id} only retrieved: {way}")
