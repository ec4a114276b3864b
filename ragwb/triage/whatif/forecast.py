"""What other settings would have brought, for many results at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ragwb.runs.traces import Pair, Traces
from ragwb.triage.whatif.changes import Change
from ragwb.triage.whatif.context import (
    Contexts,
    Counting,
    counting_of,
    fit,
    follows_budget,
    observed_contexts,
)
from ragwb.triage.whatif.duplicates import deduplicated
from ragwb.triage.whatif.guess import Guess, Room, guess
from ragwb.triage.whatif.labels import Labels, labels_of
from ragwb.triage.whatif.lists import NONE, Bools, Ints, gather, same_width
from ragwb.triage.whatif.orders import final_order, first_why, reasons
from ragwb.triage.whatif.saved import Saved, Whys, saved_lists

NO_TEXT = "the texts of candidates are not known, so that duplicates cannot be told"
NOTHING_BEYOND = "what comes after the observed results is not known"
NO_CONTEXT = "what of the results would fit into the context is not known"
UNSURE = "it depends on chunks that the trace does not name"
_EXPLAINED = "by what /explain ranks without a cut of the candidates"
_ADDING = ("candidate_k", "threshold", "waive")
_EVERYTHING = 10**9


@dataclass(frozen=True, slots=True)
class Basis:
    """What the forecasts of a run start from; made once.

    Attributes:
        saved: the lists.
        labels: what the cases require and forbid.
        counting: how the service counts tokens.
        follows_budget: (rows,) whether the context follows from the results and the budget.
        observed: the contexts as observed.
    """

    saved: Saved
    labels: Labels
    counting: Counting
    follows_budget: Bools
    observed: Contexts


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a change would have brought; (rows, …) arrays, a row a result.

    Attributes:
        k: the cut at which it is judged.
        codes: (rows, positions) results as the service would cut them, NONE beyond the end.
        contexts: what of them is in the context.
        failed: whether the result fails; means nothing where `why` says something.
        why: why nothing can be said, else "".
        is_exact: whether the list is the service's own; else only `failed` is told.
        is_explained: whether it rests on ranks of `/explain`, which know no cut of the candidates.
    """

    k: int
    codes: Ints
    contexts: Contexts
    failed: Bools
    why: Whys
    is_exact: Bools
    is_explained: Bools

    @property
    def note(self) -> str:
        """What the first row rests on besides the trace, "" when on nothing."""
        return _EXPLAINED if self.is_explained[0] else ""


def basis_of(traces: Traces, pairs: Sequence[Pair]) -> Basis:
    """What the forecasts of these results start from."""
    saved, counting = saved_lists(traces, pairs), counting_of(traces)
    return Basis(
        saved=saved,
        labels=labels_of(traces, pairs, saved.seen.code_of),
        counting=counting,
        follows_budget=follows_budget(saved.seen, counting),
        observed=observed_contexts(saved.seen),
    )


def forecast(basis: Basis, change: Change, k: int) -> Forecast:
    """What a change would have brought, judged at K, or at the K that it changes to."""
    if change.setting in _ADDING:
        return _judged(basis, change, k, guess(basis.saved, basis.labels, _room(basis), change, k))
    saved = basis.saved
    order, is_whole, why = final_order(saved, change)
    top_k = saved.seen.said.top_k
    if change.setting == "k" and isinstance(change.value, int):
        k = top_k = change.value
    kind = str(change.value) if change.setting == "deduplicate" else saved.seen.said.deduplicate
    seen = saved.seen
    distinct, certain = deduplicated(seen.traces, seen.names, saved.codes, order, kind, top_k)
    is_short = ~is_whole & (distinct.n < top_k)
    why = first_why(
        why, reasons(~certain, NO_TEXT), reasons(is_short & (distinct.n < k), NOTHING_BEYOND)
    )
    codes = np.where(distinct.slots == NONE, NONE, gather(saved.codes, distinct))[:, :top_k]
    never = np.zeros(saved.n_rows, dtype=bool)
    return _judged(basis, change, k, Guess(codes, why, ~never, never, never, never))


def _room(basis: Basis) -> Room:
    """What surely and what possibly fits into the contexts."""
    seen = basis.saved.seen
    budget = seen.said.context_budget
    surely = basis.counting.most if budget is None else budget
    possibly = np.inf if budget is None else budget
    follows, matters = basis.follows_budget, seen.has["context"]
    return Room(
        surely=np.where(matters, np.where(follows, surely, -np.inf), np.inf),
        possibly=np.where(matters & follows, possibly, np.inf),
        counting=basis.counting,
    )


def _judged(basis: Basis, change: Change, k: int, found: Guess) -> Forecast:
    """A forecast of these lists: what of them fits into the context, and who fails by it."""
    codes, why = found.codes, found.why
    contexts = _contexts(basis, change, codes)
    is_open = basis.saved.seen.has["context"] & (contexts.n == NONE)
    in_context = np.where(contexts.n == NONE, _EVERYTHING, contexts.n)
    failed = basis.labels.failed(codes[:, :k], in_context)
    if change.setting != "waive":
        # What a filter hides has no text here, so that its effect is told of the results alone.
        is_listed = found.is_exact | found.is_explained
        is_untold = is_open & is_listed & ~failed & ~found.passes
        why = first_why(why, reasons(is_untold, NO_CONTEXT))
    is_told = found.is_exact | found.is_explained | np.where(failed, found.fails, found.passes)
    why = first_why(why, reasons(~is_told, UNSURE))
    return Forecast(k, codes, contexts, failed, why, found.is_exact, found.is_explained)


def _contexts(basis: Basis, change: Change, codes: Ints) -> Contexts:
    """The contexts of these lists; as observed where nothing that makes them has changed."""
    seen = basis.saved.seen
    budget: float | None = seen.said.context_budget
    lists, results = same_width(codes, seen.codes["results"])
    is_same: Bools = np.array((lists == results).all(axis=1))
    if change.setting == "context_budget_tokens" and isinstance(change.value, int):
        budget = change.value
        is_same[:] = False
    n = np.where(is_same, basis.observed.n, NONE)
    tokens = np.where(is_same, basis.observed.tokens, np.nan)
    rows = np.flatnonzero(seen.has["context"] & ~is_same & basis.follows_budget)
    fitting = fit(seen, basis.counting, codes[rows], budget)
    n[rows], tokens[rows] = fitting.n, fitting.tokens
    return Contexts(n, tokens)
