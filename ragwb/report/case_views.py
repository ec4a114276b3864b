"""Gather what a case card shows of an evaluated run, once for many cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ragwb.runs.traces import load_traces
from ragwb.view.case_view import CaseView, view_case
from ragwb.view.panel import frame_rows

if TYPE_CHECKING:
    from ragwb.report.evaluation import Evaluation


def case_views(evaluation: Evaluation, case_ids: Sequence[str]) -> list[CaseView]:
    """One view a case, in the order given; with several repeats the first one that failed is shown.

    Args:
        evaluation: an evaluated run.
        case_ids: cases that answered.
    """
    k, traces = evaluation.top_k, load_traces(evaluation.run)
    figures = {row["case_id"]: row for row in frame_rows(evaluation.scores.frame)}
    failed = evaluation.scores.failed_repeats(k)
    views = []
    for case_id in case_ids:
        answered = traces.of_case(case_id)
        trace = next((t for t in answered if t.repeat == failed.get(case_id)), answered[0])
        n_groups = len(trace.case.groups)
        shown = _figures(figures[case_id], k, n_groups)
        views.append(view_case(traces, trace, k=k, figures=shown))
    return views


def _figures(row: dict[str, Any], k: int, n_groups: int) -> dict[str, str]:
    if row["status"] == "excluded":
        return {"excluded:": row["reason"]}
    return {
        f"recall@{k}": f"{row[f'recall@{k}'] * n_groups:.3g}/{n_groups}",
        f"mrr@{k}": f"{row[f'mrr@{k}']:.3g}",
    }
