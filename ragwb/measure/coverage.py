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

_PLACE = ["document_id", "document_version"]
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
