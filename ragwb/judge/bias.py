"""What moves a judge besides the answer: how long it is, and in which order two were shown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from statistics import fmean

import numpy as np

from ragwb.judge.agreement import Figure, Floats, Paired, agreement, resampled
from ragwb.judge.scale import Scale, Value
from ragwb.judge.verdicts import Verdicts
from ragwb.measure.statistics import RESAMPLES, SEED

_NO_LENGTH = "the verdicts do not say how long the answers are"
_NO_NUMBERS = "the values have no order"
_ONE_ORDER = "no pair was judged in both orders"


def length_bias(
    human: Mapping[str, Mapping[str, Value]],
    judge: Mapping[str, Value],
    verdicts: Verdicts,
    scale: Scale,
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> dict[str, Figure]:
    """Rank correlation with length: of the judge's values, the people's, and their difference.

    Each is Spearman over items, the people's value of an item being their mean. Long answers may
    well be better; what people do not share is the judge's own: `length_error` correlates judge
    minus people with length and is near 0 without bias.

    Returns:
        length_judge, length_human, length_error, in -1..1.
    """
    names = ("length_judge", "length_human", "length_error")
    lengths = {v.item_id: v.length_chars for v in verdicts.verdicts if v.length_chars is not None}
    items = [item_id for item_id in human if item_id in lengths]
    if not items:
        return {name: Figure(None, 0, 0, why=_NO_LENGTH) for name in names}
    by_judge = [_number(judge[item_id], scale) for item_id in items]
    by_people = [[_number(v, scale) for v in human[item_id].values()] for item_id in items]
    if None in by_judge or any(None in values for values in by_people):
        return {name: Figure(None, len(items), len(items), why=_NO_NUMBERS) for name in names}
    said = np.array(by_judge, dtype=np.float64)
    people = np.array([fmean(value for value in row if value is not None) for row in by_people])
    length = [float(lengths[item_id]) for item_id in items]
    found = {}
    for name, values in zip(names, (said, people, said - people), strict=True):
        pairs = Paired(length, values.tolist(), np.arange(len(items)), len(items), None)
        found[name] = agreement(pairs, resamples=resamples, seed=seed)["spearman"]
    return found


def position_bias(
    verdicts: Verdicts,
    criterion: str,
    human: Mapping[str, Mapping[str, Value]],
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> dict[str, Figure]:
    """What the order of two candidates does to the judge, over pairs judged in both orders.

    Returns:
        position_flip_rate: pairs whose preference (first, second, none) changes with the order.
        first_preferred_rate: of the verdicts that prefer one, those for the candidate shown first;
        0.5 without bias. Both in 0..1, over the labelled items.
    """
    names = ("position_flip_rate", "first_preferred_rate")
    orders: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for verdict in verdicts.verdicts:
        value = (verdict.scores or {}).get(criterion)
        if verdict.item_id in human and value is not None and not isinstance(value, str):
            orders[verdict.item_id][verdict.order].append(value)
    both = [said for said in orders.values() if len(said) == 2]
    if not both:
        return {name: Figure(None, 0, 0, why=_ONE_ORDER) for name in names}
    signs = np.array([[np.sign(fmean(said[o])) for o in ("given", "swapped")] for said in both])
    flips = (signs[:, 0] != signs[:, 1]).astype(np.float64)
    # A positive value is for the second as given, which the swapped order shows first.
    first = (signs[:, 0] < 0).astype(np.float64) + (signs[:, 1] > 0)
    decided = np.count_nonzero(signs, axis=1).astype(np.float64)
    ones = np.ones(len(both))
    counts = ((flips, ones), (first, decided))
    return {
        name: _ratio(top, bottom, resamples, seed)
        for name, (top, bottom) in zip(names, counts, strict=True)
    }


def _ratio(top: Floats, bottom: Floats, resamples: int, seed: int) -> Figure:
    n, total = len(top), float(bottom.sum())
    if total == 0:
        return Figure(None, n, n, why="no verdict prefers one")

    def ratio(weights: Floats) -> Floats:
        below = weights @ bottom
        found = np.full(len(below), np.nan)
        np.divide(weights @ top, below, out=found, where=below > 0)
        return found

    interval = resampled(ratio, n, resamples=resamples, seed=seed)
    return Figure(float(top.sum()) / total, n, n, interval)


def _number(value: Value, scale: Scale) -> float | None:
    if not isinstance(value, str):
        return float(value)
    return float(scale.place(value)) if scale.is_ordered and scale.holds(value) else None
