"""The parts of a retrieval report, each as a `Panel`: verdict, figures, slices, cases, manifest."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from ragwb.html import escape, tag
from ragwb.measure.cost import cost_table, latency_table
from ragwb.measure.listed import count, some
from ragwb.report.case_views import case_views
from ragwb.report.words import (
    embedding_warning,
    errors_of,
    failed_call_steps,
    figure_words,
    interval_words,
    limit_steps,
    limit_words,
    met_words,
    n_opened,
    number_words,
    run_line,
    verdict_panel,
    verdict_words,
)
from ragwb.view.case_card import case_card
from ragwb.view.panel import Panel, frame_rows, opened, stack, table_panel

if TYPE_CHECKING:
    from ragwb.report.evaluation import Evaluation

MOST_OF_A_QUESTION = 200
FAILED_COLUMNS = ("case_id", "why", "question", "risk", "recall", "reciprocal rank")


def headline(evaluation: Evaluation) -> Panel:
    """The verdict in a line, what to do next, and the warnings that change how to read the rest."""
    return verdict_panel(
        *verdict_words(evaluation.verdict, evaluation.thresholds),
        words=_verdict_line(evaluation),
        steps=list(_next_steps(evaluation)),
        warnings=list(_warnings(evaluation)),
        of_what=run_line(evaluation.run),
    )


def _verdict_line(evaluation: Evaluation) -> str:
    """What was found, the bad first."""
    scores, k = evaluation.scores, evaluation.top_k
    n_forbidden, n_drifted = len(evaluation.forbidden_case_ids), len(_drifted(evaluation))
    complete = scores.n_scored - len(evaluation.failed_case_ids)
    parts = [f"{complete}/{scores.n_scored} cases have all their evidence in the first {k}"]
    if n_forbidden:
        parts.insert(
            0, f"evidence that must not be there came back in {count(n_forbidden, 'case')}"
        )
    parts += met_words(evaluation.verdict, evaluation.thresholds)
    if n_drifted:
        parts.append(f"{count(n_drifted, 'case')} left out because the label no longer holds")
    if scores.n_errors:
        parts.append(f"{count(scores.n_errors, 'case')} could not be asked, the run is incomplete")
    return "; ".join(parts)


def _drifted(evaluation: Evaluation) -> list[str]:
    frame = evaluation.scores.frame
    drifted = frame["reason"].fillna("").str.startswith("drifted")
    ids: list[str] = frame.loc[(frame["status"] == "excluded") & drifted, "case_id"].tolist()
    return ids


def _next_steps(evaluation: Evaluation) -> Iterator[str]:
    k = evaluation.top_k
    if evaluation.forbidden_case_ids:
        named = some(evaluation.forbidden_case_ids)
        yield f"Look at these first, what must not come back did: {named}."
    yield from limit_steps(evaluation.thresholds)
    frame = evaluation.scores.frame
    yield from failed_call_steps(errors_of(frame))
    if drifted := _drifted(evaluation):
        yield f"Relink the evidence of {some(drifted)}: ragwb golden check tells what is gone."
    high = frame[(frame["risk"] == "high") & frame["case_id"].isin(evaluation.failed_case_ids)]
    if len(high):
        named = some(high["case_id"].tolist())
        yield f"Open first, high risk and evidence missing in the first {k}: {named}."


def _warnings(evaluation: Evaluation) -> Iterator[str]:
    yield from embedding_warning(evaluation.run)
    visible = _visible_chunks(evaluation)
    if visible:
        share = evaluation.top_k / visible
        if share > 0.1:
            yield (
                f"K = {evaluation.top_k} looks at {share:.0%} of the {visible} visible chunks: "
                "recall is easy here."
            )


def _visible_chunks(evaluation: Evaluation) -> int | None:
    """How many chunks the identity can be shown, where the service says so as ours does."""
    told = evaluation.run.service().get("chunks")
    visible = told.get("visible") if isinstance(told, dict) else None
    return visible if isinstance(visible, int) and visible > 0 else None


def figures(evaluation: Evaluation) -> Panel:
    """The mean of every figure at every K, with the interval and the limit of top K.

    With several repeats also how far they lie apart.
    """
    rows, scores = metric_rows(evaluation), evaluation.scores
    columns = tuple(rows[0]) if rows else ()
    panel = table_panel(rows, columns, numeric=columns[1:-1], empty="No case was scored.")
    words = (
        f"Means over {scores.n_scored} of {scores.n_cases} cases; {scores.n_excluded} excluded, "
        f"{scores.n_errors} errors."
    )
    means = Panel(f"{words}\n{panel.text}", tag("p", escape(words)) + panel.html)
    if scores.repeats == 1:
        return means
    return stack({"Means": means, f"Over {scores.repeats} repeats": _spread(evaluation)})


def metric_rows(evaluation: Evaluation) -> list[dict[str, object]]:
    """A row a figure: its value at each K, then the interval and the limit at top K."""
    limits = {threshold.metric: threshold for threshold in evaluation.thresholds}
    at_top = f"@{evaluation.top_k}"
    summary = evaluation.scores.summary()
    is_weighted = bool(summary["weighted"].notna().any())
    rows: dict[str, dict[str, object]] = {}
    for row in frame_rows(summary):
        name, _, k = row["metric"].partition("@")
        figure = rows.setdefault(name, {"metric": name})
        figure[f"@{k}"] = figure_words(name, row["value"], counts=row["counts"])
        if f"@{k}" == at_top:
            if is_weighted:
                figure[f"weighted {at_top}"] = figure_words(name, row["weighted"])
            figure[f"95 % interval {at_top}"] = interval_words(row["low"], row["high"])
            figure["limit"] = limit_words(limits.get(row["metric"]))
    return list(rows.values())


def cost(evaluation: Evaluation) -> Panel:
    """Latency at the client and by the service's own clock, and what a question costs."""
    results = evaluation.run.cases()
    latency, spent = latency_rows(evaluation, results), cost_rows(results)
    columns = ("measured by", "stage", "n", "p50 ms", "p95 ms", "p99 ms", "limit on p95")
    return stack(
        {
            f"Latency, {evaluation.run.manifest.concurrency} questions at once": table_panel(
                latency, columns, numeric=columns[2:6], empty="No call was answered."
            ),
            "A question costs": table_panel(
                spent, ("figure", "n", "mean", "p95"), numeric=("n", "mean", "p95"), empty=""
            ),
        }
    )


def latency_rows(evaluation: Evaluation, results: pd.DataFrame) -> list[dict[str, object]]:
    """A row a stage, the client's end to end first; waits and retries stand apart."""
    limit = next((t for t in evaluation.thresholds if t.metric == "p95_ms"), None)
    return [
        {
            "measured by": row["source"],
            "stage": row["stage"].replace("_", " "),
            "n": row["n"],
            **{f"{p} ms": number_words(row[f"{p}_ms"]) for p in ("p50", "p95", "p99")},
            "limit on p95": limit_words(limit) if row["stage"] == "end_to_end" else None,
        }
        for row in frame_rows(latency_table(results))
    ]


def cost_rows(results: pd.DataFrame) -> list[dict[str, object]]:
    """A row a measure: over how many results it was observed, its mean and 95th percentile."""
    return [
        {
            "figure": row["measure"],
            "n": row["n"],
            "mean": number_words(row["mean"]),
            "p95": number_words(row["p95"]),
        }
        for row in frame_rows(cost_table(results))
    ]


def _spread(evaluation: Evaluation) -> Panel:
    """How far the passes of the run lie apart: mean, spread and the worst of each figure."""
    rows = [
        {
            "metric": row["metric"],
            **{key: number_words(row[key]) for key in ("mean", "sd", "worst")},
        }
        for row in frame_rows(evaluation.scores.by_repeat())
    ]
    columns = ("metric", "mean", "sd", "worst")
    return table_panel(rows, columns, numeric=columns[1:], empty="No case was scored.")


def failed_rows(evaluation: Evaluation) -> list[dict[str, object]]:
    """A line a case that failed or returned what it must not: why, question, risk, figures."""
    frame, k = evaluation.scores.frame, evaluation.top_k
    questions = {case.case.id: case.case.question for case in evaluation.run.golden()}
    rows = {row["case_id"]: row for row in frame_rows(frame)}
    return [
        {
            "case_id": case_id,
            "why": _why(evaluation, case_id),
            "question": _cut(questions[case_id]),
            "risk": rows[case_id]["risk"],
            "recall": _known(rows[case_id][f"recall@{k}"]),
            "reciprocal rank": _known(rows[case_id][f"mrr@{k}"]),
        }
        for case_id in bad_cases(evaluation)
    ]


def _cut(question: str) -> str:
    return question if len(question) <= MOST_OF_A_QUESTION else f"{question[:MOST_OF_A_QUESTION]}…"


def bad_cases(evaluation: Evaluation) -> list[str]:
    """Cases to open: what must not be there first, then high risk, then in the set's order."""
    frame = evaluation.scores.frame
    risk = dict(zip(frame["case_id"], frame["risk"], strict=True))
    ids = {*evaluation.failed_case_ids, *evaluation.forbidden_case_ids}
    return sorted(
        (case_id for case_id in risk if case_id in ids),
        key=lambda c: (c not in evaluation.forbidden_case_ids, risk[c] != "high"),
    )


def _why(evaluation: Evaluation, case_id: str) -> str:
    words = ["forbidden came back"] if case_id in evaluation.forbidden_case_ids else []
    words += ["evidence missing"] if case_id in evaluation.failed_case_ids else []
    return ", ".join(words)


def _known(value: float) -> str | None:
    return None if pd.isna(value) else f"{value:.3g}"


def reach(evaluation: Evaluation) -> Panel:
    """How much of the visible knowledge each K looks at."""
    visible = _visible_chunks(evaluation)
    if not visible:
        words = "The service does not say how many chunks this identity can see."
    else:
        parts = ", ".join(f"K = {k}: {k / visible:.1%}" for k in evaluation.scores.ks)
        words = f"Of {visible} chunks visible to this identity, {parts}."
    return Panel(words, tag("p", escape(words)))


def slices(evaluation: Evaluation) -> Panel:
    """Recall, hit rate and MRR at top K by every tag, risk, set and tier that tells cases apart."""
    fields = evaluation.scores.fields()
    if not fields:
        return Panel("No case carries tags.", tag("p", "No case carries tags.", class_="rw-none"))
    return stack({field: _slice(evaluation, field) for field in fields})


def _slice(evaluation: Evaluation, field: str) -> Panel:
    shown = [f"{metric}@{evaluation.top_k}" for metric in ("recall", "hit_rate", "mrr")]
    rows: dict[str, dict[str, Any]] = {}
    for row in frame_rows(evaluation.scores.by(field)):
        metric, value = row["metric"], row["value"]
        if metric in shown:
            name = "(none)" if row["slice"] is None else row["slice"]
            entry = rows.setdefault(name, {field: name, "n": row["n"], "order": value})
            entry[metric] = figure_words(metric, value, counts=row["counts"])
            if metric == shown[0]:
                entry["95 % interval"] = interval_words(row["low"], row["high"])
    ordered = sorted(rows.values(), key=lambda row: (pd.isna(row["order"]), row["order"]))
    columns = (field, "n", shown[0], "95 % interval", *shown[1:])
    return table_panel(ordered, columns, numeric=columns[1:], empty="No case was scored.")


def failed(evaluation: Evaluation, *, limit: int) -> Panel:
    """Each bad case opened, forbidden evidence and high risk first; the rest counted and named."""
    ids = bad_cases(evaluation)
    if not ids:
        return Panel("No case failed.", tag("p", "No case failed.", class_="rw-none"))
    return _cards(evaluation, ids, limit=n_opened(limit), n_open=1)


def passed(evaluation: Evaluation, *, limit: int) -> Panel:
    """The other cases that answered, closed until they are clicked on."""
    frame, bad = evaluation.scores.frame, {*bad_cases(evaluation)}
    # A retired case was not asked: there is nothing of it to open.
    answered = frame.loc[(frame["status"] != "error") & (frame["n_repeats"] > 0), "case_id"]
    ids = [case_id for case_id in answered if case_id not in bad]
    if not ids:
        return Panel("No other case.", tag("p", "No other case.", class_="rw-none"))
    return _cards(evaluation, ids, limit=n_opened(limit), n_open=0)


def _cards(evaluation: Evaluation, ids: Sequence[str], *, limit: int, n_open: int) -> Panel:
    views = case_views(evaluation, ids[:limit])
    cards = [case_card(view, is_open=position < n_open) for position, view in enumerate(views)]
    return opened(cards, ids[limit:])


def left_out(evaluation: Evaluation) -> Panel:
    """Cases outside the means: whose call failed for good, and excluded ones, each with why."""
    report = evaluation.to_dict()
    errors = table_panel(report["errors"], ("case_id", "error"), empty="No call failed.")
    excluded = table_panel(report["excluded"], ("case_id", "reason"), empty="No case is excluded.")
    return stack({"Errors": errors, "Excluded": excluded})


def manifest(evaluation: Evaluation) -> Panel:
    """Everything that the run depends on; what the service did not say is –."""
    rows: list[dict[str, object]] = [
        {"field": name, "value": None if value is None else _written(value)}
        for name, value in evaluation.run.manifest.model_dump(mode="json").items()
    ]
    return table_panel(rows, ("field", "value"), empty="")


def _written(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
