"""Which failed cases are looked at: the controls above the list, and what they leave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from ragwb.html import plain

if TYPE_CHECKING:
    from ragwb.triage.result import Triage

ANY = ""
NOTED, UNNOTED = "with a note", "without a note"
_MOST_OF_A_LABEL, _MOST_OF_A_NAME = 40, 60


@dataclass(frozen=True, slots=True)
class Choice:
    """What is looked for; "" asks for nothing.

    Attributes:
        stage, reason: of the case.
        tag: a tag as `name: value`.
        risk: normal or high.
        review: `NOTED` or `UNNOTED`.
        text: words that stand in the case's id or question, in any spelling of case.
        only_unstable: whether the repeats must differ.
    """

    stage: str = ANY
    reason: str = ANY
    tag: str = ANY
    risk: str = ANY
    review: str = ANY
    text: str = ""
    only_unstable: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """What of a failed case can be looked for, and how it stands in the list."""

    case_id: str
    stage: str
    reason: str
    tags: frozenset[str]
    risk: str
    question: str
    unstable: bool
    label: str

    def fits(self, choice: Choice, noted: Collection[str]) -> bool:
        """Whether the case is among those looked for; `noted` are the cases with a note."""
        asked = (
            (choice.stage, (self.stage,)),
            (choice.reason, (self.reason,)),
            (choice.tag, self.tags),
            (choice.risk, (self.risk,)),
            (choice.review, (NOTED if self.case_id in noted else UNNOTED,)),
        )
        if any(wanted != ANY and wanted not in held for wanted, held in asked):
            return False
        if choice.only_unstable and not self.unstable:
            return False
        text = f"{self.case_id}\n{self.question}".casefold()
        return all(word in text for word in choice.text.casefold().split())


def rows_of(triage: Triage) -> list[Row]:
    """The failed cases of a run as rows, in the order of triage."""
    return [_row(triage, triaged) for triaged in triage.cases]


def _row(triage: Triage, triaged: Any) -> Row:
    case = triage.traces.cases[triaged.case_id].case
    stage = triaged.verdict.stage
    # Cut before it is cleaned: some questions are endless.
    name, question = (
        plain(text[: 10 * _MOST_OF_A_NAME], width=_MOST_OF_A_NAME)
        for text in (case.id, case.question)
    )
    return Row(
        case_id=case.id,
        stage=stage,
        reason=triaged.verdict.reason,
        tags=frozenset(f"{name}: {value}" for name, value in case.tags.items()),
        risk=case.risk,
        question=case.question,
        unstable=triaged.unstable,
        label=f"{stage:9} {name}  {question}",
    )


def counted(values: Iterable[str], order: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Options of a dropdown, the label with its count: in a given order, else the most first."""
    counts = Counter(values)
    named = [value for value in order if value in counts] or [v for v, _ in counts.most_common()]
    return [(f"{plain(value, width=_MOST_OF_A_LABEL)} ({counts[value]})", value) for value in named]


class Filters:
    """The filter controls.

    Attributes:
        widget: the row of controls.
        choice: what they ask for now.
    """

    def __init__(self, rows: Sequence[Row], on_change: Callable[[], None]) -> None:
        import ipywidgets as widgets

        from ragwb.triage.reasons import REASONS
        from ragwb.triage.result import ORDER

        self._on_change = on_change
        self._quiet = False
        tags = counted(tag for row in rows for tag in sorted(row.tags))
        self._controls: dict[str, Any] = {
            "stage": _dropdown("every stage", counted((r.stage for r in rows), ORDER)),
            "reason": _dropdown("every reason", counted((r.reason for r in rows), tuple(REASONS))),
            "tag": _dropdown("every tag", tags),
            "risk": _dropdown("every risk", counted((r.risk for r in rows), ("high", "normal"))),
            "review": _dropdown("noted or not", [(name, name) for name in (UNNOTED, NOTED)]),
            "text": widgets.Text(placeholder="id or question, Enter", continuous_update=False),
            "only_unstable": widgets.Checkbox(
                description="unstable", tooltip="only cases whose repeats differ", indent=False
            ),
        }
        clear = widgets.Button(description="clear", tooltip="look at every failed case again")
        clear.on_click(lambda _: self.ask(Choice()))
        for name, control in self._controls.items():
            control.add_class(f"rw-filter-{name.replace('_', '-')}")
            control.observe(lambda _: None if self._quiet else self._on_change(), names="value")
        self.widget = widgets.HBox([*self._controls.values(), clear])
        self.widget.add_class("rw-filters")

    @property
    def choice(self) -> Choice:
        """What the controls ask for now."""
        return Choice(**{field.name: self._controls[field.name].value for field in fields(Choice)})

    def ask(self, choice: Choice) -> None:
        """Set every control at once."""
        self._quiet = True
        try:
            for field in fields(Choice):
                self._controls[field.name].value = getattr(choice, field.name)
        finally:
            self._quiet = False
        self._on_change()

    def toggle(self, stage: str, reason: str) -> None:
        """Look at the cases of a stage and reason; at all of them when these are looked at."""
        now = self.choice
        if (now.stage, now.reason) == (stage, reason):
            stage = reason = ANY
        self.ask(replace(now, stage=stage, reason=reason))


def _dropdown(every: str, options: Sequence[tuple[str, str]]) -> Any:
    import ipywidgets as widgets

    return widgets.Dropdown(options=[(every, ANY), *options])
