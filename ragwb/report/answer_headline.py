"""The head of an answer report: the verdict in a line, and what to do next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ragwb.measure.answer_figures import MODES
from ragwb.measure.answer_scores import OTHER
from ragwb.measure.listed import count, some
from ragwb.report.words import (
    embedding_warning,
    errors_of,
    failed_call_steps,
    limit_steps,
    met_words,
    run_line,
    verdict_panel,
    verdict_words,
)
from ragwb.view.panel import Panel, frame_rows

if TYPE_CHECKING:
    from ragwb.measure.answer_figures import AnswerOutcome
    from ragwb.report.answer_evaluation import AnswerEvaluation

_DONE = {"answer": "answered", "refuse": "refused", "clarify": "asked back"}


def headline(evaluation: AnswerEvaluation) -> Panel:
    """The verdict in a line, what to do next, and the warnings that change how to read the rest."""
    return verdict_panel(
        *verdict_words(evaluation.verdict, evaluation.thresholds),
        words=_verdict_line(evaluation),
        steps=list(_steps(evaluation)),
        warnings=list(_warnings(evaluation)),
        of_what=" · ".join((run_line(evaluation.run), _answerer(evaluation))),
    )


def _answerer(evaluation: AnswerEvaluation) -> str:
    """Who answered, by which prompt and rules."""
    manifest = evaluation.run.manifest
    parts = [f"answers by {manifest.answer_model or 'a model that is not named'}"]
    if (manifest.answer_model or "").startswith("extractive"):
        parts.append("which quotes and does not write")
    if manifest.prompt_version:
        parts.append(f"prompt {manifest.prompt_version}")
    parts.append(f"rules {evaluation.pack.name} {evaluation.pack.version}")
    if contexts := evaluation.run.service().get("contextsFrom"):
        parts.append(f"on the contexts of run {contexts}")
    return ", ".join(parts)


def _verdict_line(evaluation: AnswerEvaluation) -> str:
    """What was found, the bad first."""
    answers, retrieval = evaluation.answers, evaluation.retrieval
    n_wrong = len(answers.failed_case_ids())
    found = retrieval.scores.n_scored - len(retrieval.failed_case_ids)
    parts = []
    if evaluation.rule_case_ids:
        parts.append(f"a hard rule is broken in {count(len(evaluation.rule_case_ids), 'case')}")
    if retrieval.forbidden_case_ids:
        n_forbidden = count(len(retrieval.forbidden_case_ids), "case")
        parts.append(f"evidence that must not be there came back in {n_forbidden}")
    parts.append(
        f"{answers.n_scored - n_wrong}/{answers.n_scored} cases are answered right "
        "(mode, required claims, hard rules)"
    )
    parts.append(
        f"{found}/{retrieval.scores.n_scored} have all their evidence in the first "
        f"{retrieval.top_k}"
    )
    parts += met_words(evaluation.verdict, evaluation.thresholds)
    if answers.n_errors:
        n_errors = count(answers.n_errors, "case")
        parts.append(f"{n_errors} could not be asked, the run is incomplete")
    return "; ".join(parts)


def _steps(evaluation: AnswerEvaluation) -> Iterator[str]:
    yield from _rule_steps(evaluation)
    yield from limit_steps(
        t for t in evaluation.thresholds if not _is_advised(evaluation, t.metric)
    )
    for threshold in evaluation.thresholds:
        if _is_advised(evaluation, threshold.metric):
            yield f"{threshold.name} decides nothing: {threshold.metric} is a judge's advice."
    yield from _mode_steps(evaluation)
    yield from _claim_steps(evaluation)
    if rejected := evaluation.rejected_case_ids:
        yield f"Rejected by the calibrated judge: {_cases(evaluation, rejected)}."
    yield from _other_steps(evaluation)


def _is_advised(evaluation: AnswerEvaluation, metric: str) -> bool:
    return metric in evaluation.judging.advised


def _rule_steps(evaluation: AnswerEvaluation) -> Iterator[str]:
    """A line a reason, the gravest first, with the cases that break it."""
    if forbidden := evaluation.retrieval.forbidden_case_ids:
        yield f"Look at these first, what must not come back did: {some(forbidden)}."
    failures = evaluation.answers.failures()
    failures = failures[failures["case_id"].isin(evaluation.rule_case_ids)]
    for reason, rows in failures.groupby("reason", sort=False):
        broken = list(dict.fromkeys(rows["case_id"]))
        yield f"{reason}: {_cases(evaluation, broken)}."


def _mode_steps(evaluation: AnswerEvaluation) -> Iterator[str]:
    """A line a way to be of the wrong mode, the most cases first."""
    found = cases_by_mode(evaluation)
    wrong = {modes: cases for modes, cases in found.items() if modes[0] != modes[1]}
    for modes, cases in sorted(wrong.items(), key=lambda item: -len(item[1])):
        done = _DONE.get(modes[1], "Of no known mode").capitalize()
        yield f"{done} instead of {_DONE[modes[0]]}: {_cases(evaluation, cases)}."


def cases_by_mode(evaluation: AnswerEvaluation) -> dict[tuple[str, str], list[str]]:
    """Scored cases by expected and observed mode in any repeat, each once in a cell."""
    frame = evaluation.answers.frame
    scored = set(frame.loc[frame["status"] == "scored", "case_id"])
    found: dict[tuple[str, str], dict[str, None]] = {}
    for row in frame_rows(evaluation.answers.results):
        if row["case_id"] in scored:
            observed = row["mode"] if row["mode"] in MODES else OTHER
            found.setdefault((row["expected"], observed), {})[row["case_id"]] = None
    return {modes: list(cases) for modes, cases in found.items()}


def _claim_steps(evaluation: AnswerEvaluation) -> Iterator[str]:
    """Missing claims, told apart by whether the evidence was before the answerer."""
    held: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    failed = set(evaluation.answers.failed_case_ids())
    for (case_id, _), outcome in evaluation.answers.outcomes.items():
        if case_id in failed and is_claim_missing(outcome):
            (held if has_all_evidence(outcome) else lost)[case_id] += 1
    if held:
        yield (
            "A required claim left out though all the evidence was in the context, which is the "
            f"answerer's matter: {_cases(evaluation, list(held))}."
        )
    if lost:
        yield (
            "A required claim left out and evidence missing from the context, of which ragwb "
            f"triage tells where it was lost: {_cases(evaluation, list(lost))}."
        )


def is_claim_missing(outcome: AnswerOutcome) -> bool:
    """Whether an answer of the right mode leaves out a required claim."""
    coverage = outcome.figures["claim_coverage"]
    return outcome.figures["mode_accuracy"] == 1 and coverage is not None and coverage < 1


def has_all_evidence(outcome: AnswerOutcome) -> bool:
    """Whether every evidence group was seen in the context."""
    return all(hop.in_context for hop in outcome.hops)


def _other_steps(evaluation: AnswerEvaluation) -> Iterator[str]:
    frame = evaluation.answers.frame
    if unstable := unstable_cases(evaluation):
        yield f"Unstable, right in some repeats and wrong in others: {some(unstable)}."
    yield from failed_call_steps(errors_of(frame))
    drifted = frame["reason"].fillna("").str.startswith("drifted")
    if gone := frame.loc[(frame["status"] == "excluded") & drifted, "case_id"].tolist():
        yield f"Relink the evidence of {some(gone)}: ragwb golden check tells what is gone."


def unstable_cases(evaluation: AnswerEvaluation) -> list[str]:
    """Scored cases that are right in some repeats and wrong in others."""
    frame = evaluation.answers.frame
    mixed = (frame["n_failed"] > 0) & (frame["n_failed"] < frame["n_repeats"])
    ids: list[str] = frame.loc[(frame["status"] == "scored") & mixed, "case_id"].tolist()
    return ids


def _cases(evaluation: AnswerEvaluation, case_ids: Sequence[str]) -> str:
    """How many cases, how many of them of high risk, and the first of their names."""
    frame = evaluation.answers.frame
    n_high = int((frame["case_id"].isin(case_ids) & (frame["risk"] == "high")).sum())
    high = f", {n_high} of high risk" if n_high else ""
    return f"{count(len(case_ids), 'case')}{high} ({some(case_ids)})"


def _warnings(evaluation: AnswerEvaluation) -> Iterator[str]:
    yield from embedding_warning(evaluation.run)
    for judge in evaluation.judging.judges:
        if not judge.standing.may_block:
            yield f"The judge only advises, and decides nothing here: {judge.words()}."
