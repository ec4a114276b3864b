"""The parts of a report on K, each as a `Panel`: which one to take, every figure, every step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ragwb.html import cell, escape, plain, tag
from ragwb.measure.cost import percentile
from ragwb.measure.listed import count, some
from ragwb.report.words import (
    embedding_warning,
    figure_words,
    interval_words,
    names_fold,
    number_words,
    run_line,
    verdict_panel,
)
from ragwb.sweep.k_cost import FROM_RUN, MEASURED, NOT_MEASURED
from ragwb.sweep.k_result import P95, cost_cell
from ragwb.sweep.k_steps import step_words
from ragwb.view.case_parts import grid
from ragwb.view.panel import Panel, frame_rows, stack, table_panel, text_table

if TYPE_CHECKING:
    import pandas as pd

    from ragwb.sweep.budget import Budget, Recommendation
    from ragwb.sweep.k_result import KSweep
    from ragwb.sweep.k_steps import Step

Row = dict[str, Any]

MEASURED_COLUMNS = ("K", "run", "calls", "at once", "p50", "p95", "p95 of each pass")
_RATES = ("recall", "hit_rate", "mrr", "ndcg", "map", "precision", "duplicate_rate")
_ANSWERS = ("correct_rate", "mode_accuracy", "citation_recall", "claim_coverage")
_COSTS = {
    "context_tokens": "tokens a case",
    "context_tokens_p95": "tokens, p95",
    "p50_ms": "latency, p50",
    "p95_ms": "latency, p95",
}
_WITH_INTERVAL = ("recall", "passage_recall", "correct_rate", "claim_coverage")
_NO_EARLIER = 3  # steps that are named in the head
_MOST_NAMED = 3
_FROM_TO = "from\u00a0→\u00a0to"
_P95 = 0.95
# Names of cases may break anywhere; the words around them need not.
_LOOK = (
    ".rw-k-steps table.rw.rw { width: 100%; } .rw-k-steps table.rw.rw th { overflow-wrap: normal; }"
    " .rw-k-steps table.rw.rw td:first-child { white-space: nowrap; }"
)
RIGHT = "correct_rate"


def overview(sweep: KSweep, budget: Budget | None = None, *, metric: str = "recall") -> Panel:
    """Which K, why, what the last steps brought, and of which run this is."""
    found = sweep.recommend(budget, metric=metric)
    return verdict_panel(
        "neutral" if found.k is not None else "undecided",
        _headline(found),
        words=found.sentence.partition(": ")[2] if found.k is not None else "",
        steps=list(_steps(sweep, found)),
        warnings=list(embedding_warning(sweep.run)),
        of_what=f"{run_line(sweep.run)} · {_out_of(sweep)}",
    )


def _headline(found: Recommendation) -> str:
    return f"K = {found.k}" if found.k is not None else _capital(found.sentence)


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def _out_of(sweep: KSweep) -> str:
    scores = sweep.scores
    parts = [f"{scores.n_scored} of {count(scores.n_cases, 'case')} scored"]
    parts += [f"{scores.n_excluded} excluded"] if scores.n_excluded else []
    parts += [count(scores.n_errors, "error")] if scores.n_errors else []
    return ", ".join(parts)


def _steps(sweep: KSweep, found: Recommendation) -> Iterator[str]:
    """What to know next: the steps around the K that is taken, then the notes."""
    at = found.k or found.nearest_k
    around = [step for step in sweep.steps if at is None or at in (step.k_from, step.k_to)]
    for step in around[:_NO_EARLIER]:
        named = f" ({some(step.gained, _MOST_NAMED)})" if step.gained else ""
        lost = f" Lost: {some(step.lost, _MOST_NAMED)}." if step.lost else ""
        yield f"From K = {step.k_from} to {step.k_to}: {step_words(step)}{named}.{lost}"
    unmeasured = [k for k in sweep.ks if k not in sweep.measured and k <= sweep.top_k]
    if unmeasured:
        yield (
            f"Latency and answers at K = {_listed(unmeasured)} were not measured: a call for more "
            "results tells nothing of one for fewer. ragwb sweep k --measure asks at each K."
        )
    yield from _by_answers(sweep, found)
    yield from sweep.notes


def _by_answers(sweep: KSweep, found: Recommendation) -> Iterator[str]:
    """Which K the answers speak for, where that is another one."""
    if len(sweep.answers) < 2 or found.metric == RIGHT:
        return
    other = sweep.recommend(found.budget, metric=RIGHT)
    if other.k is not None and other.k != found.k:
        yield f"The answers speak for another one. {other.sentence}."


def _listed(ks: list[int]) -> str:
    shown = ", ".join(map(str, ks[:8]))
    return f"{shown} … {ks[-1]}" if len(ks) > 8 else shown


def figures(sweep: KSweep) -> Panel:
    """Every figure at every K, a row a K: retrieval, passages, answers, and what it costs."""
    tables = {
        name: _figure_table(rows) for name, rows in figure_rows(sweep).items() if len(rows[0]) > 1
    }
    words = (
        f"Over {count(sweep.scores.n_scored, 'case')}; in brackets 95 % intervals. Tokens: of the "
        "first K results, title and text. Latency and answers stand only where calls for that K "
        "were made."
    )
    shown = stack(tables)
    return Panel(f"{words}\n\n{shown.text}", tag("p", escape(words)) + shown.html)


def _figure_table(rows: Sequence[Row]) -> Panel:
    columns = tuple(rows[0])
    return table_panel(rows, columns, numeric=columns, empty="")


def figure_rows(sweep: KSweep) -> dict[str, list[Row]]:
    """By kind of figure a row a K; figures without a value at any K are left out, but for costs."""
    known = sweep.metrics()
    kinds = {
        "Retrieval": [name for name in _RATES if name in known],
        "Passages": [name for name in known if name.startswith("passage_")],
        "Answers": [name for name in _ANSWERS if name in known],
        "Cost": list(_COSTS),
    }
    tables = {
        name: {row["k"]: row for row in frame_rows(sweep.curve(name))}
        for names_of_kind in kinds.values()
        for name in names_of_kind
    }
    return {
        kind: [
            {"K": f"{k}", **{_COSTS.get(name, name): _cell(tables[name][k]) for name in wanted}}
            for k in sweep.ks
        ]
        for kind, wanted in kinds.items()
    }


def _cell(row: Row) -> str:
    """A figure with its interval; a rate over few cases led by its counts; or why there is none."""
    metric = row["metric"]
    if metric in _COSTS:
        unit = " ms" if metric.endswith("_ms") else ""
        return _with_interval(cost_cell(row, unit), row, ",.0f")
    if row["source"] not in (FROM_RUN, MEASURED):
        return str(row["source"])
    words = figure_words(metric, row["value"], counts=row["counts"])
    return _with_interval(words, row, ".2f") if metric in _WITH_INTERVAL else words


def _with_interval(words: str, row: Row, form: str) -> str:
    if row["low"] is None or row["low"] == row["high"]:
        return words
    return f"{words} [{row['low']:{form}} – {row['high']:{form}}]"


def steps(sweep: KSweep) -> Panel:
    """From each K to the next: cases gained and lost, named, and what they cost."""
    if not sweep.steps:
        words = "One K alone: there is no step to another."
        return Panel(words, tag("p", words, class_="rw-none"))
    words = (
        "A case passes at K when all its evidence stands in the first K results and none that must "
        "not be there; it is lost when such evidence comes in."
    )
    held = [(step.gained, step.lost) for step in sweep.steps]
    table = _named_table(step_rows(sweep), held)
    parts = Panel(f"{table.text}\n{words}", table.html + tag("p", words, class_="rw-figures"))
    if not (rows := answer_step_rows(sweep)):
        return parts
    answered = [step for step in sweep.steps if step.answers_gained is not None]
    named = [(step.answers_gained or (), step.answers_lost or ()) for step in answered]
    return stack({"Evidence": parts, "Right answers": _named_table(rows, named)})


def _named_table(rows: Sequence[Row], cases: Sequence[tuple[Sequence[str], ...]]) -> Panel:
    """A table whose second and third column name cases, all of them behind a click."""
    columns = tuple(rows[0])
    numeric = columns[3:]
    lines = []
    for row, named in zip(rows, cases, strict=True):
        cells = tag("td", escape(row[columns[0]]))
        cells += "".join(tag("td", _fold(case_ids)) for case_ids in named)
        cells += "".join(tag("td", cell(row[name]), class_="num") for name in numeric)
        lines.append(tag("tr", cells))
    table = grid(columns, lines, words=3, class_="rw")
    html = tag("style", _LOOK) + tag("div", table, class_="rw-k-steps")
    return Panel(text_table(rows, columns), html)


def _fold(case_ids: Sequence[str]) -> str:
    if not case_ids:
        return "0"
    return tag("b", str(len(case_ids))) + " " + names_fold(case_ids, _MOST_NAMED)


def step_rows(sweep: KSweep) -> list[Row]:
    """A row a step, with the first of its cases named."""
    return [_step_row(step) for step in sweep.steps]


def _step_row(step: Step) -> Row:
    interval = interval_words(step.low, step.high)
    change = None if step.delta is None else f"{step.delta:+z.3f}" if step.delta else "0"
    return {
        _FROM_TO: _from_to(step),
        "gained": _counted(step.gained),
        "lost": _counted(step.lost),
        "recall": f"{change} [{interval}]" if interval else change,
        "tokens a case": None if step.tokens is None else f"{step.tokens:+z,.0f}",
        "tokens a gained case": None
        if step.tokens_per_gained is None
        else number_words(step.tokens_per_gained),
        "p95": NOT_MEASURED if step.p95_ms is None else f"{step.p95_ms:+z,.0f} ms",
    }


def answer_step_rows(sweep: KSweep) -> list[Row]:
    """A row a step at both ends of which answers were measured."""
    return [
        {
            _FROM_TO: _from_to(step),
            "answered rightly, and not before": _counted(step.answers_gained),
            "no longer answered rightly": _counted(step.answers_lost or ()),
        }
        for step in sweep.steps
        if step.answers_gained is not None
    ]


def _from_to(step: Step) -> str:
    """The two Ks, kept in one line."""
    return f"{step.k_from}\u00a0→\u00a0{step.k_to}"


def _counted(case_ids: Sequence[str]) -> str:
    return f"{len(case_ids)}: {some(case_ids, _MOST_NAMED)}" if case_ids else "0"


def slices(sweep: KSweep, by: str | None = None, *, metric: str = "recall") -> Panel:
    """One figure of each slice at every K, the lowest at the largest K first.

    Args:
        sweep: figures at several K.
        by: tags.<name>, risk, set or tier; by default the first that tells the cases apart.
        metric: a retrieval figure.

    Raises:
        UsageError: the cases have no such field.
    """
    by = by or next(iter(sweep.fields()), "risk")
    rows = slice_rows(sweep, by, metric=metric)
    columns = (by, "n", *(f"K = {k}" for k in _few(sweep)))
    known = [row for row in rows if row["n"]]
    table = table_panel(known, columns, numeric=columns[1:], empty="No slice has this figure.")
    empty = [str(row[by]) for row in rows if not row["n"]]
    if not empty:
        return table
    words = f"Without a case that is scored: {some(empty, 12)}."
    return Panel(f"{table.text}\n{plain(words)}", table.html + tag("p", escape(words)))


def slice_rows(sweep: KSweep, by: str, *, metric: str = "recall") -> list[Row]:
    """A row a slice with one figure at every K, the lowest at the largest K first."""
    frame = sweep.by(by)
    found: dict[str | None, list[Row]] = {}
    for row in frame_rows(frame[(frame["metric"] == metric) & (frame["k"] <= sweep.top_k)]):
        found.setdefault(row["slice"], []).append(row)
    ordered = sorted(found.items(), key=lambda item: item[1][-1]["value"] or 0.0)
    shown = set(_few(sweep))
    return [
        {
            by: "(none)" if name is None else name,
            "n": rows[-1]["n"],
            **{
                f"K = {row['k']}": figure_words(metric, row["value"], counts=row["counts"])
                for row in rows
                if row["k"] in shown
            },
        }
        for name, rows in ordered
    ]


def _few(sweep: KSweep, most: int = 8) -> list[int]:
    """Of many Ks as many as fit beside one another."""
    ks = [k for k in sweep.ks if k <= sweep.top_k]
    step = -(-len(ks) // most)
    return [k for i, k in enumerate(ks) if i % step == 0 or k == ks[-1]]


def measured(sweep: KSweep) -> Panel:
    """The runs that asked for a K of their own, and what their calls took."""
    table = table_panel(
        measured_rows(sweep), MEASURED_COLUMNS, numeric=MEASURED_COLUMNS[2:], empty=""
    )
    words = (
        "Percentiles by nearest rank over every answered call, at the client. With several calls "
        "at once a latency holds the waits for the others. Where the passes of one K lie as far "
        "apart as two Ks do, these two cannot be told apart, whatever the intervals over cases say."
    )
    return Panel(f"{table.text}\n{words}", table.html + tag("p", words))


def measured_rows(sweep: KSweep) -> list[Row]:
    """A row a measured K."""
    rows = []
    tables = {
        name: {row["k"]: row for row in frame_rows(sweep.curve(name))} for name in ("p50_ms", P95)
    }
    for k, run in sweep.measured.items():
        results = run.cases()
        p50, p95 = (tables[name].get(k) for name in ("p50_ms", P95))
        rows.append(
            {
                "K": f"{k}",
                "run": run.run_id,
                "calls": int((results["status"] == "ok").sum()),
                "at once": run.manifest.concurrency,
                "p50": None if p50 is None else cost_cell(p50, " ms"),
                "p95": None if p95 is None else cost_cell(p95, " ms"),
                "p95 of each pass": _by_pass(results),
            }
        )
    return rows


def _by_pass(results: pd.DataFrame) -> str | None:
    """The 95th percentile of each repeat, in their order."""
    answered = results[(results["status"] == "ok") & results["latency_ms"].notna()]
    by_repeat = answered.groupby("repeat")["latency_ms"]
    found = [percentile(values, _P95) for _, values in by_repeat]
    return " · ".join(f"{value:,.0f}" for value in found if value is not None) or None
