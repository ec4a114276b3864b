"""Reading replies: strictly, but for a manifest, whose broken fields count as unsaid."""

from __future__ import annotations

import json
import math
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, RootModel, ValidationError

from ragwb.chat.reply import WRONG_SHAPE
from ragwb.errors import ReplyError
from ragwb.html import plain
from ragwb.records import ServiceManifest
from ragwb.sources.http import Answer

_MANIFEST_TABLES = frozenset({"chunking", "identity"})
_BOM = b"\xef\xbb\xbf"

R = TypeVar("R", bound=BaseModel)


class FullManifest(ServiceManifest):
    """A service's manifest with whatever it says beyond the protocol."""

    model_config = ConfigDict(extra="allow")


class _Object(RootModel[dict[str, Any]]):
    """Any JSON object."""


def parsed(model: type[R], answer: Answer, call: str) -> R:
    """A reply as a record.

    Raises:
        ReplyError: it is not JSON, or a field of it is wrong.
    """
    try:
        return model.model_validate_json(without_bom(answer.body))
    except ValidationError as error:
        raise unusable(error, answer, call) from error


def read_manifest(answer: Answer, call: str) -> tuple[FullManifest, list[str]]:
    """A manifest without the fields that cannot be read, and for each of those what it said."""
    read = parsed(_Object, answer, call).root
    unread: list[str] = []
    said = {key: _finite(value, key, unread) for key, value in read.items()}
    try:
        return FullManifest.model_validate(said), unread
    except ValidationError as error:
        faults = {_place(fault["loc"]): fault["msg"] for fault in reversed(error.errors())}
    for place, reason in sorted(faults.items()):
        table = said if len(place) == 1 else said[place[0]]
        found = plain(json.dumps(table.get(place[-1])), width=40)
        unread.append(f"{'.'.join(place)} {found} ({plain(reason, width=80)})")
        table[place[-1]] = None
    return FullManifest.model_validate(said), unread


def _finite(value: Any, place: str, unread: list[str]) -> Any:
    """A value with None where JSON has no number for it (NaN, 1e400); each is added to `unread`."""
    if isinstance(value, float) and not math.isfinite(value):
        unread.append(f"{plain(place, width=80)} {json.dumps(value)} (not a number of JSON)")
        return None
    if isinstance(value, list):
        return [_finite(item, f"{place}.{i}", unread) for i, item in enumerate(value)]
    if isinstance(value, dict):
        return {key: _finite(item, f"{place}.{key}", unread) for key, item in value.items()}
    return value


def _place(location: tuple[int | str, ...]) -> tuple[str, ...]:
    """The field of a manifest that a fault stands in, or of one of its tables."""
    depth = 2 if location and location[0] in _MANIFEST_TABLES else 1
    return tuple(str(step) for step in location[:depth])


def without_bom(body: bytes) -> bytes:
    """A body without the mark that some services begin their JSON with."""
    return body.removeprefix(_BOM)


def unusable(error: ValidationError, answer: Answer, call: str) -> ReplyError:
    """One line for the first fault of a reply: where it stands and what is wrong."""
    first = error.errors(include_url=False, include_input=False)[0]
    if first["type"] == "json_invalid":
        kind = answer.content_type or "no content type"
        message = f"{call}: the reply is not JSON ({kind}): {plain(first['msg'], width=120)}"
    else:
        where = ".".join(str(part) for part in first["loc"]) or "the reply"
        message = (
            f"{call}: {WRONG_SHAPE}: {plain(where, width=80)}: {plain(first['msg'], width=120)}"
        )
    return ReplyError(message, attempts=answer.attempts)
