"""The JSON schema of a judge's reply: made from the criteria, checked, and held against a reply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ragwb.html import plain
from ragwb.judge.scale import Value
from ragwb.judge.schema_limits import find_excess

Scales = Mapping[str, Sequence[Value]]


def schema_of(scales: Scales, rationale: str) -> dict[str, Any]:
    """The schema of an object with a reason and one value of its scale a criterion.

    The reason comes first: a model that writes in order thinks before it decides.
    """
    properties: dict[str, Any] = {rationale: {"type": "string"}}
    properties |= {
        name: {"type": _type_of(scale[0]), "enum": list(scale)} for name, scale in scales.items()
    }
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _type_of(value: Value) -> str:
    return "string" if isinstance(value, str) else "integer"


def check_schema(schema: Mapping[str, Any], scales: Scales) -> list[str]:
    """What is wrong with a rubric's own schema; empty when it asks for every criterion."""
    from jsonschema import Draft202012Validator, SchemaError

    # First, for the check itself follows references and compiles patterns.
    if (excess := find_excess(schema)) is not None:
        return [excess]
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        where = ".".join(map(str, error.absolute_path))
        said = f"{where}: {error.message}" if where else error.message
        return [plain(f"no JSON schema: {said}", width=200)]
    properties = schema.get("properties")
    if schema.get("type") != "object" or not isinstance(properties, Mapping):
        return ["must describe an object with properties"]
    required = schema.get("required") or ()
    missing = [name for name in scales if name not in properties or name not in required]
    if missing:
        return [f"does not require {', '.join(missing)}"]
    return [
        f"does not allow {name} to be {value!r}, which is on its scale"
        for name, scale in scales.items()
        for value in scale
        if not _allows(schema, name, value)
    ]


def find_fault(reply: Any, schema: Mapping[str, Any]) -> str | None:
    """Where a reply is not as its schema says, or None."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    error = best_match(Draft202012Validator(schema).iter_errors(reply))
    if error is None:
        return None
    where = ".".join(map(str, error.absolute_path))
    return plain(f"{where}: {error.message}" if where else error.message, width=160)


def _allows(schema: Mapping[str, Any], name: str, value: Value) -> bool:
    from jsonschema import Draft202012Validator

    # With the whole schema's definitions, so that a local reference is found.
    held = {word: schema[word] for word in ("$defs", "definitions") if word in schema}
    part = {"allOf": [schema["properties"][name]], **held}
    return bool(Draft202012Validator(part).is_valid(value))
