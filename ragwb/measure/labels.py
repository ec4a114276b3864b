"""What must and what must not come back, as columns: evidence groups, forbidden chunks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ragwb.errors import DataError
from ragwb.measure.asked import encoded
from ragwb.measure.background import in_background
from ragwb.measure.ideal import greedy_gains
from ragwb.measure.ragged import Ints, numbered, offsets_of

Int32s = npt.NDArray[np.int32]
Hashes = npt.NDArray[np.uint64]

PART_ROWS = 100_000
"""Label rows that are worked on at a time: their columns stay in the cache and soon go."""

_LOW = 0xFFFFFFFF
_NO_TEXTS = pa.array([], type=pa.string())

LABEL_SCHEMA = pa.schema(
    [
        ("case_id", pa.string()),
        ("group", pa.int32()),
        ("chunk_id", pa.string()),
        ("forbidden", pa.bool_()),
    ]
)


class GroupLike(Protocol):
    """An evidence group: any one of its chunks satisfies it; without chunks nothing can."""

    @property
    def chunk_ids(self) -> Sequence[str]:
        """Ids of the chunks that can stand in for one another."""


class CaseLike(Protocol):
    """A golden case with its groups resolved to chunk ids; `case.id` is its id."""

    @property
    def case(self) -> Any:
        """The golden case."""

    @property
    def groups(self) -> Sequence[GroupLike]:
        """The groups that are all needed."""

    @property
    def forbidden_chunk_ids(self) -> Sequence[str]:
        """Ids of the chunks that must not come back."""


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels of many cases as columns, ordered by case.

    Each column of offsets has one stretch more than there are cases, an empty one, for the cases
    that have no labels.

    Attributes:
        case_ids: distinct ids of the cases that have a label.
        item_chunk_ids: a labelled chunk of a case, once as evidence and once as forbidden.
        item_forbidden: whether the chunk must not come back.
        item_offsets: offsets of each case's items.
        group_numbers: the number of each group within its case, from 0.
        group_offsets: offsets of each case's groups.
        member_item, member_group: which item stands in which group, as indexes of the above.
        ideal_gains: groups newly satisfied at each rank of the best order (metrics.md, nDCG).
        ideal_offsets: offsets of each case's ranks.
    """

    case_ids: pa.StringArray
    item_chunk_ids: pa.StringArray
    item_forbidden: npt.NDArray[np.bool_]
    item_offsets: Ints
    group_numbers: Int32s
    group_offsets: Ints
    member_item: Int32s
    member_group: Int32s
    ideal_gains: Int32s
    ideal_offsets: Ints

    @classmethod
    def from_cases(cls, cases: Iterable[CaseLike]) -> Labels:
        """The labels of resolved cases, whose groups are numbered from 0 in their order.

        Raises:
            DataError: a case comes twice.
        """
        return cls.from_tables(_tables_of(cases))

    @classmethod
    def from_tables(cls, tables: Iterable[pa.Table]) -> Labels:
        """The labels of tables with a row a (case, group, chunk), each with all of its cases.

        A table at a time: a set too large for memory twice can be read in pieces.

        Args:
            tables: rows in any order: case_id string; group int from 0, ignored where forbidden;
                chunk_id string, null for a group that no chunk can satisfy; forbidden bool.

        Raises:
            DataError: a column is missing; a case has labels in two of the tables.
        """
        with duckdb.connect() as connection:
            work = partial(_labels, connection)
            parts = list(in_background(work, map(_checked, tables), workers=2))
        case_ids = pa.concat_arrays([part.case_ids for part in parts] or [_NO_TEXTS])
        if len(case_ids.dictionary_encode().dictionary) != len(case_ids):
            twice = next(
                x["values"] for x in pc.value_counts(case_ids).to_pylist() if x["counts"] > 1
            )
            raise DataError(f"labels: case {twice!r} comes twice: give each case once")
        return cls(
            case_ids=case_ids,
            item_chunk_ids=pa.concat_arrays([part.item_chunk_ids for part in parts] or [_NO_TEXTS]),
            item_forbidden=_joined([part.item_forbidden for part in parts], bool),
            item_offsets=_joined_offsets([part.item_offsets for part in parts]),
            group_numbers=_joined([part.group_numbers for part in parts], np.int32),
            group_offsets=_joined_offsets([part.group_offsets for part in parts]),
            member_item=_shifted([(part.member_item, len(part.item_chunk_ids)) for part in parts]),
            member_group=_shifted([(part.member_group, len(part.group_numbers)) for part in parts]),
            ideal_gains=_joined([part.ideal_gains for part in parts], np.int32),
            ideal_offsets=_joined_offsets([part.ideal_offsets for part in parts]),
        )


def _tables_of(cases: Iterable[CaseLike]) -> Iterator[pa.Table]:
    rows: list[tuple[str, int | None, str | None, bool]] = []
    seen: set[str] = set()
    for resolved in cases:
        case_id = str(resolved.case.id)
        if case_id in seen:
            raise DataError(f"labels: case {case_id!r} comes twice: give each case once")
        seen.add(case_id)
        rows += _rows_of(case_id, resolved)
        if len(rows) >= PART_ROWS:
            yield _table_of(rows)
            rows = []
    if rows:
        yield _table_of(rows)


def _table_of(rows: Sequence[tuple[str, int | None, str | None, bool]]) -> pa.Table:
    return pa.table([list(column) for column in zip(*rows, strict=True)], schema=LABEL_SCHEMA)


def _rows_of(case_id: str, resolved: CaseLike) -> list[tuple[str, int | None, str | None, bool]]:
    rows: list[tuple[str, int | None, str | None, bool]] = []
    for number, group in enumerate(resolved.groups):
        chunk_ids: Sequence[str | None] = group.chunk_ids or (None,)
        rows += [(case_id, number, chunk_id, False) for chunk_id in chunk_ids]
    rows += [(case_id, None, chunk_id, True) for chunk_id in resolved.forbidden_chunk_ids]
    return rows


def _checked(table: pa.Table) -> pa.Table:
    missing = [name for name in LABEL_SCHEMA.names if name not in table.column_names]
    if missing:
        found = ", ".join(table.column_names)
        raise DataError(f"labels: column {missing[0]!r} is missing; found: {found}")
    return table.select(LABEL_SCHEMA.names).cast(LABEL_SCHEMA)


def _labels(connection: duckdb.DuckDBPyConnection, table: pa.Table) -> Labels:
    """The labels of one table, rows in any order; may run beside others of the connection."""
    table, case_id = _by_case(table)
    case = case_id.indices.to_numpy().astype(np.int64)
    chunk_ids = table.column("chunk_id").combine_chunks()
    forbidden = table.column("forbidden").to_numpy()
    item_row, item = _distinct_items(chunk_ids, _item_keys(table, connection))
    evidence = np.flatnonzero(~forbidden)
    number = pc.fill_null(table.column("group"), 0).to_numpy()[evidence]
    groups, group = numbered((case[evidence] << 32) | number)
    held = item[evidence] >= 0
    members, _ = numbered((group[held] << 32) | item[evidence][held])
    items = chunk_ids.take(pa.array(item_row))
    gain_case, gains = greedy_gains(groups >> 32, members >> 32, members & _LOW, items)
    n_cases = len(case_id.dictionary) + 1
    return Labels(
        case_ids=case_id.dictionary,
        item_chunk_ids=items,
        item_forbidden=forbidden[item_row],
        item_offsets=offsets_of(case[item_row], n_cases),
        group_numbers=(groups & _LOW).astype(np.int32),
        group_offsets=offsets_of(groups >> 32, n_cases),
        member_item=(members & _LOW).astype(np.int32),
        member_group=(members >> 32).astype(np.int32),
        ideal_gains=gains.astype(np.int32),
        ideal_offsets=offsets_of(gain_case, n_cases),
    )


def _by_case(table: pa.Table) -> tuple[pa.Table, pa.DictionaryArray]:
    """The rows case by case, and their case ids as indexes that do not decrease."""
    case_id = encoded(table.column("case_id"))
    case = case_id.indices.to_numpy()
    if np.all(case[1:] >= case[:-1]):
        return table, case_id
    order = pa.array(np.argsort(case, kind="stable"))
    return table.take(order), case_id.take(order)


def _item_keys(table: pa.Table, connection: duckdb.DuckDBPyConnection) -> Hashes:
    """A 64-bit key of each (case, chunk, forbidden), by which repeated labels are told.

    Among the labels of a million cases two different ones share a key once in a million times.
    """
    query = "select hash(case_id, chunk_id, forbidden) as key from labels"
    with connection.cursor() as own:
        own.register("labels", table)
        return np.asarray(own.sql(query).fetchnumpy()["key"])


def _distinct_items(chunk_ids: pa.StringArray, keys: Hashes) -> tuple[Ints, Ints]:
    """The first row of each distinct key, in order, and each row's item or -1."""
    filled = np.flatnonzero(chunk_ids.is_valid().to_numpy(zero_copy_only=False))
    distinct, place = numbered(keys[filled])
    first = np.full(len(distinct), len(keys), dtype=np.int64)
    np.minimum.at(first, place, filled)
    order = np.argsort(first)
    rank = np.empty(len(first), dtype=np.int64)
    rank[order] = np.arange(len(first))
    item = np.full(len(keys), -1, dtype=np.int64)
    item[filled] = rank[place]
    return first[order], item


def _joined(columns: Sequence[npt.NDArray[Any]], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype=dtype), *columns])


def _shifted(columns: Sequence[tuple[Int32s, int]]) -> Int32s:
    """The parts' indexes joined, each moved by the number of things in the parts before it."""
    before = np.cumsum([0, *(count for _, count in columns)])
    moved = [column + n for (column, _), n in zip(columns, before.tolist(), strict=False)]
    return _joined(moved, np.int32)


def _joined_offsets(parts: Sequence[Ints]) -> Ints:
    """The offsets of all parts' cases, with one empty stretch at the end instead of one a part."""
    ends = np.cumsum([0, *(int(offsets[-1]) for offsets in parts)])
    starts = [offsets[:-2] + n for offsets, n in zip(parts, ends.tolist(), strict=False)]
    return np.concatenate([*starts, ends[[-1, -1]]])
