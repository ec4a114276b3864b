"""From the hits of a run to its scores: which cases count, and their values over the repeats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ragwb.errors import MetricError
from ragwb.golden.passages import RETIRED, ResolvedCase
from ragwb.measure.asked import cases_in
from ragwb.measure.facts import case_facts, tag_columns
from ragwb.measure.hits import Hits
from ragwb.measure.metric import default_ks
from ragwb.measure.scores import METRICS, checked_ks, score_hits
from ragwb.measure.summary import Scores

Floats = npt.NDArray[np.float64]
Int32s = npt.NDArray[np.int32]

# What still means something for a case whose labels are at fault or absent.
_WITHOUT_LABELS = ("duplicate_rate", "forbidden")


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
    """The scores of results that are no run: `score_facts` on the facts of these cases.

    Args:
        cases: all golden cases, resolved, in their order.
        results: a row a (case_id, repeat): status "ok" or "error", error.
        hits: of the results that are ok.
        top_k: what the service was asked for.
        ks: cutoffs, as in `score_facts`.
        repeats: passes fixed before the run.
        run_id: the name of the results.
        extra: further figures a (case_id, repeat), as in `score_facts`.

    Raises:
        MetricError: a K is outside 1..100, or hits and results do not belong together.
    """
    facts = case_facts(cases, results)
    return score_facts(facts, hits, top_k=top_k, ks=ks, repeats=repeats, run_id=run_id, extra=extra)


def score_facts(
    facts: pa.Table,
    hits: Hits,
    *,
    top_k: int,
    ks: int | Iterable[int] | None = None,
    repeats: int = 1,
    run_id: str | None = None,
    extra: pd.DataFrame | None = None,
) -> Scores:
    """The scores of a run, as arithmetic on its small tables.

    A case is an error when any of its calls failed or is missing, for a repeat is never dropped; it
    is excluded when it is retired, has no evidence groups, its label drifted, or its tier is not
    blocking; else it is scored, also when nothing came back.

    Args:
        facts: of all golden cases, see `facts.case_facts`.
        hits: of the results that are ok.
        top_k: what the service was asked for.
        ks: cutoffs, 1 to 100; by default 1, 3, 5, 10 up to top_k, and top_k. One beyond top_k
            gives nulls, for nothing beyond it was observed.
        repeats: passes fixed before the run.
        run_id: the run's name.
        extra: further figures a (case_id, repeat), columns such as passage_recall@5.

    Raises:
        MetricError: a K is outside 1..100, or hits and facts do not belong together.
    """
    cutoffs = checked_ks(default_ks(top_k) if ks is None else ks)
    by_result = _by_result(hits, cutoffs, top_k, extra)
    place = _places(facts, by_result)
    cases = _cases(facts, repeats)
    figures = _meaningful(_over_repeats(by_result, place, len(facts)), cases)
    columns = {**cases, **figures, **_failures(figures, cases, cutoffs)}
    return Scores(pd.DataFrame(columns, copy=False), by_result, cutoffs, top_k, repeats, run_id)


def _by_result(
    hits: Hits, ks: Sequence[int], top_k: int, extra: pd.DataFrame | None
) -> pd.DataFrame:
    observed = [k for k in ks if k <= top_k]
    frame = score_hits(hits, observed or [top_k])
    columns = [f"{name}@{k}" for name in METRICS for k in ks]
    # A K beyond top_k gets columns of nulls.
    frame = frame.reindex(columns=["case_id", "repeat", *columns])
    if extra is None:
        return frame
    pair = ["case_id", "repeat"]
    if frame[pair].equals(extra[pair]):
        # The common case, and far cheaper than to join.
        return pd.concat([frame, extra.drop(columns=pair)], axis=1)
    return frame.merge(extra, on=pair, how="left")


def _places(facts: pa.Table, by_result: pd.DataFrame) -> Int32s:
    """The case of each result, -1 where the facts do not name it."""
    named = pa.array(by_result["case_id"], pa.string())
    place = cases_in(facts.column("case_id").combine_chunks(), named)
    n_answered = facts.column("n_answered").to_numpy()
    if not np.array_equal(np.bincount(place[place >= 0], minlength=len(facts)), n_answered):
        raise MetricError(
            f"{len(place)} results have hits, {n_answered.sum()} are ok: "
            "the hits belong to another run"
        )
    return place


def _cases(facts: pa.Table, repeats: int) -> dict[str, Any]:
    """The columns that hold at every K: who the cases are, and what became of them."""
    status, reason = _outcomes(facts, repeats)
    named = {name: facts.column(name) for name in ("tier", "set", "risk", "weight")}
    tags = {name: facts.column(name) for name in tag_columns(facts.column_names)}
    columns = {"case_id": facts.column("case_id"), "status": status, "reason": reason}
    shown = {name: column.to_pandas() for name, column in {**columns, **named, **tags}.items()}
    return {**shown, "n_repeats": facts.column("n_answered").to_numpy().astype(np.int64)}


def _outcomes(facts: pa.Table, repeats: int) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Status and reason of each case: the first of these conditions that holds decides."""
    tier, n_answered, error = (facts.column(name) for name in ("tier", "n_answered", "error"))
    failed = pc.is_valid(error)
    conditions = pc.make_struct(
        pc.equal(tier, "retired"),
        pc.and_(pc.equal(n_answered, 0), pc.invert(failed)),
        failed,
        pc.less(n_answered, repeats),
        pc.is_valid(facts.column("excluded")),
        pc.not_equal(tier, "blocking"),
    )
    errors, excluded = ["error"] * 3, ["excluded"] * 2
    status = pc.case_when(conditions, "excluded", *errors, *excluded, "scored")
    few = pc.binary_join_element_wise(
        pc.cast(n_answered, pa.string()), f" of {repeats} repeats are there", ""
    )
    other_tier = pc.binary_join_element_wise("tier ", tier, "")
    reason = pc.case_when(
        conditions,
        RETIRED,
        "no result in the run",
        error,
        few,
        facts.column("excluded"),
        other_tier,
    )
    return status, reason


def _over_repeats(by_result: pd.DataFrame, place: Int32s, n_cases: int) -> dict[str, Floats]:
    """Mean of every figure over the repeats of a case; of `failed`, how many repeats failed."""
    names = [str(name) for name in by_result.columns if "@" in str(name)]
    columns = {name: by_result[name].to_numpy(np.float64, na_value=np.nan) for name in names}
    failed = [name for name in names if name.startswith("failed@")]
    frame = pd.DataFrame(columns, copy=False).set_axis(place)
    frame = frame if place.min(initial=0) >= 0 else frame[place >= 0]
    if not frame.index.is_unique:
        grouped = frame.groupby(level=0)
        frame = grouped.mean().assign(**grouped[failed].sum(min_count=1))
    frame = frame.reindex(range(n_cases))
    means = {name: frame[name].to_numpy() for name in names if name not in failed}
    return {**means, **{f"n_{name}": frame[name].to_numpy() for name in failed}}


def _meaningful(figures: Mapping[str, Floats], cases: Mapping[str, Any]) -> dict[str, Floats]:
    """The figures without those of errors, and without those that need a label at fault."""
    is_error = (cases["status"] == "error").to_numpy()
    is_tier = cases["reason"].str.startswith("tier ", na=False).to_numpy()
    has_no_label = is_error | ((cases["status"] == "excluded").to_numpy() & ~is_tier)
    without = {
        name: is_error if name.partition("@")[0] in _WITHOUT_LABELS else has_no_label
        for name in figures
    }
    return {name: np.where(without[name], np.nan, values) for name, values in figures.items()}


def _failures(
    figures: Mapping[str, Floats], cases: Mapping[str, Any], ks: Sequence[int]
) -> dict[str, Any]:
    """How many repeats failed, whether any did, and whether that counts in a comparison."""
    is_high = (cases["risk"] == "high").to_numpy()
    columns: dict[str, Any] = {}
    for k in ks:
        counts = figures[f"n_failed@{k}"]
        unknown = np.isnan(counts)
        n_failed = np.where(unknown, 0, counts).astype(np.int64)
        failed = n_failed > 0
        mostly = (2 * n_failed > cases["n_repeats"]) | (is_high & failed)
        columns[f"n_failed@{k}"] = pd.arrays.IntegerArray(n_failed, unknown)
        columns[f"failed@{k}"] = pd.arrays.BooleanArray(failed, unknown)
        columns[f"failed_for_comparison@{k}"] = pd.arrays.BooleanArray(mostly, unknown.copy())
    return columns
