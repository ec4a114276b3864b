"""What-if on small runs made by hand: what is told, what is not and why, and what it costs."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from triage_data import Shown, saved, told
from whatif_data import Config, World, answer, text_of, tokens_of

from ragwb.errors import UsageError
from ragwb.runs.traces import Trace, Traces, load_traces
from ragwb.triage.attribute import triage
from ragwb.triage.result import Triage
from ragwb.triage.whatif import (
    Change,
    Predicted,
    case_remedies,
    changes_for,
    effect,
    fails,
    predict,
    remedies,
    why_not,
)

OWN = {name: math.sqrt(n) for n, name in enumerate("abcdefgh", 2)}
WORLD = World(
    channels={"vector": ["b0", "c0", "d0", "a0", "e0"], "keyword": ["e0", "b0", "a0"]},
    own={f"{name}0": score for name, score in OWN.items()},
)
CONFIG = Config(top_k=3, rerank=False)


def run(folder: Path, *shown: Shown, **manifest: Any) -> Traces:
    listed = [*(ids for one in shown for ids in one.stages.values())]
    evidence = [ids for one in shown for ids in one.groups]
    texts = {i: text_of(i) for ids in (*listed, *evidence) for i in ids}
    return load_traces(saved(folder, *shown, **{"texts": texts, **manifest}))


def first(traces: Traces) -> Trace:
    return next(iter(traces.values()))


def asked(traces: Traces, change: Change, k: int = 3) -> Predicted | str | None:
    """What is predicted of the first case, else why nothing is."""
    predicted = predict(traces, first(traces), change, k=k)
    return predicted or why_not(traces, first(traces), change, k=k)


def results(traces: Traces, change: Change, k: int = 3) -> list[str]:
    predicted = asked(traces, change, k)
    assert isinstance(predicted, Predicted), predicted
    return list(predicted.results)


def why(traces: Traces, change: Change, k: int = 3) -> str:
    said = asked(traces, change, k)
    assert isinstance(said, str), said
    return said


def triaged(folder: Path, *shown: Shown, config: Config = CONFIG, **given: Any) -> Triage:
    return triage(run(folder, *shown, **{**config.manifest, **given}).run)


@pytest.mark.parametrize(
    ("change", "label"),
    [
        (Change("k", 10, 5), "K = 10"),
        (Change("rerank", "off"), "no reranker"),
        (Change("rrf_k", 60, 10.0), "RRF constant 10 → 60"),
        (Change("channel", "vector"), "only vector"),
        (Change("deduplicate", "text"), "duplicates removed by text"),
        (Change("context_budget_tokens", 3000, 1500), "context budget 1500 → 3000 tokens"),
        (Change("threshold", None, 0.8), "threshold 0.8 → none"),
        (Change("candidate_k", 63, 50), "candidate K 50 → 63"),
        (Change("waive", "ACL"), "filter reason ACL waived"),
        (
            Change(
                "weights", (("vector", 1.0), ("keyword", 1.0)), (("vector", 1.0), ("keyword", 0.5))
            ),
            "fusion weight keyword 0.5 → 1",
        ),
        (Change("weights", (("keyword", 2.0),)), "fusion weight keyword 2"),
    ],
)
def test_a_change_says_itself_in_words(change, label):
    assert change.label == label
    assert change.is_remedy == (change.setting != "waive")


def test_a_change_is_the_same_whatever_was_before():
    assert Change("rrf_k", 60, 10) == Change("rrf_k", 60, 20)
    assert len({Change("rrf_k", 60, 10), Change("rrf_k", 60, 20), Change("rrf_k", 61)}) == 2


def test_only_what_the_run_tells_of_is_tried(tmp_path):
    plain = Shown(results=["b0", "c0"])
    config = Config(top_k=3, rerank=True)
    whole = triaged(tmp_path / "whole", answer(WORLD, config), config=config, threshold=0.5)

    def settings(found: Triage) -> set[str]:
        return {change.setting for change in changes_for(found)}

    assert settings(triage(saved(tmp_path / "plain", plain))) == {"k", "deduplicate"}
    assert settings(whole) == {
        *("k", "rerank", "rrf_k", "weights", "channel", "deduplicate"),
        *("context_budget_tokens", "threshold", "candidate_k"),
    }
    assert all(
        change.value != CONFIG.top_k for change in changes_for(whole) if change.setting == "k"
    )


def test_the_unchanged_setting_is_not_tried(tmp_path):
    config = replace(CONFIG, rrf_k=60, weights={"vector": 1.0, "keyword": 2.0}, deduplicate="text")
    tried = changes_for(triaged(tmp_path, answer(WORLD, config), config=config))

    assert Change("rrf_k", 60) not in tried
    assert Change("rrf_k", 10) in tried
    assert Change("weights", (("vector", 1.0), ("keyword", 2.0))) not in tried
    assert "deduplicate" not in {change.setting for change in tried}


def test_a_greater_k_is_told_from_the_final_list_and_not_beyond_a_list_of_ids(tmp_path):
    whole = run(tmp_path / "whole", answer(WORLD, CONFIG), **CONFIG.manifest)
    ids_only = run(tmp_path / "ids", Shown(results=["b0", "e0", "a0"]))
    short = run(tmp_path / "short", Shown(results=["b0", "e0"]))

    assert results(whole, Change("k", 5)) == list(answer(WORLD, replace(CONFIG, top_k=5)).results)
    assert results(ids_only, Change("k", 2)) == ["b0", "e0"]
    assert "beyond" not in results(short, Change("k", 5))
    assert results(short, Change("k", 5)) == ["b0", "e0"]
    assert why(ids_only, Change("k", 5)) == "what comes after the observed results is not known"


def test_a_k_that_is_changed_is_the_k_that_it_is_judged_at(tmp_path):
    traces = run(tmp_path, answer(WORLD, CONFIG), **CONFIG.manifest)
    change = Change("k", 4)
    predicted = asked(traces, change, k=1)
    unchanged = asked(traces, Change("deduplicate", "id"), k=2)

    assert isinstance(predicted, Predicted)
    assert isinstance(unchanged, Predicted)
    assert (predicted.k, len(predicted.results)) == (4, 4)
    assert (unchanged.k, len(unchanged.results)) == (2, 3)


def without(shown: Shown, **absent: Any) -> Shown:
    return replace(shown, **absent)


RERANKED = Config(top_k=3)
UNTOLD = {
    "the channels were not observed": (
        without(answer(WORLD, CONFIG), channels=None),
        CONFIG.manifest,
        Change("rrf_k", 60),
    ),
    "neither a fused list nor a single channel was observed": (
        without(answer(WORLD, RERANKED), fused=None),
        RERANKED.manifest,
        Change("rerank", "off"),
    ),
    "the fused list is not what the declared fusion makes of the channels": (
        answer(WORLD, CONFIG),
        {**CONFIG.manifest, "fusion": {"method": "rrf", "k": 61}},
        Change("rrf_k", 20),
    ),
    "a reranker ran and its list was not observed": (
        without(answer(WORLD, RERANKED), reranked=None, results=["a0", "b0", "c0"]),
        {**RERANKED.manifest, "service": {}},
        Change("channel", "vector"),
    ),
    "the reranker's scores were not observed": (
        without(answer(WORLD, RERANKED), scores={"fused": answer(WORLD, RERANKED).scores["fused"]}),
        RERANKED.manifest,
        Change("channel", "vector"),
    ),
    "the reranked list is not what its declared blend makes of the fused list": (
        answer(WORLD, RERANKED),
        {
            **RERANKED.manifest,
            "fusion": {**CONFIG.manifest["fusion"], "rerank": {"method": "unit", "weight": 0.9}},
        },
        Change("channel", "vector"),
    ),
    "what lies between the final list and the results is not in the trace": (
        without(answer(WORLD, CONFIG), results=["a0", "c0"]),
        CONFIG.manifest,
        Change("channel", "vector"),
    ),
    "this channel was not observed": (
        answer(WORLD, CONFIG),
        CONFIG.manifest,
        Change("channel", "graph"),
    ),
    "what the threshold took was not observed": (
        without(answer(WORLD, CONFIG), filtered=None),
        {**CONFIG.manifest, "threshold": 0.5},
        Change("threshold", None),
    ),
    "what the filters took was not observed": (
        without(answer(WORLD, CONFIG), filtered=None),
        CONFIG.manifest,
        Change("waive", "ACL"),
    ),
}


@pytest.mark.parametrize("reason", UNTOLD)
def test_what_the_trace_cannot_tell_is_not_predicted(tmp_path, reason):
    shown, manifest, change = UNTOLD[reason]
    said = why(run(tmp_path, shown, **manifest), change)
    assert said.startswith(reason) or said == reason


def test_duplicates_by_text_need_the_texts(tmp_path):
    shown = Shown(results=["b0", "b1", "c0"])
    known = run(tmp_path / "known", shown, top_k=4)
    unknown = run(tmp_path / "unknown", shown, texts={"b0": "", "b1": "", "c0": ""}, top_k=4)

    assert results(known, Change("deduplicate", "text")) == ["b0", "c0"]
    assert results(unknown, Change("deduplicate", "id")) == ["b0", "b1", "c0"]
    assert "texts" in why(unknown, Change("deduplicate", "text"))


def test_an_own_reranker_orders_by_its_scores_alone(tmp_path):
    """Without a declared blend a reranker is taken to be a cross-encoder."""
    config = Config(top_k=3, blend=1.0)
    shown = answer(WORLD, config)
    own = [WORLD.own[i] for i in shown.reranked or ()]
    shown = replace(shown, scores={**shown.scores, "reranked": own})
    fusion = {**config.manifest["fusion"], "rerank": None}
    traces = run(tmp_path, shown, **{**config.manifest, "fusion": fusion})
    only_keyword = replace(config, weights={"keyword": 1.0})

    assert results(traces, Change("channel", "keyword")) == list(
        answer(WORLD, only_keyword).results
    )


def test_an_own_reranker_that_takes_the_first_few_needs_the_scores_of_the_new_ones(tmp_path):
    config = Config(top_k=2, blend=1.0)
    shown = answer(WORLD, config)
    fed = sorted((shown.fused or ())[:3], key=lambda i: -WORLD.own[i])
    own = {"reranked": [WORLD.own[i] for i in fed], "fused": shown.scores["fused"]}
    shown = replace(shown, reranked=fed, results=fed[:2], context=None, scores=own)
    fusion = {**config.manifest["fusion"], "rerank": None}
    traces = run(tmp_path, shown, **{**config.manifest, "fusion": fusion})

    assert results(traces, Change("rrf_k", 11), k=2) == fed[:2]
    said = why(traces, Change("channel", "vector"), k=2)
    assert said == "the reranker's score of a chunk that would reach it is not known"


THRESHOLD = World(
    channels={"vector": ["b0", "c0"]},
    own={},
    groups=[["a0"]],
)


def below(*chunk_ids: str) -> list[tuple[str, str | None, str]]:
    return [(chunk_id, "vector", "THRESHOLD") for chunk_id in chunk_ids]


def test_without_a_threshold_what_it_took_stands_behind_the_channel(tmp_path):
    config = Config(top_k=3, rerank=False, weights={"vector": 1.0})
    shown = replace(answer(THRESHOLD, config), filtered=below("d0", "a0"))
    found = triaged(
        tmp_path / "near", replace(shown, filtered=below("a0")), config=config, threshold=0.5
    )
    traces = run(tmp_path / "far", shown, **{**config.manifest, "threshold": 0.5})
    predicted = asked(traces, Change("threshold", None))

    assert isinstance(predicted, Predicted)
    assert predicted.results == ("b0", "c0", "d0")
    assert predicted.is_exact
    assert fails(first(traces), predicted)
    assert effect(found, Change("threshold", None)).fixed == ("c0",)


def test_a_threshold_is_waived_in_a_full_channel_without_effect(tmp_path):
    config = Config(top_k=2, rerank=False, candidate_k=2, weights={"vector": 1.0})
    shown = replace(answer(THRESHOLD, config), filtered=[])
    traces = run(tmp_path, shown, **{**config.manifest, "threshold": 0.5})

    assert results(traces, Change("threshold", None), k=2) == ["b0", "c0"]


def ranked(**ranks: int | None) -> dict[str, Any]:
    return told(ranks=ranks)


def test_more_candidates_bring_a_chunk_back_to_the_rank_that_its_channels_give(tmp_path):
    world = World(channels={"vector": ["b0", "c0", "a0"], "keyword": ["d0", "e0", "a0"]}, own={})
    config = Config(top_k=2, candidate_k=2, rerank=False)
    shown = replace(
        answer(world, config), explained={"a0": ranked(vector=3, keyword=3, fused=1, reranked=None)}
    )
    traces = run(tmp_path, shown, **config.manifest)
    change = Change("candidate_k", 3, 2)
    truth = answer(world, replace(config, candidate_k=3))
    (least,) = (
        x for x in case_remedies(triage(traces.run), "c0") if x.change.setting == "candidate_k"
    )

    assert truth.results[0] == "a0"
    assert results(traces, change, k=2) == list(truth.results)
    assert least.change == change
    assert (least.rank_before, least.rank_after, least.positions) == (None, 1, None)


def test_a_rewritten_question_has_other_ranks_than_explain(tmp_path):
    config = Config(top_k=2, candidate_k=2, weights={"vector": 1.0})
    world = World(channels={"vector": ["b0", "c0"]}, own=WORLD.own)
    # Ranked third, and the reranker may lift it: only /explain can tell.
    explained = {"a0": ranked(vector=3, fused=3, reranked=1)}
    plain = replace(answer(world, config), explained=explained)
    rewritten = replace(plain, rewritten="怎么退款")

    assert results(run(tmp_path / "a", plain, **config.manifest), Change("candidate_k", 3), k=2)
    assert why(run(tmp_path / "b", rewritten, **config.manifest), Change("candidate_k", 3), k=2)


def test_a_waived_filter_shows_its_effect_and_is_no_remedy(tmp_path):
    kept_away = told(filtered_by=["ACL"], ranks={"vector": 1, "fused": 1, "reranked": None})
    failed = replace(
        answer(WORLD, CONFIG),
        groups=[["z0"]],
        filtered=[("z0", "vector", "ACL")],
        explained={"z0": kept_away},
    )
    concerned = replace(answer(WORLD, CONFIG), groups=[["b0"]], filtered=[("y0", "vector", "ACL")])
    untouched = replace(answer(WORLD, CONFIG), groups=[["b0"]])
    found = triaged(tmp_path, failed, concerned, untouched)
    said = effect(found, Change("waive", "ACL"))

    assert (said.fixed, said.broken, said.unknown) == (("c0",), (), ("c1",))
    assert Change("waive", "ACL") in changes_for(found)
    assert not said.change.is_remedy
    assert said.change in [remedy.change for remedy in remedies(found)]
    assert case_remedies(found, "c0")[-1].change == Change("waive", "ACL")


def test_a_chunk_that_two_filters_keep_away_is_not_waived_by_one(tmp_path):
    twice = told(filtered_by=["STATUS", "ACL"], ranks={"vector": 1, "fused": 1})
    shown = replace(answer(WORLD, CONFIG), groups=[["z0"]], explained={"z0": twice})
    found = triaged(tmp_path, shown)

    assert "waive" not in {change.setting for change in changes_for(found)}


def test_a_result_fails_by_a_lost_group_a_cut_context_and_what_must_not_come(tmp_path):
    traces = run(tmp_path, replace(answer(WORLD, CONFIG), forbidden=["c0"]), **CONFIG.manifest)
    trace = first(traces)

    def outcome(results: str, context: str | None) -> bool:
        ids = tuple(f"{name}0" for name in results)
        kept = None if context is None else tuple(f"{name}0" for name in context)
        return fails(trace, Predicted(ids, kept, None, 3, is_exact=True))

    assert not outcome("ab", None)
    assert not outcome("ab", "a")
    assert outcome("ba", "b")
    assert outcome("bde", None)
    assert outcome("bdea", None)
    assert outcome("abc", "abc")


def test_a_chunk_that_leaked_must_not_come_back_and_one_that_is_cited_stays(tmp_path):
    leaked = told(filtered_by=["TENANT"])
    shown = replace(answer(WORLD, CONFIG), groups=[["b0"]], explained={"e0": leaked})
    found = triaged(tmp_path / "a", shown)
    cited = triaged(tmp_path / "b", replace(shown, citations=["e0"]))

    assert found.cases[0].verdict.stage == "security"
    assert effect(found, Change("k", 1)).fixed == ("c0",)
    assert effect(found, Change("k", 5)).fixed == ()
    assert effect(cited, Change("k", 1)).fixed == ()


def test_a_bigger_budget_is_told_in_tokens_and_the_least_is_found(tmp_path):
    world = replace(WORLD, groups=[["a0"]])
    config = replace(CONFIG, top_k=4, budget=tokens_of("b0"))
    found = triaged(tmp_path, answer(world, config), config=config)
    truth = answer(world, replace(config, budget=10_000))
    needed = sum(map(tokens_of, truth.results[: list(truth.results).index("a0") + 1]))
    (least,) = (
        x for x in case_remedies(found, "c0") if x.change.setting == "context_budget_tokens"
    )

    assert found.cases[0].verdict.reason == "CONTEXT_TRUNCATED"
    assert (least.change.value, least.positions) == (needed, 0)
    assert least.tokens_added == needed - tokens_of("b0")
    assert not effect(found, Change("context_budget_tokens", needed - 1)).fixed
    assert effect(found, Change("context_budget_tokens", needed)).fixed == ("c0",)


def test_a_service_that_counts_otherwise_is_calibrated_by_its_contexts(tmp_path):
    config = replace(CONFIG, budget=30)
    shown = answer(WORLD, config)
    assert shown.context_tokens is not None
    halved = replace(shown, context_tokens=shown.context_tokens / 2)  # its tokens are twice as long
    manifest = {**config.manifest, "context_budget_tokens": 15}
    predicted = asked(run(tmp_path, halved, **manifest), Change("context_budget_tokens", 30))
    twice = answer(WORLD, replace(config, budget=60))

    assert isinstance(predicted, Predicted)
    assert predicted.context == tuple(twice.context or ())


def test_a_context_that_follows_no_budget_is_not_predicted(tmp_path):
    config = replace(CONFIG, budget=1000)
    shown = replace(answer(WORLD, config), context=["e0"], context_tokens=tokens_of("e0"))
    said = why(run(tmp_path, shown, **config.manifest), Change("k", 5))
    assert said == "what of the results would fit into the context is not known"


def test_a_lost_result_is_told_whatever_its_context(tmp_path):
    config = replace(CONFIG, budget=1000)
    world = replace(WORLD, groups=[["z0"]])
    shown = replace(answer(world, config), context=["e0"], context_tokens=tokens_of("e0"))
    found = triaged(tmp_path, shown, config=config)
    assert effect(found, Change("k", 5)).unknown == ()


def test_a_run_is_told_with_every_case_that_changes(tmp_path):
    config = replace(CONFIG, top_k=1)
    wins = replace(WORLD, groups=[["e0"]])
    loses = replace(WORLD, groups=[["b0"]])
    found = triaged(
        tmp_path,
        *(answer(world, config) for world in (wins, loses, replace(WORLD, groups=[]))),
        replace(answer(WORLD, config), channels=None),
        config=config,
    )
    said = effect(found, Change("weights", (("vector", 1.0), ("keyword", 4.0))))

    assert [case.case_id for case in found.cases] == ["c0", "c3"]
    assert (said.fixed, said.broken, said.unknown) == (("c0",), ("c1",), ("c3",))
    assert (said.latency_ms, said.latency_run) == (None, None)


def test_a_case_is_fixed_when_all_of_its_repeats_would_pass(tmp_path):
    config = replace(CONFIG, top_k=1)
    early, late = replace(WORLD, groups=[["e0"]]), replace(WORLD, groups=[["c0"]])
    other = World(channels={"vector": ["b0", "d0", "e0", "c0"], "keyword": []}, own={})
    repeats = [
        [answer(early, config), answer(early, config)],
        [answer(late, config), replace(answer(other, config), groups=late.groups)],
    ]
    traces = load_traces(saved(tmp_path, *repeats, **config.manifest))
    found = triage(traces.run)

    assert effect(found, Change("k", 2)).fixed == ("c0",)
    assert effect(found, Change("k", 5)).fixed == ("c0", "c1")


def test_remedies_are_ranked_by_cases_fixed_per_case_broken_then_by_cost(tmp_path):
    config = replace(CONFIG, top_k=1)
    worlds = [replace(WORLD, groups=[[name]]) for name in ("e0", "b0", "c0", "a0")]
    found = triaged(tmp_path, *(answer(world, config) for world in worlds), config=config)
    ranked_ = remedies(found)
    heavy = Change("weights", (("vector", 1.0), ("keyword", 4.0)))

    assert all(remedy.fixed for remedy in ranked_)
    shares = [len(r.fixed) / len(r.broken) if r.broken else math.inf for r in ranked_]
    assert shares == sorted(shares, reverse=True)
    free = [remedy for remedy in ranked_ if not remedy.broken]
    assert [len(remedy.fixed) for remedy in free] == sorted(
        (len(remedy.fixed) for remedy in free), reverse=True
    )
    assert remedies(found, [heavy])[0].change == heavy
    assert remedies(found, [Change("k", 1)]) == ()


def test_of_one_setting_a_greater_change_that_does_no_more_good_is_left_out(tmp_path):
    config = replace(CONFIG, top_k=1)
    worlds = [replace(WORLD, groups=[[name]]) for name in ("e0", "a0")]
    found = triaged(tmp_path, *(answer(world, config) for world in worlds), config=config)
    tried = [Change("k", k, 1) for k in (50, 2, 5, 3)]

    assert [remedy.change.value for remedy in remedies(found, tried)] == [3, 2]
    assert effect(found, tried[0]).fixed == ("c0", "c1")


def test_what_a_remedy_says_in_json(tmp_path):
    config = replace(CONFIG, top_k=1, budget=1000)
    found = triaged(tmp_path, answer(replace(WORLD, groups=[["e0"]]), config), config=config)
    (said,) = remedies(found, [Change("k", 2, 1)])

    assert said.to_dict() == {
        "change": "K = 2",
        "fixed": ["c0"],
        "broken": [],
        "unknown": [],
        "tokens_per_case": float(tokens_of("e0")),
        "latency_ms": None,
        "is_remedy": True,
    }


def test_latency_is_of_a_run_that_differs_in_the_setting_alone(tmp_path):
    shown = answer(replace(WORLD, groups=[["a0"]]), CONFIG)
    found = triaged(tmp_path / "runs", shown)
    for name, differs in {
        "at-60": {"rrf_k": 60},
        "at-60-and-k-4": {"rrf_k": 60, "top_k": 4},
    }.items():
        config = replace(CONFIG, **differs)
        saved(tmp_path / "runs", shown, run_id=name, **config.manifest)
    saved(tmp_path / "runs", shown, run_id="other-set", dataset_hash="x", **CONFIG.manifest)

    def measured(change: Change) -> tuple[float | None, str | None]:
        said = effect(found, change)
        return said.latency_ms, said.latency_run

    assert measured(Change("rrf_k", 60)) == (1.0, "at-60")
    assert measured(Change("rrf_k", 20)) == (None, None)
    assert measured(Change("k", 4)) == (None, None)
    assert measured(Change("waive", "ACL")) == (None, None)


def test_the_least_change_of_each_kind_brings_a_case_back(tmp_path):
    config = Config(top_k=1, rerank=True, blend=0.25)
    found = triaged(tmp_path, answer(replace(WORLD, groups=[["a0"]]), config), config=config)
    by_setting = {remedy.change.setting: remedy for remedy in case_remedies(found, "c0")}
    reranked = list(answer(WORLD, config).reranked or ())
    rank = reranked.index("a0") + 1

    assert by_setting["k"].change.value == rank
    assert (by_setting["k"].rank_before, by_setting["k"].rank_after) == (rank, rank)
    assert by_setting["k"].positions == rank - 1
    tokens = [x.tokens_added for x in case_remedies(found, "c0") if x.tokens_added is not None]
    assert tokens == sorted(tokens)
    with pytest.raises(UsageError, match="no case of this run"):
        case_remedies(found, "c9")


def test_below_a_threshold_a_reranker_is_told_by_explain_alone(tmp_path):
    config = Config(top_k=2, weights={"vector": 1.0}, blend=1.0)
    world = World(channels={"vector": ["b0", "c0", "d0"]}, own=WORLD.own)
    low = told(filtered_by=["THRESHOLD"], visible=True, ranks={"vector": 4, "reranked": 2})
    shown = replace(answer(world, config), filtered=below("a0"))
    manifest = {**config.manifest, "threshold": 0.5}
    change = Change("threshold", None)
    unexplained = run(tmp_path / "a", shown, **manifest)
    explained = run(tmp_path / "b", replace(shown, explained={"a0": low}), **manifest)
    (remedy,) = (
        x for x in case_remedies(triage(explained.run), "c0") if x.change.setting == "threshold"
    )

    assert why(unexplained, change, k=2) == "it depends on chunks that the trace does not name"
    assert results(explained, change, k=2) == ["d0", "a0"]
    assert (remedy.rank_after, remedy.note) == (
        2,
        "by what /explain ranks without a cut of the candidates",
    )


def test_a_newcomer_of_an_own_reranker_may_stand_anywhere(tmp_path):
    config = Config(top_k=2, candidate_k=3, weights={"vector": 1.0}, blend=1.0)
    world = World(channels={"vector": ["b0", "c0", "d0"]}, own=WORLD.own)
    shown = answer(world, config)
    own = [WORLD.own[i] for i in shown.reranked or ()]
    shown = replace(shown, scores={**shown.scores, "reranked": own}, context=None)
    fusion = {**config.manifest["fusion"], "rerank": None}
    found = triaged(
        tmp_path,
        replace(shown, groups=[["d0"]]),
        replace(shown, groups=[["c0"]]),
        replace(shown, groups=[["b0"]]),
        config=config,
        fusion=fusion,
    )
    by_one, by_many = (effect(found, Change("candidate_k", k)) for k in (4, 9))

    assert shown.reranked == ["d0", "c0", "b0"]
    assert (by_one.fixed, by_one.broken, by_one.unknown) == ((), (), ("c1",))
    assert by_many.unknown == ("c0", "c1")


@pytest.mark.parametrize(
    ("shown", "is_told"),
    [
        (Shown(channels={"vector": ["b0"]}, results=["b0"]), True),
        (Shown(channels={"vector": ["b0"]}, results=["b0"], rewritten="怎么退款"), False),
        (Shown(channels={"vector": ["b0"], "keyword": ["b0"]}, results=["b0"]), False),
    ],
)
def test_the_rank_in_the_only_channel_is_that_of_the_results(tmp_path, shown, is_told):
    hidden = told(filtered_by=["ACL"], ranks={"vector": 1, "keyword": 1})
    taken = [("z0", "vector", "ACL")]
    shown = replace(shown, groups=[["z0"]], explained={"z0": hidden}, filtered=taken)
    found = triage(run(tmp_path, shown).run)

    assert effect(found, Change("waive", "ACL")).fixed == (("c0",) if is_told else ())


def test_what_fails_by_its_answer_alone_is_neither_fixed_nor_broken(tmp_path):
    refused = {"mode": "refuse", "answer": "没有资料。", "refusal_reason": "NO_EVIDENCE"}
    config = replace(CONFIG, top_k=5)
    shown = replace(answer(replace(WORLD, groups=[["c0"]]), config), said=refused)
    found = triaged(tmp_path, shown, config=config)

    assert [case.verdict.stage for case in found.cases] == ["generation"]
    assert case_remedies(found, "c0") == ()
    assert remedies(found) == ()
    assert effect(found, Change("channel", "keyword")).broken == ()


def test_the_least_candidate_k_reaches_the_nearest_chunk_of_every_group(tmp_path):
    shown = replace(
        answer(WORLD, CONFIG),
        groups=[["x0", "y0"], ["z0"]],
        explained={
            "x0": ranked(vector=90, keyword=None),
            "y0": ranked(vector=60, keyword=70),
            "z0": ranked(vector=80),
        },
    )
    found = triaged(tmp_path, shown)
    tried = [change.value for change in changes_for(found) if change.setting == "candidate_k"]

    assert tried == [80, 100, 200]
