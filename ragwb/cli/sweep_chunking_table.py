"""What `ragwb sweep chunking` says to people: words, points at both cuts, effects, passages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import typer

from ragwb.cli.options import Format, print_rows
from ragwb.html import plain

if TYPE_CHECKING:
    from ragwb.sweep.borders import Borders
    from ragwb.sweep.cuts import Cut
    from ragwb.sweep.outcome import ChunkingSweep

_COST = ("point", "chunks", "chunk_tokens", "split", "precision_omega", "index", "build", "p95_ms")
_EFFECTS = ("passage_recall", "recall")


def print_overview(found: ChunkingSweep) -> None:
    """The words, the points at equal K and at equal tokens, what each costs, and the effects."""
    from ragwb.view.panel import text_table

    for line in found.in_words():
        typer.echo(plain(line))
    if not found.case_ids:
        return
    for cut in found.cuts:
        rows = found.shown(cut)
        typer.echo(f"\nat {cut}")
        typer.echo(text_table(rows, list(rows[0])))
    typer.echo("\nwhat each chunking is and costs, before and beside the search")
    typer.echo(text_table(list(_cost_rows(found)), list(_COST)))
    rows = list(_effect_rows(found, found.cuts[1]))
    if rows:
        typer.echo(f"\nfactors at {found.cuts[1]}, each from points that differ in it alone")
        print_rows(rows, Format.table)
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


def _cost_rows(found: ChunkingSweep) -> Iterator[dict[str, Any]]:
    frame = found.frame().astype(object)
    named = {point.name: label for point, label in found.labels.items()}
    for row in frame.where(frame.notna(), None).to_dict("records"):
        if row["error"] is not None:
            continue
        is_cold = row["vectors"] is not None and row["vectors"] == row["vectors_computed"]
        build = None if row["build_ms"] is None else f"{row['build_ms'] / 1000:.1f} s"
        kept = "" if is_cold or build is None else " (vectors kept)"
        yield {
            "point": plain(named[row["point"]]),
            "chunks": f"{row['chunks']:.0f}",
            "chunk_tokens": _rounded(row["chunk_tokens"], 0),
            "split": _counts(row["split_passages"], row["passages"]),
            "precision_omega": _rounded(row["precision_omega"], 4),
            "index": f"{row['index_bytes'] / 1e6:.1f} MB",
            "build": None if build is None else build + kept,
            "p95_ms": _rounded(row["p95_ms"], 1),
        }


def _counts(part: float | None, whole: float | None) -> str | None:
    return None if part is None or whole is None else f"{part:.0f}/{whole:.0f}"


def _rounded(value: float | None, digits: int) -> str | None:
    return None if value is None else f"{value:.{digits}f}"


def _effect_rows(found: ChunkingSweep, cut: Cut) -> Iterator[dict[str, Any]]:
    effects = found.effects(cut)
    for row in effects[effects["metric"].isin(_EFFECTS)].to_dict("records"):
        yield {
            "factor": row["factor"],
            "from": plain(row["before"]),
            "to": plain(row["after"]),
            "metric": row["metric"],
            "effect": f"{row['effect']:+.4f}",
            "95 % interval": f"{row['low']:.4f} to {row['high']:.4f}",
            "pairs": f"{row['n_pairs']}",
            "better/worse": f"{row['win']}/{row['loss']}",
            "n": f"{row['n']}",
        }


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
