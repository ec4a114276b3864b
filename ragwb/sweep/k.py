"""Which K? Every figure at every K from one run, and what was measured where it was."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ragwb.errors import RunError, UsageError
from ragwb.html import plain
from ragwb.measure.answer_scores import FIGURES as ANSWER_FIGURES
from ragwb.measure.answer_scores import AnswerScores
from ragwb.measure.listed import count, some
from ragwb.measure.rule_pack import RulePack
from ragwb.measure.scores import checked_ks
from ragwb.measure.summary import Scores
from ragwb.runs.answered import score_answers
from ragwb.runs.manifest import diff_manifests
from ragwb.runs.scoring import score
from ragwb.runs.store import Run, load_run
from ragwb.runs.traces import load_traces
from ragwb.sweep.budget import ks_words
from ragwb.sweep.k_cost import (
    FROM_RUN,
    MEASURED,
    NOT_MEASURED,
    NOT_OBSERVED,
    FirstTokens,
    empty_row,
    first_tokens,
    latency_rows,
    token_rows,
)
from ragwb.sweep.k_result import COLUMNS, KSweep, at_k
from ragwb.sweep.k_steps import steps_of

# Every K up to here, then each tenth: the curve bends early, and a hundred rows read nobody.
EACH_UP_TO = 20
_THEN_EACH = 10
# What may differ between the run and one that was measured at a K.
_OF_K = frozenset({"top_k", "repeats", "packages", "candidate_k"})


def sweep_k(
    run: Run,
    ks: Iterable[int] | None = None,
    *,
    measured: Iterable[Run] = (),
    rules: RulePack | None = None,
) -> KSweep:
    """Every retrieval and passage figure, tokens and duplicates at every K, from one run.

    A latency, and what was answered, at a K is told only where calls for that K were made: by
    `measured`, and by the run itself at its top K.

    Args:
        run: a sealed run, asked for the largest K.
        ks: cutoffs, 1 to 100; by default each up to 20, then each tenth, and top K. Beyond top K
            nothing was observed.
        measured: further sealed runs of the same golden set, each at a K of its own (see
            `timing.measure_ks`).
        rules: the hard rules that answers are scored by; default those that come with ragwb.

    Raises:
        MetricError: a K is outside 1..100.
        UsageError: a measured run has other cases, or two have the same K.
        DataError: a table of a run is broken, its labels are of another id space, or not one of its
            calls was answered.
    """
    _check_answered(run)
    cutoffs = default_sweep_ks(run.manifest.top_k) if ks is None else checked_ks(ks)
    by_k = _by_k(run, measured)
    scores, traces = score(run, cutoffs), load_traces(run)
    answers = {k: score_answers(one, rules) for k, one in by_k.items() if _answered(one)}
    tokens = first_tokens(traces, cutoffs)
    scored = pd.Index(scores.frame.loc[scores.frame["status"] == "scored", "case_id"])
    rows = [
        *token_rows(tokens, scored, cutoffs),
        *latency_rows(by_k, cutoffs),
        *_answer_rows(answers, cutoffs),
    ]
    frame = pd.concat([_retrieval(scores), pd.DataFrame(rows)], ignore_index=True)
    frame = frame[list(COLUMNS)].sort_values("k", kind="stable", ignore_index=True)
    p95 = frame[(frame["metric"] == "p95_ms") & frame["value"].notna()]
    return KSweep(
        run=run,
        ks=cutoffs,
        scores=scores,
        frame=frame,
        steps=steps_of(
            scores, tokens.by_case, dict(zip(p95["k"], p95["value"], strict=True)), answers
        ),
        measured=by_k,
        answers=answers,
        notes=tuple(_notes(run, scores, tokens, by_k)),
    )


def open_sweep(
    run: str | Path, ks: Iterable[int] | None = None, *, measured: Iterable[str | Path] = ()
) -> KSweep:
    """The sweep of saved runs by id, prefix, path or name (see `sweep_k`).

    Raises:
        RunError: a run is not there, is not finished, or was changed.
    """
    return sweep_k(load_run(run), ks, measured=[load_run(one) for one in measured])


def default_sweep_ks(top_k: int) -> tuple[int, ...]:
    """Each K up to 20, then each tenth, and top K.

    Example: 25 -> 1, 2, …, 20, 25
    """
    each = range(1, min(top_k, EACH_UP_TO) + 1)
    tenths = range(EACH_UP_TO + _THEN_EACH, top_k + 1, _THEN_EACH)
    return tuple(sorted({*each, *tenths, top_k}))


def _by_k(run: Run, measured: Iterable[Run]) -> dict[int, Run]:
    """The runs that asked for a K, ascending; of top K the measured one where there is one."""
    found: dict[int, Run] = {}
    for one in measured:
        k = one.manifest.top_k
        if one.manifest.dataset_hash != run.manifest.dataset_hash:
            raise UsageError(
                f"run {one.run_id} asked another golden set than run {run.run_id}: "
                "a K can be measured on the same cases only"
            )
        if k in found:
            raise UsageError(f"runs {found[k].run_id} and {one.run_id} both asked for K = {k}")
        found[k] = one
    return dict(sorted({run.manifest.top_k: run, **found}.items()))


def _answered(run: Run) -> bool:
    return bool(run.cases()["mode"].notna().any())


def _retrieval(scores: Scores) -> pd.DataFrame:
    frame = at_k(scores.summary())
    is_beyond = frame["k"] > scores.top_k
    return frame.assign(source=is_beyond.map({True: NOT_OBSERVED, False: FROM_RUN}))


def _answer_rows(
    answers: Mapping[int, AnswerScores], ks: Sequence[int]
) -> Iterator[dict[str, Any]]:
    """The figures of answers at each K; without any, that the correct rate was not measured."""
    tables = {k: scores.summary().set_index("metric") for k, scores in answers.items()}
    known = {
        name
        for table in tables.values()
        for name in ANSWER_FIGURES
        if name in table.index and table["n"][name]
    }
    for k in ks:
        for name in (one for one in ANSWER_FIGURES if one in known or one == ANSWER_FIGURES[0]):
            if k in tables and name in tables[k].index:
                row = {str(key): value for key, value in tables[k].loc[name].items()}
                yield {**row, "k": k, "metric": name, "source": MEASURED}
            else:
                yield empty_row(k, name, NOT_MEASURED)


def _notes(run: Run, scores: Scores, tokens: FirstTokens, by_k: Mapping[int, Run]) -> Iterator[str]:
    """What else must be known: Ks that change nothing, contexts that are cut, other conditions."""
    observed = [k for k in scores.ks if k <= scores.top_k]
    if beyond := [k for k in scores.ks if k > scores.top_k]:
        yield f"K = {ks_words(beyond)}: not observed, the run asked for {scores.top_k} results"
    if more := [k for k in observed if k > tokens.longest]:
        yield (
            f"No question got more than {tokens.longest} results: K = {ks_words(more)} looks at no "
            f"more than K = {tokens.longest} (the corpus, the filters or candidate K hold no more)"
        )
    if over := [k for k in observed if tokens.n_over.get(k)]:
        n, n_cases = tokens.n_over[over[-1]], len(tokens.by_case)
        yield (
            f"From K = {over[0]} on, the first K results hold more than the context budget of "
            f"{tokens.budget:,} tokens: at K = {over[-1]} in {n} of {n_cases} cases, whose last "
            "results never reach the answerer"
        )
    for k, one in by_k.items():
        if one is not run:
            yield from _measured_notes(run, scores, k, one)


def _check_answered(run: Run) -> None:
    """Refuse a run of which every call failed: its lists are not empty, they are not known."""
    cases = run.cases()
    failed = cases[cases["status"] == "error"]
    if len(failed) and len(failed) == len(cases):
        why = plain(failed["error"].iloc[0], width=200)
        raise RunError(
            f"run {run.run_id}: not one of its {count(len(cases), 'call')} was answered, the first "
            f"says {why}; nothing is known of any K"
        )


def _measured_notes(run: Run, scores: Scores, k: int, one: Run) -> Iterator[str]:
    """Where a measured run is not the first K of the run: other conditions, or other results."""
    changes = [c.field for c in diff_manifests(run.manifest, one.manifest) if c.field not in _OF_K]
    if changes:
        yield (
            f"K = {k} was measured under other conditions than run {run.run_id}: "
            f"{', '.join(changes)}; its latency and answers are not those of K alone"
        )
    if k not in scores.ks or k > scores.top_k:
        return
    sides = {"there": score(one, k), "here": scores}
    failed = {name: side.frame.set_index("case_id")[f"failed@{k}"] for name, side in sides.items()}
    both = pd.concat(failed, axis=1, join="inner").dropna()
    if other := list(both.index[both["there"] != both["here"]]):
        yield (
            f"At K = {k} the service itself (run {one.run_id}) does not give the first {k} of its "
            f"{scores.top_k} results: {some(other, width=60)} pass or fail differently there"
        )
