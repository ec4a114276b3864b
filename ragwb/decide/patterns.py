"""What a comparison looks like that people have seen before: named shapes of several figures.

Each pattern is a rule with a code. It fires where figures moved beyond their intervals, names the
cases that show it and says what to look at first; within the intervals, and where a figure that it
needs was not observed, it stays silent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragwb.decide.chance import flips_needed
from ragwb.decide.compared import Compared
from ragwb.decide.conditions import is_within
from ragwb.decide.stage_times import Moved, is_explained, slowest_cases
from ragwb.decide.thresholds import ROUNDING
from ragwb.html import plain
from ragwb.measure.statistics import CONFIDENCE, Interval, paired_bootstrap
from ragwb.runs.scoring import score

HIGH_HIT_RATE = 0.9
"""From here on nearly every question finds something: what is missing is the rest of it."""

LOST_SHARE = 0.05
"""Least gap between hit rate and recall that is worth a sentence: a case in twenty, half lost."""

SLOWER_SHARE = 0.05
"""Least rise of p95, as a share of what it was, that anybody would notice."""

SWAPS = 2
"""Fewest cases fixed, and broken, that are a swap and no single unlucky case."""

SWALLOWED = 0.2
"""Share of the visible chunks from which on top K returns them whether they fit or not."""

# Conditions that cost time before the answer is made, as they stand in a manifest.
_SLOW_PARTS = (
    "candidate_k",
    "rerank",
    "fusion.rerank",
    "context_budget_tokens",
    "rewrite",
    "top_k",
)

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A known shape that was recognised.

    Attributes:
        code: its name, such as `SWAPPED_CASES`; low in number, safe as a label.
        title: the same in a few words.
        sentence: what is seen, with its figures.
        case_ids: the cases that show it, those to open first in front.
        look_at: what to look at first.
    """

    code: str
    title: str
    sentence: str
    case_ids: tuple[str, ...]
    look_at: str

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON values."""
        return {
            "code": self.code,
            "title": self.title,
            "sentence": self.sentence,
            "case_ids": list(self.case_ids),
            "look_at": self.look_at,
        }


@dataclass(frozen=True, slots=True)
class Delta:
    """A figure's difference with its 95 % interval.

    Attributes:
        baseline, delta, low, high: in the figure's own unit.
        can_tell: whether as many cases moved as any test would need. The interval of a handful of
            cases that all moved one way leaves 0 out by its make, not by what they show.
    """

    baseline: float
    delta: float
    low: float
    high: float
    can_tell: bool

    @property
    def rose(self) -> bool:
        """Whether the whole interval lies above 0, and enough cases moved."""
        return self.can_tell and self.low > ROUNDING

    @property
    def fell(self) -> bool:
        """Whether the whole interval lies below 0, and enough cases moved."""
        return self.can_tell and self.high < -ROUNDING

    @property
    def unchanged(self) -> bool:
        """Whether the interval holds 0: no difference is shown, which is not none."""
        return self.low <= ROUNDING and self.high >= -ROUNDING

    def words(self, unit: str = "") -> str:
        """The difference and its interval, such as `+0.0300 (0.0100 to 0.0500)`."""
        if unit:
            return f"{self.delta:+.0f} {unit} ({self.low:.0f} to {self.high:.0f})"
        return f"{self.delta:+.4f} ({self.low:.4f} to {self.high:.4f})"


class Reading:
    """A comparison with its figures by name, read once for all patterns."""

    def __init__(self, compared: Compared) -> None:
        self.compared = compared
        self.pairs = compared.pairs

    @cached_property
    def _deltas(self) -> dict[str, Delta]:
        rows = self.compared.deltas().to_dict("records")
        known = [row for row in rows if not pd.isna([row["delta"], row["low"], row["high"]]).any()]
        return {str(row["metric"]): _delta(row) for row in known}

    def at_k(self, name: str) -> str:
        """The name of a retrieval figure at the comparison's K."""
        return f"{name}@{self.compared.k}"

    def delta(self, metric: str) -> Delta | None:
        """A figure's difference; None where it, or its interval, is not known."""
        return self._deltas.get(metric)

    def after(self, metric: str) -> Floats | None:
        """A figure of each pair on the candidate's side; None where it was not observed."""
        column = f"{metric}_after"
        if column not in self.pairs:
            return None
        return self.pairs[column].to_numpy(dtype=np.float64, na_value=np.nan)

    def moved(self, metric: str, sign: int) -> npt.NDArray[np.bool_]:
        """The pairs in which a figure went up (1) or down (-1)."""
        ends = [self.pairs[f"{metric}_{side}"] for side in ("before", "after")]
        before, after = (end.to_numpy(dtype=np.float64, na_value=np.nan) for end in ends)
        return np.asarray(sign * (after - before) > ROUNDING)

    def case_ids(self, mask: npt.NDArray[np.bool_]) -> tuple[str, ...]:
        """The ids of the pairs of a mask."""
        return tuple(self.pairs["case_id"].to_numpy()[mask].tolist())


def find_patterns(compared: Compared) -> tuple[Pattern, ...]:
    """The patterns that a comparison shows, in the order of `PATTERNS`; none without pairs."""
    if not len(compared.pairs):
        return ()
    reading = Reading(compared)
    found = (rule(reading) for rule in PATTERNS.values())
    return tuple(pattern for pattern in found if pattern is not None)


def second_evidence_lost(reading: Reading) -> Pattern | None:
    """Hit rate high and recall low: one piece of the evidence is found and another is not.

    Of the candidate alone. Hit - recall is never below 0, so a bootstrap interval of its mean holds
    0 when more than 2.5 % of the resamples are without a case that lost something.
    """
    hit, recall = reading.at_k("hit_rate"), reading.at_k("recall")
    hits, recalls = reading.after(hit), reading.after(recall)
    if hits is None or recalls is None:
        return None
    known = ~(np.isnan(hits) | np.isnan(recalls))
    lost = known & (hits - recalls > ROUNDING)
    if (1 - lost.sum() / max(known.sum(), 1)) ** known.sum() > (1 - CONFIDENCE) / 2:
        return None
    hit_rate, mean_recall = float(hits[known].mean()), float(recalls[known].mean())
    if hit_rate < HIGH_HIT_RATE or hit_rate - mean_recall < LOST_SHARE:
        return None
    return Pattern(
        "SECOND_EVIDENCE_LOST",
        "hit rate high, recall low",
        f"{hit} is {hit_rate:.4f} and {recall} {mean_recall:.4f}: {_cases(lost)} found a piece of "
        "the evidence and lost another",
        reading.case_ids(lost),
        "the rank of the lost groups in these cases: just beyond K asks for a larger K or fewer "
        "duplicates, in no channel's candidates for a question in several steps",
    )


def crowded_context(reading: Reading) -> Pattern | None:
    """Recall up and claim coverage down: more was found, and less of it was said."""
    recall = reading.delta(reading.at_k("recall"))
    coverage = reading.delta("claim_coverage")
    if recall is None or coverage is None or not (recall.rose and coverage.fell):
        return None
    fell = reading.moved("claim_coverage", -1)
    both = fell & reading.moved(reading.at_k("recall"), 1)
    tokens = reading.delta("context_tokens")
    beside = "" if tokens is None else f", context {tokens.delta:+.0f} tokens a case"
    return Pattern(
        "CROWDED_CONTEXT",
        "recall up, claim coverage down",
        f"{reading.at_k('recall')} {recall.words()} and claim_coverage {coverage.words()}{beside}: "
        f"{_cases(fell)} said less, {int(both.sum())} of them with more evidence",
        (*reading.case_ids(both), *reading.case_ids(fell & ~both)),
        "the final context of these cases: the order of the chunks, duplicates, what was cut by "
        "the budget, and how many distractors stand beside the evidence",
    )


def slower_not_better(reading: Reading) -> Pattern | None:
    """p95 up and MRR unchanged: time was spent that the order of the results does not show.

    Silent where nothing that changed explains the time: its interval covers the cases, and not the
    load of the machine between two runs.
    """
    p95, mrr = reading.delta("p95_ms"), reading.delta(reading.at_k("mrr"))
    if p95 is None or mrr is None or not (p95.rose and mrr.unchanged):
        return None
    if p95.delta < SLOWER_SHARE * p95.baseline:
        return None
    sides = reading.compared.baseline, reading.compared.candidate
    ids, factors = reading.pairs["case_id"], reading.compared.conditions.factors
    is_known, moved = is_explained(*sides, ids, factors, sign=1)
    if not is_known:
        return None
    named = [f for f in factors if any(is_within(f.name, part) for part in _SLOW_PARTS)]
    first = ", ".join(f"{factor.words} ({factor.values})" for factor in named)
    return Pattern(
        "SLOWER_NOT_BETTER",
        "p95 up, MRR unchanged",
        f"p95 {p95.words('ms')} and {reading.at_k('mrr')} {mrr.words()}: the added time shows no "
        f"better order{_most_of_it(moved)}",
        slowest_cases(sides[1], ids),
        f"what changed: {first}" if first else "candidate K, the reranker and the context budget",
    )


def swapped_cases(reading: Reading) -> Pattern | None:
    """The mean unchanged, and other cases fail: some were fixed and about as many broken."""
    answers = reading.compared.candidate.kind == "answers"
    name = "correct_rate" if answers else reading.at_k("recall")
    mean = reading.delta(name)
    if mean is None or not mean.unchanged:
        return None
    change = reading.pairs["change"].to_numpy()
    stable = ~reading.pairs["unstable"].to_numpy(dtype=bool)
    fixed, broken = (change == "fixed") & stable, (change == "broken") & stable
    if min(fixed.sum(), broken.sum()) < SWAPS:
        return None
    return Pattern(
        "SWAPPED_CASES",
        "mean unchanged, cases swapped",
        f"{name} {mean.words()} shows no difference, yet {int(fixed.sum())} were fixed and "
        f"{int(broken.sum())} broken of {len(change)}",
        (*reading.case_ids(broken), *reading.case_ids(fixed)),
        "the broken cases, by tag: a kind of question that pays for the gain of another",
    )


def k_swallows_corpus(reading: Reading) -> Pattern | None:
    """Recall up only where K takes in a large part of the chunks that there are to be seen."""
    k, run = reading.compared.k, reading.compared.candidate.run
    recall = reading.delta(reading.at_k("recall"))
    visible = None if run is None else _visible_chunks(run.service())
    if recall is None or not recall.rose or visible is None or k < SWALLOWED * visible:
        return None
    smaller = min(k - 1, int(SWALLOWED * visible))  # a K that leaves most of the chunks out
    below = _recall_interval(reading, smaller) if smaller else None
    if below is not None and below.low > ROUNDING:
        return None
    so = f"; at K {smaller} no difference is shown" if below is not None else ""
    return Pattern(
        "K_SWALLOWS_CORPUS",
        "recall up only where K swallows the corpus",
        f"{reading.at_k('recall')} {recall.words()} with {min(k, visible)} of {visible} visible "
        f"chunks returned{so}",
        reading.case_ids(reading.moved(reading.at_k("recall"), 1)),
        "MRR and recall at a smaller K, and the number of chunks: larger chunks or a smaller "
        "corpus raise recall at the same K by themselves",
    )


def refuses_too_much(reading: Reading) -> Pattern | None:
    """Refusal recall up with over-refusal: it refuses more, right or wrong."""
    right, wrong = reading.delta("refusal_recall"), reading.delta("over_refusal_rate")
    if right is None or wrong is None or not (right.rose and wrong.rose):
        return None
    shown = reading.moved("over_refusal_rate", 1)
    return Pattern(
        "REFUSES_TOO_MUCH",
        "refusal recall up with over-refusal",
        f"refusal_recall {right.words()} and over_refusal_rate {wrong.words()}: {_cases(shown)} "
        "that must be answered are not any more",
        reading.case_ids(shown),
        "the threshold or the prompt's rule for refusing: whether the evidence stood in the "
        "context of these cases",
    )


PATTERNS: Mapping[str, Callable[[Reading], Pattern | None]] = {
    "SECOND_EVIDENCE_LOST": second_evidence_lost,
    "CROWDED_CONTEXT": crowded_context,
    "SLOWER_NOT_BETTER": slower_not_better,
    "SWAPPED_CASES": swapped_cases,
    "K_SWALLOWS_CORPUS": k_swallows_corpus,
    "REFUSES_TOO_MUCH": refuses_too_much,
}
"""Each pattern's rule by its code."""


def _delta(row: Mapping[Any, Any]) -> Delta:
    needed = flips_needed(int(row["n"]))
    can_tell = needed is not None and row["win"] + row["loss"] >= needed
    baseline, delta, low, high = (float(row[n]) for n in ("baseline", "delta", "low", "high"))
    return Delta(baseline, delta, low, high, can_tell)


def _cases(mask: npt.NDArray[np.bool_]) -> str:
    return f"{int(mask.sum())} of {len(mask)} cases"


def _most_of_it(moved: Moved | None) -> str:
    if moved is None:
        return ""
    return f"; most of it in {plain(moved.stage, width=60)} ({moved.ms:+,.0f} ms at the median)"


def _visible_chunks(service: Mapping[str, Any]) -> int | None:
    """How many chunks the asking identity can be shown; None where the service does not say."""
    counts = service.get("chunks")
    if not isinstance(counts, Mapping):
        return None
    for name in ("visible", "total"):
        count = counts.get(name)
        if isinstance(count, int) and not isinstance(count, bool) and count > 0:
            return count
    return None


def _recall_interval(reading: Reading, k: int) -> Interval | None:
    """The interval of the difference of recall over the same pairs at another K."""
    compared = reading.compared
    if compared.baseline.run is None or compared.candidate.run is None:
        return None
    column, ids = f"recall@{k}", reading.pairs["case_id"]
    sides = [
        score(run, k).frame.set_index("case_id")[column].reindex(ids).to_numpy(dtype=np.float64)
        for run in (compared.baseline.run, compared.candidate.run)
    ]
    known = ~(np.isnan(sides[0]) | np.isnan(sides[1]))
    return paired_bootstrap(sides[0][known], sides[1][known])[0]
