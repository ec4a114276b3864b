"""Charts of a chunking sweep: distance from the reference, price, factors, where text is cut."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ragwb.errors import UsageError
from ragwb.html import visible
from ragwb.measure.listed import count
from ragwb.sweep.pairing import tells
from ragwb.view.marks import chart_of, colour_by, shape_by
from ragwb.view.panel import frame_rows
from ragwb.view.theme import BLUE, GREEN, GREY, ORANGE, RED
from ragwb.view.tracks import cut_to_width

if TYPE_CHECKING:
    import altair as alt

    from ragwb.sweep.outcome import ChunkingSweep

Row = dict[str, Any]

_CUTS = ("equal K", "equal tokens")
_READINGS = {"better": BLUE, "worse": RED, "within chance": GREY}
_SHAPES = {"better": "triangle-up", "worse": "triangle-down", "within chance": "circle"}
_KINDS = {"not beaten": GREEN, "beaten": GREY, "reference": ORANGE}
_KIND_SHAPES = {"not beaten": "diamond", "beaten": "circle", "reference": "square"}
_WIDTH, _HEIGHT = 300, 300
_NAME_WIDTH = 34
_PLOT = 2 * _WIDTH - 80
_LETTER = 6.2  # pixels of a letter, rather too many
_NAME_PIXELS = _LETTER * _NAME_WIDTH
_MOST_DRAWN = 40
_MOST_NAMED = 24


def chunking_differences(sweep: ChunkingSweep, *, metric: str = "recall") -> alt.HConcatChart:
    """How far each point lies from the reference, with its 95 % interval, at both cuts.

    Args:
        sweep: points on the same cases.
        metric: one of `pairing.METRICS`.

    Raises:
        UsageError: there is no such figure, or no point to hold against the reference.
    """
    import altair as alt

    rows, n_left = _difference_rows(sweep, metric)
    order = list(dict.fromkeys(row["point"] for row in rows))
    parts = [_differences(rows, cut, order, metric) for cut in _CUTS]
    left = f"; {count(n_left, 'further point')} not drawn" if n_left else ""
    title = alt.TitleParams(
        f"{metric} against {_short(sweep.labels[sweep.reference])}, {_n_cases(sweep)}",
        subtitle=f"paired 95 % intervals over the same cases; 0 is the reference{left}",
    )
    return alt.hconcat(*parts, spacing=28).properties(title=title)


def _difference_rows(sweep: ChunkingSweep, metric: str) -> tuple[list[Row], int]:
    names = {point.name: visible(label) for point, label in sweep.labels.items()}
    found = [
        {**row, "cut": cut_words, "point": names[row["point"]], "reading": _reading(row)}
        for cut_words, cut in zip(_CUTS, sweep.cuts, strict=True)
        for row in frame_rows(sweep.deltas(cut))
        if row["metric"] == metric and row["delta"] is not None
    ]
    if not found:
        raise UsageError(f"{metric!r} is known of no point beside the reference: nothing to draw")
    at_tokens = [row for row in found if row["cut"] == _CUTS[1]]
    order = [row["point"] for row in sorted(at_tokens, key=lambda row: -row["delta"])]
    kept = set(order[:_MOST_DRAWN])
    rows = [row for row in found if row["point"] in kept]
    rows.sort(key=lambda row: order.index(row["point"]))
    return rows, len(order) - len(kept)


def _reading(row: Mapping[str, Any]) -> str:
    if not tells(row["low"], row["high"], row["p"]):
        return "within chance"
    rises = row["delta"] > 0
    return "better" if rises == (row["metric"] != "duplicate_rate") else "worse"


def _differences(rows: list[Row], cut: str, order: list[str], metric: str) -> alt.LayerChart:
    import altair as alt

    mine = [row for row in rows if row["cut"] == cut]
    names = alt.Axis(title=None, labels=cut == _CUTS[0], ticks=False, labelLimit=260)
    y = alt.Y("point:N", sort=order, axis=names)
    base = chart_of(mine)
    zero = chart_of([{"zero": 0}]).mark_rule(color=ORANGE, strokeDash=[4, 3])
    ticks = alt.Axis(tickCount=5)
    x = alt.X("low:Q", title=f"difference in {metric} at {cut}", axis=ticks)
    span = base.mark_rule(color=GREY, strokeWidth=2).encode(x, alt.X2("high:Q"), y)
    dot = base.mark_point(filled=True, size=80, opacity=1).encode(
        alt.X("delta:Q"), y, colour_by("reading", _READINGS), shape_by("reading", _SHAPES)
    )
    return alt.layer(zero.encode(x="zero:Q"), span, dot).properties(
        width=_WIDTH, height=alt.Step(22)
    )


def chunking_price(sweep: ChunkingSweep, *, metric: str = "recall") -> alt.LayerChart:
    """A figure against the tokens that are delivered at equal K; what nothing beats is marked.

    Args:
        sweep: points on the same cases.
        metric: one of `pairing.METRICS` of which more is better.

    Raises:
        UsageError: no point has the figure.
    """
    rows = _price_rows(sweep, metric)
    base, x, y = _scatter(
        rows, ("tokens", f"tokens of the first {sweep.k} results, mean a case"), (metric, "figure")
    )
    return _named_points(
        base.encode(x, y),
        f"{metric} at K {sweep.k} against its price, {_n_cases(sweep)}",
        "not beaten: no other point reaches as much with as few tokens",
    )


def _price_rows(sweep: ChunkingSweep, metric: str) -> list[Row]:
    found = [
        {
            "point": visible(sweep.labels[result.point]),
            "tokens": float(cases["context_tokens"].mean()),
            "figure": float(cases[metric].mean()),
            "kind": "reference" if result.point == sweep.reference else "beaten",
        }
        for result in sweep.measured
        if (cases := sweep.cases(result.point, sweep.cuts[0]))[metric].notna().any()
    ]
    if not found:
        raise UsageError(f"no point has {metric!r}: nothing to draw")
    return _with_front(found, more="figure", less="tokens")


def _with_front(rows: list[Row], *, more: str, less: str) -> list[Row]:
    """The rows, those marked that no other one beats in both fields."""
    places = [(row[more], -row[less]) for row in rows]

    def is_beaten(place: tuple[float, float]) -> bool:
        return any(a >= place[0] and b >= place[1] and (a, b) != place for a, b in places)

    return [
        {**row, "kind": "not beaten"} if row["kind"] == "beaten" and not is_beaten(place) else row
        for row, place in zip(rows, places, strict=True)
    ]


def chunking_cuts(sweep: ChunkingSweep) -> alt.LayerChart:
    """What the cutting alone does: the best precision that it allows, against passages it splits.

    Overlap lowers the one and rescues the other: one number would hide the trade.

    Args:
        sweep: points on the same cases.
    """
    rows = [
        {
            "point": visible(sweep.labels[result.point]),
            "omega": float(cases["precision_omega"].mean()),
            "split": float(cases["n_split"].sum() / cases["n_passages"].sum()),
            "kind": "reference" if result.point == sweep.reference else "beaten",
        }
        for result in sweep.measured
        if (cases := sweep.cases(result.point, sweep.cuts[0]))["precision_omega"].notna().any()
        and cases["n_passages"].sum()
    ]
    if not rows:
        raise UsageError("no case names passages: nothing to draw")
    n_passages = int(sweep.cases(sweep.measured[0].point, sweep.cuts[0])["n_passages"].sum())
    base, x, y = _scatter(
        _with_front(rows, more="omega", less="split"),
        ("split", "share of passages that no chunk holds whole"),
        ("precision Ω", "omega"),
    )
    return _named_points(
        base.encode(x, y),
        f"What each chunking allows, {n_passages} passages",
        "before any search; not beaten: no other allows as much and splits as few",
    )


def chunking_effects(sweep: ChunkingSweep, *, metric: str = "recall") -> alt.LayerChart:
    """The effect of each factor at equal tokens, from points that differ in it alone.

    Args:
        sweep: points on the same cases.
        metric: one of `outcome.EFFECT_METRICS`.

    Raises:
        UsageError: no two points differ in one factor alone.
    """
    import altair as alt

    rows = _effect_rows(sweep, metric)
    base = chart_of(rows)
    y = alt.Y("name:N", sort=None, title=None, axis=alt.Axis(labelLimit=260))
    zero = chart_of([{"zero": 0}]).mark_rule(color=GREY, strokeDash=[4, 3])
    spread = base.mark_rule(color=GREY, strokeWidth=8, opacity=0.25)
    span = base.mark_rule(color=GREY, strokeWidth=2)
    dot = base.mark_point(filled=True, size=80, opacity=1)
    words = base.mark_text(align="left", fontSize=12).encode(
        y, x=alt.value(2 * _WIDTH - 60), text="pairs:N"
    )
    x = alt.X("low:Q", title=f"effect on {metric} at {sweep.cuts[1]}")
    return alt.layer(
        zero.encode(x="zero:Q"),
        spread.encode(alt.X("least:Q"), alt.X2("most:Q"), y),
        span.encode(x, alt.X2("high:Q"), y),
        dot.encode(
            alt.X("effect:Q"), y, colour_by("reading", _READINGS), shape_by("reading", _SHAPES)
        ),
        words,
    ).properties(
        width=_PLOT,
        height=alt.Step(26),
        padding={"left": 40, "top": 5, "bottom": 5, "right": 70},
        title=alt.TitleParams(
            f"What each factor does, {_n_cases(sweep)}",
            subtitle="line: 95 % interval over cases; broad band: from the least to the most of "
            "its pairs of points",
        ),
    )


def _effect_rows(sweep: ChunkingSweep, metric: str) -> list[Row]:
    found = [
        {
            **row,
            "name": visible(f"{row['factor']}: {row['before']} → {row['after']}"),
            "pairs": count(row["n_pairs"], "pair"),
            "reading": _reading({**row, "delta": row["effect"]}),
        }
        for row in frame_rows(sweep.effects())
        if row["metric"] == metric and row["effect"] is not None
    ]
    if not found:
        raise UsageError("no two points differ in one factor alone: no factor can be credited")
    return found


def _scatter(
    rows: list[Row], across: tuple[str, str], up: tuple[str, str]
) -> tuple[alt.Chart, Any, Any]:
    """A base of rows, with its axes: (field, title) across, (title, field) up."""
    import altair as alt

    shown = _labelled(rows, across[0], up[1])
    # The room around the points may reach below 0, where there is nothing to be told.
    axis = alt.Axis(labelExpr="datum.value < 0 ? '' : datum.label", tickCount=6)
    scale = alt.Scale(zero=False, padding=24)
    x = alt.X(f"{across[0]}:Q", title=across[1], scale=scale, axis=axis)
    y = alt.Y(f"{up[1]}:Q", title=up[0], scale=alt.Scale(zero=False, padding=16))
    return chart_of(shown), x, y


def _labelled(rows: list[Row], x: str, y: str) -> list[Row]:
    """The rows with the side on which each point's name has room: 1, -1, or 0 for neither.

    The table beside the chart names every point; a name over another would be read by nobody.
    """
    boxes: list[tuple[float, float, float]] = []
    across, up = (_pixels([row[name] for row in rows], n) for name, n in ((x, _PLOT), (y, _HEIGHT)))
    places = list(zip(across, up, strict=True))
    shown = []
    for row, (left, top) in zip(rows, places, strict=True):
        long = min(_LETTER * len(row["point"]), _NAME_PIXELS)
        sides = ((1, left + 8), (-1, left - 8 - long))
        free = [
            (side, start)
            for side, start in sides
            if start > 0
            and not any(_meets(start, start + long, top, box) for box in boxes)
            and not any(_meets(start, start + long, top, (a, a, b)) for a, b in places)
        ]
        if free and len(rows) <= _MOST_NAMED:
            boxes.append((free[0][1], free[0][1] + long, top))
        shown.append({**row, "side": free[0][0] if free and len(rows) <= _MOST_NAMED else 0})
    return shown


def _pixels(values: list[float], length: int) -> list[float]:
    """Roughly where values stand on an axis of a length."""
    low, span = min(values), (max(values) - min(values)) or 1.0
    return [24 + (value - low) / span * (length - 48) for value in values]


def _meets(start: float, end: float, top: float, box: tuple[float, float, float]) -> bool:
    return start < box[1] + 6 and box[0] - 6 < end and abs(top - box[2]) < 12


def _named_points(base: alt.Chart, title: str, subtitle: str) -> alt.LayerChart:
    import altair as alt

    dot = base.mark_point(filled=True, size=90, opacity=1).encode(
        colour_by("kind", _KINDS), shape_by("kind", _KIND_SHAPES), tooltip=["point:N"]
    )
    texts = [
        base.transform_filter(alt.datum.side == side)
        .mark_text(
            align="left" if side > 0 else "right", dx=8 * side, fontSize=11, limit=_NAME_PIXELS
        )
        .encode(text="point:N")
        for side in (1, -1)
    ]
    return alt.layer(dot, *texts).properties(
        width=_PLOT,
        height=_HEIGHT,
        padding={"left": 5, "top": 5, "bottom": 5, "right": 110},
        title=alt.TitleParams(title, subtitle=subtitle),
    )


def _short(name: str) -> str:
    return cut_to_width(visible(name), _NAME_WIDTH)


def _n_cases(sweep: ChunkingSweep) -> str:
    return count(len(sweep.case_ids), "case")
