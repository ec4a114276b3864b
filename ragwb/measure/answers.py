"""From answers to their scores: which cases count, and their values over the repeats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from ragwb.errors import MetricError
from ragwb.golden.passages import RETIRED, ResolvedCase
from ragwb.html import plain
from ragwb.measure.answer_figures import AnswerOutcome, answer_outcome
from ragwb.measure.answer_scores import FIGURES, AnswerScores
from ragwb.measure.answered import AnsweredCase, JudgedAnswer
from ragwb.measure.facts import TAG
from ragwb.measure.rule_pack import RulePack

Pair = tuple[str, int]


def score_answers(
    cases: Iterable[AnsweredCase],
    pack: RulePack,
    *,
    golden: Sequence[ResolvedCase] | None = None,
    repeats: int = 1,
    judged: Mapping[Pair, JudgedAnswer] | None = None,
    run_id: str | None = None,
) -> AnswerScores:
    """The scores of answers: modes, refusals, citations, claims, hard rules, chains of evidence.

    A case is an error when any of its calls failed or is missing, for a repeat is never dropped; it
    is excluded when it is retired, its label drifted, or its tier is not blocking (its figures are
    kept then); else it is scored. A case that must be refused or clarified is scored too, and
    enters no figure of claims or evidence.

    Args:
        cases: a result a case and repeat, also those whose call failed.
        pack: the hard rules.
        golden: all golden cases, in their order; by default those of the results.
        repeats: passes fixed before the run.
        judged: what a judge or a person said, by (case id, repeat).
        run_id: the name of the results.

    Raises:
        MetricError: a case comes twice in one repeat, or is not among the golden ones.
    """
    results = list(cases)
    named = {one.case.id: one for one in (golden or [r.case for r in results])}
    _check_pairs(results, named)
    judged = judged or {}
    outcomes = {
        one.pair: answer_outcome(one, pack, judged.get(one.pair))
        for one in results
        if one.error is None
    }
    errors = {one.case_id: one.error for one in reversed(results) if one.error is not None}
    frame = _results_frame(outcomes.values())
    columns = _case_columns(named.values(), frame, errors, repeats)
    return AnswerScores(columns, frame, outcomes, repeats, pack.name, run_id)


def _check_pairs(results: Sequence[AnsweredCase], named: Mapping[str, ResolvedCase]) -> None:
    seen: set[Pair] = set()
    for one in results:
        if one.pair in seen:
            raise MetricError(f"answers: case {plain(one.case_id)!r} comes twice in {one.repeat}")
        if one.case_id not in named:
            raise MetricError(f"answers: case {plain(one.case_id)!r} is not among the golden cases")
        seen.add(one.pair)


def _results_frame(outcomes: Iterable[AnswerOutcome]) -> pd.DataFrame:
    rows = []
    for outcome in outcomes:
        answered = outcome.answered
        rows.append(
            {
                "case_id": answered.case_id,
                "repeat": answered.repeat,
                "expected": answered.case.case.mode,
                "mode": answered.mode,
                **outcome.figures,
            }
        )
    frame = pd.DataFrame(rows, columns=["case_id", "repeat", "expected", "mode", *FIGURES])
    return frame.astype(dict.fromkeys(FIGURES, "float64"))


def _case_columns(
    golden: Iterable[ResolvedCase],
    results: pd.DataFrame,
    errors: Mapping[str, str],
    repeats: int,
) -> pd.DataFrame:
    grouped = results.groupby("case_id", sort=False)
    n_answered = grouped.size()
    rows = [
        _case_row(one, int(n_answered.get(one.case.id, 0)), errors.get(one.case.id), repeats)
        for one in golden
    ]
    tags = sorted({name for row in rows for name in row if name.startswith(TAG)})
    head = ("case_id", "status", "reason", "expected", "tier", "set", "risk", "weight")
    frame = pd.DataFrame(rows, columns=[*head, *tags, "n_repeats"])
    means = grouped[list(FIGURES)].mean()
    is_wrong = results["correct_rate"] == 0
    n_failed = is_wrong.groupby(results["case_id"], sort=False).sum()
    frame = frame.join(means, on="case_id").join(n_failed.rename("n_failed"), on="case_id")
    frame["n_failed"] = frame["n_failed"].fillna(0).astype(int)
    frame.loc[~_keeps_figures(frame), list(FIGURES)] = float("nan")
    frame["failed"] = frame["n_failed"] > 0
    is_high = frame["risk"] == "high"
    most = 2 * frame["n_failed"] > frame["n_repeats"]
    frame["failed_for_comparison"] = most | (is_high & frame["failed"])
    return frame


def _case_row(
    resolved: ResolvedCase, n_answered: int, error: str | None, repeats: int
) -> dict[str, Any]:
    case = resolved.case
    status, reason = _outcome(resolved, n_answered, error, repeats)
    return {
        "case_id": case.id,
        "status": status,
        "reason": reason,
        "expected": case.mode,
        "tier": case.tier,
        "set": case.set,
        "risk": case.risk,
        "weight": case.weight,
        "n_repeats": n_answered,
        **{f"{TAG}{name}": value for name, value in case.tags.items()},
    }


def _outcome(
    resolved: ResolvedCase, n_answered: int, error: str | None, repeats: int
) -> tuple[str, str | None]:
    """Status and reason of a case: the first condition that holds decides."""
    case, excluded = resolved.case, resolved.excluded or ""
    if case.tier == "retired":
        return "excluded", RETIRED
    if error is not None:
        return "error", error
    if not n_answered:
        return "error", "no result in the run"
    if n_answered < repeats:
        return "error", f"{n_answered} of {repeats} repeats are there"
    if excluded.startswith("drifted"):
        return "excluded", excluded
    if case.tier != "blocking":
        return "excluded", f"tier {case.tier}"
    return "scored", None


def _keeps_figures(frame: pd.DataFrame) -> pd.Series[bool]:
    """Cases whose figures mean something: scored ones, and those of another tier."""
    of_tier = frame["reason"].fillna("").str.startswith("tier ") & (frame["n_repeats"] > 0)
    return (frame["status"] == "scored") | of_tier
