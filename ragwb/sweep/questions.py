"""Vectors of the questions, computed once for a model, with what each of them took."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from ragwb.service.embedding import Embedder, Kind, Vectors
from ragwb.sweep.cache import key_of, only_one

FOLDER = "questions"


@dataclass(frozen=True, slots=True)
class Questions:
    """The vectors of distinct questions.

    Attributes:
        row_of: row by question.
        vectors: float32, a unit row a question.
        taken_ms: what each took when it was computed, alone and after a warm-up.
    """

    row_of: dict[str, int]
    vectors: Vectors
    taken_ms: npt.NDArray[np.float64]

    def known(self, embedder: Embedder) -> Embedder:
        """The same embedder, which looks these questions up."""

        def encode(texts: Sequence[str], kind: Kind) -> Vectors:
            if kind == "query" and all(text in self.row_of for text in texts):
                return self.vectors[[self.row_of[text] for text in texts]]
            return embedder.encode(texts, kind)

        return replace(embedder, encode=encode)


def embed_questions(embedder: Embedder, texts: Sequence[str], home: Path) -> Questions:
    """The vectors of questions: those that were kept for this model, else computed now and kept.

    Each is asked for alone, as a service would, so that its time is that of one question.
    """
    distinct = list(dict.fromkeys(texts))
    path = home / FOLDER / f"{key_of([embedder.model, distinct])}.npz"
    row_of = {text: row for row, text in enumerate(distinct)}
    with only_one(path.with_suffix(".lock")):
        kept = _read(path, len(distinct), embedder.dimensions)
        if kept is None:
            kept = _compute(embedder, distinct)
            _write(path, *kept)
    return Questions(row_of, *kept)


def _compute(embedder: Embedder, texts: Sequence[str]) -> tuple[Vectors, npt.NDArray[np.float64]]:
    vectors = np.zeros((len(texts), embedder.dimensions), dtype=np.float32)
    taken = np.zeros(len(texts))
    for row, text in enumerate(texts):
        if row == 0:
            embedder.query(text)
        start = time.perf_counter()
        vectors[row] = embedder.query(text)
        taken[row] = (time.perf_counter() - start) * 1000
    return vectors, taken


def _read(
    path: Path, n_rows: int, dimensions: int
) -> tuple[Vectors, npt.NDArray[np.float64]] | None:
    try:
        with path.open("rb") as file, np.load(file) as held:
            vectors, taken = held["vectors"], held["taken_ms"]
    except (OSError, ValueError, KeyError, EOFError, BadZipFile):
        return None
    is_whole = vectors.shape == (n_rows, dimensions) and taken.shape == (n_rows,)
    return (vectors, taken) if is_whole else None


def _write(path: Path, vectors: Vectors, taken: npt.NDArray[np.float64]) -> None:
    part = path.with_suffix(f".part-{os.getpid()}.npz")
    np.savez(part, vectors=vectors, taken_ms=taken)
    part.replace(path)
