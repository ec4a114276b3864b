"""One rule of a pack against one answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ragwb.html import plain
from ragwb.measure.answered import AnsweredCase
from ragwb.measure.patterns import find_all, search
from ragwb.measure.rule_pack import Rule, When
from ragwb.measure.values import find_values
from ragwb.measure.wording import Span, fold

# Ends of the sentence that an `unless` looks at.
_STOPS = "。！？!?；;\n"


@dataclass(frozen=True, slots=True)
class PackFinding:
    """Where an answer breaks a pack's rule.

    Attributes:
        start, end: code points of the text; None where something is missing.
        proof: what breaks it, in a sentence.
    """

    start: int | None
    end: int | None
    proof: str


def check_rule(rule: Rule, answered: AnsweredCase) -> Iterator[PackFinding]:
    """The places where an answer breaks a rule; one place a sentence.

    Raises:
        MetricError: a pattern takes too long.
    """
    text = answered.text or ""
    if not _applies(rule.when, answered):
        return
    found = _first_in_sentences(rule, text)
    if rule.kind == "required":
        if not found and not _has_value(rule, text):
            yield PackFinding(None, None, f"missing: {plain(rule.message, width=120)}")
        return
    for start, end in found:
        said = plain(text[start:end], width=80)
        yield PackFinding(start, end, f"“{said}”: {plain(rule.message, width=120)}")


def _applies(when: When, answered: AnsweredCase) -> bool:
    case = answered.case.case
    if answered.mode not in when.modes:
        return False
    if any(case.tags.get(name) != value for name, value in when.tags.items()):
        return False
    return when.question is None or search(when.question, case.question) is not None


def _first_in_sentences(rule: Rule, text: str) -> list[Span]:
    """The first match in each sentence that holds no `unless`."""
    counted: dict[Span, Span] = {}
    for span in sorted(_spans(rule, text)):
        sentence = _sentence(text, span)
        if sentence not in counted and not _excused(rule, text[slice(*sentence)]):
            counted[sentence] = span
    return list(counted.values())


def _spans(rule: Rule, text: str) -> Iterator[Span]:
    for phrase in rule.phrases:
        yield from fold(text).find_all(phrase)
    for pattern in rule.patterns:
        yield from find_all(pattern, text)


def _sentence(text: str, span: Span) -> Span:
    start = max(text.rfind(stop, 0, span[0]) for stop in _STOPS) + 1
    ends = [end for end in (text.find(stop, span[1]) for stop in _STOPS) if end >= 0]
    return start, min(ends, default=len(text))


def _excused(rule: Rule, sentence: str) -> bool:
    return any(search(pattern, sentence) is not None for pattern in rule.unless)


def _has_value(rule: Rule, text: str) -> bool:
    wanted = {tuple(value.split(":", 1)) for value in rule.values}
    return any(
        (value.kind,) in wanted or (value.kind, value.group) in wanted
        for value in (find_values(text) if wanted else ())
    )
