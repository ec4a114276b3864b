"""The arithmetic of one block: where labelled chunks stand first, which positions repeat an id."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ragwb.measure.blocks import Block, Hashes
from ragwb.measure.ragged import Ints


@dataclass(frozen=True, slots=True)
class Wanted:
    """The labelled chunks of a block's results.

    Attributes:
        result: place of the result within the block that each label belongs to, not decreasing.
        item: index of the labelled chunk in chunk_hashes and chunk_ids.
    """

    result: Ints
    item: Ints
    chunk_hashes: Hashes
    chunk_ids: pa.StringArray


@dataclass(frozen=True, slots=True)
class Found:
    """What a block holds.

    Attributes:
        position: first position of each wanted chunk, from 1; 0 when it did not come back.
        repeat_result, repeat_position: every position whose id stood before in the same result,
            ordered by result, then position.
    """

    position: npt.NDArray[np.int32]
    repeat_result: Ints
    repeat_position: npt.NDArray[np.int32]


def find_first(block: Block, wanted: Wanted) -> Found:
    """First positions of wanted chunks and positions of repeats in a block.

    One sort of packed keys (result, hash, position) puts equal ids side by side, the first copy
    first; everything else is a look-up. A key keeps 40 to 60 bits of the hash. Matches of labels
    are confirmed on the id itself; repeats are counted on hashes, where a wrong one is to be
    expected once in tens of thousands of runs of a million results.
    """
    packing = _Packing.of(block)
    lengths = np.diff(np.append(block.starts, len(block)))
    result = np.repeat(np.arange(len(lengths), dtype=np.uint64), lengths)
    keys = packing.ids(result, block.chunk_hash)
    keys <<= packing.position
    keys |= block.position.astype(np.uint64)
    _sort_each(keys, lengths)
    ids = keys >> packing.position
    position = _first_positions(keys, ids, packing, wanted)
    _confirm(position, block, wanted)
    again = keys[1:][ids[1:] == ids[:-1]]
    return Found(position, *_in_order(again, packing))


@dataclass(frozen=True, slots=True)
class _Packing:
    """Bits of a 64-bit key: the result at the top, then the hash, the position at the bottom."""

    result: np.uint64
    hash: np.uint64
    position: np.uint64

    @classmethod
    def of(cls, block: Block) -> _Packing:
        position = int(block.position.max()).bit_length()
        result = len(block.starts).bit_length()
        return cls(np.uint64(result), np.uint64(64 - result - position), np.uint64(position))

    def ids(self, result: Hashes, chunk_hash: Hashes) -> Hashes:
        return (result << self.hash) | (chunk_hash >> (self.result + self.position))

    def positions(self, keys: Hashes) -> Hashes:
        return keys & ((np.uint64(1) << self.position) - np.uint64(1))


def _sort_each(keys: Hashes, lengths: Ints) -> None:
    """Sorts the keys in place, each result for itself, for they already stand result by result.

    Short rows of a matrix sort some 20 times faster than one long array. Results of unequal
    length are padded, unless most of the matrix would be padding.
    """
    width = int(lengths.max())
    if width * len(lengths) == len(keys):
        keys.reshape(-1, width).sort(axis=1)
    elif width * len(lengths) <= 4 * len(keys):
        filled = np.arange(width) < lengths[:, None]
        matrix = np.full(filled.shape, np.iinfo(np.uint64).max)
        matrix[filled] = keys
        matrix.sort(axis=1)
        keys[:] = matrix[filled]
    else:
        keys.sort()


def _first_positions(
    keys: Hashes, ids: Hashes, packing: _Packing, wanted: Wanted
) -> npt.NDArray[np.int32]:
    sought = packing.ids(wanted.result.astype(np.uint64), wanted.chunk_hashes[wanted.item])
    place = np.minimum(np.searchsorted(ids, sought), len(ids) - 1)
    position = packing.positions(keys[place]).astype(np.int32)
    position[ids[place] != sought] = 0
    return position


def _confirm(position: npt.NDArray[np.int32], block: Block, wanted: Wanted) -> None:
    """Replaces the position of a match whose id differs by what an exact search finds."""
    matched = np.flatnonzero(position)
    rows = block.starts[wanted.result[matched]] + position[matched] - 1
    stands = block.chunk_ids.take(pa.array(rows))
    meant = wanted.chunk_ids.take(pa.array(wanted.item[matched]))
    equal = pc.equal(stands, meant).to_numpy(zero_copy_only=False)
    for label in matched[~equal]:
        start, end = np.append(block.starts, len(block))[wanted.result[label] :][:2]
        ids = block.chunk_ids.slice(start, end - start)
        position[label] = ids.index(wanted.chunk_ids[int(wanted.item[label])]).as_py() + 1


def _in_order(keys: Hashes, packing: _Packing) -> tuple[Ints, npt.NDArray[np.int32]]:
    """Result and position of keys, ordered by both: the sort had ordered them by hash between."""
    order = (keys >> (packing.hash + packing.position) << packing.position) | packing.positions(
        keys
    )
    order.sort()
    return (order >> packing.position).astype(np.int64), packing.positions(order).astype(np.int32)
