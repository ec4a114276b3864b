"""Chunks on request: by their ids, or page by page by their documents; only what may be read."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from ragwb.records import Chunk
from ragwb.service.index import Index
from ragwb.service.problems import ProblemError
from ragwb.service.visibility import Caller, may_read

PAGE = 200
_VERSION_CHARS = 8
# A row as the service writes it; no index has more of them than fit twelve digits.
_ROW = re.compile(r"[0-9]{1,12}")


def chunks_by_id(index: Index, caller: Caller, chunk_ids: Sequence[str]) -> list[Chunk]:
    """The chunks that the caller may read, in the order asked, each once."""
    rows = [index.row_of[name] for name in dict.fromkeys(chunk_ids) if name in index.row_of]
    return index.chunks([row for row in rows if may_read(index.document(row), caller)])


def chunks_by_document(
    index: Index,
    caller: Caller,
    documents: Sequence[tuple[str, str | None]],
    cursor: str | None,
) -> tuple[list[Chunk], str | None]:
    """A page of the chunks of documents that the caller may read.

    Args:
        index: the index.
        caller: who asks.
        documents: document id and version; None stands for all its versions.
        cursor: None for the first page, else what the last page gave.

    Returns:
        At most 200 chunks in the order of the index, and the cursor of the next page or None.

    Raises:
        ProblemError: 422 on a cursor of another index or of no index.
    """
    wanted = set(documents)
    numbers = [
        number
        for number, document in enumerate(index.documents)
        if {(document.document_id, document.version), (document.document_id, None)} & wanted
        and may_read(document, caller)
    ]
    first = _first_row(index, cursor)
    rows = np.flatnonzero(np.isin(index.document_of, numbers))
    rest = rows[rows >= first].tolist()
    following = _cursor(index, rest[PAGE]) if len(rest) > PAGE else None
    return index.chunks(rest[:PAGE]), following


def _cursor(index: Index, row: int) -> str:
    return f"{index.meta['index_version'][:_VERSION_CHARS]}-{row}"


def _first_row(index: Index, cursor: str | None) -> int:
    if cursor is None:
        return 0
    version, _, row = cursor.partition("-")
    if version != index.meta["index_version"][:_VERSION_CHARS] or not _ROW.fullmatch(row):
        message = "not a cursor of this index; start again without one"
        raise ProblemError(422, f"cursor: {message}", fields=[("cursor", message)])
    return int(row)
