"""The figures that a gate holds: of blocking cases, whole or by slice, with what is behind them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ragwb.decide.gate.policy_rules import Figure, Slice
from ragwb.decide.outcomes import Outcomes
from ragwb.measure.cost import COSTS, PERCENTILES, percentile
from ragwb.measure.summary import SMALL_N

if TYPE_CHECKING:
    import pandas as pd

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Measured:
    """A figure over some blocking cases.

    Attributes:
        value: in its own unit; None when it is undefined or was not observed.
        n: cases behind it; of a percentile the results.
        counts: such as 9/10, of a rate of up to 100 cases.
        case_ids, values: what each case gives, in the order of the golden set; of a percentile the
            slowest result of each.
    """

    value: float | None
    n: int
    counts: str | None
    case_ids: tuple[str, ...]
    values: tuple[float, ...]

    def worse_than(self, limit: float, figure: Figure) -> tuple[str, ...]:
        """The cases that pull the figure beyond a limit, the worst first."""
        sign = 1 if figure.direction == "higher" else -1
        pairs = zip(self.values, self.case_ids, strict=True)
        found = [(sign * value, name) for value, name in pairs if sign * value < sign * limit]
        return tuple(name for _, name in sorted(found, key=lambda pair: pair[0]))


def blocking(outcomes: Outcomes, within: Slice | None = None) -> pd.DataFrame:
    """The blocking cases of a slice, whatever became of them."""
    frame = outcomes.frame[outcomes.frame["tier"] == "blocking"]
    if within is None:
        return frame
    if within.field not in frame:
        return frame.iloc[:0]
    known = frame[frame[within.field].notna()]
    return known[known[within.field].map(lambda value: str(value) == within.value)]


def slice_values(outcomes: Outcomes, field: str) -> list[str]:
    """The values that a field has among the blocking cases, for a message."""
    frame = blocking(outcomes)
    return sorted({str(value) for value in frame[field].dropna()}) if field in frame else []


def measure(outcomes: Outcomes, figure: Figure, within: Slice | None = None) -> Measured:
    """A figure over the blocking cases of a slice.

    Means of quality take the scored cases; costs and times every case that was answered, for one
    that must be refused costs too.
    """
    cases = blocking(outcomes, within)
    if figure.name in PERCENTILES:
        return _percentile(outcomes, cases, PERCENTILES[figure.name])
    name = str(figure)
    is_cost = figure.name in COSTS
    inside = cases[(cases["status"] != "error") if is_cost else (cases["status"] == "scored")]
    if name not in inside:
        return Measured(None, 0, None, (), ())
    known = inside[inside[name].notna()]
    values = known[name].to_numpy(dtype=np.float64)
    shares = _shares(outcomes, name, known["case_id"])
    whole = float(shares.sum())
    is_rate = bool(np.isin(values, (0.0, 1.0)).all() and (shares == 1).all()) and not is_cost
    return Measured(
        value=float((values * shares).sum() / whole) if whole else None,
        n=len(values),
        counts=f"{int(values.sum())}/{len(values)}"
        if is_rate and 0 < len(values) <= SMALL_N
        else None,
        case_ids=tuple(known["case_id"]),
        values=tuple(values.tolist()),
    )


def _percentile(outcomes: Outcomes, cases: pd.DataFrame, q: float) -> Measured:
    rows = outcomes.latencies[outcomes.latencies["case_id"].isin(cases["case_id"])]
    rows = rows[rows["latency_ms"].notna()]
    slowest = rows.groupby("case_id", sort=False)["latency_ms"].max()
    return Measured(
        value=percentile(rows["latency_ms"], q),
        n=len(rows),
        counts=None,
        case_ids=tuple(map(str, slowest.index)),
        values=tuple(slowest.to_numpy(dtype=np.float64).tolist()),
    )


def _shares(outcomes: Outcomes, name: str, case_ids: pd.Series[str]) -> Floats:
    """The share of its repeats with which each case counts."""
    if outcomes.shares is None or name not in outcomes.shares:
        return np.ones(len(case_ids))
    return outcomes.shares[name].reindex(case_ids).to_numpy(dtype=np.float64)


def with_cutoffs(outcomes: Outcomes, ks: Iterable[int]) -> Outcomes:
    """Outcomes that also hold the retrieval figures at other Ks, each up to top K."""
    others = sorted(set(ks) - {outcomes.k})
    if outcomes.run is None or not others:
        return outcomes
    from ragwb.decide.gate.policy_rules import AT_K
    from ragwb.measure.metric import Metric
    from ragwb.runs.scoring import score

    scored = score(outcomes.run, others).frame.set_index("case_id")
    metrics = [Metric(name, k) for k in others for name in AT_K]
    columns = {str(one): one.column for one in metrics if one.column in scored}
    at = scored.reindex(outcomes.frame["case_id"])
    added = {name: at[column].to_numpy(dtype=np.float64) for name, column in columns.items()}
    return replace(
        outcomes, frame=outcomes.frame.assign(**added), metrics=(*outcomes.metrics, *added)
    )
