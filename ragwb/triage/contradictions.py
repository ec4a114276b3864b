"""Findings that the trace contradicts: a second look at every verdict, by other code.

Each reason code claims something that the trace or `/explain` must bear out. How the verdict came
about is not asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ragwb.golden.passages import ResolvedGroup
from ragwb.measure.answered import AnsweredCase
from ragwb.measure.leaks import LEAKS
from ragwb.records import Explanation
from ragwb.runs.answered import answered_cases
from ragwb.runs.traces import Pair, Trace, Traces
from ragwb.triage.answer_contradictions import untrue_of_answer, untrue_of_uncited
from ragwb.triage.reasons import FILTER_REASONS, NOT_OBSERVED, REASONS, UNCITED
from ragwb.triage.result import Triage
from ragwb.triage.verdict import AnswerFinding, CaseVerdict, GroupVerdict, Leak

FORBIDDEN = "FORBIDDEN_RETRIEVED"


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A reason that triage names for a case, and what it claims that is not so."""

    run_id: str
    case_id: str
    reason: str
    claim: str


@dataclass(frozen=True, slots=True)
class _Facts:
    """What the trace and `/explain` say of one group's chunks.

    Attributes:
        group: the group.
        seen: by observed stage the positions of its chunks, from 1.
        said: what `/explain` said of the chunk that the verdict names, None when nothing.
        others: what it said of all of them.
        filtered: why the filters of the trace kept that chunk out.
    """

    traces: Traces
    trace: Trace
    group: ResolvedGroup
    seen: Mapping[str, Sequence[int]]
    said: Explanation | None
    others: Sequence[Explanation]
    filtered: frozenset[str]
    k: int

    @property
    def is_nowhere(self) -> bool:
        """Whether no list holds one of them."""
        return not any(self.seen.values())

    @property
    def is_in_channel(self) -> bool:
        """Whether a channel holds one of them."""
        return any(self.seen.get(name) for name in self.trace.channels)

    @property
    def is_in_top(self) -> bool:
        """Whether one of them is among the first K results."""
        return any(position <= self.k for position in self.seen.get("results", ()))

    @property
    def is_below_top(self) -> bool:
        """Whether the list that the results are cut from holds one of them, and no result does."""
        return bool(self.seen.get(self._final)) and not self.is_in_top

    @property
    def is_crowded_out(self) -> bool:
        """Whether its text would be within K if every text stood there once."""
        chunk_ids = self.trace.stages[self._final].chunk_ids
        texts = dict.fromkeys(self.traces.text_key(chunk_id) for chunk_id in chunk_ids)
        own = {self.traces.text_key(chunk_id) for chunk_id in self.group.chunk_ids}
        return not own.isdisjoint([*texts][: self.k])

    @property
    def _final(self) -> str:
        return next(name for name in ("reranked", "fused", "results") if name in self.seen)

    @property
    def is_beyond_reach(self) -> bool:
        """Whether `/explain` calls none of them visible."""
        return not any(said.visible for said in self.others)

    @property
    def is_within_candidates(self) -> bool:
        """Whether `/explain` ranks the chunk within candidate K of a channel, for the question."""
        candidate_k = self.traces.run.manifest.candidate_k
        ranks = (self.said.ranks or {}) if self.said is not None else {}
        held = [rank for name in self.trace.channels if (rank := ranks.get(name)) is not None]
        return candidate_k is not None and any(rank <= candidate_k for rank in held)

    def is_gone_from(self, stage: str) -> bool:
        """Whether a stage was observed and holds none of them."""
        return stage in self.seen and not self.seen[stage]


# What must be so, in words and as a test.
_Claim = tuple[str, Callable[[_Facts], bool]]

_NOWHERE: _Claim = ("in no list", lambda facts: facts.is_nowhere)
_BEYOND_REACH: _Claim = ("none is visible", lambda facts: facts.is_beyond_reach)
_VISIBLE: _Claim = ("visible", lambda facts: facts.said is not None and facts.said.visible)


def _in_state(state: str) -> _Claim:
    return f"state {state}", lambda facts: facts.said is not None and facts.said.state == state


def _kept_out_by(reason: str) -> _Claim:
    def holds(facts: _Facts) -> bool:
        told = set(facts.filtered)
        if facts.said is not None:
            told.update(facts.said.filtered_by or ())
        return reason in told

    return f"kept out by {reason}", holds


_CLAIMS: dict[str, tuple[_Claim, ...]] = {
    "KNOWLEDGE_MISSING": (
        _NOWHERE,
        ("all missing", lambda facts: all(said.state == "missing" for said in facts.others)),
        ("moved nowhere", lambda facts: not any(said.moved_to for said in facts.others)),
        ("seen by no filter", lambda facts: not facts.filtered),
    ),
    "KNOWLEDGE_UNPUBLISHED": (_NOWHERE, _BEYOND_REACH, _in_state("unpublished")),
    "CHUNK_ID_DRIFTED": (
        _NOWHERE,
        _BEYOND_REACH,
        _in_state("missing"),
        ("a new id", lambda facts: facts.said is not None and bool(facts.said.moved_to)),
    ),
    "CHUNK_SPLIT": (),
    **{
        code: (_NOWHERE, _BEYOND_REACH, _kept_out_by(reason))
        for reason, code in FILTER_REASONS.items()
    },
    "STATUS_FILTERED": (
        _NOWHERE,
        _BEYOND_REACH,
        _kept_out_by("STATUS"),
        ("not unpublished", lambda facts: not _in_state("unpublished")[1](facts)),
    ),
    "BELOW_THRESHOLD": (_NOWHERE, _VISIBLE, _kept_out_by("THRESHOLD")),
    "NOT_IN_CANDIDATES": (
        _NOWHERE,
        _VISIBLE,
        ("seen by no filter", lambda facts: not facts.filtered),
        ("ranked beyond candidate K", lambda facts: not facts.is_within_candidates),
    ),
    "REWRITE_DRIFT": (
        _NOWHERE,
        _VISIBLE,
        ("a rewritten question", lambda facts: facts.trace.rewritten is not None),
        ("ranked within candidate K", lambda facts: facts.is_within_candidates),
    ),
    "FUSION_DROPPED": (
        ("in a channel", lambda facts: facts.is_in_channel),
        ("not in the fused list", lambda facts: facts.is_gone_from("fused")),
    ),
    "RERANK_DROPPED": (
        ("in the fused list", lambda facts: bool(facts.seen.get("fused"))),
        ("not in the reranked list", lambda facts: facts.is_gone_from("reranked")),
    ),
    "RANKED_BELOW_K": (
        ("in the final list, not in the results", lambda facts: facts.is_below_top),
        ("its text beyond the first K", lambda facts: not facts.is_crowded_out),
    ),
    "CROWDED_OUT_BY_DUPLICATES": (
        ("in the final list, not in the results", lambda facts: facts.is_below_top),
        ("its text among the first K", lambda facts: facts.is_crowded_out),
    ),
    "CONTEXT_TRUNCATED": (
        ("in the results", lambda facts: facts.is_in_top),
        ("a context without it", lambda facts: facts.is_gone_from("context")),
    ),
    NOT_OBSERVED: (),
}


def contradictions(triage: Triage) -> Iterator[Contradiction]:
    """Every finding of a triage that its run's trace does not bear out, in the order of cases."""
    answers = _answers(triage)
    for case in triage.cases:
        verdict = case.verdict
        answered = answers.get((case.case_id, verdict.repeat))
        for reason, claim in _untrue(verdict, triage.traces, triage.k, answered):
            yield Contradiction(triage.run.run_id, case.case_id, reason, claim)


def _answers(triage: Triage) -> dict[Pair, AnsweredCase]:
    """The saved answers by (case id, repeat), where any is said to be wrong."""
    if not any(case.verdict.findings for case in triage.cases):
        return {}
    return {one.pair: one for one in answered_cases(triage.run, triage.traces)}


def _untrue(
    verdict: CaseVerdict, traces: Traces, k: int, answered: AnsweredCase | None
) -> Iterator[tuple[str, str]]:
    """(reason, claim) of what a verdict claims and is not so."""
    trace = traces[verdict.case_id, verdict.repeat]
    groups = {group.index: group for group in trace.case.groups}
    for lost in verdict.groups:
        facts = _facts(traces, trace, groups[lost.index], lost, k)
        yield from ((lost.reason, text) for text in _untrue_of_group(lost, facts, answered))
    for leak in verdict.leaks:
        if not _is_borne_out(leak, trace, k):
            yield leak.reason, f"not allowed, at {leak.position} of the {leak.where}"
    if answered is not None:
        yield from untrue_of_answer(verdict, answered)
    yield from _misnamed(verdict)


def _untrue_of_group(
    lost: GroupVerdict, facts: _Facts, answered: AnsweredCase | None
) -> Iterator[str]:
    if lost.reason == UNCITED:
        yield from untrue_of_uncited(facts.group.chunk_ids, answered)
    elif lost.reason not in _CLAIMS:
        yield "a reason for which evidence is lost"
    else:
        yield from (text for text, holds in _CLAIMS[lost.reason] if not holds(facts))
        if facts.group.split != (lost.reason == "CHUNK_SPLIT"):
            yield "CHUNK_SPLIT where, and only where, a passage is split"
    yield from _wrong_ranks(lost, facts)


def _misnamed(verdict: CaseVerdict) -> Iterator[tuple[str, str]]:
    """A stage and reason that nothing of what was found bears."""
    found: Sequence[GroupVerdict | Leak | AnswerFinding]
    found = (*verdict.groups, *verdict.leaks, *verdict.findings)
    reasons = {one.reason for one in found}
    if verdict.reason not in reasons or verdict.stage != REASONS[verdict.reason].stage:
        yield verdict.reason, f"one of {', '.join(sorted(reasons))}"
    if bool(verdict.leaks) != (verdict.stage == "security"):
        yield verdict.reason, "security before all, and only with a leak"


def _facts(
    traces: Traces, trace: Trace, group: ResolvedGroup, lost: GroupVerdict, k: int
) -> _Facts:
    named = () if lost.chunk_id is None else (lost.chunk_id,)
    ids = frozenset(group.chunk_ids or named)
    return _Facts(
        traces=traces,
        trace=trace,
        group=group,
        seen={
            stage: [place for place, chunk_id in enumerate(held.chunk_ids, 1) if chunk_id in ids]
            for stage, held in trace.stages.items()
        },
        said=trace.explanations.get(lost.chunk_id or ""),
        others=[said for chunk_id, said in trace.explanations.items() if chunk_id in ids],
        filtered=frozenset(
            entry.reason for entry in trace.filtered or () if entry.chunk_id == lost.chunk_id
        ),
        k=k,
    )


def _wrong_ranks(lost: GroupVerdict, facts: _Facts) -> Iterator[str]:
    """Ranks of a group that are not those of the trace."""
    for stage, held in facts.seen.items():
        rank = min(held, default=None)
        if lost.ranks.get(stage) != rank:
            yield f"rank {lost.ranks.get(stage)} of {stage}, which is {rank}"
    if lost.last_seen is not None and not facts.seen[lost.last_seen]:
        yield f"last seen in {lost.last_seen}"
    if lost.first_missing is not None and any(
        position <= facts.k or lost.first_missing != "results"
        for position in facts.seen[lost.first_missing]
    ):
        yield f"missing from {lost.first_missing}"


def _is_borne_out(leak: Leak, trace: Trace, k: int) -> bool:
    """Whether a chunk stands where it is said to leak, and must not be there."""
    if leak.where in trace.stages:
        held = trace.stages[leak.where].chunk_ids[: k if leak.where == "results" else None]
        if leak.chunk_id not in held or held[leak.position - 1] != leak.chunk_id:
            return False
    if leak.reason == FORBIDDEN:
        return leak.chunk_id in trace.case.forbidden_chunk_ids
    said = trace.explanations.get(leak.chunk_id)
    if said is None or said.visible:
        return False
    told = {LEAKS[reason] for reason in said.filtered_by or () if reason in LEAKS}
    return leak.reason in told or not told
