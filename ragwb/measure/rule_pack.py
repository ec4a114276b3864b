"""Rule packs: what an answer must hold, must not say and must not claim to have done, as TOML.

A pack carries tests of its own, so that whoever changes a phrase sees what it does:

    name = "shop"
    version = "1"
    pinned = ["version", "code"]
    read_actions = ["search*"]

    [[rules]]
    name = "claims-refund-done"
    kind = "action"
    patterns = ['已(?:经)?为您(?:办理)?退款']
    unless = ['如果', '尚未']
    message = "no refund was made"
    tests = [
      { text = "已为您退款。", fails = "已为您退款" },
      { text = "您可以在订单页申请退款。" },
    ]
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from ragwb.errors import DataError, Fault, MetricError
from ragwb.files import read_toml
from ragwb.golden.case import Label, Text
from ragwb.html import plain
from ragwb.measure.patterns import compile_pattern
from ragwb.measure.values import KINDS, Kind
from ragwb.records import Mode
from ragwb.settings import shared_file

DEFAULT_PACK = ("datasets", "answers", "rules.toml")

RuleKind = Literal["forbidden", "action", "required"]


class _PackModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _check_pattern(pattern: str) -> str:
    try:
        compile_pattern(pattern)
    except MetricError as error:
        raise ValueError(str(error)) from error
    return pattern


_Pattern = Annotated[Text, Field(max_length=2_000)]
Patterns = tuple[_Pattern, ...]


class When(_PackModel):
    """For which answers a rule is asked; all that is given must hold.

    Attributes:
        modes: observed modes.
        question: a pattern that the question matches.
        tags: tags of the case, by name.
    """

    modes: tuple[Mode, ...] = ("answer", "refuse", "clarify")
    question: _Pattern | None = None
    tags: dict[str, str] = Field(default_factory=dict)

    @field_validator("question")
    @classmethod
    def _check_question(cls, pattern: str | None) -> str | None:
        return None if pattern is None else _check_pattern(pattern)


class RuleTest(_PackModel):
    """An answer and what a rule must say of it.

    Attributes:
        text, mode, actions: the answer.
        question, tags: of its case.
        fails: false when it passes, true when it fails, or what of the text must be named.
    """

    text: str
    mode: Mode = "answer"
    actions: tuple[str, ...] = ()
    question: Text = "?"
    tags: dict[Label, str] = Field(default_factory=dict)
    fails: bool | str = False


class CaseTest(_PackModel):
    """An answer to a case with labels, and the rules of the product that must fail.

    Attributes:
        text, question, actions: the answer and its question.
        required_version, required_claims, forbidden_claims: labels of the case.
        fails: codes of the reasons, none when it passes.
    """

    text: str
    question: Text = "?"
    actions: tuple[str, ...] = ()
    required_version: Label | None = None
    required_claims: tuple[Text, ...] = ()
    forbidden_claims: tuple[Text, ...] = ()
    fails: tuple[str, ...] = ()


class Rule(_PackModel):
    """One rule of a pack.

    Attributes:
        name: of the rule, unique in its pack.
        kind: forbidden: none of its phrases may occur; action: its phrases claim that something was
            done, which must not occur in an answer; required: one of them must occur.
        phrases: wordings, found as claims are.
        patterns: regular expressions.
        values: kinds of values, any of which satisfies a required rule; of quantities a unit may be
            named, such as "quantity:day".
        unless: patterns; what is found in a sentence that matches one of them does not count.
        when: for which answers it is asked.
        message: what is wrong when it fails, for people.
        tests: answers that pass and fail.
    """

    name: Label
    kind: RuleKind
    phrases: tuple[Text, ...] = ()
    patterns: Patterns = ()
    values: tuple[str, ...] = ()
    unless: Patterns = ()
    when: When = When()
    message: Text
    tests: tuple[RuleTest, ...] = ()

    @field_validator("patterns", "unless")
    @classmethod
    def _check_patterns(cls, patterns: Patterns) -> Patterns:
        return tuple(_check_pattern(pattern) for pattern in patterns)

    @field_validator("values")
    @classmethod
    def _check_values(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        for value in values:
            if value.partition(":")[0] not in KINDS:
                raise ValueError(f"{value!r} begins with none of {', '.join(KINDS)}")
        return values

    @model_validator(mode="after")
    def _check_whole(self) -> Rule:
        if not (self.phrases or self.patterns or self.values):
            raise ValueError("looks for nothing: give phrases, patterns or values")
        if self.values and self.kind != "required":
            raise ValueError("values satisfy a required rule only: give phrases or patterns")
        return self


class RulePack(_PackModel):
    """The hard rules of a project, beside those that hold everywhere.

    Attributes:
        name, version: of the pack.
        pinned: kinds of values that an answer must not contradict where a case pins them.
        read_actions: names of actions that change nothing; `*` stands for any characters.
        rules: in the order in which their failures are told.
        tests: of the rules that hold everywhere, with this pack.
    """

    name: Label
    version: Label
    pinned: tuple[Kind, ...] = KINDS
    read_actions: tuple[Label, ...] = ()
    rules: tuple[Rule, ...] = ()
    tests: tuple[CaseTest, ...] = ()

    @field_validator("rules")
    @classmethod
    def _check_names(cls, rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
        names = [rule.name for rule in rules]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"the name {twice!r} is given twice: rename one")
        return rules


def load_pack(path: str | Path | None = None) -> RulePack:
    """The rule pack of a TOML file, by default the one that comes with ragwb.

    Raises:
        DataError: the file is absent, no TOML, or not a rule pack; carries every fault, each with
            the name of its rule.
    """
    file = shared_file(*DEFAULT_PACK) if path is None else Path(path)
    said = read_toml(file, DataError)
    try:
        return RulePack.model_validate(said)
    except ValidationError as error:
        faults = [_fault(file, said, detail) for detail in error.errors(include_url=False)]
        raise DataError(str(faults[0]), faults) from error


def _fault(path: Path, said: Mapping[str, Any], detail: Any) -> Fault:
    field = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in detail["loc"])
    name = _rule_name(said, detail["loc"])
    message = ("" if name is None else f"rule {plain(name, width=60)}: ") + plain(
        detail["msg"].removeprefix("Value error, "), width=300
    )
    return Fault(str(path), plain(field.lstrip("."), width=80), message)


def _rule_name(said: Mapping[str, Any], place: tuple[int | str, ...]) -> str | None:
    """The name that a file gives the rule a fault stands in; None outside rules, or without one."""
    match place:
        case ("rules", int(index), *_):
            rule = said["rules"][index]
            name = rule.get("name") if isinstance(rule, dict) else None
            return name if isinstance(name, str) else None
    return None
