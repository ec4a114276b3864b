"""What a rubric's own schema must leave out, so that a reply is held against it in bounded time.

A pattern may take longer than anybody waits, a reference may lead in a circle or be taken so often
that a few lines become millions, and some keywords try every part again. What is left out is not
needed to say what a verdict is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ragwb.html import plain

MOST_LEVELS = 32
MOST_PARTS = 10_000
_BY_NAME = frozenset({"properties", "$defs", "definitions", "dependentSchemas"})
_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SINGLE = frozenset(
    {"items", "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else"}
)
_REFUSED: Mapping[str, str] = {
    **dict.fromkeys(
        ("pattern", "patternProperties"),
        "a pattern may take longer than anybody waits: list the values in an enum",
    ),
    **dict.fromkeys(
        ("unevaluatedProperties", "unevaluatedItems", "uniqueItems"),
        "it tries every part again: use additionalProperties, or leave it out",
    ),
    **dict.fromkeys(
        ("$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor"),
        "a schema is named and referred to by #/$defs/NAME only",
    ),
}
_REFERENCE = re.compile(r"#/(\$defs|definitions)/([^/%~]+)")


def find_excess(schema: Mapping[str, Any]) -> str | None:
    """The first thing in a schema that is not taken, with its place; None where there is none."""
    try:
        _check_value(schema, ())
        _size(schema, schema, (), {}, ())
    except ValueError as error:
        return str(error)
    return None


def _check_value(value: Any, at: tuple[str, ...]) -> None:
    """Refuse what JSON cannot say, and what is nested without end."""
    if len(at) > MOST_LEVELS:
        raise _refusal(at[:3], f"nested more than {MOST_LEVELS} levels deep")
    if isinstance(value, Mapping):
        for name, part in value.items():
            _check_value(part, (*at, name))
    elif isinstance(value, list):
        for number, part in enumerate(value):
            _check_value(part, (*at, str(number)))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if not (math.isfinite(value) if isinstance(value, float) else abs(value) < 1e308):
            raise _refusal(at, "no number of JSON below 1e308")
    elif value is not None and not isinstance(value, str | bool):
        raise _refusal(at, f"JSON has no {type(value).__name__}: write it as a text in quotes")


def _size(
    part: Any,
    root: Mapping[str, Any],
    at: tuple[str, ...],
    known: dict[str, int],
    open_references: tuple[str, ...],
) -> int:
    """How many schemas are tried below one, each reference counted as what it stands for."""
    if not isinstance(part, Mapping):
        return 1
    for keyword, why in _REFUSED.items():
        if keyword in part:
            raise _refusal((*at, keyword), why)
    total = 1 + sum(
        _size(inner, root, (*at, *place), known, open_references) for place, inner in _schemas(part)
    )
    if "$ref" in part:
        total += _size_of_reference(part["$ref"], root, at, known, open_references)
    if total > MOST_PARTS:
        raise _refusal(at, f"its references make more than {MOST_PARTS:,} schemas of it")
    return total


def _size_of_reference(
    said: Any,
    root: Mapping[str, Any],
    at: tuple[str, ...],
    known: dict[str, int],
    open_references: tuple[str, ...],
) -> int:
    at, shown = (*at, "$ref"), plain(said, width=80)
    found = _REFERENCE.fullmatch(said) if isinstance(said, str) else None
    if found is None:
        raise _refusal(
            at, f"refers to {shown!r}: everything must stand in the file, under #/$defs/NAME"
        )
    held = root.get(found[1])
    if not isinstance(held, Mapping) or found[2] not in held:
        raise _refusal(at, f"refers to {shown!r}, which is not there")
    if said in open_references:
        raise _refusal(at, f"refers to {shown!r}, which refers to itself")
    if said not in known:
        place = (found[1], found[2])
        known[said] = _size(held[found[2]], root, place, known, (*open_references, said))
    return known[said]


def _schemas(part: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The schemas directly within one; what stands in an enum or a default is none."""
    for keyword, held in part.items():
        if keyword in _BY_NAME and isinstance(held, Mapping):
            yield from (((keyword, name), inner) for name, inner in held.items())
        elif keyword in _LISTS and isinstance(held, list):
            yield from (((keyword, str(at)), inner) for at, inner in enumerate(held))
        elif keyword in _SINGLE:
            yield (keyword,), held


def _refusal(at: tuple[str, ...], why: str) -> ValueError:
    place = plain(".".join(at), width=100)
    return ValueError(f"{place}: {why}" if place else why)
