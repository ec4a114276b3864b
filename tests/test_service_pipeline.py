from __future__ import annotations

import datetime
from pathlib import Path

import pytest
from service_corpus import NOW, make_pipeline, write_corpus, write_document

from ragwb.errors import UsageError
from ragwb.records import Retrieval
from ragwb.service.auth import LOCAL_CALLER
from ragwb.service.explain import explain
from ragwb.service.pipeline import Pipeline, load_rewrite, retrieve
from ragwb.service.visibility import Caller

QUESTION = "退款多久到账"
FINANCE = Caller("f", "starmall", ("finance",), frozenset())


def ask(pipeline: Pipeline, question: str = QUESTION, top_k: int = 5) -> Retrieval:
    return retrieve(pipeline, LOCAL_CALLER, question, top_k, explain=True)


def names(pipeline: Pipeline, reply: Retrieval) -> set[str]:
    index = pipeline.index
    return {_name(pipeline, candidate.chunk_id) for candidate in reply.results} & {
        _name(pipeline, chunk_id) for chunk_id in index.chunk_ids
    }


def _name(pipeline: Pipeline, chunk_id: str) -> str:
    document = pipeline.index.document(pipeline.index.row_of[chunk_id])
    return f"{document.tenant}/{document.document_id}@{document.version}"


def chunk_of(pipeline: Pipeline, name: str) -> str:
    return next(i for i in pipeline.index.chunk_ids if _name(pipeline, i) == name)


def test_only_what_the_caller_may_see_comes_back(tmp_path: Path) -> None:
    pipeline = make_pipeline(tmp_path)
    reply = ask(pipeline, top_k=100)

    assert names(pipeline, reply) == {"starmall/refund@2025.10", "starmall/codes@1"}
    stages = [reply.fused, reply.reranked, *(reply.channels or {}).values()]
    for stage in stages:
        for candidate in stage or []:
            assert _name(pipeline, candidate.chunk_id) in names(pipeline, reply)


def test_another_identity_sees_its_own(tmp_path: Path) -> None:
    pipeline = make_pipeline(tmp_path)
    reply = retrieve(pipeline, FINANCE, QUESTION, 100, explain=False)

    assert "starmall/finance@1" in names(pipeline, reply)
    assert reply.filtered is None


def test_filtered_names_the_first_reason_by_channel(tmp_path: Path) -> None:
    pipeline = make_pipeline(tmp_path)
    found = {
        (_name(pipeline, entry.chunk_id), entry.reason)
        for entry in ask(pipeline).filtered or []
        if entry.channel == "vector"
    }

    assert found == {
        ("starmall/refund@2025.9", "VERSION"),
        ("starmall/finance@1", "ACL"),
        ("yunshang/refund@1", "TENANT"),
        ("starmall/draft@1", "STATUS"),
        ("starmall/withdrawn@1", "STATUS"),
        ("starmall/future@1", "EFFECTIVE_TIME"),
    }


def test_filtered_holds_what_would_stand_in_the_first_candidates(tmp_path: Path) -> None:
    wide, narrow = make_pipeline(tmp_path), make_pipeline(tmp_path, candidate_k=2)
    unfiltered = [entry.chunk_id for entry in ask(wide).filtered or [] if entry.channel == "vector"]
    first = [entry.chunk_id for entry in ask(narrow).filtered or [] if entry.channel == "vector"]

    assert len(first) <= 2
    assert first == unfiltered[: len(first)]
    # The filters come before the cut: they never shorten the list of candidates.
    assert len((ask(narrow).channels or {})["vector"]) == 2


def test_a_threshold_takes_from_the_vector_channel_and_says_so(tmp_path: Path) -> None:
    everything = (ask(make_pipeline(tmp_path)).channels or {})["vector"]
    cut = everything[0].score
    pipeline = make_pipeline(tmp_path, threshold=cut)
    reply = ask(pipeline)

    assert [c.chunk_id for c in (reply.channels or {})["vector"]] == [everything[0].chunk_id]
    below = {entry.chunk_id for entry in reply.filtered or [] if entry.reason == "THRESHOLD"}
    assert below == {candidate.chunk_id for candidate in everything[1:]}
    assert (reply.channels or {})["keyword"]


@pytest.mark.parametrize(
    ("mode", "channels"),
    [("VECTOR", ["vector"]), ("KEYWORD", ["keyword"]), ("HYBRID", ["vector", "keyword"])],
)
def test_a_mode_shows_its_channels_only(mode: str, channels: list[str], tmp_path: Path) -> None:
    reply = ask(make_pipeline(tmp_path, mode=mode, rerank=False))

    assert list(reply.channels or {}) == channels
    assert {entry.channel for entry in reply.filtered or []} <= set(channels)
    if len(channels) == 1:
        in_channel = [c.chunk_id for c in (reply.channels or {})[channels[0]]]
        assert [c.chunk_id for c in reply.fused or []] == in_channel


def test_without_a_reranker_the_fused_list_counts(tmp_path: Path) -> None:
    reply = ask(make_pipeline(tmp_path, rerank=False), top_k=2)

    assert reply.reranked is None
    assert [c.chunk_id for c in reply.results] == [c.chunk_id for c in reply.fused or []][:2]


def test_with_a_reranker_its_list_counts(tmp_path: Path) -> None:
    reply = ask(make_pipeline(tmp_path, rerank_weight=1.0), top_k=2)

    reranked = [c.chunk_id for c in reply.reranked or []]
    assert sorted(reranked) == sorted(c.chunk_id for c in reply.fused or [])
    assert [c.chunk_id for c in reply.results] == reranked[:2]


def test_keyword_alone_calls_no_model(tmp_path: Path) -> None:
    assert ask(make_pipeline(tmp_path, mode="KEYWORD", rerank=False)).model_calls == 0
    assert ask(make_pipeline(tmp_path, mode="KEYWORD", rerank=True)).model_calls == 1
    assert ask(make_pipeline(tmp_path)).model_calls == 1


def test_every_stage_is_timed(tmp_path: Path) -> None:
    stages = ask(make_pipeline(tmp_path)).timings_ms or {}

    assert set(stages) == {
        "embedding", "vector", "keyword", "filter", "fusion", "rerank", "context", "total",
    }  # fmt: skip
    assert sum(ms for name, ms in stages.items() if name != "total") <= stages["total"] + 0.01


def test_context_is_the_longest_start_that_fits(tmp_path: Path) -> None:
    whole = ask(make_pipeline(tmp_path))
    ids = [candidate.chunk_id for candidate in whole.results]
    index = make_pipeline(tmp_path).index
    sizes = [int(index.tokens_of[index.row_of[chunk_id]]) for chunk_id in ids]

    assert whole.context == ids
    for budget, kept in ((sum(sizes[:2]), 2), (sum(sizes[:2]) - 1, 1), (sizes[0] - 1, 0)):
        reply = ask(make_pipeline(tmp_path, context_budget_tokens=budget))
        assert reply.context == ids[:kept]
        assert reply.tokens is not None
        assert reply.tokens.context == sum(sizes[:kept])
        assert [candidate.chunk_id for candidate in reply.results] == ids


def test_time_is_the_servers_and_read_in_its_zone(tmp_path: Path) -> None:
    eve = datetime.datetime(2030, 12, 31, 16, 30, tzinfo=datetime.UTC)
    in_utc = make_pipeline(tmp_path, now=eve)
    in_china = make_pipeline(tmp_path, now=eve, timezone="Asia/Shanghai")

    assert ask(in_utc).effective_at == "2030-12-31T16:30:00Z"
    assert "starmall/future@1" not in names(in_utc, ask(in_utc, top_k=100))
    assert "starmall/future@1" in names(in_china, ask(in_china, top_k=100))


def test_the_same_question_gives_the_same_lists(tmp_path: Path) -> None:
    pipeline = make_pipeline(tmp_path)
    changing = {"trace_id", "timings_ms"}

    first, second = (ask(pipeline).model_dump(exclude=changing) for _ in range(2))
    assert first == second
    assert ask(pipeline).trace_id != ask(pipeline).trace_id


def test_a_rewriter_changes_what_is_searched(tmp_path: Path) -> None:
    plain = ask(make_pipeline(tmp_path), "E-1047")
    pipeline = make_pipeline(tmp_path, rewrite=lambda _question: "E-1047")
    reply = ask(pipeline, "那个代码")

    assert reply.rewritten_query == "E-1047"
    assert [c.chunk_id for c in reply.results] == [c.chunk_id for c in plain.results]
    assert "rewrite" in (reply.timings_ms or {})


@pytest.mark.parametrize("answer", [None, "", "  ", QUESTION])
def test_a_rewriter_that_leaves_the_question_is_no_rewriting(
    answer: str | None, tmp_path: Path
) -> None:
    assert ask(make_pipeline(tmp_path, rewrite=lambda _question: answer)).rewritten_query is None


def test_a_rewriter_is_found_by_its_name() -> None:
    rewrite = load_rewrite("textwrap:dedent")

    assert rewrite is not None
    assert rewrite("  a") == "a"
    assert load_rewrite(None) is None


@pytest.mark.parametrize("name", ["textwrap", "textwrap:none", "no_such:f", ":f", "math:pi"])
def test_a_rewriter_that_is_not_there_is_named(name: str) -> None:
    with pytest.raises(UsageError, match=f"rewrite '{name}'"):
        load_rewrite(name)


def test_explain_tells_state_reasons_and_visibility(tmp_path: Path) -> None:
    pipeline = make_pipeline(tmp_path)
    expected = {
        "starmall/refund@2025.10": ("published", True, []),
        "starmall/refund@2025.9": ("published", False, ["VERSION"]),
        "starmall/finance@1": ("published", False, ["ACL"]),
        "yunshang/refund@1": ("published", False, ["TENANT"]),
        "starmall/draft@1": ("unpublished", False, ["STATUS"]),
        "starmall/withdrawn@1": ("retired", False, ["STATUS"]),
        "starmall/future@1": ("published", False, ["EFFECTIVE_TIME"]),
    }
    asked = [chunk_of(pipeline, name) for name in expected]
    found = explain(pipeline, LOCAL_CALLER, QUESTION, asked)

    assert [entry.chunk_id for entry in found] == asked
    assert [(e.state, e.visible, e.filtered_by) for e in found] == list(expected.values())


def test_explain_of_an_unknown_id(tmp_path: Path) -> None:
    pipeline = make_pipeline(tmp_path)
    known = chunk_of(pipeline, "starmall/codes@1")
    found = explain(pipeline, LOCAL_CALLER, QUESTION, ["chunk-none", known, "chunk-none"])

    assert [entry.state for entry in found] == ["missing", "published", "missing"]
    assert found[0].moved_to == []
    assert found[0].visible is False
    assert found[0].ranks == dict.fromkeys(["vector", "keyword", "fused", "reranked"])


def test_explain_ranks_what_is_visible_as_retrieve_does_without_the_cut(tmp_path: Path) -> None:
    wide = make_pipeline(tmp_path)
    reply = ask(wide)
    narrow = make_pipeline(tmp_path, candidate_k=1, threshold=0.99)
    ids = [candidate.chunk_id for candidate in reply.fused or []]
    found = explain(narrow, LOCAL_CALLER, QUESTION, ids)

    lists = {**(reply.channels or {}), "fused": reply.fused, "reranked": reply.reranked}
    for entry in found:
        for stage, candidates in lists.items():
            order = [candidate.chunk_id for candidate in candidates or []]
            rank = order.index(entry.chunk_id) + 1 if entry.chunk_id in order else None
            assert entry.ranks[stage] == rank
        assert entry.visible is True
        assert entry.filtered_by == ["THRESHOLD"]


def test_explain_ranks_a_hidden_chunk_as_if_it_alone_were_let_in(tmp_path: Path) -> None:
    pipeline = make_pipeline(tmp_path, mode="VECTOR", rerank=False)
    hidden = chunk_of(pipeline, "starmall/draft@1")
    visible = [candidate.chunk_id for candidate in (ask(pipeline).channels or {})["vector"]]
    query = pipeline.embedder.query(QUESTION)
    scores = (pipeline.index.vectors @ query).tolist()
    score = dict(zip(pipeline.index.chunk_ids, scores, strict=True))
    better = sum(score[chunk_id] > score[hidden] for chunk_id in visible)

    found = explain(pipeline, LOCAL_CALLER, QUESTION, [hidden, *visible])
    assert found[0].ranks["vector"] == better + 1
    assert [entry.ranks["vector"] for entry in found[1:]] == [*range(1, len(visible) + 1)]
    assert found[0].ranks["reranked"] is None


def test_explain_names_where_the_text_went(tmp_path: Path) -> None:
    before = make_pipeline(tmp_path)
    old = chunk_of(before, "starmall/codes@1")
    path = tmp_path / "corpus" / "codes.md"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('version: "1"', 'version: "2"'), encoding="utf-8")
    after = make_pipeline(tmp_path)

    (entry,) = explain(after, LOCAL_CALLER, QUESTION, [old])
    assert entry.state == "missing"
    assert entry.moved_to == [chunk_of(after, "starmall/codes@2")]


def test_explain_names_no_draft_as_a_place_where_text_went(tmp_path: Path) -> None:
    before = make_pipeline(tmp_path)
    old = chunk_of(before, "starmall/codes@1")
    path = tmp_path / "corpus" / "codes.md"
    text = path.read_text(encoding="utf-8").replace('version: "1"', 'version: "2"')
    path.write_text(text.replace("published", "unpublished"), encoding="utf-8")

    (entry,) = explain(make_pipeline(tmp_path), LOCAL_CALLER, QUESTION, [old])
    assert entry.moved_to == []


def test_explain_tells_nothing_of_another_tenants_chunk_but_its_tenant(tmp_path: Path) -> None:
    write_corpus(tmp_path / "corpus")
    body = "# 退款\n\n退款审核通过后三天到账。\n"
    for name, status in (("secret", "unpublished"), ("open", "published"), ("copy", "published")):
        write_document(tmp_path / "corpus", name, body, tenant="yunshang", status=status)
    pipeline = make_pipeline(tmp_path, threshold=0.99)
    asked = [chunk_of(pipeline, f"yunshang/{name}@1") for name in ("secret", "open")]

    for entry in explain(pipeline, LOCAL_CALLER, QUESTION, asked):
        assert (entry.state, entry.moved_to) == ("published", [])
        assert (entry.visible, entry.filtered_by) == (False, ["TENANT"])
        assert entry.ranks == dict.fromkeys(["vector", "keyword", "fused", "reranked"])


def test_explain_does_not_say_where_another_tenants_text_went(tmp_path: Path) -> None:
    before = make_pipeline(tmp_path)
    old = chunk_of(before, "yunshang/refund@1")
    path = tmp_path / "corpus" / "other-tenant.md"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('version: "1"', 'version: "2"'), encoding="utf-8")

    (entry,) = explain(make_pipeline(tmp_path), LOCAL_CALLER, QUESTION, [old])
    assert (entry.state, entry.moved_to) == ("missing", [])


def test_explain_ranks_an_id_once_however_often_it_is_asked(tmp_path: Path) -> None:
    pipeline = make_pipeline(tmp_path)
    hidden, seen = (chunk_of(pipeline, f"starmall/{name}@1") for name in ("draft", "codes"))
    found = explain(pipeline, LOCAL_CALLER, QUESTION, [hidden, seen, hidden, "chunk-none", hidden])

    assert [e.chunk_id for e in found] == [hidden, seen, hidden, "chunk-none", hidden]
    assert found[0] is found[2] is found[4]


def test_explain_never_rewrites(tmp_path: Path) -> None:
    plain = make_pipeline(tmp_path)
    rewriting = make_pipeline(tmp_path, rewrite=lambda _question: "E-1047")
    asked = list(plain.index.chunk_ids)

    assert explain(rewriting, LOCAL_CALLER, QUESTION, asked) == explain(
        plain, LOCAL_CALLER, QUESTION, asked
    )


def test_the_clock_is_asked_for_every_question(tmp_path: Path) -> None:
    assert ask(make_pipeline(tmp_path, now=NOW)).effective_at == "2026-11-30T08:00:00Z"
