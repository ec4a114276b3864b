"""A sweep over K: what each K reaches and costs, what the next one adds, and which to take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import pandas as pd

from ragwb import html
from ragwb.decide.outcomes import lower_is_better
from ragwb.errors import UsageError
from ragwb.measure.answer_scores import AnswerScores
from ragwb.measure.listed import case_words, count
from ragwb.measure.shown import (
    interval_words,
    json_number,
    json_row,
    json_value,
    text_rows,
    value_words,
)
from ragwb.measure.statistics import RESAMPLES, SEED
from ragwb.measure.summary import Scores
from ragwb.runs.store import Run
from ragwb.sweep.budget import (
    Budget,
    Point,
    Recommendation,
    ks_words,
    pareto_ks,
    recommend_k,
)
from ragwb.sweep.k_cost import FROM_RUN, MEASURED, NOT_OBSERVED, TOKENS
from ragwb.sweep.k_steps import Step, gains_over, step_sentences, values_at

COLUMNS = (
    *("k", "metric", "value", "low", "high", "n", "n_excluded", "n_errors"),
    *("counts", "method", "source"),
)
INTERVALS = (
    "95 % intervals: Wilson for rates, else a percentile bootstrap over cases, "
    f"{RESAMPLES:,} resamples, seed {SEED}"
)
P95 = "p95_ms"
_PRICES = (TOKENS, P95)
_SHOWN = ("K", "recall", "95 % interval", "hit_rate", "mrr", "ndcg", "tokens", "p95", "n")


@dataclass(frozen=True, repr=False, eq=False)
class KSweep:
    """What a run says of every K, and what was measured at some.

    Attributes:
        run: asked for the largest K.
        ks: cutoffs, ascending.
        scores: the run's scores at each of them.
        frame: a row a K and figure: k; metric; value; low, high: 95 % interval; n, n_excluded,
            n_errors: cases with it and without, and failed ones; counts such as 9/10; method of the
            interval; source: "run", worked out from the one run; "measured", by calls that asked
            for this K; "not measured"; "not observed". The value is null under the last two.
        steps: from each K to the next.
        measured: by K the run that asked for it.
        answers: by K the scores of its answers, where it asked for them.
        notes: what else must be known to read it, in sentences.
    """

    run: Run
    ks: tuple[int, ...]
    scores: Scores
    frame: pd.DataFrame
    steps: tuple[Step, ...]
    measured: Mapping[int, Run] = field(default_factory=dict)
    answers: Mapping[int, AnswerScores] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def top_k(self) -> int:
        """What the run asked for; nothing beyond it was observed."""
        return self.scores.top_k

    def metrics(self) -> list[str]:
        """The figures of the frame that have a value at some K, in their order."""
        known = self.frame[self.frame["value"].notna()]
        return list(dict.fromkeys(known["metric"]))

    def curve(self, metric: str) -> pd.DataFrame:
        """The rows of one figure, a row a K.

        Raises:
            UsageError: there is no such figure; the message lists those that are.
        """
        rows = self.frame[self.frame["metric"] == metric]
        if not len(rows):
            known = ", ".join(dict.fromkeys(self.frame["metric"]))
            raise UsageError(f"no figure {html.plain(metric, width=60)!r}; there are: {known}")
        return rows.reset_index(drop=True)

    def points(self, metric: str = "recall") -> tuple[Point, ...]:
        """What each K reaches in one figure, and what it costs."""
        score = self.curve(metric).set_index("k")
        costs = {name: self._values(name) for name in _PRICES}
        return tuple(
            Point(
                k,
                json_number(score["value"][k]),
                json_value(score["counts"][k]),
                {name: values.get(k) for name, values in costs.items()},
            )
            for k in self.ks
        )

    def pareto(self, cost: str = TOKENS, *, metric: str = "recall") -> tuple[int, ...]:
        """Every K that no other beats in one figure and one cost.

        Args:
            cost: context_tokens or p95_ms.
            metric: a figure of which more is better.

        Raises:
            UsageError: there is no such cost or figure.
        """
        if cost not in _PRICES:
            raise UsageError(
                f"no cost {html.plain(cost, width=60)!r}; there are: {', '.join(_PRICES)}"
            )
        return pareto_ks(self.points(metric), cost)

    def recommend(self, budget: Budget | None = None, *, metric: str = "recall") -> Recommendation:
        """The K to take under a budget, and the reason in a sentence (see `budget.recommend_k`).

        Args:
            budget: limits on tokens and p95; by default none.
            metric: a figure of which more is better: of retrieval, or of answers where they were
                measured.

        Raises:
            UsageError: there is no such figure, or less of it is better.
        """
        points = self.points(metric)
        values = values_at(self.scores, self.answers, metric)
        if lower_is_better(metric) or not values.columns.isin(self.ks).any():
            raise UsageError(f"--metric {html.plain(metric, width=60)}: not a figure to choose by")
        found = recommend_k(points, partial(gains_over, values), budget or Budget(), metric)
        return replace(found, sentence="; ".join([found.sentence, *self._conditions(found)]))

    def _conditions(self, found: Recommendation) -> Iterator[str]:
        """What a recommendation holds under, and what it does not look at."""
        runs = [self.measured[k] for k in found.within if k in self.measured]
        at_once = sorted({n for run in runs if (n := run.manifest.concurrency) is not None})
        if P95 in found.budget.limits and at_once:
            asked = " or ".join(count(n, "question") for n in at_once)
            yield f"latencies were measured with {asked} at once"
        forbidden = [] if found.k is None else self.scores.forbidden_case_ids(found.k)
        if forbidden:
            words = f"evidence that must not be there stands in the first {found.k} results of"
            yield f"{words} {case_words(forbidden)}"

    def fields(self) -> list[str]:
        """What `by` can slice by and tells the cases apart: tags first, then risk, set, tier."""
        return self.scores.fields()

    def by(self, field: str) -> pd.DataFrame:
        """The retrieval figures of each slice at each K.

        Args:
            field: tags.<name>, risk, set or tier.

        Returns:
            slice, null for cases without the tag; then k, metric, value, low, high, n, n_excluded,
            n_errors, counts, method.

        Raises:
            UsageError: the field is not there; the message lists those that are.
        """
        return at_k(self.scores.by(field))

    def to_dict(self, budget: Budget | None = None, *, metric: str = "recall") -> dict[str, Any]:
        """The JSON of `sweep k`; null where undefined, not measured or not observed."""
        scores = self.scores
        return {
            "run_id": self.run.run_id,
            "dataset_version": self.run.manifest.dataset_version,
            "top_k": self.top_k,
            "ks": list(self.ks),
            "n_cases": scores.n_cases,
            "n_scored": scores.n_scored,
            "n_excluded": scores.n_excluded,
            "n_errors": scores.n_errors,
            "metric": metric,
            "recommendation": self.recommend(budget, metric=metric).to_dict(),
            "figures": [json_row(row) for row in self.frame.to_dict("records")],
            "steps": [step.to_dict() for step in self.steps],
            "pareto": {cost: list(self.pareto(cost, metric=metric)) for cost in _PRICES},
            "measured": {str(k): run.run_id for k, run in self.measured.items()},
            "notes": list(self.notes),
        }

    def in_words(self) -> tuple[str, ...]:
        """Which K, what each step adds, and what else must be known, a line each.

        Not escaped for HTML or Markdown.
        """
        return (self.recommend().sentence, *step_sentences(self.steps), *self.notes)

    def __repr__(self) -> str:
        words = (html.plain(line) for line in self.in_words())
        return "\n".join([self._title, *words, *text_rows(self._rows, _SHOWN), INTERVALS])

    def _repr_html_(self) -> str:
        words = "".join(html.tag("p", html.escape(line)) for line in self.in_words())
        return words + html.table(
            self._rows, _SHOWN, numeric=_SHOWN, caption=f"{self._title}. {INTERVALS}"
        )

    @property
    def _title(self) -> str:
        return (
            f"K sweep of {html.plain(self.run.run_id)}: {self.scores.n_scored} scored cases of "
            f"{self.scores.n_cases}, K = {ks_words(self.ks)}"
        )

    @cached_property
    def _rows(self) -> list[dict[str, object]]:
        tables = {name: self.curve(name).set_index("k") for name in self._columns}
        return [_shown_row(k, {name: t.loc[k] for name, t in tables.items()}) for k in self.ks]

    @property
    def _columns(self) -> Sequence[str]:
        return ("recall", "hit_rate", "mrr", "ndcg", *_PRICES)

    def _values(self, metric: str) -> dict[int, float]:
        rows = self.frame[(self.frame["metric"] == metric) & self.frame["value"].notna()]
        return {int(k): float(v) for k, v in zip(rows["k"], rows["value"], strict=True)}


def at_k(summary: pd.DataFrame) -> pd.DataFrame:
    """A summary of scores with its figures apart from their K: columns k and metric."""
    named = summary["metric"].str.extract(r"^(?P<metric>.+)@(?P<k>[0-9]+)$")
    frame = summary.assign(metric=named["metric"], k=named["k"].astype("int64"))
    first = [name for name in ("slice", "k") if name in frame]
    rest = [name for name in frame if name in COLUMNS and name not in first]
    return frame[[*first, *rest]]


def _shown_row(k: int, rows: Mapping[str, Any]) -> dict[str, object]:
    recall, p95, tokens = rows["recall"], rows[P95], rows[TOKENS]
    shown = {
        name: value_words(row["value"], row["counts"])
        for name, row in rows.items()
        if name not in _PRICES
    }
    return {
        "K": f"{k}",
        **shown,
        "95 % interval": interval_words(recall["low"], recall["high"]),
        "tokens": cost_cell(tokens),
        "p95": cost_cell(p95, " ms"),
        "n": f"{recall['n']}",
    }


def cost_cell(row: Mapping[str, Any], unit: str = "") -> str:
    """A cost with its unit, or why there is none."""
    if row["source"] in (FROM_RUN, MEASURED) and not pd.isna(row["value"]):
        return f"{row['value']:,.0f}{unit}"
    return str(row["source"]) if row["source"] != FROM_RUN else NOT_OBSERVED
