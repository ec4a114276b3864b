"""The parts of a triage report: the finding, remedies, every failed case, what is not judged."""

import re

import pytest
from hostile import SCRIPT, TEXTS, hostile_case
from loopback import json_reply
from run_data import case, run
from view_data import CASES, lossy_run, staged_service

from ragwb.errors import UsageError
from ragwb.report import triage_sections
from ragwb.runs.notes import NOTES, Note, add_note
from ragwb.triage.attribute import triage
from ragwb.triage.result import WORST_FIRST

SECTIONS = (
    triage_sections.overview,
    triage_sections.remedies_panel,
    triage_sections.not_judged,
    lambda found: triage_sections.cases(found, limit=99),
    lambda found: triage_sections.cases(found, limit=0),
)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return lossy_run(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def lossy(source):
    return triage(source)


def test_the_overview_says_how_many_fail_where_and_what_to_do_first(lossy):
    text = triage_sections.overview(lossy).text
    first, step, *_ = text.splitlines()
    assert first.startswith("7 of 9 cases fail at K = 3: 1 with evidence that must not be there; ")
    assert "2 lost in recall" in first
    # The stage of the cut is not blamed for the order that it was given.
    assert "1 ranked beyond K: 1 since a channel" in first
    assert "lost in rerank" not in text
    assert "ranked beyond K: 1 since a channel. First see since which stage" in text
    assert first.endswith("1 of which the trace does not tell where")
    assert step.startswith("- 1 case: what the case forbids came back. First find out why")
    assert "2 cases (1 of high risk): visible, yet in no channel's candidates" in text
    assert text.splitlines()[-1].endswith("top K 3 · 1 passed, 1 not judged")


def test_the_overview_is_a_fail_in_html_as_well(lossy):
    html = triage_sections.overview(lossy).html
    assert 'class="rw-verdict rw-fail"' in html
    assert html.count("<li>") >= 4


def test_reasons_beyond_the_first_are_counted(lossy):
    assert "more reason" in triage_sections.overview(lossy).text


def test_a_run_without_a_failed_case_passes(tmp_path):
    stages = {"q1": {"channels": {"vector": ["doc-1"]}, "results": ["doc-1"]}}
    found = triage(run(tmp_path, staged_service(stages), [case(1)]))
    panel = triage_sections.overview(found)
    assert panel.text.startswith("0 of 1 cases fail")
    assert "rw-pass" in panel.html
    assert triage_sections.cases(found, limit=5).text == "No case failed."
    assert "No single change" in triage_sections.remedies_panel(found).text


def test_a_failed_call_leaves_the_finding_open_and_is_named(tmp_path):
    fake = staged_service({"q1": {"results": ["doc-1"]}})
    answer = fake.retrieve
    fake.retrieve = lambda data: json_reply({}, 500) if data["question"] == "q2" else answer(data)
    found = triage(run(tmp_path, fake, [case(1), case(2)]))
    panel = triage_sections.overview(found)
    assert "rw-undecided" in panel.html
    assert "Calls failed for good in c2, of which nothing is known" in panel.text
    assert "c2" in triage_sections.not_judged(found).text
    assert "500" in triage_sections.not_judged(found).text


def test_repeats_that_differ_are_called_unstable(tmp_path):
    fake = staged_service({"q1": {"results": ["doc-2"]}, "again": {"results": ["doc-1"]}})
    answer, asked = fake.retrieve, []

    def reply(data):
        asked.append(data["question"])
        return answer({**data, "question": "q1" if len(asked) == 1 else "again"})

    fake.retrieve = reply
    found = triage(run(tmp_path, fake, [case(1)], repeats=2, concurrency=1))
    assert "Unstable, the repeats differ: c1." in triage_sections.overview(found).text
    assert "1 of 2 repeats failed" in triage_sections.cases(found, limit=1).html


def test_hash_embeddings_are_warned_of(tmp_path):
    fake = staged_service({"q1": {"results": ["doc-1"]}})
    fake.manifest = {"embeddingModel": "hash"}
    panel = triage_sections.overview(triage(run(tmp_path, fake, [case(1)])))
    assert panel.text.startswith("These figures say nothing about meaning")
    assert "rw-warning" in panel.html


def test_every_failed_case_is_a_section_the_worst_first(lossy):
    panel = triage_sections.cases(lossy, limit=99)
    assert panel.html.count("rw-case") == len(lossy.cases) == 7
    order = [re.escape(case_id) for case_id in (one.case_id for one in lossy.cases)]
    assert re.search(".*".join(f"<code>{name}</code>" for name in order), panel.html, re.S)
    # The first of each stage is open.
    stages = {one.verdict.stage for one in lossy.cases}
    assert panel.html.count('class="rw-fold rw-case" open="open"') == len(stages)


def test_cases_beyond_the_limit_are_counted_and_listed(lossy):
    panel = triage_sections.cases(lossy, limit=2)
    assert panel.html.count("rw-case") == 2
    assert f"5 more cases without a section of their own, {WORST_FIRST}:" in panel.text
    for one in lossy.cases[2:]:
        assert one.case_id in panel.text
        assert f"<td>{one.case_id}</td>" in panel.html
    assert triage_sections.cases(lossy, limit=0).text.startswith(f"7 cases, {WORST_FIRST}:")


def test_less_than_no_case_cannot_be_opened(lossy):
    with pytest.raises(UsageError, match="-1 cases to open"):
        triage_sections.cases(lossy, limit=-1)


@pytest.fixture(scope="module")
def curable(tmp_path_factory):
    """Two cases of which one is lost by a single position, and one that passes."""
    names = [f"doc-{n}" for n in range(1, 9)]
    held = {"channels": {"vector": names}, "fused": names, "reranked": names}
    stages = {"q": {**held, "results": names[:3]}}
    cases = [
        case(n, question="q", expected_chunk_ids=[name])
        for n, name in enumerate(["doc-4", "doc-39", "doc-1"])
    ]
    folder = tmp_path_factory.mktemp("curable")
    return triage(run(folder, staged_service(stages), cases, top_k=3))


def test_remedies_name_what_they_bring_back_and_what_they_break(curable):
    panel = triage_sections.remedies_panel(curable)
    found = curable.what_if()
    assert "K = 5" in [remedy.change.label for remedy in found]
    for remedy in found:
        assert remedy.change.label in panel.text
        assert f"{len(remedy.fixed)} of 2: {remedy.fixed[0]}" in panel.text
        for case_id in (*remedy.fixed, *remedy.broken, *remedy.unknown):
            assert case_id in panel.html
    assert "not measured" in panel.text
    best = next(remedy for remedy in found if remedy.change.is_remedy)
    words = f"What if: {best.change.label} brings back 1 of 2 failed cases and breaks none"
    assert words in triage_sections.overview(curable).text


def test_a_case_says_the_least_change_that_brings_it_back(curable):
    text = re.sub(r"<[^>]+>", " ", triage_sections.cases(curable, limit=2).html)
    assert re.search(r"K = 4\s+4\s+4\s+1\b", text)


def test_what_people_said_stands_in_the_case_and_a_broken_file_is_one_line(tmp_path):
    source = run(tmp_path, staged_service(), CASES[:1], top_k=3)
    found = triage(source)
    verdict = found.cases[0].verdict
    judged = {"stage": verdict.stage, "reason": verdict.reason, "agreed": True}
    empty = {"corrected_stage": None, "corrected_reason": None}
    note = Note(
        case_id="c1",
        repeat=1,
        k=3,
        text="同意",
        author="韩梅",
        written_at="2026-11-30T08:00:00Z",
        **judged,
        **empty,
    )
    add_note(source, note)
    assert "同意" in triage_sections.cases(found, limit=1).html
    with (source.path / NOTES).open("a", encoding="utf-8") as file:
        file.write("{broken\n")
    panel = triage_sections.cases(found, limit=1)
    assert panel.text.startswith("Review notes are not shown: ")
    assert "notes.jsonl:2" in panel.html
    assert panel.html.count("rw-case") == 1


def test_not_judged_cases_are_named_with_why(lossy):
    assert "c9" in triage_sections.not_judged(lossy).text
    assert "No call failed." in triage_sections.not_judged(lossy).text


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    held = {
        "channels": {SCRIPT: ["doc-2"]},
        "filtered": [{"chunkId": "doc-1", "channel": SCRIPT, "reason": SCRIPT}],
        "results": ["doc-2", SCRIPT],
    }
    fake = staged_service(dict.fromkeys(TEXTS, held))
    fake.chunks = {**{f"doc-{n}": text for n, text in enumerate(TEXTS)}, SCRIPT: SCRIPT}
    cases = [hostile_case(n, text) for n, text in enumerate(TEXTS)]
    cases += [hostile_case(9, SCRIPT, expected_chunk_ids=[], mode="refuse")]
    source = run(folder, fake, cases)
    note = {"agreed": None, "corrected_stage": None, "corrected_reason": None, "text": TEXTS[1]}
    add_note(
        source,
        Note(
            case_id=f"h0-{SCRIPT}",
            repeat=1,
            k=5,
            stage=SCRIPT,
            reason=SCRIPT,
            author=SCRIPT,
            written_at="2026-11-30T08:00:00Z",
            **note,
        ),
    )
    return triage(source)


@pytest.mark.parametrize("section", SECTIONS)
def test_hostile_text_does_nothing(hostile, section):
    panel = section(hostile)
    assert "<script" not in panel.html
    assert not re.search(r"<(img|iframe|a)\b", panel.html)
    assert "onload=window" not in re.sub(r"&lt;.*?&gt;", "", panel.html)
    assert "\x1b" not in panel.text + panel.html
    assert "\u202e" not in panel.text + panel.html


@pytest.mark.parametrize("section", SECTIONS)
def test_every_section_says_something_as_text_and_as_html(lossy, section):
    panel = section(lossy)
    assert panel.text
    assert panel.html


def test_a_reply_of_a_wrong_shape_is_not_to_be_asked_again(tmp_path):
    fake = staged_service({"q1": {"results": ["doc-1"]}})
    answer = fake.retrieve
    fake.retrieve = lambda data: json_reply({}) if data["question"] == "q2" else answer(data)
    found = triage(run(tmp_path, fake, [case(1), case(2)]))
    text = triage_sections.overview(found).text
    assert "Replies of a wrong shape in c2: they come again when it is run again" in text
    assert "then run again." not in text
    assert "results: Field required" in triage_sections.not_judged(found).text
