"""A chunking sweep in sentences, and its points as rows for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from ragwb.measure.listed import case_words, count, some
from ragwb.measure.shown import interval_words
from ragwb.sweep.choosing import choices
from ragwb.sweep.cuts import Cut
from ragwb.sweep.pairing import MOST_STARVED, tells

if TYPE_CHECKING:
    from ragwb.sweep.grid import Point
    from ragwb.sweep.outcome import ChunkingSweep


FORBIDDEN = "forbidden"
"""The column of the cases in which something comes back that must not."""


def words_of(sweep: ChunkingSweep) -> tuple[str, ...]:
    """What a sweep found, one line of text each: counts, both cuts, what may be credited, notes."""
    return tuple(_lines(sweep))


def _lines(sweep: ChunkingSweep) -> Iterator[str]:
    n_failed = len(sweep.failed)
    failed = f", {n_failed} failed" if n_failed else ""
    yield f"{count(len(sweep.results), 'point')}{failed}; {_cases_words(sweep)}"
    if sweep.split is not None:
        yield sweep.split.words[:1].upper() + sweep.split.words[1:]
    if sweep.measured and sweep.case_ids:
        found = choices(sweep)
        for best in found:
            yield f"At {best.cut} the best is {sweep.labels[best.point]}: {best.words}"
        yield from _starved_words(sweep)
        yield from _forbidden_words(sweep)
        if len(found) == len(sweep.cuts):
            yield from _price_words(sweep, *(best.point for best in found))
        yield from _effect_words(sweep)
    for one in sweep.uncredited():
        yield f"No credit for {one.factor}: {one.reason}"
    if sweep.repeated:
        yield f"Given more than once and asked once: {some(list(sweep.repeated))}"
    for result in sweep.failed:
        yield f"{sweep.labels[result.point]} failed: {result.error}"
    yield from sweep.notes


def _cases_words(sweep: ChunkingSweep) -> str:
    part = {"all": "", "development": " to choose on", "held_out": " held out"}[sweep.part]
    said = f"{count(len(sweep.case_ids), 'case')}{part}, the same at every point"
    left_out = sweep.left_out
    return f"{said}; {len(left_out)} left out: {some(list(left_out))}" if left_out else said


def _starved_words(sweep: ChunkingSweep) -> Iterator[str]:
    """The points to which the token budget leaves nothing in some cases, and what follows."""
    cut = sweep.cuts[1]
    starved = sweep.starved(cut)
    if not starved:
        return
    where = some([f"{sweep.labels[point]} in {case_words(ids)}" for point, ids in starved.items()])
    yield f"At {cut} nothing is delivered where the first result alone is larger: {where}"
    least = MOST_STARVED * len(sweep.case_ids)
    mute = [sweep.labels[point] for point, ids in starved.items() if len(ids) > least]
    if mute:
        yield f"No factor is credited at {cut} by points that often deliver nothing: {some(mute)}"


def _forbidden_words(sweep: ChunkingSweep) -> Iterator[str]:
    """The points with which something comes back that must not, and the cases, at each cut."""
    for cut in sweep.cuts:
        found = {
            sweep.labels[result.point]: cases.index[cases["forbidden"] > 0].tolist()
            for result in sweep.measured
            if (cases := sweep.cases(result.point, cut))["forbidden"].gt(0).any()
        }
        if found:
            where = some([f"{name} in {case_words(ids)}" for name, ids in found.items()])
            yield f"Evidence that must not be there comes back at {cut}: {where}"


def _price_words(sweep: ChunkingSweep, best: Point, fair: Point) -> Iterator[str]:
    """What the best at equal K delivers beside the reference, and whether it keeps its place."""
    at_k, at_tokens = sweep.cuts
    tokens = {
        point: float(sweep.cases(point, at_k)["context_tokens"].mean())
        for point in (best, sweep.reference)
        if sweep.result(point).error is None
    }
    if best == sweep.reference or len(tokens) < 2:
        return
    line = (
        f"{sweep.labels[best]} delivers {tokens[best]:,.0f} tokens at {at_k}, "
        f"the reference {tokens[sweep.reference]:,.0f}"
    )
    if fair != best:
        line += f"; at {at_tokens} the best is {sweep.labels[fair]}"
    yield line


def _effect_words(sweep: ChunkingSweep) -> Iterator[str]:
    effects = sweep.effects()
    recall = effects[effects["metric"] == "recall"]
    told = [row for row in recall.to_dict("records") if tells(row["low"], row["high"], row["p"])]
    for row in told:
        pairs = f"{count(row['n_pairs'], 'pair')} of points"
        spread = (
            f", {row['least']:+z.3f} to {row['most']:+z.3f} by pair" if row["n_pairs"] > 1 else ""
        )
        yield (
            f"{row['factor']} {row['after']} instead of {row['before']}: recall "
            f"{row['effect']:+z.3f} ({row['low']:.3f} to {row['high']:.3f}) at {sweep.cuts[1]}, "
            f"from {pairs} that differ in nothing else{spread}; cases better "
            f"{row['win']}, worse {row['loss']}"
        )
    if len(recall) and not len(told):
        yield f"No factor moves recall beyond chance at {sweep.cuts[1]}"


_SHOWN = (
    *("point", "recall", "difference", "95 % interval", "fixed", "broken", "p", FORBIDDEN),
    *("tokens", "n"),
)


def shown_columns(rows: Sequence[Mapping[str, object]]) -> tuple[str, ...]:
    """The columns of `shown_rows`, without that of forbidden evidence where none came back."""
    has_forbidden = any(row[FORBIDDEN] != "0" for row in rows)
    return tuple(name for name in _SHOWN if has_forbidden or name != FORBIDDEN)


def shown_rows(sweep: ChunkingSweep, cut: Cut) -> list[dict[str, Any]]:
    """A row a measured point: recall with the cases found whole, its difference, cases, tokens."""
    frame = sweep.frame(cut)
    deltas = sweep.deltas(cut).set_index(["point", "metric"])
    changes = sweep.changes(cut).set_index("point")
    named = {point.name: label for point, label in sweep.labels.items()}
    reference = named[sweep.reference.name]
    rows = []
    for row in frame[frame["error"].isna()].to_dict("records"):
        name = row["point"]
        label = named[name]
        passed = sweep.cases(name, cut)["recall"].eq(1).sum()
        has_delta = (name, "recall") in deltas.index
        delta = deltas.loc[(name, "recall")] if has_delta else None
        flip = changes.loc[name] if name in changes.index else None
        rows.append(
            {
                "point": f"{label} (reference)" if label == reference else label,
                "recall": _value(row["recall"], f"{passed}/{row['n']}"),
                "difference": None if delta is None else f"{float(delta['delta']):+z.4f}",
                "95 % interval": None if delta is None else _ends(delta),
                "fixed": None if flip is None else f"{flip['fixed']}",
                "broken": None if flip is None else f"{flip['broken']}",
                "p": None if flip is None else f"{flip['p_adjusted']:.3f}",
                FORBIDDEN: f"{row['forbidden_cases']:.0f}",
                "tokens": None
                if pd.isna(row["context_tokens"])
                else f"{row['context_tokens']:,.0f}",
                "n": f"{row['n']}",
            }
        )
    return rows


def _value(value: float, counts: str) -> str | None:
    return None if pd.isna(value) else f"{value:.4f} ({counts} whole)"


def _ends(row: Any) -> str | None:
    """The interval of a row; none where all values are equal, since it says nothing then."""
    low, high = float(row["low"]), float(row["high"])
    return None if low == high else interval_words(low, high)
