"""The tables of a weekly report as rows of words: the same in HTML and in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ragwb.decide.weekly.weeks import missing_weeks
from ragwb.decide.weekly.words import MOST_NAMES, slice_words
from ragwb.measure.listed import count, some
from ragwb.report.compare_sections import changed_rows
from ragwb.report.words import figure_words, interval_words
from ragwb.view.case_parts import cut
from ragwb.view.panel import frame_rows
from ragwb.view.trend_charts import run_labels

if TYPE_CHECKING:
    from ragwb.decide.weekly.golden_changes import Mark
    from ragwb.decide.weekly.period import Period, Series
    from ragwb.decide.weekly.series import Point

Row = dict[str, Any]

CHANGED_COLUMNS = ("case", "why first", "figure", "question")
MARK_COLUMNS = ("no.", "run", "what changed", "compared with the run before")
FIGURE_COLUMNS = ("figure", "last run", "95 % interval", "n", "held against", "first run")
SET_COLUMNS = ("set", "failing", "figure", "95 % interval", "first run")
SLICE_COLUMNS = ("slice", "n", "first run", "last run", "difference", "fixed", "broken", "p")
STAGE_COLUMNS = ("stage", "failed cases")
UNSTABLE_COLUMNS = ("case", "risk", "failing", "why")
GOLDEN_COLUMNS = ("no.", "run", "from", "to", "added", "removed", "relabelled")
JUDGE_COLUMNS = ("judge", "rubric", "standing", "kappa", "labels", "calibrated", "runs")
NOTE_COLUMNS = ("case", "run", "says", "by", "on")
RUN_COLUMNS = ("run", "made", "golden set", "cases", "failing", "figure", "p95", "errors")
LEFT_OUT_COLUMNS = ("run", "why")
_NOTHING: Row = {"value": None, "low": None, "high": None, "n": 0, "n_excluded": 0, "counts": None}
_MOST_OF_A_NOTE = 200
_MOST_NAMES = 4
_MOST_DAYS = 7  # a run older than a week is not this week's


def change_rows(series: Series, change: str) -> list[Row]:
    """A line a case that is newly broken or fixed, in the order in which to look."""
    if series.comparison is None:
        return []
    rows = changed_rows(series.comparison, change)
    return [{**row, "case": row["case_id"]} for row in rows]


def mark_rows(series: Series) -> list[Row]:
    """A line a place on the time axis where something was changed."""
    labels = run_labels(series)
    return [
        {
            "no.": str(mark.number),
            "run": labels[mark.index],
            "what changed": mark.words,
            "compared with the run before": _credit(mark),
        }
        for mark in series.marks
    ]


def _credit(mark: Mark) -> str:
    """What a step in the figures may be credited to."""
    if mark.golden is not None and not mark.conditions.factors:
        return "the golden set alone: only cases that both runs hold can be compared"
    return mark.conditions.sentence


def figure_table_rows(series: Series) -> list[Row]:
    """A line a figure: the last run, what it is held against, and the first run of the period.

    Of a last run that failed nothing is known; its lines are the figures of the other one.
    """
    is_failed = series.latest.is_failed
    known = (series.reference if is_failed else None) or series.latest
    return [
        _figure_row({**row, **_NOTHING} if is_failed else row, series)
        for row in known.figures
        if row["value"] is not None
    ]


def _figure_row(row: Mapping[str, Any], series: Series) -> Row:
    name = row["metric"]
    return {
        "figure": name,
        "last run": figure_words(name, row["value"], counts=row["counts"]),
        "95 % interval": _interval(row),
        "n": str(row["n"]) + (f" of {row['n'] + row['n_excluded']}" if row["n_excluded"] else ""),
        "held against": _value_of(series.reference, name),
        "first run": _value_of(series.points[0], name),
    }


def _interval(row: Mapping[str, Any]) -> str | None:
    low, high = row["low"], row["high"]
    if low is not None and high is not None and high > 100:
        return f"{low:,.0f} – {high:,.0f}"
    return interval_words(low, high)


def _value_of(point: Point | None, metric: str) -> str | None:
    row = point.figure(metric) if point is not None else None
    return None if row is None else figure_words(metric, row["value"], counts=row["counts"])


def set_table_rows(series: Series) -> list[Row]:
    """A line a set of the last run: core, incremental and online apart."""
    first = {row["set"]: row for row in series.points[0].sets}
    return [
        {
            "set": row["set"],
            "failing": f"{row['n_failed']}/{row['n']}",
            "figure": f"{series.metric} {figure_words(series.metric, row['value'])}",
            "95 % interval": interval_words(row["low"], row["high"]),
            "first run": _set_words(first.get(row["set"]), series.metric),
        }
        for row in series.latest.sets
    ]


def _set_words(row: Mapping[str, Any] | None, metric: str) -> str | None:
    if row is None:
        return None
    return f"{row['n_failed']}/{row['n']} failing, {metric} {figure_words(metric, row['value'])}"


def slice_rows(series: Series, *, most: int | None = None) -> list[Row]:
    """A line a slice in which a case changed sides over the period, the surest first."""
    moved = [one for one in series.slices if one.fixed or one.broken]
    return [
        {
            "slice": slice_words(one.field, one.slice),
            "n": str(one.n),
            "first run": figure_words(series.metric, one.first),
            "last run": figure_words(series.metric, one.latest),
            "difference": _difference(one.first, one.latest, one.low, one.high),
            "fixed": _counted(one.fixed),
            "broken": _counted(one.broken),
            "p": f"{_p(one.p)}, drifts" if one.drifts else _p(one.p),
        }
        for one in moved[:most]
    ]


def _difference(
    first: float | None, latest: float | None, low: float | None, high: float | None
) -> str | None:
    if first is None or latest is None:
        return None
    span = "" if low is None or high is None or low == high else f" ({low:+.2f} to {high:+.2f})"
    return f"{latest - first:+.3f}{span}"


def _counted(case_ids: tuple[str, ...]) -> str:
    return f"{len(case_ids)}: {some(case_ids, MOST_NAMES)}" if case_ids else "none"


def _p(p: float) -> str:
    return f"{p:.3f}" if p >= 0.001 else "< 0.001"


def unstable_rows(series: Series, *, most: int | None = None) -> list[Row]:
    """A line an unstable case: in how many runs it fails, and what makes it unstable."""
    rows = []
    for case in series.unstable[:most]:
        known = [state for state in case.history if state in ("pass", "fail")]
        rows.append(
            {
                "case": case.case_id,
                "risk": case.risk,
                "failing": f"{known.count('fail')} of {len(known)} runs",
                "why": case.why,
            }
        )
    return rows


def stage_rows(series: Series) -> list[Row]:
    """A line a stage at which cases of the one run that was answered were lost."""
    stages = next((point.stages for point in series.points if point.stages), {})
    return [{"stage": stage, "failed cases": str(n)} for stage, n in stages.items()]


def golden_rows(series: Series) -> list[Row]:
    """A line a place on the time axis where the golden set itself changed."""
    labels = run_labels(series)
    rows = []
    for mark in series.marks:
        golden = mark.golden
        if golden is not None:
            rows.append(
                {
                    "no.": str(mark.number),
                    "run": labels[mark.index],
                    "from": f"{golden.before} ({golden.before_hash[:12]})",
                    "to": f"{golden.after} ({golden.after_hash[:12]})",
                    "added": _counted(golden.added),
                    "removed": _counted(golden.removed),
                    "relabelled": _counted(golden.changed),
                }
            )
    return rows


def judge_rows(period: Period) -> list[Row]:
    """A line a judge: what it may do, and why."""
    return [
        {
            "judge": one.model,
            "rubric": one.rubric,
            "standing": one.why,
            "kappa": None if one.kappa is None else f"{one.kappa:.3f}",
            "labels": None if one.n_items is None else str(one.n_items),
            "calibrated": None if one.recorded_at is None else one.recorded_at[:10],
            "runs": str(one.n_runs),
        }
        for one in period.judges
    ]


def note_rows(series: Series) -> list[Row]:
    """A line an open review note, the oldest first."""
    return [
        {
            "case": one.note.case_id,
            "run": one.run_id,
            "says": cut(_note_words(one.note), _MOST_OF_A_NOTE),
            "by": one.note.author,
            "on": one.note.written_at[:10],
        }
        for one in series.notes.open
    ]


def _note_words(note: Any) -> str:
    opinion = {True: "agrees", False: "disagrees", None: ""}[note.agreed]
    corrected = note.corrected_reason or note.corrected_stage
    parts = [f"{opinion} with {note.reason}" if opinion else f"on {note.reason}"]
    parts += [f"is {corrected}"] if corrected else []
    said = ", ".join(parts)
    return f"{said}: {note.text}" if note.text else said


def run_rows(series: Series) -> list[Row]:
    """A line a run, the newest first."""
    return [_run_row(point, series) for point in reversed(series.points)]


def _run_row(point: Point, series: Series) -> Row:
    outcomes = point.outcomes
    return {
        "run": point.run_id,
        "made": f"{point.at:%Y-%m-%d %H:%M}",
        "golden set": point.run.manifest.dataset_version,
        "cases": str(outcomes.n_cases),
        "failing": f"{point.n_failed}/{outcomes.n_scored}",
        "figure": _value_of(point, series.metric),
        "p95": _value_of(point, "p95_ms"),
        "errors": "every call failed" if point.is_failed else str(outcomes.n_errors),
    }


def left_out_rows(period: Period) -> list[Row]:
    """A line a run of the period that is in no series."""
    return [{"run": one.run_id, "why": one.reason} for one in period.left_out]


def gap_words(series: Series, period: Period) -> Iterator[str]:
    """That weeks of the series have no run, which a chart with a column a run does not show."""
    n_days = (period.span.until - series.latest.at.date()).days
    if n_days > _MOST_DAYS:
        yield (
            f"The last run of {series.name} is of {series.latest.at:%Y-%m-%d}, "
            f"{n_days} days before the period ends."
        )
    gaps = missing_weeks(point.at for point in series.points)
    if gaps:
        weeks, named = count(len(gaps), "week"), some(gaps, _MOST_NAMES)
        yield f"No run of {series.name} in {weeks}: {named}."


def shadow_words(series: Series) -> Iterator[str]:
    """How the cases of the tiers that decide nothing stand in the last run."""
    for row in frame_rows(series.latest.outcomes.frame.groupby("tier", as_index=False).size()):
        if row["tier"] != "blocking":
            cases = count(row["size"], f"{row['tier']} case")
            yield f"{cases} apart, in no figure here"
