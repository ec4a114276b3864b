"""Claims and chunks: rates over claims and over answers, and roll-ups."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwb.judge.answers import cited_claims
from ragwb.judge.support import (
    ABSTAIN,
    CONTRADICTED,
    LABELS,
    PARTIAL,
    SUPPORTED,
    UNSUPPORTED,
    JudgedClaim,
    label_claims,
    roll_up,
    shares,
    support_figures,
    support_items,
)

YES, NO = SUPPORTED, UNSUPPORTED


def claim(answer, labels, cited=()):
    return JudgedClaim(answer, "c", labels, cited)


def test_rates_over_claims_and_over_answers_differ():
    claims = [claim("long", {"a": NO}, ("a",))] * 3 + [claim("short", {"a": YES}, ("a",))]
    found = support_figures(claims, ["long", "short", "silent"])
    assert found.unsupported_rate == 0.75
    assert found.unsupported_rate_by_answer == 0.5
    assert found.citation_support == 0.25
    assert found.citation_support_by_answer == 0.5
    assert (found.n_claims, found.n_answers, found.n_without_claims) == (4, 3, 1)


def test_support_of_another_chunk_is_no_support_of_the_citation():
    found = support_figures([claim("a", {"x": YES, "y": NO}, ("y",))], ["a"])
    assert found.unsupported_rate == 0
    assert found.citation_support == 0


def test_a_citation_to_nothing_supports_nothing():
    found = support_figures([claim("a", {"x": YES}, ("[9]",))], ["a"])
    assert found.citation_support == 0


def test_partial_support_is_none_and_counted():
    found = support_figures([claim("a", {"x": PARTIAL, "y": CONTRADICTED}, ("x",))], ["a"])
    assert (found.unsupported_rate, found.citation_support, found.n_partial) == (1, 0, 1)


def test_a_claim_without_citation_is_outside_citation_support():
    found = support_figures([claim("a", {"x": YES})], ["a"])
    assert found.citation_support is None
    assert found.n_cited == 0


def test_what_a_missing_verdict_leaves_open_is_in_no_rate():
    claims = [claim("a", {"x": None, "y": NO}, ("x",)), claim("a", {"x": None, "y": YES}, ("y",))]
    found = support_figures(claims, ["a"])
    assert (found.n_claims, found.n_cited, found.n_unscored) == (1, 1, 1)
    assert (found.unsupported_rate, found.citation_support) == (0, 1)


def test_nothing_has_no_rate():
    found = support_figures([], [])
    assert found.unsupported_rate is found.citation_support is None
    assert found.unsupported_rate_by_answer is None


def test_each_claim_is_asked_with_each_chunk_and_comes_back():
    claims = {"到账要 3 天": ("c1",), "周末除外": ()}
    items = support_items("case", claims, {"c1": "一", "c2": "二"}, {"d": "x"})
    assert [item.material["claim"] for item in items] == ["到账要 3 天"] * 2 + ["周末除外"] * 2
    assert len({item.item_id for item in items}) == 4
    values = {item.item_id: SUPPORTED for item in items[:1]}
    first, second = label_claims("case", claims, ("c1", "c2"), values)
    assert first.labels == {"c1": SUPPORTED, "c2": None}
    assert (first.cited, second.cited) == (("c1",), ())
    assert second.labels == {"c1": None, "c2": None}


@pytest.mark.parametrize(
    ("labels", "strict", "major"),
    [
        ([], ABSTAIN, ABSTAIN),
        ([YES, YES], SUPPORTED, SUPPORTED),
        ([YES, YES, NO], UNSUPPORTED, SUPPORTED),
        ([YES, YES, CONTRADICTED], CONTRADICTED, SUPPORTED),
        ([YES, NO], UNSUPPORTED, UNSUPPORTED),
        ([YES, CONTRADICTED], CONTRADICTED, CONTRADICTED),
        ([YES, PARTIAL], UNSUPPORTED, UNSUPPORTED),
    ],
)
def test_claims_roll_up_to_an_answer(labels, strict, major):
    assert roll_up(labels) == strict
    assert roll_up(labels, "major") == major


@given(st.lists(st.sampled_from(LABELS), min_size=1), st.randoms())
def test_the_order_of_claims_changes_nothing(labels, random):
    turned = labels.copy()
    random.shuffle(turned)
    assert roll_up(labels, "major") == roll_up(turned, "major")
    assert roll_up(labels) == roll_up(turned)
    assert sum(shares(labels).values()) == pytest.approx(1)


def test_no_claim_has_no_shares():
    assert shares([]) is None
    assert shares([YES, NO])[SUPPORTED] == 0.5


def test_citations_belong_to_the_claims_whose_words_they_carry():
    text = "银行卡 3 个工作日到账。余额即时到账。"
    cited = [
        ("c1", "银行卡３个工作日到账"),
        ("c2", "余额即时到账。"),
        ("c2", "余额即时到账。"),
        ("c3", None),
    ]
    assert cited_claims(text, cited) == {
        "银行卡 3 个工作日到账": ("c1",),
        "余额即时到账": ("c2",),
    }


def test_an_empty_answer_makes_no_claim():
    assert cited_claims("", [("c1", "x")]) == {}
