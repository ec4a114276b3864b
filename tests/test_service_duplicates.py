"""`deduplicate`: what leaves the final list before the cut at K."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from service_corpus import make_pipeline, make_settings, write_corpus, write_document

from ragwb.errors import UsageError
from ragwb.service.auth import LOCAL_CALLER
from ragwb.service.pipeline import Pipeline, retrieve, without_duplicates
from ragwb.service.ranking import Ranking, distinct

QUESTION = "退款多久到账"
TEXT = "退款审核通过后，储蓄卡三天到账。"


def ranking(*rows: int) -> Ranking:
    return Ranking(np.array(rows, dtype=np.int64), np.linspace(1.0, 0.1, len(rows)))


def with_copies(folder: Path) -> Path:
    """The corpus, and two documents of one text."""
    corpus = write_corpus(folder / "corpus")
    for name in ("copy-a", "copy-b"):
        write_document(corpus, name, f"# 退款\n\n{TEXT}\n")
    return folder


def texts(pipeline: Pipeline, top_k: int) -> list[str | None]:
    reply = retrieve(pipeline, LOCAL_CALLER, QUESTION, top_k, explain=True)
    return [candidate.text for candidate in reply.results]


def test_the_first_of_a_key_stays_where_it_is() -> None:
    kept = distinct(ranking(4, 1, 3, 0), np.array([7, 8, 9, 8, 7]))

    assert kept.rows.tolist() == [4, 1]
    assert kept.scores.tolist() == [1.0, pytest.approx(0.7)]
    assert distinct(ranking(), np.array([1, 2])).rows.tolist() == []


def test_a_text_comes_once_and_the_next_ones_move_up(tmp_path: Path) -> None:
    with_copies(tmp_path)
    off, by_text = (texts(make_pipeline(tmp_path, deduplicate=kind), 3) for kind in ("off", "text"))

    assert len(off) == len(by_text) == 3
    assert len(set(off)) == 2
    assert len(set(by_text)) == 3
    assert by_text[0] == off[0]


def test_the_lists_before_the_results_are_shown_whole(tmp_path: Path) -> None:
    with_copies(tmp_path)
    pipeline = make_pipeline(tmp_path, deduplicate="text")
    reply = retrieve(pipeline, LOCAL_CALLER, QUESTION, 100, explain=True)

    assert len(reply.reranked or ()) == len(reply.fused or ()) == len(reply.results) + 1


def test_by_id_the_same_chunk_comes_once(tmp_path: Path) -> None:
    pipeline = make_pipeline(with_copies(tmp_path), deduplicate="id")
    twice = ranking(2, 0, 2, 1)

    assert without_duplicates(pipeline, twice).rows.tolist() == [2, 0, 1]
    assert without_duplicates(make_pipeline(tmp_path), twice) is twice


def test_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match='deduplicate is "title": one of off, id, text'):
        make_settings(tmp_path, deduplicate="title")
