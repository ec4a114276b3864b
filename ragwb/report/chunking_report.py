"""A chunking sweep as files: JSON for scripts, Markdown for a pull request, HTML for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragwb.html import escape_markdown as md
from ragwb.measure.listed import count
from ragwb.report import chunking_sections as sections
from ragwb.report.files import ReportFiles, write_files
from ragwb.report.markdown import headline_lines, table_lines

if TYPE_CHECKING:
    from ragwb.sweep.outcome import ChunkingSweep

CHUNKING_NOTEBOOK = "80_chunking.ipynb"


def write_chunking_report(
    sweep: ChunkingSweep, base: Path, parameters: Mapping[str, Any]
) -> ReportFiles:
    """Write `<base>.json`, `.md` and `.html`, each replaced in one step.

    The page is made by the notebook, which finds every point in the cache.

    Args:
        sweep: the points.
        base: the path without an ending; parents are made. A dot in its name is part of the name.
        parameters: of the notebook: what the sweep was made of, with absolute paths.

    Raises:
        UsageError: a file cannot be written.
        ReportError: the notebook failed; the other two files are there by then.
    """
    markdown = chunking_to_markdown(sweep)
    return write_files(sweep.to_dict(), markdown, CHUNKING_NOTEBOOK, parameters, base)


def chunking_to_markdown(sweep: ChunkingSweep) -> str:
    """The words, every point at both cuts, costs, effects, changed cases, what counts nowhere."""
    return "\n".join(_lines(sweep)) + "\n"


def _lines(sweep: ChunkingSweep) -> Iterator[str]:
    points, cases = count(len(sweep.results), "point"), count(len(sweep.case_ids), "case")
    yield f"# Chunking sweep: {points} on the same {cases}"
    yield ""
    yield from headline_lines(sections.overview(sweep))
    for cut in sweep.cuts:
        yield from ("", f"## At {cut}", "")
        rows = sections.point_rows(sweep, cut)
        yield from table_lines(rows, sections.point_columns(rows))
    yield from ("", "## What each chunking is and costs", "")
    yield from table_lines(sections.cost_rows(sweep), sections.COST_COLUMNS)
    yield from ("", f"## Factors at {sweep.cuts[1]}", "")
    yield from table_lines(sections.effect_rows(sweep), sections.EFFECT_COLUMNS)
    for cut in sweep.cuts:
        yield from ("", f"## Fixed and broken at {cut}", "")
        yield from table_lines(list(sections.change_rows(sweep, cut)), sections.CHANGE_COLUMNS)
    if sweep.left_out or sweep.failed:
        yield from ("", "## Counted nowhere", "")
        yield from (f"- case {md(i)}: {md(why)}" for i, why in sweep.left_out.items())
        yield from (f"- point {md(r.point.name)}: {md(r.error)}" for r in sweep.failed)
