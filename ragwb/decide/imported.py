"""Figures that were made elsewhere, checked before anything is decided by them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from ragwb.errors import DataError, Fault
from ragwb.html import plain
from ragwb.measure.answer_scores import FIGURES
from ragwb.measure.coverage import FIGURES as PASSAGE_FIGURES
from ragwb.measure.metric import HEADLINE

RATES = frozenset({*HEADLINE, *PASSAGE_FIGURES, *FIGURES} - {"forbidden_claims"})
"""Figures that lie in [0, 1], by their name without a cutoff."""

STATUSES = ("scored", "excluded", "error")
_DEFAULTS: Mapping[str, Any] = {
    "case_version": 1,
    "label": "",
    "status": "scored",
    "reason": None,
    "unstable": False,
    "tier": "blocking",
    "set": "core",
    "risk": "normal",
    "weight": 1.0,
    "access": None,
    "question": None,
    "mode": None,
}


def checked_frame(
    given: pd.DataFrame | Sequence[Mapping[str, Any]],
    *,
    name: str,
    k: int,
    metrics: tuple[str, ...],
) -> pd.DataFrame:
    """A frame of figures with every column of `Outcomes.frame`, and latency_ms.

    Args:
        given: a row a case. In rows of Python values NaN is a fault, for None says undefined; in a
            numeric column of pandas it is how undefined is held.
        name: what the figures are called, for the messages.
        k: the cut that they were made at.
        metrics: columns of figures.

    Raises:
        DataError: see `outcomes.outcomes_from`.
    """
    frame = given if isinstance(given, pd.DataFrame) else _frame(given)
    frame = frame.reset_index(drop=True)
    missing = [column for column in ("case_id", *metrics) if column not in frame]
    if missing:
        raise DataError(f"{plain(name)}: no column {missing[0]!r}; there are: {_names(frame)}")
    known = frame.assign(**{column: _told(frame, column) for column in _DEFAULTS})
    _refuse([*_id_faults(name, known), *_figure_faults(name, known, metrics)])
    numbers = {column: known[column].astype("float64") for column in metrics}
    latency = known["latency_ms"] if "latency_ms" in known else pd.Series(math.nan, known.index)
    known = known.assign(**numbers, latency_ms=latency.astype("float64"))
    is_told = "failed" in known
    known = known.assign(
        weight=known["weight"].astype("float64"),
        case_version=known["case_version"].astype("int64"),
        unstable=known["unstable"].astype(bool),
        permission=known.get("permission", known["access"].notna()).astype(bool),
        failed=_failed(known, k),
    )
    _refuse(list(_status_faults(name, known, is_told=is_told)))
    return known


def _frame(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Rows of Python values as they were given; what one of them leaves out is None."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    values = [[row.get(name) for name in columns] for row in rows]
    return pd.DataFrame(values, columns=columns, dtype="object")


def _told(frame: pd.DataFrame, column: str) -> pd.Series[Any]:
    """A column as given, and its default where a case says nothing."""
    default = _DEFAULTS[column]
    if column not in frame:
        return pd.Series([default] * len(frame), index=frame.index)
    return frame[column] if default is None else frame[column].where(frame[column].notna(), default)


def _names(frame: pd.DataFrame) -> str:
    return plain(", ".join(str(column) for column in frame.columns), width=200) or "none"


def _refuse(faults: Sequence[Fault]) -> None:
    if faults:
        more = f" (and {len(faults) - 1} more faults)" if len(faults) > 1 else ""
        raise DataError(f"{faults[0]}{more}", faults)


def _id_faults(name: str, frame: pd.DataFrame) -> Iterator[Fault]:
    ids = frame["case_id"]
    for row in frame.index[ids.isna() | ids.astype(str).eq("")]:
        yield Fault(f"{plain(name)} row {row + 1}", "case_id", "is empty: name the case")
    for case_id in ids[ids.duplicated() & ids.notna()].unique():
        yield Fault(_where(name, case_id), "case_id", "comes twice: keep one row a case")


def _figure_faults(name: str, frame: pd.DataFrame, metrics: tuple[str, ...]) -> Iterator[Fault]:
    for column in (*metrics, *(["latency_ms"] if "latency_ms" in frame else [])):
        values = zip(frame["case_id"].tolist(), frame[column].tolist(), strict=True)
        by_value = frame[column].dtype == object
        for case_id, value in values:
            if message := _fault_of(value, column, by_value=by_value):
                yield Fault(_where(name, case_id), column, message)


def _fault_of(value: Any, column: str, *, by_value: bool) -> str | None:
    """What is wrong with a figure; `by_value` when NaN would have been given as a number."""
    if value is None or value is pd.NA:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        number = getattr(value, "item", lambda: None)()
        if isinstance(number, bool) or not isinstance(number, int | float):
            return f"is {plain(repr(value), width=40)}: give a number, or null where undefined"
        value = number
    if math.isnan(value):
        return "is NaN: give null where it is undefined" if by_value else None
    if math.isinf(value):
        return "is infinite: give a number, or null where undefined"
    if column.partition("@")[0] in RATES and not 0 <= value <= 1:
        return f"is {value:g}: it goes from 0 to 1"
    return f"is {value:g}: it cannot be negative" if column == "latency_ms" and value < 0 else None


def _failed(frame: pd.DataFrame, k: int) -> pd.Series[Any]:
    """Whether each case failed; from its recall where nothing says so, null where nothing can."""
    if "failed" in frame:
        return frame["failed"].astype("boolean")
    recall = frame.get(f"recall@{k}")
    if recall is None:
        return pd.Series(pd.NA, index=frame.index, dtype="boolean")
    unknown = recall.isna() | (frame["status"] == "error")
    return (recall < 1).astype("boolean").mask(unknown)


def _status_faults(name: str, frame: pd.DataFrame, *, is_told: bool) -> Iterator[Fault]:
    columns = (frame[column].tolist() for column in ("case_id", "status", "failed"))
    rows = zip(*columns, strict=True)
    for case_id, status, one in rows:
        where = _where(name, case_id)
        if status not in STATUSES:
            said = plain(repr(status), width=40)
            yield Fault(where, "status", f"is {said}: give {', '.join(STATUSES)}")
        elif status == "scored" and is_told and one is pd.NA:
            yield Fault(where, "failed", "is null although the case is scored: give true or false")
        elif status == "error" and is_told and one is not pd.NA:
            yield Fault(where, "failed", "is given although the call failed: give null")


def _where(name: str, case_id: object) -> str:
    return f"{plain(name)} case {plain(case_id, width=80)}"
