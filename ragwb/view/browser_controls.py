"""The controls of what-if: one for each setting that can be told; changing one resets the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ragwb.html import plain

if TYPE_CHECKING:
    from ragwb.triage.result import Triage
    from ragwb.triage.whatif import Change

AS_IT_RAN = "as it ran"
_MOST_POSITIONS = 50
_MOST_RRF_K = 200
_MOST_WEIGHT = 4.0
_TITLES = {
    "k": "K",
    "rerank": "reranker",
    "rrf_k": "RRF constant",
    "weights": "weight of",
    "channel": "only channel",
    "deduplicate": "duplicates",
    "context_budget_tokens": "context budget",
    "threshold": "threshold",
    "candidate_k": "candidate K",
    "waive": "waive filter",
}
_WORDS: dict[str, dict[Any, str]] = {
    "rerank": {"off": "off"},
    "deduplicate": {"id": "removed by id", "text": "removed by text"},
    "threshold": {None: "none"},
}


@dataclass(frozen=True, slots=True)
class Control:
    """The inputs of one setting.

    Attributes:
        inputs: ipywidgets; several for the weights, one a channel.
        at_rest: their values that stand for the setting as it ran.
        change: the change that their values mean.
    """

    inputs: Sequence[Any]
    at_rest: Sequence[Any]
    change: Callable[[list[Any]], Change]

    def asked(self) -> Change | None:
        """The change that is asked for; None when all is as it ran."""
        values = [widget.value for widget in self.inputs]
        return None if values == list(self.at_rest) else self.change(values)

    def rest(self) -> None:
        """Set it as it ran."""
        for widget, value in zip(self.inputs, self.at_rest, strict=True):
            widget.value = value


class Controls:
    """All controls of a run, of which one at a time is changed.

    Attributes:
        widget: the controls, and a button that sets all as it ran.
    """

    def __init__(self, triage: Triage, on_change: Callable[..., None]) -> None:
        import ipywidgets as widgets

        self._on_change = on_change
        self._quiet = False
        self._controls = list(_controls(triage))
        for control in self._controls:
            for widget in control.inputs:
                widget.observe(lambda _, c=control: self._changed(c), names="value")
        back = widgets.Button(description=AS_IT_RAN, tooltip="every setting as in the run")
        back.on_click(lambda _: self._changed(None))
        inputs = [widget for control in self._controls for widget in control.inputs]
        self.widget = widgets.Box([*inputs, back])
        self.widget.add_class("rw-controls")

    def asked(self) -> Change | None:
        """The change that is asked for; None when every setting is as it ran."""
        return next((c for control in self._controls if (c := control.asked())), None)

    def _changed(self, kept: Control | None) -> None:
        if self._quiet:
            return
        self._quiet = True
        try:
            for control in self._controls:
                if control is not kept:
                    control.rest()
        finally:
            self._quiet = False
        self._on_change()


def _controls(triage: Triage) -> Iterator[Control]:
    """A control for each setting of which the run's traces can tell."""
    from ragwb.triage.whatif import changes_for

    for setting, changes in groupby(changes_for(triage), key=lambda change: change.setting):
        tried = list(changes)
        if setting == "weights":
            yield _weights(tried[0])
        elif setting in ("k", "rrf_k", "context_budget_tokens", "candidate_k"):
            yield _number(tried)
        else:
            yield _choice(tried)


def _number(tried: Sequence[Change]) -> Control:
    """A slider from small to large around what it was."""
    import ipywidgets as widgets

    from ragwb.triage.whatif import Change

    setting, before = tried[0].setting, tried[0].before
    assert isinstance(before, int | float)
    low, high, step = _range(setting, int(before))
    slider = widgets.IntSlider(
        value=int(before), min=low, max=high, step=step, description=_TITLES[setting]
    )
    slider.continuous_update = False
    slider.add_class(f"rw-what-{setting}")
    return Control([slider], [slider.value], lambda values: Change(setting, values[0], before))


def _range(setting: str, before: int) -> tuple[int, int, int]:
    """Least, greatest and step; the value that it was is among them."""
    match setting:
        case "k":
            return 1, max(_MOST_POSITIONS, before), 1
        case "rrf_k":
            return 1, max(_MOST_RRF_K, before), 1
        case "candidate_k":
            return before, before * 10, max(before // 5, 1)
        case _:
            step = max(before // 10, 1)
            return before % step or step, before * 4, step


def _weights(change: Change) -> Control:
    """A slider a channel; together they are one setting."""
    import ipywidgets as widgets

    from ragwb.triage.whatif import Change

    before = change.before
    assert isinstance(before, tuple)
    sliders = [
        widgets.FloatSlider(
            value=weight,
            max=max(_MOST_WEIGHT, weight),
            step=0.05,
            description=f"{_TITLES['weights']} {plain(name, width=20)}",
            continuous_update=False,
        )
        for name, weight in before
    ]
    for slider in sliders:
        slider.add_class("rw-what-weights")
    names = [name for name, _ in before]
    return Control(
        sliders,
        [slider.value for slider in sliders],
        lambda values: Change("weights", tuple(zip(names, values, strict=True)), before),
    )


def _choice(tried: Sequence[Change]) -> Control:
    """A list of what is tried."""
    import ipywidgets as widgets

    setting = tried[0].setting
    words = _WORDS.get(setting, {})
    options = [(words.get(change.value) or plain(change.value), change) for change in tried]
    dropdown = widgets.Dropdown(
        options=[(AS_IT_RAN, AS_IT_RAN), *options], description=_TITLES[setting]
    )
    dropdown.add_class(f"rw-what-{setting}")
    return Control([dropdown], [AS_IT_RAN], lambda values: values[0])
