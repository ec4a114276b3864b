"""Write the two files of a judge's report."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragwb.report.notebook import run_notebook, write_atomically
from ragwb.settings import shared_file

if TYPE_CHECKING:
    from ragwb.report.judging import JudgeReview

JUDGE_NOTEBOOK = "60_judge_calibration.ipynb"


def write_judge_report(review: JudgeReview, base: Path, parameters: Mapping[str, Any]) -> None:
    """Write `<base>.json` and `<base>.html`, each replaced in one step.

    Args:
        review: a reviewed judge.
        base: the path without an ending; parents are made.
        parameters: of the notebook, from which the HTML is made.

    Raises:
        UsageError: a file cannot be written.
        ReportError: the notebook failed; the JSON is there by then.
    """
    text = json.dumps(review.to_dict(), ensure_ascii=False, indent=2, allow_nan=False)
    write_atomically(base.with_name(base.name + ".json"), text + "\n")
    notebook = shared_file("notebooks", JUDGE_NOTEBOOK)
    html = base.with_name(base.name + ".html")
    run_notebook(notebook, dict(parameters), html, cwd=Path.cwd())
