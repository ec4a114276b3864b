"""The figures of one answer: its mode, citations, claims, hard rules and evidence.

Source: metrics.md, "Answers".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ragwb.errors import MetricError
from ragwb.golden.case import Case, Claim
from ragwb.measure.answered import AnsweredCase, JudgedAnswer
from ragwb.measure.chains import STEPS, Hop, evidence_conflict, hops, whole_chain
from ragwb.measure.claims import find_claim
from ragwb.measure.rule_pack import RulePack
from ragwb.measure.rules import RuleFailure, check_rules, find_forbidden

MODES = ("answer", "refuse", "clarify")

Figures = dict[str, float | None]


@dataclass(frozen=True, slots=True)
class ClaimVerdict:
    """Whether an answer states one claim of its case.

    Attributes:
        kind: required or forbidden.
        index: its place among the required or forbidden claims, from 0.
        claim: its text.
        stated: None when its pattern took too long.
        how: variant, pattern, values (the same words and values, however spelt) or judge; None when
            not stated.
        start, end: code points of the answer, None when not stated or found by a judge.
    """

    kind: str
    index: int
    claim: str
    stated: bool | None
    how: str | None = None
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class AnswerOutcome:
    """All that was found in one answer.

    Attributes:
        answered: the answer.
        claims: required claims, then forbidden ones.
        failures: hard rules that it breaks.
        hops: its evidence groups.
        figures: by the name of the figure; None where it is undefined or not observed.
    """

    answered: AnsweredCase
    claims: tuple[ClaimVerdict, ...]
    failures: tuple[RuleFailure, ...]
    hops: tuple[Hop, ...]
    figures: Figures


def answer_outcome(
    answered: AnsweredCase, pack: RulePack, judged: JudgedAnswer | None = None
) -> AnswerOutcome:
    """The figures of an answer whose call did not fail.

    Args:
        answered: the answer.
        pack: the hard rules.
        judged: what a judge or a person said of it; None when nobody was asked.
    """
    by_judge = judged.stated if judged is not None else frozenset()
    claims = (*_required(answered, by_judge), *_forbidden(answered))
    failures = check_rules(answered, pack)
    found = hops(answered)
    figures = {
        **_mode_figures(answered),
        **_citation_figures(answered, found),
        **_claim_figures(answered.case.case, claims),
        **_evidence_figures(answered, found),
        **_judge_figures(answered.case.case, judged, failures),
        "hard_failure_rate": float(bool(failures)),
    }
    figures["correct_rate"] = _correct(figures, claims)
    return AnswerOutcome(answered, claims, failures, found, figures)


def _required(answered: AnsweredCase, by_judge: frozenset[int]) -> Iterator[ClaimVerdict]:
    for index, claim in enumerate(answered.case.case.required_claims):
        found, is_decided = None, True
        try:
            found = find_claim(claim, answered.text or "")
        except MetricError:
            is_decided = False
        if found is not None:
            span = found.start, found.end
            yield ClaimVerdict("required", index, claim.text, True, found.how, *span)
        elif index in by_judge:
            yield ClaimVerdict("required", index, claim.text, True, "judge")
        else:
            yield ClaimVerdict("required", index, claim.text, False if is_decided else None)


def _forbidden(answered: AnsweredCase) -> Iterator[ClaimVerdict]:
    for index, claim in enumerate(answered.case.case.forbidden_claims):
        try:
            span = find_forbidden(claim, answered.text or "")
        except MetricError:
            yield ClaimVerdict("forbidden", index, claim.text, None)
            continue
        how = None if span is None else _how(claim, answered.text or "")
        start, end = span or (None, None)
        yield ClaimVerdict("forbidden", index, claim.text, span is not None, how, start, end)


def _how(claim: Claim, text: str) -> str:
    found = find_claim(claim, text)
    return "values" if found is None else found.how


def _mode_figures(answered: AnsweredCase) -> Figures:
    """Indicators whose means are the rates; None where the case is not in the denominator."""
    expected, observed = answered.case.case.mode, answered.mode
    refused, clarified = observed == "refuse", observed == "clarify"
    return {
        "mode_accuracy": float(observed == expected),
        "refusal_precision": float(expected == "refuse") if refused else None,
        "refusal_recall": float(refused) if expected == "refuse" else None,
        "over_refusal_rate": float(refused or clarified) if expected == "answer" else None,
        "refusal_reason_accuracy": _reason_accuracy(answered),
        "clarify_precision": float(expected == "clarify") if clarified else None,
        "clarify_recall": float(clarified) if expected == "clarify" else None,
    }


def _reason_accuracy(answered: AnsweredCase) -> float | None:
    case = answered.case.case
    if not case.mode == answered.mode == "refuse":
        return None
    if not case.refusal_trigger or answered.refusal_reason is None:
        return None
    return float(answered.refusal_reason in case.refusal_trigger)


def _citation_figures(answered: AnsweredCase, found: tuple[Hop, ...]) -> Figures:
    cited, context = answered.cited, answered.context
    is_answer = answered.case.case.mode == "answer" and bool(answered.case.groups)
    validity = precision = recall = None
    if cited and context is not None:
        validity = len(set(cited) & set(context)) / len(cited)
    if cited and is_answer:
        evidence = {name for group in answered.case.groups for name in group.chunk_ids}
        precision = len(evidence.intersection(cited)) / len(cited)
    if cited is not None and is_answer:
        recall = sum(bool(hop.cited) for hop in found) / len(found)
    return {
        "citation_validity": validity,
        "citation_precision": precision,
        "citation_recall": recall,
    }


def _claim_figures(case: Case, claims: tuple[ClaimVerdict, ...]) -> Figures:
    """Claim coverage of a case to be answered; the number of forbidden claims of any case."""
    required = [claim.stated for claim in claims if claim.kind == "required"]
    forbidden = [claim.stated for claim in claims if claim.kind == "forbidden"]
    is_counted = case.mode == "answer" and required and None not in required
    return {
        "claim_coverage": sum(map(bool, required)) / len(required) if is_counted else None,
        "forbidden_claims": (
            float(sum(map(bool, forbidden))) if forbidden and None not in forbidden else None
        ),
    }


def _evidence_figures(answered: AnsweredCase, found: tuple[Hop, ...]) -> Figures:
    is_chain = answered.case.case.mode == "answer" and len(found) > 1
    chain = {step: whole_chain(found, step) if is_chain else None for step in STEPS}
    return {
        **{f"chain_{step}": _indicator(value) for step, value in chain.items()},
        "evidence_conflict": _indicator(evidence_conflict(answered)),
    }


def _judge_figures(
    case: Case, judged: JudgedAnswer | None, failures: tuple[RuleFailure, ...]
) -> Figures:
    """The figures that need a judge; those of claims only for a case to be answered."""
    if judged is None:
        return dict.fromkeys(("citation_support", "unsupported_rate", "accepted"))
    is_answer = case.mode == "answer"
    # A logical AND: a hard rule that fails decides, whatever the judge says. Where nothing was said
    # of acceptance it stays unknown: else the figure would be one of broken rules alone.
    accepted = None if judged.accepted is None else judged.accepted and not failures
    return {
        "citation_support": judged.citation_support if is_answer else None,
        "unsupported_rate": judged.unsupported_rate if is_answer else None,
        "accepted": _indicator(accepted),
    }


def _correct(figures: Figures, claims: tuple[ClaimVerdict, ...]) -> float | None:
    """Whether mode, claims and hard rules are right; None when a claim decides and is unknown."""
    if figures["mode_accuracy"] != 1 or figures["hard_failure_rate"] != 0:
        return 0.0
    if figures["claim_coverage"] is not None:
        return float(figures["claim_coverage"] == 1)
    return None if any(claim.stated is None for claim in claims) else 1.0


def _indicator(value: bool | None) -> float | None:
    return None if value is None else float(value)
