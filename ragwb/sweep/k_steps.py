"""From one K to the next: which cases are gained and lost, and what each gained one costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from ragwb.measure.answer_scores import FIGURES as ANSWER_FIGURES
from ragwb.measure.answer_scores import AnswerScores
from ragwb.measure.listed import count
from ragwb.measure.statistics import paired_bootstrap
from ragwb.measure.summary import Scores
from ragwb.sweep.budget import ROUNDING, Gain


@dataclass(frozen=True, slots=True)
class Step:
    """From one K to the next.

    A case passes at K when all its evidence stands in the first K results, and none that must not
    be there.

    Attributes:
        k_from, k_to: the two.
        gained: blocking cases that pass at `k_to` alone.
        lost: blocking cases that pass at `k_from` alone: evidence that must not be there came in.
        delta: mean difference of recall, with the ends low and high of its 95 % interval; None when
            no case is scored.
        tokens: further tokens a scored case; None where texts are not in the run.
        tokens_per_gained: further tokens over all scored cases for each gained one; None without.
        p95_ms: change of the 95th percentile; None where it was not measured at both.
        answers_gained, answers_lost: cases that are answered rightly at the one K alone; None where
            answers were not measured at both.
    """

    k_from: int
    k_to: int
    gained: tuple[str, ...]
    lost: tuple[str, ...]
    delta: float | None
    low: float | None
    high: float | None
    tokens: float | None
    tokens_per_gained: float | None
    p95_ms: float | None = None
    answers_gained: tuple[str, ...] | None = None
    answers_lost: tuple[str, ...] | None = None

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }


def steps_of(
    scores: Scores,
    tokens: pd.DataFrame,
    p95_ms: Mapping[int, float],
    answers: Mapping[int, AnswerScores],
) -> tuple[Step, ...]:
    """The steps between neighbouring Ks of a run.

    Args:
        scores: of the run.
        tokens: a row a case, a column a K (see `k_cost.FirstTokens`).
        p95_ms: by K, where it was measured.
        answers: by K the scores of answers made at it.
    """
    observed = [k for k in scores.ks if k <= scores.top_k]
    passing = {k: _passing(scores, k) for k in observed}
    scored = scores.frame.loc[scores.frame["status"] == "scored", "case_id"]
    held = tokens.reindex(scored)
    return tuple(
        _step(scores, (a, b), passing, held, p95_ms, answers) for a, b in pairwise(observed)
    )


def values_at(scores: Scores, answers: Mapping[int, AnswerScores], metric: str) -> pd.DataFrame:
    """One figure of every scored case at every K at which it is known.

    Args:
        scores: of a run.
        answers: by K the scores of answers made at it.
        metric: a retrieval figure without its K, or a figure of answers.

    Returns:
        float64, a row a case, index case_id, a column a K; NaN where undefined. No columns where
        there is no such figure.
    """
    columns = {}
    name = "hit" if metric == "hit_rate" else metric
    if metric in ANSWER_FIGURES:
        for k, one in answers.items():
            columns[k] = one.frame[one.frame["status"] == "scored"].set_index("case_id")[metric]
    else:
        scored = scores.frame[scores.frame["status"] == "scored"].set_index("case_id")
        for k in (one for one in scores.ks if one <= scores.top_k):
            if f"{name}@{k}" in scored:
                columns[k] = scored[f"{name}@{k}"]
    return pd.DataFrame(columns).astype("float64")


def gains_over(values: pd.DataFrame, smaller: Sequence[int], k: int) -> dict[int, Gain]:
    """What a K adds to each of some smaller ones.

    Args:
        values: see `values_at`; a case that lacks one of these Ks is left out.
        smaller: Ks below `k`.
        k: one of the columns.
    """
    known = values[[*smaller, k]].dropna()
    table = known.to_numpy(np.float64)
    before, after = table[:, :-1], np.repeat(table[:, -1:], len(smaller), axis=1)
    intervals = paired_bootstrap(before, after) if smaller else []
    is_better = after - before > ROUNDING
    return {
        one: Gain(
            low=interval.low if interval else None,
            high=interval.high if interval else None,
            case_ids=tuple(known.index[is_better[:, i]]),
            n=len(known),
        )
        for i, (one, interval) in enumerate(zip(smaller, intervals, strict=True))
    }


def _passing(scores: Scores, k: int) -> pd.Series[bool]:
    """By case whether it passes at K, of the blocking ones that answered.

    A case without a label that can be scored passes as long as nothing forbidden is there.
    """
    frame = scores.frame
    counted = (frame["tier"] == "blocking") & (frame["status"] != "error")
    failed = frame[f"failed@{k}"].fillna(value=False).astype(bool)
    forbidden = frame[f"forbidden@{k}"].astype("float64").fillna(0) > 0
    passes = ~failed & ~forbidden
    return passes[counted].set_axis(frame.loc[counted, "case_id"])


def _step(
    scores: Scores,
    ks: tuple[int, int],
    passing: Mapping[int, pd.Series[bool]],
    tokens: pd.DataFrame,
    p95_ms: Mapping[int, float],
    answers: Mapping[int, AnswerScores],
) -> Step:
    before, after = (passing[k] for k in ks)
    gained = tuple(before.index[~before & after])
    delta, low, high = _recall_change(scores, *ks)
    more = (tokens[ks[1]] - tokens[ks[0]]).dropna()
    times = [p95_ms.get(k) for k in ks]
    right = [_right(answers[k]) if k in answers else None for k in ks]
    return Step(
        *ks,
        gained=gained,
        lost=tuple(before.index[before & ~after]),
        delta=delta,
        low=low,
        high=high,
        tokens=float(more.mean()) if len(more) else None,
        tokens_per_gained=float(more.mean() * len(tokens) / len(gained))
        if gained and len(more)
        else None,
        p95_ms=None if times[0] is None or times[1] is None else times[1] - times[0],
        answers_gained=_changed(right[0], right[1]),
        answers_lost=_changed(right[1], right[0]),
    )


def _recall_change(
    scores: Scores, k_from: int, k_to: int
) -> tuple[float | None, float | None, float | None]:
    names = [f"recall@{k_from}", f"recall@{k_to}"]
    scored = scores.frame[scores.frame["status"] == "scored"]
    values = scored[names].dropna().to_numpy(np.float64)
    if not len(values):
        return None, None, None
    (interval,) = paired_bootstrap(values[:, 0], values[:, 1])
    assert interval is not None
    return float((values[:, 1] - values[:, 0]).mean()), interval.low, interval.high


def _right(scores: AnswerScores) -> pd.Series[bool]:
    scored = scores.frame[scores.frame["status"] == "scored"]
    failed = scored["failed_for_comparison"].fillna(value=True).astype(bool)
    return (~failed).set_axis(scored["case_id"])


def _changed(
    before: pd.Series[bool] | None, after: pd.Series[bool] | None
) -> tuple[str, ...] | None:
    """Cases that are right after and were not before."""
    if before is None or after is None:
        return None
    both = before.index.intersection(after.index, sort=False)
    return tuple(both[~before[both] & after[both]])


def step_sentences(steps: Sequence[Step]) -> Iterator[str]:
    """The steps in words: what each brings, and what it takes."""
    for step in steps:
        yield f"from K = {step.k_from} to {step.k_to}: {step_words(step)}"


def step_words(step: Step) -> str:
    """One step in words, such as "2 cases gained, 900 tokens dearer a case"."""
    parts = [f"{_cases(step.gained)} gained", *([f"{_cases(step.lost)} lost"] if step.lost else [])]
    if step.answers_gained is not None and step.answers_lost is not None:
        parts += [f"{_cases(step.answers_gained)} answered rightly that were not"]
        parts += [f"{_cases(step.answers_lost)} no longer"] if step.answers_lost else []
    if step.tokens is not None:
        parts.append(f"{step.tokens:+z,.0f} tokens a case")
    if step.p95_ms is not None:
        parts.append(f"p95 {step.p95_ms:+z,.0f} ms")
    return ", ".join(parts)


def _cases(case_ids: Sequence[str]) -> str:
    return count(len(case_ids), "case") if case_ids else "no case"
