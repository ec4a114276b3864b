"""What an answerer is given: the question and the rows that were put before it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ragwb.service.embedding import Vectors


@dataclass(frozen=True, slots=True)
class Evidence:
    """A question and its context.

    Attributes:
        question: as it was asked.
        vector: of the question as it was searched with; None when no model saw it.
        rows: the context, rows of the index in order.
        closed: rows that nothing but their department keeps from who asks.
    """

    question: str
    vector: Vectors | None
    rows: tuple[int, ...]
    closed: npt.NDArray[np.int64]
