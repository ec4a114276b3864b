"""Escaping for every place where other people's text is shown, and the only place that writes tags.

Questions, chunks, answers and ids come from other people. Each sink has one function here:
`escape` for HTML, `escape_markdown` for a Markdown cell or line, `plain` for a terminal.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence

# Bidi embeddings, overrides and isolates can reorder the text around them (CVE-2021-42574).
_BIDI = {*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C}
# What acts anywhere, an underscore that is not inside a word, and what acts only as a line's first.
_MARKDOWN = re.compile(r"[\\`*\[\]<>|~&$]|(?<!\w)_|_(?!\w)|^[#+\-=]|^\d+(?=[.)]\s)")
# Line and paragraph separators end a line for JavaScript and for some terminals.
_HIDDEN = _BIDI | {0x2028, 0x2029}
# A run of signs in which a browser finds no place to break; Chinese breaks anywhere, a - after it.
_UNBROKEN = re.compile(r"[^\s\-\u2e80-\U000fffff]{25,}")
_PIECE = re.compile(r"[^_/.:@=&,;|]{1,16}[_/.:@=&,;|]?|.")
_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b.")


def visible(text: object) -> str:
    """Text with control, bidi and lone surrogate characters as ⟨U+XXXX⟩; newlines and tabs stay."""
    return "".join(f"⟨U+{ord(char):04X}⟩" if _is_hidden(char) else char for char in str(text))


def _is_hidden(char: str) -> bool:
    if char in "\n\t":
        return False
    return unicodedata.category(char) in {"Cc", "Cs"} or ord(char) in _HIDDEN


def escape(text: object) -> str:
    """Text for HTML content and quoted attributes, with what could reorder or hide made visible."""
    return html.escape(visible(text), quote=True)


def breakable(text: object) -> str:
    """Text as `escape` gives it, in which what is long and unbroken, such as an id, may break.

    A run of more than 24 signs breaks after its separators or every 16 signs; shorter words stay
    whole. What is copied from the page is the text alone.
    """
    words, at, parts = visible(text), 0, []
    for found in _UNBROKEN.finditer(words):
        parts.append(escape(words[at : found.start()]))
        parts.append("<wbr>".join(escape(piece[0]) for piece in _PIECE.finditer(found[0])))
        at = found.end()
    return "".join((*parts, escape(words[at:])))


def escape_markdown(text: object) -> str:
    """Text for one line or table cell of Markdown: syntax escaped, line breaks made spaces."""
    line = " ".join(visible(text).split())
    return _MARKDOWN.sub(lambda found: _escape_markdown(found[0]), line)


def _escape_markdown(sign: str) -> str:
    # A number that would start a list is defused at its dot, for a backslash before a digit shows.
    return f"{sign}\u2060" if sign.isdigit() else f"\\{sign}"


def plain(text: object, *, width: int | None = None) -> str:
    """One line of text for a terminal: ANSI sequences removed, the rest visible, cut to `width`."""
    line = " ".join(visible(_ANSI.sub("", str(text))).split())
    if width is not None and len(line) > width:
        return line[: max(width - 1, 0)] + "…"
    return line


def tag(name: str, content: str = "", **attributes: str | None) -> str:
    """An element around `content`, which is HTML; attributes are escaped, `class_` is class."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{written}>{content}</{name}>"


def table(
    rows: Iterable[Mapping[str, object]],
    columns: Sequence[str],
    *,
    numeric: Sequence[str] = (),
    caption: str | None = None,
) -> str:
    """A table of escaped cells; `numeric` columns are right-aligned; None is shown as –."""
    head = "".join(
        tag("th", escape(name), scope="col", class_="num" if name in numeric else None)
        for name in columns
    )
    body = "".join(
        tag(
            "tr",
            "".join(
                tag("td", cell(row.get(name)), class_="num" if name in numeric else None)
                for name in columns
            ),
        )
        for row in rows
    )
    title = tag("caption", escape(caption)) if caption else ""
    return tag("table", title + tag("thead", tag("tr", head)) + tag("tbody", body), class_="rw")


def cell(value: object) -> str:
    """A table cell's HTML: None as –, everything else escaped; a long id may break."""
    return "–" if value is None else breakable(value)


def terminal_json(payload: str) -> str:
    """JSON text that cannot drive a terminal: hidden characters as escapes that JSON reads back."""
    return "".join(f"\\u{ord(char):04x}" if _is_hidden(char) else char for char in payload)
