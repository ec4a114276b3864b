"""Charts of a comparison: figures before and after, their differences, quality against cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ragwb.errors import UsageError
from ragwb.html import visible
from ragwb.measure.listed import count
from ragwb.view.compare_reading import (
    CHANCE,
    NOT_TESTED,
    delta_words,
    is_rate,
    no_delta,
    no_pairs_words,
    reading,
)
from ragwb.view.marks import chart_of, colour_by, shape_by, short_name
from ragwb.view.panel import frame_rows
from ragwb.view.theme import BLUE, GREY, ORANGE, RED
from ragwb.view.tracks import cut_to_width

if TYPE_CHECKING:
    import altair as alt

    from ragwb.decide.comparison import Comparison

Row = dict[str, Any]

# One colour and one shape a run, wherever two are compared.
RUN_COLOURS = {"baseline": ORANGE, "candidate": BLUE}
RUN_SHAPES = {"baseline": "circle", "candidate": "diamond"}
# What is said of a difference; told apart by shape as well.
READINGS = {"better": BLUE, "worse": RED, CHANCE: GREY, NOT_TESTED: GREY}
_SHAPES = {
    "better": "triangle-up",
    "worse": "triangle-down",
    CHANCE: "circle",
    NOT_TESTED: "square",
}
_COSTS = {
    "p95_ms": "p95 latency, ms",
    "context_tokens": "context tokens a case",
    "model_calls": "model calls a case",
}
_VALUES, _DELTAS = 300, 330
_NAME_WIDTH = 44
_MOST_SLICES = 30


def compare_figures(comparison: Comparison) -> alt.HConcatChart:
    """Every rate that moved before and after, and beside it the difference with its 95 % interval.

    Figures that are the same in every case are counted and not drawn.

    Args:
        comparison: two runs on the same cases.
    """
    found = [row for row in frame_rows(comparison.deltas()) if is_rate(row)]
    rows = [{**row, "name": row["metric"]} for row in found if reading(row) != "unchanged"]
    n_same = len(found) - len(rows)
    pairs = count(len(comparison.pairs), "case")
    title = f"{len(rows)} of {len(found)} figures moved, {pairs} in both runs"
    if not found:
        return _empty(title, no_pairs_words(comparison))
    are = "is" if n_same == 1 else "are"
    same = f"; {n_same} that moved in no case {are} not drawn" if n_same else ""
    return _pairs_and_deltas(rows, title, "figure", same)


def lead_figure(comparison: Comparison) -> str:
    """The figure that stands for quality: of answers the correct rate, else recall at K."""
    held = comparison.deltas()
    known = set(held.loc[held["delta"].notna(), "metric"])
    higher: list[str] = held.loc[held["direction"] == "higher", "metric"].tolist()
    wanted = ("correct_rate", f"recall@{comparison.k}", *higher)
    return next((name for name in wanted if name in known), wanted[1])


def compare_slices(
    comparison: Comparison, by: str | None = None, *, metric: str | None = None
) -> alt.HConcatChart:
    """One figure by slice before and after, and its difference; the greatest loss first.

    Args:
        comparison: two runs on the same cases.
        by: tags.<name>, risk, or another field of the cases; by default the first that tells
            them apart.
        metric: a figure; by default `lead_figure`.
    Raises:
        UsageError: the cases have no such field, or there is no such figure.
    """
    by = slice_field(comparison, by)
    metric = metric or lead_figure(comparison)
    found = frame_rows(comparison.deltas(by=by))
    rows = [{**row, "name": slice_name(row)} for row in found if row["metric"] == metric]
    if found and not rows:
        known = ", ".join(dict.fromkeys(str(row["metric"]) for row in found))
        raise UsageError(f"no figure {metric!r}; there are: {known}")
    rows = [row for row in rows if row["delta"] is not None]
    rows.sort(key=lambda row: row["delta"])
    title = f"{metric} by {visible(by)}, {count(len(comparison.pairs), 'case')} in both runs"
    if not found:
        return _empty(title, no_pairs_words(comparison))
    return _pairs_and_deltas(rows[:_MOST_SLICES], title, metric)


def slice_field(comparison: Comparison, by: str | None) -> str:
    """What is sliced by: as asked, else the first that tells the cases apart, else risk."""
    return by or next(iter(comparison.fields()), "risk")


def slice_name(row: Mapping[str, Any]) -> str:
    """A slice and its number of cases; `(none)` for cases without the tag."""
    return f"{short_name(row['slice'], _NAME_WIDTH - 8)} (n={row['n']})"


def _pairs_and_deltas(
    rows: Sequence[Row], title: str, what: str, more: str = ""
) -> alt.HConcatChart:
    import altair as alt

    drawn = [
        {
            "name": cut_to_width(str(row["name"]), _NAME_WIDTH),
            "order": order,
            "reading": CHANCE if (said := reading(row)) == "unchanged" else said,
            "words": delta_words(row),
            **{key: row[key] for key in ("baseline", "candidate", "delta", "low", "high")},
        }
        for order, row in enumerate(rows)
    ]
    y = alt.Y("name:N", title=None, sort=alt.EncodingSortField("order"), axis=_name_axis())
    bare = alt.Y("name:N", title=None, sort=alt.EncodingSortField("order"), axis=None)
    # An interval that has no ends is not drawn: the dot alone stands.
    return (
        alt.hconcat(_before_after(drawn, y, what), _differences(drawn, bare), spacing=16)
        .resolve_scale(color="independent", shape="independent")
        .properties(
            title=alt.TitleParams(
                title,
                subtitle=f"left: both runs; right: candidate − baseline, 95 % interval{more}",
            ),
            padding={"left": 16, "top": 5, "right": 16, "bottom": 5},
        )
    )


def _name_axis() -> Any:
    import altair as alt

    return alt.Axis(labelLimit=300, labelPadding=10, ticks=False, domain=False)


def _before_after(rows: Sequence[Row], y: Any, what: str) -> alt.LayerChart:
    """Both values of each row, the candidate's with a line from the baseline's."""
    import altair as alt

    scale = alt.Scale(domain=[0, 1])
    ticks = alt.Axis(values=[0, 0.2, 0.4, 0.6, 0.8, 1])
    title = "share of cases or mean" if what == "figure" else what
    points = [
        {**row, "run": run, "value": row[run]} for row in rows for run in ("baseline", "candidate")
    ]
    line = chart_of(rows).mark_rule(color=GREY, strokeWidth=2)
    line = line.encode(
        y, alt.X("baseline:Q", scale=scale, title=title, axis=ticks), alt.X2("candidate:Q")
    )
    dot = chart_of(points).mark_point(filled=True, size=85, opacity=1)
    dot = dot.encode(
        y,
        alt.X("value:Q", scale=scale),
        colour_by("run", RUN_COLOURS),
        shape_by("run", RUN_SHAPES),
    )
    return alt.layer(line, dot).properties(width=_VALUES, height=alt.Step(24))


def _differences(rows: Sequence[Row], y: Any) -> alt.LayerChart:
    """The difference of each row with its interval around 0, and in words."""
    import altair as alt

    reach = max((abs(row[key] or 0) for row in rows for key in ("delta", "low", "high")), default=0)
    scale = alt.Scale(domain=[-reach * 1.08 or -1, reach * 1.08 or 1], nice=False)
    x = alt.X("delta:Q", scale=scale, title="difference, mean and 95 % interval")
    said = {row["reading"] for row in rows} | (READINGS.keys() - {NOT_TESTED})
    colours = {name: colour for name, colour in READINGS.items() if name in said}
    base = chart_of(rows)
    zero = chart_of([{"x": 0}]).mark_rule(color=GREY, strokeDash=[4, 4])
    zero = zero.encode(alt.X("x:Q", scale=scale))
    held = base.transform_filter("isValid(datum.low) && isValid(datum.high)")
    span = held.mark_rule(strokeWidth=3, opacity=0.75).encode(
        y, alt.X("low:Q", scale=scale), alt.X2("high:Q"), colour_by("reading", colours)
    )
    dot = base.mark_point(filled=True, size=80, opacity=1).encode(
        y,
        x,
        colour_by("reading", colours),
        shape_by("reading", {name: _SHAPES[name] for name in colours}),
    )
    words = base.mark_text(align="left", fontSize=12).encode(
        y, x=alt.value(_DELTAS + 8), text="words:N"
    )
    return alt.layer(zero, span, dot, words).properties(width=_DELTAS, height=alt.Step(24))


def quality_against_cost(comparison: Comparison, *, quality: str | None = None) -> alt.HConcatChart:
    """Both runs by what they reach and what they take: a plane for latency, one for tokens.

    The box around the candidate holds the 95 % intervals of both differences: where it covers a
    line through the baseline, the runs cannot be told apart in that direction.

    Args:
        comparison: two runs on the same cases.
        quality: a figure between 0 and 1; by default `lead_figure`.
    Raises:
        UsageError: there is no such figure.
    """
    import altair as alt

    rows = {row["metric"]: row for row in frame_rows(comparison.deltas())}
    name = quality or lead_figure(comparison)
    if not rows:
        return _empty(f"{name} against cost", no_pairs_words(comparison))
    if name not in rows:
        raise UsageError(f"no figure {name!r}; there are: {', '.join(rows)}")
    costs = [cost for cost in _COSTS if cost in rows and rows[cost]["delta"] is not None]
    costs = [cost for cost in costs if cost != "model_calls" or rows[cost]["delta"]]
    planes = [_plane(rows[name], rows[cost]) for cost in costs]
    words = f"{name} against cost, {count(len(comparison.pairs), 'case')} in both runs"
    subtitle = "box: 95 % intervals of the differences from the baseline"
    if rows[name]["delta"] is None:
        return _empty(words, f"{name}: {no_delta(rows[name])}")
    if not planes:
        what = "can be compared" if rows.keys() & _COSTS.keys() else "were observed"
        return _empty(words, f"neither latency nor tokens {what} in both runs")
    return alt.hconcat(*planes, spacing=40).properties(
        title=alt.TitleParams(words, subtitle=subtitle)
    )


def _empty(words: str, why: str) -> alt.HConcatChart:
    import altair as alt

    return alt.hconcat().properties(title=alt.TitleParams(words, subtitle=why))


def _plane(quality: Row, cost: Row) -> alt.LayerChart:
    import altair as alt

    points = [
        {"run": run, "cost": cost[run], "quality": quality[run]}
        for run in ("baseline", "candidate")
    ]
    box = {**_ends(cost, "cost"), **_ends(quality, "quality")}
    x = alt.X(
        "cost:Q",
        title=_COSTS[cost["metric"]],
        scale=_around(points, box, "cost"),
        axis=alt.Axis(tickCount=6),
    )
    scale = _around(points, box, "quality", most=1.0)
    y = alt.Y("quality:Q", title=quality["metric"], scale=scale)
    area = chart_of([box]).mark_rect(color=BLUE, opacity=0.16, stroke=BLUE, strokeOpacity=0.5)
    area = area.encode(
        alt.X("cost_low:Q", title=_COSTS[cost["metric"]], axis=alt.Axis(tickCount=6)),
        alt.X2("cost_high:Q"),
        alt.Y("quality_low:Q", title=quality["metric"]),
        alt.Y2("quality_high:Q"),
    )
    way = chart_of(points).mark_line(color=GREY, strokeWidth=1.5, strokeDash=[4, 3]).encode(x, y)
    dot = chart_of(points).mark_point(filled=True, size=150, opacity=1)
    dot = dot.encode(
        x,
        y,
        colour_by("run", RUN_COLOURS),
        shape_by("run", RUN_SHAPES),
    )
    return alt.layer(area, way, dot).properties(width=330, height=240)


def _ends(row: Row, name: str) -> dict[str, float]:
    """The interval of the candidate's value as seen from the baseline's."""
    low = row["delta"] if row["low"] is None else row["low"]
    high = row["delta"] if row["high"] is None else row["high"]
    return {f"{name}_low": row["baseline"] + low, f"{name}_high": row["baseline"] + high}


def _around(
    points: Sequence[Row], box: Mapping[str, float], name: str, *, most: float | None = None
) -> Any:
    """An axis that shows both points and the whole box, with room beside them."""
    import altair as alt

    values = [*(point[name] for point in points), box[f"{name}_low"], box[f"{name}_high"]]
    room = (max(values) - min(values)) * 0.15 or abs(values[0]) * 0.1 or 0.1
    high = max(values) + room
    return alt.Scale(
        domain=[max(0.0, min(values) - room), high if most is None else min(most, high)],
        nice=False,
        zero=False,
    )
