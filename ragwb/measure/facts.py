"""What scoring needs of each case besides its hits: how its calls went, what it is counted by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ragwb.golden.passages import NO_GROUPS, ResolvedCase
from ragwb.measure.sealed import read_sealed

FILE = "facts.parquet"
TAG = "tags."
"""What the name of a tag's column begins with."""

FACTS = pa.schema(
    [
        ("case_id", pa.string()),
        ("tier", pa.string()),
        ("set", pa.string()),
        ("risk", pa.string()),
        ("weight", pa.float64()),
        ("excluded", pa.string()),
        ("n_answered", pa.int32()),
        ("error", pa.string()),
        ("has_passages", pa.bool_()),
    ]
)


@dataclass(frozen=True, slots=True)
class _Answers:
    """What a case's calls came to: how many answered, and the first error in words."""

    n_ok: int = 0
    error: str | None = None


def case_facts(cases: Iterable[ResolvedCase], results: pd.DataFrame) -> pa.Table:
    """The facts of each case, from which scoring needs no golden case and no answer any more.

    Args:
        cases: all golden cases, resolved.
        results: a row a (case_id, repeat): status "ok" or "error", error.

    Returns:
        A row a case, in their order, as `FACTS`, then a column tags.<name> a tag. excluded: why its
        label cannot be scored, else null; n_answered: repeats that are ok; error: the first one in
        words, null when no call failed; has_passages: whether it names its evidence as passages.
    """
    answers = _answers(results)
    rows = [_row(case, answers.get(case.case.id, _Answers())) for case in cases]
    tags = dict.fromkeys(name for row in rows for name in row if name.startswith(TAG))
    schema = pa.schema([*FACTS, *(pa.field(name, pa.string()) for name in tags)])
    return pa.Table.from_pylist(rows, schema)


def save_facts(facts: pa.Table, folder: Path) -> None:
    """Writes facts.parquet into an existing folder."""
    pq.write_table(facts, folder / FILE, compression="zstd")


def load_facts(folder: Path) -> pa.Table:
    """The facts that `save_facts` wrote into a folder.

    Raises:
        DataError: the file is absent, is no Parquet, or lacks a column.
    """
    return read_sealed(folder / FILE, FACTS)


def tag_columns(names: Sequence[str]) -> list[str]:
    """The columns of tags among the names, in their order."""
    return [name for name in names if name.startswith(TAG)]


def _answers(results: pd.DataFrame) -> dict[str, _Answers]:
    answers: dict[str, _Answers] = {}
    columns = (results[name].tolist() for name in ("case_id", "repeat", "status", "error"))
    for case_id, repeat, status, error in zip(*columns, strict=True):
        so_far = answers.get(case_id, _Answers())
        if status == "ok":
            answers[case_id] = _Answers(so_far.n_ok + 1, so_far.error)
        else:
            words = f"repeat {repeat}: {error}" if repeat > 1 else str(error)
            answers[case_id] = _Answers(so_far.n_ok, so_far.error or words)
    return answers


def _row(resolved: ResolvedCase, answers: _Answers) -> dict[str, Any]:
    case = resolved.case
    has_label = resolved.excluded is None and resolved.groups
    return {
        "case_id": case.id,
        "tier": case.tier,
        "set": case.set,
        "risk": case.risk,
        "weight": case.weight,
        "excluded": None if has_label else resolved.excluded or NO_GROUPS,
        "n_answered": answers.n_ok,
        "error": answers.error,
        "has_passages": bool(resolved.spans),
        **{f"{TAG}{name}": value for name, value in case.tags.items()},
    }
