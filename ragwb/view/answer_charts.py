"""Charts of answers: functions that take their scores and return an Altair chart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragwb.view.marks import grouped_intervals
from ragwb.view.panel import frame_rows
from ragwb.view.theme import BLUE, RED

if TYPE_CHECKING:
    import altair as alt

    from ragwb.measure.answer_scores import AnswerScores

_GROUPS = {
    "answers": ("correct_rate", "mode_accuracy", "hard_failure_rate", "accepted"),
    "refusing and asking back": (
        *("refusal_precision", "refusal_recall", "over_refusal_rate", "refusal_reason_accuracy"),
        *("clarify_precision", "clarify_recall"),
    ),
    "citations and claims": (
        *("citation_validity", "citation_precision", "citation_recall", "citation_support"),
        *("claim_coverage", "unsupported_rate"),
    ),
    "evidence": ("evidence_conflict", "chain_retrieved", "chain_in_context", "chain_cited"),
}
_WIDTH = 480


def answer_figures(scores: AnswerScores) -> alt.FacetChart:
    """Every rate of the answers as a dot with its 95 % interval and n; what should be low apart.

    A figure that is undefined is not drawn.

    Args:
        scores: the scores of a run's answers.
    """
    import altair as alt

    rows = _rows(scores)
    kinds = ["high is good", "low is good"]
    drawn = {str(row["group"]) for row in rows}
    return grouped_intervals(
        rows,
        [name for name in _GROUPS if name in drawn],
        alt.Color("kind:N", title=None, scale=alt.Scale(domain=kinds, range=[BLUE, RED])),
        alt.Shape("kind:N", title=None, scale=alt.Scale(domain=kinds, range=["circle", "diamond"])),
        title=f"{len(rows)} rates of the answers, {scores.n_scored} cases",
        axis="share of cases, mean and 95 % interval",
        width=_WIDTH,
    )


def _rows(scores: AnswerScores) -> list[dict[str, object]]:
    from ragwb.measure.answer_scores import LOWER_IS_BETTER

    summary = {row["metric"]: row for row in frame_rows(scores.summary())}
    rows: list[dict[str, object]] = []
    for group, names in _GROUPS.items():
        for order, name in enumerate(names):
            row = summary[name]
            if row["value"] is None:
                continue
            rows.append(
                {
                    "group": group,
                    "figure": name,
                    "name": f"{name} (n={row['n']})",
                    "order": order,
                    "kind": "low is good" if name in LOWER_IS_BETTER else "high is good",
                    **{key: row[key] for key in ("value", "low", "high")},
                }
            )
    return rows
