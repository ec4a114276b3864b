"""trec_eval's figures on the same input, for people who want to reconcile the two.

It differs from the rest of this package on purpose: results are sorted again, by score (kept in
32 bits) and then by id, both descending; duplicates are refused; topics are counted its way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragwb.errors import DataError, MetricError
from ragwb.measure.scores import checked_ks

AT_K = ("P", "recall", "success", "map_cut", "ndcg_cut")
WHOLE = ("map", "ndcg", "recip_rank")

Floats = npt.NDArray[np.float64]


def trec_figures(
    qrels: pd.DataFrame,
    run: pd.DataFrame,
    ks: int | Iterable[int],
    *,
    level: int = 1,
    complete: bool = False,
    depth: int | None = None,
) -> pd.DataFrame:
    """The figures that trec_eval prints per topic.

    Args:
        qrels: case_id, chunk_id, grade int; a grade of at least `level` is relevant, a negative
            one is not judged.
        run: case_id, chunk_id, score; the order of rows and any rank column mean nothing.
        ks: cutoffs, 1 to 100.
        level: trec_eval's -l. The gain of ndcg is the grade, whatever the level.
        complete: trec_eval's -c: a topic of the qrels that the run lacks counts 0.
        depth: trec_eval's -M: only that many results of each topic, after sorting.

    Returns:
        A row a topic, indexed by case_id in ascending order: map, ndcg, recip_rank over the whole
        list, then P@K, recall@K, success@K, map_cut@K, ndcg_cut@K; float64 in [0, 1]. A topic
        without relevant chunks is 0, as there. Their means are trec_eval's "all".

    Raises:
        DataError: a column is missing, or an id comes twice in a topic.
        MetricError: a K is outside 1..100, or a score is null.

    Source: trec_eval 9 (m_map.c, m_ndcg.c, m_P.c, m_recall.c, m_success.c, form_res_rels.c).
    """
    cutoffs = checked_ks(ks)
    judged = _by_topic(qrels, "grade", "qrels")
    returned = _by_topic(run, "score", "run")
    topics = sorted(judged) if complete else sorted(set(judged) & set(returned))
    rows = [
        _topic(judged[topic], _ranked(returned.get(topic, {}), depth), cutoffs, level)
        for topic in topics
    ]
    names = [*WHOLE, *(f"{name}@{k}" for name in AT_K for k in cutoffs)]
    return pd.DataFrame(rows, index=pd.Index(topics, name="case_id", dtype="str"), columns=names)


def _by_topic(frame: pd.DataFrame, value: str, what: str) -> dict[str, dict[str, float]]:
    missing = [name for name in ("case_id", "chunk_id", value) if name not in frame]
    if missing:
        found = ", ".join(map(str, frame.columns))
        raise DataError(f"{what}: column {missing[0]!r} is missing; found: {found}")
    if frame[value].isna().any():
        raise MetricError(f"{what}: a {value} is null; trec_eval's figures need every one")
    topics: dict[str, dict[str, float]] = {}
    columns = (frame[name].tolist() for name in ("case_id", "chunk_id", value))
    for case_id, chunk_id, number in zip(*columns, strict=True):
        topic = topics.setdefault(case_id, {})
        if chunk_id in topic:
            raise DataError(
                f"{what}: {chunk_id!r} comes twice for {case_id!r}; trec_eval refuses duplicates"
            )
        topic[chunk_id] = number
    return topics


def _ranked(scores: Mapping[str, float], depth: int | None) -> list[str]:
    order = sorted(scores, key=lambda chunk_id: (np.float32(scores[chunk_id]), chunk_id))
    return order[::-1][:depth]


def _topic(
    grades: Mapping[str, float], ranked: Sequence[str], ks: Sequence[int], level: int
) -> dict[str, float]:
    gains = np.array([max(0.0, grades.get(chunk_id, 0)) for chunk_id in ranked])
    ideal = np.sort([max(0.0, grade) for grade in grades.values()])[::-1]
    right = np.array([grades.get(chunk_id, 0) >= level for chunk_id in ranked], dtype=np.float64)
    n_relevant = sum(grade >= level for grade in grades.values())
    ranks = np.arange(1, len(ranked) + 1)
    precision = np.cumsum(right) / ranks * right
    figures = {
        "map": _share(precision.sum(), n_relevant),
        "ndcg": _share(_dcg(gains), _dcg(ideal)),
        "recip_rank": float(1 / (np.argmax(right) + 1)) if right.any() else 0.0,
    }
    for k in ks:
        n_right = right[:k].sum()
        figures |= {
            f"P@{k}": n_right / k,
            f"recall@{k}": _share(n_right, n_relevant),
            f"success@{k}": float(n_right > 0),
            f"map_cut@{k}": _share(precision[:k].sum(), n_relevant),
            f"ndcg_cut@{k}": _share(_dcg(gains[:k]), _dcg(ideal[:k])),
        }
    return figures


def _dcg(gains: Floats) -> float:
    return float((gains / np.log2(np.arange(2, len(gains) + 2))).sum())


def _share(part: float, whole: float) -> float:
    return float(part / whole) if whole else 0.0
