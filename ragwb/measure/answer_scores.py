"""The scores of answers: a row a case, and means, intervals and slices as views of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragwb import html
from ragwb.errors import UsageError
from ragwb.measure.answer_figures import MODES, AnswerOutcome
from ragwb.measure.chains import STEPS
from ragwb.measure.counted import CaseCounts
from ragwb.measure.facts import TAG
from ragwb.measure.rules import HARD_REASONS
from ragwb.measure.shown import (
    FIGURE_COLUMNS,
    figure_rows,
    json_number,
    json_value,
    text_rows,
    weighted_mean,
)
from ragwb.measure.statistics import Interval, bootstrap_means, bootstrap_ratio, wilson
from ragwb.measure.summary import INTERVALS, SLICES, SMALL_N, SUMMARY_COLUMNS

FIGURES = (
    "correct_rate",
    "mode_accuracy",
    "refusal_precision",
    "refusal_recall",
    "over_refusal_rate",
    "refusal_reason_accuracy",
    "clarify_precision",
    "clarify_recall",
    "citation_validity",
    "citation_precision",
    "citation_recall",
    "citation_support",
    "claim_coverage",
    "forbidden_claims",
    "unsupported_rate",
    "hard_failure_rate",
    "accepted",
    "evidence_conflict",
    *(f"chain_{step}" for step in STEPS),
)
"""The figures of answers, in the order in which they are shown."""

LOWER_IS_BETTER = frozenset(
    {
        *("over_refusal_rate", "forbidden_claims", "unsupported_rate", "hard_failure_rate"),
        "evidence_conflict",
    }
)
SHARED = ("refusal_precision", "clarify_precision", "refusal_reason_accuracy")
"""Figures whose denominator is what the system did: each run has cases of its own in them."""

OTHER = "none of them"
"""Column of the confusion for answers that are of no mode."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, repr=False, eq=False)
class AnswerScores(CaseCounts):
    """The scores of a run's answers.

    Attributes:
        frame: a row a case, in the order of the golden set: case_id, status (scored, excluded,
            error), reason, expected (mode), tier, set, risk, weight, a column tags.<name> a tag,
            n_repeats, then each of `FIGURES` as its mean over the repeats in which it is defined.
            n_failed: repeats with a wrong mode, a required claim missing or a hard rule broken;
            failed: any; failed_for_comparison: more than half, or any of a high-risk case.
        results: a row a (case_id, repeat) that answered: expected, mode, the figures.
        outcomes: all that was found in each answer, by (case id, repeat).
        repeats: passes fixed before the run.
        pack: name of the rule pack.
        run_id: the run, or None for results that are no run.
    """

    frame: pd.DataFrame
    results: pd.DataFrame
    outcomes: Mapping[tuple[str, int], AnswerOutcome]
    repeats: int = 1
    pack: str = ""
    run_id: str | None = None

    def summary(self) -> pd.DataFrame:
        """The figures over the scored cases, one row a figure.

        Returns:
            metric; value, null when undefined; n: cases that it is defined for; n_excluded: all
            others but errors; n_errors; low, high: 95 % interval, Wilson of a rate, else a
            bootstrap over cases; weighted: by traffic weight, null when all weights are 1; counts
            such as 9/10 for a rate of up to 100 cases, else null; method of the interval.
        """
        return self._summary.copy()

    @cached_property
    def _summary(self) -> pd.DataFrame:
        rows = list(self._rows(self._scored, self.n_excluded, self.n_errors))
        return pd.DataFrame(rows, columns=list(SUMMARY_COLUMNS))

    def confusion(self) -> pd.DataFrame:
        """Expected modes by observed modes, over the results of scored cases.

        Returns:
            A row a mode that is expected, index expected; columns answer, refuse, clarify and
            "none of them": number of results, one a case and repeat.
        """
        results = self._of_scored()
        observed = results["mode"].where(results["mode"].isin(MODES), OTHER)
        table = pd.crosstab(results["expected"], observed)
        table = table.reindex(index=list(MODES), columns=[*MODES, OTHER], fill_value=0)
        return table.rename_axis(index="expected", columns="observed")

    def fields(self) -> list[str]:
        """What `by` can slice by and tells the cases apart."""
        names = [str(name) for name in self.frame.columns]
        fields = [*(name for name in names if name.startswith(TAG)), "expected", *SLICES]
        return [name for name in fields if self.frame[name].nunique(dropna=False) > 1]

    def by(self, field: str) -> pd.DataFrame:
        """The summary of each slice of the scored cases; by tier, of every tier's cases.

        Args:
            field: tags.<name>, expected, risk, set or tier.

        Returns:
            slice, null for cases without the tag, then the columns of `summary`.

        Raises:
            UsageError: the field is not there; the message lists those that are.
        """
        names = [str(name) for name in self.frame.columns]
        fields = [n for n in names if n in ("expected", *SLICES) or n.startswith(TAG)]
        if field not in fields:
            raise UsageError(f"no slice {field!r}; there are: {', '.join(fields)}")
        rows = []
        for name, cases in self.frame.groupby(field, sort=True, dropna=False):
            status = cases["status"]
            has_figures = cases["correct_rate"].notna() if field == "tier" else status == "scored"
            inside = cases[has_figures]
            n_errors = int((status == "error").sum())
            left_out = len(cases) - len(inside) - n_errors
            label = None if pd.isna(name) else name
            rows += [{"slice": label, **row} for row in self._rows(inside, left_out, n_errors)]
        return pd.DataFrame(rows, columns=["slice", *SUMMARY_COLUMNS])

    def by_repeat(self) -> pd.DataFrame:
        """How far the repeats lie apart.

        Returns:
            metric; mean, sd (n - 1) and worst of the figure in each repeat over the scored cases;
            sd is null with fewer than two repeats. Of `LOWER_IS_BETTER` the worst is the highest.
        """
        means = self._of_scored().groupby("repeat")[list(FIGURES)].mean()
        rows = []
        for name in FIGURES:
            values = means[name]
            worst = values.max() if name in LOWER_IS_BETTER else values.min()
            rows.append({"metric": name, "mean": values.mean(), "sd": values.std(), "worst": worst})
        return pd.DataFrame(rows, columns=["metric", "mean", "sd", "worst"])

    def claims(self) -> pd.DataFrame:
        """Every claim of every case and whether it is stated.

        Returns:
            A row a (case_id, repeat) and claim: kind (required, forbidden), index, claim, stated
            (null when not decided), how (variant, pattern, values, judge), start, end in the text.
        """
        names = ("kind", "index", "claim", "stated", "how", "start", "end")
        return self._exploded("claims", names)

    def failures(self) -> pd.DataFrame:
        """Every hard rule that an answer breaks, of cases of any tier, the gravest first.

        Returns:
            A row a failure: case_id, repeat, rule, reason, where, start, end, proof.
        """
        names = ("rule", "reason", "where", "start", "end", "proof")
        frame = self._exploded("failures", names)
        rank = frame["reason"].map(lambda reason: HARD_REASONS.index(reason))
        return frame.loc[rank.sort_values(kind="stable").index].reset_index(drop=True)

    def chains(self) -> pd.DataFrame:
        """Every evidence group of every case and how far it got.

        Returns:
            A row a (case_id, repeat) and group: index, hop, there, retrieved, in_context, cited
            (null where not observed).
        """
        return self._exploded("hops", ("index", "hop", *STEPS))

    def failed_case_ids(self) -> list[str]:
        """Scored cases that failed in any repeat."""
        failed = self.frame[(self.frame["status"] == "scored") & self.frame["failed"]]
        ids: list[str] = failed["case_id"].tolist()
        return ids

    def hard_failed_case_ids(self) -> list[str]:
        """Scored cases of which an answer breaks a hard rule in any repeat."""
        failed = self._scored["hard_failure_rate"] > 0
        ids: list[str] = self._scored.loc[failed, "case_id"].tolist()
        return ids

    def to_dict(self) -> dict[str, Any]:
        """The JSON of the scores: counts, figures, confusion, cases; null where undefined."""
        summary = self._summary
        values = zip(summary["metric"], summary["value"], strict=True)
        failures = self.failures().groupby("case_id", sort=False)
        broken = {case_id: rows.to_dict("records") for case_id, rows in failures}
        return {
            **({} if self.run_id is None else {"run_id": self.run_id}),
            "n_cases": self.n_cases,
            "n_scored": self.n_scored,
            "n_excluded": self.n_excluded,
            "n_errors": self.n_errors,
            "metrics": {name: json_number(value) for name, value in values},
            "confusion": {
                str(expected): {str(mode): int(n) for mode, n in row.items()}
                for expected, row in self.confusion().iterrows()
            },
            "failed_case_ids": self.failed_case_ids(),
            "cases": [
                {name: json_value(row[name]) for name in ("case_id", "status", "reason")}
                | {name: json_number(row[name]) for name in FIGURES}
                | {"hard_failures": _json_rows(broken.get(row["case_id"], []))}
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
        name = f"Answers of {html.plain(self.run_id)}" if self.run_id else "Answers"
        return (
            f"{name}: {self.n_cases} cases = {self.n_scored} scored + {self.n_excluded} excluded "
            f"+ {self.n_errors} errors, {len(self.hard_failed_case_ids())} break a hard rule"
        )

    @property
    def _scored(self) -> pd.DataFrame:
        return self.frame[self.frame["status"] == "scored"]

    def _of_scored(self) -> pd.DataFrame:
        return self.results[self.results["case_id"].isin(self._scored["case_id"])]

    def _exploded(self, part: str, names: tuple[str, ...]) -> pd.DataFrame:
        rows = [
            {"case_id": case_id, "repeat": repeat, **asdict(entry)}
            for (case_id, repeat), outcome in self.outcomes.items()
            for entry in getattr(outcome, part)
        ]
        frame = pd.DataFrame(rows, columns=["case_id", "repeat", *names])
        places = {name: "Int64" for name in ("start", "end") if name in names}
        return frame.astype(places)

    def _rows(
        self, cases: pd.DataFrame, n_excluded: int, n_errors: int
    ) -> Iterator[dict[str, object]]:
        weights = cases["weight"].to_numpy(dtype=np.float64)
        for name in FIGURES:
            values = cases[name].to_numpy(dtype=np.float64)
            known = ~np.isnan(values)
            shares = self._shares(name, cases["case_id"][known])
            yield {
                "metric": name,
                **_figure_row(values[known], shares),
                "weighted": weighted_mean(values[known], weights[known]),
                "n_excluded": n_excluded + int((~known).sum()),
                "n_errors": n_errors,
            }

    @cached_property
    def shares(self) -> pd.DataFrame | None:
        """The share of its repeats with which a case counts in a figure of `SHARED`.

        A case that refused in one of five repeats counts a fifth in the precision of refusing.

        Returns:
            A column each, index case_id; None when every case counts whole.
        """
        if self.repeats == 1:
            return None
        grouped = self.results.groupby("case_id")
        shares = grouped[list(SHARED)].count().div(grouped.size(), axis=0)
        return shares.reindex(self.frame["case_id"])

    def _shares(self, name: str, case_ids: pd.Series[str]) -> Floats:
        if self.shares is None or name not in self.shares:
            return np.ones(len(case_ids), dtype=np.float64)
        return np.asarray(self.shares[name].reindex(case_ids), dtype=np.float64)


def _figure_row(values: Floats, shares: Floats) -> dict[str, object]:
    n = len(values)
    is_rate = bool(np.isin(values, (0.0, 1.0)).all() and (shares == 1).all())
    interval: Interval | None
    if is_rate:
        interval = wilson(int(values.sum()), n)
    elif (shares == 1).all():
        interval = bootstrap_means(values)[0]
    else:
        interval = bootstrap_ratio(values * shares, shares)
    return {
        "value": float(np.average(values, weights=shares)) if n else np.nan,
        "n": n,
        "low": interval.low if interval else np.nan,
        "high": interval.high if interval else np.nan,
        "counts": f"{int(values.sum())}/{n}" if is_rate and 0 < n <= SMALL_N else None,
        "method": interval.method if interval else None,
    }


def _json_rows(rows: list[dict[Any, Any]]) -> list[dict[str, Any]]:
    return [
        {str(name): json_value(value) for name, value in row.items() if name != "case_id"}
        for row in rows
    ]
