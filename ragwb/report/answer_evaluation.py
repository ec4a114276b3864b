"""A run of answers held against limits and hard rules: figures, verdict, the cases behind both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragwb.decide.thresholds import (
    ALL_LIMITS,
    LIMITS,
    Threshold,
    Verdict,
    check_thresholds,
    decide_verdict,
)
from ragwb.errors import UsageError
from ragwb.measure.answer_scores import AnswerScores
from ragwb.measure.rule_pack import RulePack, load_pack
from ragwb.report.answer_judging import Judging, consult_judges
from ragwb.report.evaluation import Evaluation, evaluate
from ragwb.runs.answered import score_answers
from ragwb.view.panel import Panel, frame_rows

if TYPE_CHECKING:
    from ragwb.runs.store import Run
    from ragwb.settings import Settings

# Broken whatever the labels of a case are worth: also a case whose label drifted has failed then.
_WITHOUT_LABELS = frozenset(
    {"TENANT_LEAK", "ACL_LEAK", "STALE_VERSION_LEAK", "UNKNOWN_CITATION", "UNSAFE_ACTION"}
)


@dataclass(frozen=True, slots=True, repr=False)
class AnswerEvaluation:
    """One run's answers, scored and held against limits and hard rules.

    Attributes:
        retrieval: the same run's retrieval, with its own limits.
        answers: the scores of the answers.
        figures: figures of answers by name, None where undefined.
        thresholds: all limits that were set, as checked.
        verdict: pass, fail or undecided; a broken hard rule fails, whatever the figures are.
        rule_case_ids: blocking cases of which an answer breaks a hard rule in any repeat.
        pack: the rules.
        judging: what judges said, and what they may do.
    """

    retrieval: Evaluation
    answers: AnswerScores
    figures: Mapping[str, float | None]
    thresholds: tuple[Threshold, ...]
    verdict: Verdict
    rule_case_ids: tuple[str, ...]
    pack: RulePack
    judging: Judging

    @property
    def run(self) -> Run:
        """The saved run."""
        return self.retrieval.run

    @property
    def failed_case_ids(self) -> tuple[str, ...]:
        """Scored cases whose answer is wrong in any repeat, and all that break a hard rule.

        Wrong is a wrong mode, a required claim that is missing, a broken rule; and what a judge
        rejects that may block.
        """
        failed = {*self.answers.failed_case_ids(), *self.rule_case_ids, *self.rejected_case_ids}
        return tuple(case_id for case_id in self.answers.frame["case_id"] if case_id in failed)

    @property
    def rejected_case_ids(self) -> tuple[str, ...]:
        """Scored cases of which a judge that may block rejects an answer."""
        if not self.judging.decides:
            return ()
        rejected = {
            pair[0]
            for pair, opinion in self.judging.opinions.items()
            if opinion.acceptance.judged is False
        }
        frame = self.answers.frame
        scored = frame.loc[frame["status"] == "scored", "case_id"]
        return tuple(case_id for case_id in scored if case_id in rejected)

    def to_dict(self) -> dict[str, Any]:
        """The JSON of the report: that of the retrieval, and what the answers came to."""
        answers = self.answers
        return {
            **self.retrieval.to_dict(),
            "thresholds": [threshold.to_dict() for threshold in self.thresholds],
            "verdict": self.verdict,
            "answers": {
                "n_scored": answers.n_scored,
                "n_excluded": answers.n_excluded,
                "n_errors": answers.n_errors,
                **self.figures,
            },
            "failed_answer_ids": list(self.failed_case_ids),
            "rule_case_ids": list(self.rule_case_ids),
            "rule_failures": _failure_rows(answers),
            "confusion": answers.to_dict()["confusion"],
            "judges": [judge.to_dict() for judge in self.judging.judges],
        }

    def __repr__(self) -> str:
        return self.headline().text

    def _repr_html_(self) -> str:
        return self.headline().html

    def headline(self) -> Panel:
        """The verdict in a line, and what to do next."""
        from ragwb.report.answer_headline import headline

        return headline(self)


def _failure_rows(answers: AnswerScores) -> list[dict[str, Any]]:
    """A row a broken rule, the gravest first, with the place in the answer's text if it has one."""
    return frame_rows(answers.failures())


def evaluate_answers(
    run: Run,
    *,
    k: Sequence[int] | None = None,
    limits: Mapping[str, float | None] | None = None,
    rules: str | Path | None = None,
    verdicts: Sequence[str | Path] = (),
    rubrics: Sequence[str | Path] = (),
    settings: Settings | None = None,
) -> AnswerEvaluation:
    """Score the answers of a run and hold them against hard rules and limits.

    Args:
        run: a saved run that asked for answers.
        k: the Ks to score its retrieval at, as in `evaluate`.
        limits: by the names of `LIMITS` and `ANSWER_LIMITS`, such as `{"min_claim_coverage": 0.9}`.
        rules: a rule pack, by default the one that comes with ragwb.
        verdicts: files of a judge's verdicts on this run's answers.
        rubrics: the rubrics that they follow, beside those that come with ragwb.
        settings: where calibrations are on record; default the settings in force.
    Raises:
        MetricError: a K beyond the run's top K.
        UsageError: the run only retrieved; an unknown limit, or one outside its range; verdicts
            that do not belong to it; rubrics without verdicts.
        DataError: a file of rules, verdicts or rubrics is broken.
    """
    limits, top_k = limits or {}, run.manifest.top_k
    check_thresholds({}, limits, top_k=top_k, known=ALL_LIMITS)
    pack = load_pack(None if rules is None else Path(rules))
    own = {name: limit for name, limit in limits.items() if name in LIMITS}
    retrieval = evaluate(run, k=k, limits=own)
    answers, judging = _scored(run, pack, verdicts, rubrics, settings)
    figures = {row["metric"]: row["value"] for row in frame_rows(answers.summary())}
    # A judge that only advises decides no limit.
    held = {**retrieval.metrics, **figures, **dict.fromkeys(judging.advised)}
    thresholds = check_thresholds(held, limits, top_k=top_k, known=ALL_LIMITS)
    broken = _rule_case_ids(answers)
    verdict = decide_verdict(
        thresholds,
        n_errors=answers.n_errors,
        n_forbidden=len({*broken, *retrieval.forbidden_case_ids}),
    )
    return AnswerEvaluation(retrieval, answers, figures, thresholds, verdict, broken, pack, judging)


def _scored(
    run: Run,
    pack: RulePack,
    verdicts: Sequence[str | Path],
    rubrics: Sequence[str | Path],
    settings: Settings | None,
) -> tuple[AnswerScores, Judging]:
    """The scores, with what judges say: they are told first which answers break a rule."""
    answers = score_answers(run, pack)
    if rubrics and not verdicts:
        raise UsageError("rubrics are what verdicts follow: give the verdicts too")
    if not verdicts:
        return answers, Judging()
    broken = {pair: bool(outcome.failures) for pair, outcome in answers.outcomes.items()}
    judging = consult_judges(run, verdicts, rubrics=rubrics, broken=broken, settings=settings)
    return score_answers(run, pack, judged=judging.answers), judging


def _rule_case_ids(answers: AnswerScores) -> tuple[str, ...]:
    """Blocking cases that break a hard rule, also where another of their calls failed.

    Of a case that is left out because its label drifted only what no label tells counts.
    """
    frame, failures = answers.frame, answers.failures()
    excluded = set(frame.loc[frame["status"] == "excluded", "case_id"])
    counts = ~failures["case_id"].isin(excluded) | failures["reason"].isin(_WITHOUT_LABELS)
    broken = set(failures.loc[counts, "case_id"])
    blocking = frame.loc[frame["tier"] == "blocking", "case_id"]
    return tuple(case_id for case_id in blocking if case_id in broken)
