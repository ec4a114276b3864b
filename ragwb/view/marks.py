"""What several charts draw alike: rows, a colour or a shape by name, intervals in groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ragwb.html import visible
from ragwb.view.theme import GREY
from ragwb.view.tracks import cut_to_width

if TYPE_CHECKING:
    import altair as alt


def chart_of(rows: Sequence[Mapping[str, object]]) -> alt.Chart:
    """A chart of rows that stand in its specification."""
    import altair as alt

    return alt.Chart(alt.Data(values=list(rows)))


def colour_by(field: str, colours: Mapping[str, str], *, has_legend: bool = True) -> alt.Color:
    """The colour of each value of a field, with a legend below."""
    import altair as alt

    return alt.Color(f"{field}:N", **_named(colours, has_legend=has_legend))


def shape_by(field: str, shapes: Mapping[str, str]) -> alt.Shape:
    """The shape of each value of a field, with a legend below."""
    import altair as alt

    return alt.Shape(f"{field}:N", **_named(shapes))


def _named(looks: Mapping[str, str], *, has_legend: bool = True) -> dict[str, Any]:
    import altair as alt

    scale = alt.Scale(domain=list(looks), range=list(looks.values()))
    legend = alt.Legend(orient="bottom") if has_legend else None
    return {"title": None, "scale": scale, "legend": legend}


def short_name(name: str | None, width: int) -> str:
    """A name in a line that fits into a width; `(none)` for cases without the tag."""
    return "(none)" if name is None else cut_to_width(visible(name).replace("\n", " "), width)


def grouped_intervals(
    rows: Sequence[Mapping[str, object]],
    groups: Sequence[str],
    *looks: Any,
    title: str,
    axis: str,
    width: int,
) -> alt.FacetChart:
    """Shares as dots with their 95 % intervals, a line a name, group under group.

    Args:
        rows: group, name and order within the group; value, low and high from 0 to 1.
        groups: from the top.
        looks: encodings of the dots, such as their colour.
        title: of the chart.
        axis: what the shares are.
        width: in pixels.
    """
    import altair as alt

    base = chart_of(rows)
    y = alt.Y("name:N", title=None, sort=alt.EncodingSortField("order"))
    scale = alt.Scale(domain=[0, 1])
    span = base.mark_rule(color=GREY, strokeWidth=2).encode(
        y, alt.X("low:Q", scale=scale, title=axis), alt.X2("high:Q")
    )
    dot = base.mark_point(filled=True, size=80, opacity=1)
    dot = dot.encode(y, alt.X("value:Q", scale=scale), *looks)
    header = alt.Header(labelOrient="top", labelAnchor="start", labelFontWeight="bold")
    return (
        alt.layer(span, dot)
        .properties(width=width, height=alt.Step(20))
        .facet(row=alt.Row("group:N", title=None, sort=list(groups), header=header))
        .resolve_scale(y="independent")
        # Facets do not leave room for the longest label by themselves.
        .properties(title=title, padding={"left": 40, "top": 5, "right": 5, "bottom": 5})
    )
