from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwb.golden.spans import Span, merged
from ragwb.measure.passages import (
    PassageFigures,
    passage_figures,
    precision_omega,
)

STUDY = Path(__file__).parents[2] / "shared" / "data" / "chunking-eval"


def span(start: int, end: int, document: str = "d") -> Span:
    return Span(document, "1", start, end)


def test_passage_figures_by_hand() -> None:
    # P = [0, 30); C1 = [0, 20), C2 = [10, 40): covered 30, delivered 20 + 30.
    got = passage_figures([span(0, 20), span(15, 30)], [span(0, 20), span(10, 40)], k=2)
    assert got == PassageFigures(recall=1.0, precision=30 / 50, iou=30 / 50)
    # At 1: covered 20, delivered 20, uncovered 10.
    got = passage_figures([span(0, 30)], [span(0, 20), span(10, 40)], k=1)
    assert got == PassageFigures(recall=20 / 30, precision=1.0, iou=20 / 30)


def test_a_repeat_costs_precision_and_gains_nothing() -> None:
    got = passage_figures([span(0, 10)], [span(0, 10), span(0, 10)], k=2)
    assert got == PassageFigures(recall=1.0, precision=0.5, iou=0.5)


def test_another_document_or_version_does_not_cover() -> None:
    other = [span(0, 10, "e"), Span("d", "2", 0, 10)]
    assert passage_figures([span(0, 10)], other, k=2) == PassageFigures(0.0, 0.0, 0.0)


def test_passage_figures_at_their_limits() -> None:
    assert passage_figures([span(0, 10)], [], k=5) == PassageFigures(0.0, None, 0.0)
    assert passage_figures([], [span(0, 10)], k=5) == PassageFigures(None, None, None)
    assert passage_figures([span(0, 9)], [None], k=5) == PassageFigures(None, None, None)
    assert passage_figures([span(0, 9)], [span(0, 9), None], k=1).recall == 1.0


def test_precision_omega_by_hand() -> None:
    chunks = [span(0, 10), span(10, 20), span(20, 30)]
    # [5, 10) shares characters with the first chunk and only meets the second.
    assert precision_omega([span(5, 10)], chunks) == 5 / 20
    assert precision_omega([span(5, 10)], chunks, strict=True) == 5 / 10
    # What no chunk holds is left uncovered: 5 + 5 beyond the chunks.
    assert precision_omega([span(25, 35)], chunks, strict=True) == 10 / 15
    assert precision_omega([], chunks) is None


SPANS = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 12)).map(lambda p: span(p[0], sum(p))), max_size=6
)


def characters(spans: list[Span]) -> set[int]:
    return {i for s in spans for i in range(s.start, s.end)}


@given(SPANS, SPANS)
def test_agrees_with_counting_characters(passages: list[Span], retrieved: list[Span]) -> None:
    wanted, got = characters(passages), characters(retrieved)
    assert characters(merged(passages)) == wanted
    figures = passage_figures(passages, retrieved, k=100)
    if wanted:
        delivered = sum(s.end - s.start for s in retrieved)
        covered = len(wanted & got)
        assert figures.recall == pytest.approx(covered / len(wanted))
        assert figures.iou == pytest.approx(covered / (delivered + len(wanted) - covered))
    else:
        assert figures.recall is None


WINDOWS = [
    # size, overlap, chunks, mean Precision-Omega, the same with a real overlap
    (200, 0, 1033, 0.5074, 0.5090),
    (400, 0, 517, 0.3566, 0.3578),
    (400, 200, 1030, 0.2650, 0.2654),
    (800, 0, 259, 0.2321, 0.2321),
    (800, 400, 514, 0.1620, 0.1622),
    (1200, 0, 174, 0.1717, 0.1722),
]


def windows(corpus: str, length: int, size: int, overlap: int) -> list[Span]:
    starts = range(0, length - overlap, size - overlap)
    return [span(start, min(start + size, length), corpus) for start in starts]


@pytest.mark.skipif(not STUDY.exists(), reason="the chunking study's data are not here")
@pytest.mark.parametrize(("size", "overlap", "n_chunks", "loose", "strict"), WINDOWS)
def test_reproduces_the_chunking_study(size, overlap, n_chunks, loose, strict) -> None:
    bodies = {p.stem: p.read_bytes().decode() for p in (STUDY / "corpora").glob("*.md")}
    chunks = {name: windows(name, len(body), size, overlap) for name, body in bodies.items()}
    with (STUDY / "questions_df.csv").open(encoding="utf-8", newline="") as file:
        questions = list(csv.DictReader(file))
    means = []
    for only_overlapping in (False, True):
        values = [
            precision_omega(
                [
                    span(reference["start_index"], reference["end_index"], question["corpus_id"])
                    for reference in json.loads(question["references"])
                ],
                chunks[question["corpus_id"]],
                strict=only_overlapping,
            )
            for question in questions
        ]
        means.append(round(sum(values) / len(values), 4))
    assert sum(map(len, chunks.values())) == n_chunks
    assert means == [loose, strict]
