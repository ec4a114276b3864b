"""What an answer did wrong with evidence that stood before it: the stage after retrieval.

An answer is judged only where no required group was lost on the way, since what it says may follow
from that. A case that must be refused or clarified requires no group. Source: metrics.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from ragwb.golden.passages import NO_GROUPS, ResolvedCase
from ragwb.html import plain
from ragwb.measure.answer_figures import MODES, AnswerOutcome, answer_outcome
from ragwb.measure.answer_scores import AnswerScores
from ragwb.measure.answered import AnsweredCase
from ragwb.measure.rule_pack import load_pack
from ragwb.runs.answered import answered_cases
from ragwb.runs.traces import Pair, Traces
from ragwb.triage.reasons import GENERATION, NOT_OBSERVED, UNCITED
from ragwb.triage.verdict import AnswerFinding

_WRONG_MODE = {
    "answer": "OVER_REFUSAL",
    "refuse": "MISSED_REFUSAL",
    "clarify": "MISSED_CLARIFY",
}
# A hard rule without a code of its own here: what the case pins is said otherwise, not at all.
_CODE_OF_RULE = {"WRONG_VERSION": "CLAIM_MISSING"}
_DID = {"answer": "answered", "refuse": "refused", "clarify": "asked back"}
_TO_DO = {"refuse": "it must be refused", "clarify": "it must be asked back"}
_QUOTED = 60


def judge_answers(
    traces: Traces, scores: AnswerScores | None = None
) -> dict[Pair, tuple[AnswerFinding, ...]]:
    """What is wrong with each answer of a run, () where nothing is; {} for a run without answers.

    A case whose label drifted, that is retired, or that must be answered and names no evidence, is
    not judged and not among them.

    Args:
        traces: of a saved run.
        scores: of its answers; by default by the hard rules that come with ragwb and without
            verdicts, so that no claim is called unsupported.

    Raises:
        DataError: the default pack is broken.
    """
    if not any(_is_answered(traces, pair) for pair in traces):
        return {}
    outcomes = _outcomes(traces) if scores is None else scores.outcomes.values()
    return {
        outcome.answered.pair: answer_findings(outcome)
        for outcome in outcomes
        if _is_answered(traces, outcome.answered.pair) and is_judged(outcome.answered.case)
    }


def _outcomes(traces: Traces) -> Iterator[AnswerOutcome]:
    pack = load_pack()
    for answered in answered_cases(traces.run, traces):
        if answered.error is None:
            yield answer_outcome(answered, pack)


def answer_findings(outcome: AnswerOutcome) -> tuple[AnswerFinding, ...]:
    """What is wrong with one answer, in the order of `GENERATION`, what is not observed last."""
    found = [*_wrong_mode(outcome), *_broken_rules(outcome), *_unsupported(outcome)]
    if missing := list(_missing_claims(outcome)):
        found += [*missing, *_unused_evidence(outcome)]
    order = (*GENERATION, NOT_OBSERVED)
    return tuple(sorted(found, key=lambda finding: order.index(finding.reason)))


def _is_answered(traces: Traces, pair: Pair) -> bool:
    return "answer" in traces.result(pair)["observed"]


def is_judged(resolved: ResolvedCase) -> bool:
    """Whether the answers to a case are judged: its labels hold, and it says what is expected."""
    if resolved.case.mode == "answer":
        return resolved.excluded is None
    return resolved.excluded in (NO_GROUPS, f"mode {resolved.case.mode}")


def _wrong_mode(outcome: AnswerOutcome) -> Iterator[AnswerFinding]:
    answered = outcome.answered
    expected, observed = answered.case.case.mode, answered.mode
    if observed not in MODES:
        said = "no mode is told" if observed is None else f"the mode is {plain(observed, width=40)}"
        proof = f"{said}, which is none of {', '.join(MODES)}"
        yield AnswerFinding(NOT_OBSERVED, "mode", None, None, proof, "answer.mode")
    elif observed != expected:
        reason = f" ({plain(answered.refusal_reason, width=40)})" if answered.refusal_reason else ""
        proof = f"{_DID[observed]}{reason}, {_expected(answered)}; it says {_start(answered)}"
        yield AnswerFinding(_WRONG_MODE[expected], "mode", None, None, proof)


def _expected(answered: AnsweredCase) -> str:
    """What should have been done, and the evidence for that."""
    case = answered.case.case
    if case.mode == "answer":
        n, where = len(answered.case.groups), "results" if answered.context is None else "context"
        held = f"all {n} groups of its evidence" if n > 1 else "its evidence"
        return f"although {held} stood in the {where}"
    because = f" ({', '.join(case.refusal_trigger)})" if case.refusal_trigger else ""
    return f"and {_TO_DO[case.mode]}{because}{_conflict(answered)}"


def _conflict(answered: AnsweredCase) -> str:
    """How many of the passages that contradict one another were there to be compared."""
    if "EVIDENCE_CONFLICT" not in answered.case.case.refusal_trigger or answered.context is None:
        return ""
    context, groups = set(answered.context), answered.case.groups
    n = sum(not context.isdisjoint(group.chunk_ids) for group in groups)
    return f", {n} of {len(groups)} passages in conflict stood in the context" if groups else ""


def _start(answered: AnsweredCase) -> str:
    text = (answered.text or "").strip()
    return f"“{plain(text, width=_QUOTED)}”" if text else "nothing"


def _broken_rules(outcome: AnswerOutcome) -> Iterator[AnswerFinding]:
    """The hard rules that an answer itself breaks; leaks are no matter of it."""
    for failure in outcome.failures:
        reason = _CODE_OF_RULE.get(failure.reason, failure.reason)
        if reason in GENERATION:
            yield AnswerFinding(reason, failure.where, failure.start, failure.end, failure.proof)


def _missing_claims(outcome: AnswerOutcome) -> Iterator[AnswerFinding]:
    """Required claims that an answer does not state; who refused stated none, and that is told."""
    answered = outcome.answered
    if answered.case.case.mode != "answer" or answered.mode in ("refuse", "clarify"):
        return
    for claim in outcome.claims:
        if claim.kind == "required" and claim.stated is False:
            proof = f"not stated: “{plain(claim.claim, width=_QUOTED)}”; it says {_start(answered)}"
            yield AnswerFinding("CLAIM_MISSING", "text", None, None, proof)


def _unused_evidence(outcome: AnswerOutcome) -> Iterator[AnswerFinding]:
    """With a claim missing the groups that an answer does not cite: what it made no use of."""
    answered = outcome.answered
    left = [hop for hop in outcome.hops if hop.cited is False]
    # Who cites nothing at all breaks a hard rule, which is told already.
    if not left or not answered.cited or answered.mode != "answer":
        return
    names = ", ".join(plain(hop.hop or f"group {hop.index}", width=40) for hop in left)
    proof = f"{len(left)} of {len(outcome.hops)} groups of its evidence are not cited: {names}"
    yield AnswerFinding(UNCITED, "citations", None, None, proof)


def _unsupported(outcome: AnswerOutcome) -> Iterator[AnswerFinding]:
    rate = outcome.figures["unsupported_rate"]
    if rate:
        proof = f"{rate:.0%} of its claims are supported by no chunk of the context, as judged"
        yield AnswerFinding("UNSUPPORTED_CLAIM", "text", None, None, proof)
