"""Which point to take, and how far its figure can be believed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ragwb.errors import UsageError
from ragwb.measure.listed import case_words, count
from ragwb.measure.statistics import Interval, bootstrap_means, paired_bootstrap
from ragwb.sweep.cuts import Cut
from ragwb.sweep.grid import Point
from ragwb.sweep.pairing import CUTTING, RATES, moved, tells
from ragwb.sweep.split import Part

if TYPE_CHECKING:
    from ragwb.sweep.outcome import ChunkingSweep

CHOICES = (*RATES, *CUTTING)


@dataclass(frozen=True, slots=True)
class Choice:
    """The best point by one figure.

    Attributes:
        point: of equals the one that delivers fewer tokens, then the first of the grid.
        metric, cut: what it was chosen by.
        chosen_on, reported_on: numbers of cases.
        chosen_value: its figure on the cases that it was chosen on.
        value, interval: its figure on the cases that are reported.
        delta, delta_interval: how far it lies from the reference there; None for the reference.
        p: of the exact sign test on the cases whose figure differs; None for the reference.
        fixed, broken: cases that it fixes and breaks against the reference there.
        forbidden: cases there in which something comes back that must not.
        is_same_cases: whether it was chosen on the cases that are reported; then expect less.
    """

    point: Point
    metric: str
    cut: Cut
    chosen_on: int
    reported_on: int
    chosen_value: float
    value: float
    interval: Interval | None
    delta: float | None
    delta_interval: Interval | None
    p: float | None
    fixed: tuple[str, ...]
    broken: tuple[str, ...]
    forbidden: tuple[str, ...]
    is_same_cases: bool

    @property
    def is_flat(self) -> bool:
        """Whether its distance from the reference is not more than chance (see `tells`)."""
        if self.delta_interval is None:
            return True
        return not tells(self.delta_interval.low, self.delta_interval.high, self.p)

    @property
    def words(self) -> str:
        """The choice in a sentence or two, without the name of the point."""
        said = f"{self.metric} {self.value:.3f}{_ends(self.interval)} on {self.reported_on} cases"
        if self.delta is not None:
            said += f", {self.delta:+z.3f}{_ends(self.delta_interval)} against the reference"
            said += f", fixes {count(len(self.fixed), 'case')} and breaks {len(self.broken)}"
            said += f"; not shown to be better: {self._why_flat}" if self.is_flat else ""
        if self.forbidden:
            said += f"; evidence that must not be there comes back in {case_words(self.forbidden)}"
        if self.is_same_cases:
            return f"{said}. Chosen on the cases that are reported: expect less on other questions"
        return f"{said}. Chosen on {self.chosen_on} other cases ({self.chosen_value:.3f} there)"

    @property
    def _why_flat(self) -> str:
        ends = self.delta_interval
        if ends is None or ends.low <= 0 <= ends.high:
            return "0 is within the interval"
        return f"too few cases differ (exact sign test, p = {self.p:.2g})"

    def to_dict(self) -> dict[str, Any]:
        """The choice as JSON values."""
        return {
            "point": self.point.name,
            "metric": self.metric,
            "cut": self.cut.key,
            "chosen_on": self.chosen_on,
            "reported_on": self.reported_on,
            "chosen_value": self.chosen_value,
            "value": self.value,
            "low": None if self.interval is None else self.interval.low,
            "high": None if self.interval is None else self.interval.high,
            "delta": self.delta,
            "delta_low": None if self.delta_interval is None else self.delta_interval.low,
            "delta_high": None if self.delta_interval is None else self.delta_interval.high,
            "p": self.p,
            "fixed": list(self.fixed),
            "broken": list(self.broken),
            "forbidden": list(self.forbidden),
            "flat": self.is_flat,
            "chosen_on_reported_cases": self.is_same_cases,
            "words": self.words,
        }


def choose(sweep: ChunkingSweep, metric: str = "recall", cut: Cut | None = None) -> Choice:
    """The best point of a sweep.

    With a split it is chosen on the development cases and reported on the held-out ones; without
    one, on the same cases, which it says.

    Args:
        sweep: the points.
        metric: one of `CHOICES`; higher is better, but of duplicate_rate.
        cut: where results are cut; by default at equal context tokens.

    Raises:
        UsageError: no such figure, or no point has it.
    """
    if metric not in CHOICES:
        raise UsageError(f"metric {metric!r}: one of {', '.join(CHOICES)}")
    cut = cut or sweep.cuts[1]
    parts: tuple[Part, Part] = ("development", "held_out") if sweep.split else ("all", "all")
    chosen, reported = (sweep.on(part) for part in parts)
    point = _best(chosen, metric, cut)
    cases = reported.cases(point, cut)
    values = cases[metric].dropna().to_numpy(np.float64)
    delta, delta_interval, p = _delta(reported, point, metric, cut)
    changes = reported.changes(cut).set_index("point")
    moved = changes.loc[point.name] if point.name in changes.index else None
    return Choice(
        point=point,
        metric=metric,
        cut=cut,
        chosen_on=len(chosen.case_ids),
        reported_on=len(values),
        chosen_value=float(chosen.cases(point, cut)[metric].mean()),
        value=float(values.mean()) if len(values) else float("nan"),
        interval=bootstrap_means(values)[0],
        delta=delta,
        delta_interval=delta_interval,
        p=p,
        fixed=() if moved is None else tuple(moved["fixed_ids"]),
        broken=() if moved is None else tuple(moved["broken_ids"]),
        forbidden=tuple(cases.index[cases["forbidden"] > 0]),
        is_same_cases=sweep.split is None,
    )


def choices(sweep: ChunkingSweep) -> list[Choice]:
    """The best point by recall at each cut at which any point delivers anything."""
    if not sweep.case_ids:
        return []
    return [choose(sweep, cut=cut) for cut in sweep.cuts if _delivers(sweep, cut)]


def _delivers(sweep: ChunkingSweep, cut: Cut) -> bool:
    on = sweep.on("development") if sweep.split else sweep
    return any((on.cases(one.point, cut)["results"] > 0).any() for one in on.measured)


def _best(sweep: ChunkingSweep, metric: str, cut: Cut) -> Point:
    sign = -1 if metric == "duplicate_rate" else 1
    ranked = []
    for place, result in enumerate(sweep.measured):
        figures = sweep.cases(result.point, cut)
        value = float(figures[metric].mean())
        if not np.isnan(value) and (figures["results"] > 0).any():
            ranked.append((-sign * value, float(figures["context_tokens"].mean()), place))
    if not ranked:
        raise UsageError(f"no point has {metric} at {cut} on the cases to choose on")
    return sweep.measured[min(ranked)[2]].point


def _delta(
    sweep: ChunkingSweep, point: Point, metric: str, cut: Cut
) -> tuple[float | None, Interval | None, float | None]:
    """How far a point lies from the reference, its interval, and p of the sign test."""
    if point == sweep.reference or sweep.result(sweep.reference).error is not None:
        return None, None, None
    before, after = (sweep.cases(one, cut)[metric] for one in (sweep.reference, point))
    both = (before.notna() & after.notna()).to_numpy()
    if not both.any():
        return None, None, None
    pair = before.to_numpy(np.float64)[both], after.to_numpy(np.float64)[both]
    *_, p = moved(pair[1] - pair[0])
    return float((pair[1] - pair[0]).mean()), paired_bootstrap(*pair)[0], p


def _ends(interval: Interval | None) -> str:
    """The ends in brackets; of equal values they say nothing."""
    if interval is None or interval.low == interval.high:
        return ""
    return f" ({interval.low:z.3f} to {interval.high:z.3f})"
