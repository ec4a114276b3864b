"""How right triage is: what was planted in a service against what triage names.

A pair is a case that was right in the sound service and is wrong in the same one with a fault. What
is wrong is told here from the run alone, not by the triage that is under test: of an answer by its
figures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ragwb.measure.answer_figures import answer_outcome
from ragwb.measure.rule_pack import load_pack
from ragwb.runs.answered import answered_cases
from ragwb.runs.traces import Trace, Traces
from ragwb.triage.contradictions import Contradiction, contradictions
from ragwb.triage.generation import is_judged
from ragwb.triage.reasons import NEEDS_JUDGE, NOT_OBSERVED, REASONS
from ragwb.triage.result import Triage

MIN_PAIRS = 300
MIN_PAIRS_PER_REASON = 10
# What is named of a case that triage takes for right.
PASSED = "PASSED"

# Whether a chunk of this document and version must never come back.
IsLeaked = Callable[[str | None, str | None], bool]


@dataclass(frozen=True, slots=True)
class Drilled:
    """One fault, with the triage of the runs without and with it.

    Attributes:
        fault: its name.
        reason: the reason code that is planted.
        cases: ids of the cases in its scope; others may break from its side effects.
        is_leaked: the documents that it lets out, None when it lets none out.
    """

    fault: str
    reason: str
    cases: Collection[str]
    is_leaked: IsLeaked | None
    sound: Triage
    broken: Triage


@dataclass(frozen=True, slots=True)
class Pair:
    """A case that a fault broke: the reason code that was planted, and the one that was named."""

    fault: str
    case_id: str
    planted: str
    named: str
    proof: str

    @property
    def is_stage_right(self) -> bool:
        """Whether the stage named is that of the planted reason."""
        return _stage(self.planted) == _stage(self.named)

    @property
    def is_right(self) -> bool:
        """Whether the reason named is the planted one."""
        return self.planted == self.named

    def to_dict(self) -> dict[str, Any]:
        """The pair with both stages, for JSON and CSV."""
        return {
            "fault": self.fault,
            "case_id": self.case_id,
            "planted_stage": _stage(self.planted),
            "planted": self.planted,
            "named_stage": _stage(self.named),
            "named": self.named,
            "proof": self.proof,
        }


@dataclass(frozen=True, slots=True)
class FaultCount:
    """What became of the cases of one fault.

    Attributes:
        n_cases: those in its scope.
        n_sound: of them right without it.
        n_pairs: of these wrong with it.
        n_right: of these named as planted.
        n_errors: calls that failed for good in the two runs.
    """

    fault: str
    reason: str
    n_cases: int
    n_sound: int
    n_pairs: int
    n_right: int
    n_errors: int


@dataclass(frozen=True, slots=True)
class DrillReport:
    """What came of a drill.

    Attributes:
        pairs: by fault, in the order of the golden set.
        side_effects: cases outside a fault's scope that broke with it; no pairs, since nothing was
            planted for them, and named here so that none is lost.
        contradictions: what triage named in any of the runs although the trace says otherwise.
        faults: a count a fault.
    """

    pairs: tuple[Pair, ...]
    side_effects: tuple[Pair, ...]
    contradictions: tuple[Contradiction, ...]
    faults: tuple[FaultCount, ...]

    @property
    def stage_accuracy(self) -> float | None:
        """Share of the pairs with the right stage, 0..1; None without pairs."""
        return _share(pair.is_stage_right for pair in self.pairs)

    @property
    def reason_accuracy(self) -> float | None:
        """Share of the pairs with the right reason, 0..1; None without pairs."""
        return _share(pair.is_right for pair in self.pairs)

    @property
    def mismatches(self) -> list[Pair]:
        """The pairs whose reason is another one than was planted."""
        return [pair for pair in self.pairs if not pair.is_right]

    def by_reason(self) -> list[dict[str, Any]]:
        """The confusion table, a row a reason code: stage, reason, n, named {reason: n}."""
        rows = []
        for code in planted_reasons():
            named = Counter(pair.named for pair in self.pairs if pair.planted == code)
            row = {"stage": _stage(code), "reason": code, "n": named.total()}
            rows.append({**row, "named": dict(named.most_common())})
        return rows

    def shortcomings(self, *, min_stage: float, min_reason: float) -> list[str]:
        """Why the drill fails, a line each; [] when it passes.

        Args:
            min_stage: least share of pairs with the right stage, 0..1.
            min_reason: least share of pairs with the right reason, 0..1.
        """
        n_pairs, n_errors = len(self.pairs), sum(count.n_errors for count in self.faults)
        found = [f"{n_pairs} pairs, at least {MIN_PAIRS} are needed"] if n_pairs < MIN_PAIRS else []
        found += [
            f"{row['reason']}: {row['n']} pairs of {MIN_PAIRS_PER_REASON} needed"
            for row in self.by_reason()
            if row["n"] < MIN_PAIRS_PER_REASON
        ]
        shares = (
            ("stage", self.stage_accuracy, min_stage),
            ("reason", self.reason_accuracy, min_reason),
        )
        for what, share, limit in shares:
            if share is not None and share < limit:
                found.append(f"{what} right in {share:.1%}, at least {limit:.1%} are wanted")
        if self.contradictions:
            found.append(f"{len(self.contradictions)} findings that the trace contradicts")
        if n_errors:
            found.append(f"{n_errors} calls failed, which leaves cases out")
        return found

    def to_dict(self) -> dict[str, Any]:
        """The JSON of `ragwb drill`."""
        return {
            "n_pairs": len(self.pairs),
            "stage_accuracy": self.stage_accuracy,
            "reason_accuracy": self.reason_accuracy,
            "by_reason": self.by_reason(),
            "mismatches": [pair.to_dict() for pair in self.mismatches],
            "contradictions": [asdict(found) for found in self.contradictions],
            "side_effects": [pair.to_dict() for pair in self.side_effects],
            "faults": [asdict(count) for count in self.faults],
        }


def planted_reasons() -> list[str]:
    """The reason codes that drills have to plant: all that code alone can name."""
    return [code for code in REASONS if code != NOT_OBSERVED and code not in NEEDS_JUDGE]


def report(drilled: Iterable[Drilled]) -> DrillReport:
    """What came of planting faults, one after the other; each triage is looked at and let go."""
    pairs: list[Pair] = []
    aside: list[Pair] = []
    found: dict[Contradiction, None] = {}
    counts: list[FaultCount] = []
    for drill in drilled:
        sound, broken = _judged(drill.sound, None), _judged(drill.broken, drill.is_leaked)
        right_before = {case_id for case_id, is_wrong in sound.items() if not is_wrong}
        broke = [name for name, is_wrong in broken.items() if is_wrong and name in right_before]
        inside = [_pair(drill, case_id) for case_id in broke if case_id in drill.cases]
        pairs += inside
        aside += [_pair(drill, case_id) for case_id in broke if case_id not in drill.cases]
        for triage, judged in ((drill.sound, sound), (drill.broken, broken)):
            found.update(dict.fromkeys((*contradictions(triage), *_misjudged(triage, judged))))
        counts.append(
            FaultCount(
                fault=drill.fault,
                reason=drill.reason,
                n_cases=len(drill.cases),
                n_sound=len(right_before.intersection(drill.cases)),
                n_pairs=len(inside),
                n_right=sum(pair.is_right for pair in inside),
                n_errors=drill.sound.n_errors + drill.broken.n_errors,
            )
        )
    return DrillReport(tuple(pairs), tuple(aside), tuple(found), tuple(counts))


def _judged(triage: Triage, is_leaked: IsLeaked | None) -> dict[str, bool]:
    """By id of every case that was answered whether what came back is wrong."""
    wrong = set(_wrongly_answered(triage))
    return {
        trace.case_id: trace.case_id in wrong
        or _is_wrong(triage.traces, trace, triage.k, is_leaked)
        for trace in triage.traces.values()
    }


def _wrongly_answered(triage: Triage) -> Iterator[str]:
    """Ids of the cases whose answer is not correct by its figures; of a mere retrieval none."""
    pack = load_pack()
    for answered in answered_cases(triage.run, triage.traces):
        if answered.mode is None or not is_judged(answered.case):
            continue
        if answer_outcome(answered, pack).figures["correct_rate"] == 0:
            yield answered.case_id


def _misjudged(triage: Triage, judged: Mapping[str, bool]) -> Iterator[Contradiction]:
    """Cases that triage takes for failed although nothing is wrong, or the other way round."""
    named = {case.case_id: case.verdict.reason for case in triage.cases}
    for case_id, is_wrong in judged.items():
        if is_wrong != (case_id in named):
            claim = "nothing is wrong" if is_wrong else "something is wrong"
            yield Contradiction(triage.run.run_id, case_id, named.get(case_id, PASSED), claim)


def _is_wrong(traces: Traces, trace: Trace, k: int, is_leaked: IsLeaked | None) -> bool:
    """Whether evidence is missing from the results or the context, or some must not be there."""
    top = set(trace.stages["results"].chunk_ids[:k])
    kept = top & set(trace.stages["context"].chunk_ids) if "context" in trace.stages else top
    needed = trace.case.groups if trace.case.excluded is None else ()
    if any(kept.isdisjoint(group.chunk_ids) for group in needed):
        return True
    if not top.isdisjoint(trace.case.forbidden_chunk_ids):
        return True
    chunks = [traces.chunk(chunk_id) for chunk_id in top] if is_leaked else []
    return is_leaked is not None and any(
        is_leaked(chunk.document_id, chunk.document_version) for chunk in chunks
    )


def _pair(drill: Drilled, case_id: str) -> Pair:
    found = {case.case_id: case.verdict for case in drill.broken.cases}.get(case_id)
    named, proof = (PASSED, "no finding") if found is None else (found.reason, found.proof)
    return Pair(drill.fault, case_id, drill.reason, named, proof)


def _stage(code: str) -> str:
    return REASONS[code].stage if code in REASONS else code.lower()


def _share(flags: Iterable[bool]) -> float | None:
    values = list(flags)
    return sum(values) / len(values) if values else None
