"""Reading the small tables that are written when a run is sealed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ragwb.errors import DataError


def read_sealed(path: Path, schema: pa.Schema, *, dictionaries: Sequence[str] = ()) -> pa.Table:
    """A table with at least the columns of a schema, in the file's order.

    Args:
        path: a Parquet file.
        schema: whose columns must be there.
        dictionaries: columns that are read as indexes into their distinct texts.

    Raises:
        DataError: the file is absent, is no Parquet, or lacks a column.
    """
    try:
        table = pq.ParquetFile(path, read_dictionary=list(dictionaries)).read()
    except (OSError, pa.ArrowInvalid) as error:
        raise DataError(f"{path}: cannot be read: {error}") from error
    missing = [name for name in schema.names if name not in table.column_names]
    if missing:
        raise DataError(f"{path}: column {missing[0]!r} is missing")
    return table
