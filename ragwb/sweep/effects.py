"""What a factor does: credited only where points differ in that factor alone.

Two points that differ in size and in strategy say nothing about either. So the effect of a value
comes from pairs of points that are alike in everything else, each difference taken case by case.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ragwb.measure.statistics import bootstrap_means
from ragwb.sweep.grid import FACTORS, Factor, Point
from ragwb.sweep.pairing import moved

EFFECT_COLUMNS = (
    "factor",
    "before",
    "after",
    "metric",
    "effect",
    "low",
    "high",
    "n",
    "n_pairs",
    "least",
    "most",
    "win",
    "loss",
    "p",
)


@dataclass(frozen=True, slots=True)
class Uncredited:
    """A factor that takes several values and gets no credit.

    Attributes:
        factor: its name. reason: why, in words.
    """

    factor: Factor
    reason: str


def matched_pairs(
    points: Sequence[Point], factor: Factor, before: Any, after: Any
) -> list[tuple[Point, Point]]:
    """Pairs of points that differ in one factor alone, which goes from one value to another."""
    others = {_without(point, factor): point for point in points if _is(point, factor, after)}
    return [
        (point, others[_without(point, factor)])
        for point in points
        if _is(point, factor, before) and _without(point, factor) in others
    ]


def main_effects(
    figures: Mapping[Point, pd.DataFrame], reference: Point, metrics: Sequence[str]
) -> pd.DataFrame:
    """The effect of each value of each factor against the reference point's value of it.

    Args:
        figures: of each point the figures of the same cases, indexed by case_id.
        reference: its values are what every effect starts from; a value with which no pair starts
            from there is held against the first value of the grid that it has a pair with.
        metrics: columns of the figures.

    Returns:
        A row a factor, value and metric, as `EFFECT_COLUMNS`: effect, the mean over cases of each
        case's mean difference over the pairs; low, high: its 95 % interval, bootstrap over cases;
        n cases, those for which every pair has the figure; n_pairs; least, most: the smallest and
        largest effect of a single pair, which lie apart where another factor matters; win, loss:
        cases whose figure rises and falls; p: of the exact sign test on them.
    """
    rows = [
        row
        for factor in FACTORS
        for before, after, pairs in _contrasts(list(figures), factor, reference)
        for row in _rows(figures, (factor, before, after), pairs, metrics)
    ]
    return pd.DataFrame(rows, columns=list(EFFECT_COLUMNS))


def uncredited(points: Sequence[Point]) -> tuple[Uncredited, ...]:
    """Factors that take several values in a sweep of which no effect can be told."""
    found = []
    for factor in FACTORS:
        values = list(dict.fromkeys(getattr(point, factor) for point in points))
        lacking = [value for value in values if not _has_pair(points, factor, value)]
        if len(values) < 2 or not lacking:
            continue
        named = "" if len(lacking) == len(values) else f"{', '.join(map(str, lacking))}: "
        found.append(Uncredited(factor, f"{named}no two points differ in it alone"))
    return tuple(found)


def _has_pair(points: Sequence[Point], factor: Factor, value: Any) -> bool:
    values = {getattr(point, factor) for point in points} - {value}
    return any(matched_pairs(points, factor, other, value) for other in values)


def _contrasts(
    points: Sequence[Point], factor: Factor, reference: Point
) -> Iterator[tuple[Any, Any, list[tuple[Point, Point]]]]:
    own = getattr(reference, factor)
    values = list(dict.fromkeys([own, *(getattr(point, factor) for point in points)]))
    for place, after in enumerate(values):
        for before in values[:place]:
            pairs = matched_pairs(points, factor, before, after)
            if pairs:
                yield before, after, pairs
                break


def _rows(
    figures: Mapping[Point, pd.DataFrame],
    contrast: tuple[Factor, Any, Any],
    pairs: Sequence[tuple[Point, Point]],
    metrics: Sequence[str],
) -> Iterator[dict[str, Any]]:
    factor, before, after = contrast
    for metric in metrics:
        table = np.column_stack([figures[b][metric] - figures[a][metric] for a, b in pairs])
        known = table[~np.isnan(table).any(axis=1)]
        means = known.mean(axis=1)
        by_pair = known.mean(axis=0) if len(known) else np.full(len(pairs), np.nan)
        interval = bootstrap_means(means)[0]
        win, loss, p = moved(means)
        yield {
            "factor": factor,
            "before": before,
            "after": after,
            "metric": metric,
            "effect": float(means.mean()) if len(means) else np.nan,
            "low": interval.low if interval else np.nan,
            "high": interval.high if interval else np.nan,
            "n": len(means),
            "n_pairs": len(pairs),
            "least": float(by_pair.min()),
            "most": float(by_pair.max()),
            "win": win,
            "loss": loss,
            "p": p,
        }


def _is(point: Point, factor: Factor, value: Any) -> bool:
    # True == 1 in Python, and a size is never a flag.
    held = getattr(point, factor)
    return type(held) is type(value) and held == value


def _without(point: Point, factor: Factor) -> tuple[Any, ...]:
    return tuple(getattr(point, name) for name in FACTORS if name != factor)
