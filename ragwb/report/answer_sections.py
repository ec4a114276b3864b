"""The parts of an answer report, each as a `Panel`: modes, figures, rules, chains, every case."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from ragwb.html import escape, tag
from ragwb.measure.answer_figures import MODES
from ragwb.measure.answer_scores import LOWER_IS_BETTER, OTHER
from ragwb.report import sections
from ragwb.report.answer_cases import FAILED_COLUMNS, failed, failed_rows, passed
from ragwb.report.answer_findings import (
    RULE_COLUMNS,
    chains,
    conflicts,
    evidence,
    rule_rows,
    rules,
)
from ragwb.report.answer_headline import cases_by_mode, headline, unstable_cases
from ragwb.report.words import (
    figure_words,
    interval_words,
    limit_words,
    names_fold,
    number_words,
)
from ragwb.view.panel import Panel, frame_rows, stack, table_panel, text_table

if TYPE_CHECKING:
    from ragwb.report.answer_evaluation import AnswerEvaluation

__all__ = [
    "FAILED_COLUMNS",
    "FIGURE_COLUMNS",
    "RULE_COLUMNS",
    "background",
    "chains",
    "conflicts",
    "evidence",
    "failed",
    "failed_rows",
    "figure_rows",
    "figures",
    "headline",
    "judges",
    "left_out",
    "modes",
    "opinions",
    "passed",
    "repeats",
    "rule_rows",
    "rules",
    "slices",
]

FIGURE_COLUMNS = ("figure", "value", "95 % interval", "n", "limit", "what it is")
_MEANING = {
    "correct_rate": "right mode, every required claim, no hard rule broken",
    "mode_accuracy": "answered, refused or asked back as it must",
    "refusal_precision": "rightly refused of all refused",
    "refusal_recall": "rightly refused of all that must be refused",
    "over_refusal_rate": "refused or asked back of all that must be answered",
    "refusal_reason_accuracy": "of the rightly refused: for a reason that the case accepts",
    "clarify_precision": "rightly asked back of all asked back",
    "clarify_recall": "rightly asked back of all that need it",
    "citation_validity": "cited ids that are in the case's own context",
    "citation_precision": "cited ids that are evidence",
    "citation_recall": "evidence groups that are cited",
    "citation_support": "claims that a cited chunk supports, of those with a citation (judge)",
    "claim_coverage": "required claims that are stated",
    "forbidden_claims": "forbidden claims that are stated, a number a case",
    "unsupported_rate": "claims that nothing in the context supports (judge)",
    "hard_failure_rate": "answers that break a hard rule",
    "accepted": "hard rules AND a calibrated judge",
    "evidence_conflict": "contexts with two versions, or passages that contradict each other",
    "chain_there": "of cases with several hops: every hop is in the knowledge",
    "chain_retrieved": "every hop is in the results",
    "chain_in_context": "every hop is in the context",
    "chain_cited": "every hop is cited",
}
_SLICED = ("correct_rate", "mode_accuracy", "claim_coverage", "citation_recall")


def modes(evaluation: AnswerEvaluation) -> Panel:
    """The confusion of modes: what must happen by what happened, every wrong cell with its cases.

    A number is one of results, one a case and repeat.
    """
    table = {
        str(row["expected"]): row
        for row in frame_rows(evaluation.answers.confusion().reset_index())
    }
    observed = [*MODES, *([OTHER] if any(row[OTHER] for row in table.values()) else [])]
    cases = cases_by_mode(evaluation)
    lines, rows = [], []
    for expected in MODES:
        total = sum(table[expected][mode] for mode in (*MODES, OTHER))
        counts = {mode: table[expected][mode] for mode in observed}
        lines.append({"must": f"{expected} ({total})", **counts})
        cells = tag("th", escape(f"{expected} ({total})"), scope="row")
        cells += "".join(
            _mode_cell(n, mode == expected, cases.get((expected, mode), []))
            for mode, n in counts.items()
        )
        rows.append(tag("tr", cells))
    heads = ["must", *observed]
    head = tag("tr", "".join(tag("th", escape(name), scope="col") for name in heads))
    html = tag("thead", head) + tag("tbody", "".join(rows))
    return Panel(text_table(lines, heads), tag("table", html, class_="rw rw-modes"))


def _mode_cell(n: int, is_right: bool, case_ids: Sequence[str]) -> str:
    if not n:
        return tag("td", "0", class_="rw-none")
    if is_right:
        return tag("td", tag("span", f"✔ {n}", class_="rw-good"), class_="rw-right")
    wrong = tag("span", f"✖ {n}", class_="rw-bad")
    return tag("td", wrong + tag("div", names_fold(case_ids)), class_="rw-wrong")


def figures(evaluation: AnswerEvaluation) -> Panel:
    """Every figure with its n, interval and limit; – where it is undefined."""
    answers = evaluation.answers
    rows = figure_rows(evaluation)
    columns: tuple[str, ...] = FIGURE_COLUMNS
    if "weighted" in rows[0]:
        columns = (*columns[:2], "weighted", *columns[2:])
    table = table_panel(
        rows, columns, numeric=("value", "weighted", "95 % interval", "n"), empty=""
    )
    words = (
        f"Means over {answers.n_scored} of {answers.n_cases} cases; {answers.n_excluded} excluded, "
        f"{answers.n_errors} errors. n counts the cases for which a figure is defined: cases to be "
        "refused or asked back enter no figure of claims, citations or chains."
    )
    html = tag("p", escape(words)) + tag("div", table.html, class_="rw-figure-table")
    return Panel(f"{words}\n{table.text}", html)


def figure_rows(evaluation: AnswerEvaluation) -> list[dict[str, object]]:
    """A row a figure, in the order of the definitions."""
    summary = evaluation.answers.summary()
    limits = {threshold.metric: threshold for threshold in evaluation.thresholds}
    is_weighted = bool(summary["weighted"].notna().any())
    rows = []
    for row in frame_rows(summary):
        name = row["metric"]
        meaning = _MEANING[name] + (" (low is good)" if name in LOWER_IS_BETTER else "")
        if name in evaluation.judging.advised:
            meaning += "; the judge only advises"
        weighted = {"weighted": figure_words(name, row["weighted"])} if is_weighted else {}
        rows.append(
            {
                "figure": name,
                "value": figure_words(name, row["value"], counts=row["counts"]),
                **weighted,
                "95 % interval": interval_words(row["low"], row["high"]),
                "n": row["n"],
                "limit": limit_words(limits.get(name)),
                "what it is": meaning,
            }
        )
    return rows


def repeats(evaluation: AnswerEvaluation) -> Panel:
    """How far the repeats lie apart: mean, spread and worst of each figure, and unstable cases."""
    answers = evaluation.answers
    if answers.repeats == 1:
        words = "One repeat: how far answers vary was not measured (--repeats N)."
        return Panel(words, tag("p", words, class_="rw-none"))
    rows = [
        {
            "figure": row["metric"],
            **{key: number_words(row[key]) for key in ("mean", "sd", "worst")},
        }
        for row in frame_rows(answers.by_repeat().dropna(subset=["mean"]))
    ]
    spread = table_panel(
        rows, ("figure", "mean", "sd", "worst"), numeric=("mean", "sd", "worst"), empty=""
    )
    frame = answers.frame.set_index("case_id")
    cases = [
        {
            "case_id": case_id,
            "wrong in": f"{frame['n_failed'][case_id]} of {frame['n_repeats'][case_id]} repeats",
            "risk": frame["risk"][case_id],
            "counts as": "failed" if frame["failed_for_comparison"][case_id] else "right",
        }
        for case_id in unstable_cases(evaluation)
    ]
    columns = ("case_id", "wrong in", "risk", "counts as")
    unstable = table_panel(cases, columns, empty="Every case came out the same each time.")
    return stack(
        {
            f"Over {answers.repeats} repeats": spread,
            "Unstable cases (high risk has failed when one repeat has)": unstable,
        }
    )


def slices(evaluation: AnswerEvaluation) -> Panel:
    """The main figures by every tag, expected mode, risk, set and tier that tells cases apart."""
    fields = evaluation.answers.fields()
    if not fields:
        return Panel("No case carries tags.", tag("p", "No case carries tags.", class_="rw-none"))
    return stack({field: _slice(evaluation, field) for field in fields})


def _slice(evaluation: AnswerEvaluation, field: str) -> Panel:
    rows: dict[str, dict[str, Any]] = {}
    for row in frame_rows(evaluation.answers.by(field)):
        if row["metric"] in _SLICED:
            name = "(none)" if row["slice"] is None else str(row["slice"])
            entry = rows.setdefault(name, {field: name, "n": row["n"], "order": row["value"]})
            entry[row["metric"]] = figure_words(row["metric"], row["value"], counts=row["counts"])
            if row["metric"] == _SLICED[0]:
                entry["95 % interval"] = interval_words(row["low"], row["high"])
    ordered = sorted(rows.values(), key=lambda row: (pd.isna(row["order"]), row["order"]))
    columns = (field, "n", _SLICED[0], "95 % interval", *_SLICED[1:])
    return table_panel(ordered, columns, numeric=columns[1:], empty="No case was scored.")


def judges(evaluation: AnswerEvaluation) -> Panel:
    """Who judged, what it may do, and what it says of the answers; else that nobody was asked."""
    judging = evaluation.judging
    if not judging.judges:
        words = "No judge was asked: citation_support, unsupported_rate and accepted are undefined."
        return Panel(words, tag("p", words, class_="rw-none"))
    lines = [judge.words() for judge in judging.judges]
    said = [opinion.acceptance.judged for opinion in judging.opinions.values()]
    if said:
        does = "accepts" if judging.decides else "would accept"
        lines.append(f"It {does} {said.count(True)} of {len(said) - said.count(None)} answers.")
    rejected = [
        {"case_id": case_id, "repeat": repeat, "in its own words": opinion.rationale or None}
        for (case_id, repeat), opinion in judging.opinions.items()
        if opinion.acceptance.judged is False
    ]
    columns = ("case_id", "repeat", "in its own words")
    table = table_panel(rejected, columns, numeric=("repeat",), empty="It rejects none.")
    html = "".join(tag("p", escape(line)) for line in lines)
    if not said:
        return Panel("\n".join(lines), html)
    return Panel("\n".join([*lines, table.text]), html + table.html)


def opinions(evaluation: AnswerEvaluation) -> Panel:
    """What a judge says, and how far the repeats lie apart."""
    return stack({"Judge": judges(evaluation), "Repeats": repeats(evaluation)})


def background(evaluation: AnswerEvaluation) -> Panel:
    """The retrieval's figures, latency and cost, and what the run depends on."""
    retrieval = evaluation.retrieval
    return stack(
        {
            "Retrieval": sections.figures(retrieval),
            "Latency and cost": sections.cost(retrieval),
            "What this run depends on": sections.manifest(retrieval),
        }
    )


def left_out(evaluation: AnswerEvaluation) -> Panel:
    """Cases outside the figures: whose call failed for good, and excluded ones, each with why."""
    frame = evaluation.answers.frame

    def of(status: str, empty: str) -> Panel:
        rows = frame_rows(frame.loc[frame["status"] == status, ["case_id", "reason"]])
        return table_panel(rows, ("case_id", "reason"), empty=empty)

    return stack(
        {
            "Errors": of("error", "No call failed."),
            "Excluded": of("excluded", "No case is excluded."),
        }
    )
