"""What a run loses where, above the list of cases: bars that are clicked, and pictures beside."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ragwb.triage.reasons import REASONS
from ragwb.view.panel import frame_rows

if TYPE_CHECKING:
    from ragwb.triage.result import Triage

_PARTS = 20  # steps of a bar's length


class Overview:
    """Bars by stage and reason, each of which selects its cases; a funnel; tags against stages.

    Attributes:
        widget: the bars, and the pictures beside them.
    """

    def __init__(
        self, triage: Triage, on_pick: Callable[[str, str], None], on_turn: Callable[..., None]
    ) -> None:
        import ipywidgets as widgets

        self._triage = triage
        rows = frame_rows(triage.stages())
        most = max((row["n"] for row in rows), default=1)
        self._bars = {(row["stage"], row["reason"]): _bar(row, most, on_pick) for row in rows}
        bars = widgets.VBox(list(self._bars.values()))
        bars.add_class("rw-bars")
        self._field = widgets.Dropdown(options=triage.fields(), description="by")
        self._funnel, self._losses = widgets.HTML(), widgets.HTML()
        self._tabs = widgets.Tab(
            [self._funnel, widgets.VBox([self._field, self._losses])],
            titles=("Funnel", "Tag × stage"),
            selected_index=0,
        )
        self._tabs.add_class("rw-pictures")
        self._tabs.observe(on_turn, names="selected_index")
        self._field.observe(on_turn, names="value")
        self.widget = widgets.HBox([bars, self._tabs])
        self.widget.add_class("rw-overview")

    def mark(self, stage: str, reason: str) -> None:
        """Show which bar's cases are looked at."""
        for pair, bar in self._bars.items():
            (bar.add_class if pair == (stage, reason) else bar.remove_class)("rw-on")

    def draw(self, _: object = None) -> None:
        """Draw the picture behind the open tab."""
        from ragwb.view.theme import chart_panel
        from ragwb.view.triage_charts import funnel, losses_by_tag

        if self._tabs.selected_index == 1:
            self._losses.value = chart_panel(losses_by_tag(self._triage, self._field.value)).html
        elif not self._funnel.value:
            self._funnel.value = chart_panel(funnel(self._triage)).html


def _bar(row: dict[str, Any], most: int, on_pick: Callable[[str, str], None]) -> Any:
    """A button that looks like a bar: its length is the share of the longest."""
    import ipywidgets as widgets

    stage, code, n = row["stage"], row["reason"], row["n"]
    high = f" · {row['high_risk']} high risk" if row["high_risk"] else ""
    bar = widgets.Button(
        description=f"{n}  {stage} · {code}{high}",
        tooltip=f"{REASONS[code].meaning}: click to look at {'it' if n == 1 else 'them'}",
    )
    for name in ("rw-bar", f"rw-stage-{stage}", f"rw-part-{-(-n * _PARTS // most)}"):
        bar.add_class(name)
    bar.on_click(lambda _: on_pick(stage, code))
    return bar


def bar_styles() -> str:
    """The style rules of a bar's length, a class a step."""
    return "\n".join(
        f".rw-part-{part} {{ --rw-part: {part * 100 // _PARTS}%; }}" for part in range(_PARTS + 1)
    )
