"""Findings of answers that the saved answer contradicts: the second look, by other code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ragwb.measure.answered import AnsweredCase
from ragwb.triage.reasons import NOT_OBSERVED, UNCITED
from ragwb.triage.verdict import AnswerFinding, CaseVerdict

# What must be so, in words and as a test.
_Claim = tuple[str, Callable[[AnsweredCase], bool]]


def untrue_of_answer(verdict: CaseVerdict, answered: AnsweredCase) -> Iterator[tuple[str, str]]:
    """(reason, claim) of what a verdict says of an answer and is not so."""
    for finding in verdict.findings:
        yield from (
            (finding.reason, text) for text, holds in _CLAIMS[finding.reason] if not holds(answered)
        )
        if not _is_in_text(finding, answered.text or ""):
            yield finding.reason, f"at {finding.start}–{finding.end} of the text"
    if not verdict.findings:
        return
    if any(group.stage != "generation" for group in verdict.groups):
        yield verdict.reason, "an answer that is judged although evidence was lost before it"
    if not verdict.leaks and verdict.reason != verdict.findings[0].reason:
        yield verdict.reason, f"named after its answer, {verdict.findings[0].reason}"
    if answered.case.case.mode == "answer" and _lost(answered):
        yield verdict.reason, "all evidence stood before the answer"


def untrue_of_uncited(chunk_ids: Sequence[str], answered: AnsweredCase | None) -> Iterator[str]:
    """What is not so of a group of these chunks that is said to stand before an answer uncited."""
    if answered is None or answered.cited is None:
        yield "citations were observed"
        return
    if not set(answered.cited).isdisjoint(chunk_ids):
        yield "not cited"
    held = answered.results if answered.context is None else answered.context
    if set(held).isdisjoint(chunk_ids):
        yield "stands before the answer"


def _is_in_text(finding: AnswerFinding, text: str) -> bool:
    if finding.start is None or finding.end is None:
        return finding.start is None and finding.end is None
    return finding.where == "text" and 0 <= finding.start < finding.end <= len(text)


def _lost(answered: AnsweredCase) -> bool:
    held = set(answered.results if answered.context is None else answered.context)
    return any(held.isdisjoint(group.chunk_ids) for group in answered.case.groups)


def _wrong_mode(expected: str) -> tuple[_Claim, ...]:
    return (
        (f"{expected} is expected", lambda answered: answered.case.case.mode == expected),
        ("another mode is told", lambda answered: answered.mode not in (None, expected)),
    )


def _cites_outside(answered: AnsweredCase) -> bool:
    return not set(answered.cited or ()) <= set(answered.context or ())


def _cites_another_version(answered: AnsweredCase) -> bool:
    cited = (answered.chunks.get(chunk_id) for chunk_id in answered.cited or ())
    versions = {chunk.document_version for chunk in cited if chunk is not None}
    return bool(versions - {None, answered.case.case.required_version})


def _leaves_a_group(answered: AnsweredCase) -> bool:
    cited = set(answered.cited or ())
    return any(cited.isdisjoint(group.chunk_ids) for group in answered.case.groups)


_CLAIMS: dict[str, tuple[_Claim, ...]] = {
    "OVER_REFUSAL": _wrong_mode("answer"),
    "MISSED_REFUSAL": _wrong_mode("refuse"),
    "MISSED_CLARIFY": _wrong_mode("clarify"),
    "UNKNOWN_CITATION": (
        ("the context was observed", lambda answered: answered.context is not None),
        ("cites what is not in it", _cites_outside),
    ),
    "STALE_VERSION_CITED": (
        ("a version is pinned", lambda answered: answered.case.case.required_version is not None),
        ("cites another one", _cites_another_version),
    ),
    UNCITED: (
        ("answered", lambda answered: answered.mode == "answer"),
        ("a group that is not cited", _leaves_a_group),
    ),
    "UNSAFE_ACTION": (
        ("says or does anything", lambda answered: bool(answered.text or answered.actions)),
    ),
    "FORBIDDEN_CLAIM": (("says anything", lambda answered: bool(answered.text)),),
    "CLAIM_MISSING": (("answered", lambda answered: answered.mode not in ("refuse", "clarify")),),
    "UNSUPPORTED_CLAIM": (("says anything", lambda answered: bool(answered.text)),),
    NOT_OBSERVED: (("no mode is told", lambda answered: answered.mode is None),),
}
