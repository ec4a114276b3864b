"""The books of one pass: each result is entered once, and the hits come out in the order asked."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ragwb.errors import DataError
from ragwb.measure.asked import Asked, cases_in
from ragwb.measure.blocks import Block, Hashes
from ragwb.measure.hits import GROUPS, LABELLED, REPEATS, Hits
from ragwb.measure.kernel import Wanted, find_first
from ragwb.measure.labels import Labels
from ragwb.measure.ragged import Ints, offsets_of, stretches

Int32s = npt.NDArray[np.int32]
_ABSENT = np.iinfo(np.int32).max


class Ledger:
    """Takes blocks of whole results in any order of cases and gives the hits.

    Args:
        labels, asked: what is looked for, and in which pairs.
        chunk_hashes, case_hashes: hashes of the labelled chunks and of the asked case ids, made
            by the connection that hashes the blocks.
        name_of: the case id behind a hash, for messages.
        where: the file and stage, for messages.
    """

    def __init__(
        self,
        labels: Labels,
        asked: Asked,
        *,
        chunk_hashes: Hashes,
        case_hashes: Hashes,
        name_of: Callable[[int], str],
        where: str,
    ) -> None:
        self._labels, self._asked = labels, asked
        self._chunk_hashes, self._name_of, self._where = chunk_hashes, name_of, where
        self._case_order = np.argsort(case_hashes).astype(np.int32)
        self._case_hashes = case_hashes[self._case_order]
        self._label_case = _label_cases(labels, asked)
        rows, n_items = np.arange(len(asked)), np.diff(labels.item_offsets)[self._label_case]
        self._slots = offsets_of(np.repeat(rows, n_items), len(asked))
        self._position = np.zeros(int(self._slots[-1]), dtype=np.int32)
        self._n_results = np.zeros(len(asked), dtype=np.int32)
        self._n_entered = np.zeros(len(asked), dtype=np.int32)
        self._again: list[tuple[Int32s, Int32s]] = []

    def enter(self, block: Block) -> None:
        """Enters the results of a block.

        Raises:
            DataError: positions do not go 1, 2, 3; a result comes twice or was not asked for.
        """
        lengths = np.diff(np.append(block.starts, len(block)))
        self._check_positions(block, lengths)
        rows = self._rows_of(block)
        item, n_items = stretches(self._labels.item_offsets, self._label_case[rows])
        result = np.repeat(np.arange(len(rows)), n_items)
        wanted = Wanted(result, item, self._chunk_hashes, self._labels.item_chunk_ids)
        found = find_first(block, wanted)
        slots, _ = stretches(self._slots, rows)
        self._position[slots] = found.position
        self._n_results[rows] = lengths
        self._again.append((rows[found.repeat_result], found.repeat_position))

    def _check_positions(self, block: Block, lengths: Ints) -> None:
        expected = np.arange(1, len(block) + 1) - np.repeat(block.starts, lengths)
        wrong = np.flatnonzero(block.position != expected)
        if len(wrong):
            row = int(wrong[0])
            raise DataError(
                f"{self._where}: case {self._name_of(int(block.case_hash[row]))!r}, "
                f"repeat {block.repeat[row]}: position {block.position[row]} where "
                f"{expected[row]} is due: "
                "positions go 1, 2, 3 in the service's order, and a result comes once"
            )

    def _rows_of(self, block: Block) -> Int32s:
        case_hash, repeat = block.case_hash[block.starts], block.repeat[block.starts]
        rows = self._asked.rows(self._cases_of(case_hash), repeat)
        unasked = np.flatnonzero(rows < 0)
        if len(unasked):
            self._refuse(case_hash, repeat, int(unasked[0]), "was not asked for")
        np.add.at(self._n_entered, rows, 1)
        twice = np.flatnonzero(self._n_entered[rows] > 1)
        if len(twice):
            self._refuse(case_hash, repeat, int(twice[0]), "comes twice, with others between")
        return rows

    def _cases_of(self, case_hash: Hashes) -> Int32s:
        if not len(self._case_hashes):
            return np.full(len(case_hash), -1, dtype=np.int32)
        place = np.minimum(
            np.searchsorted(self._case_hashes, case_hash), len(self._case_hashes) - 1
        )
        cases: Int32s = self._case_order[place]
        cases[self._case_hashes[place] != case_hash] = -1
        return cases

    def _refuse(self, case_hash: Hashes, repeat: Int32s, place: int, what: str) -> None:
        name = self._name_of(int(case_hash[place]))
        raise DataError(f"{self._where}: case {name!r}, repeat {repeat[place]} {what}")

    def close(self) -> Hits:
        """The hits of everything entered; a pair without rows came back empty."""
        return Hits(groups=self._groups(), labelled=self._labelled(), repeats=self._repeats())

    def _groups(self) -> pa.Table:
        labels = self._labels
        group, n_groups = stretches(labels.group_offsets, self._label_case)
        row = np.repeat(np.arange(len(self._asked), dtype=np.int32), n_groups)
        member_offsets = offsets_of(labels.member_group, len(labels.group_numbers))
        member, n_members = stretches(member_offsets, group)
        first_slot = self._slots[row] - labels.item_offsets[self._label_case[row]]
        slot = np.repeat(first_slot, n_members) + labels.member_item[member]
        first_hit = _least(self._position[slot], n_members)
        columns = [labels.group_numbers[group], pa.array(first_hit, mask=first_hit == _ABSENT)]
        return self._table(row, columns, GROUPS)

    def _labelled(self) -> pa.Table:
        labels = self._labels
        item, n_items = stretches(labels.item_offsets, self._label_case)
        row = np.repeat(np.arange(len(self._asked), dtype=np.int32), n_items)
        whole = len(item) == len(labels.item_chunk_ids) and bool(np.all(item[1:] > item[:-1]))
        chunk_ids = labels.item_chunk_ids if whole else labels.item_chunk_ids.take(pa.array(item))
        position = pa.array(self._position, mask=self._position == 0)
        return self._table(row, [chunk_ids, labels.item_forbidden[item], position], LABELLED)

    def _repeats(self) -> pa.Table:
        gain, n_gains = stretches(self._labels.ideal_offsets, self._label_case)
        row, position = (
            np.concatenate([part[i] for part in self._again] or [np.zeros(0, dtype=np.int32)])
            for i in range(2)
        )
        order = np.argsort(row, kind="stable")
        counts = np.bincount(row, minlength=len(self._asked))
        columns = [
            self._n_results,
            _lists(position[order], counts),
            _lists(self._labels.ideal_gains[gain], n_gains),
        ]
        return self._table(np.arange(len(self._asked)), columns, REPEATS)

    def _table(
        self, row: npt.NDArray[np.integer], columns: list[object], schema: pa.Schema
    ) -> pa.Table:
        case = pa.DictionaryArray.from_arrays(self._asked.case[row], self._asked.case_ids)
        return pa.table([case, self._asked.repeat[row], *columns], schema=schema)


def _label_cases(labels: Labels, asked: Asked) -> Ints:
    """The case of the labels of each pair; the empty one behind the last where it has none."""
    case = cases_in(labels.case_ids, asked.case_ids)
    return np.where(case < 0, len(labels.case_ids), case)[asked.case]


def _least(position: Int32s, lengths: Ints) -> Int32s:
    """The least position of each stretch; a stretch without a position is _ABSENT."""
    least = np.full(len(lengths), _ABSENT, dtype=np.int32)
    filled = np.flatnonzero(lengths)
    if len(filled):
        starts = (np.cumsum(lengths) - lengths)[filled]
        known = np.where(position == 0, _ABSENT, position)
        least[filled] = np.minimum.reduceat(known, starts)
    return least


def _lists(values: Int32s, lengths: Ints) -> pa.ListArray:
    offsets = np.zeros(len(lengths) + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.ListArray.from_arrays(offsets, pa.array(values, type=pa.int32()))
