"""A sweep over K as files: JSON for scripts, Markdown, HTML to read, and a page to move."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ragwb.html import escape_markdown as md
from ragwb.report import k_sections as sections
from ragwb.report.files import write_files
from ragwb.report.markdown import headline_lines, table_lines
from ragwb.report.notebook import write_atomically
from ragwb.sweep.budget import Budget
from ragwb.view.interactive import live_page, live_panel
from ragwb.view.k_charts import k_linked

if TYPE_CHECKING:
    from ragwb.sweep.k_result import KSweep

K_NOTEBOOK = "70_k.ipynb"


@dataclass(frozen=True, slots=True)
class KReportFiles:
    """Where a report was written.

    Attributes:
        json, markdown, html: the report.
        interactive: the page whose charts move, with its scripts inside.
    """

    json: Path
    markdown: Path
    html: Path
    interactive: Path


def write_k_report(
    sweep: KSweep,
    base: Path,
    *,
    budget: Budget | None = None,
    by: str = "",
    metric: str = "recall",
) -> KReportFiles:
    """Write `<base>.json`, `.md`, `.interactive.html` and `.html`, each replaced in one step.

    Args:
        sweep: of saved runs.
        base: the path without an ending; parents are made. A dot in its name is part of the name.
        budget: what a K may cost.
        by: what the page is sliced by; empty for the first field that tells the cases apart.
        metric: the figure that counts.

    Raises:
        UsageError: a file cannot be written.
        ReportError: the notebook failed; the other files are there by then.
    """
    budget = budget or Budget()
    interactive = base.with_name(base.name + ".interactive.html")
    write_atomically(interactive, k_to_page(sweep, budget, metric=metric))
    others = [run for run in sweep.measured.values() if run is not sweep.run]
    parameters = {
        "run": str(sweep.run.path.absolute()),
        "ks": list(sweep.ks),
        "measured": [str(run.path.absolute()) for run in others],
        "max_tokens": float(budget.max_tokens or 0),
        "max_p95_ms": float(budget.max_p95_ms or 0),
        "metric": metric,
        "by": by,
    }
    said = sweep.to_dict(budget, metric=metric)
    markdown = k_to_markdown(sweep, budget, metric=metric)
    files = write_files(said, markdown, K_NOTEBOOK, parameters, base)
    return KReportFiles(files.json, files.markdown, files.html, interactive)


def k_to_page(sweep: KSweep, budget: Budget | None = None, *, metric: str = "recall") -> str:
    """The recommendation, the linked charts with their slider, and the steps, as one HTML page."""
    found = sweep.recommend(budget, metric=metric)
    chart = k_linked(sweep, metric=metric, k=found.k or found.nearest_k)
    parts = {
        "": sections.overview(sweep, budget, metric=metric),
        "Move K": live_panel(chart),
        "From each K to the next": sections.steps(sweep),
        "Figures": sections.figures(sweep),
    }
    return live_page("K sweep", parts)


def k_to_markdown(sweep: KSweep, budget: Budget | None = None, *, metric: str = "recall") -> str:
    """The recommendation, every figure, every step, what was measured."""
    return "\n".join(_lines(sweep, budget, metric)) + "\n"


def _lines(sweep: KSweep, budget: Budget | None, metric: str) -> Iterator[str]:
    yield f"# K sweep: {md(sweep.run.manifest.dataset_version)}"
    yield ""
    yield from headline_lines(sections.overview(sweep, budget, metric=metric))
    rows = {
        **sections.figure_rows(sweep),
        "From each K to the next": sections.step_rows(sweep),
        "Right answers from each K to the next": sections.answer_step_rows(sweep),
        "Measured": sections.measured_rows(sweep),
    }
    for title, table in rows.items():
        if not table or len(table[0]) < 2:
            continue
        yield from ("", f"## {title}", "")
        yield from table_lines(table, tuple(table[0]))
