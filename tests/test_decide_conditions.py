from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwb.decide.conditions import NAMES, RULES, Conditions, conditions
from ragwb.runs.manifest import ASIDE, RunManifest, diff_manifests

CHUNKING = {"strategy": "heading", "version": "1", "size": 200, "overlap": 0}
BASE = RunManifest(
    run_id="r1",
    created_at="2026-11-30T08:00:00+00:00",
    base_url="http://a",
    dataset_version="v1",
    dataset_hash="a" * 64,
    knowledge_snapshot="s" * 64,
    index_version="i1",
    embedding_model="e5",
    embedding_dimensions=384,
    distance="cosine",
    chunking=CHUNKING,
    candidate_k=50,
    top_k=5,
    keyword=False,
    rewrite=False,
    fusion={"method": "rrf", "k": 10, "weights": {"vector": 1.0}},
    rerank="maxsim, e5",
    service="reference 0.1.0",
    packages={"python": "3.11", "pandas": "3.0"},
    repeats=1,
)
NOTHING = RunManifest(
    run_id="r0",
    created_at="2026-11-30T08:00:00+00:00",
    base_url=None,
    dataset_version="v1",
    dataset_hash="a" * 64,
    top_k=5,
    packages=BASE.packages,
    repeats=1,
)


def changed(**given: object) -> RunManifest:
    return BASE.model_copy(update=given)


def between(**given: object) -> Conditions:
    return conditions(BASE, changed(**given))


def names(found: Conditions) -> list[str]:
    return [factor.name for factor in found.factors]


def test_one_leaf_is_isolated_whatever_follows_from_it() -> None:
    found = between(
        chunking={**CHUNKING, "size": 400, "version": "size-400"}, index_version="i2", run_id="r2"
    )
    assert found.sentence == "this comparison isolates chunk size (200 → 400)"
    assert not found.confounded
    assert [change.field for change in found.changes] == ["index_version", "chunking"]
    assert {aside.name: aside.reason for aside in found.follows} == {
        "index_version": "follows chunk size: an index is built from it",
        "chunking.version": "follows chunk size: it names how documents are cut",
    }


def test_several_factors_are_named_and_none_is_credited() -> None:
    found = between(chunking={**CHUNKING, "size": 400}, embedding_model="m3", rerank="maxsim, m3")
    assert found.confounded
    assert found.sentence == (
        "confounded: embedding model (e5 → m3) and chunk size (200 → 400) both changed; "
        "no figure here can be credited to one of them"
    )
    assert names(found) == ["embedding_model", "chunking.size"]


def test_three_factors_all_changed() -> None:
    found = between(candidate_k=20, keyword=True, context_budget_tokens=3000)
    assert found.sentence.startswith("confounded: candidate K (50 → 20), keyword search (off → on)")
    assert "differ; no figure" in found.sentence  # the baseline says no budget: it may be the same
    assert "context budget (not said by the baseline → 3000)" in found.sentence
    both = between(candidate_k=20, top_k=9, temperature=None, rerank=None)
    assert " all changed; " in both.sentence


def test_nothing_changed() -> None:
    again = changed(run_id="r2", created_at="later", base_url="http://b", content_hash="x")
    found = conditions(BASE, again)
    assert found == Conditions()
    assert found.sentence == "nothing that the manifests name changed"
    assert found.rows() == []


@pytest.mark.parametrize("missing", [None, NOTHING])
def test_a_side_that_names_no_setting_hides_what_changed(missing: RunManifest | None) -> None:
    before, after = conditions(missing, BASE), conditions(BASE, missing)
    assert before.sentence.startswith("not said by the baseline: how the service was set")
    assert after.sentence.startswith("not said by the candidate: how the service was set")
    assert before.factors == after.factors == ()
    assert not before.confounded
    assert "isolates" not in before.sentence + after.sentence
    both = conditions(missing, missing)
    assert both.sentence.startswith("not said by the baseline nor by the candidate")


def test_what_both_say_is_named_beside_a_silent_side() -> None:
    found = conditions(NOTHING, changed(top_k=10))
    assert found.sentence.endswith("; besides, top K (5 → 10) changed")
    assert names(found) == ["top_k"]


def test_one_setting_that_a_side_does_not_say_is_not_isolated() -> None:
    found = conditions(changed(candidate_k=None), BASE)
    assert found.sentence == (
        "candidate K may have changed (not said by the baseline → 50); "
        "nothing else that the manifests name did"
    )


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"rerank": None}, "this comparison isolates reranker (maxsim, e5 → none)"),
        ({"threshold": 0.3}, "this comparison isolates score threshold (none → 0.3)"),
        ({"keyword": True}, "this comparison isolates keyword search (off → on)"),
        ({"rewrite": "hyde"}, "this comparison isolates query rewriting (off → hyde)"),
        (
            {"fusion": {"method": "rrf", "k": 60, "weights": {"vector": 1.0}}},
            "this comparison isolates fusion constant (10 → 60)",
        ),
        (
            {"fusion": None},
            '(method rrf, k 10, weights {"vector": 1.0} → none)',
        ),
        (
            {"fusion": {**(BASE.fusion or {}), "odd\nname_\x1b[1m": {"a": 1}}},
            "this comparison isolates fusion odd name (none → a 1)",
        ),
        ({"index_version": "i2"}, "this comparison isolates index (i1 → i2)"),
        (
            {"packages": {"python": "3.11", "pandas": "3.1"}},
            "this comparison isolates packages of the workbench (pandas 3.0 → pandas 3.1)",
        ),
        (
            {"knowledge_snapshot": "t" * 64},
            "this comparison isolates knowledge (ssssssssssss → tttttttttttt)",
        ),
        ({"rerank": "a\nb\x1b[31m\u202e"}, "isolates reranker (maxsim, e5 → a b⟨U+202E⟩)"),
    ],
)
def test_values_in_words(given: dict[str, object], sentence: str) -> None:
    assert between(**given).sentence.endswith(sentence)


@pytest.mark.parametrize(
    ("given", "factors", "follows"),
    [
        # A second channel is what makes lists to be fused.
        (
            {
                "keyword": True,
                "fusion": {"method": "rrf", "k": 10, "weights": {"vector": 1.0, "keyword": 0.5}},
            },
            ["keyword"],
            ["fusion.weights.keyword"],
        ),
        # A weight that changed beside it is a change of its own.
        (
            {
                "keyword": True,
                "fusion": {"method": "rrf", "k": 10, "weights": {"vector": 2.0, "keyword": 0.5}},
            },
            ["keyword", "fusion.weights.vector"],
            ["fusion.weights.keyword"],
        ),
        ({"fusion": None}, ["fusion"], []),
        ({"fusion": None, "keyword": True}, ["keyword"], ["fusion"]),
        (
            {
                "embedding_model": "m3",
                "embedding_dimensions": 512,
                "distance": "dot",
                "index_version": "i2",
                "rerank": "maxsim, m3",
            },
            ["embedding_model"],
            ["index_version", "embedding_dimensions", "distance", "rerank"],
        ),
        # Another reranker besides another model is a factor, though it names the model.
        ({"embedding_model": "m3", "rerank": "cross, m3"}, ["embedding_model", "rerank"], []),
        ({"embedding_dimensions": 256}, ["embedding_dimensions"], []),
        (
            {"knowledge_snapshot": "t", "index_version": "i2"},
            ["knowledge_snapshot"],
            ["index_version"],
        ),
        ({"chunking": {**CHUNKING, "version": "2"}}, ["chunking.version"], []),
        (
            {"chunking": {"strategy": "fixed", "version": "2", "size": None, "overlap": 0}},
            ["chunking.strategy"],
            ["chunking.version", "chunking.size"],
        ),
        ({"chunking": None}, ["chunking"], []),
        ({"service": "reference 0.2.0", "code_version": "c2"}, ["service"], ["code_version"]),
        ({"code_version": "c2"}, ["code_version"], []),
        (
            {"answer_model": "m", "prompt_version": "p", "temperature": 0.0},
            ["answer_model"],
            ["prompt_version", "temperature"],
        ),
        (
            {"identity": {"tenant": "a", "subject": "b", "departments": ["c"]}},
            ["identity"],
            [],
        ),
    ],
)
def test_what_follows_from_a_change_is_no_factor(
    given: dict[str, object], factors: list[str], follows: list[str]
) -> None:
    found = between(**given)
    assert names(found) == factors
    assert [aside.name for aside in found.follows] == follows


def test_a_prompt_besides_another_model_is_a_factor() -> None:
    before = changed(answer_model="a", prompt_version="p1", temperature=0.0)
    after = changed(answer_model="b", prompt_version="p2", temperature=0.0)
    assert names(conditions(before, after)) == ["answer_model", "prompt_version"]


def test_another_golden_set_is_no_factor() -> None:
    found = between(dataset_version="v2", dataset_hash="b" * 64, candidate_k=20)
    assert found.sentence == "this comparison isolates candidate K (50 → 20)"
    assert [row["note"] for row in found.rows()] == [
        "changed",
        "only the cases common to both golden sets are compared",
        "only the cases common to both golden sets are compared",
    ]
    assert len(found.changes) == 3


def test_every_field_that_may_change_has_plain_words() -> None:
    assert set(RunManifest.model_fields) - ASIDE <= set(NAMES)
    assert {rule.field for rule in RULES} <= set(NAMES) | {"fusion.rerank"}


VALUES = {
    "chunking": [CHUNKING, {**CHUNKING, "size": 400}, {**CHUNKING, "strategy": "fixed"}, None],
    "embedding_model": ["e5", "m3", None],
    "embedding_dimensions": [384, 512, None],
    "index_version": ["i1", "i2", None],
    "keyword": [True, False, None],
    "fusion": [BASE.fusion, None, {"method": "rrf", "k": 60, "weights": {"keyword": 1.0}}],
    "rerank": ["maxsim, e5", "maxsim, m3", None],
    "answer_model": ["a", None],
    "prompt_version": ["p", "q", None],
    "service": ["reference 0.1.0", "other", None],
}
MANIFESTS = st.fixed_dictionaries({name: st.sampled_from(held) for name, held in VALUES.items()})


@given(MANIFESTS, MANIFESTS)
def test_whatever_differs_is_a_factor_or_set_aside_and_sides_may_be_exchanged(
    one: dict[str, object], other: dict[str, object]
) -> None:
    before, after = changed(**one), changed(**other)
    found, back = conditions(before, after), conditions(after, before)
    assert set(names(found)) == set(names(back))
    assert {a.name for a in found.follows} == {a.name for a in back.follows}
    assert [c.field for c in found.changes] == [c.field for c in diff_manifests(before, after)]
    roots = {row["field"].partition(".")[0] for row in found.rows()}
    if not found.unsaid:
        assert roots == {change.field for change in found.changes}
        # Something must have changed of its own accord before anything can follow from it.
        assert bool(found.factors) == bool(found.changes)
    assert "\n" not in found.sentence
