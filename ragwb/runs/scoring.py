"""The figures of a saved run: ours, and trec_eval's on the same lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
import pyarrow.compute as pc

from ragwb.errors import UsageError
from ragwb.golden.passages import ResolvedCase
from ragwb.html import plain
from ragwb.measure.cases import score_facts
from ragwb.measure.coverage import FIGURES, coverage_figures
from ragwb.measure.metric import default_ks
from ragwb.measure.scores import checked_ks
from ragwb.measure.summary import Scores
from ragwb.measure.trec import trec_figures
from ragwb.runs.id_space import check_id_space
from ragwb.runs.store import Run

COMPAT = ("trec",)


def score(run: Run, k: int | Iterable[int] | None = None) -> Scores:
    """The retrieval scores of a run at any number of cutoffs, in one pass over its hits.

    Args:
        run: a sealed run.
        k: cutoffs, 1 to 100; by default 1, 3, 5 and 10 up to the run's top K, and it. One beyond
            top K gives nulls, since nothing beyond it was observed.

    Raises:
        MetricError: a K is outside 1..100.
        GoldenError: not one evidence id is known to the run, which is another id space and no 0.
    """
    check_id_space(run)
    top_k = run.manifest.top_k
    cutoffs = checked_ks(default_ks(top_k) if k is None else k)
    return score_facts(
        run.facts(),
        run.hits(),
        top_k=top_k,
        ks=cutoffs,
        repeats=run.manifest.repeats,
        run_id=run.run_id,
        extra=passage_scores(run, cutoffs),
    )


def passage_scores(run: Run, ks: Sequence[int]) -> pd.DataFrame | None:
    """passage_recall, passage_precision and passage_iou of each result, a look-up at any K.

    Args:
        run: a sealed run.
        ks: cutoffs; one beyond the run's top K gives nulls.

    Returns:
        A row a (case_id, repeat) that answered, with columns such as passage_recall@5, float64 in
        [0, 1] or null where its evidence is no passage or a chunk's place in its document was not
        observed; None when no case names passages.
    """
    if not pc.any(run.facts()["has_passages"]).as_py():
        return None
    figures = coverage_figures(run.coverage(), [k for k in ks if k <= run.manifest.top_k])
    names = [f"{name}@{k}" for k in ks for name in FIGURES]
    return figures.reindex(columns=["case_id", "repeat", *names])


def score_trec(
    run: Run, k: int | Iterable[int] | None = None, *, compat: str = "trec", level: int = 1
) -> dict[str, Any]:
    """trec_eval's figures on a run's results, to reconcile them with ours.

    Every chunk of an evidence group is a relevant document; a topic with several repeats gets their
    mean. Cases are those of our headline. trec_eval sorts again by score; where the service gave no
    scores for all results, minus the position stands in, which keeps the service's order.

    Args:
        run: a sealed run.
        k: cutoffs, 1 to 100; by default as in `score`.
        compat: "trec", the only one.
        level: trec_eval's -l.

    Returns:
        run_id, compat, level, sorted_by ("score" or "position"); n_cases = n_scored + n_excluded +
        n_errors, where trec_eval also excludes a case for which nothing came back; metrics by name;
        and cases: a dict a topic with case_id and each figure, float in [0, 1].

    Raises:
        UsageError: another compat.
        DataError: an id comes twice in a result, which trec_eval refuses.
    """
    if compat not in COMPAT:
        raise UsageError(f"--compat {plain(compat, width=60)!r}: give one of {', '.join(COMPAT)}")
    cutoffs = checked_ks(default_ks(run.manifest.top_k) if k is None else k)
    ours = score(run, cutoffs)
    scored = ours.frame.query("status == 'scored'")["case_id"].tolist()
    results = run.candidates("results")
    results = results[results["case_id"].isin(scored)]
    by_position = bool(results["score"].isna().any())
    if by_position:
        results = results.assign(score=-results["position"].astype("float64"))
    qrels = _qrels(run.golden(), set(scored))
    parts = [
        trec_figures(qrels, part, cutoffs, level=level) for _, part in results.groupby("repeat")
    ]
    figures = pd.concat(parts).groupby(level=0).mean() if parts else pd.DataFrame()
    return {
        "run_id": run.run_id,
        "compat": compat,
        "level": level,
        "sorted_by": "position" if by_position else "score",
        "n_cases": ours.n_cases,
        "n_scored": len(figures),
        "n_excluded": ours.n_cases - ours.n_errors - len(figures),
        "n_errors": ours.n_errors,
        "metrics": {str(name): float(value) for name, value in figures.mean().items()},
        "cases": [{"case_id": i, **row} for i, row in figures.to_dict("index").items()],
    }


def trec_rows(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The means of `score_trec` as rows of metric, value and n."""
    return [
        {"metric": name, "value": value, "n": result["n_scored"]}
        for name, value in result["metrics"].items()
    ]


def _qrels(golden: Sequence[ResolvedCase], case_ids: set[str]) -> pd.DataFrame:
    labelled = [
        (resolved.case.id, chunk_id)
        for resolved in golden
        if resolved.case.id in case_ids
        for chunk_id in dict.fromkeys(i for group in resolved.groups for i in group.chunk_ids)
    ]
    return pd.DataFrame(labelled, columns=["case_id", "chunk_id"]).assign(grade=1)
