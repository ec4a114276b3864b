"""Charts: functions that take results and return an Altair chart, and never show or save it.

A title says what is seen and its n; axes carry units; small numbers carry their counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragwb.html import visible
from ragwb.measure.listed import count
from ragwb.view.answer_charts import answer_figures
from ragwb.view.compare_charts import compare_figures, compare_slices, quality_against_cost
from ragwb.view.journey import rank_journey
from ragwb.view.judge_charts import judge_agreement
from ragwb.view.marks import chart_of, colour_by, grouped_intervals
from ragwb.view.panel import frame_rows
from ragwb.view.theme import BLUE, GREY, METRIC_COLOURS, STAGE_COLOURS
from ragwb.view.triage_charts import funnel, losses_by_stage, losses_by_tag

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

    from ragwb.measure.summary import Scores

__all__ = [
    "CURVE_METRICS",
    "answer_figures",
    "compare_figures",
    "compare_slices",
    "funnel",
    "judge_agreement",
    "latency_by_stage",
    "losses_by_stage",
    "losses_by_tag",
    "quality_against_cost",
    "rank_journey",
    "score_by_k",
    "score_by_slice",
]

CURVE_METRICS = ("recall", "hit_rate", "mrr", "ndcg")
_WIDTH = 560


def score_by_k(scores: Scores) -> alt.LayerChart:
    """Recall, hit rate, MRR and nDCG against K, with the 95 % interval of recall as a band.

    Args:
        scores: the scores of a run at several K.
    """
    import altair as alt

    frame = _curve_frame(scores.summary())
    ks = sorted(frame["k"].unique().tolist())
    n = int(frame["n"].max()) if len(frame) else 0
    x = alt.X(
        "k:Q",
        title="K (positions looked at)",
        scale=alt.Scale(nice=False),
        axis=alt.Axis(values=ks),
    )
    y = alt.Y("value:Q", title="mean over cases", scale=alt.Scale(domain=[0, 1]))
    colour = alt.Color(
        "metric:N",
        title=None,
        scale=alt.Scale(domain=list(METRIC_COLOURS), range=list(METRIC_COLOURS.values())),
    )
    shape = alt.Shape("metric:N", title=None, scale=alt.Scale(domain=list(METRIC_COLOURS)))
    base = alt.Chart(frame)
    band = (
        base.transform_filter(alt.datum.metric == "recall")
        .mark_area(opacity=0.15, color=BLUE)
        .encode(x, alt.Y("low:Q", title="mean over cases"), alt.Y2("high:Q"))
    )
    line = base.mark_line(strokeWidth=2).encode(x, y, colour)
    point = base.mark_point(filled=True, size=60, opacity=1).encode(x, y, colour, shape)
    title = alt.TitleParams(
        f"Score against K, {count(n, 'case')}", subtitle="band: 95 % bootstrap interval of recall"
    )
    return alt.layer(band, line, point).properties(width=_WIDTH, height=260, title=title)


def _curve_frame(summary: pd.DataFrame) -> pd.DataFrame:
    named = summary["metric"].str.extract(r"^(?P<name>[a-z_]+)@(?P<k>\d+)$")
    frame = summary.assign(metric=named["name"], k=named["k"])
    frame = frame[frame["metric"].isin(CURVE_METRICS) & frame["value"].notna()]
    return frame.assign(k=frame["k"].astype(int))[["metric", "k", "value", "low", "high", "n"]]


def score_by_slice(scores: Scores, *, metric: str) -> alt.FacetChart:
    """One metric by every slice as a dot with its 95 % interval and n, the lowest of a field first.

    Args:
        scores: the scores of a run.
        metric: a figure of the summary, such as `recall@5`.
    """
    import altair as alt

    return grouped_intervals(
        _slice_rows(scores, metric),
        scores.fields(),
        alt.ColorValue(BLUE),
        title=f"{metric} by slice, {scores.n_scored} cases",
        axis=f"{metric}, mean and 95 % interval",
        width=_WIDTH - 80,
    )


def _slice_rows(scores: Scores, metric: str) -> list[dict[str, object]]:
    rows = []
    for field in scores.fields():
        table = scores.by(field)
        table = table[(table["metric"] == metric) & table["value"].notna()].sort_values("value")
        for order, row in enumerate(frame_rows(table)):
            name = "(none)" if row["slice"] is None else visible(row["slice"])
            figures = {key: row[key] for key in ("value", "low", "high")}
            rows.append(
                {"group": field, "name": f"{name} (n={row['n']})", "order": order, **figures}
            )
    return rows


def latency_by_stage(latencies: pd.DataFrame) -> alt.LayerChart:
    """Every call's milliseconds per stage as a tick, p50 and p95 marked, the slowest stage first.

    Args:
        latencies: one row a call and stage: `stage` str, `ms` float ≥ 0.
    """
    import altair as alt

    medians = latencies.groupby("stage")["ms"].median().sort_values(ascending=False)
    order = [visible(stage) for stage in medians.index]
    n = int(latencies.groupby("stage").size().max()) if len(latencies) else 0
    y = alt.Y("stage:N", title=None, sort=order)
    colours = {stage: STAGE_COLOURS.get(stage, GREY) for stage in order}
    colour = colour_by("stage", colours, has_legend=False)
    scale = alt.Scale(type="log", nice=False)
    x = alt.X(
        "ms:Q", title="milliseconds (log)", scale=scale, axis=alt.Axis(format="~g", tickCount=6)
    )
    rows = [{"stage": visible(r["stage"]), "ms": _on_log(r["ms"])} for r in frame_rows(latencies)]
    ticks = chart_of(rows).mark_tick(thickness=1, opacity=0.45).encode(x, y, colour)
    marks = chart_of(_percentile_rows(latencies))
    dot = marks.mark_point(filled=True, size=60, opacity=1).encode(
        x,
        y,
        colour,
        alt.Shape("name:N", title=None, legend=alt.Legend(orient="bottom")),
    )
    label = (
        marks.transform_filter(alt.datum.name == "p50")
        .mark_text(align="left", fontSize=12)
        .encode(y, x=alt.value(_WIDTH - 92), text="words:N")
    )
    return alt.layer(ticks, dot, label).properties(
        width=_WIDTH - 100,
        height=alt.Step(28),
        padding={"left": 5, "top": 5, "bottom": 5, "right": 150},
        title=f"Latency by stage, {n} calls",
    )


def _on_log(milliseconds: float) -> float:
    """What a log axis can show: a stage that took less than the clock tells stands at 0.001 ms."""
    return max(milliseconds, 0.001)


def _percentile_rows(latencies: pd.DataFrame) -> list[dict[str, object]]:
    from ragwb.measure.cost import percentile

    rows: list[dict[str, object]] = []
    for stage, group in latencies.groupby("stage"):
        p50, p95 = percentile(group["ms"], 0.50), percentile(group["ms"], 0.95)
        words = f"p50 {p50:.3g} · p95 {p95:.3g} ms"
        rows += [
            {"stage": visible(stage), "name": name, "ms": _on_log(value or 0), "words": words}
            for name, value in (("p50", p50), ("p95", p95))
        ]
    return rows
