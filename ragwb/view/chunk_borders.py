"""A case's passages drawn over the chunk borders of two or more chunkings, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ragwb.html import escape, plain, tag
from ragwb.measure.listed import count, some
from ragwb.view.panel import Panel
from ragwb.view.tracks import cut_to_width

if TYPE_CHECKING:
    from ragwb.sweep.borders import Borders, Forbidden, Piece

BEGINS, ENDS, MEETS = "┣", "┫", "┃"
_OPEN, _CLOSE = "【", "】"
_QUOTED = 60
_KEY = f"{MEETS} one chunk ends and the next begins · {BEGINS} a chunk begins · {ENDS} a chunk ends"


def borders_panel(
    stretches: Sequence[Borders],
    labels: Mapping[str, str] | None = None,
    forbidden: Mapping[str, Sequence[Forbidden]] | None = None,
) -> Panel:
    """Each stretch once a point: its passages marked, the borders of chunks as bold bars.

    Args:
        stretches: of one case (`ChunkingSweep.borders`), at least one.
        labels: shorter names of the points, by name.
        forbidden: by name of a point what came back that must not (`ChunkingSweep.forbidden`).
    """
    first, named = stretches[0], labels or {}
    lines = [f"{plain(first.case_id)}: {plain(first.question)}"]
    html = tag("p", escape(first.question), class_="rw-question")
    for name, unwanted in (forbidden or {}).items():
        said = f"{named.get(name, name)}: {forbidden_words(unwanted)}"
        lines.append(plain(said))
        html += tag("p", escape(said), class_="rw-bad")
    lines.append(f"{_OPEN}required{_CLOSE} · {_KEY}")
    html += tag("p", f"{tag('mark', 'required')} · {_KEY}", class_="rw-text")
    for stretch in stretches:
        lines += ["", plain(document_words(stretch))]
        columns = ""
        for name, pieces in stretch.pieces.items():
            said = f"{named.get(name, name)}: {verdict_words(stretch, pieces)}"
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


def forbidden_words(unwanted: Sequence[Forbidden]) -> str:
    """What came back that must not: document, rank and the beginning of the text of each."""
    said = [
        f"{one.document_id} at rank {one.rank}, “{cut_to_width(_in_a_line(one.text), _QUOTED)}”"
        for one in unwanted
    ]
    return f"✖ must not be there and came back: {some(said)}"


def verdict_words(stretch: Borders, pieces: Sequence[Piece]) -> str:
    """How many of the passages some chunk holds whole, and where what touches them came back."""
    touching = [piece for piece in pieces if piece.touches]
    if not touching:
        return "no chunk touches it"
    n_passages = len(stretch.passages)
    n_whole = sum(
        any(piece.start <= first and last <= piece.end for piece in touching)
        for first, last in stretch.passages
    )
    how = f"{n_whole} of {count(n_passages, 'passage')} in one chunk"
    ranks = ", ".join("not found" if p.rank is None else f"rank {p.rank}" for p in touching)
    n = "1 chunk touches" if len(touching) == 1 else f"{len(touching)} chunks touch"
    return f"{how}; {n}: {ranks}"


def _in_a_line(text: str) -> str:
    return " ".join(text.split())


def _segments(stretch: Borders, pieces: Sequence[Piece]) -> Iterator[tuple[str, bool, str]]:
    """The text in runs: (text, whether it is required, the mark that stands before it)."""
    end = stretch.start + len(stretch.text)
    begins, stops = {piece.start for piece in pieces}, {piece.end for piece in pieces}
    edges = {at for span in stretch.passages for at in span}
    places = sorted(
        at for at in {*begins, *stops, *edges, stretch.start, end} if stretch.start <= at <= end
    )
    for at, after in zip(places, [*places[1:], end], strict=True):
        required = any(first <= at < last for first, last in stretch.passages)
        mark = (MEETS if at in stops else BEGINS) if at in begins else ENDS if at in stops else ""
        yield stretch.text[at - stretch.start : after - stretch.start], required, mark


def _text_parts(stretch: Borders, pieces: Sequence[Piece]) -> Iterator[str]:
    was_required = False
    for text, required, mark in _segments(stretch, pieces):
        if was_required and not required:
            yield _CLOSE
        yield mark
        if required and not was_required:
            yield _OPEN
        yield text
        was_required = required
    yield _CLOSE if was_required else ""


def _html_parts(stretch: Borders, pieces: Sequence[Piece]) -> Iterator[str]:
    for text, required, mark in _segments(stretch, pieces):
        yield tag("b", mark) if mark else ""
        yield tag("mark", escape(text)) if required and text else escape(text)
