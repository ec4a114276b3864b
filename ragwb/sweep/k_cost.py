"""What the first K results of a run cost: their tokens, and the latency of calls that asked for K.

Tokens follow from one run, for the first K results are there. A latency does not: a call for 20
results tells nothing of one for 5, so it stands only where calls for K were made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragwb.decide.chance import Observed, percentile_change
from ragwb.measure.cost import PERCENTILES, percentile
from ragwb.measure.statistics import Interval, bootstrap_means
from ragwb.runs.store import Run
from ragwb.runs.traces import Traces

Floats = npt.NDArray[np.float64]
Row = dict[str, Any]

NOT_MEASURED, NOT_OBSERVED = "not measured", "not observed"
FROM_RUN, MEASURED = "run", "measured"
TOKENS, TOKENS_P95 = "context_tokens", "context_tokens_p95"
_P95 = 0.95


@dataclass(frozen=True, eq=False)
class FirstTokens:
    """Tokens of the first K results.

    Attributes:
        by_case: a row a case, index case_id, a column a K: mean over its repeats, NaN where the
            text of one of the first K results is not in the run.
        n_over: by K the number of cases whose first K results are more than the service's context
            budget; empty when it names none.
        budget: that budget.
        longest: the greatest number of results of a call.
    """

    by_case: pd.DataFrame
    n_over: Mapping[int, int]
    budget: int | None
    longest: int


def first_tokens(traces: Traces, ks: Sequence[int]) -> FirstTokens:
    """Tokens of the first K results of every answered call, title and text as a context has them.

    Args:
        traces: of a saved run.
        ks: cutoffs; one beyond what was asked for has no entry.
    """
    top_k = traces.run.manifest.top_k
    observed = [k for k in ks if k <= top_k]
    rows, longest = {}, 0
    for pair in traces:
        ids = traces.ids(pair, "results")[:top_k]
        longest = max(longest, len(ids))
        counts = [traces.n_tokens(chunk_id) for chunk_id in ids]
        known = [np.nan if count is None else count for count in counts]
        sums = np.concatenate([[0.0], np.cumsum(known)])
        rows[pair] = [sums[min(k, len(ids))] for k in observed]
    case_ids = pd.Index([case_id for case_id, _ in rows], name="case_id", dtype="object")
    values = np.array(list(rows.values()), dtype=np.float64).reshape(len(rows), len(observed))
    frame = pd.DataFrame(values, index=case_ids, columns=observed)
    # A repeat whose texts are not known leaves the case unknown, and not the mean of the rest.
    grouped = frame.groupby(level=0, sort=False)
    by_case = grouped.mean().where(grouped.count().eq(grouped.size(), axis=0))
    budget = traces.run.manifest.context_budget_tokens
    n_over = {} if budget is None else {k: int((by_case[k] > budget).sum()) for k in observed}
    return FirstTokens(by_case, n_over, budget, longest)


def token_rows(tokens: FirstTokens, scored: pd.Index[Any], ks: Sequence[int]) -> Iterator[Row]:
    """A row a K of the mean tokens of the scored cases, and one of the 95th percentile."""
    for k in ks:
        if k not in tokens.by_case:
            yield from (empty_row(k, name, NOT_OBSERVED) for name in (TOKENS, TOKENS_P95))
            continue
        values = tokens.by_case[k].reindex(scored).to_numpy(np.float64)
        known = values[~np.isnan(values)]
        n_unknown = len(values) - len(known)
        if not len(known):
            yield from (
                empty_row(k, name, NOT_OBSERVED, n_unknown) for name in (TOKENS, TOKENS_P95)
            )
            continue
        mean = (float(known.mean()), bootstrap_means(known)[0])
        own = Observed(np.arange(len(known)), known)
        high = (percentile(known, _P95), percentile_interval(own, len(known), _P95))
        for name, (value, interval) in ((TOKENS, mean), (TOKENS_P95, high)):
            yield value_row(k, name, value, interval, FROM_RUN, len(known), n_unknown)


def latency_rows(runs: Mapping[int, Run], ks: Sequence[int]) -> Iterator[Row]:
    """A row a K and percentile of the latency at the client, over every answered call.

    Args:
        runs: by K the run that asked for K.
        ks: cutoffs; one without a run is not measured.
    """
    for k in ks:
        observed = latencies_of(runs[k]) if k in runs else None
        for name, q in PERCENTILES.items():
            if observed is None or not len(observed.values):
                yield empty_row(k, name, NOT_MEASURED)
                continue
            n = int(observed.case.max()) + 1
            value = percentile(observed.values, q)
            yield value_row(k, name, value, percentile_interval(observed, n, q), MEASURED, n)


def latencies_of(run: Run) -> Observed:
    """The latencies of a run's answered calls, by case."""
    results = run.cases()
    answered = results[(results["status"] == "ok") & results["latency_ms"].notna()]
    case, _ = pd.factorize(answered["case_id"])
    return Observed(case.astype(np.int64), answered["latency_ms"].to_numpy(np.float64))


def percentile_interval(observed: Observed, n: int, q: float) -> Interval | None:
    """95 % bootstrap interval of a nearest-rank percentile, cases resampled; None with too few.

    Args:
        observed: values of the cases.
        n: number of cases.
        q: a share from 0 to 1.
    """
    # The change from a percentile that is always 0 is the percentile itself.
    nothing = Observed(observed.case, np.zeros(len(observed.values)))
    return percentile_change(nothing, observed, n, q)


def value_row(
    k: int,
    metric: str,
    value: float | None,
    interval: Interval | None,
    source: str,
    n: int,
    n_excluded: int = 0,
) -> Row:
    """A row of the frame of a sweep."""
    return {
        "k": k,
        "metric": metric,
        "value": np.nan if value is None else value,
        "low": interval.low if interval else np.nan,
        "high": interval.high if interval else np.nan,
        "n": n,
        "n_excluded": n_excluded,
        "n_errors": 0,
        "counts": None,
        "method": interval.method if interval else None,
        "source": source,
    }


def empty_row(k: int, metric: str, source: str, n_excluded: int = 0) -> Row:
    """A row without a value: not measured, or not observed."""
    return value_row(k, metric, None, None, source, 0, n_excluded)
