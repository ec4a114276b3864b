"""From the hits of a run to its scores: which cases count, and their values over the repeats."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ragwb.errors import MetricError
from ragwb.golden.passages import NO_GROUPS, ResolvedCase
from ragwb.measure.hits import Hits
from ragwb.measure.metric import default_ks
from ragwb.measure.scores import METRICS, checked_ks, score_hits
from ragwb.measure.summary import Scores

# What still means something for a case whose labels are at fault or absent.
_WITHOUT_LABELS = ("duplicate_rate", "forbidden")


@dataclass(frozen=True, slots=True)
class _Answers:
    """What a case's calls came to: how many answered, and the first error in words."""

    n_ok: int
    error: str | None


def score_cases(
    cases: Sequence[ResolvedCase],
    results: pd.DataFrame,
    hits: Hits,
    *,
    top_k: int,
    ks: int | Iterable[int] | None = None,
    repeats: int = 1,
    run_id: str | None = None,
    extra: pd.DataFrame | None = None,
) -> Scores:
    """The scores of a run.

    A case is an error when any of its calls failed or is missing, for a repeat is never dropped; it
    is excluded when it is retired, has no evidence groups, its label drifted, or its tier is not
    blocking; else it is scored, also when nothing came back.

    Args:
        cases: all golden cases, resolved, in their order.
        results: a row a (case_id, repeat): status "ok" or "error", error.
        hits: of the results that are ok.
        top_k: what the service was asked for.
        ks: cutoffs, 1 to 100; by default 1, 3, 5, 10 up to top_k, and top_k. One beyond top_k
            gives nulls, for nothing beyond it was observed.
        repeats: passes fixed before the run.
        run_id: the run's name.
        extra: further figures a (case_id, repeat), columns such as passage_recall@5.

    Raises:
        MetricError: a K is outside 1..100, or hits and results do not belong together.
    """
    cutoffs = checked_ks(default_ks(top_k) if ks is None else ks)
    by_result = _by_result(hits, cutoffs, top_k, extra)
    answers = _answers(results)
    if int((results["status"] == "ok").sum()) != len(by_result):
        raise MetricError(
            f"{len(by_result)} results have hits, {int((results['status'] == 'ok').sum())} are ok: "
            "the hits belong to another run"
        )
    rows = [_case_row(case, answers.get(case.case.id), repeats) for case in cases]
    frame = pd.DataFrame(rows).merge(_over_repeats(by_result), on="case_id", how="left")
    frame = _with_failures(_without_meaningless(frame), cutoffs)
    return Scores(frame, by_result, cutoffs, top_k, repeats, run_id)


def _by_result(
    hits: Hits, ks: Sequence[int], top_k: int, extra: pd.DataFrame | None
) -> pd.DataFrame:
    observed = [k for k in ks if k <= top_k]
    frame = score_hits(hits, observed or [top_k])
    columns = [f"{name}@{k}" for name in METRICS for k in ks]
    # A K beyond top_k gets columns of nulls.
    frame = frame.reindex(columns=["case_id", "repeat", *columns])
    return frame if extra is None else frame.merge(extra, on=["case_id", "repeat"], how="left")


def _answers(results: pd.DataFrame) -> dict[str, _Answers]:
    answers: dict[str, _Answers] = {}
    columns = (results[name].tolist() for name in ("case_id", "repeat", "status", "error"))
    for case_id, repeat, status, error in zip(*columns, strict=True):
        so_far = answers.get(case_id, _Answers(0, None))
        if status == "ok":
            answers[case_id] = _Answers(so_far.n_ok + 1, so_far.error)
        else:
            words = f"repeat {repeat}: {error}" if repeat > 1 else str(error)
            answers[case_id] = _Answers(so_far.n_ok, so_far.error or words)
    return answers


def _case_row(resolved: ResolvedCase, answers: _Answers | None, repeats: int) -> dict[str, object]:
    case = resolved.case
    status, reason = _outcome(resolved, answers, repeats)
    return {
        "case_id": case.id,
        "status": status,
        "reason": reason,
        "tier": case.tier,
        "set": case.set,
        "risk": case.risk,
        "weight": case.weight,
        **{f"tags.{name}": value for name, value in case.tags.items()},
        "n_repeats": answers.n_ok if answers else 0,
    }


def _outcome(
    resolved: ResolvedCase, answers: _Answers | None, repeats: int
) -> tuple[str, str | None]:
    tier = resolved.case.tier
    if tier == "retired":
        return "excluded", "tier retired"
    if answers is None:
        return "error", "no result in the run"
    if answers.error is not None:
        return "error", answers.error
    if answers.n_ok < repeats:
        return "error", f"{answers.n_ok} of {repeats} repeats are there"
    if resolved.excluded is not None or not resolved.groups:
        return "excluded", resolved.excluded or NO_GROUPS
    return ("scored", None) if tier == "blocking" else ("excluded", f"tier {tier}")


def _over_repeats(by_result: pd.DataFrame) -> pd.DataFrame:
    """Mean of every figure over the repeats of a case; of `failed`, how many repeats failed."""
    figures = by_result.drop(columns="repeat")
    failed = [name for name in map(str, figures.columns) if name.startswith("failed@")]
    numbers = figures.astype(dict.fromkeys(figures.columns.drop("case_id"), "Float64"))
    grouped = numbers.groupby("case_id", sort=False)
    means = grouped.mean().drop(columns=failed).astype("float64")
    counts = grouped[failed].sum(min_count=1).astype("Int64")
    return means.join(counts.add_prefix("n_")).reset_index()


def _without_meaningless(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame without the figures of errors, and without those that need a label at fault."""
    figures = [name for name in map(str, frame.columns) if "@" in name]
    by_label = [name for name in figures if name.partition("@")[0] not in _WITHOUT_LABELS]
    tier_only = frame["reason"].fillna("").str.startswith("tier ")
    frame.loc[frame["status"] == "error", figures] = np.nan
    frame.loc[(frame["status"] == "excluded") & ~tier_only, by_label] = np.nan
    return frame


def _with_failures(frame: pd.DataFrame, ks: Sequence[int]) -> pd.DataFrame:
    columns: dict[str, object] = {}
    is_high = frame["risk"] == "high"
    for k in ks:
        n_failed = frame[f"n_failed@{k}"]
        columns[f"failed@{k}"] = n_failed > 0
        mostly = (2 * n_failed > frame["n_repeats"]) | (is_high & (n_failed > 0))
        columns[f"failed_for_comparison@{k}"] = mostly.astype("boolean")
    return pd.concat([frame, pd.DataFrame(columns)], axis=1)
