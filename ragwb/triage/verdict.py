"""What triage says: of a group, of a case in one repeat, of a case over its repeats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ragwb.triage.reasons import GROUPS, Stage


@dataclass(frozen=True, slots=True)
class GroupVerdict:
    """Where a required group of a case was lost.

    Attributes:
        index: the group's place in its case, from 0.
        stage, reason: where and why it was lost.
        chunk_id: the chunk of the group that got furthest; None when the group has none.
        ranks: best position of any of its chunks at each observed stage, from 1, in pipeline
            order; None where the stage was observed and holds none of them.
        last_seen: the last stage where one of its chunks was seen, None when it was nowhere.
        first_missing: the first observed stage after that where none was, None when all hold one.
        proof: what the trace or `/explain` says, in a sentence.
        missing_field: with NOT_OBSERVED the field that would decide, else None.
    """

    index: int
    stage: Stage
    reason: str
    chunk_id: str | None
    ranks: Mapping[str, int | None]
    last_seen: str | None
    first_missing: str | None
    proof: str
    missing_field: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The JSON of a group, with the keys that scripts rely on."""
        return {
            "index": self.index,
            "stage": self.stage,
            "reason": self.reason,
            "ranks": dict(self.ranks),
        }


@dataclass(frozen=True, slots=True)
class Leak:
    """Evidence that must not be there and came back.

    Attributes:
        chunk_id: what came back.
        reason: a reason code of the stage `security`.
        where: results, context or citations.
        position: from 1, in that list.
        proof: what says that it must not be there, in a sentence.
    """

    chunk_id: str
    reason: str
    where: str
    position: int
    proof: str


@dataclass(frozen=True, slots=True)
class AnswerFinding:
    """What is wrong with an answer whose evidence stood before it.

    Attributes:
        reason: a reason code of the stage `generation`, or NOT_OBSERVED.
        where: mode, text, citations or actions.
        start, end: code points of the answer's text, None where it is no place in it.
        proof: what says so, in a sentence.
        missing_field: with NOT_OBSERVED the field that would decide, else None.
    """

    reason: str
    where: str
    start: int | None
    end: int | None
    proof: str
    missing_field: str | None = None


@dataclass(frozen=True, slots=True)
class CaseVerdict:
    """Why one case failed in one repeat.

    Attributes:
        stage, reason: `security` before all, else those of its earliest known group (of equals the
            lower index), else those of its answer; `unknown` only when nothing is known.
        groups: the lost groups, in their order; those that stood in the context and are not cited
            when that is the reason; else ().
        leaks: evidence that must not be there, the gravest first.
        findings: what is wrong with the answer, as it is named first; () when a group was lost
            before it, since the answer may have followed from that.
    """

    case_id: str
    repeat: int
    stage: Stage
    reason: str
    groups: tuple[GroupVerdict, ...]
    leaks: tuple[Leak, ...] = ()
    findings: tuple[AnswerFinding, ...] = ()

    @property
    def is_lost_before_answer(self) -> bool:
        """Whether retrieval made the case fail: evidence was lost, or came back and must not."""
        return bool(self.leaks) or any(group.stage != "generation" for group in self.groups)

    @property
    def group(self) -> str:
        """The group of stages that people read, such as fusion/rerank."""
        return GROUPS[self.stage]

    @property
    def proof(self) -> str:
        """The sentence that proves the case's stage and reason."""
        if self.leaks:
            return self.leaks[0].proof
        told = (g.proof for g in self.groups if (g.stage, g.reason) == (self.stage, self.reason))
        return next(told, None) or self.findings[0].proof

    def to_dict(self) -> dict[str, Any]:
        """The JSON of a case, with the keys that scripts rely on."""
        return {
            "case_id": self.case_id,
            "stage": self.stage,
            "reason": self.reason,
            "group": self.group,
            "groups": [group.to_dict() for group in self.groups],
        }


@dataclass(frozen=True, slots=True)
class TriagedCase:
    """A case over its repeats.

    Attributes:
        verdict: of the repeat that stands for the case: among those with a leak, else among those
            that failed, the first with the most frequent stage and reason (of equals the earliest
            stage).
        counts: number of repeats by (stage, reason), the most frequent first.
        n_repeats: repeats that answered.
        n_failed: those that failed.
    """

    verdict: CaseVerdict
    counts: Mapping[tuple[str, str], int]
    n_repeats: int
    n_failed: int

    @property
    def case_id(self) -> str:
        """The case's id."""
        return self.verdict.case_id

    @property
    def unstable(self) -> bool:
        """Whether the repeats differ: some passed, or they failed in different ways."""
        return self.n_failed < self.n_repeats or len(self.counts) > 1
