"""How far figures moved between two sides: a row a figure, over the cases that both have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragwb.decide.chance import Observed, percentile_change
from ragwb.decide.outcomes import Outcomes, lower_is_better
from ragwb.decide.thresholds import ROUNDING
from ragwb.measure.answer_scores import SHARED
from ragwb.measure.cost import COSTS, PERCENTILES, percentile
from ragwb.measure.shown import weighted_mean
from ragwb.measure.statistics import Interval, bootstrap_ratio_change, mcnemar, paired_bootstrap
from ragwb.measure.summary import SMALL_N

DELTA_COLUMNS = (
    "metric",
    "baseline",
    "candidate",
    "delta",
    "low",
    "high",
    "n",
    "n_excluded",
    "win",
    "tie",
    "loss",
    "p",
    "direction",
    "counts",
    "weighted",
)

Floats = npt.NDArray[np.float64]
Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Sides:
    """What the rows of deltas are made from.

    Attributes:
        pairs: a row a pair, with <metric>_before and <metric>_after.
        metrics: the figures.
        baseline, candidate: for latencies, and the shares with which cases count.
    """

    pairs: pd.DataFrame
    metrics: tuple[str, ...]
    baseline: Outcomes
    candidate: Outcomes


def delta_rows(sides: Sides) -> list[Row]:
    """A row of `DELTA_COLUMNS` a figure, then one for each percentile of latency.

    A figure that no case has on either side has no row.
    """
    pairs = sides.pairs
    weights = pairs["weight"].to_numpy(np.float64)
    columns = {name: _columns(pairs, name) for name in sides.metrics}
    known = {name: two for name, two in columns.items() if not np.isnan(two).all()}
    whole = {name: _interval_columns(two) for name, two in known.items() if name not in SHARED}
    intervals = _intervals(whole)
    rows = []
    for name, (before, after) in known.items():
        if name in SHARED:
            rows.append(_shared_row(name, before, after, sides))
        else:
            rows.append(_mean_row(name, before, after, intervals[name], weights))
    return [*rows, *_latency_rows(sides)]


def _columns(pairs: pd.DataFrame, name: str) -> tuple[Floats, Floats]:
    before, after = (pairs[f"{name}_{end}"].to_numpy(np.float64) for end in ("before", "after"))
    return before, after


def _interval_columns(two: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    both = ~np.isnan(two[0]) & ~np.isnan(two[1])
    return two[0][both], two[1][both]


def _intervals(columns: dict[str, tuple[Floats, Floats]]) -> dict[str, Interval | None]:
    """Intervals of the mean differences; figures of the same number of pairs are drawn together."""
    by_length: dict[int, list[str]] = {}
    for name, (before, _) in columns.items():
        by_length.setdefault(len(before), []).append(name)
    found: dict[str, Interval | None] = {}
    for names in by_length.values():
        before, after = (np.column_stack([columns[name][i] for name in names]) for i in (0, 1))
        found |= dict(zip(names, paired_bootstrap(before, after), strict=True))
    return found


def _mean_row(
    name: str, before: Floats, after: Floats, interval: Interval | None, weights: Floats
) -> Row:
    both = ~np.isnan(before) & ~np.isnan(after)
    b, a, n = before[both], after[both], int(both.sum())
    is_binary = n > 0 and _is_rate(name) and bool(np.isin([b, a], (0.0, 1.0)).all())
    won, lost = _won_lost(name, a - b)
    return {
        **_row(name, _mean(b), _mean(a), interval, n=n, n_pairs=len(before), moved=(won, lost)),
        # The mean of the differences, which rounds otherwise than the difference of the means.
        "delta": _mean(a - b),
        "p": mcnemar(won, lost) if is_binary else None,
        "counts": _counts(b, a) if is_binary and n <= SMALL_N else None,
        "weighted": _number(weighted_mean(a - b, weights[both])),
    }


def _row(
    name: str,
    baseline: float | None,
    candidate: float | None,
    interval: Interval | None,
    *,
    n: int,
    n_pairs: int,
    moved: tuple[int, int],
) -> Row:
    """A figure without a test, counts or weights; `moved`: cases that are better, and worse."""
    won, lost = moved
    return {
        "metric": name,
        "baseline": baseline,
        "candidate": candidate,
        "delta": None if baseline is None or candidate is None else candidate - baseline,
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
        "n": n,
        "n_excluded": n_pairs - n,
        "win": won,
        "tie": n - won - lost,
        "loss": lost,
        "p": None,
        "direction": _direction(name),
        "counts": None,
        "weighted": None,
    }


def _shared_row(name: str, before: Floats, after: Floats, sides: Sides) -> Row:
    """The change of a figure of which each side has cases of its own in the denominator."""
    case_ids = sides.pairs["case_id"]
    parts = [
        _parts(name, values, outcomes, case_ids)
        for values, outcomes in ((before, sides.baseline), (after, sides.candidate))
    ]
    (b, a) = (_number(num.sum() / den.sum()) if den.any() else None for num, den in parts)
    interval = bootstrap_ratio_change(*parts) if b is not None and a is not None else None
    either = ~np.isnan(before) | ~np.isnan(after)
    moved = _won_lost(name, (after - before)[~np.isnan(after - before)])
    n = int(either.sum())
    return _row(name, b, a, interval, n=n, n_pairs=len(before), moved=moved)


def _parts(
    name: str, values: Floats, outcomes: Outcomes, case_ids: pd.Series[Any]
) -> tuple[Floats, Floats]:
    """Numerators and denominators of a ratio: a case counts with the share of its repeats."""
    defined = ~np.isnan(values)
    shares = defined.astype(np.float64)
    if outcomes.shares is not None and name in outcomes.shares:
        given = outcomes.shares[name].reindex(case_ids).to_numpy(np.float64)
        shares = np.where(defined, np.nan_to_num(given), 0.0)
    return np.where(defined, values, 0.0) * shares, shares


def _latency_rows(sides: Sides) -> Iterator[Row]:
    """Percentiles of the latencies of pairs that have some on both sides."""
    case_ids = pd.Index(sides.pairs["case_id"])
    two = [_latencies(side, case_ids) for side in (sides.baseline, sides.candidate)]
    n_pairs = len(case_ids)
    has_both = np.logical_and(*(np.bincount(one.case, minlength=n_pairs) > 0 for one in two))
    if not has_both.any():
        return
    if not timed_alike(sides.baseline, sides.candidate):
        yield from _apart_rows(two[0], two[1], n_pairs)
        return
    place = np.cumsum(has_both) - 1
    n = int(has_both.sum())
    before, after = (
        Observed(place[one.case[has_both[one.case]]], one.values[has_both[one.case]]) for one in two
    )
    moved = _won_lost("p50_ms", _case_means(after, n) - _case_means(before, n))
    for name, q in PERCENTILES.items():
        b, a = percentile(before.values, q), percentile(after.values, q)
        interval = percentile_change(before, after, n, q)
        yield _row(name, b, a, interval, n=n, n_pairs=n_pairs, moved=moved)


def timed_alike(baseline: Outcomes, candidate: Outcomes) -> bool:
    """Whether the milliseconds of both sides are of the same work, as far as they tell."""
    return None in (baseline.timed, candidate.timed) or baseline.timed == candidate.timed


def _apart_rows(before: Observed, after: Observed, n_pairs: int) -> Iterator[Row]:
    """Latencies of different work, each side's own and no difference of them."""
    for name, q in PERCENTILES.items():
        b, a = percentile(before.values, q), percentile(after.values, q)
        row = _row(name, b, a, None, n=0, n_pairs=n_pairs, moved=(0, 0))
        yield {**row, "delta": None}


def _latencies(side: Outcomes, case_ids: pd.Index[Any]) -> Observed:
    known = side.latencies[side.latencies["latency_ms"].notna()]
    case = case_ids.get_indexer(pd.Index(known["case_id"]))
    inside = case >= 0
    values = known["latency_ms"].to_numpy(np.float64)
    return Observed(case[inside].astype(np.int64), values[inside])


def _case_means(observed: Observed, n: int) -> Floats:
    sums = np.bincount(observed.case, observed.values, minlength=n)
    means: Floats = sums / np.bincount(observed.case, minlength=n)
    return means


def _won_lost(name: str, change: Floats) -> tuple[int, int]:
    """Number of cases that the candidate does better, and worse."""
    better = -change if lower_is_better(name) else change
    return int((better > ROUNDING).sum()), int((better < -ROUNDING).sum())


def _is_rate(name: str) -> bool:
    """Whether 1 says that something is so of a case, and 0 that it is not; no count does."""
    return name not in COSTS and name.partition("@")[0] != "duplicate_rate"


def _direction(name: str) -> str:
    return "lower" if lower_is_better(name) else "higher"


def _counts(before: Floats, after: Floats) -> str:
    n = len(before)
    return f"{int(before.sum())}/{n} → {int(after.sum())}/{n}"


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if len(values) else None


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def frame_of(rows: Sequence[Row], columns: Sequence[str]) -> pd.DataFrame:
    """Rows as a frame: numbers as float64 and counts as int64, null where there is none."""
    frame = pd.DataFrame(list(rows), columns=list(columns))
    numbers = ("baseline", "candidate", "delta", "low", "high", "p", "p_adjusted", "weighted")
    kinds = {name: "float64" for name in numbers if name in frame}
    return frame.astype(kinds)
