"""A comparison as files: JSON for scripts, Markdown for a pull request, HTML for people."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ragwb.errors import UsageError
from ragwb.html import escape_markdown as md
from ragwb.report import compare_sections as sections
from ragwb.report.files import ReportFiles, write_files
from ragwb.report.markdown import headline_lines, table_lines
from ragwb.view.compared import CHANGE_WORDS

if TYPE_CHECKING:
    from ragwb.decide.comparison import Comparison

COMPARE_NOTEBOOK = "40_compare.ipynb"


def write_compare_report(
    comparison: Comparison, base: Path, *, by: str = "", rules: str = ""
) -> ReportFiles:
    """Write `<base>.json`, `.md` and `.html`, each replaced in one step.

    Args:
        comparison: two saved runs on the same cases.
        base: the path without an ending; parents are made. A dot in its name is part of the name.
        by: what the page is sliced by; empty for the first field that tells the cases apart.
        rules: absolute path of the hard rules; empty for those that come with ragwb.
    Raises:
        UsageError: a side is no saved run, or a file cannot be written.
        ReportError: the notebook failed; the other two files are there by then.
    """
    runs = comparison.baseline.run, comparison.candidate.run
    if runs[0] is None or runs[1] is None:
        raise UsageError("a report opens cases: compare two saved runs")
    parameters = {
        "baseline": str(runs[0].path.absolute()),
        "candidate": str(runs[1].path.absolute()),
        "k": comparison.k,
        "by": by,
        "rules": rules,
    }
    markdown = compare_to_markdown(comparison)
    return write_files(comparison.to_dict(), markdown, COMPARE_NOTEBOOK, parameters, base)


def compare_to_markdown(comparison: Comparison) -> str:
    """The words, patterns, changed cases, figures, conditions, and what is not compared."""
    return "\n".join(_lines(comparison)) + "\n"


def _lines(comparison: Comparison) -> Iterator[str]:
    yield f"# Comparison: {md(comparison.baseline.name)} → {md(comparison.candidate.name)}"
    yield ""
    yield from headline_lines(sections.overview(comparison))
    if comparison.patterns:
        yield from ("", "## Patterns", "")
        for one in comparison.patterns:
            named = f"**{md(one.title)}** ({md(one.code)})"
            yield f"- {named}: {md(one.sentence)} Look first: {md(one.look_at)}."
    for change in ("broken", "fixed"):
        yield from ("", f"## {CHANGE_WORDS[change].lstrip('✔✖ ').capitalize()}", "")
        yield from table_lines(sections.changed_rows(comparison, change), sections.CHANGED_COLUMNS)
    yield from ("", "## Figures", "")
    yield from table_lines(sections.figure_rows(comparison), sections.FIGURE_COLUMNS)
    if comparison.delta("p95_ms") is not None:
        yield from ("", md(sections.LATENCY_NOTE))
    yield from ("", "## Conditions", "", f"{md(comparison.conditions.sentence)}", "")
    rows = sections.condition_rows(comparison)
    yield from table_lines(rows, sections.CONDITION_COLUMNS)
    yield from ("", "## Not compared", "")
    yield from table_lines(sections.left_out_rows(comparison), sections.LEFT_OUT_COLUMNS)
