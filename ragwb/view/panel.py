"""A piece of a report that says the same as text and as HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from ragwb.html import cell, escape, plain, table, tag

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, repr=False)
class Panel:
    """What a notebook cell shows.

    Attributes:
        text: plain text for a terminal or a log.
        html: the same as HTML, already escaped.
    """

    text: str
    html: str

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return self.html


def table_panel(
    rows: Sequence[Mapping[str, object]],
    columns: Sequence[str],
    *,
    numeric: Sequence[str] = (),
    empty: str,
) -> Panel:
    """A table of already formatted values, or the sentence `empty` when there are no rows."""
    if not rows:
        return Panel(empty, tag("p", escape(empty), class_="rw-none"))
    return Panel(text_table(rows, columns), table(rows, columns, numeric=numeric))


def stack(parts: Mapping[str, Panel]) -> Panel:
    """Panels under one another, each with its heading."""
    return Panel(
        "\n\n".join(f"{plain(name)}\n{part.text}" for name, part in parts.items()),
        "".join(tag("h4", escape(name)) + part.html for name, part in parts.items()),
    )


def opened(cards: Sequence[Panel], rest: Sequence[str]) -> Panel:
    """Cases as cards under one another, and the ids of those that are not opened, counted."""
    text, html = "\n".join(card.text for card in cards), "".join(card.html for card in cards)
    if rest:
        words = f"{len(rest)} more cases are not opened here"
        text += f"\n{words}: {', '.join(plain(case_id) for case_id in rest)}"
        html += fold(escape(words), tag("p", escape(", ".join(rest))))
    return Panel(text, html)


def frame_rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """A frame's rows as dicts by column name, with None where a value is unknown."""
    known = frame.astype(object).where(frame.notna(), None)
    return cast("list[dict[str, Any]]", known.to_dict("records"))


def text_table(rows: Sequence[Mapping[str, object]], columns: Sequence[str]) -> str:
    """Rows as lines of aligned columns; Chinese characters count two."""
    written = [[plain(name) for name in columns]]
    written += [["–" if (v := row.get(c)) is None else plain(v) for c in columns] for row in rows]
    widths = [max(map(_width, column)) for column in zip(*written, strict=True)]
    return "\n".join(
        "  ".join(
            value + " " * (width - _width(value)) for value, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in written
    )


def _width(text: str) -> int:
    import unicodedata

    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def fold(summary: str, content: str, *, is_open: bool = False, class_: str = "rw-fold") -> str:
    """A part that opens on a click and needs no script; both arguments are HTML."""
    return tag(
        "details",
        tag("summary", summary) + content,
        class_=class_,
        open="open" if is_open else None,
    )


def definitions(pairs: Mapping[str, object]) -> str:
    """Names and values side by side."""
    return tag(
        "dl",
        "".join(tag("dt", escape(name)) + tag("dd", cell(value)) for name, value in pairs.items()),
        class_="rw",
    )
