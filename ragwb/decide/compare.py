"""Two runs side by side: pairs, what changed, what chance would do, what may be credited."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ragwb.decide.comparison import Comparison
from ragwb.decide.conditions import conditions
from ragwb.decide.deltas import timed_alike
from ragwb.decide.outcomes import Outcomes, outcomes_of
from ragwb.decide.pairing import pair
from ragwb.decide.patterns import find_patterns
from ragwb.errors import MetricError, UsageError
from ragwb.html import plain
from ragwb.measure.answered import JudgedAnswer
from ragwb.measure.rule_pack import RulePack
from ragwb.runs.kinds import TIMED_WORDS, Kind, kind_of
from ragwb.runs.store import Run, load_run

if TYPE_CHECKING:
    from ragwb.settings import Settings

Pair = tuple[str, int]
Judged = Mapping[Pair, JudgedAnswer]


def compare(
    baseline: Run | str | Path,
    candidate: Run | str | Path,
    *,
    k: int | None = None,
    verdicts: tuple[Judged | None, Judged | None] = (None, None),
    rules: RulePack | str | Path | None = None,
    settings: Settings | None = None,
) -> Comparison:
    """Compare two saved runs case by case.

    Two runs of answers are compared by their answers, any other two by what was retrieved.

    Args:
        baseline: a run, or what `load_run` takes: an id, a prefix, a path, a baseline's name.
        candidate: the same.
        k: the cut of the results, 1 to the top K of either; by default the smaller one.
        verdicts: what a judge or a person said of the answers of each, by (case id, repeat).
        rules: the hard rules for answers; by default those that come with ragwb.
        settings: where the runs are; default the settings in force.

    Raises:
        MetricError: K is outside 1 to the smaller top K.
        RunError: no such run, one that is not finished, a missing file, or a wrong hash.
        UsageError: the two have no case in common.
        DataError: a table of a run, or the rules, are broken.
    """
    before, after = _opened(baseline, settings), _opened(candidate, settings)
    k = _common_k(before, after, k)
    kinds = kind_of(before), kind_of(after)
    sides = [
        # A run of which every call failed may not tell what it asked for: then as the other one.
        outcomes_of(run, k=k, kind=own or other, verdicts=judged, rules=rules)
        for run, own, other, judged in zip(
            (before, after), kinds, reversed(kinds), verdicts, strict=True
        )
    ]
    return compare_outcomes(sides[0], sides[1])


def compare_outcomes(baseline: Outcomes, candidate: Outcomes) -> Comparison:
    """Compare two sides that are read already, or were imported.

    Raises:
        MetricError: they are cut at different K.
        UsageError: they have no case in common, or measure different things.
    """
    found = paired_outcomes(baseline, candidate)
    return found.with_patterns(find_patterns(found))


def paired_outcomes(baseline: Outcomes, candidate: Outcomes) -> Comparison:
    """The comparison of two sides without its patterns, which take every figure's intervals.

    Raises:
        MetricError, UsageError: as `compare_outcomes`.
    """
    if baseline.k != candidate.k:
        raise MetricError(
            f"{plain(baseline.name)} is cut at K {baseline.k} and {plain(candidate.name)} at "
            f"{candidate.k}: take the same K for both"
        )
    notes: tuple[str, ...] = ()
    if baseline.kind != candidate.kind:
        notes = (_kinds_note(baseline, candidate),)
        baseline, candidate = _retrieval_of(baseline), _retrieval_of(candidate)
    paired = pair(baseline, candidate)
    if len(paired.frame):
        notes = (*notes, *_timed_note(baseline, candidate))
    if not set(baseline.frame["case_id"]) & set(candidate.frame["case_id"]):
        raise UsageError(
            f"{plain(baseline.name)} and {plain(candidate.name)} have no case in common: compare "
            "runs of one golden set, or of two versions of it"
        )
    return Comparison(
        baseline=baseline,
        candidate=candidate,
        k=baseline.k,
        pairs=paired.frame,
        metrics=paired.metrics,
        left_out=paired.left_out,
        conditions=conditions(baseline.manifest, candidate.manifest),
        notes=notes,
    )


def _opened(run: Run | str | Path, settings: Settings | None) -> Run:
    return run if isinstance(run, Run) else load_run(run, settings)


def _common_k(baseline: Run, candidate: Run, k: int | None) -> int:
    tops = {run.run_id: run.manifest.top_k for run in (baseline, candidate)}
    least = min(tops.values())
    if k is None:
        return least
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= least:
        named = " and ".join(f"{top} of {run_id}" for run_id, top in tops.items())
        raise MetricError(
            f"K is {k!r}: give a whole number from 1 to {least}; top K is {named}, and nothing "
            "beyond it was observed"
        )
    return k


def _kinds_note(baseline: Outcomes, candidate: Outcomes) -> str:
    only: dict[Kind, str] = {"answers": "answers", "retrieval": "only retrieves"}
    return (
        f"The baseline {only[baseline.kind]} and the candidate {only[candidate.kind]}: compared by "
        "what was retrieved"
    )


def _timed_note(baseline: Outcomes, candidate: Outcomes) -> Iterator[str]:
    if not timed_alike(baseline, candidate):
        before, after = (TIMED_WORDS[s.timed] for s in (baseline, candidate) if s.timed)
        yield (
            f"Latencies are not compared: those of the baseline are of {before}, those of the "
            f"candidate of {after}"
        )


def _retrieval_of(side: Outcomes) -> Outcomes:
    if side.kind == "retrieval":
        return side
    if side.run is None:
        raise UsageError(
            f"{plain(side.name)} measures answers and the other side what was retrieved: compare "
            "figures of one kind"
        )
    return outcomes_of(side.run, k=side.k, kind="retrieval")
