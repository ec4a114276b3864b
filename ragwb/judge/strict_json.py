"""JSON that says one thing: what another reader would take otherwise, or not at all, is refused."""

from __future__ import annotations

import json
import math
import re
from typing import Any

# A number of more digits is beyond the numbers of any other reader.
_MOST_DIGITS = 308
AFTER = "words after the value"
HALF_CHARACTER = "half a character (a lone surrogate, \\ud800 to \\udfff), which no file can keep"
_HALF = re.compile("[\ud800-\udfff]")


def read_strictly(text: str) -> Any:
    """The one JSON value of a text.

    Raises:
        ValueError: in a line: not JSON, something after the value, a name twice in one object, NaN
            or an infinity, a number beyond every reader, half a character, nested too deeply.
    """
    try:
        said = json.loads(
            text,
            object_pairs_hook=_no_repeats,
            parse_constant=_no_constant,
            parse_float=_number,
            parse_int=_whole_number,
        )
        if "\\u" in text and has_half_character(json.dumps(said, ensure_ascii=False)):
            raise ValueError(HALF_CHARACTER)
    except json.JSONDecodeError as error:
        after = error.msg == "Extra data"
        raise ValueError(AFTER if after else f"not JSON, or cut off: {error.msg}") from error
    except RecursionError as error:
        raise ValueError("not JSON: nested too deeply") from error
    return said


def has_half_character(text: str) -> bool:
    """Whether a text holds half of a surrogate pair, which cannot be written as UTF-8."""
    return _HALF.search(text) is not None


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    held = dict(pairs)
    if len(held) < len(pairs):
        raise ValueError("a name stands twice in one object")
    return held


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _number(digits: str) -> float:
    if not math.isfinite(value := float(digits)):
        raise ValueError("a number beyond 1e308")
    return value


def _whole_number(digits: str) -> int:
    if len(digits.lstrip("-")) > _MOST_DIGITS:
        raise ValueError("a number beyond 1e308")
    return int(digits)
