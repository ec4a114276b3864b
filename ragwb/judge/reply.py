"""A judge's words as scores. Strict: what is not exactly one verdict is none.

A code fence or a block of thoughts around the object is only wrapping. Words before or after it are
not: the judged text may have put them, or a second verdict, there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ragwb.html import plain
from ragwb.judge.rubric import RATIONALE, Rubric
from ragwb.judge.scale import Value
from ragwb.judge.schema import find_fault
from ragwb.judge.strict_json import AFTER, read_strictly

_THOUGHTS = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_FENCE = re.compile(r"\A\s*```[ \t]*\w*[ \t]*\r?\n(.*?)\r?\n?[ \t]*```\s*\Z", re.DOTALL)
MOST_OF_A_RATIONALE = 4000


@dataclass(frozen=True, slots=True)
class Scored:
    """A verdict that is as the rubric says."""

    scores: Mapping[str, Value]
    rationale: str


def read_reply(text: str, rubric: Rubric) -> Scored:
    """The verdict that a judge's words are.

    Raises:
        ValueError: they are not exactly one; says why in a line.
    """
    said = one_object(text)
    _check_scales(said, rubric)
    if (fault := find_fault(said, rubric.output_schema)) is not None:
        raise ValueError(f"not as the rubric's schema says: {fault}")
    scores: dict[str, Value] = {
        one.name: one.scale.values[one.scale.place(said[one.name])] for one in rubric.criteria
    }
    return Scored(scores, str(said.get(RATIONALE) or "")[:MOST_OF_A_RATIONALE])


def one_object(text: str) -> dict[str, Any]:
    """The one JSON object that a model's words are, thoughts and a code fence around it taken off.

    Raises:
        ValueError: they are not exactly one; says why in a line.
    """
    body = _THOUGHTS.sub("", text).strip()
    if not body:
        raise ValueError("the judge said nothing")
    fenced = _FENCE.match(body)
    return _parsed(fenced[1] if fenced else body)


def _parsed(text: str) -> dict[str, Any]:
    try:
        said = read_strictly(text)
    except ValueError as error:
        if str(error) == AFTER:
            raise ValueError("words after the verdict: it may not be the judge's own") from error
        raise
    if not isinstance(said, dict):
        raise ValueError("not an object")  # noqa: TRY004 - of a text, not of an argument
    return said


def _check_scales(said: Mapping[str, Any], rubric: Rubric) -> None:
    for criterion in rubric.criteria:
        if criterion.name not in said:
            raise ValueError(f"no {criterion.name}")
        value = said[criterion.name]
        if not criterion.scale.holds(value):
            allowed = ", ".join(map(str, criterion.scale.values))
            shown = plain(json.dumps(value, ensure_ascii=False), width=40)
            raise ValueError(f"{criterion.name} is {shown}, not on the scale {allowed}")
