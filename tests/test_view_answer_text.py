"""An answer's text and its marks: overlapping spans, citations in another spelling, cut texts."""

import re
from dataclasses import replace

import pytest
from answer_data import PLAIN, answered, resolved
from hostile import SCRIPT

from ragwb.measure.answer_figures import answer_outcome
from ragwb.measure.rules import RuleFailure
from ragwb.records import Citation
from ragwb.view.answer_parts import answered_part, claims_part, evidence_words, short_why, why_part
from ragwb.view.answer_text import (
    MOST_MARKS,
    Mark,
    answer_marks,
    answer_text,
    find_words,
    marked,
)


def outcome(text, *, cites=(), context=("a", "b"), case=None, **given):
    """What is found in an answer; cites are (chunk, words)."""
    citations = tuple(Citation(chunk_id=name, claim=words) for name, words in cites)
    one = answered(case or resolved("c", ["a"]), text, context=context, **given)
    return answer_outcome(replace(one, citations=citations), PLAIN)


def stripped(html):
    return re.sub(r"<sup.*?</sup>|<[^>]+>", "", html)


def test_a_sentence_carries_the_numbers_of_the_passages_that_it_rests_on():
    found = outcome(
        "三天到账。免费。", cites=[("b", "三天到账。"), ("a", "三天到账。"), ("z", "免费")]
    )
    assert [(m.start, m.end, m.label) for m in answer_marks(found)] == [
        (0, 5, "[2]"),
        (0, 5, "[1]"),
        (5, 7, "[?]"),
    ]
    html = answer_text(found).html
    assert '<mark class="rw-cite">三天到账。</mark><sup>[1]</sup><sup>[2]</sup>' in html
    assert '<sup class="rw-bad">[?]</sup>' in html
    assert answer_text(found).text == "三天到账。[1][2]免费[?]。"


def test_words_are_found_in_another_spelling():
    assert find_words("3个工作日", "约 ３ 个 工作日 到帐") == (2, 9)
    assert find_words("四天", "三天") is None


def test_marks_may_overlap_and_no_character_is_lost_or_doubled():
    text = "一二三四五六七八"
    marks = [Mark(0, 5, "cited", "[1]"), Mark(2, 7, "claim", "✔1"), Mark(4, 6, "broken", "✖")]
    html = marked(text, marks)
    assert stripped(html) == text
    assert '<mark class="rw-cite rw-claim rw-broken">五</mark>' in html
    assert '<mark class="rw-claim">七</mark><sup>✔1</sup>八' in html


@pytest.mark.parametrize("mark", [Mark(3, 3, "cited", "x"), Mark(90, 99, "cited", "x")])
def test_a_mark_without_a_place_marks_nothing(mark):
    assert marked("一二三四", [mark]) == "一二三四"


def test_a_long_text_is_cut_and_its_length_said():
    html = marked("长" * 50_000, [Mark(10, 49_000, "claim", "✔1")], limit=100)
    assert html.endswith("<sup>✔1</sup>… (50,000 characters)")
    assert html.count("长") == 100
    assert len(answer_text(outcome("长" * 50_000)).html) < 5_000


def test_a_text_that_is_not_there_and_an_empty_one_are_told_apart():
    assert answer_text(outcome(None)).text == "no text"
    assert answer_text(outcome(" \n")).text == "the text is empty"


def test_hostile_words_are_escaped_in_every_part():
    case = resolved(
        "c", ["a"], required_claims=[SCRIPT], forbidden_claims=[SCRIPT], reference_answer=SCRIPT
    )
    found = outcome(SCRIPT, cites=[("a", SCRIPT)], case=case, actions=(SCRIPT,))
    for part in (answer_text(found), answered_part(found), claims_part(found), why_part(found)):
        assert SCRIPT not in part.html
        assert "&lt;script&gt;" in part.html


def test_the_same_citation_many_times_is_counted_and_one_without_words_named():
    found = outcome("三天。", cites=[("a", None)] * 10 + [("b", "别处的话"), ("z", None)])
    assert "citations without a place: [1] ×10, [2], [?]" in answered_part(found).text
    assert list(answer_marks(found)) == []


def test_marks_without_end_are_cut_and_none_stands_twice():
    text = "".join(chr(0x4E00 + n) for n in range(1_000))
    cites = [("a", text[n : n + 2]) for n in range(999)] * 10
    assert len(list(answer_marks(outcome(text, cites=cites)))) == MOST_MARKS
    same = outcome(text, cites=[("a", text[:2])] * 10_000)
    assert [mark.label for mark in answer_marks(same)] == ["[1]"]


def test_citations_that_were_not_observed_are_said_to_be_so():
    one = answered(resolved("c", ["a"]), "三天。")
    assert "citations were not observed" in answered_part(answer_outcome(one, PLAIN)).text


def test_why_is_said_in_a_few_words_the_gravest_first():
    case = resolved("c", ["a"], required_claims=["三天"], forbidden_claims=["七天"])
    broken = outcome("七天。", cites=[("a", "七天。")], case=case)
    assert short_why(broken) == ("FORBIDDEN_CLAIM", "1 of 1 claims missing")
    right = outcome("三天。", cites=[("a", "三天。")], case=case)
    assert short_why(right) == ()
    assert why_part(right).text.startswith("right:")
    assert why_part(right, "good 3; it accepts").text.endswith("judge: good 3; it accepts")


def test_a_refusal_for_another_reason_is_told_though_its_mode_is_right():
    case = resolved("c", mode="refuse", refusal_trigger=["NOT_PERMITTED"])
    found = outcome("无", case=case, mode="refuse", refusal_reason="NO_EVIDENCE")
    assert "reason: refused for NO_EVIDENCE, the case accepts NOT_PERMITTED" in why_part(found).text


def test_whether_the_evidence_was_there_is_unknown_without_a_context():
    found = outcome("三天。", context=None)
    assert evidence_words(found.hops) == "the context was not observed"


def test_a_claim_that_could_not_be_decided_is_neither_stated_nor_missing():
    case = resolved("c", ["a"], required_claims=["三天"])
    found = outcome("好。", cites=[("a", "好。")], case=case)
    unknown = replace(found.claims[0], stated=None)
    figures = {**found.figures, "claim_coverage": None}
    undecided = replace(found, claims=(unknown,), figures=figures)
    assert claims_part(undecided).text.splitlines()[1].startswith("not decided  required 1")
    assert "claim 1 is not decided, its pattern takes too long" in why_part(undecided).text


def test_a_pack_s_rule_is_named_beside_its_reason():
    case = resolved("c", ["a"], required_version="2025.3")
    found = outcome("好。", cites=[("a", "好。")], case=case)
    failure = RuleFailure("no-good", "FORBIDDEN_CLAIM", "text", 0, 1, "it says so")
    broken = replace(found, failures=(failure,))
    assert "FORBIDDEN_CLAIM (rule no-good): it says so" in why_part(broken).text
    assert "pinned version: 2025.3" in answered_part(broken).text
