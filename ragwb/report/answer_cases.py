"""The cases of an answer report: a line each, and each opened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ragwb.html import tag
from ragwb.report.words import n_opened
from ragwb.runs.traces import load_traces
from ragwb.view.answer_card import answer_card
from ragwb.view.answer_parts import short_why
from ragwb.view.case_parts import cut
from ragwb.view.case_view import view_case
from ragwb.view.panel import Panel, opened

if TYPE_CHECKING:
    from ragwb.measure.answer_figures import AnswerOutcome
    from ragwb.report.answer_evaluation import AnswerEvaluation

FAILED_COLUMNS = ("case_id", "why", "question", "risk", "expected", "mode")
_MOST_OF_A_QUESTION = 120


def bad_cases(evaluation: AnswerEvaluation) -> list[str]:
    """Cases to open: broken rules first, then high risk, then in the set's order."""
    frame = evaluation.answers.frame
    risk = dict(zip(frame["case_id"], frame["risk"], strict=True))
    broken = set(evaluation.rule_case_ids)
    return sorted(
        evaluation.failed_case_ids, key=lambda name: (name not in broken, risk[name] != "high")
    )


def failed_rows(evaluation: AnswerEvaluation) -> list[dict[str, object]]:
    """A line a failed case: why, question, risk, what must happen and what did."""
    return [_failed_row(evaluation, case_id) for case_id in bad_cases(evaluation)]


def _failed_row(evaluation: AnswerEvaluation, case_id: str) -> dict[str, object]:
    outcome = _shown(evaluation, case_id)
    case = outcome.answered.case.case
    why = list(short_why(outcome))
    if case_id in evaluation.rejected_case_ids:
        why.append("rejected by the judge")
    return {
        "case_id": case_id,
        "why": ", ".join(why),
        "question": cut(case.question, _MOST_OF_A_QUESTION),
        "risk": case.risk,
        "expected": case.mode,
        "mode": outcome.answered.mode,
    }


def failed(evaluation: AnswerEvaluation, *, limit: int) -> Panel:
    """Each failed case opened, the worst first; the rest counted and named.

    Args:
        evaluation: an evaluated run.
        limit: cases that are opened one by one, from 0.

    Raises:
        UsageError: the limit is below 0.
    """
    ids = bad_cases(evaluation)
    if not ids:
        return Panel("No case failed.", tag("p", "No case failed.", class_="rw-none"))
    return _cards(evaluation, ids, limit=n_opened(limit), n_open=1)


def passed(evaluation: AnswerEvaluation, *, limit: int) -> Panel:
    """The other cases that were answered, closed until they are clicked on."""
    bad = set(bad_cases(evaluation))
    answered = {pair[0] for pair in evaluation.answers.outcomes}
    ids = [c for c in evaluation.answers.frame["case_id"] if c in answered and c not in bad]
    if not ids:
        return Panel("No other case.", tag("p", "No other case.", class_="rw-none"))
    return _cards(evaluation, ids, limit=n_opened(limit), n_open=0)


def _cards(evaluation: AnswerEvaluation, ids: Sequence[str], *, limit: int, n_open: int) -> Panel:
    cards = list(_opened(evaluation, ids[:limit], n_open))
    return opened(cards, ids[limit:])


def _opened(evaluation: AnswerEvaluation, ids: Sequence[str], n_open: int) -> Iterator[Panel]:
    traces = load_traces(evaluation.run)
    for position, case_id in enumerate(ids):
        outcome = _shown(evaluation, case_id)
        view = view_case(traces, traces[outcome.answered.pair], k=evaluation.retrieval.top_k)
        yield answer_card(
            view,
            _outcomes(evaluation, case_id),
            outcome,
            opinion=_opinion(evaluation, outcome),
            is_open=position < n_open,
        )


def _outcomes(evaluation: AnswerEvaluation, case_id: str) -> list[AnswerOutcome]:
    """A case's answers in the order of their repeats."""
    held = evaluation.answers.outcomes
    repeats = range(1, evaluation.answers.repeats + 1)
    return [held[case_id, repeat] for repeat in repeats if (case_id, repeat) in held]


def _shown(evaluation: AnswerEvaluation, case_id: str) -> AnswerOutcome:
    """The repeat that stands for a case: of those that break a rule or are wrong the first."""
    outcomes = _outcomes(evaluation, case_id)
    broken = (one for one in outcomes if one.failures)
    wrong = (one for one in outcomes if short_why(one))
    rejected = (one for one in outcomes if _is_rejected(evaluation, one))
    return next(broken, None) or next(wrong, None) or next(rejected, None) or outcomes[0]


def _is_rejected(evaluation: AnswerEvaluation, outcome: AnswerOutcome) -> bool:
    opinion = evaluation.judging.opinions.get(outcome.answered.pair)
    return opinion is not None and opinion.acceptance.judged is False


def _opinion(evaluation: AnswerEvaluation, outcome: AnswerOutcome) -> str:
    """What the judge of whole answers says of one, in a sentence, with its own words."""
    opinion = evaluation.judging.opinions.get(outcome.answered.pair)
    if opinion is None:
        return ""
    scores = opinion.scores or {}
    said = ", ".join(f"{name} {value}" for name, value in scores.items()) or "unscored"
    words = f" “{cut(opinion.rationale)}”" if opinion.rationale else ""
    return f"{said}; {opinion.acceptance.why}{words}"
