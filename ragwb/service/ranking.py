"""Scores to ranked lists: cut, fusion by reciprocal rank, and sentence MaxSim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ragwb.service.embedding import Vectors

Rows = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Ranking:
    """Rows of an index, best first, with the score that ordered them.

    Equal scores stand in the order of the rows, so that the same question gives the same list.
    """

    rows: Rows
    scores: Scores

    def rank(self, row: int) -> int | None:
        """Position of a row from 1, or None when it is not held."""
        found = np.flatnonzero(self.rows == row)
        return int(found[0]) + 1 if len(found) else None


class Channel(Protocol):
    """A question as one channel sees it: every row has a score there, or none."""

    def scores(self) -> Scores:
        """The score of every row, higher is better, -inf where it has none; never approximate."""
        ...

    def best(self, allowed: Mask | None, limit: int) -> Ranking:
        """The allowed rows (None: all) with a score, best first, at most `limit` of them."""
        ...


@dataclass(frozen=True, slots=True)
class Scored:
    """A channel whose scores of all rows are in memory."""

    values: Scores

    def scores(self) -> Scores:
        """The score of every row."""
        return self.values

    def best(self, allowed: Mask | None, limit: int) -> Ranking:
        """The allowed rows with a score, best first."""
        everything = np.ones(len(self.values), dtype=np.bool_)
        return best(self.values, everything if allowed is None else allowed, limit)


class Sentences(Protocol):
    """What holds the vectors of the sentences of rows."""

    def sentences_of(self, rows: Sequence[int]) -> list[Vectors]:
        """For each row the unit vectors of its sentences, in their order."""
        ...


def best(scores: Scores, allowed: Mask, limit: int | None = None) -> Ranking:
    """The allowed rows with a finite score, best first, at most `limit` of them."""
    rows = np.flatnonzero(allowed & np.isfinite(scores))
    order = np.argsort(-scores[rows], kind="stable")[:limit]
    return Ranking(rows[order], scores[rows[order]])


def fuse(channels: Mapping[str, Ranking], weights: Mapping[str, float], k: int) -> Ranking:
    """Weighted reciprocal rank fusion: a row's score is the sum of weight / (k + rank).

    Args:
        channels: a ranking by channel.
        weights: weight ≥ 0 by channel.
        k: the constant, ≥ 0; greater means that the first ranks count less.

    Returns:
        Every row of any channel whose weight is above 0.

    Source: Cormack, Clarke and Büttcher, SIGIR 2009, with weights.
    """
    sums: dict[int, float] = {}
    for name, ranking in channels.items():
        if weights[name] > 0:
            for position, row in enumerate(ranking.rows.tolist(), start=1):
                sums[row] = sums.get(row, 0.0) + weights[name] / (k + position)
    rows = np.array(sorted(sums), dtype=np.int64)
    scores = np.array([sums[row] for row in rows.tolist()], dtype=np.float64)
    order = np.argsort(-scores, kind="stable")
    return Ranking(rows[order], scores[order])


def distinct(ranking: Ranking, key_of: Rows) -> Ranking:
    """The ranking without the rows whose key an earlier row has.

    Args:
        ranking: rows, best first.
        key_of: a key by row of the index.
    """
    _, first = np.unique(key_of[ranking.rows], return_index=True)
    kept = np.sort(first)
    return Ranking(ranking.rows[kept], ranking.scores[kept])


def max_sim(index: Sentences, rows: Rows, query: Vectors) -> Scores:
    """For each row the greatest cosine of the question with one of its sentences, -1 to 1."""
    spans = index.sentences_of(rows.tolist())
    return np.array([float(np.max(span @ query)) for span in spans], dtype=np.float64)


def rerank(index: Sentences, fused: Ranking, query: Vectors, weight: float) -> Ranking:
    """The fused list in the order of weight × MaxSim + (1 − weight) × fused score.

    Both are scaled to 0..1 over the list, because a cosine and a reciprocal rank have no common
    unit.
    """
    if not len(fused.rows):
        return fused
    similarity = _unit_range(max_sim(index, fused.rows, query))
    scores = weight * similarity + (1 - weight) * _unit_range(fused.scores)
    order = np.argsort(-scores, kind="stable")
    return Ranking(fused.rows[order], scores[order])


def _unit_range(scores: Scores) -> Scores:
    spread = float(np.ptp(scores))
    return (scores - scores.min()) / spread if spread > 0 else np.ones_like(scores)
