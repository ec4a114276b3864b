"""A weekly report as Markdown: for a chat, a mail, or a diff against that of the week before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ragwb.decide.weekly.words import reference_words
from ragwb.html import escape_markdown as md
from ragwb.report import weekly_rows as rows_of
from ragwb.report.markdown import table_lines

if TYPE_CHECKING:
    from ragwb.decide.weekly.period import Period, Series

_MOST_ROWS = 20


def weekly_to_markdown(period: Period) -> str:
    """The verdict of each series, what changed, the figures, and everything that is owed."""
    return "\n".join(_lines(period)) + "\n"


def _lines(period: Period) -> Iterator[str]:
    yield f"# Weekly report {period.span.week}"
    yield ""
    yield md(period.title())
    for series in period.series:
        yield from _series(series, period)
    yield from _part("Judges", rows_of.judge_rows(period), rows_of.JUDGE_COLUMNS, level=2)
    yield from _part("Left out", rows_of.left_out_rows(period), rows_of.LEFT_OUT_COLUMNS, level=2)
    if period.judge_problem:
        yield f"\n{md(period.judge_problem)}"
    if period.n_other:
        yield f"\nRuns of other dataset versions: {period.n_other}"


def _series(series: Series, period: Period) -> Iterator[str]:
    yield ""
    yield f"## {md(series.name)}"
    yield ""
    verdict, *others = series.lines()
    yield f"**{md(verdict)}**"
    yield ""
    for line in (*others, *rows_of.gap_words(series, period), *rows_of.shadow_words(series)):
        yield f"- {md(line)}"
    for title, change in (("Newly broken", "broken"), ("Newly fixed", "fixed")):
        against = f"{title} (since {reference_words(series)})"
        yield from _part(against, rows_of.change_rows(series, change), rows_of.CHANGED_COLUMNS)
    yield from _part("Figures", rows_of.figure_table_rows(series), rows_of.FIGURE_COLUMNS)
    yield from _part("Sets", rows_of.set_table_rows(series), rows_of.SET_COLUMNS)
    yield from _part("What was changed", rows_of.mark_rows(series), rows_of.MARK_COLUMNS)
    yield from _part("Golden set", rows_of.golden_rows(series), rows_of.GOLDEN_COLUMNS)
    yield from _part("Slices", rows_of.slice_rows(series, most=_MOST_ROWS), rows_of.SLICE_COLUMNS)
    found = rows_of.unstable_rows(series, most=_MOST_ROWS)
    title = f"Unstable cases ({len(found)} of {len(series.unstable)})"
    yield from _part(title, found, rows_of.UNSTABLE_COLUMNS)
    yield from _part("Open review notes", rows_of.note_rows(series), rows_of.NOTE_COLUMNS)
    yield from _part("Runs", rows_of.run_rows(series), rows_of.RUN_COLUMNS)


def _part(
    title: str, rows: list[rows_of.Row], columns: tuple[str, ...], *, level: int = 3
) -> Iterator[str]:
    yield ""
    yield f"{'#' * level} {md(title)}"
    yield ""
    yield from table_lines(rows, columns)
