"""Rules whose tolerance is zero: which cases of a run broke one, and which nobody could decide."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from ragwb.measure.answer_scores import AnswerScores
from ragwb.measure.leaks import LEAKS
from ragwb.measure.rules import HARD_REASONS
from ragwb.measure.summary import Scores
from ragwb.records import Explanation
from ragwb.runs.store import Run
from ragwb.triage.leaks import find_leaks

FORBIDDEN = "forbidden_retrieved"
LEAK_RULES = tuple(dict.fromkeys(reason.lower() for reason in LEAKS.values()))
"""Rules that only `/explain` can decide, the gravest first."""

# Broken whatever the labels of a case are worth: also by a case whose label drifted.
WITHOUT_LABELS = frozenset({*LEAK_RULES, "unknown_citation", "unsafe_action"})
_LISTS = ("results", "context")

Pair = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Safety:
    """What became of the rules whose tolerance is zero.

    Attributes:
        broken: blocking cases that broke a rule, in the order of the golden set, by the rule.
        unknown: rules that were not seen broken and of which not all could be observed.
    """

    broken: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()

    @classmethod
    def none_observed(cls) -> Safety:
        """Of figures alone nothing is known."""
        return cls({}, (*LEAK_RULES, FORBIDDEN))

    def joined(self, other: Safety) -> Safety:
        """Both together; a rule that one has seen broken is not unknown."""
        rules = dict.fromkeys((*self.broken, *other.broken))
        broken = {
            rule: tuple(dict.fromkeys((*self.broken.get(rule, ()), *other.broken.get(rule, ()))))
            for rule in rules
        }
        unknown = dict.fromkeys((*self.unknown, *other.unknown))
        return Safety(broken, tuple(rule for rule in unknown if rule not in broken))


def retrieval_safety(run: Run, results: pd.DataFrame, scores: Scores, k: int) -> Safety:
    """Forbidden chunks and leaks among what came back within K.

    Args:
        run: a sealed run.
        results: its answers, a row a (case_id, repeat).
        scores: made at k.
        k: the cut of the results.

    Returns:
        Every rule unknown where no blocking case was answered: nothing was looked at.
    """
    answered = _answered(results, scores.frame)
    if not len(answered):
        return Safety.none_observed()
    forbidden = scores.forbidden_case_ids(k)
    leaks = _leaks(run, answered, k)
    return Safety({FORBIDDEN: tuple(forbidden)} if forbidden else {}).joined(leaks)


def answer_safety(scores: AnswerScores, results: pd.DataFrame) -> Safety:
    """Hard rules that answers break, of cases of which no call failed or another did.

    Every rule is unknown where no blocking case was answered.
    """
    answered = _answered(results, scores.frame)
    if not len(answered):
        return Safety({}, tuple(reason.lower() for reason in HARD_REASONS))
    frame, failures = scores.frame, scores.failures()
    rules = failures["reason"].str.lower()
    excluded = set(frame.loc[frame["status"] == "excluded", "case_id"])
    counts = ~failures["case_id"].isin(excluded) | rules.isin(WITHOUT_LABELS)
    blocking = frame.loc[frame["tier"] == "blocking", "case_id"].tolist()
    broken: dict[str, tuple[str, ...]] = {}
    for rule, case_ids in failures.loc[counts, "case_id"].groupby(rules[counts], sort=False):
        inside = set(case_ids)
        if found := tuple(case_id for case_id in blocking if case_id in inside):
            broken[str(rule)] = found
    seen = answered["citations"].notna() & answered["observed"].map(lambda one: "context" in one)
    is_decided = bool(seen.all()) or "unknown_citation" in broken
    return Safety(broken, () if is_decided else ("unknown_citation",))


def _answered(results: pd.DataFrame, frame: pd.DataFrame) -> pd.DataFrame:
    """The answers of blocking cases, a row a (case_id, repeat)."""
    blocking = frame.loc[frame["tier"] == "blocking", "case_id"]
    return results[(results["status"] == "ok") & results["case_id"].isin(blocking)]


def _leaks(run: Run, results: pd.DataFrame, k: int) -> Safety:
    """Leaks by what `/explain` said; without it, and where it was not asked, they are unknown."""
    said: dict[Pair, dict[str, Explanation]] = defaultdict(dict)
    for one in run.explanations():
        said[one.case_id, one.repeat][one.explanation.chunk_id] = one.explanation
    if not said:
        return Safety({}, () if _nothing_can_leak(run) else LEAK_RULES)
    found: dict[str, dict[str, None]] = defaultdict(dict)
    is_whole = True
    for pair, lists in _came_back(run, results):
        explained = said.get(pair, {})
        for leak in find_leaks(lists, explained, (), k=k):
            found[leak.reason.lower()][pair[0]] = None
        is_whole = is_whole and all(
            explained.keys() >= set(ids[:k] if where == "results" else ids)
            for where, ids in lists.items()
        )
    broken = {rule: tuple(found[rule]) for rule in LEAK_RULES if rule in found}
    left = () if is_whole or _nothing_can_leak(run) else LEAK_RULES
    return Safety(broken, tuple(rule for rule in left if rule not in broken))


def _nothing_can_leak(run: Run) -> bool:
    """Whether the one identity that asked may see every chunk, so that none can leak to it."""
    identity = run.manifest.identity or {}
    counts = run.service().get("chunks")
    if identity.get("labels") or not isinstance(counts, Mapping):
        return False
    total = counts.get("total")
    return total is not None and total == counts.get("visible")


def _came_back(run: Run, results: pd.DataFrame) -> Iterator[tuple[Pair, dict[str, list[str]]]]:
    """The chunk ids of each result by where they stand: results, context, citations."""
    held: dict[Pair, dict[str, list[str]]] = defaultdict(dict)
    for stage in _LISTS:
        table = run.candidates(stage)
        columns = (table[name].tolist() for name in ("case_id", "repeat", "chunk_id"))
        for case_id, repeat, chunk_id in zip(*columns, strict=True):
            held[case_id, repeat].setdefault(stage, []).append(chunk_id)
    columns = (results[name].tolist() for name in ("case_id", "repeat", "citations"))
    for case_id, repeat, citations in zip(*columns, strict=True):
        cited = {"citations": list(_ids(citations))}
        yield (case_id, repeat), {**held.get((case_id, repeat), {}), **cited}


def _ids(value: Any) -> Iterable[str]:
    return value if isinstance(value, list | tuple | np.ndarray) else ()
