"""What moved over a period besides the mean: slices that drift, cases that do not hold still."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pandas as pd

from ragwb.decide.outcomes import Outcomes
from ragwb.decide.pairing import pair
from ragwb.decide.weekly.golden_changes import Mark
from ragwb.decide.weekly.series import Point
from ragwb.measure.facts import TAG
from ragwb.measure.statistics import bootstrap_means, holm, mcnemar

State = Literal["pass", "fail", "error", "excluded", "absent"]

SIGNIFICANT = 0.05
FLIPS_TO_AND_FRO = 2
"""Changes after which a case is said to go to and fro, whatever was changed between the runs."""
_FIELDS = ("risk", "set")


@dataclass(frozen=True, slots=True)
class SliceDrift:
    """How a slice stands in the last run of a period against the first, over their common cases.

    Attributes:
        field, slice: such as tags.domain and 退款; None for cases without the tag.
        n: cases in both runs, with the same labels, scored in both.
        first, latest: means of the figure; None where it is undefined.
        low, high: 95 % of the difference, paired bootstrap; None when no case has the figure.
        fixed, broken: case ids that failed only in the first, and only in the last run.
        p: exact McNemar over fixed and broken, adjusted after Holm for all slices looked at.
    """

    field: str
    slice: str | None
    n: int
    first: float | None
    latest: float | None
    low: float | None
    high: float | None
    fixed: tuple[str, ...]
    broken: tuple[str, ...]
    p: float

    @property
    def drifts(self) -> bool:
        """Whether the change is more than chance explains."""
        return self.p < SIGNIFICANT


@dataclass(frozen=True, slots=True)
class UnstableCase:
    """A case that does not hold still.

    Attributes:
        case_id, risk: which case.
        history: its state in each run of the series, in the order of time.
        n_flips: how often it went from pass to fail or back between runs that know both.
        n_flips_alone: of those, between two runs of which the manifests name no change.
        in_repeats: whether the repeats of the last run differ.
    """

    case_id: str
    risk: str
    history: tuple[State, ...]
    n_flips: int
    n_flips_alone: int
    in_repeats: bool

    @property
    def why(self) -> str:
        """What makes it unstable, in words."""
        found = []
        if self.in_repeats:
            found.append("the repeats of the last run differ")
        if self.n_flips_alone:
            times = "once" if self.n_flips_alone == 1 else f"{self.n_flips_alone} times"
            found.append(f"changed {times} while nothing was changed")
        if self.n_flips >= FLIPS_TO_AND_FRO and self.n_flips != self.n_flips_alone:
            found.append(f"changed {self.n_flips} times in all")
        return ", ".join(found)


def drifting_slices(first: Outcomes, latest: Outcomes, metric: str) -> tuple[SliceDrift, ...]:
    """Every slice of tags, risk and set that both runs hold, the surest change first.

    Args:
        first: outcomes of the earlier run.
        latest: of the later one, at the same K.
        metric: the figure whose means are given; whether a slice drifts is told by its cases.
    """
    pairs = pair(first, latest).frame
    raw = [found for field in _fields(pairs) for found in _slices(pairs, field, metric)]
    adjusted = holm([one.p for one in raw])
    found = [replace(one, p=p) for one, p in zip(raw, adjusted, strict=True)]
    return tuple(sorted(found, key=_surest))


def history(points: Sequence[Point]) -> dict[str, tuple[State, ...]]:
    """The state of every case in every run, in the order of the last run's set."""
    states = [_states(point.outcomes) for point in points]
    ids = dict.fromkeys(case_id for found in reversed(states) for case_id in found)
    return {case_id: tuple(found.get(case_id, "absent") for found in states) for case_id in ids}


def unstable_cases(points: Sequence[Point], marks: Sequence[Mark]) -> tuple[UnstableCase, ...]:
    """Cases that are unstable in the last run or over the runs, high risk first, then most flips.

    A case that changed once, where something was changed, is fixed or broken and not unstable.

    Args:
        points: runs in the order of time.
        marks: where something was changed between them.
    """
    changed = {mark.index for mark in marks}
    alone = [index not in changed for index in range(1, len(points))]
    frame = points[-1].outcomes.frame.set_index("case_id")
    found = [
        _case(case_id, states, alone, frame)
        for case_id, states in history(points).items()
        if case_id in frame.index
    ]
    return tuple(sorted((case for case in found if case.why), key=_gravity))


def _states(outcomes: Outcomes) -> dict[str, State]:
    columns = outcomes.frame[["case_id", "status", "failed"]]
    return {
        case_id: _state(status, failed)
        for case_id, status, failed in columns.itertuples(index=False, name=None)
    }


def _state(status: str, failed: Any) -> State:
    if status == "error":
        return "error"
    if status == "excluded" or pd.isna(failed):
        return "excluded"
    return "fail" if failed else "pass"


def _case(
    case_id: str, states: tuple[State, ...], alone: Sequence[bool], frame: pd.DataFrame
) -> UnstableCase:
    row = frame.loc[case_id]
    flips, n_alone = _flips(states, alone)
    in_repeats = bool(row["unstable"] and row["status"] == "scored")
    return UnstableCase(case_id, str(row["risk"]), states, flips, n_alone, in_repeats)


def _flips(states: tuple[State, ...], alone: Sequence[bool]) -> tuple[int, int]:
    """Changes between pass and fail, and how many of them came between unchanged neighbours."""
    known = [(i, state) for i, state in enumerate(states) if state in ("pass", "fail")]
    flips = [(i, j) for (i, a), (j, b) in pairwise(known) if a != b]
    return len(flips), sum(1 for i, j in flips if all(alone[i:j]))


def _gravity(case: UnstableCase) -> tuple[bool, bool, int, int]:
    return case.risk != "high", not case.in_repeats, -case.n_flips_alone, -case.n_flips


def _fields(pairs: pd.DataFrame) -> list[str]:
    names = [str(name) for name in pairs.columns]
    fields = [*(name for name in names if name.startswith(TAG)), *_FIELDS]
    return [name for name in fields if pairs[name].nunique(dropna=False) > 1]


def _slices(pairs: pd.DataFrame, field: str, metric: str) -> Iterator[SliceDrift]:
    before, after = f"{metric}_before", f"{metric}_after"
    for name, cases in pairs.groupby(field, sort=True, dropna=False):
        fixed = tuple(cases.loc[cases["change"] == "fixed", "case_id"])
        broken = tuple(cases.loc[cases["change"] == "broken", "case_id"])
        values = cases[[before, after]].dropna().to_numpy(dtype=np.float64)
        interval = bootstrap_means(values[:, 1] - values[:, 0])[0] if len(values) else None
        yield SliceDrift(
            field=field,
            slice=None if pd.isna(name) else str(name),
            n=len(cases),
            first=float(values[:, 0].mean()) if len(values) else None,
            latest=float(values[:, 1].mean()) if len(values) else None,
            low=interval.low if interval else None,
            high=interval.high if interval else None,
            fixed=fixed,
            broken=broken,
            p=mcnemar(len(fixed), len(broken)),
        )


def _surest(found: SliceDrift) -> tuple[float, int]:
    return found.p, -abs(len(found.fixed) - len(found.broken))
