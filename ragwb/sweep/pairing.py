"""Points side by side: the same cases everywhere, each point against the reference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ragwb.decide.chance import ALPHA
from ragwb.measure.cost import percentile
from ragwb.measure.statistics import holm, mcnemar, paired_bootstrap
from ragwb.sweep.cuts import Cut, figures_at
from ragwb.sweep.results import Floats, PointResult

RATES = (
    "recall",
    "hit_rate",
    "mrr",
    "ndcg",
    "passage_recall",
    "passage_precision",
    "passage_iou",
    "duplicate_rate",
)
CUTTING = ("precision_omega", "precision_omega_strict")
"""What a chunking allows before anything is searched: the same at every cut."""
METRICS = (*RATES, *CUTTING, "context_tokens", "results")

DELTA_COLUMNS = (
    *("point", "metric", "reference", "value", "delta", "low", "high", "n"),
    *("win", "loss", "p"),
)
FLIP_COLUMNS = ("point", "n", "fixed", "broken", "p", "p_adjusted", "fixed_ids", "broken_ids")
MOST_STARVED = 0.1
"""Share of the cases to which a point may deliver nothing and still be credited with a factor."""
_SUMMED = ("n_split", "n_passages")
_FIGURES = (*METRICS, *_SUMMED, "forbidden", "latency_ms")
_DIGITS = 12  # below them a mean of thirds is not what it is on paper
_NAMES = {"hit": "hit_rate", "tokens": "context_tokens", "n_used": "results"}


def common_cases(results: Sequence[PointResult]) -> tuple[list[str], dict[str, str]]:
    """The cases that every point has scored, and why each other one is in no figure.

    Args:
        results: points that did not fail, at least one.

    Returns:
        Case ids in the order of the golden set; and by the other ids a reason.
    """
    reasons: dict[str, dict[str, str]] = {}
    for result in results:
        for row in result.cases[["case_id", "status", "reason"]].to_dict("records"):
            if row["status"] != "scored":
                said = f"{row['status']}: {row['reason']}"
                reasons.setdefault(str(row["case_id"]), {}).setdefault(said, result.point.name)
    everywhere = {
        case_id for case_id, said in reasons.items() if _is_everywhere(results, case_id, said)
    }
    left_out = {
        case_id: "; ".join(
            why if case_id in everywhere else f"{why} (at {name})" for why, name in said.items()
        )
        for case_id, said in reasons.items()
    }
    ids = results[0].cases["case_id"].tolist() if results else []
    return [case_id for case_id in ids if case_id not in left_out], left_out


def _is_everywhere(results: Sequence[PointResult], case_id: str, said: Mapping[str, str]) -> bool:
    """Whether a case is left out at every point, for one and the same reason."""
    held = (result.cases.set_index("case_id").loc[case_id, "status"] for result in results)
    return len(said) == 1 and all(status != "scored" for status in held)


def case_figures(result: PointResult, cut: Cut, case_ids: Sequence[str]) -> pd.DataFrame:
    """The figures of some cases of a point at a cut.

    Returns:
        Indexed by case_id in the order given: `METRICS` as float64, null where undefined;
        forbidden, how many chunks are used that must not be there; failed, whether there is one or
        recall is below 1; starved, whether there are results and none is used, for the first alone
        is over the budget; latency_ms; n_passages, n_split.
    """
    figures = figures_at(result, cut).rename(columns=_NAMES)
    cases = result.cases.set_index("case_id")
    own = cases[[*CUTTING, "latency_ms", "n_results", "n_passages", "n_split"]]
    joined = figures.join(own).loc[list(case_ids)]
    return joined.assign(
        failed=(joined["recall"] < 1) | (joined["forbidden"] > 0),
        starved=(joined["results"] == 0) & (joined["n_results"] > 0),
    )


def delta_rows(
    name: str, reference: pd.DataFrame, figures: pd.DataFrame
) -> Iterator[dict[str, Any]]:
    """How far each figure lies from the reference's over the same cases, as `DELTA_COLUMNS`.

    low, high: paired 95 % interval; win, loss: cases whose figure rises and falls; p: of the exact
    sign test on them.
    """
    for metric in METRICS:
        both = reference[metric].notna() & figures[metric].notna()
        before = reference.loc[both, metric].to_numpy(np.float64)
        after = figures.loc[both, metric].to_numpy(np.float64)
        interval = paired_bootstrap(before, after)[0]
        n = len(before)
        win, loss, p = moved(after - before)
        yield {
            "point": name,
            "metric": metric,
            "reference": float(before.mean()) if n else np.nan,
            "value": float(after.mean()) if n else np.nan,
            "delta": float((after - before).mean()) if n else np.nan,
            "low": interval.low if interval else np.nan,
            "high": interval.high if interval else np.nan,
            "n": n,
            "win": win,
            "loss": loss,
            "p": p,
        }


def moved(differences: Floats) -> tuple[int, int, float]:
    """How many cases rise and fall, and p of the exact sign test on those numbers.

    A percentile interval over few cases leaves 0 out as soon as all that moved went one way; how
    often chance would do that, this test says.
    """
    rounded = differences.round(_DIGITS)
    win, loss = int((rounded > 0).sum()), int((rounded < 0).sum())
    return win, loss, mcnemar(win, loss)


def tells(low: float | None, high: float | None, p: float | None) -> bool:
    """Whether a difference is more than chance: 0 lies outside its interval, and p is below 0.05.

    Args:
        low: lower end of the interval; null where there is none.
        high: upper end.
        p: of the exact sign test.
    """
    if low is None or high is None or p is None or np.isnan(low):
        return False
    return (low > 0 or high < 0) and p < ALPHA


def flips(reference: pd.DataFrame, others: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The cases that each point fixes and breaks against the reference.

    Returns:
        A row a point, as `FLIP_COLUMNS`: p, exact McNemar; p_adjusted, Holm's over the points.
    """
    rows = []
    for name, figures in others.items():
        known = reference["recall"].notna() & figures["recall"].notna()
        fixed = figures.index[known & reference["failed"] & ~figures["failed"]].tolist()
        broken = figures.index[known & ~reference["failed"] & figures["failed"]].tolist()
        rows.append((name, int(known.sum()), fixed, broken, mcnemar(len(fixed), len(broken))))
    adjusted = holm([p for *_, p in rows])
    flat = [
        (name, n, len(fixed), len(broken), p, p_all, fixed, broken)
        for (name, n, fixed, broken, p), p_all in zip(rows, adjusted, strict=True)
    ]
    return pd.DataFrame(flat, columns=list(FLIP_COLUMNS))


def point_row(result: PointResult, figures: pd.DataFrame | None) -> dict[str, Any]:
    """A point in one row: its factors, means over its cases, what its index is, its error."""
    row: dict[str, Any] = {"point": result.point.name, **result.point.to_dict()}
    cases = pd.DataFrame(columns=list(_FIGURES)) if figures is None else figures
    row |= {"n": len(cases), **{name: _number(_mean(cases[name])) for name in METRICS}}
    n_split, n_passages = (float(cases[name].sum()) if len(cases) else np.nan for name in _SUMMED)
    n_forbidden = float((cases["forbidden"] > 0).sum()) if len(cases) else np.nan
    p50, p95 = (percentile(cases["latency_ms"], q) for q in (0.50, 0.95))
    row |= {"forbidden_cases": n_forbidden}
    row |= {"split_passages": n_split, "passages": n_passages}
    index = result.index
    return row | {
        "chunks": np.nan if index is None else index.n_chunks,
        "chunk_tokens": _number(None if index is None else index.chunk_tokens),
        "index_bytes": np.nan if index is None else index.n_bytes,
        "build_ms": _number(None if index is None else index.build_ms),
        "vectors": _number(None if index is None else index.n_vectors),
        "vectors_computed": _number(None if index is None else index.n_computed),
        "p50_ms": _number(p50),
        "p95_ms": _number(p95),
        "run": None if result.run is None else str(result.run),
        "error": result.error,
    }


def _mean(values: pd.Series[Any]) -> float | None:
    return float(values.mean()) if values.notna().any() else None


def _number(value: float | None) -> float:
    return np.nan if value is None else float(value)
