"""An eval report as Markdown: for a pull request, a chat, or a diff."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ragwb.html import escape_markdown as md
from ragwb.report import sections

if TYPE_CHECKING:
    from ragwb.report.evaluation import Evaluation


def to_markdown(evaluation: Evaluation) -> str:
    """The verdict, the figures with their limits, and every failed, excluded and lost case."""
    return "\n".join(_lines(evaluation)) + "\n"


def _lines(evaluation: Evaluation) -> Iterator[str]:
    report, manifest = evaluation.to_dict(), evaluation.run.manifest
    yield f"# Retrieval report: {md(manifest.dataset_version)}"
    yield ""
    *lines, of_what = evaluation.headline().text.splitlines()
    for line in lines:
        yield f"- {md(line[2:])}" if line.startswith("- ") else f"**{md(line)}**\n"
    yield f"\n{md(of_what)}"
    yield ""
    yield "## Figures"
    yield ""
    rows = sections.metric_rows(evaluation)
    yield from _table(rows, tuple(rows[0]) if rows else ())
    yield ""
    results = evaluation.run.cases()
    for part in (sections.latency_rows(evaluation, results), sections.cost_rows(results)):
        yield from _table(part, tuple(part[0]))
        yield ""
    yield ""
    yield "## Failed cases"
    yield ""
    yield from _table(sections.failed_rows(evaluation), sections.FAILED_COLUMNS)
    for title, key, column in (("Errors", "errors", "error"), ("Excluded", "excluded", "reason")):
        yield ""
        yield f"## {title}"
        yield ""
        yield from _table(report[key], ("case_id", column))


def _table(rows: Sequence[Mapping[str, object]], columns: Sequence[str]) -> Iterator[str]:
    if not rows:
        yield "None."
        return
    yield "| " + " | ".join(map(md, columns)) + " |"
    yield "|" + " --- |" * len(columns)
    for row in rows:
        cells = ("–" if row.get(name) is None else md(row[name]) for name in columns)
        yield "| " + " | ".join(cells) + " |"
