"""The context that a list of results makes: the start of it that fits the token budget."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from ragwb.runs.traces import Traces
from ragwb.triage.whatif.lists import NONE, Bools, Floats, Ints, same_width
from ragwb.triage.whatif.saved import Seen

# Positions whose tokens are counted at once: most lists end at the budget, long before their end.
_BLOCK = 8
# Of a token: below what a ratio of token counts can be off by rounding.
_CLOSE = 1e-6
# Of a run all cases are looked at, then one after the other: they share what it counts like.
_COUNTED: WeakKeyDictionary[Traces, Counting] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Counting:
    """How a service counts the tokens of its contexts.

    Attributes:
        ratio: its tokens over the workbench's; 1.0 when it counts as the workbench does.
        is_exact: whether so counted every context of the run has the tokens that it said.
        most: tokens of the greatest context of the run, which fits whatever the budget is.
    """

    ratio: float
    is_exact: bool
    most: float

    @property
    def note(self) -> str:
        """That token counts are estimates, "" when they are not."""
        return "" if self.is_exact else "token counts are estimates"


@dataclass(frozen=True, slots=True)
class Contexts:
    """Contexts of many results.

    Attributes:
        n: (rows,) how many of the results are in it, NONE where that is unknown.
        tokens: (rows,) its tokens as the service counts, NaN where unknown.
    """

    n: Ints
    tokens: Floats


def observed_contexts(seen: Seen) -> Contexts:
    """The contexts as observed."""
    n = (seen.codes["context"] != NONE).sum(axis=1)
    said = (seen.traces.result(pair)["context_tokens"] for pair in seen.pairs)
    tokens = [np.nan if count is None else count for count in said]
    return Contexts(np.where(seen.has["context"], n, NONE), np.array(tokens, dtype=np.float64))


def counting_of(traces: Traces) -> Counting:
    """How the service of a run counts, by all contexts that it made."""
    found = _COUNTED.get(traces)
    if found is None:
        found = _COUNTED[traces] = _counting(traces)
    return found


def _counting(traces: Traces) -> Counting:
    said, ours = [], []
    for pair in traces:
        tokens = traces.result(pair)["context_tokens"]
        own = [traces.n_tokens(chunk_id) for chunk_id in traces.ids(pair, "context")]
        if tokens is not None and own and None not in own:
            said.append(tokens)
            ours.append(sum(count for count in own if count is not None))
    ratio = 1.0 if said == ours else sum(said) / sum(ours)
    # Of a service that told no tokens none are told here either.
    is_exact = not said or np.allclose(said, ratio * np.array(ours), atol=_CLOSE)
    return Counting(ratio, is_exact, float(max(said, default=0)))


def follows_budget(seen: Seen, counting: Counting) -> Bools:
    """(rows,) whether the observed context is the start of the results that fits the budget."""
    observed = observed_contexts(seen)
    context, results = same_width(seen.codes["context"], seen.codes["results"])
    is_start = ((context == NONE) | (context == results)).all(axis=1)
    fitting = fit(seen, counting, results, seen.said.context_budget)
    return np.array(is_start & (fitting.n == observed.n))


def fit(seen: Seen, counting: Counting, codes: Ints, budget: float | None) -> Contexts:
    """The longest start of each list whose tokens fit the budget.

    Args:
        seen: where the texts are.
        counting: how the service's tokens follow from them.
        codes: (rows, positions) lists of chunks.
        budget: in the service's tokens; None when it names none, then a list either fits as a whole
            into what was seen to fit, or it is unknown whether it does.
    """
    n = np.zeros(len(codes), dtype=np.int64)
    tokens = np.zeros(len(codes))
    rows = np.arange(len(codes))
    limit = np.inf if budget is None else budget
    for start in range(0, codes.shape[1], _BLOCK):
        block = codes[rows, start : start + _BLOCK]
        each = tokens_of(seen, counting, block)
        total = tokens[rows, None] + np.cumsum(each, axis=1)
        fits = (total <= limit + _CLOSE) & (block != NONE)
        n_fit = np.cumprod(fits, axis=1).sum(axis=1)
        n[rows] += n_fit
        tokens[rows] = np.where(n_fit > 0, _at(total, n_fit - 1), tokens[rows])
        is_open = n_fit == block.shape[1]
        is_unknown = ~is_open & np.isnan(_at(each, n_fit))
        n[rows[is_unknown]], tokens[rows[is_unknown]] = NONE, np.nan
        rows = rows[is_open]
    if budget is None:
        n[tokens > counting.most] = NONE
    return Contexts(n, np.where(n == NONE, np.nan, tokens))


def tokens_of(seen: Seen, counting: Counting, codes: Ints) -> Floats:
    """Tokens of each chunk as the service counts, 0 for NONE, NaN for a chunk without text."""
    return counting.ratio * _tokens(seen, codes)


def tokens_through(seen: Seen, counting: Counting, rank: int) -> float:
    """Tokens of the first result's list down to a rank, as the service counts; NaN when unknown."""
    return float(tokens_of(seen, counting, seen.codes["results"][:1, :rank]).sum())


def _at(values: Floats, columns: Ints) -> Floats:
    """One value a row; of a column outside the nearest one."""
    clipped = np.clip(columns, 0, values.shape[1] - 1)
    return np.take_along_axis(values, clipped[:, None], axis=1)[:, 0]


def _tokens(seen: Seen, codes: Ints) -> Floats:
    """The workbench's tokens of each chunk, 0 for NONE, NaN for a chunk without text."""
    wanted, inverse = np.unique(codes, return_inverse=True)
    counts = (
        0 if code == NONE else seen.traces.n_tokens(seen.names[code]) for code in wanted.tolist()
    )
    known = np.array([np.nan if count is None else count for count in counts], dtype=np.float64)
    return known[inverse.reshape(codes.shape)] if codes.size else np.zeros(codes.shape)
