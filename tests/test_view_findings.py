"""What is found of a case: the verdict with its proof, repeats, remedies, and what people say."""

from dataclasses import replace

import pytest
from hostile import SCRIPT
from view_data import case_view, lossy_run

from ragwb.runs.notes import Note
from ragwb.triage.attribute import triage
from ragwb.triage.reasons import REASONS
from ragwb.triage.verdict import AnswerFinding, CaseVerdict, GroupVerdict, TriagedCase
from ragwb.view.case_card import triage_card
from ragwb.view.findings import notes_part, remedies_part, repeats_part, stage_badge, verdict_part


@pytest.fixture(scope="module")
def lossy(tmp_path_factory):
    return lossy_run(tmp_path_factory.mktemp("run"))


def note(**given):
    fields = {
        "case_id": "c1",
        "repeat": 1,
        "k": 3,
        "stage": "rerank",
        "reason": "RANKED_BELOW_K",
        "agreed": None,
        "corrected_stage": None,
        "corrected_reason": None,
        "text": "看过了",
        "author": "李雷",
        "written_at": "2026-11-30T08:00:00Z",
    }
    return Note(**{**fields, **given})


def test_findings_without_end_are_counted(lossy):
    said = [AnswerFinding("UNKNOWN_CITATION", "citations", None, None, f"z{n}") for n in range(999)]
    verdict = CaseVerdict("c1", 1, "generation", "UNKNOWN_CITATION", (), (), tuple(said))
    panel = verdict_part(replace(case_view(lossy, "c1"), verdict=verdict))
    assert "and 979 more" in panel.text
    assert panel.html.count("<li>") == 6 + 20 + 1
    assert "993 more" in panel.html
    assert "<li>and 973 more</li>" in panel.html


@pytest.mark.parametrize("case_id", ["c1", "c2", "c3", "c4", "c5", "c6", "c7"])
def test_a_verdict_says_where_why_the_proof_and_what_to_look_at_first(lossy, case_id):
    view = case_view(lossy, case_id)
    panel = verdict_part(view)
    reason = REASONS[view.verdict.reason]
    meaning = reason.meaning
    if reason.code == "RANKED_BELOW_K":
        meaning = "Ranked beyond K since a channel"
    for words in (meaning, reason.code, reason.advice, view.verdict.proof):
        assert words in panel.text
    assert f"rw-finding rw-stage-{view.verdict.stage}" in panel.html


def test_the_first_words_name_the_stage_or_what_else_it_is(lossy):
    first = {c: verdict_part(case_view(lossy, c)).text.split(":")[0] for c in ("c2", "c4", "c5")}
    assert first == {"c2": "Lost in context", "c4": "Not observed", "c5": "Security"}


def test_several_groups_have_a_line_each_and_many_fold(lossy):
    text = verdict_part(case_view(lossy, "c1")).text
    assert [line[:10] for line in text.splitlines()[-3:]] == [
        "required 1",
        "required 2",
        "required 3",
    ]
    html = verdict_part(case_view(lossy, "c6")).html
    assert "21 more" in html
    assert html.count("<li>") == 27


def test_what_is_wrong_with_an_answer_has_a_line_each(lossy):
    view = case_view(lossy, "c1")
    findings = tuple(
        AnswerFinding("FORBIDDEN_CLAIM", "text", 0, 2, f"“{SCRIPT}” is said {place}")
        for place in (1, 2)
    )
    verdict = CaseVerdict("c1", 1, "generation", "FORBIDDEN_CLAIM", (), (), findings)
    panel = verdict_part(replace(view, verdict=verdict))
    assert panel.text.startswith("Answered wrongly: it says what it must not (FORBIDDEN_CLAIM)")
    assert [line.split(": ")[0] for line in panel.text.splitlines()[-2:]] == ["answer, text"] * 2
    assert "rw-stage-generation" in panel.html
    assert SCRIPT not in panel.html


def test_a_case_that_passed_says_so(lossy):
    assert verdict_part(case_view(lossy, "c8")).text == "Nothing is lost at K = 3."


def test_what_would_decide_is_named_where_it_was_not_observed(lossy):
    view = case_view(lossy, "c4")
    assert view.verdict.groups[0].missing_field
    two = view.verdict.groups * 2
    shown = verdict_part(_with(view, groups=two)).text
    assert f"undecided without: {view.verdict.groups[0].missing_field}" in shown


def _with(view, **given):
    import dataclasses

    return dataclasses.replace(view, verdict=dataclasses.replace(view.verdict, **given))


def test_a_code_that_nobody_knows_is_shown_as_it_is(lossy):
    group = GroupVerdict(0, "generation", SCRIPT, None, {}, None, None, f"proof {SCRIPT}")
    verdict = CaseVerdict("c1", 1, "generation", SCRIPT, (group,))
    view = case_view(lossy, "c1")
    panel = verdict_part(type(view)(view.trace, view.chunks, view.k, verdict))
    assert SCRIPT in panel.text
    assert "<script" not in panel.html


def test_repeats_say_how_many_failed_and_in_which_ways(lossy):
    verdict = case_view(lossy, "c1").verdict
    counts = {("rerank", "RANKED_BELOW_K"): 2, ("recall", "NOT_IN_CANDIDATES"): 1}
    words = repeats_part(TriagedCase(verdict, counts, 4, 3)).text
    assert words == (
        "unstable: 3 of 4 repeats failed: 2 × rerank RANKED_BELOW_K, 1 × recall NOT_IN_CANDIDATES"
    )
    steady = TriagedCase(verdict, {("rerank", "RANKED_BELOW_K"): 2}, 2, 2)
    assert not repeats_part(steady).text.startswith("unstable")
    assert repeats_part(TriagedCase(verdict, counts, 1, 1)).html == ""


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"agreed": True}, "agrees with rerank, RANKED_BELOW_K"),
        ({"agreed": False}, "disagrees with rerank, RANKED_BELOW_K"),
        ({"corrected_stage": "filter"}, "filter instead of rerank, RANKED_BELOW_K"),
        ({"corrected_stage": "filter", "corrected_reason": "X"}, "filter, X instead of rerank"),
        ({}, "李雷, 2026-11-30T08:00:00Z: says"),
    ],
)
def test_notes_say_who_thinks_what(given, words):
    panel = notes_part([note(**given)])
    assert words in panel.text
    assert words in panel.html
    assert "看过了" in panel.html


def test_notes_are_text_and_none_show_nothing():
    panel = notes_part([note(text=SCRIPT, author=SCRIPT, corrected_stage=SCRIPT)])
    assert "<script" not in panel.html
    assert notes_part([]).html == ""


def test_no_remedy_is_a_sentence():
    assert "No single change" in remedies_part([]).html


def test_a_badge_says_its_stage_in_words_beside_the_colour():
    assert stage_badge("rerank") == '<span class="rw-badge rw-stage-rerank">rerank</span>'
    assert "<script" not in stage_badge(SCRIPT)


def test_a_failed_case_is_one_card_with_verdict_picture_table_and_notes(lossy):
    found = triage(lossy)
    view, triaged = case_view(lossy, "c1"), found.case("c1")
    card = triage_card(view, triaged, remedies=[], notes=[note()], is_open=False)
    html = card.html
    order = ["rw-finding", "<svg", "What people said", "The least change", "rw-ranks", "The case"]
    places = [html.index(part) for part in order]
    assert places == sorted(places)
    assert html.startswith('<details class="rw-fold rw-case">')
    assert card.text.startswith("c1  fusion  fusion FUSION_DROPPED\n  Lost in fusion")
    assert "The least change" not in triage_card(view, triaged, is_open=False).html
