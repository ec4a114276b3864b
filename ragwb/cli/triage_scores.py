"""What `ragwb triage` takes for the scores of a run's answers: other rules, and verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ragwb.errors import UsageError

if TYPE_CHECKING:
    from ragwb.measure.answer_scores import AnswerScores
    from ragwb.report.answer_evaluation import AnswerEvaluation
    from ragwb.runs.store import Run
    from ragwb.settings import Settings


def answer_scores(
    run: Run,
    rules: Path | None,
    verdicts: Sequence[Path],
    rubrics: Sequence[Path],
    settings: Settings,
) -> tuple[AnswerScores | None, list[str]]:
    """The scores of a run's answers by these rules and by the verdicts that count.

    They mean what they mean in `ragwb answer-eval`: a judge that only advises decides nothing.

    Returns:
        The scores, None when neither rules nor verdicts are given; and what of the verdicts names
        no reason, a line each.

    Raises:
        UsageError: the run only retrieved, the verdicts are not on its answers, or a rubric is
            given without any.
        DataError: a file is broken.
    """
    if rubrics and not verdicts:
        raise UsageError("--rubric needs --verdicts FILE")
    if rules is None and not verdicts:
        return None, []
    from ragwb.report.answer_evaluation import evaluate_answers

    evaluation = evaluate_answers(
        run, rules=rules, verdicts=verdicts, rubrics=rubrics, settings=settings
    )
    return _without_advice(evaluation), _without_reason(evaluation)


def _without_advice(evaluation: AnswerEvaluation) -> AnswerScores:
    """The scores without what a judge says that only advises."""
    from ragwb.measure.answered import JudgedAnswer
    from ragwb.runs.answered import score_answers

    judging = evaluation.judging
    if "unsupported_rate" not in judging.advised:
        return evaluation.answers
    judged = {pair: JudgedAnswer(accepted=said.accepted) for pair, said in judging.answers.items()}
    return score_answers(evaluation.run, evaluation.pack, judged=judged)


def _without_reason(evaluation: AnswerEvaluation) -> list[str]:
    lines = []
    for judge in evaluation.judging.judges:
        if not judge.standing.may_block:
            lines.append(f"the judge only advises, and names no reason here: {judge.words()}")
        elif judge.rubric.kind == "answer":
            lines.append(
                f"a judge of whole answers names no reason here, only one of support does: "
                f"{judge.words()}"
            )
    return lines
