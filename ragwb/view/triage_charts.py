"""Charts of a triage: what is lost at each stage, for which cases, and what is left after each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ragwb.html import visible
from ragwb.triage.beyond import RANKED_BELOW_K, beyond_words, count_beyond
from ragwb.view.marks import chart_of, colour_by, short_name
from ragwb.view.panel import frame_rows
from ragwb.view.theme import BLUE, GREY, TRIAGE_COLOURS

if TYPE_CHECKING:
    import altair as alt

    from ragwb.triage.result import Triage

Row = dict[str, Any]

# The list that is cut at K ends at the stage rerank, which need not have put the evidence so low.
_NAMES = {"rerank": "rerank, cut at K"}
_WIDTH = 560
_NAME_WIDTH = 34
_MOST_EMPTY = 3  # slices without a failed case that have a line of their own


def losses_by_stage(triage: Triage) -> alt.LayerChart:
    """Failed cases by reason as bars, coloured by stage: security first, then the pipeline.

    Args:
        triage: a run's failed cases.
    """
    import altair as alt

    rows = [_loss(row) for row in frame_rows(triage.stages())]
    most = max((row["n"] for row in rows), default=1)
    y = alt.Y("name:N", title=None, sort=None, axis=alt.Axis(labelLimit=330))
    x = alt.X(
        "n:Q",
        title="failed cases",
        scale=alt.Scale(domain=[0, most], nice=False),
        axis=alt.Axis(tickMinStep=1, format="d", tickCount=min(most, 8)),
    )
    base = chart_of(rows).encode(y=y)
    bars = base.mark_bar(height=18).encode(x=x, color=_stage_colour(rows))
    words = base.mark_text(align="left", dx=6, fontSize=12).encode(x=x, text="words:N")
    return alt.layer(bars, words).properties(
        width=_WIDTH - 120,
        height=alt.Step(28),
        padding={"left": 5, "top": 5, "bottom": 5, "right": 130},
        title=alt.TitleParams(
            f"Where {_of_cases(triage)} failed",
            subtitle=["stage and reason of each failed case, in pipeline order", *_beyond(triage)],
        ),
    )


def _beyond(triage: Triage) -> list[str]:
    """A line on what is ranked beyond K and since what; none when nothing is."""
    words = beyond_words(count_beyond((case.verdict for case in triage.cases), k=triage.k))
    return [words] if words else []


def _loss(row: Row) -> Row:
    high = f" ({row['high_risk']} high risk)" if row["high_risk"] else ""
    is_beyond = row["reason"] == RANKED_BELOW_K
    name = f"{'beyond K' if is_beyond else row['stage']} · {row['reason']}"
    return {"name": name, "stage": row["stage"], "n": row["n"], "words": f"{row['n']}{high}"}


def _of_cases(triage: Triage) -> str:
    return f"{len(triage.cases)} of {triage.n_cases} cases"


def _stage_colour(rows: Sequence[Row]) -> Any:
    colours = {row["stage"]: TRIAGE_COLOURS.get(row["stage"], GREY) for row in rows}
    return colour_by("stage", colours, has_legend=False)


def losses_by_tag(triage: Triage, field: str | None = None) -> alt.LayerChart:
    """Failed cases by slice and stage as a heat map, the slice that fails most often first.

    A cell holds its number of cases and is coloured by their share of the slice.

    Args:
        triage: a run's failed cases.
        field: tags.<name>, risk, tier or set; by default the first of `triage.fields()`.
    Raises:
        UsageError: no case has this field.
    """
    import altair as alt

    field = field or triage.fields()[0]
    rows = _cells(triage, field)
    stages = list(dict.fromkeys(row["stage"] for row in rows))
    y = alt.Y("name:N", title=None, sort=None, axis=alt.Axis(labelLimit=330, ticks=False))
    x = alt.X(
        "stage:N",
        title=None,
        sort=stages,
        axis=alt.Axis(orient="top", labelAngle=0, ticks=False, domain=False),
    )
    base = chart_of(rows).encode(x, y)
    # Both ends are dark or light enough for their numbers on any page.
    shade = alt.Scale(domain=[0, 1], range=["#DCEBF7", BLUE])
    boxes = base.transform_filter(alt.datum.n > 0).mark_rect(stroke=GREY, strokeWidth=0.5)
    filled = base.transform_filter(alt.datum.n > 0).mark_text(fontSize=13, fontWeight="bold")
    ink = alt.condition(alt.datum.share > 0.45, alt.value("#FFFFFF"), alt.value("#0B1F2E"))
    empty = base.transform_filter(alt.datum.n == 0).mark_text(fontSize=12, opacity=0.5, text="·")
    title = alt.TitleParams(
        f"{_of_cases(triage)} failed, by {visible(field)} and stage",
        subtitle="number of cases; the darker, the greater their share of the slice",
    )
    return alt.layer(
        boxes.encode(color=alt.Color("share:Q", scale=shade, legend=None)),
        filled.encode(text="n:Q", color=ink),
        empty,
    ).properties(width=alt.Step(92), height=alt.Step(26), title=title)


def _cells(triage: Triage, field: str) -> list[Row]:
    """A row a slice and stage, the slice with the greatest share of failed cases first."""
    found = frame_rows(triage.by(field))
    n_failed: dict[str | None, int] = {}
    for row in found:
        n_failed[row["slice"]] = n_failed.get(row["slice"], 0) + row["n"]
    ordered = sorted(found, key=lambda row: -n_failed[row["slice"]] / row["n_cases"])
    names = {name: short_name(name, _NAME_WIDTH) for name in n_failed}
    cells = [
        {
            "name": f"{names[row['slice']]} ({n_failed[row['slice']]} of {row['n_cases']})",
            "stage": _NAMES.get(row["stage"], row["stage"]),
            "n": row["n"],
            "share": row["n"] / row["n_cases"],
            "failed": n_failed[row["slice"]],
            "n_cases": row["n_cases"],
        }
        for row in ordered
    ]
    return _without_empty(cells)


def _without_empty(cells: Sequence[Row]) -> list[Row]:
    """Many slices without a failed case as one."""
    empty = {cell["name"]: cell["n_cases"] for cell in cells if not cell["failed"]}
    if len(empty) <= _MOST_EMPTY:
        return list(cells)
    failed = [cell for cell in cells if cell["failed"]]
    name = f"{len(empty)} other slices (0 of {sum(empty.values())})"
    stages = dict.fromkeys(cell["stage"] for cell in cells)
    return failed + [{"name": name, "stage": stage, "n": 0, "share": 0} for stage in stages]


def funnel(triage: Triage) -> alt.LayerChart:
    """How many required groups are left after each stage that was observed, and how many it loses.

    The solid bar is left, the pale one behind it was lost at the stage or is not known to be left.

    Args:
        triage: a run's failed cases.
    """
    import altair as alt

    rows = _funnel_rows(triage)
    n_groups = rows[0]["before"] if rows else 0
    y = alt.Y("name:N", title=None, sort=None)
    scale = alt.Scale(domain=[0, max(n_groups, 1)], nice=False)
    axis = alt.Axis(tickMinStep=1, format="d", tickCount=8)
    x = alt.X("n:Q", title="required groups left after the stage", scale=scale, axis=axis)
    base = chart_of(rows).encode(y=y)
    before = base.mark_bar(height=18, opacity=0.3).encode(
        alt.X("n:Q", scale=scale), alt.X2("before:Q"), _stage_colour(rows)
    )
    left = base.mark_bar(height=18).encode(x=x, color=_stage_colour(rows))
    words = base.mark_text(align="left", dx=6, fontSize=12).encode(
        x=alt.value(_WIDTH - 160), text="words:N"
    )
    return alt.layer(before, left, words).properties(
        width=_WIDTH - 160,
        height=alt.Step(28),
        padding={"left": 5, "top": 5, "bottom": 5, "right": 230},
        title=alt.TitleParams(
            f"What is left of {n_groups} required groups",
            subtitle=f"over the judged cases, at K = {triage.k}; pale: gone at this stage",
        ),
    )


def _funnel_rows(triage: Triage) -> list[Row]:
    groups = (group for case in triage.cases for group in case.verdict.groups)
    n_beyond = sum(group.reason == RANKED_BELOW_K for group in groups)
    rows: list[Row] = []
    for row in frame_rows(triage.funnel()):
        before = rows[-1]["n"] if rows else row["n_groups"]
        known = rows[-1]["unknown"] if rows else 0
        unknown = row["n_unknown"] - known
        n_lost = before - row["n"] - unknown
        words = f"{row['n']} of {row['n_groups']}"
        words += _gone(n_lost, n_beyond if row["stage"] == "rerank" else 0)
        words += f", {unknown} not observed" if unknown else ""
        name = _NAMES.get(row["stage"], row["stage"])
        kept = {
            "stage": row["stage"],
            "name": name,
            "n": row["n"],
            "before": before,
            "words": words,
        }
        rows.append({**kept, "unknown": row["n_unknown"]})
    return rows


def _gone(n_lost: int, n_beyond: int) -> str:
    """How many groups a stage ends for, and how many of them only stand beyond the cut at K."""
    if not n_lost:
        return ""
    if not n_beyond:
        return f", {n_lost} lost here"
    if n_beyond == n_lost:
        return f", {n_lost} ranked beyond K"
    return f", {n_lost} lost here, {n_beyond} of them beyond K"
