"""Small multiples of a sweep over K: one figure against K in each slice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragwb.html import visible
from ragwb.view.k_charts import n_cases
from ragwb.view.marks import chart_of, short_name
from ragwb.view.panel import frame_rows
from ragwb.view.theme import BLUE

if TYPE_CHECKING:
    import altair as alt

    from ragwb.sweep.k_result import KSweep

Row = dict[str, Any]

_SMALL = 200
_NAME_WIDTH = 26
_MOST_SLICES = 24


def k_slices(sweep: KSweep, by: str | None = None, *, metric: str = "recall") -> alt.FacetChart:
    """One figure against K in each slice, as small multiples; the lowest at the largest K first.

    Args:
        sweep: figures at several K.
        by: tags.<name>, risk, set or tier; by default the first that tells the cases apart.
        metric: a retrieval figure.

    Raises:
        UsageError: the cases have no such field.
    """
    import altair as alt

    by = by or next(iter(sweep.fields()), "risk")
    rows = _slice_rows(sweep, by, metric)
    scale = alt.Scale(domain=[0, 1])
    x = alt.X("k:Q", title="K", scale=alt.Scale(nice=False), axis=alt.Axis(tickCount=4))
    y = alt.Y("value:Q", title=metric, scale=scale, axis=alt.Axis(tickCount=3))
    base = chart_of(rows)
    band = base.mark_area(opacity=0.15, color=BLUE).encode(
        x, alt.Y("low:Q", scale=scale), alt.Y2("high:Q")
    )
    line = base.mark_line(strokeWidth=2, color=BLUE).encode(x, y)
    dot = base.mark_point(filled=True, size=30, color=BLUE, opacity=1).encode(
        x, y, tooltip=[alt.Tooltip("k:Q"), alt.Tooltip("value:Q", format=".3f")]
    )
    names = list(dict.fromkeys(row["slice"] for row in rows))
    header = alt.Header(title=None, labelAnchor="start", labelFontWeight="bold", labelLimit=_SMALL)
    title = alt.TitleParams(
        f"{metric} against K by {visible(by)}, {n_cases(sweep)}",
        subtitle="band: 95 % interval; the lowest at the largest K first",
    )
    return (
        alt.layer(band, line, dot)
        .properties(width=_SMALL, height=110)
        .facet(facet=alt.Facet("slice:N", sort=names, header=header), columns=4)
        .properties(title=title)
    )


def _slice_rows(sweep: KSweep, by: str, metric: str) -> list[Row]:
    """The rows of the slices, the lowest at the largest K first; too many are left to the table."""
    frame = sweep.by(by)
    found: dict[str, list[Row]] = {}
    for row in frame_rows(frame[(frame["metric"] == metric) & frame["value"].notna()]):
        named = f"{short_name(row['slice'], _NAME_WIDTH)} (n={row['n']})"
        kept = {key: row[key] for key in ("k", "value", "low", "high")}
        found.setdefault(named, []).append({"slice": named, **kept})
    ordered = sorted(found.values(), key=lambda rows: rows[-1]["value"])[:_MOST_SLICES]
    return [row for rows in ordered for row in rows]
