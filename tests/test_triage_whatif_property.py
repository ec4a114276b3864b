"""What-if against a service of plain Python: what is predicted is what that service answers."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from triage_data import Shown, saved
from whatif_data import Config, World, answer, text_of

from ragwb.runs.traces import Traces, load_traces
from ragwb.triage.attribute import triage
from ragwb.triage.whatif import Change, Predicted, effect, fails, predict, why_not
from ragwb.triage.whatif.forecast import NO_CONTEXT
from ragwb.triage.whatif.orders import NO_CHANNEL

IDS = [f"{letter}{n}" for letter in "abcde" for n in range(3)]
# Each example is a run on disk: to shrink one takes minutes and tells little more.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
few = settings(max_examples=40, deadline=None, phases=PHASES)

orders = st.permutations(IDS).flatmap(lambda ids: st.integers(0, len(ids)).map(lambda n: ids[:n]))


@st.composite
def worlds(draw: st.DrawFn) -> World:
    # Roots, so that no two chunks have the same score by chance: of equals a trace tells no order.
    scores = draw(st.permutations([math.sqrt(n) for n in range(2, 2 + len(IDS))]))
    return World(
        channels={"vector": draw(orders), "keyword": draw(orders)},
        own=dict(zip(IDS, scores, strict=True)),
        groups=draw(st.lists(st.lists(st.sampled_from(IDS), min_size=1, max_size=2), max_size=2)),
        forbidden=draw(st.lists(st.sampled_from(IDS), max_size=1)),
        hidden=draw(st.lists(st.sampled_from(IDS), max_size=4)),
    )


configs = st.builds(
    Config,
    top_k=st.integers(1, 6),
    candidate_k=st.integers(1, 15),
    rerank=st.booleans(),
    blend=st.sampled_from([0.0, 0.25, 0.7, 1.0]),
    deduplicate=st.sampled_from(["off", "off", "id", "text"]),
    budget=st.sampled_from([None, 12, 30, 60]),
)
CHANGES: list[tuple[Change, dict[str, Any]]] = [
    (Change("rerank", "off"), {"rerank": False}),
    (Change("rrf_k", 60), {"rrf_k": 60}),
    (Change("rrf_k", 0), {"rrf_k": 0}),
    (Change("channel", "keyword"), {"weights": {"keyword": 1.0}}),
    (Change("channel", "vector"), {"weights": {"vector": 1.0}}),
    (Change("deduplicate", "id"), {"deduplicate": "id"}),
    (Change("deduplicate", "text"), {"deduplicate": "text"}),
    (Change("context_budget_tokens", 45), {"budget": 45}),
    *(
        (Change("weights", tuple(weights.items())), {"weights": weights})
        for weights in ({"vector": 1.0, "keyword": 2.1}, {"vector": 0.31, "keyword": 1.0})
    ),
    *((Change("k", k), {"top_k": k}) for k in (1, 4, 9)),
]

# A channel that is always empty is not seen; without a declared budget a greater context than any
# that was seen may not fit.
UNTOLD = (NO_CHANNEL, NO_CONTEXT)


def run_of(folder: str, shown: Sequence[Shown], config: Config) -> Traces:
    texts = {chunk_id: text_of(chunk_id) for chunk_id in IDS}
    return load_traces(saved(Path(folder), *shown, texts=texts, **config.manifest))


def judged(predicted: Predicted) -> tuple[list[str], list[str] | None, int | None]:
    context = None if predicted.context is None else list(predicted.context)
    return list(predicted.results), context, predicted.context_tokens


@few
@given(st.lists(worlds(), min_size=1, max_size=4), configs)
def test_nothing_changed_gives_what_was_observed(found: list[World], config: Config) -> None:
    shown = [answer(world, config) for world in found]
    with tempfile.TemporaryDirectory() as folder:
        traces = run_of(folder, shown, config)
        for trace, one in zip(traces.values(), shown, strict=True):
            predicted = predict(traces, trace, Change("k", config.top_k), k=config.top_k)
            assert predicted is not None
            assert predicted.is_exact
            assert judged(predicted) == (one.results, one.context, one.context_tokens)


@few
@given(st.lists(worlds(), min_size=1, max_size=3), configs)
def test_what_is_predicted_is_what_the_service_answers(found: list[World], config: Config) -> None:
    with tempfile.TemporaryDirectory() as folder:
        traces = run_of(folder, [answer(world, config) for world in found], config)
        for change, changed in CHANGES:
            now = replace(config, **changed)
            for trace, world in zip(traces.values(), found, strict=True):
                predicted = predict(traces, trace, change, k=config.top_k)
                truth = answer(world, now)
                if predicted is None:
                    assert why_not(traces, trace, change, k=config.top_k) in UNTOLD
                    continue
                assert list(predicted.results) == list(truth.results)
                if predicted.context is not None:
                    assert judged(predicted)[1:] == (truth.context, truth.context_tokens)


@few
@given(st.lists(worlds(), min_size=2, max_size=4), configs, st.sampled_from(CHANGES))
def test_a_run_changes_as_its_cases_do(
    found: list[World], config: Config, tried: tuple[Change, dict[str, Any]]
) -> None:
    """The whole run at once says what each result says alone, in whatever order they stand."""
    change = tried[0]
    with tempfile.TemporaryDirectory() as folder:
        traces = run_of(folder, [answer(world, config) for world in found], config)
        whole = triage(traces.run)
        failing = {case.case_id for case in whole.cases}
        said = effect(whole, change)
        for (case_id, _), trace in traces.items():
            predicted = predict(traces, trace, change, k=config.top_k)
            if predicted is None:
                assert case_id in said.unknown
                assert why_not(traces, trace, change, k=config.top_k)
            elif fails(trace, predicted):
                assert (case_id in said.broken) == (case_id not in failing)
            else:
                assert (case_id in said.fixed) == (case_id in failing)


@few
@given(worlds(), configs, st.integers(1, 12))
def test_a_greater_k_only_adds(world: World, config: Config, k: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        traces = run_of(folder, [answer(world, config)], config)
        (trace,) = traces.values()
        less, more = (predict(traces, trace, Change("k", n), k=k) for n in (k, k + 1))
        if less is not None and more is not None:
            assert more.results[: len(less.results)] == less.results
            assert len(less.results) <= len(more.results) <= k + 1


@few
@given(worlds(), configs)
def test_no_text_comes_twice_once_duplicates_are_removed(world: World, config: Config) -> None:
    with tempfile.TemporaryDirectory() as folder:
        traces = run_of(folder, [answer(world, config)], config)
        (trace,) = traces.values()
        predicted = predict(traces, trace, Change("deduplicate", "text"), k=config.top_k)
        if predicted is not None:
            texts = [text_of(chunk_id) for chunk_id in predicted.results]
            assert len(texts) == len(set(texts))


NEWCOMERS = [
    *((Change("candidate_k", k), {"candidate_k": k}) for k in (3, 6, 15)),
    (Change("threshold", None), {"above": None}),
]


@settings(max_examples=60, deadline=None, phases=PHASES)
@given(st.lists(worlds(), min_size=1, max_size=3), configs, st.integers(0, 5))
def test_newcomers_are_told_only_where_they_cannot_matter(
    found: list[World], config: Config, above: int
) -> None:
    """Little is known of the newcomers, so what is said holds whichever they are."""
    config = replace(config, candidate_k=min(config.candidate_k, 5), above=above)
    with tempfile.TemporaryDirectory() as folder:
        traces = run_of(folder, [answer(world, config) for world in found], config)
        for change, changed in NEWCOMERS:
            if change.setting == "candidate_k" and change.value < config.candidate_k:
                continue
            for trace, world in zip(traces.values(), found, strict=True):
                predicted = predict(traces, trace, change, k=config.top_k)
                if predicted is None:
                    continue
                truth = answer(world, replace(config, **changed))
                assert fails(trace, predicted) == is_bad(truth)
                if predicted.is_exact:
                    assert list(predicted.results) == list(truth.results)


def is_bad(shown: Shown) -> bool:
    """Whether a result fails: a group is lost before the model, or what is forbidden came."""
    kept = set(shown.results).intersection(shown.context or ())
    lost = any(kept.isdisjoint(group) for group in shown.groups)
    return lost or not set(shown.forbidden).isdisjoint(shown.results)
