"""What a chunking sweep found: its points at equal K and at equal tokens, held side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pandas as pd

from ragwb import html
from ragwb.errors import UsageError
from ragwb.measure.listed import count
from ragwb.measure.shown import json_row, text_rows
from ragwb.measure.statistics import RESAMPLES, SEED
from ragwb.sweep.borders import Borders, Forbidden, borders_of, forbidden_of
from ragwb.sweep.cuts import Cut
from ragwb.sweep.effects import Uncredited, main_effects, uncredited
from ragwb.sweep.grid import Point, find_point, labels
from ragwb.sweep.pairing import (
    CUTTING,
    DELTA_COLUMNS,
    FLIP_COLUMNS,
    MOST_STARVED,
    RATES,
    case_figures,
    common_cases,
    delta_rows,
    flips,
    point_row,
)
from ragwb.sweep.results import PointResult
from ragwb.sweep.split import PARTS, Part, Split
from ragwb.sweep.wording import shown_columns, shown_rows, words_of

INTERVALS = (
    "95 % intervals: percentile bootstrap over cases, paired for differences, "
    f"{RESAMPLES:,} resamples, seed {SEED}; p: exact McNemar on fixed and broken, Holm over points"
)
EFFECT_METRICS = (*RATES, *CUTTING, "context_tokens")


@dataclass(frozen=True, repr=False, eq=False)
class ChunkingSweep:
    """The points of a chunking sweep on the same cases.

    Attributes:
        results: a point each, in the order of the grid; a failed one has an error.
        reference: the point that the others are held against.
        k: results at equal K. tokens: the budget at equal context tokens.
        part: the cases that its figures are over; with a split, those to report on by default.
        split: the cases to choose on and to report on; None when both are all cases.
        repeated: names of points that the grid holds more than once.
        notes: what else must be known to read it, in sentences.
    """

    results: tuple[PointResult, ...]
    reference: Point
    k: int
    tokens: int
    part: Part = "all"
    split: Split | None = None
    repeated: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    _kept: dict[tuple[str, str, Part], pd.DataFrame] = field(default_factory=dict)

    @property
    def cuts(self) -> tuple[Cut, Cut]:
        """Where results are cut: at equal K, and at equal context tokens."""
        return Cut(k=self.k), Cut(tokens=self.tokens)

    @cached_property
    def measured(self) -> tuple[PointResult, ...]:
        """The points that did not fail."""
        return tuple(result for result in self.results if result.error is None)

    @property
    def failed(self) -> tuple[PointResult, ...]:
        """The points that failed, each with its error."""
        return tuple(result for result in self.results if result.error is not None)

    @property
    def case_ids(self) -> tuple[str, ...]:
        """The cases that all figures are over: scored at every point, and of the part reported."""
        return self._part_ids(self.part)

    @property
    def left_out(self) -> dict[str, str]:
        """By id the cases that some point has not scored, in no figure, each with the reason."""
        return dict(self._common[1])

    @cached_property
    def labels(self) -> dict[Point, str]:
        """Each point by the values in which the points of the sweep differ, for people."""
        return labels([result.point for result in self.results])

    def on(self, part: Part) -> ChunkingSweep:
        """The same sweep with its figures over another part of the cases.

        Raises:
            UsageError: it has no split, or the part is not known.
        """
        if part not in PARTS:
            raise UsageError(f"part {part!r}: one of {', '.join(PARTS)}")
        if part != "all" and self.split is None:
            raise UsageError("this sweep has no split: make one with --held-out")
        return replace(self, part=part)

    def result(self, point: Point | str) -> PointResult:
        """The result of a point, by its name or the beginning of it.

        Raises:
            UsageError: there is no such point.
        """
        points = [result.point for result in self.results]
        wanted = point if isinstance(point, Point) else find_point(points, point)
        return self.results[points.index(wanted)]

    def cases(self, point: Point | str, cut: Cut) -> pd.DataFrame:
        """The figures of each case of a point at a cut (see `pairing.case_figures`).

        Raises:
            UsageError: there is no such point, or it failed.
        """
        result = self.result(point)
        if result.error is not None:
            raise UsageError(f"point {self.labels[result.point]} failed: {result.error}")
        return self._cases(result, cut).copy()

    def frame(self, cut: Cut | None = None) -> pd.DataFrame:
        """A row a point, failed ones too; by default at equal K.

        Returns:
            point; strategy, size, overlap, embedder, mode, rerank; n cases; means over them of
            `METRICS`, null where undefined: context_tokens and results count what is delivered;
            forbidden_cases, in which something came back that must not; split_passages of passages;
            chunks, chunk_tokens (mean), index_bytes; build_ms, of which vectors_computed of vectors
            were computed and the rest were kept; p50_ms, p95_ms of a question; run, its folder;
            error.
        """
        cut = cut or self.cuts[0]
        rows = [
            point_row(result, None if result.error is not None else self._cases(result, cut))
            for result in self.results
        ]
        return pd.DataFrame(rows)

    def deltas(self, cut: Cut | None = None) -> pd.DataFrame:
        """How far each point lies from the reference, over the same cases.

        Returns:
            A row a point and figure, as `DELTA_COLUMNS`; none when the reference failed.
        """
        return self._once("deltas", cut or self.cuts[0], self._make_deltas).copy()

    def changes(self, cut: Cut | None = None) -> pd.DataFrame:
        """The cases that each point fixes and breaks against the reference, by id.

        A case passes when its recall is 1 and nothing came back that must not. Returns
        `FLIP_COLUMNS`; none when the reference failed.
        """
        return self._once("changes", cut or self.cuts[0], self._make_changes).copy()

    def effects(self, cut: Cut | None = None) -> pd.DataFrame:
        """What each factor does, from points that differ in it alone (see `effects.main_effects`).

        By default at equal context tokens, where a larger chunk buys nothing by its size. A point
        that a budget leaves without any result in more than a tenth of the cases shows nothing of a
        factor, and stands in no pair.
        """
        return self._once("effects", cut or self.cuts[1], self._make_effects).copy()

    def uncredited(self) -> tuple[Uncredited, ...]:
        """Factors, or values of them, that no pair of points can be credited for."""
        return uncredited([result.point for result in self.measured])

    def starved(self, cut: Cut) -> dict[Point, list[str]]:
        """By point the cases to which a budget delivers nothing: their first result is over it."""
        found = {
            result.point: (cases := self._cases(result, cut)).index[cases["starved"]].tolist()
            for result in self.measured
        }
        return {point: ids for point, ids in found.items() if ids}

    def borders(self, case_id: str, *points: Point | str) -> list[Borders]:
        """A case's passages over the chunk borders of points, by default of all that are measured.

        Raises:
            UsageError: no such case or point, or the case names no passage.
        """
        return borders_of(case_id, self._drawn(points))

    def forbidden(self, case_id: str, *points: Point | str) -> dict[str, tuple[Forbidden, ...]]:
        """By name of a point what it returned for a case although it must not be there.

        Points and errors are those of `borders`; a point that returned nothing of the kind is not
        among them.
        """
        found = {result.point.name: forbidden_of(case_id, result) for result in self._drawn(points)}
        return {name: unwanted for name, unwanted in found.items() if unwanted}

    def _drawn(self, points: Sequence[Point | str]) -> list[PointResult]:
        """The results of some points, by default of all that are measured."""
        results = [self.result(point) for point in points] or list(self.measured)
        lost = next((result for result in results if result.error is not None), None)
        if lost is not None:
            raise UsageError(f"point {self.labels[lost.point]} failed: {lost.error}")
        return results

    def in_words(self) -> tuple[str, ...]:
        """The sweep in sentences, one line of text each, not escaped for HTML or Markdown."""
        return words_of(self)

    def to_dict(self) -> dict[str, Any]:
        """The JSON of `sweep chunking`; null where undefined."""
        return {
            "reference": self.reference.name,
            "k": self.k,
            "tokens": self.tokens,
            "part": self.part,
            "n": len(self.case_ids),
            "summary": list(self.in_words()),
            "split": None
            if self.split is None
            else {
                "seed": self.split.seed,
                "by": self.split.by,
                "development": list(self.split.development),
                "held_out": list(self.split.held_out),
            },
            "left_out": [{"case_id": i, "reason": why} for i, why in self.left_out.items()],
            "repeated": list(self.repeated),
            "failed": [{"point": r.point.name, "error": r.error} for r in self.failed],
            "cuts": {cut.key: self._cut_dict(cut) for cut in self.cuts},
            "not_credited": [{"factor": u.factor, "reason": u.reason} for u in self.uncredited()],
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        lines = [self._title(), *self.in_words()]
        for cut in self.cuts:
            rows = self.shown(cut)
            lines += ["", f"at {cut}", *text_rows(rows, shown_columns(rows))]
        return "\n".join([*lines, INTERVALS])

    def _repr_html_(self) -> str:
        words = "".join(html.tag("p", html.escape(line)) for line in self.in_words())
        tables = [
            html.table(
                rows := self.shown(cut),
                columns := shown_columns(rows),
                numeric=columns[1:],
                caption=f"{self._title()}, at {cut}. {INTERVALS}",
            )
            for cut in self.cuts
        ]
        return words + "".join(tables)

    def shown(self, cut: Cut) -> list[dict[str, object]]:
        """A row a measured point as people read it: recall, its difference, cases, tokens."""
        return shown_rows(self, cut)

    def _title(self) -> str:
        return (
            f"{count(len(self.results), 'point')} on the same {count(len(self.case_ids), 'case')}"
        )

    def _cut_dict(self, cut: Cut) -> dict[str, Any]:
        frames = {
            "points": self.frame(cut),
            "deltas": self.deltas(cut),
            "changes": self.changes(cut),
            "effects": self.effects(cut),
        }
        return {name: [json_row(r) for r in f.to_dict("records")] for name, f in frames.items()}

    @cached_property
    def _common(self) -> tuple[list[str], dict[str, str]]:
        return common_cases(self.measured)

    def _part_ids(self, part: Part) -> tuple[str, ...]:
        ids = self._common[0]
        if part == "all" or self.split is None:
            return tuple(ids)
        wanted = set(getattr(self.split, part))
        return tuple(case_id for case_id in ids if case_id in wanted)

    def _cases(self, result: PointResult, cut: Cut) -> pd.DataFrame:
        def make(cut: Cut) -> pd.DataFrame:
            return case_figures(result, cut, self.case_ids)

        return self._once(f"cases {result.key}", cut, make)

    def _once(self, name: str, cut: Cut, make: Callable[[Cut], pd.DataFrame]) -> pd.DataFrame:
        """A table of this part of the cases, made when it is first asked for."""
        key = (name, cut.key, self.part)
        if key not in self._kept:
            self._kept[key] = make(cut)
        return self._kept[key]

    def _others(self) -> Sequence[PointResult]:
        """The measured points beside the reference; none when the reference failed."""
        if self.result(self.reference).error is not None:
            return ()
        return [result for result in self.measured if result.point != self.reference]

    def _make_deltas(self, cut: Cut) -> pd.DataFrame:
        rows: list[dict[str, Any]] = []
        for result in self._others():
            before = self._cases(self.result(self.reference), cut)
            rows += delta_rows(result.point.name, before, self._cases(result, cut))
        return pd.DataFrame(rows, columns=list(DELTA_COLUMNS))

    def _make_changes(self, cut: Cut) -> pd.DataFrame:
        others = {result.point.name: self._cases(result, cut) for result in self._others()}
        if not others:
            return pd.DataFrame(columns=list(FLIP_COLUMNS))
        return flips(self._cases(self.result(self.reference), cut), others)

    def _make_effects(self, cut: Cut) -> pd.DataFrame:
        figures = {
            result.point: cases
            for result in self.measured
            if (cases := self._cases(result, cut))["starved"].mean() <= MOST_STARVED
        }
        return main_effects(figures, self.reference, EFFECT_METRICS)
