"""JSON as models write it: whole, in a code fence, or with words before and after it.

Also how it is said of a reply that it has another shape than was asked for: such a call fails in
the same way when it is made again, and whoever reads the error must hear that.
"""

from __future__ import annotations

import json
from typing import Any

# Where an object could begin is tried so many times; an answer of braces alone ends.
_MOST_STARTS = 50

WRONG_SHAPE = "a reply of a wrong shape"
"""Stands in the error of every call whose reply came whole and cannot be read."""


def is_wrong_shape(error: str) -> bool:
    """Whether an error, as a run keeps it, is of a reply that came whole and cannot be read."""
    return WRONG_SHAPE in error


def find_object(text: str) -> dict[str, Any] | None:
    r"""The JSON object that a text is or holds; None when it holds none.

    Of several the first one that is whole counts. What is cut off in the middle is no object.

    Example: find_object('Sure!\n```json\n{"score": 3}\n```') == {"score": 3}
    """
    decoder = json.JSONDecoder(parse_constant=_refuse)
    start = text.find("{")
    for _ in range(_MOST_STARTS):
        if start < 0:
            return None
        try:
            found: dict[str, Any] = decoder.raw_decode(text, start)[0]
        except json.JSONDecodeError as error:
            # Not from `start` on: what stands inside an object that is cut off is none of its own.
            start = text.find("{", max(error.pos, start + 1))
        except (ValueError, RecursionError):
            return None
        else:
            return found
    return None


def _refuse(name: str) -> Any:
    raise ValueError(name)
