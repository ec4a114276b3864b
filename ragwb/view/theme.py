"""One look for every chart: colours by stage and metric, and a renderer that needs no network.

Charts are shown as inline SVG, so that they read without scripts in JupyterLab, in a report and on
paper. Their text takes the colour of the page, which makes them legible in light and dark themes.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragwb.html import plain, tag
from ragwb.view.panel import Panel

if TYPE_CHECKING:
    import altair as alt

# Okabe and Ito's palette, told apart with every common colour blindness and in grey print.
BLUE, ORANGE, GREEN, RED, PURPLE, SKY, GREY = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#D55E00",
    "#CC79A7",
    "#56B4E9",
    "#8A8A8A",
)
STAGE_COLOURS = {
    "vector": BLUE,
    "keyword": ORANGE,
    "fused": GREEN,
    "reranked": PURPLE,
    "results": RED,
    "context": SKY,
}
# By stage at which triage says that evidence was lost; like the trace's stages where they meet.
TRIAGE_COLOURS = {
    "knowledge": "#8B5A2B",
    "filter": ORANGE,
    "recall": BLUE,
    "fusion": GREEN,
    "rerank": PURPLE,
    "context": SKY,
    "generation": "#5B3FA0",
    "security": RED,
    "unknown": GREY,
}
METRIC_COLOURS = {"recall": BLUE, "hit_rate": ORANGE, "mrr": GREEN, "ndcg": PURPLE}

# A colour that no chart uses for data; `svg` turns it into the colour of the surrounding text.
_INK = "#010203"
# Charts are measured in a font that is everywhere, for each missing one costs time, and shown in
# the reader's own.
_DRAWN_FONT = "sans-serif"
_FONT = "system-ui, 'Noto Sans CJK SC', 'PingFang SC', 'Microsoft YaHei', sans-serif"

VEGA_LITE = "https://vega.github.io/schema/vega-lite/v6.json"

CONFIG: dict[str, Any] = {
    "background": "transparent",
    # Room for a reader's font that is wider than the one that is measured.
    "padding": {"left": 16, "top": 5, "right": 16, "bottom": 5},
    # A label for each mark would double a picture, and say no more than its table does.
    "aria": False,
    "font": _DRAWN_FONT,
    "view": {"stroke": None},
    "title": {"color": _INK, "fontSize": 14, "anchor": "start", "subtitleColor": _INK},
    "axis": {
        "labelColor": _INK,
        "titleColor": _INK,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 10,
        "labelLimit": 220,
        "gridColor": GREY,
        "gridOpacity": 0.25,
        "domainColor": GREY,
        "tickColor": GREY,
    },
    "legend": {
        "labelColor": _INK,
        "titleColor": _INK,
        "labelFontSize": 12,
        "symbolBaseFillColor": _INK,
        "symbolBaseStrokeColor": _INK,
    },
    "header": {"labelColor": _INK, "titleColor": _INK, "labelFontSize": 12},
    "text": {"color": _INK},
}


def setup() -> Panel:
    """Show Altair charts as inline SVG from now on, and give tables their look.

    Returns:
        A panel that shows nothing and carries the style sheet of every panel after it.
    """
    import altair as alt

    alt.renderers.register("ragwb", render)
    alt.renderers.enable("ragwb")
    style = (Path(__file__).parent / "style.css").read_text(encoding="utf-8")
    return Panel("", tag("style", style + stage_styles()))


def stage_styles() -> str:
    """The style rules that give `.rw-stage-<stage>` the colour of a stage of triage."""
    return "".join(
        f".rw-stage-{stage} {{ --rw-stage: {colour}; }}\n"
        for stage, colour in TRIAGE_COLOURS.items()
    )


def render(spec: dict[str, Any], **_: object) -> dict[str, str]:
    """The renderer's MIME bundle of one chart: inline SVG as HTML."""
    return {"text/html": svg(spec)}


def svg(spec: dict[str, Any]) -> str:
    """A Vega-Lite specification as SVG text: no network, and the text colour of the page."""
    import vl_convert

    drawn: str = vl_convert.vegalite_to_svg(spec, config=CONFIG, allowed_base_urls=[])
    drawn = drawn.replace(f'font-family="{_DRAWN_FONT}"', f'font-family="{_FONT}"')
    return drawn.replace(_INK, "currentColor")


def chart_panel(chart: alt.TopLevelMixin | dict[str, Any]) -> Panel:
    """A chart, or its Vega-Lite specification, as a panel whose text is the chart's title."""
    spec = chart if isinstance(chart, dict) else chart.to_dict()
    title = spec.get("title") or ""
    words = [title] if isinstance(title, str) else [title["text"], title.get("subtitle") or ""]
    text = ". ".join(plain(part) for part in words if part)
    return Panel(text, tag("div", svg(spec), class_="rw-chart", role="img", aria_label=text))
