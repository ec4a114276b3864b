"""Where results are cut: at the same K for every chunking, or at the same context tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ragwb.errors import MetricError
from ragwb.measure.listed import count
from ragwb.sweep.results import BY_K, Floats, PointResult

# Before any result: nothing is found, and a share of what was delivered is not defined.
_WITHOUT_RESULTS = {"passage_precision": np.nan}
FIGURES = (*BY_K, "tokens", "n_used")


@dataclass(frozen=True, slots=True)
class Cut:
    """A cut of every result list: the first `k`, or the most whose tokens fit `tokens`.

    Exactly one of the two is given. At equal tokens a list of small chunks is cut later than one of
    large chunks, so that neither buys its figures with more context. The result that no longer fits
    is left out whole, so that large chunks leave more of the budget unused.
    """

    k: int | None = None
    tokens: int | None = None

    def __post_init__(self) -> None:
        if (self.k is None) == (self.tokens is None):
            raise MetricError("a cut is at a K or at a number of tokens: give one of the two")
        if any(given is not None and given < 1 for given in (self.k, self.tokens)):
            raise MetricError(f"a cut at {self}: give a number of at least 1")

    def __str__(self) -> str:
        return f"K {self.k}" if self.tokens is None else count(self.tokens, "token")

    @property
    def key(self) -> str:
        """The cut in a word, k=5 or tokens=800, for frames and JSON."""
        return f"k={self.k}" if self.tokens is None else f"tokens={self.tokens}"


def figures_at(result: PointResult, cut: Cut) -> pd.DataFrame:
    """The figures of each case of a point at a cut, indexed by case_id.

    Args:
        result: a point that did not fail.
        cut: where the lists are cut.

    Returns:
        float64 columns: those of `BY_K`, null where undefined; tokens of the results used; n_used,
        how many those are, which is 0 where the first result alone is over the budget: then nothing
        was found. Null for a case that failed or was not asked.

    Raises:
        MetricError: K is beyond what was asked for.
    """
    if cut.k is not None and cut.k > result.top_k:
        raise MetricError(f"K {cut.k}: nothing was asked for beyond {result.top_k}")
    n_results = result.cases["n_results"].to_numpy(np.float64)
    used = _used(result, cut, n_results)
    columns = {name: _at(result.by_k[name], used, name) for name in (*BY_K, "tokens")}
    unknown = np.isnan(n_results)
    columns["tokens"] = np.where(unknown, np.nan, columns["tokens"])
    n_used = np.where(unknown, np.nan, np.minimum(used, np.nan_to_num(n_results)))
    index = pd.Index(result.cases["case_id"], name="case_id")
    return pd.DataFrame({**columns, "n_used": n_used}, index=index)


def n_short(result: PointResult, cut: Cut) -> int:
    """Cases whose list ended at what was asked for, before the token budget was reached.

    There the figures may be too low: more was there to be had.
    """
    if cut.tokens is None:
        return 0
    scored = (result.cases["status"] == "scored").to_numpy()
    ended = result.cases["n_results"].to_numpy(np.float64) >= result.top_k
    return int((scored & ended & (result.by_k["tokens"][:, -1] <= cut.tokens)).sum())


def least_tokens(results: Sequence[PointResult]) -> float | None:
    """Tokens of the smallest first result of any case, below which no budget meets anything."""
    firsts = [
        result.by_k["tokens"][(result.cases["n_results"] > 0).to_numpy(), 0]
        for result in results
        if result.error is None
    ]
    together = np.concatenate(firsts) if firsts else np.zeros(0)
    return float(together.min()) if len(together) else None


def _used(
    result: PointResult, cut: Cut, n_results: Floats
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """How many results of each case are used, up to what was asked for."""
    if cut.k is not None:
        return np.full(len(n_results), cut.k, dtype=np.int64)
    within = result.by_k["tokens"] <= (cut.tokens or 0)
    # Behind the last result the sums stay the same: they are not further results.
    held = np.arange(1, result.top_k + 1) <= np.nan_to_num(n_results)[:, None]
    return np.asarray((within & held).sum(axis=1), dtype=np.int64)


def _at(values: Floats, used: np.ndarray[tuple[int], np.dtype[np.int64]], name: str) -> Floats:
    rows = np.arange(len(values))
    found = values[rows, np.maximum(used - 1, 0)]
    nothing = np.where(np.isnan(values[:, 0]), np.nan, _WITHOUT_RESULTS.get(name, 0.0))
    return np.asarray(np.where(used == 0, nothing, found), dtype=np.float64)
