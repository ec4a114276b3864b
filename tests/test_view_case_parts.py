"""The parts of an opened case say the same as text and HTML, and keep hostile text as text."""

import dataclasses

import pytest
from hostile import SCRIPT, TEXTS, hostile_case
from run_data import case, run
from view_data import NAMES, case_view, lossy_run, staged_service

from ragwb.view.case_card import case_card
from ragwb.view.case_parts import answer_part, chunk_fold, evidence_part, facts_part, stage_part


@pytest.fixture(scope="module")
def lossy(tmp_path_factory):
    return lossy_run(tmp_path_factory.mktemp("run"))


def with_result(view, **given):
    """The view with some fields of its result replaced."""
    trace = dataclasses.replace(view.trace, result={**view.trace.result, **given})
    return dataclasses.replace(view, trace=trace)


def lines(panel):
    return [line.split("  ") for line in panel.text.splitlines()]


def test_evidence_has_a_row_a_chunk_and_a_column_a_stage(lossy):
    panel = evidence_part(case_view(lossy, "c1"))
    head, *rows = panel.text.splitlines()
    assert head.split() == [
        *("evidence", "chunk", "vector", "keyword", "fused", "reranked", "results", "context")
    ]
    assert [row.split()[-6:] for row in rows[:3]] == [
        ["–", "1", "–", "–", "–", "–"],
        ["1", "–", "1", "–", "–", "–"],
        ["–", "2", "5", "4", "–", "–"],
    ]
    assert [row.split()[0] for row in rows] == ["✖", "✖", "✖", "other", "other", "other"]
    assert panel.html.count("<tr") == len(rows) + 1
    assert '<td class="num">4<small>0.97</small></td>' in panel.html


def test_without_the_others_only_evidence_is_left(lossy):
    panel = evidence_part(case_view(lossy, "c1"), with_others=False)
    assert len(panel.text.splitlines()) == 4


@pytest.mark.parametrize(
    ("case_id", "words"),
    [
        ("c2", "✖ cut from the context"),
        ("c3", "✖ missing"),
        ("c5", "✖ came back"),
        ("c8", "✔ found"),
    ],
)
def test_what_became_of_evidence_is_said_by_sign_and_word(lossy, case_id, words):
    panel = evidence_part(case_view(lossy, case_id))
    assert words in panel.text
    assert words in panel.html


def test_forbidden_evidence_that_stayed_away_is_good(lossy):
    panel = evidence_part(case_view(lossy, "c5"))
    assert "✔ stayed away forbidden" in panel.text


def test_an_alternative_of_what_was_found_is_not_missing(tmp_path):
    texts = {"doc-1": "三天到账", "doc-2": "三天到账"}
    fake = staged_service({"q": {"results": ["doc-1"]}}, texts=texts)
    evidence = [{"any_of": [{"document_id": "doc", "quote": "三天"}]}]
    given = case(1, question="q", expected_chunk_ids=[], evidence=evidence)
    text = evidence_part(case_view(run(tmp_path, fake, [given]), "c1", k=5)).text
    assert "✔ found required 1" in text
    assert "not needed required 1" in text


def test_a_rank_that_explain_tells_stands_below_the_stage_that_misses_it(lossy):
    assert "–<small>17 by /explain</small>" in evidence_part(case_view(lossy, "c3")).html
    assert "by /explain" not in evidence_part(case_view(lossy, "c8")).html


def test_a_stage_is_listed_as_it_came_with_duplicates_marked(lossy):
    panel = stage_part(case_view(lossy, "c3"), "results")
    assert [line[-2:] for line in (row.split() for row in panel.text.splitlines()[1:])] == [
        ["1", "1"],
        ["2", "0.99"],
    ]
    assert panel.text.splitlines()[2].strip().startswith("again")
    assert panel.html.count("again") == 1


def test_a_stage_beyond_its_limit_is_counted(lossy):
    panel = stage_part(case_view(lossy, "c6"), "fused", limit=10)
    assert panel.text.splitlines()[-1] == "20 more are not shown"
    assert "20 more are not shown" in panel.html
    assert len(stage_part(case_view(lossy, "c6"), "fused").text.splitlines()) == 31


def test_a_stage_without_scores_or_chunks_is_said(lossy):
    assert stage_part(case_view(lossy, "c7"), "fused").text == "Nothing came back."
    assert stage_part(case_view(lossy, "c1"), "context").text.splitlines()[1].endswith("–")


def test_facts_say_what_was_not_observed(lossy):
    view = with_result(case_view(lossy, "c3"), rewritten_query="换了说法", latency_ms=None)
    text = facts_part(view).text
    assert "question: recall" in text
    assert "rewritten query: 换了说法" in text
    assert "latency: –" in text
    assert "filtered: none" in text
    assert "risk: high" in text


def test_filters_are_counted_by_reason(tmp_path):
    filtered = [{"chunkId": name, "reason": "ACL"} for name in NAMES[:2]]
    stages = {"q1": {"filtered": filtered, "results": ["doc-3"]}}
    view = case_view(run(tmp_path, staged_service(stages), [case(1)]), "c1", k=5)
    assert "filtered: 2 by ACL" in facts_part(view).text


def test_an_answer_is_shown_with_what_it_cites(lossy):
    view = with_result(
        case_view(lossy, "c5"), mode="answer", answer="三天", citations=["doc-9", "doc-1", "x"]
    )
    panel = answer_part(view)
    assert panel.text.splitlines()[0] == "answer (answer): 三天"
    assert "✖ forbidden" in panel.html
    assert panel.html.count("<li>") == 3


def test_citations_without_end_are_counted(lossy):
    view = with_result(case_view(lossy, "c5"), mode="answer", answer="三天", citations=[])
    same = answer_part(with_result(view, citations=["doc-9"] * 9_998 + ["doc-1"]))
    assert same.html.count("<li>") == 2
    assert "✖ forbidden ×9,998" in same.html
    assert "×9,998" in same.text.splitlines()[1]
    many = answer_part(with_result(view, citations=[f"z{n}" for n in range(10_000)]))
    assert many.html.count("<li>") == 21
    assert "<li>and 9,980 more</li>" in many.html
    assert many.text.splitlines()[-1] == "and 9,980 more"


def test_a_run_without_answers_shows_none(lossy):
    assert answer_part(case_view(lossy, "c5")).html == ""
    assert "cites nothing" in answer_part(with_result(case_view(lossy, "c5"), citations=[])).html
    silent = with_result(case_view(lossy, "c5"), answer="三天")
    assert "citations not observed" in answer_part(silent).html


def test_a_chunk_opens_to_its_text_with_the_passage_marked(tmp_path):
    fake = staged_service({"q": {"results": ["doc-1"]}}, texts={"doc-1": "退款三天到账。"})
    evidence = [{"any_of": [{"document_id": "doc", "quote": "三天到账"}]}]
    given = case(1, question="q", expected_chunk_ids=[], evidence=evidence)
    view = case_view(run(tmp_path, fake, [given]), "c1", k=5)
    assert "退款<mark>三天到账</mark>。" in chunk_fold(view, "doc-1")
    assert "text not observed" in chunk_fold(view, "unknown")


def test_the_card_of_a_run_opens_with_its_figures(lossy):
    view = dataclasses.replace(case_view(lossy, "c8"), figures={"recall@3": "1/1"})
    card = case_card(view, is_open=True)
    assert card.text == "c8  leak  recall@3 1/1"
    assert 'open="open"' in card.html
    assert "Returned, the first 3 count" in card.html


@pytest.fixture(scope="module")
def hostile_views(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    fake = staged_service({text: {"results": [SCRIPT, "doc-2"]} for text in TEXTS})
    fake.chunks = {
        SCRIPT: TEXTS[1],
        "doc-2": TEXTS[2],
        **{f"doc-{n}": t for n, t in enumerate(TEXTS)},
    }
    cases = [hostile_case(n, text) for n, text in enumerate(TEXTS)]
    source = run(folder, fake, cases)
    views = [case_view(source, given["id"], k=5) for given in cases]
    texts = {"answer": TEXTS[1], "mode": SCRIPT, "citations": [SCRIPT], "rewritten_query": TEXTS[2]}
    return [with_result(view, **texts, trace_id=SCRIPT) for view in views]


@pytest.mark.parametrize("part", [facts_part, evidence_part, answer_part])
def test_hostile_text_does_nothing(hostile_views, part):
    for view in hostile_views:
        panel = part(view)
        assert SCRIPT not in panel.html
        assert "<img" not in panel.html
        assert "<svg" not in panel.html
        assert "\x1b" not in panel.text + panel.html
        assert "\u202e" not in panel.text + panel.html
        assert len(panel.html) < 40_000


def test_hostile_text_does_nothing_in_a_stage_or_a_card(hostile_views):
    for view in hostile_views:
        for html in (stage_part(view, "results").html, case_card(view, is_open=False).html):
            assert SCRIPT not in html
            assert "<img" not in html
