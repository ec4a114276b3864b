"""What a comparison found: which cases changed sides, and how far figures moved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from ragwb import html
from ragwb.decide.chance import Flips, flips_of
from ragwb.decide.conditions import Conditions
from ragwb.decide.deltas import DELTA_COLUMNS, Sides, delta_rows, frame_of
from ragwb.decide.outcomes import Outcomes
from ragwb.decide.pairing import CHANGES, LeftOut
from ragwb.decide.patterns import Pattern
from ragwb.decide.wording import delta_table, words_of
from ragwb.errors import UsageError
from ragwb.measure.facts import TAG
from ragwb.measure.shown import json_row, text_rows
from ragwb.measure.statistics import RESAMPLES, SEED, holm

INTERVALS = (
    "95 % intervals of differences: percentile bootstrap over the pairs, "
    f"{RESAMPLES:,} resamples, seed {SEED}; p: exact McNemar"
)
FLIP_COLUMNS = ("slice", "n", *CHANGES, "p", "p_adjusted")
_SLICES = ("risk", "set", "mode", "access")
_SHOWN = ("metric", "baseline", "candidate", "difference", "95 % interval", "win/tie/loss", "n")


@dataclass(frozen=True, repr=False, eq=False)
class Comparison:
    """Two runs, case by case.

    Attributes:
        baseline, candidate: the two sides, at the same K.
        k: the cut of the results.
        pairs: a row a pair in the candidate's order: case_id; question, risk, access, permission,
            mode, weight, tier, set, tags.<name>; change (fixed, broken, still_failing,
            still_passing), null where a side is not known to pass or fail; unstable;
            baseline_failed, candidate_failed; then <metric>_before and <metric>_after.
        metrics: figures of either side.
        left_out: every other case of either side, with its reason.
        conditions: how the two were made differently.
        patterns: what the figures together look like.
        notes: what else must be known to read it, in sentences.
    """

    baseline: Outcomes
    candidate: Outcomes
    k: int
    pairs: pd.DataFrame
    metrics: tuple[str, ...]
    left_out: tuple[LeftOut, ...]
    conditions: Conditions
    patterns: tuple[Pattern, ...] = ()
    notes: tuple[str, ...] = ()
    _kept: dict[str | None, pd.DataFrame] = field(default_factory=dict, init=False)

    @property
    def n(self) -> int:
        """Number of pairs."""
        return len(self.pairs)

    @property
    def fixed(self) -> tuple[str, ...]:
        """Cases that failed before and pass now, those that weigh most first."""
        return self._changed("fixed")

    @property
    def broken(self) -> tuple[str, ...]:
        """Cases that passed before and fail now.

        Those of high risk first, then those of permissions, then those of a weight above 1.
        """
        return self._changed("broken")

    @property
    def still_failing(self) -> tuple[str, ...]:
        """Cases that fail on both sides, those that weigh most first."""
        return self._changed("still_failing")

    @property
    def still_passing(self) -> tuple[str, ...]:
        """Cases that pass on both sides, those that weigh most first."""
        return self._changed("still_passing")

    @property
    def unstable(self) -> tuple[str, ...]:
        """Pairs that fail in some repeats of a side and pass in others."""
        return tuple(self.pairs.loc[self.pairs["unstable"], "case_id"])

    @property
    def changed_conditions(self) -> list[dict[str, Any]]:
        """The fields of the manifests that differ: field, baseline, candidate."""
        return [
            {"field": one.field, "baseline": one.baseline, "candidate": one.candidate}
            for one in self.conditions.changes
        ]

    @property
    def confounded(self) -> bool:
        """Whether several conditions changed, so that no figure can be credited to one."""
        return self.conditions.confounded

    @property
    def unmatched(self) -> tuple[str, ...]:
        """Cases that only one side has, or of which the two expect different things."""
        return tuple(one.case_id for one in self.left_out if one.why == "unmatched")

    @cached_property
    def is_same_run(self) -> bool:
        """Whether both sides are one run."""
        before, after = self.baseline.manifest, self.candidate.manifest
        if before is None or after is None:
            return False
        return before.run_id == after.run_id and before.content_hash == after.content_hash

    def with_patterns(self, patterns: tuple[Pattern, ...]) -> Comparison:
        """The same comparison with what was recognised in it; its deltas are not made again."""
        made = replace(self, patterns=patterns)
        made._kept.update(self._kept)
        return made

    def deltas(self, by: str | None = None) -> pd.DataFrame:
        """How far each figure moved, over the pairs for which both sides have it.

        Args:
            by: a field to slice by, one of `fields`; by default all pairs together.

        Returns:
            A row a figure, p50_ms, p95_ms and p99_ms last: metric; baseline, candidate: means over
            the same pairs (a precision of refusals: over what each side refused); delta, with the
            ends low and high of its 95 % interval, null where there are too few pairs; n,
            n_excluded: pairs with it, and without; win, tie, loss: pairs that the candidate does
            better, alike and worse (of latencies: by their means over the repeats); p: exact
            McNemar of a figure that is 0 or 1 for every case, else null; direction, "higher" or
            "lower" is better; counts, such as 8/10 → 9/10, of a rate of up to 100 pairs; weighted:
            the delta by traffic weight, null when all are 1. With `by`: slice first, null for cases
            without the tag, and p_adjusted last, Holm's over the slices.

        Raises:
            UsageError: the field is not there; the message lists those that are.
        """
        return self._deltas(by).copy()

    def delta(self, metric: str) -> dict[str, Any] | None:
        """The row of `deltas` of one figure; None when there is none."""
        deltas = self._deltas()
        rows = deltas[deltas["metric"] == metric].to_dict("records")
        return json_row(rows[0]) if rows else None

    def flips(self) -> Flips:
        """How many cases changed sides, and whether chance explains them."""
        return _flips(self.pairs)

    def flips_by(self, by: str) -> pd.DataFrame:
        """The cases of each slice that changed sides.

        Args:
            by: one of `fields`.

        Returns:
            slice, null for cases without the tag; n: pairs known to pass or fail; broken, fixed,
            still_failing, still_passing; p: exact McNemar; p_adjusted: Holm's over the slices.

        Raises:
            UsageError: the field is not there.
        """
        rows: list[dict[str, Any]] = []
        for label, pairs in self._slices(by):
            counts = pairs["change"].value_counts()
            n_each: dict[str, Any] = {name: int(counts.get(name, 0)) for name in CHANGES}
            flips = _flips(pairs)
            rows.append({"slice": label, "n": flips.n, **n_each, "p": flips.p})
        adjusted = holm([row["p"] for row in rows])
        rows = [{**row, "p_adjusted": p} for row, p in zip(rows, adjusted, strict=True)]
        return frame_of(rows, FLIP_COLUMNS)

    def fields(self) -> list[str]:
        """What pairs can be sliced by and tells them apart: tags first, then risk and set."""
        return [name for name in self._fields if self.pairs[name].nunique(dropna=False) > 1]

    def in_words(self) -> tuple[str, ...]:
        """The comparison in sentences: what changed sides, what may be credited, what it costs.

        One line of text each, not escaped for HTML or Markdown.
        """
        return words_of(self)

    def to_dict(self) -> dict[str, Any]:
        """The JSON of `compare`; null where undefined."""
        return {
            "baseline": self.baseline.name,
            "candidate": self.candidate.name,
            "k": self.k,
            "n": self.n,
            "summary": list(self.in_words()),
            "changed_conditions": self.changed_conditions,
            "confounded": self.confounded,
            "unmatched": list(self.unmatched),
            "fixed": list(self.fixed),
            "broken": list(self.broken),
            "still_failing": list(self.still_failing),
            "still_passing": list(self.still_passing),
            "unstable": list(self.unstable),
            "left_out": [one.to_dict() for one in self.left_out],
            "deltas": [json_row(row) for row in self._deltas().to_dict("records")],
            "flips": self.flips().to_dict(),
            "slices": {
                name: [json_row(row) for row in self.flips_by(name).to_dict("records")]
                for name in self.fields()
            },
            "patterns": [pattern.to_dict() for pattern in self.patterns],
        }

    def __repr__(self) -> str:
        rows = delta_table(self._deltas())
        return "\n".join([self._title(), *self.in_words(), *text_rows(rows, _SHOWN), INTERVALS])

    def _repr_html_(self) -> str:
        words = "".join(html.tag("p", html.escape(line)) for line in self.in_words())
        rows = delta_table(self._deltas())
        return words + html.table(
            rows, _SHOWN, numeric=_SHOWN[1:], caption=f"{self._title()}. {INTERVALS}"
        )

    def _title(self) -> str:
        before, after = html.plain(self.baseline.name), html.plain(self.candidate.name)
        return f"{before} against {after}: {self.n} pairs at K {self.k}"

    @property
    def _fields(self) -> list[str]:
        names = [str(name) for name in self.pairs.columns]
        return [*(name for name in names if name.startswith(TAG)), *_SLICES]

    def _changed(self, change: str) -> tuple[str, ...]:
        pairs = self.pairs[self.pairs["change"] == change]
        ranks = np.select(
            [pairs["risk"] == "high", pairs["permission"], pairs["weight"] > 1], [0, 1, 2], 3
        )
        return tuple(pairs["case_id"].iloc[np.argsort(ranks, kind="stable")])

    def _slices(self, by: str) -> Iterator[tuple[str | None, pd.DataFrame]]:
        if by not in self._fields:
            known = ", ".join(html.plain(name, width=60) for name in self._fields)
            raise UsageError(f"no slice {html.plain(by, width=60)!r}; there are: {known}")
        for label, pairs in self.pairs.groupby(by, sort=True, dropna=False):
            yield (None if pd.isna(label) else str(label)), pairs

    def _deltas(self, by: str | None = None) -> pd.DataFrame:
        """The deltas of all pairs, or by a field, made once."""
        if by not in self._kept:
            self._kept[by] = self._all_deltas() if by is None else self._sliced_deltas(by)
        return self._kept[by]

    def _all_deltas(self) -> pd.DataFrame:
        return frame_of(delta_rows(self._sides(self.pairs)), DELTA_COLUMNS)

    def _sliced_deltas(self, by: str) -> pd.DataFrame:
        rows = [
            {"slice": label, **row}
            for label, pairs in self._slices(by)
            for row in delta_rows(self._sides(pairs))
        ]
        frame = frame_of(rows, ("slice", *DELTA_COLUMNS))
        return frame.assign(p_adjusted=_adjusted(frame))

    def _sides(self, pairs: pd.DataFrame) -> Sides:
        return Sides(pairs, self.metrics, self.baseline, self.candidate)


def _flips(pairs: pd.DataFrame) -> Flips:
    change = pairs["change"]
    n = int(change.notna().sum())
    return flips_of(int((change == "fixed").sum()), int((change == "broken").sum()), n)


def _adjusted(frame: pd.DataFrame) -> pd.Series[Any]:
    """Holm's p-values of each figure over its slices; null where it has none."""
    tested = frame[frame["p"].notna()]
    parts = [
        pd.Series(holm(rows["p"].tolist()), index=rows.index)
        for _, rows in tested.groupby("metric")
    ]
    return pd.concat(parts).reindex(frame.index) if parts else pd.Series(np.nan, frame.index)
