"""One look for every chart: colours by stage and metric, and a renderer that needs no network.

Charts are shown as inline SVG, so that they read without scripts in JupyterLab, in a report and on
paper. Their text takes the colour of the page, which makes them legible in light and dark themes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ragwb.html import tag
from ragwb.view.panel import Panel

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
METRIC_COLOURS = {"recall": BLUE, "hit_rate": ORANGE, "mrr": GREEN, "ndcg": PURPLE}

# A colour that no chart uses for data; `svg` turns it into the colour of the surrounding text.
_INK = "#010203"
_FONT = "system-ui, 'Noto Sans CJK SC', 'PingFang SC', 'Microsoft YaHei', sans-serif"

CONFIG: dict[str, Any] = {
    "background": "transparent",
    "font": _FONT,
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
    return Panel("", tag("style", style))


def render(spec: dict[str, Any], **_: object) -> dict[str, str]:
    """The renderer's MIME bundle of one chart: inline SVG as HTML."""
    return {"text/html": svg(spec)}


def svg(spec: dict[str, Any]) -> str:
    """A Vega-Lite specification as SVG text: no network, and the text colour of the page."""
    import vl_convert

    drawn: str = vl_convert.vegalite_to_svg(spec, config=CONFIG, allowed_base_urls=[])
    return drawn.replace(_INK, "currentColor")
