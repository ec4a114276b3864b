"""What is judged: an item is the material of one verdict, read from a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragwb.errors import DataError, Fault
from ragwb.html import plain
from ragwb.judge.rows import name_of, raise_faults, read_rows
from ragwb.judge.rubric import MATERIAL, Kind
from ragwb.judge.tags import TAG, read_tags

_OTHERS = frozenset({"item_id", "tags"})


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to be judged.

    Attributes:
        item_id: what verdicts and labels call it.
        material: texts by part, such as question, context, answer (`rubric.MATERIAL`).
        tags: for slices.
    """

    item_id: str
    material: Mapping[str, str]
    tags: Mapping[str, str] = field(default_factory=dict)

    def length_chars(self, kind: Kind) -> int:
        """Characters of what is judged; of a pair, the second's minus the first's."""
        if kind == "pair":
            return len(self.material.get("second", "")) - len(self.material.get("first", ""))
        return len(self.material.get(MATERIAL[kind][-1], ""))


def load_items(path: str | Path, kind: Kind) -> list[Item]:
    """The items of a JSON Lines or CSV file: item_id, the parts of the material, tags.

    `context` may be a list of texts, which are joined by blank lines; a tag is an entry of `tags`
    or a column `tags.<name>`.

    Raises:
        DataError: with every fault: no item_id, one twice, an unknown field, a part or a tag that
            is no text, nothing to judge.
    """
    path, faults, items, seen = Path(path), list[Fault](), list[Item](), dict[str, str]()
    for where, row in read_rows(path):
        item_id = name_of(row.get("item_id"))
        material = {name: _text(value) for name, value in row.items() if _is_part(name)}
        found = list(_faults(item_id, material, kind, seen))
        try:
            tags = read_tags(row)
        except ValueError as error:
            found.append(("tags", str(error)))
        faults += [Fault(where, plain(name, width=60), message) for name, message in found]
        if found:
            continue
        seen[item_id] = where
        known = {name: text for name, text in material.items() if text is not None}
        items.append(Item(item_id, known, tags))
    raise_faults(faults)
    if not items:
        raise DataError(f"{path}: no item in it")
    return items


def _faults(
    item_id: str, material: Mapping[str, str | None], kind: Kind, seen: Mapping[str, str]
) -> list[tuple[str, str]]:
    found = []
    if not item_id:
        found.append(("item_id", "empty: every item needs one"))
    elif item_id in seen:
        found.append(("item_id", f"{plain(item_id, width=60)!r} twice, first at {seen[item_id]}"))
    for name, text in material.items():
        if name not in MATERIAL[kind]:
            known = ", ".join(MATERIAL[kind])
            found.append((name, f"unknown; a rubric of kind {kind} shows {known}"))
        elif text is None:
            found.append((name, "must be a text"))
    needed = MATERIAL[kind][-2:] if kind == "pair" else MATERIAL[kind][-1:]
    found += [(name, "missing: it is what is judged") for name in needed if name not in material]
    return found


def _is_part(name: str) -> bool:
    return name not in _OTHERS and not name.startswith(TAG)


def _text(value: Any) -> str | None:
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return "\n\n".join(value)
    if value is None:
        return ""
    return value if isinstance(value, str) else None
