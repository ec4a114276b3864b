"""The parts of a report on chunking, each as a `Panel`: which to take, points, factors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ragwb.html import escape, plain, tag
from ragwb.measure.listed import count, some
from ragwb.report.words import names_fold, verdict_panel
from ragwb.sweep.choosing import choices
from ragwb.sweep.wording import FORBIDDEN, shown_columns
from ragwb.view.chunk_borders import borders_panel
from ragwb.view.panel import Panel, fold, frame_rows, stack, table_panel, text_table

if TYPE_CHECKING:
    from ragwb.sweep.cuts import Cut
    from ragwb.sweep.outcome import ChunkingSweep

Row = dict[str, Any]

POINT_COLUMNS = (
    *("point", "recall", "difference", "95 % interval", "fixed", "broken", FORBIDDEN),
    *("passage recall", "passage precision", "passage IoU", "tokens"),
)
COST_COLUMNS = (
    *("point", "chunks", "tokens a chunk", "split", "Ω", "Ω strict"),
    *("index", "build", "p50", "p95"),
)
CHANGE_COLUMNS = ("point", "fixed", "broken", "p")
EFFECT_COLUMNS = (
    *("factor", "from", "to", "figure", "effect", "95 % interval"),
    *("pairs", "by pair", "better / worse", "n"),
)
# Names of points may break anywhere; the words of a head need not.
_LOOK = (
    ".rw-chunking table.rw.rw { width: 100%; } .rw-chunking table.rw.rw th, "
    ".rw-chunking table.rw.rw td { padding: 5px 6px; overflow-wrap: normal; } "
    ".rw-chunking table.rw.rw td:first-child { overflow-wrap: anywhere; }"
)
_WARNINGS = (
    *("must not be there comes back at", "nothing is delivered where", "knows no meaning"),
    " failed: ",
)
_EFFECTS = ("recall", "passage_recall", "passage_precision", "passage_iou")


def overview(sweep: ChunkingSweep) -> Panel:
    """The best point at equal tokens, what else there is to know, and what is compared."""
    words = list(sweep.in_words())
    found = choices(sweep)
    if not found:
        return verdict_panel("undecided", words[0], steps=words[1:], of_what=_of_what(sweep))
    best = found[-1]
    warnings = [line for line in words if any(word in line for word in _WARNINGS)]
    steps = [line for line in words[1:] if line not in warnings]
    return verdict_panel(
        "neutral",
        sweep.labels[best.point],
        words=f"at {best.cut}, {best.words}",
        steps=[line for line in steps if not line.startswith(f"At {best.cut} ")],
        warnings=warnings,
        of_what=f"{words[0]} · {_of_what(sweep)}",
    )


def _of_what(sweep: ChunkingSweep) -> str:
    return f"reference {sweep.labels[sweep.reference]} · K {sweep.k} · {sweep.tokens:,} tokens"


def points(sweep: ChunkingSweep) -> Panel:
    """Every point at equal K and at equal context tokens."""
    stacked = stack({f"At {cut}": _points_at(sweep, cut) for cut in sweep.cuts})
    html = tag("style", _LOOK) + tag("div", stacked.html, class_="rw-chunking")
    return Panel(stacked.text, html)


def _points_at(sweep: ChunkingSweep, cut: Cut) -> Panel:
    rows = point_rows(sweep, cut)
    columns = point_columns(rows)
    return table_panel(
        rows,
        columns,
        numeric=columns[1:],
        empty="No point was measured on a common case.",
    )


def point_columns(rows: Sequence[Row]) -> tuple[str, ...]:
    """`POINT_COLUMNS`, without that of forbidden evidence where none came back."""
    has_forbidden = FORBIDDEN in shown_columns(rows)
    return tuple(name for name in POINT_COLUMNS if has_forbidden or name != FORBIDDEN)


def point_rows(sweep: ChunkingSweep, cut: Cut) -> list[Row]:
    """A row a measured point at a cut, as `POINT_COLUMNS`."""
    if not sweep.case_ids:
        return []
    means = {row["point"]: row for row in frame_rows(sweep.frame(cut)) if row["error"] is None}
    rows = []
    for shown, row in zip(sweep.shown(cut), means.values(), strict=True):
        figures = {
            name.replace("iou", "IoU").replace("_", " "): _digits(row[name])
            for name in ("passage_recall", "passage_precision", "passage_iou")
        }
        rows.append({**shown, **figures})
    return rows


def costs(sweep: ChunkingSweep) -> Panel:
    """What each chunking is before any search, and what it takes to build and to ask."""
    words = (
        "Split: passages that no chunk holds whole. Ω: the best precision that a chunking allows, "
        "strict without chunks that only meet a border. A build whose vectors were kept from an "
        "earlier one says nothing of what a build costs; latency is that of one question, for as "
        "many results as were asked for."
    )
    table = table_panel(
        cost_rows(sweep), COST_COLUMNS, numeric=COST_COLUMNS[1:], empty="No point was measured."
    )
    return Panel(f"{words}\n{table.text}", tag("p", escape(words)) + table.html)


def cost_rows(sweep: ChunkingSweep) -> list[Row]:
    """A row a measured point, as `COST_COLUMNS`."""
    named = {point.name: label for point, label in sweep.labels.items()}
    return [
        {
            "point": named[row["point"]],
            "chunks": f"{row['chunks']:,.0f}",
            "tokens a chunk": _digits(row["chunk_tokens"], 0),
            "split": _counts(row["split_passages"], row["passages"]),
            "Ω": _digits(row["precision_omega"]),
            "Ω strict": _digits(row["precision_omega_strict"]),
            "index": f"{row['index_bytes'] / 1e6:.1f} MB",
            "build": _build_words(row),
            "p50": _milliseconds(row["p50_ms"]),
            "p95": _milliseconds(row["p95_ms"]),
        }
        for row in frame_rows(sweep.frame())
        if row["error"] is None
    ]


def _build_words(row: Row) -> str | None:
    if row["build_ms"] is None or row["vectors"] is None:
        return None
    kept = row["vectors"] - row["vectors_computed"]
    seconds = f"{row['build_ms'] / 1000:.1f} s"
    return f"{seconds}, {kept:,.0f} of {row['vectors']:,.0f} vectors kept" if kept else seconds


def effects(sweep: ChunkingSweep) -> Panel:
    """What each factor does at equal tokens, and which get no credit."""
    rows = effect_rows(sweep)
    table = table_panel(
        rows,
        EFFECT_COLUMNS,
        numeric=EFFECT_COLUMNS[4:],
        empty="No two points differ in one factor alone.",
    )
    lines = [f"No credit for {one.factor}: {one.reason}." for one in sweep.uncredited()]
    html = "".join(tag("p", escape(line)) for line in lines)
    return Panel("\n".join([table.text, *map(plain, lines)]), table.html + html)


def effect_rows(sweep: ChunkingSweep) -> list[Row]:
    """A row a factor, value and figure, as `EFFECT_COLUMNS`."""
    return [
        {
            "factor": row["factor"],
            "from": str(row["before"]),
            "to": str(row["after"]),
            "figure": row["metric"],
            "effect": f"{row['effect']:+z.4f}",
            "95 % interval": f"{row['low']:z.4f} to {row['high']:z.4f}",
            "pairs": f"{row['n_pairs']}",
            "by pair": f"{row['least']:+z.4f} to {row['most']:+z.4f}",
            "better / worse": f"{row['win']} / {row['loss']}",
            "n": f"{row['n']}",
        }
        for row in frame_rows(sweep.effects())
        if row["metric"] in _EFFECTS and row["effect"] is not None
    ]


def changes(sweep: ChunkingSweep) -> Panel:
    """The cases that each point fixes and breaks against the reference, at both cuts, by name."""
    text, html = [], ""
    for cut in sweep.cuts:
        rows = list(change_rows(sweep, cut))
        text += [f"at {cut}", text_table(rows, CHANGE_COLUMNS) if rows else "nothing to compare"]
        html += tag("h4", escape(f"At {cut}"))
        html += "".join(_change_html(row) for row in rows) or tag("p", "Nothing to compare.")
    return Panel("\n".join(text), html)


def change_rows(sweep: ChunkingSweep, cut: Cut) -> Iterator[Row]:
    """A row a point beside the reference: the cases by name, p of the exact test, Holm's."""
    named = {point.name: label for point, label in sweep.labels.items()}
    for row in sweep.changes(cut).to_dict("records"):
        yield {
            "point": named[row["point"]],
            "fixed": f"{row['fixed']}: {some(row['fixed_ids'])}" if row["fixed"] else "0",
            "broken": f"{row['broken']}: {some(row['broken_ids'])}" if row["broken"] else "0",
            "p": f"{row['p_adjusted']:.3f}",
            "ids": (row["fixed_ids"], row["broken_ids"]),
        }


def _change_html(row: Row) -> str:
    fixed, broken = row["ids"]
    head = f"{row['point']}: fixes {len(fixed)}, breaks {len(broken)} (p {row['p']})"
    if not fixed and not broken:
        return tag("p", escape(head))
    lists = "".join(
        tag("p", f"{word}: {names_fold(ids, 8)}")
        for word, ids in (("fixed", fixed), ("broken", broken))
        if ids
    )
    return fold(escape(head), lists)


def borders(sweep: ChunkingSweep, case: str = "", point: str = "") -> Panel:
    """A case's passages over the chunk borders of the reference and of another point.

    Args:
        sweep: the points.
        case: its id; empty for the first one that one of the two splits and the other does not,
            else that one of them fixes or breaks.
        point: the other point; empty for the best at equal tokens that is not the reference.

    Raises:
        UsageError: no such case or point.
    """
    others = [r.point for r in sweep.measured if r.point != sweep.reference]
    if not others or sweep.result(sweep.reference).error is not None:
        words = "There are no two points to draw side by side."
        return Panel(words, tag("p", words, class_="rw-none"))
    found = choices(sweep)
    best = found[-1].point if found else None
    other = sweep.result(point).point if point else (best if best in others else others[0])
    case = case or _case_to_draw(sweep, other.name)
    if not case:
        words = "No case names a passage: there is nothing to draw."
        return Panel(words, tag("p", words, class_="rw-none"))
    named = {one.name: label for one, label in sweep.labels.items()}
    drawn = (case, sweep.reference, other)
    return borders_panel(sweep.borders(*drawn), named, sweep.forbidden(*drawn))


def _case_to_draw(sweep: ChunkingSweep, other: str) -> str:
    cut = sweep.cuts[1]
    mine, theirs = (sweep.cases(name, cut) for name in (sweep.reference, other))
    ids = mine.index[(mine["n_split"] > 0) != (theirs["n_split"] > 0)].tolist()
    ids += mine.index[mine["failed"] != theirs["failed"]].tolist()
    ids += mine.index[mine["n_passages"] > 0].tolist()
    drawable = [case_id for case_id in ids if mine.loc[case_id, "precision_omega"] >= 0]
    return str(drawable[0]) if drawable else ""


def left_out(sweep: ChunkingSweep) -> Panel:
    """The cases in no figure, and the points that failed, each with its reason."""
    rows: list[Row] = [{"what": f"case {i}", "why": why} for i, why in sweep.left_out.items()]
    rows += [{"what": f"point {r.point.name}", "why": r.error} for r in sweep.failed]
    words = f"{count(len(sweep.left_out), 'case')}, {count(len(sweep.failed), 'point')}"
    table = table_panel(rows, ("what", "why"), empty="Every case and every point counts.")
    return Panel(f"{words}\n{table.text}", tag("p", escape(words)) + table.html)


def _digits(value: float | None, digits: int = 4) -> str | None:
    return None if value is None else f"{value:.{digits}f}"


def _counts(part: float | None, whole: float | None) -> str | None:
    return None if part is None or whole is None else f"{part:.0f}/{whole:.0f}"


def _milliseconds(value: float | None) -> str | None:
    return None if value is None else f"{value:.1f} ms"
