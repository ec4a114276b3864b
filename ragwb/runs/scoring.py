"""The figures of a saved run: ours, and trec_eval's on the same lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from ragwb.errors import UsageError
from ragwb.golden.passages import ResolvedCase
from ragwb.golden.spans import Span
from ragwb.html import plain
from ragwb.measure.cases import score_cases
from ragwb.measure.metric import default_ks
from ragwb.measure.passages import passage_figures
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
    golden = run.golden()
    return score_cases(
        golden,
        run.cases(),
        run.hits(),
        top_k=top_k,
        ks=cutoffs,
        repeats=run.manifest.repeats,
        run_id=run.run_id,
        extra=passage_scores(run, golden, cutoffs),
    )


def passage_scores(
    run: Run, golden: Sequence[ResolvedCase], ks: Sequence[int]
) -> pd.DataFrame | None:
    """passage_recall, passage_precision and passage_iou of each result whose evidence is passages.

    Args:
        run: a sealed run.
        golden: its resolved cases.
        ks: cutoffs; one beyond the run's top K gives nulls.

    Returns:
        A row a (case_id, repeat) with columns such as passage_recall@5, float64 in [0, 1] or null
        where a chunk's place in its document was not observed; None when no case names passages.
    """
    passages = {
        resolved.case.id: [
            Span(span.document_id, span.document_version, span.start, span.end)
            for span in resolved.spans
        ]
        for resolved in golden
        if resolved.spans
    }
    if not passages:
        return None
    places = _places(run)
    rows = [
        _passage_row(
            case_id, repeat, passages[case_id], [places.get(i) for i in chunk_ids], run, ks
        )
        for case_id, repeat, chunk_ids in _result_lists(run)
        if case_id in passages
    ]
    names = [f"passage_{name}@{k}" for k in ks for name in ("recall", "precision", "iou")]
    frame = pd.DataFrame(rows, columns=["case_id", "repeat", *names])
    return frame.astype({"case_id": "str", "repeat": "int32", **dict.fromkeys(names, "float64")})


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
        run_id, compat, sorted_by ("score" or "position"), n_cases, metrics by name, and cases: a
        dict a topic with case_id and each figure, float in [0, 1].

    Raises:
        UsageError: another compat.
        DataError: an id comes twice in a result, which trec_eval refuses.
    """
    if compat not in COMPAT:
        raise UsageError(f"--compat {plain(compat)!r}: give one of {', '.join(COMPAT)}")
    cutoffs = checked_ks(default_ks(run.manifest.top_k) if k is None else k)
    golden = run.golden()
    scored = score(run, cutoffs).frame.query("status == 'scored'")["case_id"].tolist()
    results = run.candidates("results")
    results = results[results["case_id"].isin(scored)]
    by_position = bool(results["score"].isna().any())
    if by_position:
        results = results.assign(score=-results["position"].astype("float64"))
    qrels = _qrels(golden, set(scored))
    parts = [
        trec_figures(qrels, part, cutoffs, level=level) for _, part in results.groupby("repeat")
    ]
    figures = pd.concat(parts).groupby(level=0).mean() if parts else pd.DataFrame()
    return {
        "run_id": run.run_id,
        "compat": compat,
        "sorted_by": "position" if by_position else "score",
        "n_cases": len(figures),
        "metrics": {str(name): float(value) for name, value in figures.mean().items()},
        "cases": [{"case_id": i, **row} for i, row in figures.to_dict("index").items()],
    }


def trec_rows(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The means of `score_trec` as rows of metric, value and n."""
    return [
        {"metric": name, "value": value, "n": result["n_cases"]}
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


def _places(run: Run) -> dict[str, Span]:
    """Where each chunk stands in its document, as far as that is known."""
    known = run.chunks().dropna(subset=["document_id", "start", "end"])
    columns = (
        known[name] for name in ("chunk_id", "document_id", "document_version", "start", "end")
    )
    return {
        chunk_id: Span(
            document, version if isinstance(version, str) else None, int(start), int(end)
        )
        for chunk_id, document, version, start, end in zip(*columns, strict=True)
    }


def _result_lists(run: Run) -> Iterator[tuple[str, int, list[str]]]:
    """Case id, repeat and returned ids of each result that is ok, also when nothing came back."""
    answered = run.cases().query("status == 'ok'")
    grouped = run.candidates("results").groupby(["case_id", "repeat"], sort=False)["chunk_id"]
    lists = {key: ids.tolist() for key, ids in grouped}
    for case_id, repeat in zip(answered["case_id"], answered["repeat"], strict=True):
        yield case_id, repeat, lists.get((case_id, repeat), [])


def _passage_row(
    case_id: str,
    repeat: int,
    passages: Sequence[Span],
    retrieved: Sequence[Span | None],
    run: Run,
    ks: Sequence[int],
) -> dict[str, object]:
    row: dict[str, object] = {"case_id": case_id, "repeat": repeat}
    for k in ks:
        if k > run.manifest.top_k:
            continue
        figures = passage_figures(passages, retrieved, k=k)
        row[f"passage_recall@{k}"] = figures.recall
        row[f"passage_precision@{k}"] = figures.precision
        row[f"passage_iou@{k}"] = figures.iou
    return row
