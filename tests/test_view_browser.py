"""The triage browser without a page: its controls are set and clicked, its HTML is read."""

import datetime
import json
from dataclasses import asdict, replace

import ipywidgets as widgets
import pytest
from hostile import SCRIPT, TEXTS, hostile_case
from loopback import FakeService, json_reply
from run_data import case, run, service
from widget_tree import button, kind, marked, shown_html, walk

from ragwb.errors import MetricError
from ragwb.runs.notes import NOTES, load_notes
from ragwb.runs.traces import Traces
from ragwb.settings import Settings
from ragwb.triage.attribute import triage
from ragwb.view.browser import Browser, browse

NOW = datetime.datetime(2026, 11, 30, 8, 0, tzinfo=datetime.UTC)
RESULTS = {
    "q1": [f"doc-{n}" for n in (7, 6, 5, 4, 3, 2, 1)],  # doc-1 is ranked beyond K
    "q2": [f"doc-{n}" for n in (7, 6, 5, 4, 3)],  # doc-2 is in no list
    "q9": [f"doc-{n}" for n in (7, 6, 5, 4, 3)],  # doc-9 is unknown
}
CASES = [
    case(0, tags={"domain": "退款"}),  # passes
    case(1, tags={"domain": "退款"}, risk="high"),
    case(2, tags={"domain": "发票"}),
    case(9, tags={"domain": "发票"}, expected_chunk_ids=["doc-9"]),
]


@pytest.fixture
def saved(tmp_path):
    return run(tmp_path, service(results=RESULTS), CASES, top_k=7)


@pytest.fixture
def browser(saved):
    return opened(saved)


def opened(saved):
    return Browser(triage(saved, k=3), author="王芳", now=lambda: NOW)


def listed(browser):
    return [case_id for _, case_id in kind(browser.widget, widgets.Select).options]


def said(browser):
    """The line at the top."""
    return marked(browser.widget, "rw-line").value


def open_tab(browser, title):
    tabs = marked(browser.widget, "rw-tabs")
    (tabs.selected_index,) = [at for at, name in enumerate(tabs.titles) if title in name]
    return tabs.children[tabs.selected_index]


def test_a_browser_says_in_words_what_it_shows(browser):
    assert repr(browser).startswith("Browser: run ")
    bundle = browser._repr_mimebundle_()
    assert bundle["text/plain"] == repr(browser)
    assert "application/vnd.jupyter.widget-view+json" in bundle


def test_k_is_checked_and_the_author_comes_from_the_settings(saved, tmp_path):
    with pytest.raises(MetricError, match="K is 8"):
        browse(saved, k=8)
    settings = Settings(root=tmp_path, home=tmp_path, author="李雷")
    found = browse(saved, k=3, settings=settings)
    assert found.triage.k == 3
    assert kind(marked(found.widget, "rw-note-form"), widgets.Text).value == "李雷"


def test_the_first_case_stands_open(browser):
    html = shown_html(browser.widget)
    assert listed(browser)[0] in marked(browser.widget, "rw-head").value
    assert "Rank at each stage" in html
    assert "rw-finding rw-stage-" in html
    assert said(browser) == ""


def test_filters_leave_the_cases_that_fit_all_of_them(browser):
    filters = marked(browser.widget, "rw-filters")
    assert len(listed(browser)) == 3
    marked(filters, "rw-filter-tag").value = "domain: 发票"
    assert set(listed(browser)) == {"c2", "c9"}
    marked(filters, "rw-filter-text").value = "Q9 c9"
    assert listed(browser) == ["c9"]
    marked(filters, "rw-filter-risk").value = "high"
    assert listed(browser) == []
    assert marked(browser.widget, "rw-case-panel").layout.display == "none"
    button(filters, "clear").click()
    assert len(listed(browser)) == 3
    assert marked(browser.widget, "rw-case-panel").layout.display is None


def test_the_shown_case_stays_when_it_fits_a_new_filter(browser):
    cases = kind(browser.widget, widgets.Select)
    cases.value = "c9"
    marked(browser.widget, "rw-filter-tag").value = "domain: 发票"
    assert cases.value == "c9"
    assert "c9" in marked(browser.widget, "rw-head").value


def test_a_click_on_a_bar_selects_its_cases_and_a_second_click_all(browser):
    wanted = [t.case_id for t in browser.triage.cases if t.verdict.reason == "RANKED_BELOW_K"]
    bar = button(browser.widget, "RANKED_BELOW_K")
    bar.click()
    assert listed(browser) == wanted == ["c1"]
    assert "rw-on" in bar._dom_classes
    assert marked(browser.widget, "rw-filter-reason").value == "RANKED_BELOW_K"
    bar.click()
    assert len(listed(browser)) == 3
    assert "rw-on" not in bar._dom_classes


def test_buttons_move_through_the_list_and_stop_at_its_ends(browser):
    cases = kind(browser.widget, widgets.Select)
    order = listed(browser)
    for words, expected in (
        ("previous", order[0]),
        ("next", order[1]),
        ("next", order[2]),
        ("next", order[2]),
        ("previous", order[1]),
    ):
        button(browser.widget, words).click()
        assert cases.value == expected
        assert expected in marked(browser.widget, "rw-head").value


def test_a_stage_is_shown_as_its_whole_list_and_stays_picked(browser):
    kind(browser.widget, widgets.Select).value = "c1"
    stages = open_tab(browser, "Stages")
    table = kind(stages, widgets.HTML)
    assert "evidence" in table.value
    kind(stages, widgets.ToggleButtons).value = "vector"
    assert table.value.count("<tr") == 1 + 7
    kind(browser.widget, widgets.Select).value = "c2"
    assert kind(stages, widgets.ToggleButtons).value == "vector"
    assert table.value.count("<tr") == 1 + 5


def test_unstable_cases_and_notes_can_be_looked_for(tmp_path):
    answers = iter([["doc-1"], ["doc-7"], ["doc-7"], ["doc-7"]])

    def retrieve(asked):
        return json_reply({"results": [{"chunkId": i} for i in next(answers)]})

    fake = service(retrieve=retrieve)
    browser = opened(run(tmp_path, fake, [case(1), case(2)], repeats=2, concurrency=1))
    assert "1 of 2 repeats failed" in shown_html(browser.widget)
    marked(browser.widget, "rw-filter-only-unstable").value = True
    assert listed(browser) == ["c1"]


def effect(browser):
    """What the open change does, as it is shown."""
    return marked(browser.widget, "rw-effect").value


def test_a_changed_setting_shows_at_once_what_it_does_to_the_case_and_to_the_run(browser):
    kind(browser.widget, widgets.Select).value = "c1"
    pane = open_tab(browser, "What if")
    assert "Change a setting" in effect(browser)
    marked(pane, "rw-what-k").value = 7
    assert "<b>K = 7</b>" in effect(browser)
    assert "✔ passes" in effect(browser)
    assert "required 1: rank 7 in results → rank 7" in effect(browser)
    assert "1 fixed</span>: c1" in effect(browser)
    assert "0 broken" in effect(browser)
    kind(browser.widget, widgets.Select).value = "c2"
    assert "✖ still fails" in effect(browser)
    assert "required 1: in no list → not in the first 5" in effect(browser)
    assert "1 fixed</span>: c1" in effect(browser)


def test_what_the_trace_cannot_tell_is_said_and_why(tmp_path):
    def retrieve(asked):
        return json_reply({"results": [{"chunkId": i} for i in ("doc-7", "doc-6", "doc-5")]})

    browser = opened(run(tmp_path, service(retrieve=retrieve), [case(1)], top_k=3))
    marked(open_tab(browser, "What if"), "rw-what-k").value = 10
    assert "not known: what comes after the observed results is not known" in effect(browser)
    assert "1 not known</span>: c1" in effect(browser)


def test_many_cases_stand_behind_a_click(tmp_path):
    results = {f"q{n}": ["doc-99", "doc-98", "doc-97", f"doc-{n}"] for n in range(20)}
    found = run(tmp_path, service(100, results=results), [case(n) for n in range(20)])
    browser = opened(found)
    marked(open_tab(browser, "What if"), "rw-what-k").value = 4
    assert '<summary><span class="rw-good">20 fixed</span></summary>' in effect(browser)
    assert "c19" in effect(browser)


def test_one_setting_at_a_time_is_changed(browser):
    pane = open_tab(browser, "What if")
    k, duplicates = marked(pane, "rw-what-k"), marked(pane, "rw-what-deduplicate")
    k.value = 7
    duplicates.value = dict(duplicates.options)["removed by text"]
    assert k.value == 3
    assert "duplicates removed by text" in effect(browser)
    button(pane, "as it ran").click()
    assert duplicates.value == "as it ran"
    assert "Change a setting" in effect(browser)


def test_the_least_remedies_of_the_case_stand_below(browser):
    kind(browser.widget, widgets.Select).value = "c1"
    pane = open_tab(browser, "What if")
    assert "K = 7" in shown_html(pane)


class Guarded(FakeService):
    def _explained(self, chunk_id):
        return {**super()._explained(chunk_id), "visible": False, "filteredBy": ["ACL"]}


def test_a_waived_filter_is_said_to_be_no_remedy(tmp_path):
    fake = Guarded(chunks={f"doc-{n}": f"{n}。" for n in range(4)}, results={"q1": ["doc-3"]})
    browser = opened(run(tmp_path, fake, [case(1)]))
    pane = open_tab(browser, "What if")
    waive = marked(pane, "rw-what-waive")
    waive.value = dict(waive.options)["ACL"]
    assert "filter reason ACL waived" in effect(browser)
    assert "is no remedy" in effect(browser)


def write(browser, says, text="", **fields):
    form = open_tab(browser, "Review note")
    kind(form, widgets.ToggleButtons).value = says
    kind(form, widgets.Textarea).value = text
    for at, value in enumerate(fields.values()):
        kind(form, widgets.Dropdown, at).value = value
    button(form, "save").click()
    return form


def test_a_note_is_saved_listed_and_marked(browser, saved):
    case_id = kind(browser.widget, widgets.Select).value
    form = write(browser, "correct", "切断了", stage="knowledge", reason="CHUNK_SPLIT")
    (note,) = load_notes(saved)
    verdict = browser.triage.case(case_id).verdict
    assert asdict(note) == {
        "case_id": case_id,
        "repeat": 1,
        "k": 3,
        "stage": verdict.stage,
        "reason": verdict.reason,
        "agreed": False,
        "corrected_stage": "knowledge",
        "corrected_reason": "CHUNK_SPLIT",
        "text": "切断了",
        "author": "王芳",
        "written_at": "2026-11-30T08:00:00+00:00",
    }
    assert "切断了" in shown_html(form)
    assert kind(form, widgets.Textarea).value == ""
    assert NOTES in said(browser)
    assert kind(browser.widget, widgets.Select).label.startswith("✎")
    assert "Review note (1)" in marked(browser.widget, "rw-tabs").titles
    marked(browser.widget, "rw-filter-review").value = "without a note"
    assert case_id not in listed(browser)


def test_notes_that_are_there_are_shown_when_the_browser_opens(browser, saved):
    write(browser, "agree")
    again = opened(saved)
    form = open_tab(again, "Review note (1)")
    assert "agrees with" in shown_html(form)


def test_a_note_that_says_nothing_is_refused_in_the_line(browser, saved):
    write(browser, "remark")
    assert "says nothing" in said(browser)
    assert "rw-warning" in said(browser)
    assert load_notes(saved) == []
    button(browser.widget, "next").click()
    assert said(browser) == ""


def test_what_is_typed_waits_for_its_case(browser):
    form = open_tab(browser, "Review note")
    text = kind(form, widgets.Textarea)
    text.value = "half a thought"
    kind(form, widgets.ToggleButtons).value = "correct"
    button(browser.widget, "next").click()
    assert text.value == ""
    button(browser.widget, "previous").click()
    assert text.value == "half a thought"
    assert kind(form, widgets.ToggleButtons).value == "correct"


def test_a_folder_that_takes_nothing_is_said_and_the_text_stays(browser, saved):
    (saved.path / NOTES).mkdir()
    form = write(browser, "remark", "kept")
    assert "Is a directory" in said(browser)
    assert "Traceback" not in said(browser)
    assert kind(form, widgets.Textarea).value == "kept"


def test_a_broken_note_file_is_said_and_the_cases_are_shown_all_the_same(saved):
    (saved.path / NOTES).write_text("{}\n", encoding="utf-8")
    browser = opened(saved)
    assert f"{NOTES}:1" in said(browser)
    assert len(listed(browser)) == 3
    assert "Rank at each stage" in shown_html(browser.widget)


class Unreadable(Traces):
    def __getitem__(self, pair):
        raise ValueError(f"first line {SCRIPT}\nsecond line")


def test_whatever_fails_in_a_control_is_one_line_and_the_next_that_works_clears_it(saved):
    found = replace(triage(saved, k=3), traces=Unreadable(saved))
    browser = Browser(found, author="王芳", now=lambda: NOW)
    assert "ValueError: first line &lt;script&gt;" in said(browser)
    assert "second line</p>" in said(browser)
    assert "Traceback" not in said(browser)
    assert marked(browser.widget, "rw-case-panel").layout.display == "none"
    marked(browser.widget, "rw-filter-risk").value = "high"
    assert "ValueError" in said(browser)
    marked(browser.widget, "rw-filter-text").value = "nothing has these words"
    assert said(browser) == ""


def test_the_tags_are_drawn_when_their_tab_is_opened(browser):
    pictures = marked(browser.widget, "rw-pictures")
    drawn = kind(pictures.children[1], widgets.HTML)
    assert drawn.value == ""
    pictures.selected_index = 1
    assert "发票" in drawn.value
    kind(pictures, widgets.Dropdown).value = "risk"
    assert "发票" not in drawn.value
    assert "high" in drawn.value


def test_a_tag_of_cases_that_were_not_asked_is_no_slice(tmp_path):
    retired = case(2, tags={"area": "旧"}, tier="retired", retired_reason="old")
    browser = opened(run(tmp_path, service(results=RESULTS), [CASES[1], retired], top_k=7))
    pictures = marked(browser.widget, "rw-pictures")
    pictures.selected_index = 1
    assert kind(pictures, widgets.Dropdown).options[0] == "tags.domain"
    assert "退款" in kind(pictures.children[1], widgets.HTML).value
    assert said(browser) == ""


def test_a_run_that_tells_ids_alone_opens(tmp_path):
    def retrieve(asked):
        return json_reply({"results": [{"chunkId": i} for i in RESULTS[asked["question"]]]})

    fake = service(retrieve=retrieve, manifest=None, explain=False, chunk_call=False)
    browser = opened(run(tmp_path, fake, [case(1), case(2)], top_k=7))
    assert listed(browser) == ["c1", "c2"]
    assert "Rank at each stage" in shown_html(browser.widget)
    assert said(browser) == ""


def test_a_run_without_a_failed_case_says_so(tmp_path):
    browser = opened(run(tmp_path, service(), [case(0)]))
    assert "0 of 1 cases fail" in shown_html(browser.widget)
    assert marked(browser.widget, "rw-case-panel").layout.display == "none"
    button(browser.widget, "next").click()
    assert said(browser) == ""


def test_cases_without_a_verdict_are_counted(tmp_path):
    def retrieve(asked):
        if asked["question"] == "q3":
            return json_reply({"title": "no"}, 400)
        return json_reply({"results": [{"chunkId": "doc-7"}, {"chunkId": "doc-1"}]})

    refused = case(5, mode="refuse", expected_chunk_ids=[], refusal_trigger=["NO_EVIDENCE"])
    cases = [case(1), case(2), case(3), refused]
    browser = opened(run(tmp_path, service(retrieve=retrieve), cases))
    assert repr(browser).endswith("1 of 4 cases fail at K = 3, 1 could not be asked, 1 not judged")


def test_hostile_texts_are_shown_as_text_everywhere(tmp_path):
    fake = service(n_chunks=0, manifest={"service": TEXTS[0]})
    fake.chunks = {f"{SCRIPT}-{n}": text for n, text in enumerate(TEXTS)}
    cases = [
        hostile_case(n, text, expected_chunk_ids=[f"{'nowhere' * (n > 0)}{SCRIPT}-{n}"])
        for n, text in enumerate(TEXTS)
    ]
    browser = opened(run(tmp_path, fake, cases))
    for _ in TEXTS:
        write(browser, "remark", SCRIPT)
        for tab in range(4):
            marked(browser.widget, "rw-tabs").selected_index = tab
        marked(browser.widget, "rw-pictures").selected_index = 1
        html = shown_html(browser.widget).lower()
        for piece in ("<script", "<img", "<svg onload", "\x1b", "\u202e"):
            assert piece not in html
        labels = json.dumps(kind(browser.widget, widgets.Select)._options_labels)
        assert "\\u001b" not in labels
        button(browser.widget, "next").click()
    assert not any(
        w.description_allow_html
        for w in walk(browser.widget)
        if hasattr(w, "description_allow_html")
    )
