"""A period as JSON values: for scripts, and for whoever draws it otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ragwb.decide.weekly.golden_changes import Mark

if TYPE_CHECKING:
    from ragwb.decide.weekly.owed import Notes
    from ragwb.decide.weekly.period import Period, Series
    from ragwb.decide.weekly.series import Point

_KEPT = ("value", "low", "high", "n")


def period_json(period: Period) -> dict[str, Any]:
    """The JSON of `ragwb weekly`; null where undefined."""
    return {
        "since": period.span.since.isoformat(),
        "until": period.span.until.isoformat(),
        "week": period.span.week,
        "dataset": period.dataset,
        "verdict": period.verdict,
        "series": [_series(one) for one in period.series],
        "judges": [asdict(one) for one in period.judges],
        "judge_problem": period.judge_problem or None,
        "left_out": [asdict(one) for one in period.left_out],
        "n_other_datasets": period.n_other,
    }


def _series(series: Series) -> dict[str, Any]:
    comparison, verdict = series.comparison, series.verdict
    return {
        "name": series.name,
        "kind": series.latest.outcomes.kind,
        "k": series.k,
        "lines": list(series.lines()),
        "verdict": verdict.verdict,
        "state": verdict.state,
        "by": verdict.by,
        "has_limits": verdict.has_limits,
        "blockers": [one.to_dict() for one in verdict.blockers],
        "undecided": list(verdict.undecided),
        "latest": series.latest.run_id,
        "reference": series.reference.run_id if series.reference else None,
        "compare": None if comparison is None else comparison.to_dict(),
        "runs": [_point(point) for point in series.points],
        "changes": [_mark(mark, series) for mark in series.marks],
        "slices": [{**asdict(one), "drifts": one.drifts} for one in series.slices],
        "unstable": [{**asdict(one), "why": one.why} for one in series.unstable],
        "notes": _notes(series.notes),
    }


def _point(point: Point) -> dict[str, Any]:
    outcomes = point.outcomes
    return {
        "run_id": point.run_id,
        "created_at": point.at.isoformat(),
        "week": point.week,
        "dataset_version": point.run.manifest.dataset_version,
        "n_cases": outcomes.n_cases,
        "n_scored": outcomes.n_scored,
        "n_excluded": outcomes.n_excluded,
        "n_errors": outcomes.n_errors,
        "n_calls": point.n_calls,
        "n_failed_calls": point.n_failed_calls,
        "metrics": {row["metric"]: _kept(row) for row in point.figures},
        "sets": {row["set"]: {**_kept(row), "n_failed": row["n_failed"]} for row in point.sets},
        "stages": dict(point.stages),
    }


def _kept(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in _KEPT}


def _mark(mark: Mark, series: Series) -> dict[str, Any]:
    return {
        "number": mark.number,
        "run_id": series.points[mark.index].run_id,
        "words": mark.words,
        "changed_conditions": [asdict(change) for change in mark.conditions.changes],
        "confounded": mark.conditions.confounded,
        "golden": None if mark.golden is None else asdict(mark.golden),
    }


def _notes(notes: Notes) -> dict[str, Any]:
    return {
        "open": [{"run_id": one.run_id, **asdict(one.note)} for one in notes.open],
        "n_closed": notes.n_closed,
        "problems": list(notes.problems),
    }
