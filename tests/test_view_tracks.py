"""The way of each chunk through the stages: its ranks, and the stage that misses it for good."""

import pytest
from run_data import case, run
from view_data import case_view, lossy_run, staged_service

from ragwb.view.tracks import cut_to_width, tracks


@pytest.fixture(scope="module")
def lossy(tmp_path_factory):
    return lossy_run(tmp_path_factory.mktemp("run"))


def by_label(view):
    return {track.label.split(" ")[0]: track for track in tracks(view) if track.role != "other"}


def test_a_chunk_is_lost_at_the_first_stage_that_misses_it_for_good(lossy):
    found = by_label(case_view(lossy, "c1"))
    assert {number: track.lost_at for number, track in found.items()} == {
        "1": ("fused",),
        "2": ("reranked",),
        "3": ("results",),
    }
    assert found["1"].ranks == {"keyword": 1}
    assert found["3"].ranks == {"keyword": 2, "fused": 5, "reranked": 4}
    assert found["3"].steps == (("keyword",), ("fused",), ("reranked",))


def test_a_chunk_cut_from_the_context_is_lost_there(lossy):
    assert by_label(case_view(lossy, "c2"))["1"].lost_at == ("context",)


def test_a_chunk_in_no_channel_is_lost_at_all_of_them_and_says_what_explain_told(lossy):
    track = by_label(case_view(lossy, "c3"))["1"]
    assert track.lost_at == track.missing_at == ("vector", "keyword")
    assert track.beyond == {"vector": 17}


def test_results_alone_are_enough(lossy):
    found = by_label(case_view(lossy, "c4"))
    assert found["1"].lost_at == ()
    assert found["2"].lost_at == ("results",)


def test_beyond_k_in_the_results_a_chunk_is_there_and_lost(lossy):
    track = by_label(case_view(lossy, "c2", k=1))["1"]
    assert track.lost_at == ("results",)
    assert track.missing_at == ()


def test_forbidden_chunks_have_a_track_where_they_were_seen(lossy):
    found = [t for t in tracks(case_view(lossy, "c5")) if t.role == "forbidden"]
    assert [track.ranks["results"] for track in found] == [1]


def test_others_are_those_of_the_first_k_each_once(lossy):
    view = case_view(lossy, "c3")
    others = [track for track in tracks(view) if track.role == "other"]
    assert [track.ranks["results"] for track in others] == [1]


def test_a_group_without_a_chunk_has_a_track_of_its_own(tmp_path):
    stages = {"q": {"channels": {"vector": ["doc-1"]}, "results": ["doc-1"]}}
    evidence = [
        {"any_of": [{"document_id": "doc", "quote": "doc-1"}]},
        {"any_of": [{"document_id": "elsewhere", "quote": "没有"}], "hop": "时限"},
    ]
    given = case(1, question="q", expected_chunk_ids=[], evidence=evidence)
    source = run(tmp_path, staged_service(stages), [given])
    track = by_label(case_view(source, "c1", k=5))["2"]
    assert (track.label, track.ranks, track.lost_at) == ("2 时限", {}, ("vector",))


@pytest.mark.parametrize(
    ("text", "width", "cut"),
    [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("退款政策", 8, "退款政策"), ("退款政策", 7, "退款…")],
)
def test_a_label_is_cut_to_a_width_in_which_chinese_counts_two(text, width, cut):
    assert cut_to_width(text, width) == cut
