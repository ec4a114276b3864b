"""Write the three files of an eval report."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragwb.errors import UsageError
from ragwb.report.answer_markdown import answers_to_markdown
from ragwb.report.markdown import to_markdown
from ragwb.report.notebook import run_notebook, write_atomically
from ragwb.settings import shared_file

if TYPE_CHECKING:
    from ragwb.report.answer_evaluation import AnswerEvaluation
    from ragwb.report.evaluation import Evaluation

RETRIEVAL_NOTEBOOK = "10_retrieval_run.ipynb"
ANSWER_NOTEBOOK = "30_answers.ipynb"


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """Where a report was written."""

    json: Path
    markdown: Path
    html: Path


def check_report_path(base: Path) -> None:
    """Refuse a report path that could not be written, before anything is asked.

    Raises:
        UsageError: it names no file, or its folder cannot be made or written.
    """
    if base.name in ("", ".."):
        raise UsageError(f"--report {base}: give a path that ends in the report's name")
    try:
        base.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--report {base}: {error.strerror}") from error
    if not os.access(base.parent, os.W_OK):
        raise UsageError(f"--report {base}: its folder cannot be written")


def write_report(evaluation: Evaluation, base: Path) -> ReportFiles:
    """Write `<base>.json`, `.md` and `.html`, each replaced in one step.

    Args:
        evaluation: an evaluated run.
        base: the path without an ending; parents are made. A dot in its name is part of the name.
    Raises:
        UsageError: a file cannot be written.
        ReportError: the notebook failed; the other two files are there by then.
    """
    parameters = {
        "run": str(evaluation.run.path),
        "k": list(evaluation.scores.ks),
        "limits": {threshold.name: threshold.limit for threshold in evaluation.thresholds},
    }
    markdown = to_markdown(evaluation)
    return write_files(evaluation.to_dict(), markdown, RETRIEVAL_NOTEBOOK, parameters, base)


def write_answer_report(
    evaluation: AnswerEvaluation, base: Path, files: Mapping[str, Any]
) -> ReportFiles:
    """Write `<base>.json`, `.md` and `.html` of evaluated answers, each replaced in one step.

    Args:
        evaluation: an evaluated run.
        base: the path without an ending; parents are made.
        files: what else it was evaluated with, by the notebook's parameters: rules, verdicts,
            rubrics; absolute paths.
    Raises:
        UsageError: a file cannot be written.
        ReportError: the notebook failed; the other two files are there by then.
    """
    parameters = {
        "run": str(evaluation.run.path),
        "k": list(evaluation.retrieval.scores.ks),
        "limits": {threshold.name: threshold.limit for threshold in evaluation.thresholds},
        **files,
    }
    markdown = answers_to_markdown(evaluation)
    return write_files(evaluation.to_dict(), markdown, ANSWER_NOTEBOOK, parameters, base)


def write_files(
    report: Mapping[str, Any],
    markdown: str,
    notebook: str,
    parameters: Mapping[str, Any],
    base: Path,
) -> ReportFiles:
    """Write `<base>.json`, `.md`, and `.html` by a notebook, each replaced in one step.

    Args:
        report: what the JSON holds.
        markdown: the whole text.
        notebook: its file's name, such as `40_compare.ipynb`.
        parameters: of the notebook; paths absolute.
        base: the path without an ending; parents are made. A dot in its name is part of the name.
    Raises:
        UsageError: a file cannot be written.
        ReportError: the notebook failed; the other two files are there by then.
    """
    files = write_data(report, markdown, base)
    run_notebook(shared_file("notebooks", notebook), parameters, files.html, cwd=Path.cwd())
    return files


def write_data(report: Mapping[str, Any], markdown: str, base: Path) -> ReportFiles:
    """Write `<base>.json` and `.md`, and say where the page belongs.

    Raises:
        UsageError: a file cannot be written.
    """
    files = ReportFiles(*(base.with_name(base.name + end) for end in (".json", ".md", ".html")))
    text = json.dumps(report, ensure_ascii=False, indent=2, allow_nan=False)
    write_atomically(files.json, text + "\n")
    write_atomically(files.markdown, markdown)
    return files
