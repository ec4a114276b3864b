"""The parts of a comparison's report, each as a `Panel`: words, patterns, figures, every case."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ragwb.html import escape, plain, tag
from ragwb.measure.listed import count, some
from ragwb.report.compare_cases import Rules, case_figures, case_marks, open_cases
from ragwb.report.words import embedding_warning, figure_words, verdict_panel
from ragwb.view.case_parts import cut
from ragwb.view.compare_card import compare_card
from ragwb.view.compare_charts import lead_figure, slice_field
from ragwb.view.compare_reading import is_rate, no_pairs_words, reading, signed
from ragwb.view.compared import CHANGE_WORDS
from ragwb.view.panel import Panel, fold, frame_rows, opened, stack, table_panel

if TYPE_CHECKING:
    from ragwb.decide.comparison import Comparison

Row = dict[str, Any]

CHANGES = tuple(CHANGE_WORDS)
CHANGED_COLUMNS = ("case_id", "why first", "figure", "question")
FIGURE_COLUMNS = (
    *("figure", "baseline", "candidate", "difference", "95 % interval"),
    *("better / same / worse", "p", "n", "reading"),
)
CONDITION_COLUMNS = ("field", "condition", "baseline", "candidate", "note")
SLICE_COLUMNS = (
    *("n", "fixed", "broken", "p", "baseline", "candidate", "difference", "95 % interval"),
    "reading",
)
LEFT_OUT_COLUMNS = ("case_id", "side", "why")
_LEVEL = 0.05  # of the exact test of fixed against broken
LATENCY_NOTE = (
    "Of a latency the interval covers the cases, not the load of the machine between two runs: run "
    "both again, or with --repeats, before you believe it."
)
_MOST_OF_A_QUESTION = 120
_MOST_OF_A_VALUE = 160
_HASH, _DIGITS = re.compile("[0-9a-f]{40,}"), 12  # digits that are enough to tell two apart


def overview(comparison: Comparison) -> Panel:
    """What changed in a line, then what may be concluded from it, and which patterns it shows."""
    first, *others = comparison.in_words()
    steps = [*others, *(pattern.sentence for pattern in comparison.patterns)]
    return verdict_panel(
        _colour(comparison),
        first[:1].upper() + first[1:],
        steps=steps,
        warnings=list(_warnings(comparison)),
        of_what=" · ".join(_sides(comparison)),
    )


def _colour(comparison: Comparison) -> str:
    """The colour of the head: a comparison decides nothing, but its exact test may tell."""
    flips = comparison.flips()
    if flips.p >= _LEVEL:
        return "neutral"
    return "pass" if flips.fixed > flips.broken else "fail"


def _warnings(comparison: Comparison) -> Iterator[str]:
    runs = (outcomes.run for outcomes in (comparison.baseline, comparison.candidate))
    yield from dict.fromkeys(
        line for run in runs if run is not None for line in embedding_warning(run)
    )


def _sides(comparison: Comparison) -> Iterator[str]:
    yield f"baseline {comparison.baseline.name}"
    yield f"candidate {comparison.candidate.name}"
    manifest = comparison.candidate.manifest
    if manifest is not None:
        yield manifest.dataset_version
    yield f"K = {comparison.k}"


def patterns(comparison: Comparison) -> Panel:
    """The known patterns that the figures show: what it means, which cases, what to look at."""
    if not comparison.patterns:
        words = "None of the known patterns is there, or none beyond what chance would give."
        return Panel(words, tag("p", words, class_="rw-none"))
    text, html = [], ""
    for pattern in comparison.patterns:
        named = f"Cases: {some(pattern.case_ids)}." if pattern.case_ids else ""
        look = f"Look first: {pattern.look_at}."
        text += [f"{pattern.title} ({pattern.code}): {pattern.sentence}", look, named]
        body = tag("b", escape(pattern.title)) + " " + tag("code", escape(pattern.code))
        body += tag("p", escape(pattern.sentence)) + tag("p", escape(look))
        if pattern.case_ids:
            all_ids = tag("p", escape(", ".join(pattern.case_ids)))
            body += fold(escape(count(len(pattern.case_ids), "case")), all_ids)
        html += tag("div", body, class_="rw-finding")
    return Panel("\n".join(plain(line) for line in text if line), html)


def figures(comparison: Comparison) -> Panel:
    """Every figure before and after with its difference and interval, quality before cost."""
    rows = figure_rows(comparison)
    table = table_panel(
        rows,
        FIGURE_COLUMNS,
        numeric=FIGURE_COLUMNS[1:-1],
        empty=f"No figure is defined in both runs ({no_pairs_words(comparison)}).",
    )
    n = len(comparison.pairs)
    words = (
        f"Over {count(n, 'case')} that both runs answered. Better, same and worse count cases. "
        "p: exact McNemar test, where a figure is 0 or 1 of each case. Within chance: the interval "
        "holds 0, or p is 0.05 or more. Not tested: there is neither."
    )
    below = LATENCY_NOTE if any(str(row["figure"]).endswith("_ms") for row in rows) else ""
    text = "\n".join(part for part in (words, table.text, below) if part)
    note = tag("p", escape(below), class_="rw-figures") if below else ""
    return Panel(text, tag("p", escape(words)) + table.html + note)


def figure_rows(comparison: Comparison, by: str | None = None) -> list[Row]:
    """A row a figure, or one a slice and figure; quality before cost."""
    found = frame_rows(comparison.deltas(by) if by else comparison.deltas())
    rows = [_figure_row(row) for row in found]
    order = [not is_rate(row) for row in found]
    return [row for _, row in sorted(zip(order, rows, strict=True), key=lambda pair: pair[0])]


def _figure_row(row: Mapping[str, Any]) -> Row:
    metric = row["metric"]
    counts = (row["counts"] or " → ").split(" → ")
    moved = (row["win"], row["tie"], row["loss"])
    return {
        "figure": metric,
        "baseline": figure_words(metric, row["baseline"], counts=counts[0]),
        "candidate": figure_words(metric, row["candidate"], counts=counts[-1]),
        "difference": _difference(row),
        "95 % interval": _interval(row),
        "better / same / worse": None if None in moved else " / ".join(f"{int(n)}" for n in moved),
        "p": _p_words(row["p"]),
        "n": row["n"],
        "reading": reading(row),
    }


def _difference(row: Mapping[str, Any]) -> str | None:
    return None if row["delta"] is None else _signed(row, row["delta"])


def _signed(row: Mapping[str, Any], value: float) -> str:
    if row["metric"].endswith("_ms"):
        return f"{value:+,.0f} ms" if round(value) else "0 ms"
    if is_rate(row):
        return signed(value)
    if abs(value) >= 10:
        return f"{value:+,.1f}"
    # A count a case may move by less than a tenth, and matter.
    return signed(value)


def _interval(row: Mapping[str, Any]) -> str | None:
    low, high = row["low"], row["high"]
    # Equal values resample to themselves: no width says nothing about how sure the figure is.
    if low is None or high is None or low == high:
        return None
    return f"{_signed(row, low)} to {_signed(row, high)}"


def _p_words(p: float | None) -> str | None:
    return None if p is None else f"{p:.3f}" if p >= 0.001 else "< 0.001"


def slices(comparison: Comparison, by: str | None = None, *, metric: str | None = None) -> Panel:
    """By slice what was fixed and broken, and one figure; the greatest loss first.

    Args:
        comparison: two runs on the same cases.
        by: tags.<name>, risk, or another field of the cases; by default the first that tells
            them apart.
        metric: a figure; by default that which stands for quality.
    Raises:
        UsageError: the cases have no such field.
    """
    by = slice_field(comparison, by)
    rows = slice_rows(comparison, by, metric=metric)
    columns = (by, *SLICE_COLUMNS)
    words = (
        f"{metric or lead_figure(comparison)} of each slice. p: exact McNemar test of fixed "
        "against broken, adjusted over the slices (Holm), for one of many slices differs by chance."
    )
    table = table_panel(rows, columns, numeric=columns[1:-1], empty="No slice has this figure.")
    return Panel(
        f"{table.text}\n{words}", table.html + tag("p", escape(words), class_="rw-figures")
    )


def slice_rows(comparison: Comparison, by: str, *, metric: str | None = None) -> list[Row]:
    """A row a slice with one figure, the greatest loss first."""
    wanted = metric or lead_figure(comparison)
    found = [row for row in frame_rows(comparison.deltas(by=by)) if row["metric"] == wanted]
    found.sort(key=lambda row: (row["delta"] is None, row["delta"] or 0))
    flips = {row["slice"]: row for row in frame_rows(comparison.flips_by(by))}
    return [_slice_row(by, row, flips[row["slice"]]) for row in found]


def _slice_row(by: str, row: Mapping[str, Any], flips: Mapping[str, Any]) -> Row:
    shown = {
        by: "(none)" if row["slice"] is None else row["slice"],
        **{name: flips[name] for name in ("n", "fixed", "broken")},
        "p": _p_words(flips["p_adjusted"]),
    }
    return {**_figure_row(row), **shown}


def changed_rows(comparison: Comparison, change: str) -> list[Row]:
    """A line a case that went this way, in the order in which they should be looked at.

    Args:
        comparison: two runs on the same cases.
        change: fixed, broken, still_failing or still_passing.
    """
    rows = {row["case_id"]: row for row in frame_rows(comparison.pairs)}
    changed = getattr(comparison, change)
    figures = case_figures(comparison, [rows[case_id] for case_id in changed])
    return [
        _changed_row(rows[case_id], said) for case_id, said in zip(changed, figures, strict=True)
    ]


def _changed_row(row: Mapping[str, Any], said: str) -> Row:
    return {
        "case_id": row["case_id"],
        "why first": ", ".join((*case_marks(row), *(["unstable"] if row["unstable"] else [])))
        or None,
        "figure": said,
        "question": cut(row["question"] or "", _MOST_OF_A_QUESTION),
    }


def cases(
    comparison: Comparison, *, limit: int = 50, others: int = 10, rules: Rules = None
) -> Panel:
    """Every case opened with both runs side by side: broken first, then fixed, then the rest.

    Args:
        comparison: two runs on the same cases.
        limit: cases that are opened of those that broke, and of those that were fixed, from 0.
        others: of those that still fail, and of those that still pass; the rest is counted and
            named.
        rules: the hard rules that the answers were scored by, or their file.
    """
    limits = {"broken": limit, "fixed": limit, "still_failing": others, "still_passing": others}
    if comparison.baseline.run is None or comparison.candidate.run is None:
        return stack({_title(comparison, c): _listed(comparison, c) for c in limits})
    ids = [i for change, most in limits.items() for i in getattr(comparison, change)[:most]]
    held = {case.case_id: case for case in open_cases(comparison, ids, rules=rules)}
    parts = {}
    for change, most in limits.items():
        mine = getattr(comparison, change)
        is_first = change == "broken" or (change == "fixed" and not comparison.broken)
        cards = [
            compare_card(held[case_id], is_open=is_first and at == 0)
            for at, case_id in enumerate(mine[:most])
        ]
        none = f"No case is {CHANGE_WORDS[change].lstrip('✔✖ ')}."
        empty = Panel(none, tag("p", none, class_="rw-none"))
        parts[_title(comparison, change)] = opened(cards, mine[most:]) if mine else empty
    return stack(parts)


def _title(comparison: Comparison, change: str) -> str:
    n = len(getattr(comparison, change))
    return f"{CHANGE_WORDS[change].lstrip('✔✖ ').capitalize()}: {n} of {len(comparison.pairs)}"


def _listed(comparison: Comparison, change: str) -> Panel:
    """The cases of figures that are no run: nothing of them can be opened."""
    return table_panel(changed_rows(comparison, change), CHANGED_COLUMNS, empty="None.")


def conditions(comparison: Comparison) -> Panel:
    """What differs between the manifests, field by field, and what may be concluded from it."""
    rows = condition_rows(comparison)
    table = table_panel(rows, CONDITION_COLUMNS, empty="No field of the manifests differs.")
    sentence = comparison.conditions.sentence
    sentence = sentence[:1].upper() + sentence[1:]
    text = f"{plain(sentence)}\n{table.text}"
    html = tag("p", tag("b", escape(sentence))) + tag("div", table.html, class_="rw-conditions")
    return Panel(text, html)


def condition_rows(comparison: Comparison) -> list[Row]:
    """A line a field in which the manifests differ; what changed of its own accord first."""
    return [
        {**row, "baseline": _written(row["baseline"]), "candidate": _written(row["candidate"])}
        for row in comparison.conditions.rows()
    ]


def _written(value: object) -> str | None:
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"{text[:_DIGITS]}…" if _HASH.fullmatch(text) else cut(text, _MOST_OF_A_VALUE)


def left_out(comparison: Comparison) -> Panel:
    """Cases that are in no pair, each with the side and the reason."""
    rows = left_out_rows(comparison)
    if not rows:
        words = "Every case of either run is compared."
        return Panel(words, tag("p", words, class_="rw-none"))
    words = f"{count(len(rows), 'case')} in no count above; none of them counts as passed."
    table = table_panel(rows, LEFT_OUT_COLUMNS, empty="")
    return Panel(f"{words}\n{table.text}", tag("p", escape(words)) + table.html)


def left_out_rows(comparison: Comparison) -> list[Row]:
    """A line a case that is in no pair."""
    return [
        {"case_id": one.case_id, "side": one.side, "why": one.reason} for one in comparison.left_out
    ]


def left_out_lines(comparison: Comparison) -> Sequence[str]:
    """A line a reason: how many cases it leaves out, and which."""
    by_reason: dict[str, list[str]] = {}
    for one in comparison.left_out:
        by_reason.setdefault(one.reason, []).append(one.case_id)
    return [f"{reason} ({len(ids)}): {some(ids)}" for reason, ids in by_reason.items()]
