"""What a manager reads of a period: the verdict, what changed since last week, where to look."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ragwb.html import plain
from ragwb.measure.listed import count, some

if TYPE_CHECKING:
    from ragwb.decide.comparison import Comparison
    from ragwb.decide.weekly.period import Series
    from ragwb.decide.weekly.series import Point
    from ragwb.decide.weekly.verdict import Blocker

_MOST_BLOCKERS = 2
MOST_NAMES = 3
_COSTS = {"p95_ms": ("p95", "ms"), "context_tokens": ("context", "tokens a case")}


def three_lines(series: Series) -> tuple[str, str, str]:
    """The verdict with its blockers, what changed since last week, and where to look first.

    A line of text each, not escaped for HTML or Markdown.
    """
    return _verdict_line(series), _change_line(series), _look_line(series)


def reference_words(series: Series) -> str:
    """What the last run is held against, in words."""
    if series.reference is None:
        return "there is no other run"
    if series.is_week_apart:
        return f"week {series.reference.week}"
    return "the run before it, as no run of an earlier week can be compared"


def figure_words(row: Mapping[str, Any] | None) -> str:
    """A share of cases, led by its counts where it has any; – where it is undefined."""
    if row is None or row["value"] is None:
        return "–"
    value = f"{row['value']:.3f}"
    return f"{row['counts']} ({value})" if row["counts"] else value


def _verdict_line(series: Series) -> str:
    found = series.verdict
    state = f" → {found.state}" if found.state else ""
    if found.colour == "neutral":
        return f"PASS, no limits set: no case breaks a rule with zero tolerance ({found.by})"
    if series.latest.is_failed:
        return f"{found.verdict.upper()}{state}: {failed_words(series.latest)} ({found.by})"
    reasons = [*map(_blocker_words, found.blockers), *found.undecided]
    shown = "; ".join(reasons[:_MOST_BLOCKERS])
    rest = len(reasons) - _MOST_BLOCKERS
    more = f"; and {count(rest, 'more reason')}" if rest > 0 else ""
    why = f"{shown}{more}" if reasons else "every rule that decides holds"
    return f"{found.verdict.upper()}{state}: {why} ({found.by})"


def failed_words(point: Point) -> str:
    """That not one call of the last run was answered."""
    return f"the last run failed: {point.n_failed_calls} of {point.n_calls} calls"


def _blocker_words(blocker: Blocker) -> str:
    # The sentence of a rule may name its cases itself.
    if not blocker.case_ids or blocker.case_ids[0] in blocker.words:
        return blocker.words
    return f"{blocker.words}: {some(blocker.case_ids, MOST_NAMES)}"


def _change_line(series: Series) -> str:
    comparison = series.comparison
    if series.latest.is_failed:
        return f"Nothing can be said of what changed{_last_good(series)}"
    if series.problem:
        return f"{_level(series)}; not compared: {series.problem}"
    if comparison is None:
        return f"This is the first run of its series in the store: {_level(series)}"
    changed = f"{len(comparison.fixed)} fixed, {len(comparison.broken)} broken of {comparison.n}"
    risky = _high_risk(comparison)
    high = [case_id for case_id in comparison.broken if case_id in risky]
    changed += f" ({len(high)} of high risk: {some(high, MOST_NAMES)})" if high else ""
    parts = [changed, _level(series), *_moved(comparison)]
    return f"Since {reference_words(series)}: {'; '.join(parts)}"


def _last_good(series: Series) -> str:
    before = series.reference
    if before is None:
        return ": no other run was answered"
    figure = figure_words(before.figure(series.metric))
    fail = f"{before.n_failed}/{before.outcomes.n_scored} fail, {series.metric} {figure}"
    return f": the last run that was answered is of {before.at:%Y-%m-%d} ({fail})"


def _high_risk(comparison: Comparison) -> set[str]:
    pairs = comparison.pairs
    return set(pairs.loc[pairs["risk"] == "high", "case_id"])


def _level(series: Series) -> str:
    """How many cases of the last run fail, and its leading figure, beside those of the other."""
    latest, before, metric = series.latest, series.reference, series.metric
    fail = f"{latest.n_failed}/{latest.outcomes.n_scored} fail"
    figure = f"{metric} {figure_words(latest.figure(metric))}"
    if before is not None:
        fail += f", was {before.n_failed}/{before.outcomes.n_scored}"
        figure += f", was {figure_words(before.figure(metric))}"
    return f"{fail}; {figure}"


def _moved(comparison: Comparison) -> Iterator[str]:
    """Time and tokens beside quality, always."""
    for name in _COSTS:
        row = comparison.delta(name)
        if row is not None and row["delta"] is not None:
            what, unit = _COSTS[name]
            moved = f"{row['delta']:+,.0f} {unit}" if round(row["delta"]) else "as before"
            yield f"{what} {moved}"


def _look_line(series: Series) -> str:
    found = list(_looks(series))
    return f"Look first at {'; then '.join(found[:2])}" if found else "No case needs a look"


def _looks(series: Series) -> Iterator[str]:
    """Where to look, the most urgent first."""
    if series.latest.is_failed:
        yield f"why the calls failed: {_error_words(series.latest)}"
        return
    for blocker in series.verdict.blockers:
        if blocker.case_ids:
            yield f"{some(blocker.case_ids, MOST_NAMES)} ({blocker.rule})"
            break
    if series.comparison is not None and series.comparison.broken:
        yield f"{some(series.comparison.broken, MOST_NAMES)}, newly broken"
    frame = series.latest.outcomes.frame
    if failed := frame.loc[frame["status"] == "error", "case_id"].tolist():
        yield f"{some(failed, MOST_NAMES)}, of which a call failed"
    drifting = [one for one in series.slices if one.drifts and len(one.broken) > len(one.fixed)]
    if drifting:
        worst = drifting[0]
        yield (
            f"{slice_words(worst.field, worst.slice)}: {len(worst.broken)} broken, "
            f"{len(worst.fixed)} fixed of {worst.n} since {series.points[0].at:%Y-%m-%d}"
        )
    if series.latest.stages:
        stage, n = max(series.latest.stages.items(), key=lambda item: item[1])
        total = sum(series.latest.stages.values())
        # What put evidence beyond K may stand before the reranker; only the cut is there.
        where = "the ranking, cut at K" if stage == "rerank" else f"stage {stage}"
        yield f"{where}, where {n} of {total} failed cases are lost"


def _error_words(point: Point) -> str:
    """The commonest error of a run, and for how many of its cases it stands."""
    frame = point.outcomes.frame
    reasons = frame.loc[frame["status"] == "error", "reason"].value_counts()
    if reasons.empty:
        return "the run names no error"
    return f"{reasons.iloc[0]} of {reasons.sum()} cases say {plain(reasons.index[0], width=160)!r}"


def slice_words(field: str, name: str | None) -> str:
    """A slice by its field and value, such as domain 退款."""
    return f"{field.removeprefix('tags.')} {'(none)' if name is None else name}"
