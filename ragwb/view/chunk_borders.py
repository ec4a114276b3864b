"""A case's passages drawn over the chunk borders of two or more chunkings, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ragwb.html import escape, plain, tag
from ragwb.view.panel import Panel

if TYPE_CHECKING:
    from ragwb.sweep.borders import Borders, Piece

BORDER = "┃"
_OPEN, _CLOSE = "【", "】"


def borders_panel(stretches: Sequence[Borders], labels: Mapping[str, str] | None = None) -> Panel:
    """Each stretch once a point: its passages marked, the borders of chunks as bold bars.

    Args:
        stretches: of one case (`ChunkingSweep.borders`), at least one.
        labels: shorter names of the points, by name.
    """
    first = stretches[0]
    key = f"{_OPEN}required{_CLOSE}  {BORDER} a chunk begins or ends"
    lines = [f"{plain(first.case_id)}: {plain(first.question)}", key]
    html = tag("p", escape(first.question), class_="rw-question")
    html += tag(
        "p", tag("mark", "required") + f" · {BORDER} a chunk begins or ends", class_="rw-text"
    )
    for stretch in stretches:
        lines += ["", plain(document_words(stretch))]
        columns = ""
        for name, pieces in stretch.pieces.items():
            said = f"{(labels or {}).get(name, name)}: {verdict_words(pieces)}"
            lines += ["", plain(said), plain("".join(_text_parts(stretch, pieces)))]
            drawn = tag("div", "".join(_html_parts(stretch, pieces)), class_="rw-text")
            columns += tag("div", tag("p", escape(said), class_="rw-figures") + drawn)
        html += tag("p", tag("b", escape(document_words(stretch))))
        html += tag("div", columns, class_="rw-pair")
    return Panel("\n".join(lines), tag("div", html, class_="rw"))


def document_words(stretch: Borders) -> str:
    """Which document a stretch is of."""
    version = f" version {stretch.document_version}" if stretch.document_version else ""
    return f"{stretch.document_id}{version}"


def verdict_words(pieces: Sequence[Piece]) -> str:
    """Whether a chunk holds the passages, and where what touches them came back."""
    touching = [piece for piece in pieces if piece.touches]
    if not touching:
        return "no chunk touches it"
    how = "a chunk holds a passage whole" if any(p.holds for p in touching) else "split"
    ranks = ", ".join("not found" if p.rank is None else f"rank {p.rank}" for p in touching)
    n = "1 chunk touches" if len(touching) == 1 else f"{len(touching)} chunks touch"
    return f"{how}; {n}: {ranks}"


def _segments(stretch: Borders, pieces: Sequence[Piece]) -> Iterator[tuple[str, bool, bool]]:
    """The text in runs: (text, whether it is required, whether a border stands before it)."""
    end = stretch.start + len(stretch.text)
    borders = {at for piece in pieces for at in (piece.start, piece.end)}
    ends = {at for span in stretch.passages for at in span}
    places = sorted(
        at for at in {*borders, *ends, stretch.start, end} if stretch.start <= at <= end
    )
    for at, after in zip(places, [*places[1:], end], strict=True):
        required = any(first <= at < last for first, last in stretch.passages)
        yield stretch.text[at - stretch.start : after - stretch.start], required, at in borders


def _text_parts(stretch: Borders, pieces: Sequence[Piece]) -> Iterator[str]:
    was_required = False
    for text, required, is_border in _segments(stretch, pieces):
        if was_required and not required:
            yield _CLOSE
        yield BORDER if is_border else ""
        if required and not was_required:
            yield _OPEN
        yield text
        was_required = required
    yield _CLOSE if was_required else ""


def _html_parts(stretch: Borders, pieces: Sequence[Piece]) -> Iterator[str]:
    for text, required, is_border in _segments(stretch, pieces):
        yield tag("b", BORDER) if is_border else ""
        yield tag("mark", escape(text)) if required and text else escape(text)
