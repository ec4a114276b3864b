"""Charts of a period: a column a run in the order of time, and a mark where anything changed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ragwb.html import visible
from ragwb.measure.listed import count
from ragwb.view.marks import chart_of
from ragwb.view.theme import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, TRIAGE_COLOURS
from ragwb.view.tracks import cut_to_width

if TYPE_CHECKING:
    import altair as alt

    from ragwb.decide.weekly.drift import UnstableCase
    from ragwb.decide.weekly.period import Series

Row = dict[str, Any]

SET_COLOURS = {"core": BLUE, "incremental": ORANGE, "online": GREEN}
_WIDTH = 760
_HALF = 330
_MOST_LABELS = 13
_STATES = {"pass": "#BFD9EC", "fail": RED, "error": PURPLE}
_STATE_WORDS = {"pass": "pass", "fail": "fail", "error": "call failed"}
_NAME_WIDTH = 34
_BESIDE_P95 = ("p50_ms", "p99_ms")  # in the table; three lines of latency say little more than one


def has_trend(series: Series) -> bool:
    """Whether a line has more than one dot: two runs or more were answered."""
    return sum(not point.is_failed for point in series.points) > 1


def trend(series: Series, metric: str | None = None) -> alt.LayerChart:
    """One figure run by run, its 95 % interval as a band.

    Args:
        series: runs in the order of time.
        metric: a figure; by default the one that leads.
    """
    metric = metric or series.metric
    rows = _figure_rows(series, metric)
    n = rows[-1]["n"] if rows else 0
    subtitle = "band: 95 % interval" if any(row["low"] is not None for row in rows) else ""
    title = f"{metric}, {count(len(series.points), 'run')}, {count(n, 'case')} in the last"
    return _line_chart(series, rows, metric, width=_WIDTH, height=190).properties(
        title=_title(title, subtitle, series)
    )


def trend_by_set(series: Series) -> alt.LayerChart:
    """The leading figure of each set by itself: core, incremental and online apart."""
    import altair as alt

    rows = [
        {**row, "i": i, "set": visible(row["set"])}
        for i, point in enumerate(series.points)
        for row in point.sets
        if row["value"] is not None
    ]
    names = sorted({row["set"] for row in rows})
    latest = {visible(row["set"]): row for row in series.latest.sets}
    said = [f"{name} (n={latest[name]['n']})" if name in latest else name for name in names]
    rows = [{**row, "name": said[names.index(row["set"])]} for row in rows]
    colours = [SET_COLOURS.get(name, GREY) for name in names]
    scale = alt.Scale(domain=said, range=colours)
    base = chart_of(rows).encode(_x(series))
    y = alt.Y("value:Q", title=series.metric, scale=_y_scale(rows))
    # The legend takes after the first layer, which is pale.
    colour = alt.Color("name:N", title=None, scale=scale, legend=alt.Legend(symbolOpacity=1))
    band = base.mark_area(opacity=0.12).encode(
        alt.Y("low:Q", title=series.metric, scale=_y_scale(rows)), alt.Y2("high:Q"), colour
    )
    line = base.mark_line(strokeWidth=2).encode(y, colour)
    shape = alt.Shape("name:N", title=None, scale=alt.Scale(domain=said))
    point = base.mark_point(filled=True, size=_size(series), opacity=1).encode(y, colour, shape)
    title = f"{series.metric} by set, {count(len(series.points), 'run')}"
    return alt.layer(band, line, point, *_marks(series)).properties(
        width=_WIDTH - 110, height=190, title=_title(title, "band: 95 % interval", series)
    )


def moving_figures(series: Series) -> tuple[list[str], list[str]]:
    """The names of the figures that have values, apart those that never moved; p50 and p99 left.

    Returns:
        Those that moved, and those of which every run has the same value.
    """
    names = [row["metric"] for row in series.latest.figures if row["value"] is not None]
    moved: list[str] = []
    still: list[str] = []
    for name in names:
        values = {row["value"] for row in _figure_rows(series, name)}
        (still if len(values) == 1 and len(series.points) > 1 else moved).append(name)
    return [name for name in moved if name not in _BESIDE_P95], still


def figure_trends(series: Series, metrics: Sequence[str]) -> alt.ConcatChart:
    """Several figures run by run, side by side, each on a scale of its own.

    Args:
        series: runs in the order of time.
        metrics: names of figures.
    """
    import altair as alt

    charts = []
    for metric in metrics:
        rows = _figure_rows(series, metric)
        chart = _line_chart(series, rows, metric, width=_HALF, height=84, numbered=False)
        words = alt.TitleParams(_with_value(metric, rows), fontSize=12)
        charts.append(chart.properties(title=words))
    title = f"Every figure, {count(len(series.points), 'run')}"
    subtitle = "beside each name the last run; band: 95 % interval; scales do not begin at 0"
    return alt.concat(*charts, columns=2, spacing=18).properties(
        title=alt.TitleParams(title, subtitle=subtitle, offset=16)
    )


def stages_over_time(series: Series) -> alt.LayerChart:
    """Failed cases of each run as stacked bars, by the stage at which each was lost."""
    import altair as alt

    stages = [
        stage for stage in TRIAGE_COLOURS if any(stage in point.stages for point in series.points)
    ]
    rows = [
        {"i": i, "stage": stage, "n": point.stages[stage], "order": order}
        for i, point in enumerate(series.points)
        for order, stage in enumerate(stages)
        if stage in point.stages
    ]
    most = max((sum(point.stages.values()) for point in series.points), default=0)
    scale = alt.Scale(domain=stages, range=[TRIAGE_COLOURS[stage] for stage in stages])
    bars = (
        chart_of(rows)
        .mark_bar(stroke="#FFFFFF", strokeWidth=0.4)
        .encode(
            _x(series),
            alt.Y(
                "n:Q",
                title="failed cases",
                axis=alt.Axis(tickMinStep=1, format="d"),
                scale=alt.Scale(domain=[0, max(most, 1)]),
            ),
            alt.Color("stage:N", title=None, scale=scale),
            alt.Order("order:Q"),
        )
    )
    latest = sum(series.latest.stages.values())
    title = f"Where failed cases are lost, {count(len(series.points), 'run')}, {latest} in the last"
    return alt.layer(bars, *_marks(series)).properties(
        width=_WIDTH - 110,
        height=190,
        title=_title(title, f"by triage, at K = {series.k}", series),
    )


def case_history(series: Series, cases: Sequence[UnstableCase]) -> alt.LayerChart:
    """What became of some cases in each run: a row a case, a column a run.

    Args:
        series: runs in the order of time.
        cases: the cases, from the top.
    """
    import altair as alt

    names = [_case_name(case.case_id, at) for at, case in enumerate(cases)]
    rows = [
        {"i": i, "name": name, "state": _STATE_WORDS[state]}
        for name, case in zip(names, cases, strict=True)
        for i, state in enumerate(case.history)
        if state in _STATES
    ]
    y = alt.Y(
        "name:N",
        title=None,
        sort=None,
        scale=alt.Scale(domain=names, paddingInner=0.2),
        axis=alt.Axis(
            labelLimit=240, ticks=False, domain=False, labelExpr="split(datum.label, '\\u2063')[0]"
        ),
    )
    words = [_STATE_WORDS[state] for state in _STATES]
    scale = alt.Scale(domain=words, range=list(_STATES.values()))
    boxes = (
        chart_of(rows)
        .mark_rect()
        .encode(_x(series), y, alt.Color("state:N", title=None, scale=scale))
    )
    title = f"{len(cases)} unstable cases, run by run"
    subtitle = "empty: not asked, not compared, or without evidence to find"
    return alt.layer(boxes, *_marks(series, numbered=False)).properties(
        width=_WIDTH - 260, height=alt.Step(17), title=alt.TitleParams(title, subtitle=subtitle)
    )


def run_labels(series: Series) -> list[str]:
    """What each run is called on the time axis: its day, with its time where a day has several."""
    times = [point.at for point in series.points]
    days = Counter(at.date() for at in times)
    form = "%m-%d" if len({at.year for at in times}) == 1 else "%Y-%m-%d"
    return [
        at.strftime(form) + (at.strftime(" %H:%M") if days[at.date()] > 1 else "") for at in times
    ]


def _case_name(case_id: str, at: int) -> str:
    # An invisible separator and the place keep two ids apart that are cut to the same text.
    shown = cut_to_width(visible(case_id).replace("\n", " ").replace("\u2063", ""), _NAME_WIDTH)
    return f"{shown}\u2063{at}"


def _figure_rows(series: Series, metric: str) -> list[Row]:
    rows = []
    for i, point in enumerate(series.points):
        row = point.figure(metric)
        if row is not None and row["value"] is not None:
            rows.append({"i": i, **{name: row[name] for name in ("value", "low", "high", "n")}})
    return rows


def _line_chart(
    series: Series,
    rows: Sequence[Row],
    metric: str,
    *,
    width: int,
    height: int,
    numbered: bool = True,
) -> alt.LayerChart:
    import altair as alt

    unit = _unit(metric)
    scale = _y_scale(rows)
    most = 13 if width > _HALF else 6
    base = chart_of(rows).encode(_x(series, most=most))
    band = (
        base.transform_filter("isValid(datum.low)")
        .mark_area(opacity=0.18, color=BLUE)
        .encode(alt.Y("low:Q", title=unit, scale=scale), alt.Y2("high:Q"))
    )
    y = alt.Y("value:Q", title=unit, scale=scale, axis=alt.Axis(tickCount=4 if height < 120 else 6))
    line = base.mark_line(strokeWidth=2, color=BLUE).encode(y)
    size = _size(series) if width > _HALF else _size(series) / 2
    point = base.mark_point(filled=True, size=size, opacity=1, color=BLUE).encode(y)
    return alt.layer(band, line, point, *_marks(series, numbered=numbered)).properties(
        width=width, height=height
    )


def _x(series: Series, *, most: int = _MOST_LABELS) -> Any:
    """A band a run; some of them are labelled, the last among them."""
    import altair as alt

    labels = run_labels(series)
    n = len(labels)
    step = -(-n // most)
    shown = sorted(range(n - 1, -1, -step))
    return alt.X(
        "i:O",
        title=None,
        scale=alt.Scale(type="band", domain=list(range(n)), paddingInner=0.15),
        axis=alt.Axis(
            values=shown,
            labelExpr=f"{json.dumps(labels)}[datum.value]",
            labelAngle=0,
            labelFlush=False,
            labelOverlap=True,
            grid=False,
        ),
    )


def _y_scale(rows: Sequence[Row]) -> Any:
    """From the lowest to the highest end of what is drawn, not from 0."""
    import altair as alt

    ends = [row[name] for row in rows for name in ("value", "low", "high") if row[name] is not None]
    if not ends:
        return alt.Scale()
    low, high = min(ends), max(ends)
    # A figure that never moves stands in the middle, not on an axis.
    room = (high - low) * 0.08 or abs(high) * 0.1 or 0.1
    return alt.Scale(domain=[max(0.0, low - room), high + room], zero=False, nice=False)


def _marks(series: Series, *, numbered: bool = True) -> list[Any]:
    """A dashed line where something was changed, with its number on top."""
    import altair as alt

    if not series.marks:
        return []
    rows = [{"i": mark.index, "number": str(mark.number)} for mark in series.marks]
    base = chart_of(rows)
    x = alt.X("i:O", bandPosition=0)
    rules = base.mark_rule(color=GREY, strokeDash=[4, 3]).encode(x)
    if not numbered:
        return [rules]
    words = base.mark_text(dy=-7, fontSize=12, fontWeight="bold").encode(
        x, y=alt.value(0), text="number:N"
    )
    return [rules, words]


def _title(title: str, subtitle: str, series: Series) -> Any:
    import altair as alt

    parts = [subtitle, "numbered: what was changed, see the list" if series.marks else ""]
    said = "; ".join(part for part in parts if part)
    return alt.TitleParams(title, subtitle=said, offset=16) if said else alt.TitleParams(title)


def _size(series: Series) -> float:
    """Area of a mark: less where many runs stand close together."""
    return 50 if len(series.points) <= 30 else 20


def _unit(metric: str) -> str:
    if metric.endswith("_ms"):
        return "ms"
    return "tokens" if metric.endswith("_tokens") else "mean"


def _with_value(metric: str, rows: Sequence[Row]) -> str:
    if not rows:
        return f"{metric}  –"
    value = rows[-1]["value"]
    written = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3f}"
    return f"{metric}  {written}" + (" ms" if metric.endswith("_ms") else "")
