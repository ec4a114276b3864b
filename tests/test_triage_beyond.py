"""Since which stage evidence is ranked beyond K: not all of it is the reranker's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from triage_data import Shown, saved

from ragwb.triage.attribute import triage
from ragwb.triage.beyond import beyond_words, count_beyond, fall_beyond, since_of

NOISE = ["x1", "x2", "x3", "x4"]


@pytest.mark.parametrize(
    ("ranks", "since", "words"),
    [
        (
            {"vector": 4, "fused": 7, "reranked": 7, "results": None},
            "fusion",
            "vector 4 → fused 7 → reranked 7: beyond K since fusion; the reranker moved it 7 → 7",
        ),
        (
            {"vector": 28, "fused": 28, "reranked": 29},
            "channel",
            "vector 28 → fused 28 → reranked 29: beyond K since vector; "
            "the reranker moved it 28 → 29",
        ),
        (
            {"vector": 9, "keyword": 3, "fused": 4, "reranked": 8},
            "reranking",
            "keyword 3, vector 9 → fused 4 → reranked 8: beyond K since reranking",
        ),
        (
            {"vector": 9, "keyword": 8, "fused": 10},
            "channel",
            "keyword 8, vector 9 → fused 10: beyond K since every channel",
        ),
        # What came back within K at fusion fell at the reranking.
        (
            {"vector": 9, "fused": 2, "reranked": 6},
            "reranking",
            "vector 9 → fused 2 → reranked 6: beyond K since reranking",
        ),
        (
            {"fused": 3, "results": 6},
            "results",
            "fused 3 → results 6: beyond K since a step before the results",
        ),
        ({"reranked": 6}, "untold", "beyond K since a stage that was not observed"),
        (
            {"vector": None, "fused": 6, "reranked": 6},
            "untold",
            "fused 6 → reranked 6: beyond K since a stage that was not observed",
        ),
        (
            {"vector": 6, "reranked": 9},
            "channel",
            "vector 6 → reranked 9: beyond K since vector; the reranker moved it 6 → 9",
        ),
    ],
)
def test_the_first_stage_after_the_last_within_k(ranks, since, words):
    found = fall_beyond(ranks, k=5)
    assert (found.since, found.words) == (since, words)


@given(
    st.dictionaries(st.sampled_from(["a", "b", "fused", "reranked"]), st.integers(1, 12)),
    st.integers(6, 12),
    st.integers(1, 5),
)
def test_a_stage_that_is_blamed_is_beyond_k_and_so_is_all_after_it(drawn, last, k):
    order = ["a", "b", "fused", "reranked"]
    ranks = {**{name: drawn[name] for name in order if name in drawn}, "results": last}
    since = fall_beyond(ranks, k=k).since
    channels = [ranks[name] for name in ("a", "b") if name in ranks]
    steps = {"channel": min(channels, default=None), "fusion": ranks.get("fused")}
    steps |= {"reranking": ranks.get("reranked"), "results": last}
    held = [(name, rank) for name, rank in steps.items() if rank is not None]
    names = [name for name, _ in held]
    at = names.index(since) if since != "untold" else 0
    assert all(rank > k for _, rank in held[at:])
    if at:
        assert held[at - 1][1] <= k
    else:
        assert since == ("channel" if channels else "untold")


def falls(vector, fused, reranked):
    """A case whose evidence stands at these places of the three lists."""

    def at(rank):
        return [*NOISE[: rank - 1], "a", *NOISE[rank - 1 :]]

    lists = {"channels": {"vector": at(vector), "keyword": []}, "fused": at(fused)}
    return Shown(**lists, reranked=at(reranked), results=NOISE[:2], context=NOISE[:2])


def test_the_cases_of_a_run_are_counted_by_what_put_them_there(tmp_path):
    shown = [falls(4, 4, 4), falls(1, 3, 3), falls(1, 2, 4), falls(3, 3, 3)]
    found = triage(saved(tmp_path, *shown), k=2)
    counts = count_beyond((case.verdict for case in found.cases), k=2)
    assert beyond_words(counts) == (
        "4 ranked beyond K: 2 since a channel, 1 since fusion, 1 since reranking"
    )
    assert found.case("c1").verdict.proof == (
        "rank 3 of reranked, K = 2; vector 1 → fused 3 → reranked 3: beyond K since fusion; "
        "the reranker moved it 3 → 3"
    )
    assert {case.verdict.stage for case in found.cases} == {"rerank"}


def test_what_fails_for_another_reason_is_not_counted(tmp_path):
    found = triage(saved(tmp_path, Shown(results=NOISE[:2])))
    assert since_of(found.cases[0].verdict, k=2) is None
    assert count_beyond((case.verdict for case in found.cases), k=2) == {}
    assert beyond_words({}) == ""
