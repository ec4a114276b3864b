"""Figures in words: how a value, its counts and its interval are written everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd


def value_words(value: float, counts: object) -> str | None:
    """A value with four digits and its counts, if there are any; None when it is undefined."""
    if pd.isna(value):
        return None
    # A frame holds NaN where there are no counts.
    return f"{value:.4f}" + (f" ({counts})" if isinstance(counts, str) else "")


def interval_words(low: float, high: float) -> str | None:
    """The ends of an interval; None when there is none."""
    return None if pd.isna(low) else f"{low:.4f} to {high:.4f}"


FIGURE_COLUMNS = ("metric", "value", "95 % interval", "weighted", "n")


def figure_rows(summary: pd.DataFrame) -> list[dict[str, object]]:
    """The figures of a summary as people read them, as `FIGURE_COLUMNS`."""
    return [
        {
            "metric": row["metric"],
            "value": value_words(row["value"], row["counts"]),
            "95 % interval": interval_words(row["low"], row["high"]),
            "weighted": value_words(row["weighted"], None),
            "n": f"{row['n']}",
        }
        for row in summary.to_dict("records")
    ]


def json_value(value: Any) -> Any:
    """A value for JSON: null where pandas holds no value."""
    return None if pd.isna(value) else value


def json_number(value: Any) -> float | None:
    """A number for JSON: null where pandas holds no value."""
    return None if pd.isna(value) else float(value)


def json_row(row: Mapping[Any, Any]) -> dict[str, Any]:
    """A row of a frame for JSON: null where pandas holds no value; lists as they are."""
    return {str(name): _json(value) for name, value in row.items()}


def _json(value: Any) -> Any:
    if isinstance(value, list):
        return value
    return json_number(value) if isinstance(value, float) else json_value(value)


def weighted_mean(values: npt.NDArray[np.float64], weights: npt.NDArray[np.float64]) -> float:
    """The mean by traffic weight; NaN when there is no value, or all weights are 1."""
    if not len(values) or np.all(weights == 1):
        return float("nan")
    return float(np.average(values, weights=weights))


def text_rows(rows: list[dict[str, object]], columns: tuple[str, ...]) -> list[str]:
    """Rows as lines of aligned columns under their names; None is –."""
    table = [list(columns), *([str(row[name] or "–") for name in columns] for row in rows)]
    widths = [max(len(row[i]) for row in table) for i in range(len(columns))]
    lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in table]
    return [line.rstrip() for line in lines]
