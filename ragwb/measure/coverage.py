"""How much of each case's passages its results cover, position by position: any K is a look-up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ragwb.golden.spans import Span, merged
from ragwb.measure.asked import Asked, AskedPairs
from ragwb.measure.blocks import Block, Candidates, Hashes, hash_texts, whole_results
from ragwb.measure.ragged import Ints, stretches
from ragwb.measure.sealed import read_sealed

FILE = "coverage.parquet"
COVERAGE = pa.schema(
    [
        ("case_id", pa.string()),
        ("repeat", pa.int32()),
        ("passage_length", pa.int64()),
        ("n_results", pa.int32()),
        ("covered", pa.list_(pa.int64())),
        ("delivered", pa.list_(pa.int64())),
    ]
)
FIGURES = ("passage_recall", "passage_precision", "passage_iou")

Floats = npt.NDArray[np.float64]
Int32s = npt.NDArray[np.int32]


def find_coverage(
    candidates: Path | pa.Table,
    passages: Mapping[str, Iterable[Span]],
    chunks: pa.Table,
    asked: AskedPairs,
) -> pa.Table:
    """Characters of the passages covered, and characters delivered, up to each position.

    One pass over the stage `results` in blocks of whole results.

    Args:
        candidates: candidates.parquet, or a table with its columns.
        passages: of each case that names any; overlapping ones are merged.
        chunks: chunk_id, document_id, document_version, start, end; null what is not known.
        asked: the pairs (case_id, repeat) that answered.

    Returns:
        A row a pair, in the order of `asked`, as `COVERAGE`; none at all when no case names
        passages. passage_length: characters, null without passages; n_results ≥ 0; covered and
        delivered: an entry a position, up to the first chunk whose place is not known.
    """
    wanted = {case_id: merged(spans) for case_id, spans in passages.items()}
    wanted = {case_id: spans for case_id, spans in wanted.items() if spans}
    if not wanted:
        return COVERAGE.empty_table()
    pairs = Asked.of(asked)
    opened = Candidates(candidates)
    places, bodies = _places(chunks)
    with opened.connect() as connection:
        finder = _Finder(
            _wanted(wanted, pairs.case_ids, bodies),
            places,
            pairs,
            chunk_hashes=hash_texts(connection, places.chunk_ids),
            case_hashes=hash_texts(connection, pairs.case_ids),
        )
        for block in whole_results(connection, "results"):
            finder.enter(block)
    return finder.close()


def save_coverage(coverage: pa.Table, folder: Path) -> None:
    """Writes coverage.parquet into an existing folder."""
    pq.write_table(coverage, folder / FILE, compression="zstd")


def load_coverage(folder: Path) -> pa.Table:
    """The coverage that `save_coverage` wrote into a folder.

    Raises:
        DataError: the file is absent, is no Parquet, or lacks a column.
    """
    return read_sealed(folder / FILE, COVERAGE)


def coverage_figures(coverage: pa.Table, ks: Sequence[int]) -> pd.DataFrame:
    """Passage recall, precision and IoU of each result at each K, as `passages.passage_figures`.

    Args:
        coverage: see `find_coverage`.
        ks: cutoffs from 1.

    Returns:
        case_id str, repeat int32, then passage_recall@K, passage_precision@K, passage_iou@K
        float64 in [0, 1], null without passages or where the place of a chunk is not known.
    """
    table = coverage.combine_chunks()
    columns: dict[str, object] = {name: table[name].to_pandas() for name in ("case_id", "repeat")}
    total = pc.fill_null(table["passage_length"], 0).to_numpy()
    n_results = table["n_results"].to_numpy()
    covered, delivered = (_sums(table[name]) for name in ("covered", "delivered"))
    for k in ks:
        (found, n_known), (given, _) = covered.upto(k), delivered.upto(k)
        is_known = (n_known >= np.minimum(k, n_results)) & (total > 0)
        denominators = (total, given, given + total - found)
        for name, whole in zip(FIGURES, denominators, strict=True):
            columns[f"{name}@{k}"] = _shares(found, whole, is_known)
    return pd.DataFrame(columns)


@dataclass(frozen=True, slots=True)
class _Sums:
    """Sums by position, list after list."""

    values: Ints
    offsets: Ints

    def upto(self, k: int) -> tuple[Ints, Ints]:
        """The sum over the first k entries of each list, and how many entries it has up to k."""
        n_known = np.minimum(np.diff(self.offsets), k)
        last = np.maximum(self.offsets[:-1] + n_known - 1, 0)
        padded = self.values if len(self.values) else np.zeros(1, dtype=np.int64)
        return np.where(n_known > 0, padded[np.minimum(last, len(padded) - 1)], 0), n_known


def _sums(column: pa.ChunkedArray) -> _Sums:
    lists = column.combine_chunks()
    return _Sums(lists.flatten().to_numpy(), lists.offsets.to_numpy().astype(np.int64))


def _shares(part: Ints, whole: Ints, is_known: npt.NDArray[np.bool_]) -> Floats:
    shares = np.full(len(part), np.nan)
    np.divide(part, whole, out=shares, where=is_known & (whole != 0))
    return shares


@dataclass(frozen=True, slots=True)
class _Spans:
    """Stretches of bodies as columns: the number of the body, first and last code point."""

    body: Ints
    start: Ints
    end: Ints


@dataclass(frozen=True, slots=True)
class _Places:
    """Where chunks stand, as far as that is known."""

    chunk_ids: pa.StringArray
    spans: _Spans


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The passages of each asked case: spans, their offsets by case, and their length by case."""

    spans: _Spans
    offsets: Ints
    length: Ints


def _places(chunks: pa.Table) -> tuple[_Places, pa.StringArray]:
    """The chunks whose place is known, and the names of the bodies that they stand in."""
    is_known = pc.and_(chunks["document_id"].is_valid(), chunks["start"].is_valid())
    known = chunks.filter(pc.and_(is_known, chunks["end"].is_valid())).combine_chunks()
    version = known["document_version"]
    # An unknown version is no version, not even an empty one.
    marked = pc.if_else(pc.is_valid(version), pc.binary_join_element_wise("\0", version, ""), "")
    named = pc.binary_join_element_wise(known["document_id"], marked, "").combine_chunks()
    encoded = named.cast(pa.string()).dictionary_encode()
    spans = _Spans(
        encoded.indices.to_numpy().astype(np.int64),
        known["start"].to_numpy(),
        known["end"].to_numpy(),
    )
    return _Places(known["chunk_id"].combine_chunks(), spans), encoded.dictionary


def _wanted(
    passages: Mapping[str, Sequence[Span]], case_ids: pa.StringArray, bodies: pa.StringArray
) -> _Wanted:
    by_case = [passages.get(case_id, ()) for case_id in case_ids.to_pylist()]
    spans = [span for case in by_case for span in case]
    number = {name: i for i, name in enumerate(bodies.to_pylist())}
    names = (s[0] if s[1] is None else f"{s[0]}\0{s[1]}" for s in spans)
    columns = _Spans(
        np.array([number.get(name, -1) for name in names], dtype=np.int64),
        np.array([span.start for span in spans], dtype=np.int64),
        np.array([span.end for span in spans], dtype=np.int64),
    )
    offsets = np.cumsum([0, *map(len, by_case)])
    before = np.concatenate([[0], np.cumsum(columns.end - columns.start)])
    return _Wanted(columns, offsets, np.diff(before[offsets]))


class _Finder:
    """Takes blocks of whole results, which `find_hits` has checked, and gives their coverage."""

    def __init__(
        self,
        wanted: _Wanted,
        places: _Places,
        asked: Asked,
        *,
        chunk_hashes: Hashes,
        case_hashes: Hashes,
    ) -> None:
        self._wanted, self._places, self._asked = wanted, places, asked
        self._chunks = _ByHash(chunk_hashes)
        self._cases = _ByHash(case_hashes)
        self._n_results = np.zeros(len(asked), dtype=np.int32)
        # Per block: the rows of its results, entries of each, and both columns of entries.
        self._parts: list[tuple[Ints | Int32s, ...]] = []

    def enter(self, block: Block) -> None:
        """Enters the results of a block."""
        lengths = np.diff(np.append(block.starts, len(block)))
        case = self._cases.find(block.case_hash[block.starts])
        rows = self._asked.rows(case.astype(np.int32), block.repeat[block.starts])
        self._n_results[rows] = lengths
        result = np.repeat(np.arange(len(rows)), lengths)
        place = self._chunks.find(block.chunk_hash)
        # Without a passage nothing is kept; behind a chunk whose place is unknown nothing is known.
        n_known = np.where(self._wanted.length[case] > 0, _known(place, block.starts, lengths), 0)
        kept = np.flatnonzero(block.position <= n_known[result])
        result, place = result[kept], place[kept]
        chunk = self._places.spans
        delivered = chunk.end[place] - chunk.start[place]
        covered = self._newly_covered(result, case, place)
        first = np.cumsum(n_known) - n_known
        sums = [_sum_each(values, first, n_known) for values in (covered, delivered)]
        self._parts.append((rows, n_known, *sums))

    def _newly_covered(self, result: Ints, case: Ints, place: Ints) -> Ints:
        """Characters of the passages that each entry is the first of its result to cover."""
        span, n_spans = stretches(self._wanted.offsets, case[result])
        entry = np.repeat(np.arange(len(result)), n_spans)
        wanted, chunk = self._wanted.spans, self._places.spans
        start = np.maximum(wanted.start[span], chunk.start[place[entry]])
        end = np.minimum(wanted.end[span], chunk.end[place[entry]])
        met = np.flatnonzero((wanted.body[span] == chunk.body[place[entry]]) & (start < end))
        columns = (result[entry[met]], span[met], start[met], end[met])
        newly = np.zeros(len(result), dtype=np.int64)
        np.add.at(newly, entry[met], _first_covered(*(column.tolist() for column in columns)))
        return newly

    def close(self) -> pa.Table:
        """The coverage of everything entered; a pair without rows came back empty."""
        asked = self._asked
        rows, lengths, covered, delivered = (
            np.concatenate([part[i] for part in self._parts] or [np.zeros(0, dtype=np.int64)])
            for i in range(4)
        )
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        # The place of each pair among the results entered; the empty list at the end for none.
        place = np.full(len(asked), len(rows))
        place[rows] = np.arange(len(rows))
        entry, counts = stretches(np.append(offsets, offsets[-1]), place)
        length = self._wanted.length[asked.case]
        columns = [
            asked.case_ids.take(pa.array(asked.case)),
            asked.repeat,
            pa.array(length, mask=length == 0),
            self._n_results,
            _lists(covered[entry], counts),
            _lists(delivered[entry], counts),
        ]
        return pa.table(columns, schema=COVERAGE)


class _ByHash:
    """The place of each hash among known ones, -1 where it is not there."""

    def __init__(self, hashes: Hashes) -> None:
        self._order = np.argsort(hashes)
        self._hashes = hashes[self._order]

    def find(self, hashes: Hashes) -> Ints:
        """Places of the given hashes."""
        if not len(self._hashes):
            return np.full(len(hashes), -1)
        near = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
        return np.where(self._hashes[near] == hashes, self._order[near], -1)


def _known(place: Ints, starts: Ints, lengths: Ints) -> Ints:
    """Entries of each result before its first chunk whose place is not known."""
    position = np.arange(len(place)) - np.repeat(starts, lengths)
    unknown = np.where(place < 0, position, np.repeat(lengths, lengths))
    known: Ints = np.minimum.reduceat(unknown, starts)
    return known


def _sum_each(values: Ints, first: Ints, lengths: Ints) -> Ints:
    """Running sums that begin again with each stretch."""
    sums = np.cumsum(values)
    before = np.concatenate([[0], sums])[first]
    since: Ints = sums - np.repeat(before, lengths)
    return since


def _first_covered(
    results: list[int], spans: list[int], starts: list[int], ends: list[int]
) -> list[int]:
    """Characters of each stretch that no stretch before it has of the same result and passage."""
    taken: dict[tuple[int, int], list[tuple[int, int]]] = {}
    counts = []
    for result, span, start, end in zip(results, spans, starts, ends, strict=True):
        before = taken.setdefault((result, span), [])
        free = [(start, end)]
        for other in before:
            free = [piece for one in free for piece in _without(one, other)]
        before += free
        counts.append(sum(last - first for first, last in free))
    return counts


def _without(piece: tuple[int, int], other: tuple[int, int]) -> list[tuple[int, int]]:
    """What is left of a stretch when another is cut out."""
    left = (piece[0], min(piece[1], other[0]))
    right = (max(piece[0], other[1]), piece[1])
    return [part for part in (left, right) if part[0] < part[1]]


def _lists(values: Ints, lengths: Ints) -> pa.ListArray:
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.ListArray.from_arrays(offsets, pa.array(values))
