"""An eval report as Markdown: for a pull request, a chat, or a diff."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ragwb.html import escape_markdown as md
from ragwb.report import sections

if TYPE_CHECKING:
    from ragwb.report.evaluation import Evaluation
    from ragwb.view.panel import Panel


def to_markdown(evaluation: Evaluation) -> str:
    """The verdict, the figures with their limits, and every failed, excluded and lost case."""
    return "\n".join(_lines(evaluation)) + "\n"


def _lines(evaluation: Evaluation) -> Iterator[str]:
    report, manifest = evaluation.to_dict(), evaluation.run.manifest
    yield f"# Retrieval report: {md(manifest.dataset_version)}"
    yield ""
    yield from headline_lines(evaluation.headline())
    yield ""
    yield "## Figures"
    yield ""
    rows = sections.metric_rows(evaluation)
    yield from table_lines(rows, tuple(rows[0]) if rows else ())
    yield ""
    results = evaluation.run.cases()
    for part in (sections.latency_rows(evaluation, results), sections.cost_rows(results)):
        yield from table_lines(part, tuple(part[0]))
        yield ""
    yield ""
    yield "## Failed cases"
    yield ""
    yield from table_lines(sections.failed_rows(evaluation), sections.FAILED_COLUMNS)
    for title, key, column in (("Errors", "errors", "error"), ("Excluded", "excluded", "reason")):
        yield ""
        yield f"## {title}"
        yield ""
        yield from table_lines(report[key], ("case_id", column))


def headline_lines(headline: Panel) -> Iterator[str]:
    """The head of a report: warnings and verdict in bold, the steps as a list, then the run."""
    *lines, of_what = headline.text.splitlines()
    for line in lines:
        yield f"- {md(line[2:])}" if line.startswith("- ") else f"**{md(line)}**\n"
    yield f"\n{md(of_what)}"


def table_lines(rows: Sequence[Mapping[str, object]], columns: Sequence[str]) -> Iterator[str]:
    """Rows as a table of Markdown; `None.` when there are none."""
    if not rows:
        yield "None."
        return
    yield "| " + " | ".join(map(md, columns)) + " |"
    yield "|" + " --- |" * len(columns)
    for row in rows:
        cells = ("–" if row.get(name) is None else md(row[name]) for name in columns)
        yield "| " + " | ".join(cells) + " |"
