"""How many required groups are left after each stage of the pipeline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ragwb.runs.results import LATER_STAGES
from ragwb.triage.reasons import Stage
from ragwb.triage.verdict import GroupVerdict

if TYPE_CHECKING:
    from ragwb.triage.result import Triage

FUNNEL_COLUMNS = ("stage", "n", "n_unknown", "n_groups")
FUNNEL_STAGES: tuple[Stage, ...] = (
    "knowledge",
    "filter",
    "recall",
    "fusion",
    "rerank",
    "context",
)
# What shows a stage at work; results always are, and are cut after the reranking.
_SHOWN_BY = {
    "knowledge": ("explain", "filtered", "channels"),
    "filter": ("explain", "filtered", "channels"),
    "recall": ("channels",),
    "fusion": ("fused",),
    "rerank": ("results",),
    "context": ("context",),
}


def funnel_rows(triage: Triage) -> Iterator[dict[str, Any]]:
    """A row a stage that any result shows: groups left after it, unknown ones, and all groups."""
    judged = list(_judged(triage))
    n_groups = sum(len(triage.traces.cases[case_id].groups) for case_id, _ in judged)
    shown = {name for pair in judged for name in triage.traces.result(pair)["observed"]}
    if any(triage.traces.explanations(pair) for pair in judged):
        shown.add("explain")
    lost: Counter[str] = Counter()
    unknown: Counter[str] = Counter()
    for case in triage.cases:
        for group in case.verdict.groups:
            if group.stage == "unknown":
                unknown[_first_unknown(group)] += 1
            else:
                lost[group.stage] += 1
    n_lost = n_unknown = 0
    for stage in FUNNEL_STAGES:
        n_lost += lost[stage]
        n_unknown += unknown[stage]
        if shown.intersection(_SHOWN_BY[stage]):
            left = n_groups - n_lost - n_unknown
            yield dict(zip(FUNNEL_COLUMNS, (stage, left, n_unknown, n_groups), strict=True))


def _judged(triage: Triage) -> Iterator[tuple[str, int]]:
    """The result that stands for each case with required groups."""
    for case in triage.cases:
        if triage.traces.cases[case.case_id].excluded is None:
            yield case.case_id, case.verdict.repeat
    for case_id in triage.passed:
        if triage.traces.cases[case_id].excluded is None:
            yield triage.traces.pairs_of(case_id)[0]


def _first_unknown(group: GroupVerdict) -> str:
    """The first stage of which it is not known whether the group passed it."""
    seen = group.last_seen
    if seen is None:
        return "knowledge"
    if seen not in LATER_STAGES:
        return "fusion"
    return "rerank"
