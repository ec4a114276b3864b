"""One case as two runs left it, gathered for a card: each chunk's ranks of both in one line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Literal

from ragwb.golden.passages import ResolvedGroup
from ragwb.runs.results import LATER_STAGES
from ragwb.view.case_view import CaseView, Role

if TYPE_CHECKING:
    from ragwb.measure.answer_figures import AnswerOutcome

Change = Literal["fixed", "broken", "still_failing", "still_passing"]
CHANGE_WORDS: Mapping[str, str] = {
    "fixed": "✔ fixed",
    "broken": "✖ broken",
    "still_failing": "still failing",
    "still_passing": "still passing",
}
UNSEEN = "?"


@dataclass(frozen=True)
class Side:
    """A case as one of the two runs left it.

    Attributes:
        name: the run's id, or the name that it was given.
        view: the case in the repeat that is shown.
        repeats: how many of how many repeats failed, in words; empty with one repeat.
        outcome: what was found in that repeat's answer; None when none was asked for.
    """

    name: str
    view: CaseView
    repeats: str = ""
    outcome: AnswerOutcome | None = None


@dataclass(frozen=True)
class ComparedCase:
    """What is needed to show what became of one case.

    Attributes:
        change: fixed, broken, still_failing or still_passing.
        unstable: whether its repeats differ in either run.
        marks: why it weighs more than others, such as high risk; () when it does not.
        figures: values of the baseline and the candidate by figure, as words.
        baseline, candidate: both sides.
    """

    case_id: str
    question: str
    change: Change
    unstable: bool
    marks: tuple[str, ...]
    figures: Mapping[str, tuple[str, str]]
    baseline: Side
    candidate: Side

    @property
    def sides(self) -> tuple[Side, Side]:
        """The baseline, then the candidate."""
        return self.baseline, self.candidate

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages that either run shows, in pipeline order, the channels first."""
        names = dict.fromkeys(stage for side in self.sides for stage in side.view.stages)
        later = [stage for stage in LATER_STAGES if stage in names]
        return (*(name for name in names if name not in LATER_STAGES), *later)


@dataclass(frozen=True, slots=True)
class RankLine:
    """One chunk in both runs, or two chunks that stand for the same evidence.

    Attributes:
        name: what it is to the case: required 1, forbidden, other.
        role: required, forbidden or other.
        chunk_ids: the chunk of the baseline and that of the candidate; None where there is none.
        is_good: by side whether it is as it must be; None where that does not matter.
    """

    name: str
    role: Role
    chunk_ids: tuple[str | None, str | None]
    is_good: tuple[bool | None, bool | None]


def rank_lines(case: ComparedCase) -> list[RankLine]:
    """The lines of a case: its evidence, what must not be there, then the others of the first K.

    A chunk that both runs know has one line. Under another chunking the ids differ: then the
    chunks of the same evidence share one.
    """
    before, after = (side.view for side in case.sides)
    lines = list(_required(before, after))
    forbidden = dict.fromkeys((*before.forbidden, *after.forbidden))
    for chunk_id in forbidden:
        away = chunk_id not in before.returned, chunk_id not in after.returned
        lines.append(RankLine("forbidden", "forbidden", (chunk_id, chunk_id), away))
    shown = {chunk_id for line in lines for chunk_id in line.chunk_ids}
    others = sorted(_first_k(before, after).items(), key=lambda item: item[1])
    lines += [
        RankLine("other", "other", (chunk_id, chunk_id), (None, None))
        for chunk_id, _ in others
        if chunk_id not in shown
    ]
    return lines


def _required(before: CaseView, after: CaseView) -> Iterator[RankLine]:
    for old, new in zip_longest(before.trace.case.groups, after.trace.case.groups):
        group = new or old
        name = f"required {group.index + 1}" + (f": {group.hop}" if group.hop else "")
        for pair in _paired_ids(old, new):
            states = _found(before, old, pair[0]), _found(after, new, pair[1])
            yield RankLine(name, "required", pair, states)


def _paired_ids(
    old: ResolvedGroup | None, new: ResolvedGroup | None
) -> list[tuple[str | None, str | None]]:
    """The chunks of a group: those of both runs first, then the others side by side."""
    left = old.chunk_ids if old else ()
    right = new.chunk_ids if new else ()
    same = [chunk_id for chunk_id in left if chunk_id in right]
    rest = zip_longest(
        [chunk_id for chunk_id in left if chunk_id not in same],
        [chunk_id for chunk_id in right if chunk_id not in same],
    )
    pairs: list[tuple[str | None, str | None]] = [(chunk_id, chunk_id) for chunk_id in same]
    return [*pairs, *rest] or [(None, None)]


def _found(view: CaseView, group: ResolvedGroup | None, chunk_id: str | None) -> bool | None:
    """Whether a required chunk is found; None for an alternative that is not needed."""
    if group is None:
        return None
    if view.is_lost(group):
        return False
    return True if chunk_id in view.returned else None


def _first_k(*views: CaseView) -> dict[str, int]:
    """The best rank of each chunk in the first K of any side's results."""
    best: dict[str, int] = {}
    for view in views:
        ranks = view.ranks.get("results", {})
        for chunk_id in view.returned:
            best[chunk_id] = min(best.get(chunk_id, ranks[chunk_id]), ranks[chunk_id])
    return best


def rank_step(case: ComparedCase, line: RankLine, stage: str) -> tuple[str, str]:
    """The ranks of a line at a stage in both runs: – not there, ? not observed."""
    pairs = zip(case.sides, line.chunk_ids, strict=True)
    before, after = (_rank(side.view, stage, chunk_id) for side, chunk_id in pairs)
    return before, after


def _rank(view: CaseView, stage: str, chunk_id: str | None) -> str:
    if stage not in view.ranks:
        return UNSEEN
    rank = None if chunk_id is None else view.ranks[stage].get(chunk_id)
    return "–" if rank is None else str(rank)


def step_words(step: Sequence[str]) -> str:
    """Two values as one when they are equal, else the one and then the other."""
    before, after = step
    return before if before == after else f"{before} → {after}"
