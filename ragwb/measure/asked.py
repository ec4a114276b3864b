"""Which results were asked for: pairs of a case and a repeat, and where each one stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ragwb.errors import DataError
from ragwb.measure.ragged import Ints, numbered

Int32s = npt.NDArray[np.int32]
AskedPairs: TypeAlias = Sequence[tuple[str, int]] | Any
"""Pairs (case_id, repeat), or a pyarrow table with these columns."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The pairs (case, repeat) that answered, in their order.

    Attributes:
        case_ids: distinct case ids.
        case: index into case_ids, one entry a pair; repeat: from 1.
        row_of: pair of (case, place of the repeat among `repeats`), -1 where not asked.
        repeats: distinct repeats in ascending order.
    """

    case_ids: pa.StringArray
    case: Int32s
    repeat: Int32s
    row_of: Int32s
    repeats: Ints

    def __len__(self) -> int:
        return len(self.case)

    @classmethod
    def of(cls, pairs: AskedPairs) -> Asked:
        """The pairs of a sequence or of a table with case_id and repeat.

        Raises:
            DataError: a pair comes twice.
        """
        table = pairs if isinstance(pairs, pa.Table) else _table_of(pairs)
        case_id = encoded(table.column("case_id"))
        case = case_id.indices.to_numpy()
        repeat = table.column("repeat").to_numpy().astype(np.int32)
        repeats, place = numbered(repeat)
        row_of = np.full((len(case_id.dictionary), len(repeats)), -1, dtype=np.int32)
        row_of[case, place] = np.arange(len(case))
        if twice := np.flatnonzero(row_of[case, place] != np.arange(len(case))).tolist():
            name = case_id.dictionary[int(case[twice[0]])].as_py()
            raise DataError(f"asked: case {name!r}, repeat {repeat[twice[0]]} comes twice")
        return cls(case_id.dictionary, case, repeat, row_of, repeats.astype(np.int64))

    def rows(self, case: Int32s, repeat: Int32s) -> Int32s:
        """The pair of each (case, repeat); -1 where it was not asked or the case is -1."""
        if not len(self):
            return np.full(len(case), -1, dtype=np.int32)
        place = np.minimum(np.searchsorted(self.repeats, repeat), len(self.repeats) - 1)
        rows = self.row_of[case, place]
        rows[(case < 0) | (self.repeats[place] != repeat)] = -1
        return rows


def encoded(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """A column of texts as one array of indexes into its distinct texts."""
    if pa.types.is_dictionary(column.type):
        return column.unify_dictionaries().combine_chunks()
    return column.cast(pa.string()).combine_chunks().dictionary_encode()


def cases_in(known: pa.StringArray, case_ids: pa.StringArray) -> Int32s:
    """The place of each case id among the known ones, -1 where it is not there."""
    if known.equals(case_ids):
        return np.arange(len(known), dtype=np.int32)  # the common case, and far cheaper
    place: Int32s = pc.fill_null(pc.index_in(case_ids, value_set=known), -1).to_numpy()
    return place


def _table_of(pairs: Sequence[tuple[str, int]]) -> pa.Table:
    case_ids, repeats = zip(*pairs, strict=True) if pairs else ((), ())
    schema = pa.schema([("case_id", pa.string()), ("repeat", pa.int32())])
    return pa.table([list(case_ids), list(repeats)], schema=schema)
