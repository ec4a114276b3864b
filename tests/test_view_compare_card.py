"""The card of a compared case: both runs side by side, as text and as HTML."""

import re
from dataclasses import replace

import pytest
from compared_data import AFTER, BEFORE, compared, compared_answers, staged_run
from hostile import SCRIPT, TEXTS, hostile_case

from ragwb.decide.compare import compare
from ragwb.report.compare_cases import open_cases
from ragwb.view import compare_card as card
from ragwb.view.case_view import CaseView
from ragwb.view.panel import Panel


def opened_by_question(comparison):
    ids = comparison.pairs["case_id"].tolist()
    return {one.question: one for one in open_cases(comparison, ids)}


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    return opened_by_question(compared(tmp_path_factory.mktemp("runs")))


@pytest.fixture(scope="module")
def answered(tmp_path_factory):
    return opened_by_question(compared_answers(tmp_path_factory.mktemp("answers")))


def words(html):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def test_a_broken_case_says_why_and_shows_both_journeys(opened):
    panel = card.compare_card(opened["falls"], is_open=True)
    first, *rest = panel.text.splitlines()
    assert first == "c2  ✖ broken  high value  recall@3 1 → 0 · mrr@3 1 → 0  falls"
    assert [line for line in rest if line.startswith("  baseline")]
    assert "    Nothing is lost at K = 3." in rest
    assert any(line.startswith("    rank 4 of reranked, K = 3; ") for line in rest)
    assert panel.html.count("<svg") == 2
    assert panel.html.count('class="rw-pair"') == 2
    assert 'class="rw-badge rw-change-broken"' in panel.html
    assert 'open="open"' in panel.html


def test_the_badge_names_the_stage_of_the_side_that_failed(opened):
    for question, side in (("gains", "baseline"), ("falls", "candidate")):
        case = opened[question]
        badge = card.side_badge(getattr(case, side))
        assert "rerank, RANKED_BELOW_K" in badge
        assert badge in card.compare_card(case, is_open=False).html
    assert card.side_badge(opened["passes"].candidate) == ""


def test_the_ranks_of_a_chunk_stand_in_one_line(opened):
    panel = card.ranks_part(opened["gains"])
    head, required, *others = panel.text.splitlines()
    stages = ["vector", "keyword", "fused", "reranked", "results", "context"]
    assert head.split() == ["evidence", "chunk", *stages]
    assert required.startswith("✖ → ✔ required 1")
    assert required.count("4 → 1") == 3
    assert required.count("– → 1") == 2
    assert others[-1].startswith("baseline → candidate")
    assert '<tr class="rw-row-good">' in panel.html
    # The baseline has no keyword channel.
    assert "? → –" in required
    assert "? not observed in that run" in panel.text


def test_signs_that_do_not_occur_are_not_explained(tmp_path):
    run = staged_run(tmp_path, BEFORE)
    (case,) = open_cases(compare(run, run), ["c1"])
    assert "not observed" not in card.ranks_part(case).text


def test_a_line_that_did_not_change_is_not_marked(opened):
    assert "rw-row" not in card.ranks_part(opened["passes"]).html
    assert "rw-row" not in card.ranks_part(opened["fails"]).html


def test_answers_and_claims_stand_side_by_side(answered):
    case = answered["q1"]
    assert case.change == "broken"
    assert "当天到账" in card.answers_part(case).html
    assert re.search(r"三天到账.*✔ stated +✖ not stated", card.claims_part(case).text)
    reasons = card.reasons_part(case).text
    assert "right: its mode, its required claims and every hard rule" in reasons
    assert "required claim 1 is not stated: 三天到账" in reasons
    html = card.compare_card(case, is_open=False).html
    assert html.index("<h4>Answers") < html.index("<h4>Rank journeys")
    assert words(card.contexts_part(case).html).count("✔ required") == 2


def test_a_forbidden_claim_is_good_when_it_is_not_stated(answered):
    text = card.claims_part(answered["q2"]).text
    assert re.search(r"forbidden 1: 七天到账 +✖ stated +✖ stated", text)


def test_where_evidence_was_lost_is_said_beside_a_wrong_answer(answered):
    text = card.reasons_part(answered["q8"]).text
    assert "required claim 1 is not stated: 十元" in text
    assert "KNOWLEDGE_MISSING" in text


def test_a_retrieved_case_has_no_parts_of_answers(opened):
    case = opened["gains"]
    for part in (card.answers_part(case), card.claims_part(case), card.contexts_part(case)):
        assert part.html == part.text == ""


def test_a_case_whose_repeats_differ_says_so_and_how_many_failed(opened):
    case = opened["falls high"]
    side = replace(case.candidate, repeats="2 of 3 repeats failed")
    panel = card.compare_card(replace(case, unstable=True, candidate=side), is_open=False)
    assert "high risk  unstable" in panel.text
    assert f"candidate {side.name} (2 of 3 repeats failed)" in panel.text
    assert '<span class="rw-bad">unstable</span>' in panel.html


def test_a_side_that_shows_no_stage_or_no_answer_says_so(opened, answered):
    case = opened["gains"]
    bare = replace(case.baseline.view, trace=replace(case.baseline.view.trace, stages={}))
    blind = replace(case, baseline=replace(case.baseline, view=bare))
    assert "no stage was observed" in card.journeys_part(blind).text
    assert "? → 1" in card.ranks_part(blind).text
    both = replace(blind, candidate=blind.baseline)
    assert card.ranks_part(both) == Panel("", "")
    half = answered["q1"]
    half = replace(half, baseline=replace(half.baseline, outcome=None))
    assert "only retrieved" in card.answers_part(half).text
    assert card.contexts_part(half) == Panel("", "")
    assert re.search(r"required 1: 三天到账 +– +✖ not stated", card.claims_part(half).text)


def test_under_another_chunking_both_chunks_stand_in_the_line(opened):
    case = opened["gains"]
    group = replace_group(case.candidate.view, ("doc-2",))
    other = replace(case, candidate=replace(case.candidate, view=group))
    panel = card.ranks_part(other)
    assert "4 → 2" in panel.text
    assert panel.html.count("<small>baseline</small>") == 1
    gone = replace_group(case.candidate.view, ())
    lost = card.ranks_part(replace(case, candidate=replace(case.candidate, view=gone)))
    assert " → –" in lost.text


def replace_group(view, chunk_ids):
    """The view of a case whose only group is made of other chunks."""
    resolved = view.trace.case
    (group,) = resolved.groups
    groups = (group.model_copy(update={"chunk_ids": chunk_ids}),)
    case = resolved.model_copy(update={"groups": groups})
    return CaseView(replace(view.trace, case=case), view.chunks, view.k)


def test_hostile_text_stays_text(tmp_path):
    texts = TEXTS[:-1]
    cases = [hostile_case(n, text, expected_chunk_ids=["doc-1"]) for n, text in enumerate(texts)]
    sides = [
        staged_run(tmp_path / name, dict.fromkeys(texts, stages), cases)
        for name, stages in (("a", BEFORE["falls"]), ("b", AFTER["falls"]))
    ]
    found = compare(*sides)
    for case in open_cases(found, found.broken):
        panel = card.compare_card(case, is_open=False)
        assert "<script" not in panel.html
        assert "<img" not in panel.html
        assert "onload=window" not in panel.html.replace("&lt;svg onload=window", "")
        assert "\x1b" not in panel.text + panel.html
        assert "\u202e" not in panel.text + panel.html
    assert SCRIPT in card.compare_card(case, is_open=False).text
