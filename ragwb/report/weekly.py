"""Write the files of a weekly report: one HTML page, Markdown, JSON, and a PDF where asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragwb.report.notebook import ReportError, run_notebook, write_atomically
from ragwb.report.pdf import find_browser, print_pdf
from ragwb.settings import shared_file

NOTEBOOK = "50_weekly.ipynb"


@dataclass(frozen=True, slots=True)
class WeeklyFiles:
    """Where a weekly report was written.

    Attributes:
        html, markdown, json: the report.
        pdf: None where it was not asked for.
        period: what the JSON holds.
    """

    html: Path
    markdown: Path
    json: Path
    pdf: Path | None
    period: Mapping[str, Any]


def write_weekly(base: Path, parameters: Mapping[str, object], *, pdf: bool = False) -> WeeklyFiles:
    """Write `<base>.html`, `.md` and `.json`, and `.pdf` where asked, each replaced in one step.

    The runs are read once, by the notebook; where it fails none of the files is touched.

    Args:
        base: the path without an ending; parents are made.
        parameters: of the notebook: since, until, dataset, policy, baseline.
        pdf: whether to print it.

    Raises:
        UsageError: there is no browser to print with, or a file cannot be written.
        ReportError: the notebook failed, and is kept beside the report; or the browser did.
    """
    browser = find_browser() if pdf else None
    ends = (".html", ".md", ".json", ".pdf")
    html, markdown, json_path, pdf_path = (base.with_name(base.name + end) for end in ends)
    recorded = run_notebook(shared_file("notebooks", NOTEBOOK), parameters, html, cwd=Path.cwd())
    if recorded is None:
        raise ReportError(f"{NOTEBOOK} recorded nothing: {markdown} and {json_path} are as before")
    text = json.dumps(recorded["period"], ensure_ascii=False, indent=2, allow_nan=False)
    write_atomically(markdown, recorded["markdown"])
    write_atomically(json_path, text + "\n")
    if browser is not None:
        print_pdf(html, pdf_path, browser)
    return WeeklyFiles(html, markdown, json_path, pdf_path if pdf else None, recorded["period"])
