"""The chart of a judge: its agreement with people beside people's with each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragwb.html import visible
from ragwb.view.theme import BLUE, ORANGE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import altair as alt

    from ragwb.judge.agreement import Figure
    from ragwb.judge.calibration import Calibration

# In the order in which they are read; the mean error has another unit.
SHOWN = ("raw_agreement", "kappa", "kappa_quadratic", "pearson", "spearman")
JUDGE, PEOPLE = "judge and people", "people among themselves"
_WIDTH, _ROW = 480, 34
_AXIS = "agreement, 1 is perfect"


def judge_agreement(calibrations: Sequence[Calibration]) -> alt.FacetChart:
    """Agreement of a judge with people, with 95 % intervals, and the ceiling between people.

    Args:
        calibrations: one a criterion; a figure that is undefined has no mark.
    """
    import altair as alt
    import pandas as pd

    rows = [row for one in calibrations for row in _rows(one.criterion, one)]
    columns = ["criterion", "figure", "between", "value", "low", "high", "n_items"]
    frame = pd.DataFrame(rows, columns=columns)
    # What is below chance must be seen as such; mostly nothing is.
    low = min([0.0, *frame["low"].dropna(), *frame["value"].dropna()])
    colour = alt.Color(
        "between:N",
        title=None,
        scale=alt.Scale(domain=[JUDGE, PEOPLE], range=[BLUE, ORANGE]),
        legend=alt.Legend(orient="top", columns=1),
    )
    y = alt.Y("figure:N", title=None, sort=list(SHOWN))
    offset = alt.YOffset("between:N", sort=[JUDGE, PEOPLE])
    base = alt.Chart().encode(y=y, yOffset=offset, color=colour)
    ends = base.mark_rule(strokeWidth=2).encode(
        x=alt.X("low:Q", title=_AXIS, scale=alt.Scale(domain=[low, 1])), x2="high:Q"
    )
    points = base.mark_point(filled=True, size=70, opacity=1).encode(
        x=alt.X("value:Q", title=_AXIS),
        shape=alt.Shape("between:N", title=None, scale=alt.Scale(domain=[JUDGE, PEOPLE])),
    )
    names = [visible(one.criterion) for one in calibrations]
    header = alt.Header(
        labelAngle=0, labelOrient="top", labelAnchor="start", labelFontWeight="bold"
    )
    height = _ROW * max(frame["figure"].nunique(), 1)
    n = int(frame["n_items"].max()) if len(frame) else 0
    return (
        alt.layer(ends, points, data=frame)
        .properties(width=_WIDTH, height=height)
        .facet(row=alt.Row("criterion:N", title=None, sort=names, header=header))
        .properties(title=f"Agreement on {n} labelled items, 95 % intervals over items")
    )


def _rows(criterion: str, calibration: Calibration) -> list[dict[str, object]]:
    sides: tuple[tuple[str, Mapping[str, Figure]], ...] = (
        (JUDGE, calibration.judge_human),
        (PEOPLE, calibration.human_human),
    )
    return [
        {
            "criterion": visible(criterion),
            "figure": name,
            "between": between,
            "value": figures[name].value,
            "low": interval.low if (interval := figures[name].interval) else None,
            "high": interval.high if interval else None,
            "n_items": figures[name].n_items,
        }
        for between, figures in sides
        for name in SHOWN
        if name in figures and figures[name].value is not None
    ]
