"""Gather what a case card shows from a run's tables, once for many cases."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from ragwb.records import CHANNEL_STAGES, STAGES
from ragwb.view.case_card import CaseView, Row
from ragwb.view.panel import frame_rows

if TYPE_CHECKING:
    from ragwb.report.evaluation import Evaluation


def case_views(evaluation: Evaluation, case_ids: Sequence[str]) -> list[CaseView]:
    """One view a case, in the order given; with several repeats the first one that failed is shown.

    Args:
        evaluation: an evaluated run.
        case_ids: cases that answered.
    """
    run, k = evaluation.run, evaluation.top_k
    resolved = {case.case.id: case for case in run.golden()}
    results = _rows_by_case(run.cases().query("status == 'ok'"), case_ids)
    candidates = run.candidates()
    stages = pipeline_stages(candidates["stage"].unique())
    listed = _rows_by_case(candidates, case_ids)
    chunks = {row["chunk_id"]: row for row in frame_rows(run.chunks())}
    figures = {row["case_id"]: row for row in frame_rows(evaluation.scores.frame)}
    failed = evaluation.scores.failed_repeats(k)
    views = []
    for case_id in case_ids:
        repeat = failed.get(case_id) or results[case_id][0]["repeat"]
        views.append(
            CaseView(
                case=resolved[case_id],
                result=_of_repeat(results[case_id], repeat)[0],
                candidates=_of_repeat(listed[case_id], repeat),
                chunks=chunks,
                stages=stages,
                k=k,
                figures=_figures(figures[case_id], k, len(resolved[case_id].groups)),
            )
        )
    return views


def pipeline_stages(seen: Iterable[str]) -> list[str]:
    """The stages that were observed, channels first, in the order a chunk passes them."""
    found = {str(stage) for stage in seen}
    later = [stage for stage in STAGES if stage not in CHANNEL_STAGES]
    channels = [stage for stage in CHANNEL_STAGES if stage in found]
    foreign = sorted(found - set(STAGES))
    return [*channels, *foreign, *(stage for stage in later if stage in found)]


def _rows_by_case(frame: pd.DataFrame, case_ids: Sequence[str]) -> dict[str, list[Row]]:
    rows: dict[str, list[Row]] = defaultdict(list)
    for row in frame_rows(frame[frame["case_id"].isin(case_ids)]):
        rows[row["case_id"]].append(row)
    return rows


def _of_repeat(rows: list[Row], repeat: int) -> list[Row]:
    return [row for row in rows if row["repeat"] == repeat]


def _figures(row: Row, k: int, n_groups: int) -> dict[str, str]:
    if row["status"] == "excluded":
        return {"excluded:": row["reason"]}
    return {
        f"recall@{k}": f"{row[f'recall@{k}'] * n_groups:.3g}/{n_groups}",
        f"mrr@{k}": f"{row[f'mrr@{k}']:.3g}",
    }
