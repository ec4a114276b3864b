"""Open cases of a comparison: what both runs showed of each, read once for many cases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ragwb.errors import UsageError
from ragwb.html import plain
from ragwb.measure.rule_pack import RulePack, load_pack
from ragwb.runs.answered import score_answers
from ragwb.runs.traces import Trace, Traces, load_traces
from ragwb.triage.attribute import triage_traces
from ragwb.triage.verdict import TriagedCase
from ragwb.view.answer_parts import short_why
from ragwb.view.case_view import CaseView, view_case
from ragwb.view.compared import Change, ComparedCase, Side, step_words
from ragwb.view.panel import frame_rows

if TYPE_CHECKING:
    from ragwb.decide.comparison import Comparison
    from ragwb.decide.outcomes import Outcomes
    from ragwb.measure.answer_scores import AnswerScores

Rules = RulePack | str | Path | None
# Figures that stand beside a case's question; those at K where K stands for the comparison's.
_BESIDE = ("recall@K", "mrr@K", "correct_rate", "claim_coverage")
_NEARLY_THERE = 3  # ids that are listed where one is not known


def open_cases(
    comparison: Comparison, case_ids: Sequence[str], *, rules: Rules = None
) -> list[ComparedCase]:
    """Cases of a comparison as both runs left them, in the order given.

    With several repeats the one that stands for a side is shown: where the case failed, one that
    failed.

    Args:
        comparison: two saved runs on the same cases.
        case_ids: cases that both runs answered.
        rules: the hard rules that answers were scored by, or their file; by default those that come
            with ragwb.
    Raises:
        UsageError: a side is no saved run, or a case is in no pair; the text says why.
        RunError: a table of a run is absent or cannot be read.
    """
    rows = {row["case_id"]: row for row in frame_rows(comparison.pairs)}
    for case_id in case_ids:
        if case_id not in rows:
            raise UsageError(_not_paired(comparison, case_id))
    if not case_ids:
        return []
    is_answered = comparison.baseline.kind == comparison.candidate.kind == "answers"
    before, after = (
        _Opened.of(outcomes, comparison.k, rules, is_answered=is_answered)
        for outcomes in (comparison.baseline, comparison.candidate)
    )
    return [_opened(comparison, rows[case_id], before, after) for case_id in case_ids]


def _not_paired(comparison: Comparison, case_id: str) -> str:
    """Why a case cannot be opened."""
    why = next((one for one in comparison.left_out if one.case_id == case_id), None)
    if why is not None:
        return f"case {plain(case_id, width=60)} is not compared: {plain(why.reason)}"
    known = comparison.pairs["case_id"].tolist()
    named = ", ".join(plain(one, width=60) for one in known[:_NEARLY_THERE])
    return f"no case {plain(case_id, width=60)!r}; {len(known)} are compared, such as {named}"


@dataclass(frozen=True)
class _Opened:
    """One run, ready to show any of its cases."""

    name: str
    k: int
    traces: Traces
    triaged: Mapping[str, TriagedCase]
    answers: AnswerScores | None

    @classmethod
    def of(cls, outcomes: Outcomes, k: int, rules: Rules, *, is_answered: bool) -> _Opened:
        if outcomes.run is None:
            raise UsageError(f"{plain(outcomes.name)} holds figures only: cases open of saved runs")
        traces = load_traces(outcomes.run)
        answers = None
        if is_answered:
            answers = score_answers(outcomes.run, _pack(rules), traces=traces)
        found = triage_traces(traces, k=k, scores=answers)
        return cls(outcomes.name, k, traces, {one.case_id: one for one in found.cases}, answers)

    def side(self, case_id: str, *, failed: bool) -> Side:
        """The case in the repeat that stands for it."""
        triaged = self.triaged.get(case_id)
        views = list(self._views(case_id, triaged))
        chosen = next((view for view in views if self._is_shown(view, failed)), views[0])
        pair = case_id, chosen.trace.repeat
        outcome = None if self.answers is None else self.answers.outcomes.get(pair)
        n_failed = sum(self._has_failed(view) for view in views)
        repeats = f"{n_failed} of {len(views)} repeats failed" if len(views) > 1 else ""
        return Side(self.name, chosen, repeats, outcome)

    def _views(self, case_id: str, triaged: TriagedCase | None) -> Iterator[CaseView]:
        """A view a repeat, that of the verdict first."""
        stands = triaged.verdict.repeat if triaged else None
        for trace in sorted(self.traces.of_case(case_id), key=lambda one: one.repeat != stands):
            verdict = triaged.verdict if triaged and trace.repeat == stands else None
            yield self._view(trace, verdict)

    def _view(self, trace: Trace, verdict: Any) -> CaseView:
        return view_case(self.traces, trace, k=self.k, verdict=verdict)

    def _is_shown(self, view: CaseView, failed: bool) -> bool:
        return self._has_failed(view) == failed

    def _has_failed(self, view: CaseView) -> bool:
        if self.answers is not None:
            outcome = self.answers.outcomes.get((view.case_id, view.trace.repeat))
            return outcome is not None and bool(short_why(outcome))
        if view.verdict is not None:
            return True
        groups = view.trace.case.groups
        return any(view.returned.isdisjoint(group.chunk_ids) for group in groups)


def _pack(rules: Rules) -> RulePack:
    return rules if isinstance(rules, RulePack) else load_pack(Path(rules) if rules else None)


def _opened(
    comparison: Comparison, row: Mapping[str, Any], before: _Opened, after: _Opened
) -> ComparedCase:
    case_id = row["case_id"]
    return ComparedCase(
        case_id=case_id,
        question=row["question"] or "",
        change=cast("Change", row["change"]),
        unstable=bool(row["unstable"]),
        marks=case_marks(row),
        figures=dict(_figures(row, comparison.k)),
        baseline=before.side(case_id, failed=bool(row["baseline_failed"])),
        candidate=after.side(case_id, failed=bool(row["candidate_failed"])),
    )


def case_marks(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Why a case of a comparison weighs more than others, in words; () when it does not."""
    marks = ["high risk"] if row["risk"] == "high" else []
    marks += ["permission"] if row.get("permission") else []
    marks += ["high value"] if (row.get("weight") or 1) > 1 else []
    return tuple(marks)


def case_figures(comparison: Comparison, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Of each pair the one figure that stands for it, before and after.

    Where claims say nothing of an answer, the modes do, such as `mode refuse → answer`.

    Args:
        comparison: two sides on the same cases.
        rows: some of its pairs.
    """
    sides = comparison.baseline, comparison.candidate
    if {side.kind for side in sides} != {"answers"}:
        return [_figure_step(row, f"recall@{comparison.k}") for row in rows]
    without = [row["case_id"] for row in rows if not _has_claims(row)]
    modes = [_modes(side, without) for side in sides] if without else []
    return [
        _figure_step(row, "claim_coverage") if _has_claims(row) else _mode_step(row, modes)
        for row in rows
    ]


def _has_claims(row: Mapping[str, Any]) -> bool:
    pair = row.get("claim_coverage_before"), row.get("claim_coverage_after")
    return row["mode"] in (None, "answer") and pair != (None, None)


def _figure_step(row: Mapping[str, Any], figure: str) -> str:
    pair = row.get(f"{figure}_before"), row.get(f"{figure}_after")
    return f"{figure} {step_words([_value(value) for value in pair])}"


def _mode_step(row: Mapping[str, Any], modes: Sequence[Mapping[str, str]]) -> str:
    """The modes of both answers, and the one that is expected where neither is alone that."""
    pair = [mode.get(row["case_id"], "–") for mode in modes]
    expected = row["mode"]
    wanted = "" if expected is None or expected in pair else f" ({expected} expected)"
    return f"mode {step_words(pair)}{wanted}"


def _modes(side: Outcomes, case_ids: Sequence[str]) -> dict[str, str]:
    """The modes in which a side answered each case, those of all repeats; empty without a run."""
    if side.run is None:
        return {}
    results = side.run.cases()
    known = results[results["case_id"].isin(case_ids) & results["mode"].notna()]
    by_case = known.groupby("case_id", sort=False)["mode"].unique()
    return {str(case_id): "/".join(found) for case_id, found in by_case.items()}


def _figures(row: Mapping[str, Any], k: int) -> Iterator[tuple[str, tuple[str, str]]]:
    for name in _BESIDE:
        figure = name.replace("@K", f"@{k}")
        pair = row.get(f"{figure}_before"), row.get(f"{figure}_after")
        if pair != (None, None):
            yield figure, (_value(pair[0]), _value(pair[1]))


def _value(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"
