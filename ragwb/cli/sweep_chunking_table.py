"""What `ragwb sweep chunking` says to people: words, points at both cuts, effects, passages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

from ragwb.html import plain

if TYPE_CHECKING:
    from ragwb.sweep.borders import Borders
    from ragwb.sweep.outcome import ChunkingSweep


def print_overview(found: ChunkingSweep) -> None:
    """The words, the points at equal K and at equal tokens, what each costs, and the effects."""
    from ragwb.report import chunking_sections as sections
    from ragwb.sweep.wording import shown_columns
    from ragwb.view.panel import text_table

    for line in found.in_words():
        typer.echo(plain(line))
    if not found.case_ids:
        return
    for cut in found.cuts:
        rows = found.shown(cut)
        typer.echo(f"\nat {cut}")
        typer.echo(text_table(rows, shown_columns(rows)))
    typer.echo("\nwhat each chunking is and costs, before and beside the search")
    typer.echo(text_table(sections.cost_rows(found), sections.COST_COLUMNS))
    if rows := sections.effect_rows(found):
        typer.echo(f"\nfactors at {found.cuts[1]}, each from points that differ in it alone")
        typer.echo(text_table(rows, sections.EFFECT_COLUMNS))
    first = _case_to_draw(found)
    if first is not None:
        typer.echo(f"\nnext: the same command with --case {plain(first)} draws its passages")


def _case_to_draw(found: ChunkingSweep) -> str | None:
    """A case whose passage some point splits, else one that some point fixes or breaks."""
    for result in found.measured:
        cases = result.cases[result.cases["n_split"] > 0]
        for case_id in cases["case_id"]:
            if case_id in found.case_ids:
                return str(case_id)
    for row in found.changes(found.cuts[1]).to_dict("records"):
        for case_id in (*row["broken_ids"], *row["fixed_ids"]):
            return str(case_id)
    return None


def csv_rows(found: ChunkingSweep) -> list[dict[str, Any]]:
    """A row a point and cut."""
    rows = []
    for cut in found.cuts:
        frame = found.frame(cut).astype(object)
        known = frame.where(frame.notna(), None)
        rows += [
            {"cut": cut.key, **{str(name): value for name, value in row.items()}}
            for row in known.to_dict("records")
        ]
    return rows


def piece_rows(stretches: Sequence[Borders]) -> list[dict[str, Any]]:
    """A row a chunk of a drawn case."""
    return [
        {
            "case_id": stretch.case_id,
            "document_id": stretch.document_id,
            "document_version": stretch.document_version,
            "point": name,
            "chunk_id": piece.chunk_id,
            "start": piece.start,
            "end": piece.end,
            "rank": piece.rank,
            "holds": piece.holds,
            "touches": piece.touches,
        }
        for stretch in stretches
        for name, pieces in stretch.pieces.items()
        for piece in pieces
    ]
