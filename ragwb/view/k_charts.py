"""Charts of a sweep over K: what each K reaches, what it costs, what the next one adds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ragwb.html import visible
from ragwb.measure.listed import count, some
from ragwb.view.marks import chart_of, colour_by, shape_by
from ragwb.view.panel import frame_rows
from ragwb.view.theme import BLUE, GREEN, GREY, METRIC_COLOURS, ORANGE, RED, SKY
from ragwb.view.tracks import cut_to_width

if TYPE_CHECKING:
    import altair as alt

    from ragwb.sweep.k_result import KSweep
    from ragwb.sweep.k_steps import Step

Row = dict[str, Any]

TOKENS, P95 = "context_tokens", "p95_ms"
CURVES = {**METRIC_COLOURS, "passage_recall": SKY, "correct_rate": "#8E63CE"}
_AXES = {
    TOKENS: "tokens of the first K results, mean a case",
    P95: "p95 latency at the client, ms",
}
_NONE = {
    TOKENS: "the texts of the results are not in the run",
    P95: "latency was not measured at any K",
}
_KINDS = {"not beaten": "diamond", "beaten by another K": "circle"}
_KIND_COLOURS = {"not beaten": GREEN, "beaten by another K": GREY}
_WIDTH, _HEIGHT = 440, 240
_MOST_NAMED = 12
_MOST_STEPS = 25
_MOST_ARROWS = 9  # steps whose both ends have room under a bar
_MOST_LABELS = 10  # points that all have their K beside them
_LAST = 1_000_000
_ABOVE_BARS = "above a bar: further tokens for each gained case"
_ON_FRONT = "datum.kind == 'not beaten'"
# Of the K that the slider stands at: it may lie between two Ks that were looked at.
_CHOSEN = "datum.k <= chosen && chosen <= datum.until"


def k_linked(sweep: KSweep, *, metric: str = "recall", k: int | None = None) -> alt.VConcatChart:
    """Score against K, tokens and p95, and what each step adds, with one K marked in all of them.

    Where scripts run, a slider moves that K and the cases of a step show on hover.

    Args:
        sweep: figures at several K.
        metric: the figure that counts.
        k: the K that is marked first; by default the recommended one.
    """
    import altair as alt

    if k is None:
        found = sweep.recommend(metric=metric)
        k = found.k or found.nearest_k or sweep.ks[-1]
    slider = alt.binding_range(min=sweep.ks[0], max=sweep.ks[-1], step=1, name="K ")
    upper = alt.hconcat(
        _curve(sweep, metric), _against(sweep, TOKENS, metric), spacing=48
    ).resolve_scale(color="independent", shape="independent")
    lower = alt.hconcat(_against(sweep, P95, metric), _marginal(sweep), spacing=48).resolve_scale(
        color="independent", shape="independent"
    )
    title = alt.TitleParams(
        f"{metric} at every K and what it costs, {n_cases(sweep)}",
        subtitle="one K is marked by line, ring and dark bar; band and crosses: 95 % intervals",
    )
    return (
        alt.vconcat(upper, lower, spacing=36)
        .resolve_scale(color="independent", shape="independent")
        .add_params(alt.param(name="chosen", value=k, bind=slider))
        .properties(title=title)
    )


def n_cases(sweep: KSweep) -> str:
    """How many cases are scored, for a title."""
    return count(sweep.scores.n_scored, "case")


def _untils(ks: Sequence[int]) -> dict[int, int]:
    """By K the last position of the slider that stands for it."""
    nexts = [*ks[1:], _LAST]
    return {k: later - 1 for k, later in zip(ks, nexts, strict=True)}


def _curve(sweep: KSweep, metric: str) -> alt.LayerChart:
    import altair as alt

    rows = _curve_rows(sweep, metric)
    names = list(dict.fromkeys(row["metric"] for row in rows))
    colours = alt.Scale(domain=names, range=[CURVES.get(name, GREY) for name in names])
    x = alt.X(
        "k:Q",
        title="K (positions looked at)",
        scale=alt.Scale(nice=False),
        axis=alt.Axis(values=_ticks(sweep.ks), labelOverlap="greedy", labelSeparation=4),
    )
    y = alt.Y("value:Q", title="mean over cases", scale=alt.Scale(domain=[0, 1]))
    legend = alt.Legend(orient="bottom", columns=4)
    colour = alt.Color("metric:N", title=None, scale=colours, legend=legend)
    shape = alt.Shape("metric:N", title=None, scale=alt.Scale(domain=names), legend=legend)
    base = chart_of(rows)
    lead = base.transform_filter(alt.datum.metric == metric)
    band = lead.mark_area(opacity=0.15, color=CURVES.get(metric, GREY)).encode(
        x, alt.Y("low:Q", title="mean over cases"), alt.Y2("high:Q")
    )
    # The one that counts lies broad under the others, for some of them may run along it.
    broad = lead.mark_line(strokeWidth=5).encode(x, y, colour)
    line = base.mark_line(strokeWidth=2).encode(x, y, colour)
    dot = base.mark_point(filled=True, size=45, opacity=1).encode(
        x, y, colour, shape, tooltip=["metric:N", "k:Q", "words:N"]
    )
    here = lead.transform_filter(_CHOSEN)
    rule = here.mark_rule(color=GREY, strokeDash=[4, 3], strokeWidth=1.5).encode(x)
    words = here.mark_text(fontSize=12, fontWeight="bold", baseline="bottom", dy=-6).encode(
        x, y=alt.value(0), text="marked:N"
    )
    return alt.layer(band, broad, line, dot, rule, words).properties(width=_WIDTH, height=_HEIGHT)


def _ticks(ks: Sequence[int]) -> list[int]:
    """Of many Ks as many as fit under the axis."""
    step = -(-len(ks) // 12)
    return [k for i, k in enumerate(ks) if i % step == 0 or k == ks[-1]]


def _curve_rows(sweep: KSweep, metric: str) -> list[Row]:
    until = _untils(sweep.ks)
    wanted = dict.fromkeys([*(name for name in CURVES if name in sweep.metrics()), metric])
    rows = []
    for name in wanted:
        for row in frame_rows(sweep.curve(name)):
            if row["value"] is not None:
                words = _value_words(row)
                kept = {key: row[key] for key in ("k", "metric", "value", "low", "high")}
                marked = f"K = {row['k']}: {words}"
                rows.append({**kept, "until": until[row["k"]], "words": words, "marked": marked})
    return rows


def _value_words(row: Mapping[str, Any]) -> str:
    counts = f"{row['counts']}, " if row["counts"] else ""
    return f"{counts}{row['value']:.3f}"


def _against(sweep: KSweep, cost: str, metric: str) -> alt.LayerChart:
    """A figure against a cost; the line of the Pareto front goes up in steps, as choices do."""
    import altair as alt

    rows = _plane_rows(sweep, cost, metric)
    if not rows:
        return _nothing(f"{metric} against cost: {_NONE[cost]}")
    x, y = _plane_axes(rows, cost, metric)
    base = chart_of(rows)
    front = base.transform_filter(_ON_FRONT).mark_line(
        interpolate="step-after", color=GREEN, strokeWidth=2
    )
    dot = base.mark_point(filled=True, size=90, opacity=1).encode(
        x,
        y,
        shape_by("kind", _KINDS),
        colour_by("kind", _KIND_COLOURS),
        tooltip=["k:Q", "words:N", "price:N", "kind:N"],
    )
    named = base if len(rows) <= _MOST_LABELS else base.transform_filter(_ON_FRONT)
    names = named.mark_text(fontSize=12, dy=-12).encode(x, y, text="k:Q")
    ring = base.transform_filter(_CHOSEN).mark_point(
        size=320, strokeWidth=2.5, filled=False, color=RED, shape="circle", opacity=1
    )
    return alt.layer(
        *_crosses(base, x, y), front.encode(x, y), dot, ring.encode(x, y), names
    ).properties(width=_WIDTH, height=_HEIGHT)


def _plane_axes(rows: Sequence[Row], cost: str, metric: str) -> tuple[Any, Any]:
    import altair as alt

    # Points, unlike bars, say nothing by their distance from 0.
    floor = min(row["value"] if row["low"] is None else row["low"] for row in rows)
    high = alt.Scale(domain=[max(0.0, math.floor(floor * 10 - 0.5) / 10), 1], nice=False)
    scale = alt.Scale(zero=False, nice=True)
    return (
        alt.X("cost:Q", title=_AXES[cost], scale=scale, axis=alt.Axis(tickCount=6)),
        alt.Y("value:Q", title=metric, scale=high),
    )


def _crosses(base: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """The intervals of both directions; one without ends is not drawn."""
    import altair as alt

    look = {"color": GREY, "strokeWidth": 1.5, "opacity": 0.7}
    tall = base.transform_filter("isValid(datum.low)").mark_rule(**look)
    wide = base.transform_filter("isValid(datum.cost_low)").mark_rule(**look)
    return (
        tall.encode(x, alt.Y("low:Q", title=y["title"], scale=y["scale"]), alt.Y2("high:Q")),
        wide.encode(
            alt.X("cost_low:Q", title=x["title"], scale=x["scale"]), alt.X2("cost_high:Q"), y
        ),
    )


def _plane_rows(sweep: KSweep, cost: str, metric: str) -> list[Row]:
    until, front = _untils(sweep.ks), sweep.pareto(cost, metric=metric)
    scores = {row["k"]: row for row in frame_rows(sweep.curve(metric))}
    found = []
    for row in frame_rows(sweep.curve(cost)):
        score = scores[row["k"]]
        if row["value"] is None or score["value"] is None:
            continue
        unit = " ms" if cost == P95 else " tokens a case"
        found.append(
            {
                "k": row["k"],
                "until": until[row["k"]],
                "cost": row["value"],
                "cost_low": row["low"],
                "cost_high": row["high"],
                **{key: score[key] for key in ("value", "low", "high")},
                "kind": "not beaten" if row["k"] in front else "beaten by another K",
                "words": _value_words(score),
                "price": f"{row['value']:,.0f}{unit}",
            }
        )
    return found


def _nothing(words: str) -> alt.LayerChart:
    """The place of a chart that cannot be drawn, with the reason."""
    import altair as alt

    text = chart_of([{"words": words}]).mark_text(fontSize=13, opacity=0.75)
    placed = text.encode(x=alt.value(_WIDTH / 2), y=alt.value(_HEIGHT / 2), text="words:N")
    return alt.layer(placed).properties(width=_WIDTH, height=_HEIGHT)


def _marginal(sweep: KSweep) -> alt.LayerChart:
    """Bars up for cases gained, down for cases lost; above them the tokens for each gained one."""
    import altair as alt

    rows = _step_rows(sweep)
    if not rows:
        return _nothing("one K alone: there is no step to another")
    x, y = _marginal_axes(rows)
    base = chart_of(rows)
    hover = ["from:Q", "k:Q", "gained:Q", "cases gained:N", "lost:Q", "cases lost:N", "tokens:N"]
    shade = alt.condition(_CHOSEN, alt.value(1.0), alt.value(0.55))
    up = base.transform_calculate(n="datum.gained").mark_bar(color=BLUE)
    down = base.transform_calculate(n="-datum.lost").mark_bar(color=ORANGE)
    words = base.transform_calculate(n="datum.gained").mark_text(fontSize=11, dy=-8)
    zero = chart_of([{"n": 0}]).mark_rule(color=GREY).encode(y)
    title = alt.TitleParams(_ABOVE_BARS, fontSize=12, fontWeight="normal")
    return alt.layer(
        up.encode(x, y, opacity=shade, tooltip=hover),
        down.encode(x, y, opacity=shade, tooltip=hover),
        zero,
        words.encode(x, y, text="label:N"),
    ).properties(width=_WIDTH, height=_HEIGHT, title=title)


def _marginal_axes(rows: Sequence[Row]) -> tuple[Any, Any]:
    import altair as alt

    reach = max(max(row["gained"], row["lost"]) for row in rows) or 1
    lowest = -max(row["lost"] for row in rows)
    order = list(dict.fromkeys(row["step"] for row in rows))
    named = "from K to K" if "→" in order[0] else "to K, from the one before it"
    axis = alt.Axis(labelAngle=0, labelOverlap="greedy", labelSeparation=4)
    counts = alt.Axis(tickMinStep=1, format="d", tickCount=min(reach - lowest, 8))
    scale = alt.Scale(domain=[lowest, reach * 1.2], nice=False)
    return (
        alt.X("step:N", title=named, sort=order, axis=axis),
        alt.Y("n:Q", title="cases gained, lost", scale=scale, axis=counts),
    )


def _step_rows(sweep: KSweep) -> list[Row]:
    until = _untils(sweep.ks)
    steps = sweep.steps
    if len(steps) > _MOST_STEPS:
        # Those that change something say more than the first ones.
        changing = tuple(step for step in steps if step.gained or step.lost)
        steps = (changing or steps)[:_MOST_STEPS]
    is_wide = len(steps) <= _MOST_ARROWS
    return [
        {
            "step": f"{step.k_from}→{step.k_to}" if is_wide else f"{step.k_to}",
            "from": step.k_from,
            "k": step.k_to,
            "until": until[step.k_to],
            "gained": len(step.gained),
            "lost": len(step.lost),
            "cases gained": _named(step.gained),
            "cases lost": _named(step.lost),
            "tokens": "not observed" if step.tokens is None else f"{step.tokens:+z,.0f} a case",
            "label": _label(step),
        }
        for step in steps
    ]


def _label(step: Step) -> str:
    """Further tokens for each gained case, in as few signs as a bar is wide."""
    value = step.tokens_per_gained
    if value is None:
        return ""
    if value < 1000:
        return f"{value:.0f}"
    return f"{value / 1000:.1f}k" if value < 10_000 else f"{value / 1000:,.0f}k"


def _named(case_ids: Sequence[str]) -> str:
    return some([cut_to_width(visible(case_id), 60) for case_id in case_ids], _MOST_NAMED) or "none"
