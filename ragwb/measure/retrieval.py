"""How good is what came back: the hits of a run's results, and the figures at any K."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from ragwb.measure.asked import Asked, AskedPairs
from ragwb.measure.background import in_background
from ragwb.measure.blocks import BATCH_ROWS, Candidates, hash_texts, whole_results
from ragwb.measure.hits import Hits, load_hits, save_hits
from ragwb.measure.labels import CaseLike, Labels
from ragwb.measure.ledger import Ledger
from ragwb.measure.scores import METRICS, score_hits

__all__ = ["METRICS", "Hits", "Labels", "find_hits", "load_hits", "save_hits", "score_hits"]


def find_hits(
    candidates: Path | pa.Table,
    labels: Labels | Iterable[CaseLike],
    asked: AskedPairs,
    *,
    stage: str = "results",
    batch_rows: int = BATCH_ROWS,
) -> Hits:
    """First hits of evidence groups, first positions of labelled chunks, positions of repeats.

    One pass over one stage in blocks of whole results; the service's order is kept and duplicates
    count where they stand. Memory holds a few blocks and the hits, never the file.

    Args:
        candidates: candidates.parquet or a table: case_id, repeat, stage, position, chunk_id, the
            rows of a (case, repeat, stage) together and in order.
        labels: the labels, or resolved cases.
        asked: the pairs (case_id, repeat) that answered, or a table of them; one without rows in
            the stage came back empty.
        stage: a channel name, fused, reranked, results or context.
        batch_rows: rows a block, about.

    Returns:
        The hits, in the order of `asked`.

    Raises:
        DataError: a column is missing; positions do not go 1, 2, 3 within a result; a result
            comes twice; a result was not asked for.
    """
    if not isinstance(labels, Labels):
        labels = Labels.from_cases(labels)
    pairs = Asked.of(asked)
    opened = Candidates(candidates)
    with opened.connect() as connection:
        ledger = Ledger(
            labels,
            pairs,
            chunk_hashes=hash_texts(connection, labels.item_chunk_ids),
            case_hashes=hash_texts(connection, pairs.case_ids),
            name_of=opened.case_of,
            where=f"{opened.name}, stage {stage}",
        )
        blocks = whole_results(connection, stage, batch_rows=batch_rows)
        for _ in in_background(ledger.enter, blocks):
            pass
    return ledger.close()
