"""A release policy: what a run must hold to ship, as one TOML file of four blocks.

    policy = "answers-release-v1"
    k = 5

    [safety]                                # zero tolerance; no limit can be written here

    [[floors]]
    metric = "recall@5"
    min = 0.8
    slice = "tags.kind=exact_code"
    min_n = 20                              # with fewer cases the rule is undecided

    [regression]                            # against the baseline
    max_broken = 2
    [[regression.drops]]
    metric = "recall@5"
    max_drop = 0.02

    [budget]
    max_p95_ms = 1500

A fault names its line, and all faults of a file are reported at once.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from ragwb.decide.gate.policy_blocks import (
    INCREASES,
    Budget,
    Content,
    Drop,
    Floor,
    JudgeBlock,
    Regression,
    Safety,
    States,
)
from ragwb.decide.gate.policy_lines import Place, key_lines, key_twice, line_of, place_words
from ragwb.errors import DataError, Fault
from ragwb.files import MOST_TOML_BYTES, parse_toml, read_text
from ragwb.html import plain


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy as it was read.

    Attributes:
        name: of the policy.
        k: the K at which cases pass or fail.
        states, safety, floors, budget, judge: its blocks.
        regression: None where the policy compares with nothing.
        path: its file.
        lines: the line of every key, by its place.
    """

    name: str
    k: int
    states: States
    safety: Safety
    floors: tuple[Floor, ...]
    regression: Regression | None
    budget: Budget
    judge: JudgeBlock
    path: Path
    lines: Mapping[Place, int]

    @property
    def needs_baseline(self) -> bool:
        """Whether a rule compares with a baseline."""
        increases = (getattr(self.budget, name) for name in INCREASES)
        return self.regression is not None or any(one is not None for one in increases)

    def line(self, place: Place) -> int | None:
        """The line of a place, or of the nearest one around it."""
        return line_of(self.lines, place)

    def fault(self, place: Place, message: str) -> Fault:
        """A fault at a place of the file."""
        return _fault(self.path, self.lines, place, message)


def load_policy(path: str | Path) -> Policy:
    """The policy of a TOML file.

    Raises:
        DataError: the file is absent, no TOML, or not a policy; carries every fault with its line.
    """
    path = Path(path)
    text = read_text(path, DataError, most=MOST_TOML_BYTES)
    said = _read(text, path)
    lines = key_lines(text)
    try:
        content = Content.model_validate(said)
    except ValidationError as error:
        raise _error(
            _fault(path, lines, *_explain(detail)) for detail in error.errors(include_url=False)
        ) from error
    twice = [_fault(path, lines, place, message) for place, message in _twice(content)]
    if twice:
        raise _error(twice)
    blocks = {name: getattr(content, name) for name in Content.model_fields if name != "policy"}
    return Policy(name=content.policy, **blocks, path=path, lines=lines)


def _read(text: str, path: Path) -> dict[str, Any]:
    try:
        return parse_toml(text, path, DataError)
    except DataError:
        # The reader says where it stopped; that a key stands twice is plainer said.
        twice = key_twice(text)
        if twice is None:
            raise
        name, first, second = twice
        message = f"is given twice, first in line {first}: keep one"
        raise _error([Fault(f"{path}:{second}", plain(name, width=80), message)]) from None


def _error(faults: Iterable[Fault]) -> DataError:
    found = sorted(faults, key=_line_number)
    return DataError(str(found[0]), found)


def _fault(path: Path, lines: Mapping[Place, int], place: Place, message: str) -> Fault:
    line = line_of(lines, place)
    where = str(path) if line is None else f"{path}:{line}"
    return Fault(where, plain(place_words(place), width=80), plain(message, width=900))


def _line_number(fault: Fault) -> int:
    line = fault.where.rpartition(":")[2]
    return int(line) if line.isdigit() else 0


def _twice(content: Content) -> Iterator[tuple[Place, str]]:
    """Rules that say the same figure of the same cases a second time."""
    drops = () if content.regression is None else content.regression.drops
    blocks: dict[Place, tuple[Floor, ...] | tuple[Drop, ...]] = {
        ("floors",): content.floors,
        ("regression", "drops"): drops,
    }
    for place, rules in blocks.items():
        seen: dict[tuple[str, str | None, bool], int] = {}
        for index, rule in enumerate(rules):
            is_relative = isinstance(rule, Drop) and rule.is_relative
            cases = None if rule.cases is None else str(rule.cases)
            first = seen.setdefault((rule.metric, cases, is_relative), index)
            if first != index:
                of = f" of {cases}" if cases else ""
                yield (*place, index), f"a second rule for {rule.metric}{of}: keep one"


_FIELDS: Mapping[str, type[BaseModel]] = {
    "states": States,
    "safety": Safety,
    "floors": Floor,
    "regression": Regression,
    "drops": Drop,
    "budget": Budget,
    "judge": JudgeBlock,
}
_TYPES = {
    "float_type": "must be a number",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "string_type": "must be a text",
    "string_too_short": "must not be empty",
    "bool_type": "must be true or false",
    "finite_number": "must be a finite number",
    "tuple_type": "must be a list; write [[…]] for a rule",
    "model_type": "must be a table",
    "model_attributes_type": "must be a table",
}


def _explain(detail: Any) -> tuple[Place, str]:
    """The place of a fault and what is wrong, in words for who mends the file."""
    place: Place = detail["loc"]
    kind, found = detail["type"], plain(repr(detail.get("input")), width=60)
    if kind == "missing":
        return place, "missing: give it"
    if kind == "extra_forbidden":
        return place, _unknown(place)
    if kind == "policy":
        return (*place, detail["ctx"]["field"]), detail["ctx"]["message"]
    said = _TYPES.get(kind) or detail["msg"].replace("Input should", "must")
    return place, f"{said}, found {found}"


def _unknown(place: Place) -> str:
    blocks = [step for step in place[:-1] if isinstance(step, str)]
    model = _FIELDS.get(blocks[-1], Content) if blocks else Content
    known = [field.alias or name for name, field in model.model_fields.items()]
    if blocks == ["safety"] and place[-1] != "may_be_unknown":
        return "safety has zero tolerance and takes no limit; its only key is may_be_unknown"
    near = difflib.get_close_matches(str(place[-1]), known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
    return f"unknown key; {hint}"
