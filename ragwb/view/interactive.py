"""Charts that move: Vega with its scripts in the page, so that it asks no network.

A report is a picture that reads without scripts; this is for JupyterLab and for pages that are
meant to be moved. The bundle is a megabyte, so a page holds it once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from ragwb.html import escape, tag
from ragwb.view.panel import Panel
from ragwb.view.theme import CONFIG, stage_styles

if TYPE_CHECKING:
    import altair as alt

_INK = CONFIG["text"]["color"]
_LOOK = (
    ".rw-live.vega-embed { margin: 12px 0; padding: 0; display: flex; "
    "flex-direction: column-reverse; align-items: flex-start; } "
    ".rw-live .vega-bindings { margin: 0 0 14px; font-size: 15px; } "
    ".rw-live input[type=range] { width: 420px; max-width: 60vw; vertical-align: middle; } "
    ".rw-live label { display: inline-block; min-width: 1.5em; } "
    "#vg-tooltip-element { max-width: 420px; } "
    "#vg-tooltip-element td.value { white-space: normal !important; overflow-wrap: anywhere; "
    "max-height: none; display: table-cell; -webkit-line-clamp: none; }"
)


def live_panel(chart: alt.TopLevelMixin | dict[str, Any]) -> Panel:
    """A chart that answers to the mouse and its sliders, with all scripts that it needs.

    The panel's text is the chart's title. At most one a page: each carries the whole bundle.
    """
    spec = chart if isinstance(chart, dict) else chart.to_dict()
    title = spec.get("title") or ""
    words = [title] if isinstance(title, str) else [title["text"], title.get("subtitle") or ""]
    text = ". ".join(part for part in words if part)
    # Text that could end a script's element is written so that JSON reads it all the same.
    data = _script_safe(json.dumps(spec, ensure_ascii=False, sort_keys=True))
    name = f"rw-live-{hashlib.sha256(data.encode()).hexdigest()[:12]}"
    options = _script_safe(
        json.dumps({"actions": False, "renderer": "svg", "config": _page_config()})
    )
    start = f"window.vegaEmbed('#{name}', {data}, {options});"
    html = tag("style", _LOOK) + tag("div", "", id=name, class_="rw-live", aria_label=text)
    html += tag("script", _bundle()) + tag("script", start)
    return Panel(text, html)


def live_page(title: str, parts: Mapping[str, Panel]) -> str:
    """A whole HTML page of panels under one another that needs no network.

    Args:
        title: of the page.
        parts: panels by heading; an empty heading is none.
    """
    folder = Path(__file__).parent
    style = (folder / "style.css").read_text(encoding="utf-8") + stage_styles()
    body = tag("h1", escape(title)) + "".join(
        (tag("h4", escape(name)) if name else "") + panel.html for name, panel in parts.items()
    )
    page = Template((folder / "live.html").read_text(encoding="utf-8"))
    return page.substitute(title=escape(title), style=style, body=body)


def _page_config() -> dict[str, Any]:
    """The look of every chart, its ink the colour of the page around it."""
    config: dict[str, Any] = json.loads(json.dumps(CONFIG).replace(_INK, "currentColor"))
    return config


def _script_safe(text: str) -> str:
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


@cache
def _bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script that leaves `window.vegaEmbed`.

    Its names stay inside, so that a cell that is run again does not declare them twice.
    """
    import vl_convert

    bundle: str = vl_convert.javascript_bundle()  # type: ignore[call-arg]  # stub: no default
    return "(() => {" + bundle.replace("</script", "<\\/script") + "})();"
