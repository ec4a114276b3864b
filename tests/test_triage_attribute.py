"""Every reason code fires, stays quiet, and is not named where the trace does not tell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from triage_data import Shown, saved, told

import ragwb as rw
from ragwb.errors import MetricError, UsageError
from ragwb.triage.attribute import triage
from ragwb.triage.reasons import REASONS
from ragwb.triage.verdict import CaseVerdict, GroupVerdict

NOISE = ["x1", "x2", "x3", "x4"]


def full(**given: Any) -> Shown:
    """A case whose evidence `a` is nowhere, in a trace that shows every stage."""
    shown = {
        "channels": {"vector": NOISE, "keyword": NOISE[:2]},
        "fused": NOISE,
        "reranked": NOISE,
        "results": NOISE[:3],
        "context": NOISE[:3],
        "filtered": [],
    }
    return Shown(**{**shown, **given})


def verdict(folder: Path, shown: Shown, **given: Any) -> CaseVerdict:
    k = given.pop("k", None)
    (case,) = triage(saved(folder, shown, **given), k=k).cases
    return case.verdict


def lost(folder: Path, shown: Shown, **given: Any) -> GroupVerdict:
    (group,) = verdict(folder, shown, **given).groups
    return group


FIRES = {
    "KNOWLEDGE_MISSING": full(explained={"a": told("missing")}),
    "CHUNK_ID_DRIFTED": full(explained={"a": told("missing", moved_to=["b"])}),
    "KNOWLEDGE_UNPUBLISHED": full(explained={"a": told("unpublished", filtered_by=["STATUS"])}),
    "CHUNK_SPLIT": full(split=[0], explained={"a": told(ranks={"vector": 9})}),
    "ACL_FILTERED_EXPECTED_CHUNK": full(explained={"a": told(filtered_by=["ACL"])}),
    "TENANT_FILTERED": full(explained={"a": told(filtered_by=["TENANT"])}),
    "STATUS_FILTERED": full(explained={"a": told("retired", filtered_by=["STATUS"])}),
    "EFFECTIVE_TIME_FILTERED": full(filtered=[("a", "vector", "EFFECTIVE_TIME")]),
    "VERSION_FILTERED": full(filtered=[("a", "vector", "VERSION")]),
    "NOT_IN_CANDIDATES": full(explained={"a": told(ranks={"vector": 63, "keyword": None})}),
    "REWRITE_DRIFT": full(rewritten="怎么办", explained={"a": told(ranks={"vector": 4})}),
    "BELOW_THRESHOLD": full(filtered=[("a", "vector", "THRESHOLD")]),
    "FUSION_DROPPED": full(channels={"vector": [*NOISE, "a"], "keyword": ["a"]}),
    "RERANK_DROPPED": full(fused=[*NOISE, "a"]),
    "RANKED_BELOW_K": full(fused=[*NOISE, "a"], reranked=[*NOISE, "a"]),
    "CROWDED_OUT_BY_DUPLICATES": full(reranked=["x1", "x1", "x1", "a"], results=["x1", "x1", "x1"]),
    "CONTEXT_TRUNCATED": full(results=["x1", "x2", "a"], context=["x1", "x2"]),
    "FORBIDDEN_RETRIEVED": full(groups=[], forbidden=["x2"]),
    "ACL_LEAK": full(groups=[], explained={"x2": told(filtered_by=["ACL"])}),
    "TENANT_LEAK": full(groups=[], explained={"x2": told(filtered_by=["TENANT"])}),
    "STALE_VERSION_LEAK": full(groups=[], explained={"x2": told(filtered_by=["VERSION"])}),
    "NOT_OBSERVED": full(),
}
MANIFEST = {"candidate_k": 4, "service": {"rerank": "model"}}


def test_every_reason_code_of_retrieval_has_a_case_here():
    of_answers = {code for code, reason in REASONS.items() if reason.stage == "generation"}
    assert FIRES.keys() == REASONS.keys() - of_answers


@pytest.mark.parametrize("reason", FIRES)
def test_a_reason_fires_at_its_stage(tmp_path, reason):
    found = verdict(tmp_path, FIRES[reason], **MANIFEST)
    assert (found.stage, found.reason) == (REASONS[reason].stage, reason)


@pytest.mark.parametrize("reason", [code for code in FIRES if code != "NOT_OBSERVED"])
def test_a_reason_is_quiet_where_nothing_is_lost(tmp_path, reason):
    """The same trace, with the evidence at the first place everywhere and nothing that leaks."""
    shown = FIRES[reason]
    found = {name: ["a", *ids] for name, ids in shown.stages.items()}
    channels = {name: found.pop(name) for name in shown.channels or ()}
    right = {**vars(shown), **found, "channels": channels, "explained": {}, "forbidden": []}
    right["explained"] = {"a": told(ranks={"vector": 1})}
    result = triage(saved(tmp_path, Shown(**right), **MANIFEST))
    assert result.cases == ()
    assert result.n_passed + len(result.unjudged) == 1


def test_proofs_are_concrete(tmp_path):
    said = {reason: verdict(tmp_path / reason, FIRES[reason], **MANIFEST).proof for reason in FIRES}
    assert said["KNOWLEDGE_MISSING"] == "/explain: missing, and its text is nowhere else"
    assert said["CHUNK_ID_DRIFTED"] == "/explain: missing; its text is now b"
    assert said["ACL_FILTERED_EXPECTED_CHUNK"] == (
        "/explain: published, not visible, filtered by ACL"
    )
    assert said["VERSION_FILTERED"] == "filtered by VERSION in vector"
    assert said["NOT_IN_CANDIDATES"] == (
        "visible, in no channel (vector 4, keyword 2); /explain: rank 63 of vector, candidate K = 4"
    )
    assert said["FUSION_DROPPED"] == (
        "rank 1 of keyword and 5 of vector, gone after fusion (4 candidates)"
    )
    assert said["RERANK_DROPPED"] == "rank 5 of fused, gone after reranking (4 candidates)"
    assert said["RANKED_BELOW_K"] == (
        "rank 5 of reranked, K = 3; fused 5 → reranked 5: beyond K since a stage that was not "
        "observed"
    )
    assert said["CROWDED_OUT_BY_DUPLICATES"] == (
        "rank 4 of reranked, K = 3; without 2 duplicates it would be at 2"
    )
    assert said["CONTEXT_TRUNCATED"] == ("in the top 3 at rank 3, the context ends after 2 chunks")
    assert said["TENANT_LEAK"] == (
        "x2 at position 2 of the results; /explain: published, not visible, filtered by TENANT"
    )
    assert said["FORBIDDEN_RETRIEVED"] == "x2 at position 2 of the results; the case forbids it"
    assert said["NOT_OBSERVED"].endswith("missing or filtered: not visible to this token")


def test_the_budget_of_the_context_stands_in_its_proof(tmp_path):
    shown = full(results=["x1", "a"], context=["x1"], context_tokens=1480)
    found = lost(tmp_path / "1", shown, context_budget_tokens=1500)
    start = "in the top 3 at rank 2, the context ends after 1 chunk with 1,480"
    assert found.proof == f"{start} of 1,500 tokens"
    assert lost(tmp_path / "2", shown).proof == f"{start} tokens"


NOT_TOLD = {
    "explain": full(),
    "explain of a filtered list": full(filtered=None),
    "channels": Shown(results=NOISE[:3]),
    "channels of an explained chunk": Shown(results=NOISE[:3], explained={"a": told()}),
    "fused": full(channels={"vector": ["a"], "keyword": ["x1"]}, fused=None, reranked=None),
    "reranked": full(fused=[*NOISE, "a"], reranked=None),
    "results: a step after reranked": full(reranked=["a", *NOISE]),
    "filteredBy": full(explained={"a": told(visible=False)}),
    "filteredBy of a strange reason": full(filtered=[("a", "vector", "REGION")]),
}


@pytest.mark.parametrize("case", NOT_TOLD)
def test_what_is_not_told_is_not_observed_and_names_the_field(tmp_path, case):
    found = lost(tmp_path, NOT_TOLD[case], service={"rerank": "model"})
    assert (found.stage, found.reason) == ("unknown", "NOT_OBSERVED")
    assert found.missing_field == case.partition(" of ")[0]


def test_an_unnamed_filter_is_quoted(tmp_path):
    shown = full(explained={"a": told(visible=False, filtered_by=["REGION"])})
    assert "filtered by REGION" in lost(tmp_path, shown).proof


def test_the_plain_endpoint_knows_only_ranks(tmp_path):
    below = Shown(results=["x1", "x2", "a"])
    found = lost(tmp_path / "below", below, k=2)
    assert (found.reason, found.ranks) == ("RANKED_BELOW_K", {"results": 3})
    twice = Shown(results=["x1", "x1", "a"])
    assert lost(tmp_path / "twice", twice, k=2).reason == "CROWDED_OUT_BY_DUPLICATES"
    gone = lost(tmp_path / "gone", Shown(results=["x1", "x2"]))
    assert gone.reason == "NOT_OBSERVED"
    assert gone.proof == (
        "not in the 2 results; neither the channels' candidates nor /explain were observed"
    )


def test_a_single_channel_stands_for_the_fused_list(tmp_path):
    shown = Shown(channels={"vector": [*NOISE, "a"]}, results=NOISE[:3])
    assert lost(tmp_path / "1", shown).reason == "RANKED_BELOW_K"
    shown = Shown(channels={"vector": [*NOISE, "a"]}, reranked=NOISE, results=NOISE[:3])
    assert lost(tmp_path / "2", shown).reason == "RERANK_DROPPED"


@pytest.mark.parametrize(
    ("service", "results", "reason"),
    [
        ({"rerank": None}, NOISE[:3], "RANKED_BELOW_K"),
        ({"rerank": None}, ["x4", "x3", "x2"], "RANKED_BELOW_K"),
        ({}, NOISE[:3], "RANKED_BELOW_K"),
        ({"service": "s"}, NOISE[:3], "RANKED_BELOW_K"),
        ({}, ["x4", "x3", "x2"], "NOT_OBSERVED"),
        ({"rerank": "model"}, NOISE[:3], "NOT_OBSERVED"),
        ({}, [], "NOT_OBSERVED"),
    ],
)
def test_whether_a_reranker_ran_is_told_or_seen(tmp_path, service, results, reason):
    shown = full(fused=[*NOISE, "a"], reranked=None, results=results)
    assert lost(tmp_path, shown, service=service).reason == reason


def test_a_chunk_alive_in_one_channel_is_not_filtered(tmp_path):
    shown = full(
        channels={"vector": NOISE, "keyword": ["a"]},
        filtered=[("a", "vector", "THRESHOLD")],
        explained={"a": told(filtered_by=["THRESHOLD"], visible=True)},
    )
    assert lost(tmp_path, shown).reason == "FUSION_DROPPED"


def test_a_threshold_in_an_unobserved_channel_may_not_be_all(tmp_path):
    shown = Shown(results=NOISE[:3], filtered=[("a", "vector", "THRESHOLD")])
    assert lost(tmp_path, shown).missing_field == "channels"


@pytest.mark.parametrize(
    ("ranks", "filtered", "reason"),
    [
        ({"vector": 4}, None, "BELOW_THRESHOLD"),
        ({"vector": 5}, None, "NOT_IN_CANDIDATES"),
        ({"vector": 4}, [], "NOT_OBSERVED"),
    ],
)
def test_explain_shows_a_threshold_only_within_the_candidates(tmp_path, ranks, filtered, reason):
    said = told(visible=True, filtered_by=["THRESHOLD"], ranks=ranks)
    shown = full(filtered=filtered, explained={"a": said})
    assert lost(tmp_path, shown, candidate_k=4).reason == reason


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"ranks": {"vector": 4, "keyword": None}}, "REWRITE_DRIFT"),
        ({"ranks": {"vector": 5, "keyword": None}}, "NOT_IN_CANDIDATES"),
        ({"ranks": {"vector": None, "fused": 1}}, "NOT_IN_CANDIDATES"),
        ({"ranks": None}, "NOT_OBSERVED"),
        (
            {"ranks": {"vector": 1}, "filtered_by": ["THRESHOLD"], "visible": True},
            "NOT_IN_CANDIDATES",
        ),
    ],
)
def test_a_rewrite_is_at_fault_only_where_the_question_would_have_found_it(tmp_path, said, reason):
    shown = full(rewritten="别的", explained={"a": told(**said)})
    assert lost(tmp_path, shown, candidate_k=4).reason == reason


@pytest.mark.parametrize(
    ("ranks", "reason", "missing"),
    [
        ({"vector": 4}, "REWRITE_DRIFT", None),
        ({"vector": 5}, "NOT_OBSERVED", "candidateK"),
        ({"vector": None}, "NOT_IN_CANDIDATES", None),
        (None, "NOT_OBSERVED", "ranks"),
    ],
)
def test_without_candidate_k_the_longest_channel_is_how_many_there_were_at_least(
    tmp_path, ranks, reason, missing
):
    found = lost(tmp_path, full(rewritten="别的", explained={"a": told(ranks=ranks)}))
    assert (found.reason, found.missing_field) == (reason, missing)
    assert "candidate K is not told" in found.proof


@pytest.mark.parametrize(
    ("rewrite", "missing"),
    [(False, "channels: a step before their cut"), (None, "rewrittenQuery")],
)
def test_a_rank_within_the_candidates_contradicts_channels_without_it(tmp_path, rewrite, missing):
    shown = full(explained={"a": told(ranks={"vector": 2})})
    found = lost(tmp_path, shown, candidate_k=4, rewrite=rewrite)
    assert (found.reason, found.missing_field) == ("NOT_OBSERVED", missing)
    assert found.proof.endswith("candidate K = 4: the trace does not tell why")


def test_what_a_filter_kept_out_was_there(tmp_path):
    """`/explain` was asked later, when the document was gone; the trace goes before it."""
    shown = full(filtered=[("a", "vector", "ACL")], explained={"a": told("missing")})
    assert lost(tmp_path, shown).reason == "ACL_FILTERED_EXPECTED_CHUNK"


def test_an_unpublished_document_is_not_there_whatever_else_filters_it(tmp_path):
    shown = full(
        filtered=[("a", "vector", "STATUS")],
        explained={"a": told("unpublished", filtered_by=["STATUS", "ACL"])},
    )
    assert lost(tmp_path, shown).reason == "KNOWLEDGE_UNPUBLISHED"


@pytest.mark.parametrize(
    ("reasons", "code"),
    [
        (["VERSION", "ACL"], "ACL_FILTERED_EXPECTED_CHUNK"),
        (["ACL", "TENANT"], "TENANT_FILTERED"),
        (["THRESHOLD", "EFFECTIVE_TIME"], "EFFECTIVE_TIME_FILTERED"),
    ],
)
def test_of_several_filters_the_one_that_decides_first_is_named(tmp_path, reasons, code):
    assert lost(tmp_path / "1", full(explained={"a": told(filtered_by=reasons)})).reason == code
    entries = [("a", "vector", reason) for reason in reasons]
    assert lost(tmp_path / "2", full(filtered=entries)).reason == code


def test_a_group_is_judged_by_its_chunk_that_got_furthest(tmp_path):
    shown = full(
        groups=[["gone", "a", "hidden"]],
        channels={"vector": [*NOISE, "a"], "keyword": []},
        explained={"gone": told("missing"), "hidden": told(filtered_by=["ACL"])},
    )
    found = lost(tmp_path, shown)
    assert (found.reason, found.chunk_id) == ("FUSION_DROPPED", "a")


def test_of_two_that_got_as_far_the_better_rank_stands(tmp_path):
    shown = full(groups=[["a", "b"]], reranked=[*NOISE, "b", "a"])
    found = lost(tmp_path, shown)
    assert (found.chunk_id, found.proof) == (
        "b",
        "rank 5 of reranked, K = 3; beyond K since a stage that was not observed",
    )
    assert found.ranks["reranked"] == 5


def test_a_chunk_that_nobody_explained_may_have_got_further_than_a_filtered_one(tmp_path):
    known = {"a": told(filtered_by=["ACL"])}
    shown = full(groups=[["a", "b"]], explained=known)
    assert lost(tmp_path / "1", shown).reason == "NOT_OBSERVED"
    shown = full(groups=[["a", "b"]], explained={"a": told(ranks={"vector": 60})})
    assert lost(tmp_path / "2", shown).reason == "NOT_IN_CANDIDATES"


def test_ranks_stand_for_every_observed_stage_in_pipeline_order(tmp_path):
    shown = full(
        channels={"vector": [*NOISE, "a"], "keyword": ["a"]},
        fused=[*NOISE, "a"],
        reranked=None,
        context=None,
    )
    found = lost(tmp_path, shown)
    assert list(found.ranks.items()) == [
        ("vector", 5),
        ("keyword", 1),
        ("fused", 5),
        ("results", None),
    ]
    assert (found.last_seen, found.first_missing) == ("fused", "results")


@pytest.mark.parametrize(
    ("shown", "turn"),
    [
        (full(), (None, "vector")),
        (full(channels={"vector": NOISE, "keyword": ["a"]}), ("keyword", "fused")),
        (full(channels={"vector": ["a"], "keyword": ["x1", "a"]}), ("vector", "fused")),
        (full(results=["a"], context=[]), ("results", "context")),
        (full(results=["x1", "x2", "a"], context=["a"]), (None, "vector")),
    ],
)
def test_the_turning_point_is_between_two_observed_stages(tmp_path, shown, turn):
    """With K = 2 the third result is beyond it, and so is the context that it brought."""
    found = lost(tmp_path, shown, k=2)
    assert (found.last_seen, found.first_missing) == turn


def test_a_smaller_k_loses_what_a_greater_one_holds(tmp_path):
    run = saved(tmp_path, Shown(results=["x1", "x2", "a"], context=["x1", "x2", "a"]))
    assert triage(run).cases == ()
    assert triage(run, k=2).case("c0").verdict.reason == "RANKED_BELOW_K"


@pytest.mark.parametrize("k", [0, 4, -1, True, "2", 2.0])
def test_a_k_that_was_not_asked_for_is_an_error(tmp_path, k):
    with pytest.raises(MetricError, match="from 1 to 3"):
        triage(saved(tmp_path, Shown(results=["a"])), k=k)


def test_the_same_text_under_another_id_crowds_out(tmp_path):
    shown = full(reranked=["x1", "twin", "x2", "a"], results=["x1", "twin", "x2"])
    found = lost(tmp_path, shown, texts={"a": "同文\n", "twin": "同文"})
    assert found.reason == "CROWDED_OUT_BY_DUPLICATES"
    assert found.proof == (
        "rank 4 of reranked, K = 3; "
        "without duplicates its text would be at 2, under another id, twin"
    )


@pytest.mark.parametrize("rank", [2, 5])
def test_a_twin_in_the_results_takes_its_place(tmp_path, rank):
    """A service that removes duplicates by text itself, and keeps the twin."""
    reranked = ["twin", "x1", "x1", "x2"]
    reranked.insert(rank - 1, "a")
    shown = full(reranked=reranked, results=["twin", "x1", "x2"])
    found = lost(tmp_path, shown, texts={"a": "同文", "twin": "同文"})
    assert found.reason == "CROWDED_OUT_BY_DUPLICATES"
    assert found.proof.startswith(f"rank {rank} of reranked, K = 3")
    assert found.proof.endswith("its text would be at 1, under another id, twin")


def test_duplicates_that_the_results_do_not_hold_crowd_nothing_out(tmp_path):
    shown = full(reranked=["x1", "x1", "x1", "a"], results=["x1", "x2", "x3"])
    assert lost(tmp_path, shown).reason == "RANKED_BELOW_K"


class TestGroupsWithoutChunks:
    """A passage that no chunk holds: what `/explain` says of the ids that the case expects."""

    def shown(self, n_empty: int = 1, **given: Any) -> Shown:
        groups = [*[()] * n_empty, ("x1",)]
        case = {"mode": "answer", "expected_chunk_ids": ["x1", "s1"]}
        notes = ("missing evidence[0]: document gone is not in the knowledge",)
        return full(**{"groups": groups, "given": case, "resolved": {"notes": notes}, **given})

    @pytest.mark.parametrize(
        ("said", "reason"),
        [
            (told("missing"), "KNOWLEDGE_MISSING"),
            (told("unpublished"), "KNOWLEDGE_UNPUBLISHED"),
            (told(filtered_by=["ACL"]), "ACL_FILTERED_EXPECTED_CHUNK"),
            (told(ranks={"vector": 70}), "NOT_IN_CANDIDATES"),
        ],
    )
    def test_the_expected_id_is_the_suspect(self, tmp_path, said, reason):
        found = lost(tmp_path, self.shown(explained={"s1": said}))
        assert (found.index, found.reason, found.chunk_id) == (0, reason, "s1")

    def test_ids_of_another_chunking_say_nothing(self, tmp_path):
        case = {"mode": "answer", "expected_chunk_ids": ["other", "s1"]}
        shown = self.shown(given=case, explained={"s1": told("missing")})
        assert lost(tmp_path, shown).reason == "NOT_OBSERVED"

    def test_as_many_suspects_as_empty_groups_are_paired(self, tmp_path):
        case = {"mode": "answer", "expected_chunk_ids": ["s1", "x1", "s2"]}
        said = {"s1": told("missing"), "s2": told(filtered_by=["ACL"])}
        found = verdict(tmp_path, self.shown(2, given=case, explained=said))
        assert [group.chunk_id for group in found.groups] == ["s1", "s2"]
        assert (found.reason, found.groups[1].stage) == ("KNOWLEDGE_MISSING", "filter")

    def test_without_a_suspect_only_a_service_that_hides_nothing_tells(self, tmp_path):
        case = {"mode": "answer", "expected_chunk_ids": ["x1"]}
        shown = self.shown(given=case)
        found = lost(tmp_path / "hidden", shown, service={"chunks": {"total": 9, "visible": 8}})
        assert (found.reason, found.missing_field) == ("NOT_OBSERVED", "explain")
        assert "missing or filtered: not visible to this token" in found.proof
        assert "expected_chunk_ids would let /explain decide" in found.proof
        found = lost(tmp_path / "all", shown, service={"chunks": {"total": 9, "visible": 9}})
        assert (found.reason, found.chunk_id) == ("KNOWLEDGE_MISSING", None)
        assert "document gone is not in the knowledge" in found.proof

    def test_a_suspect_that_came_back_is_no_lost_knowledge(self, tmp_path):
        shown = self.shown(results=["s1", "x1"], context=["s1", "x1"])
        found = lost(tmp_path, shown)
        assert (found.reason, found.missing_field) == ("NOT_OBSERVED", "chunks")
        assert "came back at rank 1" in found.proof


class TestLeaks:
    def test_security_goes_before_lost_evidence_and_a_passed_case(self, tmp_path):
        leak = {"x2": told(filtered_by=["TENANT"])}
        run = saved(
            tmp_path,
            full(explained={**leak, "a": told("missing")}),
            full(groups=[["x1"]], explained=leak),
        )
        result = triage(run)
        assert [case.verdict.reason for case in result.cases] == ["TENANT_LEAK"] * 2
        first, second = result.to_dict()
        assert [group["reason"] for group in first["groups"]] == ["KNOWLEDGE_MISSING"]
        assert second["groups"] == []
        assert second["group"] == "security"

    def test_the_gravest_leak_stands_first(self, tmp_path):
        explained = {
            "x1": told(filtered_by=["VERSION"]),
            "x2": told(filtered_by=["VERSION", "ACL"]),
            "x3": told(filtered_by=["TENANT"]),
        }
        found = verdict(tmp_path, full(groups=[], explained=explained, forbidden=["x1", "x4"]))
        assert [leak.reason for leak in found.leaks] == [
            "TENANT_LEAK",
            "ACL_LEAK",
            "STALE_VERSION_LEAK",
        ]

    @pytest.mark.parametrize("state", ["unpublished", "retired"])
    def test_a_document_that_is_not_published_is_stale_without_a_reason(self, tmp_path, state):
        shown = full(groups=[], explained={"x1": told(state)})
        assert verdict(tmp_path, shown).reason == "STALE_VERSION_LEAK"

    def test_an_invisible_chunk_without_a_known_reason_is_beyond_access(self, tmp_path):
        said = told(filtered_by=["REGION"])
        found = verdict(tmp_path, full(groups=[], explained={"x1": said}))
        assert (found.reason, found.leaks[0].position) == ("ACL_LEAK", 1)
        assert "filtered by REGION" in found.proof

    @pytest.mark.parametrize(
        "said", [told(), told(visible=True, filtered_by=["THRESHOLD"]), told("missing")]
    )
    def test_what_is_visible_below_a_threshold_or_gone_since_is_no_leak(self, tmp_path, said):
        result = triage(saved(tmp_path, full(groups=[], explained={"x1": said})))
        assert (result.cases, len(result.unjudged)) == ((), 1)

    def test_context_and_citations_leak_too(self, tmp_path):
        leak = {name: told(filtered_by=["ACL"]) for name in ("c", "d")}
        shown = full(groups=[], context=["x1", "c"], citations=["x1", "d"], explained=leak)
        places = [(leak.where, leak.position) for leak in verdict(tmp_path, shown).leaks]
        assert places == [("context", 2), ("citations", 2)]

    def test_beyond_k_nothing_leaks(self, tmp_path):
        shown = full(groups=[], forbidden=["x3"])
        run = saved(tmp_path, shown)
        assert triage(run, k=2).cases == ()
        assert triage(run, k=3).case("c0").verdict.reason == "FORBIDDEN_RETRIEVED"

    def test_a_drifted_case_is_watched_but_not_judged(self, tmp_path):
        drifted = {"excluded": "drifted: evidence[0]"}
        shown = full(resolved=drifted, forbidden=["x1"])
        assert verdict(tmp_path / "1", shown).groups == ()
        result = triage(saved(tmp_path / "2", full(resolved=drifted)))
        assert result.unjudged == (("c0", "drifted: evidence[0]"),)


class TestRepeats:
    def test_a_case_is_what_most_of_its_failed_repeats_are(self, tmp_path):
        passed, ranked = full(groups=[["x1"]]), full(groups=[["x1"]], results=["x2", "x3", "x4"])
        dropped = full(groups=[["x1"]], results=[], fused=["x2"], reranked=[])
        run = saved(tmp_path, [passed, dropped, ranked, ranked], service={"rerank": "m"})
        (case,) = triage(run).cases
        assert (case.n_failed, case.n_repeats, case.unstable) == (3, 4, True)
        assert case.counts == {
            ("unknown", "NOT_OBSERVED"): 2,
            ("fusion", "FUSION_DROPPED"): 1,
        }
        assert case.verdict.repeat == 3

    def test_of_equals_the_earliest_stage_and_a_leak_before_all(self, tmp_path):
        rank = full(reranked=[*NOISE, "a"])
        missing = full(explained={"a": told("missing")})
        leak = full(groups=[["x1"]], explained={"x2": told(filtered_by=["ACL"])})
        two = triage(saved(tmp_path / "2", [rank, missing])).case("c0")
        assert (two.verdict.reason, two.unstable) == ("KNOWLEDGE_MISSING", True)
        leaking = [replaced(leak, rank), rank, rank]
        three = triage(saved(tmp_path / "3", leaking)).case("c0")
        assert (three.verdict.reason, three.verdict.repeat) == ("ACL_LEAK", 1)

    def test_the_same_failure_in_all_repeats_is_stable(self, tmp_path):
        rank = full(reranked=[*NOISE, "a"])
        (case,) = triage(saved(tmp_path, [rank, rank])).cases
        assert not case.unstable

    def test_a_failed_call_is_no_finding_and_no_pass(self, tmp_path):
        broken, right = Shown(error="503"), Shown(results=["a"])
        run = saved(tmp_path, [right, broken], [full(), broken], [right, right])
        result = triage(run)
        assert result.errors == (("c0", "503"),)
        assert (result.n_cases, result.n_passed, result.n_errors) == (3, 1, 1)
        (failed,) = result.cases
        assert (failed.case_id, failed.n_repeats) == ("c1", 1)


def replaced(shown: Shown, base: Shown) -> Shown:
    """A repeat of the same case that shows the leak of another."""
    return Shown(**{**vars(base), "explained": shown.explained})


def test_the_earliest_known_group_stands_for_the_case(tmp_path):
    explained = {"b": told(filtered_by=["ACL"]), "c": told("missing")}
    shown = full(groups=[["a"], ["b"], ["c"], ["x4"]], explained=explained)
    found = verdict(tmp_path, shown)
    assert [group.reason for group in found.groups] == [
        "NOT_OBSERVED",
        "ACL_FILTERED_EXPECTED_CHUNK",
        "KNOWLEDGE_MISSING",
        "RANKED_BELOW_K",
    ]
    assert found.reason == "KNOWLEDGE_MISSING"
    assert found.proof == "/explain: missing, and its text is nowhere else"


def test_the_package_is_the_function_that_people_type(tmp_path):
    """Importing anything below `ragwb.triage` makes `rw.triage` the package."""
    run = saved(tmp_path, Shown(results=["x1", "a"]))
    assert rw.triage(run, k=1).to_dict() == triage(run, k=1).to_dict()
    assert rw.triage(run).cases == ()
    assert rw.triage.reasons.REASONS is REASONS


def test_a_case_is_asked_for_by_id_or_told_where_it_is(tmp_path):
    run = saved(
        tmp_path,
        full(),
        Shown(results=["a"]),
        full(groups=[]),
        Shown(error="503"),
        full(given={"tier": "retired"}, resolved={"excluded": "tier retired"}),
    )
    result = triage(run)
    assert result.case("c0").verdict.reason == "NOT_OBSERVED"
    for case_id, why in {
        "c1": "passed at K = 3",
        "c2": "not judged: no evidence groups",
        "c3": "its call failed: 503",
        "c4": "not asked in this run",
        "c9": "no case of this run",
    }.items():
        with pytest.raises(UsageError, match=why):
            result.case(case_id)
