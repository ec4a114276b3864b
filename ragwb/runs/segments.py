"""Columns of which the rows of one key stand together: cut on demand, never made into rows.

A run of 10,000 cases holds two million candidates: texts stay codes, and only what is looked at
becomes Python lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


class Segments:
    """A table of which the rows of one key stand together, as columns that are cheap to cut.

    Args:
        table: its rows, all of one key under one another.
        keys: the columns that make the key; texts or whole numbers.
        values: the columns to cut; texts or floats.

    Attributes:
        spans: first row and the row after the last, by key.
    """

    def __init__(self, table: pa.Table, keys: Sequence[str], values: Sequence[str]) -> None:
        self.spans = _spans(table.select(keys))
        self._columns = {name: _column(table.column(name)) for name in values}

    def texts(self, name: str, start: int, end: int) -> list[Any]:
        """The texts of some rows, None where there is none."""
        codes, names = self._columns[name]
        found: list[Any] = names[codes[start:end]].tolist()
        return found

    def names(self, name: str) -> npt.NDArray[np.object_]:
        """The texts by code, the last one None."""
        found: npt.NDArray[np.object_] = self._columns[name][1]
        return found

    def rows_with(self, name: str, text: str) -> npt.NDArray[np.int64]:
        """The rows that hold a text, ascending."""
        codes, names = self._columns[name]
        return np.flatnonzero(np.isin(codes, np.flatnonzero(names == text)))

    def padded(
        self, texts: str, numbers: str, spans: Sequence[tuple[int, int]]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Some spans of a column of texts and of one of numbers, padded to the longest, a row each.

        Args:
            texts: name of the column of texts.
            numbers: name of the column of numbers.
            spans: first row and the row after the last.
        Returns:
            Codes of the texts (see `names`), -1 beyond a span's end; numbers, NaN where there is
            none.
        """
        limits = np.array(spans, dtype=np.int64).reshape(-1, 2)
        lengths = limits[:, 1] - limits[:, 0]
        offsets = np.arange(lengths.max(initial=0))
        held = offsets < lengths[:, None]
        rows = (limits[:, :1] + offsets)[held]
        codes = np.full(held.shape, -1, dtype=np.int64)
        codes[held] = self._columns[texts][0][rows]
        values = np.full(held.shape, np.nan)
        values[held] = self._columns[numbers][0][rows]
        return codes, values

    def numbers(self, name: str, start: int, end: int) -> list[Any] | None:
        """The numbers of some rows, None where there is none; None when there are none at all."""
        values, _ = self._columns[name]
        cut = values[start:end]
        unknown = np.isnan(cut)
        if not unknown.any():
            return cut.tolist() if len(cut) else None
        if unknown.all():
            return None
        return [None if value != value else value for value in cut.tolist()]


def _column(column: pa.ChunkedArray) -> tuple[Any, Any]:
    """Numbers as they are; texts as codes, and the text of each code (the last one: none)."""
    if pa.types.is_floating(column.type):
        return column.to_numpy(), None
    array = _encoded(column)
    codes = array.indices.fill_null(-1).to_numpy()
    return codes, np.array([*array.dictionary.to_pylist(), None], dtype=object)


def _encoded(column: pa.ChunkedArray) -> pa.DictionaryArray:
    whole = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    return whole.unify_dictionaries().combine_chunks()


def _spans(keys: pa.Table) -> dict[tuple[Any, ...], tuple[int, int]]:
    """First row and the row after the last of each key; a key's rows stand together."""
    n_rows = keys.num_rows
    if not n_rows:
        return {}
    columns = [_key_column(column) for column in keys.columns]
    is_new = np.zeros(n_rows, dtype=bool)
    is_new[0] = True
    for codes, _ in columns:
        is_new[1:] |= codes[1:] != codes[:-1]
    starts = np.flatnonzero(is_new)
    ends = np.append(starts[1:], n_rows)
    names = (
        codes[starts].tolist() if names is None else names[codes[starts]].tolist()
        for codes, names in columns
    )
    return dict(
        zip(zip(*names, strict=True), zip(starts.tolist(), ends.tolist(), strict=True), strict=True)
    )


def _key_column(column: pa.ChunkedArray) -> tuple[Any, Any]:
    return (column.to_numpy(), None) if pa.types.is_integer(column.type) else _column(column)
