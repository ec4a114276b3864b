"""The scores of a run: a row a case, and means, intervals and slices as views of those rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragwb import html
from ragwb.errors import MetricError, UsageError
from ragwb.measure.counted import CaseCounts
from ragwb.measure.metric import HEADLINE, Metric
from ragwb.measure.shown import (
    FIGURE_COLUMNS,
    figure_rows,
    json_number,
    json_value,
    text_rows,
    weighted_mean,
)
from ragwb.measure.statistics import RESAMPLES, SEED, Interval, bootstrap_means, wilson

SMALL_N = 100
"""Up to so many cases a rate is written with its counts."""

INTERVALS = (
    "95 % intervals: Wilson for rates, else a percentile bootstrap over cases, "
    f"{RESAMPLES:,} resamples, seed {SEED}"
)

SUMMARY_COLUMNS = (
    "metric",
    "value",
    "n",
    "n_excluded",
    "n_errors",
    "low",
    "high",
    "weighted",
    "counts",
    "method",
)
SLICES = ("risk", "set", "tier")


@dataclass(frozen=True, repr=False, eq=False)
class Scores(CaseCounts):
    """The retrieval scores of a run.

    Attributes:
        frame: a row a case, in the order of the golden set: case_id, status (scored, excluded,
            error), reason, tier, set, risk, weight, a column tags.<name> a tag, n_repeats, then the
            figures at each K as means over the repeats. failed@K: any repeat failed; n_failed@K:
            how many did; failed_for_comparison@K: more than half did, or any of a high-risk case.
            A case of a tier other than blocking is excluded and keeps its figures.
        results: a row a (case_id, repeat) that answered, with the figures of that repeat.
        ks: cutoffs, ascending. A K beyond top_k is null: nothing beyond top_k was observed.
        top_k: what the service was asked for.
        repeats: passes fixed before the run.
        run_id: the run, or None for results that are no run.
    """

    frame: pd.DataFrame
    results: pd.DataFrame
    ks: tuple[int, ...]
    top_k: int
    repeats: int = 1
    run_id: str | None = None

    def summary(self) -> pd.DataFrame:
        """Macro means over the scored cases, one row a figure and K.

        Returns:
            metric; value in [0, 1], null when undefined or K is beyond top_k; n, n_excluded,
            n_errors; low, high: 95 % interval, Wilson of a rate, else a bootstrap over cases;
            weighted: the mean by traffic weight, null when all weights are 1; counts such as 9/10
            for a rate of up to 100 cases, else null; method of the interval.
        """
        return self._summary.copy()

    @cached_property
    def _summary(self) -> pd.DataFrame:
        scored = self.frame[self.frame["status"] == "scored"]
        rows = self._rows(scored, self.n_excluded, self.n_errors)
        return pd.DataFrame(rows, columns=list(SUMMARY_COLUMNS))

    def fields(self) -> list[str]:
        """What `by` can slice by and tells the cases apart: tags first, then risk, set, tier."""
        names = [str(name) for name in self.frame.columns]
        fields = [*(name for name in names if name.startswith("tags.")), *SLICES]
        return [name for name in fields if self.frame[name].nunique(dropna=False) > 1]

    def by(self, field: str) -> pd.DataFrame:
        """The summary of each slice of the scored cases; by tier, of every tier's cases.

        Args:
            field: tags.<name>, risk, set or tier.

        Returns:
            slice, null for cases without the tag, then the columns of `summary`; n_excluded and
            n_errors count the slice's own cases.

        Raises:
            UsageError: the field is not there; the message lists those that are.
        """
        names = [str(name) for name in self.frame.columns]
        fields = [name for name in names if name in SLICES or name.startswith("tags.")]
        if field not in fields:
            raise UsageError(f"no slice {field!r}; there are: {', '.join(fields)}")
        rows = []
        for name, cases in self.frame.groupby(field, sort=True, dropna=False):
            status = cases["status"]
            inside = cases[_has_figures(cases) if field == "tier" else status == "scored"]
            n_errors = int((status == "error").sum())
            left_out = len(cases) - len(inside) - n_errors
            label = None if pd.isna(name) else name
            rows += [{"slice": label, **row} for row in self._rows(inside, left_out, n_errors)]
        return pd.DataFrame(rows, columns=["slice", *SUMMARY_COLUMNS])

    def by_repeat(self) -> pd.DataFrame:
        """How far the repeats of the run lie apart.

        Returns:
            metric; mean, sd (n - 1) and worst of the macro means of each repeat over the scored
            cases; sd is null with fewer than two repeats. The worst duplicate rate is the highest.
        """
        scored = self.frame.loc[self.frame["status"] == "scored", "case_id"]
        inside = self.results[self.results["case_id"].isin(scored)]
        rows = []
        for metric in self._metrics():
            means = inside.groupby("repeat")[metric.column].mean()
            worst = means.max() if metric.name == "duplicate_rate" else means.min()
            row = {"metric": str(metric), "mean": means.mean(), "sd": means.std(), "worst": worst}
            rows.append(row)
        return pd.DataFrame(rows, columns=["metric", "mean", "sd", "worst"])

    def failed_case_ids(self, k: int | None = None) -> list[str]:
        """Scored cases whose recall is below 1 in any repeat, at k or at top K.

        Raises:
            MetricError: the scores were not made at that K.
        """
        return self._case_ids("failed", k, self.frame["status"] == "scored")

    def forbidden_case_ids(self, k: int | None = None) -> list[str]:
        """Blocking cases that returned a forbidden chunk in any repeat, at k or at top K.

        Cases without evidence groups are among them: a refusal must not leak either.

        Raises:
            MetricError: the scores were not made at that K.
        """
        answered = self.frame["status"] != "error"
        return self._case_ids("forbidden", k, (self.frame["tier"] == "blocking") & answered)

    def failed_repeats(self, k: int) -> dict[str, int]:
        """The first repeat in which each failing case failed at k.

        Raises:
            MetricError: the scores were not made at that K.
        """
        self._check_k(k)
        failed = self.results[self.results[f"failed@{k}"].fillna(False).astype(bool)]
        first = failed.groupby("case_id", sort=False)["repeat"].min()
        return {str(case_id): int(repeat) for case_id, repeat in first.items()}

    def to_dict(self) -> dict[str, Any]:
        """The JSON of `score`: counts, headline means, and every case; null where undefined."""
        metrics = [metric for metric in self._metrics() if metric.column in self.frame]
        summary = self.summary()
        return {
            **({} if self.run_id is None else {"run_id": self.run_id}),
            "n_cases": self.n_cases,
            "n_scored": self.n_scored,
            "n_excluded": self.n_excluded,
            "n_errors": self.n_errors,
            "metrics": {
                name: json_number(value)
                for name, value in zip(summary["metric"], summary["value"], strict=True)
            },
            "cases": [
                {name: json_value(row[name]) for name in ("case_id", "status", "reason")}
                | {str(metric): json_number(row[metric.column]) for metric in metrics}
                for row in self.frame.to_dict("records")
            ],
        }

    def __repr__(self) -> str:
        rows = figure_rows(self._summary)
        return "\n".join([self._title(), *text_rows(rows, FIGURE_COLUMNS), INTERVALS])

    def _repr_html_(self) -> str:
        caption = f"{self._title()}. {INTERVALS}"
        rows = figure_rows(self._summary)
        return html.table(rows, FIGURE_COLUMNS, numeric=FIGURE_COLUMNS[1:], caption=caption)

    def _title(self) -> str:
        name = f"Scores of {html.plain(self.run_id)}" if self.run_id else "Scores"
        return (
            f"{name}: {self.n_cases} cases = {self.n_scored} scored + {self.n_excluded} excluded "
            f"+ {self.n_errors} errors, top K {self.top_k}"
        )

    def _check_k(self, k: int) -> None:
        if k not in self.ks:
            raise MetricError(f"no scores at K {k}: there are {', '.join(map(str, self.ks))}")

    def _case_ids(self, name: str, k: int | None, cases: pd.Series[bool]) -> list[str]:
        k = self.top_k if k is None else k
        self._check_k(k)
        found = self.frame[f"{name}@{k}"].astype("float64").fillna(0) > 0
        ids: list[str] = self.frame.loc[cases & found, "case_id"].tolist()
        return ids

    def _metrics(self) -> list[Metric]:
        columns = [str(name) for name in self.results.columns]
        extra = {name.partition("@")[0]: None for name in columns if "@" in name}
        known = ("hit", "forbidden", "failed", *HEADLINE)
        names = [*HEADLINE, *(name for name in extra if name not in known)]
        return [Metric(name, k) for name in names for k in self.ks]

    def _rows(
        self, cases: pd.DataFrame, n_excluded: int, n_errors: int
    ) -> Iterator[dict[str, object]]:
        metrics = [metric for metric in self._metrics() if metric.column in cases]
        values = [cases[metric.column].to_numpy(dtype=np.float64) for metric in metrics]
        weights = cases["weight"].to_numpy(dtype=np.float64)
        means = _bootstrapped(values)
        for metric, column, interval in zip(metrics, values, means, strict=True):
            known = ~np.isnan(column)
            yield {
                "metric": str(metric),
                **_mean_row(metric, column[known], interval),
                "weighted": weighted_mean(column[known], weights[known]),
                # A figure that is undefined for a scored case leaves it out of this mean alone.
                "n_excluded": n_excluded + int((~known).sum()),
                "n_errors": n_errors,
            }


def _mean_row(
    metric: Metric, values: npt.NDArray[np.float64], interval: Interval | None
) -> dict[str, object]:
    n = len(values)
    is_rate = metric.name == "hit_rate" and bool(np.isin(values, (0.0, 1.0)).all())
    if is_rate:
        interval = wilson(int(values.sum()), n)
    return {
        "value": float(values.mean()) if n else np.nan,
        "n": n,
        "low": interval.low if interval else np.nan,
        "high": interval.high if interval else np.nan,
        "counts": f"{int(values.sum())}/{n}" if is_rate and 0 < n <= SMALL_N else None,
        "method": interval.method if interval else None,
    }


def _bootstrapped(columns: Sequence[npt.NDArray[np.float64]]) -> list[Interval | None]:
    """Intervals of the means; columns without nulls are resampled together."""
    whole = [i for i, column in enumerate(columns) if not np.isnan(column).any()]
    intervals: list[Interval | None] = [None] * len(columns)
    if whole:
        together = bootstrap_means(np.column_stack([columns[i] for i in whole]))
        for i, interval in zip(whole, together, strict=True):
            intervals[i] = interval
    for i in set(range(len(columns))) - set(whole):
        intervals[i] = bootstrap_means(columns[i][~np.isnan(columns[i])])[0]
    return intervals


def _has_figures(cases: pd.DataFrame) -> pd.Series[bool]:
    tier = cases["reason"].fillna("").str.startswith("tier ") & (cases["n_repeats"] > 0)
    return (cases["status"] == "scored") | tier
