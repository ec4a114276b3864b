from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from service_corpus import make_pipeline

from ragwb.service.ranking import Ranking, Scored, best, fuse, max_sim, rerank


def ranking(*rows: int) -> Ranking:
    return Ranking(np.array(rows, dtype=np.int64), np.linspace(1.0, 0.1, len(rows)))


def test_best_is_cut_after_the_filter_and_ties_stand_in_row_order() -> None:
    scores = np.array([0.5, 0.9, 0.5, -np.inf, 0.7])
    allowed = np.array([True, False, True, True, True])

    assert best(scores, allowed).rows.tolist() == [4, 0, 2]
    assert best(scores, allowed, 2).rows.tolist() == [4, 0]
    assert best(scores, np.zeros(5, dtype=bool)).rows.tolist() == []


def test_rank_counts_from_one() -> None:
    assert ranking(7, 3).rank(3) == 2
    assert ranking(7, 3).rank(5) is None


def test_fusion_by_hand() -> None:
    # k = 1. row 1: 1/2 + 0.5/3 = 0.66667; row 2: 1/3 + 0.5/2 = 0.58333; row 3: 0.5/4 = 0.125
    fused = fuse(
        {"vector": ranking(1, 2), "keyword": ranking(2, 1, 3)},
        {"vector": 1.0, "keyword": 0.5},
        1,
    )

    assert fused.rows.tolist() == [1, 2, 3]
    assert fused.scores == pytest.approx([0.666667, 0.583333, 0.125], abs=1e-6)


def test_fusion_keeps_one_channel_in_its_order_and_ignores_one_of_weight_zero() -> None:
    channels = {"vector": ranking(4, 2, 9), "keyword": ranking(7)}

    assert fuse(channels, {"vector": 1.0, "keyword": 0.0}, 60).rows.tolist() == [4, 2, 9]


def test_fusion_of_nothing_is_empty() -> None:
    assert fuse({"vector": ranking()}, {"vector": 1.0}, 60).rows.tolist() == []


def test_max_sim_is_the_best_sentence(tmp_path: Path) -> None:
    pipeline = make_pipeline(tmp_path)
    index, query = pipeline.index, pipeline.embedder.query("信用卡五天到账。")
    rows = np.arange(len(index.chunk_ids))
    by_hand = [
        max(float(index.sentence_vectors[at] @ query) for at in range(start, end))
        for start, end in zip(index.sentence_starts[:-1], index.sentence_starts[1:], strict=True)
    ]

    assert max_sim(index, rows, query) == pytest.approx(by_hand)


def test_rerank_goes_from_the_fused_order_to_that_of_max_sim(tmp_path: Path) -> None:
    pipeline = make_pipeline(tmp_path)
    index, query = pipeline.index, pipeline.embedder.query("信用卡五天到账。")
    fused = ranking(*range(len(index.chunk_ids)))
    by_sentence = np.argsort(-max_sim(index, fused.rows, query), kind="stable")

    assert rerank(index, fused, query, 0.0).rows.tolist() == fused.rows.tolist()
    assert rerank(index, fused, query, 1.0).rows.tolist() == by_sentence.tolist()
    assert by_sentence.tolist() != fused.rows.tolist()


def test_rerank_of_one_and_of_none(tmp_path: Path) -> None:
    pipeline = make_pipeline(tmp_path)
    query = pipeline.embedder.query("到账")

    assert rerank(pipeline.index, ranking(2), query, 0.5).rows.tolist() == [2]
    assert rerank(pipeline.index, ranking(), query, 0.5).rows.tolist() == []


def test_a_channel_in_memory_gives_all_its_scores_and_the_best_of_them() -> None:
    channel = Scored(np.array([0.5, -np.inf, 0.5, 0.7]))

    assert channel.scores().tolist() == [0.5, -np.inf, 0.5, 0.7]
    assert channel.best(None, 2).rows.tolist() == [3, 0]
    assert channel.best(np.array([True, True, True, False]), 9).rows.tolist() == [0, 2]
