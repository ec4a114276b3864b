"""Where in a TOML file a key stands, so that a fault names its line.

The standard library's reader keeps no lines. This looks at the beginning of each line only: a table
written inline has the line of the key that holds it, which is where a person would look too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

Place = tuple[str | int, ...]

_HEADER = re.compile(r"\s*(?P<open>\[\[?)\s*(?P<name>[^\[\]#]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"""\s*(?P<name>[A-Za-z0-9_-]+|"[^"]*"|'[^']*')\s*=""")


def key_lines(text: str) -> dict[Place, int]:
    """The line, from 1, of every table and key by its place, such as ("floors", 0, "min").

    Of a key that comes twice it is the line of the first.
    """
    lines: dict[Place, int] = {}
    for number, place in _places(text):
        lines.setdefault(place, number)
    return lines


def key_twice(text: str) -> tuple[str, int, int] | None:
    """The first key or table that stands twice in a file: its name and both lines."""
    lines: dict[Place, int] = {}
    for number, place in _places(text):
        if place in lines:
            return place_words(place), lines[place], number
        lines[place] = number
    return None


def line_of(lines: Mapping[Place, int], place: Place) -> int | None:
    """The line of a place, or of the nearest one around it; None when the file names neither."""
    for end in range(len(place), 0, -1):
        if place[:end] in lines:
            return lines[place[:end]]
    return None


def place_words(place: Place) -> str:
    """A place as it is written in a message: floors[0].min."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    return "".join(steps).removeprefix(".")


def _places(text: str) -> Iterator[tuple[int, Place]]:
    table: Place = ()
    counts: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.fullmatch(line):
            names = tuple(part.strip().strip("\"'") for part in header["name"].split("."))
            if header["open"] == "[[":
                index = counts.get(header["name"], 0)
                counts[header["name"]] = index + 1
                table = (*names, index)
            else:
                table = names
            yield number, table
        elif key := _KEY.match(line):
            yield number, (*table, key["name"].strip("\"'"))
