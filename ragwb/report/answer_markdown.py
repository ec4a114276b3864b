"""A report of answers as Markdown: for a pull request, a chat, or a diff."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ragwb.html import escape_markdown as md
from ragwb.report import answer_sections, sections
from ragwb.report.markdown import headline_lines, table_lines
from ragwb.view.panel import frame_rows

if TYPE_CHECKING:
    from ragwb.report.answer_evaluation import AnswerEvaluation


def answers_to_markdown(evaluation: AnswerEvaluation) -> str:
    """The verdict, modes, figures, broken rules, and every failed, excluded and lost case."""
    return "\n".join(_lines(evaluation)) + "\n"


def _lines(evaluation: AnswerEvaluation) -> Iterator[str]:
    yield f"# Answer report: {md(evaluation.run.manifest.dataset_version)}"
    yield ""
    yield from headline_lines(evaluation.headline())
    yield from _headed("Modes: what must happen by what happened")
    modes = frame_rows(evaluation.answers.confusion().reset_index())
    yield from table_lines(modes, tuple(map(str, modes[0])))
    yield from _headed("Figures")
    yield from table_lines(answer_sections.figure_rows(evaluation), answer_sections.FIGURE_COLUMNS)
    yield from _headed("Broken hard rules")
    yield from table_lines(answer_sections.rule_rows(evaluation), answer_sections.RULE_COLUMNS)
    yield from _headed("Retrieval")
    rows = sections.metric_rows(evaluation.retrieval)
    yield from table_lines(rows, tuple(rows[0]) if rows else ())
    yield from _headed("Latency and cost")
    results = evaluation.run.cases()
    latency = sections.latency_rows(evaluation.retrieval, results)
    for part in (latency, sections.cost_rows(results)):
        yield from table_lines(part, tuple(part[0]))
        yield ""
    yield from _cases(evaluation)


def _cases(evaluation: AnswerEvaluation) -> Iterator[str]:
    yield from _headed("Failed cases")
    failed = answer_sections.failed_rows(evaluation)
    yield from table_lines(failed, answer_sections.FAILED_COLUMNS)
    frame = evaluation.answers.frame
    for title, status in (("Errors", "error"), ("Excluded", "excluded")):
        yield from _headed(title)
        rows = frame_rows(frame.loc[frame["status"] == status, ["case_id", "reason"]])
        yield from table_lines(rows, ("case_id", "reason"))


def _headed(title: str) -> Iterator[str]:
    yield ""
    yield f"## {title}"
    yield ""
