"""The parts of a weekly report, each as a `Panel`: the verdict, what changed, how it went on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragwb.decide.weekly.words import reference_words
from ragwb.html import escape, plain, tag
from ragwb.measure.listed import count
from ragwb.report import weekly_rows as rows_of
from ragwb.report.compare_cases import open_cases
from ragwb.report.weekly_markdown import weekly_to_markdown
from ragwb.report.words import embedding_warning, run_line, verdict_panel
from ragwb.view import trend_charts
from ragwb.view.case_parts import grid
from ragwb.view.compare_card import compare_card
from ragwb.view.panel import Panel, fold, table_panel, text_table
from ragwb.view.theme import chart_panel

if TYPE_CHECKING:
    from ragwb.decide.weekly.period import Period, Series

HEADINGS = (
    "Since last week",
    "Trends",
    "Where failed cases are lost",
    "Slices that drift",
    "Unstable cases",
    "Golden set",
    "Judges and review notes",
    "Runs",
    "Changed cases",
)
"""The headings of the notebook, in their order; the table of contents links to them."""

_MOST_ROWS = 20
_UNKNOWN = "No call of the last run was answered: nothing is known of any case."
_CHANGES = {"broken": "Newly broken", "fixed": "Newly fixed"}


def overview(period: Period) -> Panel:
    """For each series the verdict in three lines; before all the table of contents' period."""
    parts = [_by_series(period, lambda one, _: _verdict(one, period))]
    named = f"{period.title()} · week {period.span.week}"
    named += f" · dataset {period.dataset}" if period.dataset else ""
    panel = _joined([*parts, Panel(plain(named), tag("p", escape(named), class_="rw-figures"))])
    style = (Path(__file__).parent / "weekly.css").read_text(encoding="utf-8")
    return _joined([Panel("", tag("style", style)), panel, contents()])


def _verdict(series: Series, period: Period) -> Panel:
    verdict, changed, look = series.lines()
    warnings = [*embedding_warning(series.latest.run), *rows_of.gap_words(series, period)]
    warnings += series.notes.problems
    headline, _, why = verdict.partition(": ")
    return verdict_panel(
        series.verdict.colour,
        headline,
        words=why,
        steps=[changed, look],
        warnings=warnings,
        of_what=" · ".join([run_line(series.latest.run), *rows_of.shadow_words(series)]),
    )


def contents() -> Panel:
    """Links to the headings of the notebook."""
    links = [tag("a", escape(name), href=f"#{place_of(name)}") for name in HEADINGS]
    html = tag("nav", tag("ol", "".join(tag("li", link) for link in links)), class_="rw-contents")
    return Panel("\n".join(f"{i}. {name}" for i, name in enumerate(HEADINGS, 1)), html)


def place_of(name: str) -> str:
    """The id of the part under a heading, where a link to it leads."""
    return name.lower().replace(" ", "-")


def _at(name: str, panel: Panel) -> Panel:
    """The part under a heading, as the end of its link."""
    return Panel(panel.text, tag("div", panel.html, id=place_of(name), class_="rw-place"))


def since_last_week(period: Period, *, limit: int = 10) -> Panel:
    """What is newly broken and fixed, each case with a link to where it is opened below.

    Args:
        period: the runs of a period.
        limit: cases of a series that `cases` opens, the broken ones first, from 0.
    """
    return _at(
        HEADINGS[0], _by_series(period, lambda one, at: _since(one, _places(one, at, limit)))
    )


def _since(series: Series, places: Mapping[str, str]) -> Panel:
    comparison = series.comparison
    if comparison is None:
        words = series.problem or f"Nothing to hold it against: {reference_words(series)}."
        return _words(words, class_="rw-none")
    against = f"The last run against {comparison.baseline.name} ({reference_words(series)})."
    said = comparison.in_words()
    html = tag("ul", "".join(tag("li", escape(line)) for line in said), class_="rw-said")
    head = [_words(against), Panel("\n".join(f"- {plain(line)}" for line in said), html)]
    return _joined([*head, *(_changed(series, change, places) for change in _CHANGES)])


def _places(series: Series, at: int, limit: int) -> dict[str, str]:
    """Where each case that is opened stands in the page, the broken ones first."""
    comparison = series.comparison
    if comparison is None:
        return {}
    opened = (*comparison.broken, *comparison.fixed)[:limit]
    return {case_id: f"series-{at}-case-{n}" for n, case_id in enumerate(opened, 1)}


def _changed(series: Series, change: str, places: Mapping[str, str]) -> Panel:
    """A table of cases that went one way, those that are opened below as links."""
    found = rows_of.change_rows(series, change)
    columns = rows_of.CHANGED_COLUMNS
    title = f"{_CHANGES[change]}: {len(found)}"
    heading = tag("h4", escape(title))
    if not found:
        return Panel(f"{title}\nnone", heading + tag("p", "None.", class_="rw-none"))
    lines = [tag("tr", _changed_cells(row, places)) for row in found]
    html = grid(columns, lines, words=len(columns), class_="rw")
    return Panel(f"{title}\n{text_table(found, columns)}", heading + html)


def _changed_cells(row: Mapping[str, Any], places: Mapping[str, str]) -> str:
    place = places.get(row["case_id"])
    name = escape(row["case_id"])
    first = tag("td", tag("a", name, href=f"#{place}") if place else name)
    others = rows_of.CHANGED_COLUMNS[1:]
    return first + "".join(tag("td", "–" if row[c] is None else escape(row[c])) for c in others)


def cases(period: Period, *, limit: int = 10) -> Panel:
    """Cases that are newly broken or fixed, opened: the run of the week before on the left.

    Args:
        period: the runs of a period.
        limit: cases of a series, the broken ones first, from 0.
    """
    found = _by_series(period, lambda one, at: _cards(one, _places(one, at, limit)))
    return _at(HEADINGS[-1], found)


def _cards(series: Series, places: Mapping[str, str]) -> Panel:
    comparison = series.comparison
    if comparison is None or not places:
        return _words("No case is opened.", class_="rw-none")
    found = [
        Panel(card.text, tag("div", card.html, id=place))
        for card, place in zip(_opened(series, places), places.values(), strict=True)
    ]
    rest = len(comparison.broken) + len(comparison.fixed) - len(places)
    words = f"{count(rest, 'more case')} changed sides: ragwb compare opens every one."
    return _joined([*found, *([_words(words)] if rest else [])])


def _opened(series: Series, places: Mapping[str, str]) -> list[Panel]:
    if series.comparison is None:
        return []
    held = open_cases(series.comparison, list(places))
    return [compare_card(case, is_open=False) for case in held]


def trends(period: Period) -> Panel:
    """Every figure over the period with its interval, sets apart, and what was changed when."""
    return _at(HEADINGS[1], _by_series(period, lambda one, _: _trend(one)))


def _trend(series: Series) -> Panel:
    if not trend_charts.has_trend(series):
        return _without_trend(series)
    moved, still = trend_charts.moving_figures(series)
    parts = [chart_panel(trend_charts.trend(series)), _changes(series)]
    if len(series.latest.sets) > 1:
        parts += [chart_panel(trend_charts.trend_by_set(series)), _sets(series)]
    if moved:
        parts.append(chart_panel(trend_charts.figure_trends(series, moved)))
    if still:
        parts.append(_words(f"The same in every run: {', '.join(still)}.", class_="rw-none"))
    return _joined([*parts, _figures(series)])


def _without_trend(series: Series) -> Panel:
    """The figures as they stand, where a line would be one dot."""
    n = len(series.points)
    words = "One run" if n == 1 else f"{n} runs, of which at most one was answered"
    parts = [_words(f"{words}: lines are drawn from two on.", class_="rw-figures")]
    parts += [_changes(series)] if series.marks else []
    parts += [_sets(series)] if len(series.latest.sets) > 1 else []
    return _joined([*parts, _figures(series)])


def _changes(series: Series) -> Panel:
    empty = "Nothing that the manifests name was changed between these runs."
    panel = table_panel(rows_of.mark_rows(series), rows_of.MARK_COLUMNS, empty=empty)
    return _classed(panel, "rw-marks")


def _sets(series: Series) -> Panel:
    return table_panel(rows_of.set_table_rows(series), rows_of.SET_COLUMNS, empty="")


def _figures(series: Series) -> Panel:
    found = rows_of.figure_table_rows(series)
    columns = rows_of.FIGURE_COLUMNS
    return table_panel(found, columns, numeric=columns[1:], empty="No figure is defined.")


def stages(period: Period) -> Panel:
    """Failed cases of each run by the stage at which they were lost."""
    return _at(HEADINGS[2], _by_series(period, lambda one, _: _stages(one)))


def _stages(series: Series) -> Panel:
    if all(point.is_failed for point in series.points):
        return _words(_UNKNOWN, class_="rw-none")
    if not any(point.stages for point in series.points):
        return _words("No case failed in any run.", class_="rw-none")
    if not trend_charts.has_trend(series):
        return _stage_table(series)
    return chart_panel(trend_charts.stages_over_time(series))


def _stage_table(series: Series) -> Panel:
    found = rows_of.stage_rows(series)
    return table_panel(found, rows_of.STAGE_COLUMNS, numeric=("failed cases",), empty="")


def slices(period: Period) -> Panel:
    """Slices whose cases changed sides over the period, the surest first."""
    return _at(HEADINGS[3], _by_series(period, lambda one, _: _slices(one)))


def _slices(series: Series) -> Panel:
    if len(series.points) < 2:
        return _words("One run alone does not drift.", class_="rw-none")
    if series.latest.is_failed:
        return _words(_UNKNOWN, class_="rw-none")
    first = f"{series.points[0].at:%Y-%m-%d}"
    drifting = [one for one in series.slices if one.drifts]
    words = (
        f"{count(len(drifting), 'slice')} of {len(series.slices)} changed more than chance "
        f"explains since the run of {first}. p: exact McNemar over the cases that both runs "
        "scored, adjusted over all slices (Holm)."
    )
    found = rows_of.slice_rows(series, most=_MOST_ROWS)
    columns = rows_of.SLICE_COLUMNS
    table = table_panel(found, columns, numeric=columns[1:5], empty="No case changed sides.")
    return _joined([_words(words), table])


def unstable(period: Period) -> Panel:
    """Cases that do not hold still: over the runs as a picture, and why as a table."""
    return _at(HEADINGS[4], _by_series(period, lambda one, _: _unstable(one)))


def _unstable(series: Series) -> Panel:
    if not series.unstable and series.latest.is_failed:
        return _words(_UNKNOWN, class_="rw-none")
    if not series.unstable:
        return _words("Every case holds still.", class_="rw-none")
    shown = series.unstable[:_MOST_ROWS]
    has_trend = trend_charts.has_trend(series)
    parts = [chart_panel(trend_charts.case_history(series, shown))] if has_trend else []
    found = rows_of.unstable_rows(series, most=_MOST_ROWS)
    parts.append(table_panel(found, rows_of.UNSTABLE_COLUMNS, empty=""))
    if rest := series.unstable[_MOST_ROWS:]:
        names = ", ".join(case.case_id for case in rest)
        html = fold(escape(f"{len(rest)} more unstable cases"), tag("p", escape(names)))
        parts.append(Panel(f"{len(rest)} more: {plain(names)}", html))
    return _joined(parts)


def golden_set(period: Period) -> Panel:
    """How the golden set itself changed over the period."""
    empty = "The golden set is the same in every run."
    columns = rows_of.GOLDEN_COLUMNS
    found = _by_series(
        period, lambda one, _: table_panel(rows_of.golden_rows(one), columns, empty=empty)
    )
    return _at(HEADINGS[5], _classed(found, "rw-marks"))


def judges(period: Period) -> Panel:
    """What each judge may do by its calibration on record."""
    if period.judge_problem:
        return _at(HEADINGS[6], _words(period.judge_problem, class_="rw-warning"))
    empty = "No judge is on record, and no run names one: nothing here rests on a judge."
    found = table_panel(rows_of.judge_rows(period), rows_of.JUDGE_COLUMNS, empty=empty)
    return _at(HEADINGS[6], found)


def notes(period: Period) -> Panel:
    """Review notes on cases that still fail."""
    return _by_series(period, lambda one, _: _notes(one))


def _notes(series: Series) -> Panel:
    found = rows_of.note_rows(series)
    closed = series.notes.n_closed
    table = table_panel(found, rows_of.NOTE_COLUMNS, empty="No review note is open.")
    table = _classed(table, "rw-dated")
    said = f"{count(closed, 'note')} on cases that do not fail any more."
    return _joined([table, _words(said, class_="rw-figures")] if closed else [table])


def runs(period: Period) -> Panel:
    """Every run of the period, and those that are in no figure."""
    columns = rows_of.RUN_COLUMNS
    parts = [
        _by_series(
            period,
            lambda one, _: table_panel(
                rows_of.run_rows(one), columns, numeric=columns[3:], empty="No run."
            ),
        )
    ]
    if period.left_out:
        words = f"{count(len(period.left_out), 'run')} left out, in no figure above:"
        table = table_panel(rows_of.left_out_rows(period), rows_of.LEFT_OUT_COLUMNS, empty="")
        parts += [_words(words), table]
    if period.n_other:
        parts.append(_words(f"{count(period.n_other, 'run')} of other dataset versions."))
    return _at(HEADINGS[7], _joined(parts))


def markdown(period: Period) -> str:
    """The report as Markdown."""
    return weekly_to_markdown(period)


def _by_series(period: Period, part: Callable[[Series, int], Panel]) -> Panel:
    """A part for each series, under its name where there are several."""
    found = [part(one, at) for at, one in enumerate(period.series, 1)]
    if len(found) == 1:
        return found[0]
    named = zip((one.name for one in period.series), found, strict=True)
    return _joined(
        [
            Panel(f"{plain(name)}\n{panel.text}", tag("h3", escape(name)) + panel.html)
            for name, panel in named
        ]
    )


def _classed(panel: Panel, name: str) -> Panel:
    return Panel(panel.text, tag("div", panel.html, class_=name))


def _joined(parts: Sequence[Panel]) -> Panel:
    return Panel("\n\n".join(part.text for part in parts), "".join(part.html for part in parts))


def _words(text: str, *, class_: str | None = None) -> Panel:
    return Panel(plain(text), tag("p", escape(text), class_=class_))
