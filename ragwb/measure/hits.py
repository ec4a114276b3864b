"""The three small tables from which every retrieval figure at every K follows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ragwb.measure.sealed import read_sealed

CASE_ID = pa.dictionary(pa.int32(), pa.string())

GROUPS = pa.schema(
    [("case_id", CASE_ID), ("repeat", pa.int32()), ("group", pa.int32()), ("first_hit", pa.int32())]
)
LABELLED = pa.schema(
    [
        ("case_id", CASE_ID),
        ("repeat", pa.int32()),
        ("chunk_id", pa.string()),
        ("forbidden", pa.bool_()),
        ("position", pa.int32()),
    ]
)
REPEATS = pa.schema(
    [
        ("case_id", CASE_ID),
        ("repeat", pa.int32()),
        ("n_results", pa.int32()),
        ("repeat_positions", pa.list_(pa.int32())),
        ("ideal_gains", pa.list_(pa.int32())),
    ]
)
FILES = {"groups": "hits.parquet", "labelled": "labelled.parquet", "repeats": "repeats.parquet"}
_SCHEMAS = {"groups": GROUPS, "labelled": LABELLED, "repeats": REPEATS}


@dataclass(frozen=True, slots=True)
class Hits:
    """Where labelled chunks stand in the results of the pairs (case, repeat) that answered.

    Attributes:
        groups: a row a (case, repeat, group). first_hit: position from 1 of the first of its
            chunks, null when none came back.
        labelled: a row a (case, repeat, labelled or forbidden chunk). position: from 1, of its
            first copy, null when it did not come back.
        repeats: a row a (case, repeat), in the order asked. n_results ≥ 0; repeat_positions: every
            position whose id stood before; ideal_gains: groups newly satisfied at each rank of
            the best order, empty for a case without groups.
    """

    groups: pa.Table
    labelled: pa.Table
    repeats: pa.Table

    def __repr__(self) -> str:
        return (
            f"Hits: {len(self.repeats)} results, {len(self.groups)} groups, "
            f"{len(self.labelled)} labelled chunks"
        )


def save_hits(hits: Hits, folder: Path) -> None:
    """Writes hits.parquet, labelled.parquet and repeats.parquet into an existing folder."""
    for name, file in FILES.items():
        pq.write_table(getattr(hits, name), folder / file, compression="zstd")


def load_hits(folder: Path) -> Hits:
    """The hits that `save_hits` wrote into a folder.

    Raises:
        DataError: a file is absent, is no Parquet, or lacks a column.
    """
    tables = {
        name: read_sealed(folder / file, _SCHEMAS[name], dictionaries=["case_id"])
        for name, file in FILES.items()
    }
    return Hits(**{name: table.select(_SCHEMAS[name].names) for name, table in tables.items()})
