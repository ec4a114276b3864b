"""Tags for slices and strata: read from a row of a file, and found by what people call them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ragwb.errors import UsageError
from ragwb.html import plain

TAG = "tags."


def read_tags(row: Mapping[str, Any]) -> dict[str, str]:
    """The tags of a row, from its object `tags` and its columns `tags.<name>`.

    A number, true or false is taken as the text that JSON has for it; what is empty is no tag.

    Raises:
        ValueError: tags are no object, or one is a list or an object; says which.
    """
    nested = row.get("tags")
    if nested not in (None, "") and not isinstance(nested, Mapping):
        raise ValueError("must be an object of names and texts; in CSV, columns tags.<name>")
    found = dict(nested or {})
    found |= {name.removeprefix(TAG): said for name, said in row.items() if name.startswith(TAG)}
    return {name: _text(name, said) for name, said in found.items() if said not in (None, "")}


def find_tag(name: str, known: Collection[str]) -> str:
    """The tag that is meant by `name` or by `tags.name`.

    Raises:
        UsageError: there is none; names those there are.
    """
    for meant in (name, name.removeprefix(TAG)):
        if meant in known:
            return meant
    there = ", ".join(plain(tag, width=40) for tag in sorted(known)) or "none"
    raise UsageError(f"no tag {plain(name, width=60)!r}; there is {there}")


def _text(name: str, said: Any) -> str:
    if isinstance(said, list | Mapping):
        raise ValueError(  # noqa: TRY004 - of a file, not of an argument
            f"{plain(name, width=40)} must be one text: not a list, not an object"
        )
    return str(said).casefold() if isinstance(said, bool) else str(said)
