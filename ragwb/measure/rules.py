"""Hard rules: what code alone can tell to be wrong with an answer, whatever any score says.

Tolerance is zero, and each failure names its rule, the place and the proof. Source: metrics.md,
"Hard rules".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ragwb.errors import MetricError
from ragwb.golden.case import Claim
from ragwb.html import plain
from ragwb.measure.answered import AnsweredCase
from ragwb.measure.claims import find_claim
from ragwb.measure.leaks import leak_reason
from ragwb.measure.pack_rules import PackFinding, check_rule
from ragwb.measure.rule_pack import RulePack
from ragwb.measure.statements import find_same
from ragwb.measure.versions import Contradicted, contradicted_values, other_versions

REASON_OF_KIND = {
    "forbidden": "FORBIDDEN_CLAIM",
    "action": "UNSAFE_ACTION",
    "required": "CLAIM_MISSING",
}
"""The reason code of a failure of a pack's rule, by the rule's kind."""

HARD_REASONS = (
    "TENANT_LEAK",
    "ACL_LEAK",
    "STALE_VERSION_LEAK",
    "FORBIDDEN_RETRIEVED",
    "UNKNOWN_CITATION",
    "STALE_VERSION_CITED",
    "WRONG_VERSION",
    "FORBIDDEN_CLAIM",
    "UNSAFE_ACTION",
    "EVIDENCE_NOT_CITED",
    "CLAIM_MISSING",
)
"""Reason codes of hard failures, the gravest first."""


@dataclass(frozen=True, slots=True)
class RuleFailure:
    """One hard rule that an answer breaks.

    Attributes:
        rule: its name: a reason code, or the name of a pack's rule.
        reason: the reason code.
        where: text, citations, context, results or actions.
        start, end: code points of the answer's text, None elsewhere.
        proof: what breaks it, in a sentence.
    """

    rule: str
    reason: str
    where: str
    start: int | None
    end: int | None
    proof: str


def check_rules(answered: AnsweredCase, pack: RulePack) -> tuple[RuleFailure, ...]:
    """The hard rules that an answer breaks, the gravest first; () when a call failed.

    What was not observed breaks nothing. A rule whose pattern takes too long does not pass: its
    failure says so.
    """
    if answered.error is not None:
        return ()
    found = [failure for check in _CHECKS for failure in check(answered, pack)]
    return tuple(sorted(found, key=lambda failure: HARD_REASONS.index(failure.reason)))


def find_forbidden(claim: Claim, text: str) -> tuple[int, int] | None:
    """Where a text states a forbidden claim: as any claim is found, or with the same values.

    Raises:
        MetricError: the claim's pattern takes too long.
    """
    found = find_claim(claim, text)
    if found is not None:
        return found.start, found.end
    spans = (find_same(wording, text) for wording in (claim.text, *claim.variants))
    return next((span for span in spans if span is not None), None)


def _leaks(answered: AnsweredCase, _: RulePack) -> Iterator[RuleFailure]:
    for chunk_id, where in _came_back(answered):
        said = answered.explanations.get(chunk_id)
        reason = leak_reason(said) if said is not None else None
        if said is not None and reason is not None:
            by = ", ".join(said.filtered_by or ()) or said.state
            proof = f"{_id(chunk_id)} in the {where}: /explain: not visible, {plain(by, width=60)}"
            yield RuleFailure(reason, reason, where, None, None, proof)


def _came_back(answered: AnsweredCase) -> list[tuple[str, str]]:
    """Every chunk that came back, and the first of context, citations and results that has it."""
    lists = {
        "context": answered.context or (),
        "citations": answered.cited or (),
        "results": answered.results,
    }
    found: dict[str, str] = {}
    for where, ids in lists.items():
        for chunk_id in ids:
            found.setdefault(chunk_id, where)
    return list(found.items())


def _forbidden_chunks(answered: AnsweredCase, _: RulePack) -> Iterator[RuleFailure]:
    forbidden = set(answered.case.forbidden_chunk_ids)
    for chunk_id, where in _came_back(answered):
        if chunk_id in forbidden and where != "results":
            proof = f"{_id(chunk_id)} is in the {where}, and the case forbids it"
            yield RuleFailure(
                "FORBIDDEN_RETRIEVED", "FORBIDDEN_RETRIEVED", where, None, None, proof
            )


def _unknown_citations(answered: AnsweredCase, _: RulePack) -> Iterator[RuleFailure]:
    if answered.context is None or answered.cited is None:
        return
    for chunk_id in answered.cited:
        if chunk_id not in answered.context:
            proof = f"{_id(chunk_id)} is cited, and not among the context's {len(answered.context)}"
            yield RuleFailure(
                "UNKNOWN_CITATION", "UNKNOWN_CITATION", "citations", None, None, proof
            )


def _stale_citations(answered: AnsweredCase, _: RulePack) -> Iterator[RuleFailure]:
    for chunk_id, document, version in other_versions(answered):
        wanted = answered.case.case.required_version
        proof = (
            f"{_id(chunk_id)} of {_id(document)} {plain(version, width=20)} is cited, "
            f"the case pins version {plain(wanted, width=20)}"
        )
        yield RuleFailure(
            "STALE_VERSION_CITED", "STALE_VERSION_CITED", "citations", None, None, proof
        )


def _wrong_values(answered: AnsweredCase, pack: RulePack) -> Iterator[RuleFailure]:
    if answered.mode != "answer" or not answered.text:
        return
    try:
        found: list[Contradicted] = list(contradicted_values(answered, pack.pinned))
    except MetricError as error:
        # A claim's pattern that takes too long: whether it is stated is unknown, and so is this.
        yield RuleFailure("WRONG_VERSION", "WRONG_VERSION", "text", None, None, _undecided(error))
        return
    for value in found:
        span = value.said.start, value.said.end
        yield RuleFailure("WRONG_VERSION", "WRONG_VERSION", "text", *span, value.proof)


def _forbidden_claims(answered: AnsweredCase, _: RulePack) -> Iterator[RuleFailure]:
    name = "FORBIDDEN_CLAIM"
    for claim in answered.case.case.forbidden_claims:
        try:
            span = find_forbidden(claim, answered.text or "")
        except MetricError as error:
            yield RuleFailure(name, name, "text", None, None, _undecided(error))
            continue
        if span is not None:
            proof = (
                f"“{_quote(answered, span)}” states what it must not: {plain(claim.text, width=80)}"
            )
            yield RuleFailure(name, name, "text", *span, proof)


def _done_actions(answered: AnsweredCase, pack: RulePack) -> Iterator[RuleFailure]:
    for action in answered.actions or ():
        if not any(fnmatchcase(action, pattern) for pattern in pack.read_actions):
            proof = f"the reply did {plain(action, width=60)!r}, which nobody confirmed"
            yield RuleFailure("UNSAFE_ACTION", "UNSAFE_ACTION", "actions", None, None, proof)


def _without_evidence(answered: AnsweredCase, _: RulePack) -> Iterator[RuleFailure]:
    case = answered.case
    if answered.mode != "answer" or case.case.mode != "answer":
        return
    if not (answered.text or "").strip():
        yield RuleFailure(
            "CLAIM_MISSING", "CLAIM_MISSING", "text", None, None, "the answer is empty"
        )
    elif case.groups and answered.citations is not None and not answered.citations:
        proof = f"the case requires evidence of {len(case.groups)} groups, the answer cites none"
        yield RuleFailure(
            "EVIDENCE_NOT_CITED", "EVIDENCE_NOT_CITED", "citations", None, None, proof
        )


def _pack_rules(answered: AnsweredCase, pack: RulePack) -> Iterator[RuleFailure]:
    for rule in pack.rules:
        try:
            findings = list(check_rule(rule, answered))
        except MetricError as error:
            findings = [PackFinding(None, None, _undecided(error))]
        for found in findings:
            reason = REASON_OF_KIND[rule.kind]
            yield RuleFailure(rule.name, reason, "text", found.start, found.end, found.proof)


def _undecided(error: MetricError) -> str:
    return f"not decided: {error}"


def _quote(answered: AnsweredCase, span: tuple[int, int]) -> str:
    return plain((answered.text or "")[slice(*span)], width=80)


def _id(chunk_id: str) -> str:
    return plain(chunk_id, width=60)


_CHECKS = (
    _leaks,
    _forbidden_chunks,
    _unknown_citations,
    _stale_citations,
    _wrong_values,
    _forbidden_claims,
    _done_actions,
    _without_evidence,
    _pack_rules,
)
