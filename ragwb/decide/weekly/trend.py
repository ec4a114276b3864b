"""The figures of one run as a point of a trend: each with its interval and its counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragwb.decide.outcomes import Outcomes, lower_is_better
from ragwb.measure.answer_scores import FIGURES as ANSWER_FIGURES
from ragwb.measure.cost import PERCENTILES
from ragwb.measure.statistics import (
    CONFIDENCE,
    RESAMPLES,
    SEED,
    Interval,
    bootstrap_means,
    bootstrap_ratio,
    wilson,
)
from ragwb.measure.summary import SMALL_N

FIGURE_COLUMNS = ("metric", "value", "low", "high", "n", "n_excluded", "counts", "direction")
FEWEST_FOR_PERCENTILE = 20
"""Cases below which the interval of a percentile is unknown: its end would lie beyond all seen."""
# A case has such a figure or has it not; of the others a mean of zeros and ones is no rate.
_SHARES = frozenset({"hit_rate", *ANSWER_FIGURES}) - {"forbidden_claims"}
_BLOCK = 500  # resamples held at a time

Floats = npt.NDArray[np.float64]


def figure_rows(outcomes: Outcomes) -> list[dict[str, Any]]:
    """Every figure of a run over its scored cases, then p50_ms, p95_ms and p99_ms.

    Args:
        outcomes: of one run.

    Returns:
        metric; value, None where undefined or not observed; low, high: 95 %, Wilson of a rate, else
        a percentile bootstrap over cases, None where there is none; n: cases that it is defined
        for; n_excluded: scored cases that it is not defined for; counts such as 9/10 for a rate of
        up to 100 cases, else None; direction: "higher" or "lower" is better.
    """
    scored = outcomes.frame[outcomes.frame["status"] == "scored"]
    means, intervals = outcomes.figures(), _intervals(outcomes, scored)
    rows = []
    for name in outcomes.metrics:
        values = _known(scored[name])
        rows.append(
            {
                "metric": name,
                "value": means[name],
                **_ends(intervals[name]),
                "n": len(values),
                "n_excluded": len(scored) - len(values),
                "counts": _counts(values) if _is_rate(name, values) else None,
                "direction": "lower" if lower_is_better(name) else "higher",
            }
        )
    return [*rows, *_latency_rows(outcomes, scored, means)]


def set_rows(outcomes: Outcomes, metric: str) -> list[dict[str, Any]]:
    """One figure of each set (core, incremental, online) by itself, and its number of failed cases.

    Returns:
        set, value, low, high, n, counts as in `figure_rows`; n_failed: cases that fail by the rule
        for comparisons.
    """
    scored = outcomes.frame[outcomes.frame["status"] == "scored"]
    rows = []
    for name, cases in scored.groupby("set", sort=True):
        values = _known(cases[metric])
        is_rate = _is_rate(metric, values)
        rows.append(
            {
                "set": str(name),
                "value": float(values.mean()) if len(values) else None,
                **_ends(_interval(values, is_rate=is_rate)),
                "n": len(values),
                "counts": _counts(values) if is_rate else None,
                "n_failed": int(cases["failed"].fillna(False).astype(bool).sum()),
            }
        )
    return rows


def percentile_interval(
    cases: Sequence[str], values: Floats, q: float, *, resamples: int = RESAMPLES, seed: int = SEED
) -> Interval | None:
    """95 % percentile-bootstrap interval of a nearest-rank percentile, cases resampled whole.

    Args:
        cases: the case of each value.
        values: shape (values,), no nulls.
        q: a share from 0 to 1.
        resamples: number of resamples.
        seed: of the generator.

    Returns:
        None with fewer than `FEWEST_FOR_PERCENTILE` cases.
    """
    codes, names = pd.factorize(np.asarray(cases, dtype=object))
    n = len(names)
    if n < FEWEST_FOR_PERCENTILE:
        return None
    order = np.argsort(values, kind="stable")
    ordered, codes = values[order], codes[order]
    rng, drawn = np.random.default_rng(seed), []
    for start in range(0, resamples, _BLOCK):
        size = min(_BLOCK, resamples - start)
        picked = rng.integers(0, n, size=(size, n)) + np.arange(size)[:, None] * n
        times = np.bincount(picked.ravel(), minlength=size * n).reshape(size, n)
        reached = times[:, codes].cumsum(axis=1)
        # The nearest rank: the first value at which a share q of all of them is reached.
        needed = np.maximum(np.ceil(q * reached[:, -1:] - 1e-9), 1)
        drawn.append(ordered[(reached >= needed).argmax(axis=1)])
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(np.concatenate(drawn), [tail, 1 - tail], method="inverted_cdf")
    return Interval(float(low), float(high), "bootstrap", resamples, seed)


def _intervals(outcomes: Outcomes, scored: pd.DataFrame) -> dict[str, Interval | None]:
    """The interval of each figure; columns without nulls are resampled together."""
    found: dict[str, Interval | None] = {}
    whole = []
    for name in outcomes.metrics:
        values = _known(scored[name])
        if outcomes.shares is not None and name in outcomes.shares:
            found[name] = _ratio_interval(outcomes.shares[name], scored, name)
        elif _is_rate(name, values) or len(values) < len(scored):
            found[name] = _interval(values, is_rate=_is_rate(name, values))
        else:
            whole.append(name)
    if whole:
        table = scored[whole].to_numpy(dtype=np.float64)
        found |= dict(zip(whole, bootstrap_means(table), strict=True))
    return found


def _ratio_interval(shares: pd.Series[Any], scored: pd.DataFrame, name: str) -> Interval | None:
    values = scored[name].to_numpy(dtype=np.float64)
    weights = shares.reindex(scored["case_id"]).to_numpy(dtype=np.float64)
    known = ~np.isnan(values) & ~np.isnan(weights)
    return bootstrap_ratio((values * weights)[known], weights[known]) if known.any() else None


def _interval(values: Floats, *, is_rate: bool) -> Interval | None:
    if is_rate:
        return wilson(int(values.sum()), len(values))
    return bootstrap_means(values)[0]


def _latency_rows(
    outcomes: Outcomes, scored: pd.DataFrame, means: dict[str, float | None]
) -> Iterator[dict[str, Any]]:
    taken = outcomes.latencies[outcomes.latencies["case_id"].isin(scored["case_id"])].dropna()
    values = taken["latency_ms"].to_numpy(dtype=np.float64)
    cases = taken["case_id"].tolist()
    n = len(set(cases))
    for name, q in PERCENTILES.items():
        # Of the three one is watched; each interval takes as long as all other figures together.
        interval = percentile_interval(cases, values, q) if name == "p95_ms" else None
        yield {
            "metric": name,
            "value": means[name],
            **_ends(interval),
            "n": n,
            "n_excluded": len(scored) - n,
            "counts": None,
            "direction": "lower",
        }


def _known(values: pd.Series[Any]) -> Floats:
    known: Floats = values.dropna().to_numpy(dtype=np.float64)
    return known


def _is_rate(metric: str, values: Floats) -> bool:
    """Whether a figure is a share of cases, each of which is 0 or 1."""
    is_share = metric.partition("@")[0] in _SHARES
    return len(values) > 0 and is_share and bool(np.isin(values, (0.0, 1.0)).all())


def _counts(values: Floats) -> str | None:
    return f"{int(values.sum())}/{len(values)}" if len(values) <= SMALL_N else None


def _ends(interval: Interval | None) -> dict[str, float | None]:
    return {
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
    }
