"""Lists of different lengths kept as one flat column and offsets, the way Arrow keeps them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Indexes = npt.NDArray[np.integer[Any]]


def offsets_of(owner: Indexes, n_owners: int) -> Ints:
    """Offsets of each owner's entries in a column that is ordered by owner.

    Args:
        owner: index of the owner of each entry, not decreasing.
        n_owners: number of owners; one without entries gets an empty stretch.

    Returns:
        int64, one longer than n_owners: entries of owner i are offsets[i]:offsets[i + 1].
    """
    offsets = np.zeros(n_owners + 1, dtype=np.int64)
    np.cumsum(np.bincount(owner, minlength=n_owners), out=offsets[1:])
    return offsets


def stretches(offsets: Ints, owners: Indexes) -> tuple[Ints, Ints]:
    """Indexes of all entries of the given owners, owner after owner, and how many each has."""
    starts = offsets[owners]
    lengths = offsets[owners + 1] - starts
    shift = starts - (np.cumsum(lengths) - lengths)
    return np.arange(int(lengths.sum())) + np.repeat(shift, lengths), lengths


def numbered(keys: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], Ints]:
    """Distinct keys in ascending order, and for each key its place among them."""
    # On keys in order a stable sort is linear; on others, hashes say, the default is faster.
    in_order = bool(np.all(keys[1:] >= keys[:-1]))
    order = np.argsort(keys, kind="stable" if in_order else None)
    ordered = keys[order]
    is_new = np.ones(len(keys), dtype=bool)
    is_new[1:] = ordered[1:] != ordered[:-1]
    place = np.empty(len(keys), dtype=np.int64)
    place[order] = np.cumsum(is_new) - 1
    return ordered[is_new], place
