from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from ragwb.errors import DataError
from ragwb.golden.spans import Span
from ragwb.measure.coverage import (
    coverage_figures,
    find_coverage,
    load_coverage,
    save_coverage,
)
from ragwb.measure.passages import passage_figures

KS = (1, 2, 3, 7, 100)
PLACE = ("chunk_id", "document_id", "document_version", "start", "end")

Pairs = Mapping[tuple[str, int], Sequence[str]]


def candidates(results: Pairs) -> pa.Table:
    rows = [
        (case_id, repeat, "results", position, chunk_id)
        for (case_id, repeat), chunk_ids in results.items()
        for position, chunk_id in enumerate(chunk_ids, 1)
    ]
    names = ("case_id", "repeat", "stage", "position", "chunk_id")
    types = (pa.string(), pa.int32(), pa.string(), pa.int32(), pa.string())
    columns = zip(*rows, strict=True) if rows else [()] * 5
    return pa.table([pa.array(c, t) for c, t in zip(columns, types, strict=True)], names=names)


def chunk_table(places: Mapping[str, Span | None]) -> pa.Table:
    rows = [(chunk_id, *(span or (None,) * 4)) for chunk_id, span in places.items()]
    types = (pa.string(), pa.string(), pa.string(), pa.int64(), pa.int64())
    columns = zip(*rows, strict=True) if rows else [()] * 5
    return pa.table([pa.array(c, t) for c, t in zip(columns, types, strict=True)], names=PLACE)


def by_hand(
    passages: Mapping[str, Sequence[Span]], places: Mapping[str, Span | None], results: Pairs
) -> pd.DataFrame:
    rows = []
    for (case_id, repeat), chunk_ids in results.items():
        row: dict[str, object] = {"case_id": case_id, "repeat": repeat}
        for k in KS:
            spans = [places.get(chunk_id) for chunk_id in chunk_ids]
            figures = passage_figures(passages.get(case_id, ()), spans, k=k)
            row[f"passage_recall@{k}"] = figures.recall
            row[f"passage_precision@{k}"] = figures.precision
            row[f"passage_iou@{k}"] = figures.iou
        rows.append(row)
    frame = pd.DataFrame(rows)
    types = dict.fromkeys(frame.columns[2:], "float64")
    return frame.astype({"case_id": "str", "repeat": "int32", **types})


def random_span(random: random.Random, length: int) -> Span:
    start = random.randrange(40)
    version = random.choice(["1", "1", "1", "2", "", None])
    return Span(random.choice("dde"), version, start, start + random.randrange(length))


@pytest.mark.parametrize("seed", range(30))
def test_agrees_with_the_figures_of_each_list(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    places = {f"k{i}": random_span(rng, 20) if rng.random() < 0.95 else None for i in range(15)}
    passages = {f"c{i}": [random_span(rng, 15) for _ in range(rng.randrange(4))] for i in range(6)}
    passages["c9"] = [Span("d", "1", 0, 9)]  # so that there is always one
    known = [*places, "unseen"] if rng.random() < 0.5 else list(places)
    results = {
        (case_id, repeat): [rng.choice(known) for _ in range(rng.randrange(9))]
        for case_id in passages
        for repeat in (1, 2)
    }
    coverage = find_coverage(candidates(results), passages, chunk_table(places), list(results))
    save_coverage(coverage, tmp_path)
    pd.testing.assert_frame_equal(
        coverage_figures(load_coverage(tmp_path), KS),
        by_hand(passages, places, results),
        check_exact=True,
    )


def test_rows_stand_in_the_order_asked_whatever_that_of_the_candidates() -> None:
    results = {("a", 1): ["k"], ("b", 1): [], ("c", 1): ["k", "k"]}
    places = {"k": Span("d", None, 0, 4)}
    passages = {"a": [Span("d", None, 0, 8)], "c": [Span("d", None, 2, 4)]}
    asked = [("c", 1), ("b", 1), ("a", 1)]
    coverage = find_coverage(candidates(results), passages, chunk_table(places), asked)
    assert coverage.to_pylist() == [
        row("c", 2, length=2, covered=[2, 2], delivered=[4, 8]),
        row("b", 0, length=None, covered=[], delivered=[]),
        row("a", 1, length=8, covered=[4], delivered=[4]),
    ]


def row(case_id: str, n: int, *, length: int | None, **lists: list[int]) -> dict[str, object]:
    return {"case_id": case_id, "repeat": 1, "passage_length": length, "n_results": n, **lists}


def test_an_unknown_version_is_not_an_empty_one() -> None:
    results = {("a", 1): ["k"]}
    places = {"k": Span("d", "", 0, 4)}
    passages = {"a": [Span("d", None, 0, 4)]}
    coverage = find_coverage(candidates(results), passages, chunk_table(places), list(results))
    assert coverage["covered"].to_pylist() == [[0]]


def test_without_passages_there_are_no_rows_and_without_rows_no_figures(tmp_path: Path) -> None:
    coverage = find_coverage(candidates({("a", 1): ["k"]}), {}, chunk_table({}), [("a", 1)])
    assert len(coverage) == 0
    save_coverage(coverage, tmp_path)
    figures = coverage_figures(load_coverage(tmp_path), [5])
    assert list(figures.columns[2:]) == [
        "passage_recall@5",
        "passage_precision@5",
        "passage_iou@5",
    ]
    assert figures.empty


def test_no_known_chunk_leaves_every_figure_unknown() -> None:
    results = {("a", 1): ["k"], ("a", 2): []}
    coverage = find_coverage(
        candidates(results), {"a": [Span("d", "1", 0, 4)]}, chunk_table({}), list(results)
    )
    figures = coverage_figures(coverage, [1])
    assert figures["passage_recall@1"].isna().tolist() == [True, False]
    assert np.isnan(figures["passage_precision@1"][1])


def test_a_file_of_something_else_is_named(tmp_path: Path) -> None:
    (tmp_path / "coverage.parquet").write_bytes(b"no table")
    with pytest.raises(DataError, match=r"coverage\.parquet: cannot be read"):
        load_coverage(tmp_path)
