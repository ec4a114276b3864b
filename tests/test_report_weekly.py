"""The weekly report: its parts, its Markdown, its files, and what a failure leaves behind."""

import json
import re

import pytest
from answer_run_data import ANSWERS, answer_run, answer_service
from browser import opened
from hostile import SCRIPT, TEXTS
from weekly_data import BASE, Week, case_id, settings, store, write_week

from ragwb.decide.weekly.period import period
from ragwb.report import weekly_sections as sections
from ragwb.report.notebook import ReportError
from ragwb.report.weekly import write_weekly
from ragwb.report.weekly_markdown import weekly_to_markdown
from ragwb.runs.notes import Note, add_note
from ragwb.runs.store import load_run

ALL = Week(strength=1.0)
SMALLER = {"chunking": {**BASE["chunking"], "size": 200}}
PARTS = (
    sections.overview,
    sections.since_last_week,
    sections.trends,
    sections.stages,
    sections.slices,
    sections.unstable,
    sections.golden_set,
    sections.judges,
    sections.notes,
    sections.runs,
    sections.cases,
)
DAYS = {"since": "2026-01-01", "until": "2026-12-31"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("weekly")
    weeks = [
        ALL,
        Week(strength=1.0, lost=frozenset({2})),
        Week(strength=1.0, manifest=SMALLER),
        Week(strength=1.0, lost=frozenset({1, 2}), manifest=SMALLER, version="v2", added=1),
    ]
    store(made, weeks)
    return made


@pytest.fixture(scope="module")
def weeks(folder):
    return period(settings(folder), **DAYS)


@pytest.fixture
def home(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("RAGWB_HOME", str(settings(folder).home))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_three_lines_stand_on_top_in_text_and_html(weeks):
    panel = sections.overview(weeks)
    for line in weeks.series[0].lines():
        assert line in panel.text
    assert "rw-verdict rw-neutral" in panel.html
    assert panel.html.index("PASS") < panel.html.index("Since week 2026-W04")


def test_every_link_of_the_contents_leads_to_a_part(weeks):
    html = "".join(part(weeks).html for part in PARTS)
    links = re.findall(r'<a href="#([^"]+)"', html)
    assert len(links) >= len(sections.HEADINGS)
    assert all(html.count(f'id="{link}"') == 1 for link in links)


def test_changed_cases_are_links_to_both_of_their_runs(weeks):
    panel = sections.since_last_week(weeks)
    assert f'<a href="#series-1-case-1">{case_id(1)}</a>' in panel.html
    cards = sections.cases(weeks)
    assert cards.html.count('class="rw-fold rw-case"') == 2
    assert cards.html.index('id="series-1-case-1"') < cards.html.index('id="series-1-case-2"')
    assert "Newly broken: 2" in panel.text
    assert "Newly fixed: 0" in panel.text


def test_cases_beyond_the_limit_are_listed_and_counted(weeks):
    panel, cards = sections.since_last_week(weeks, limit=1), sections.cases(weeks, limit=1)
    assert panel.html.count("<a href") == 1
    assert case_id(2) in panel.text
    assert cards.html.count('class="rw-fold rw-case"') == 1
    assert "1 more case changed sides: ragwb compare opens every one." in cards.text
    assert "<a href" not in sections.since_last_week(weeks, limit=0).html
    assert sections.cases(weeks, limit=0).text == "No case is opened."


def test_what_was_changed_stands_under_its_number(weeks):
    text = sections.trends(weeks).text
    assert "chunk size 400 → 200" in text
    assert "this comparison isolates chunk size" in text
    assert "the golden set alone" in text


def test_what_never_moved_is_named_and_not_drawn(weeks):
    panel = sections.trends(weeks)
    assert re.search(r"The same in every run: .*model_calls", panel.text)
    assert ">model_calls" not in panel.html.split("<svg")[-1].split("</svg>")[0]


def test_a_case_that_goes_to_and_fro_is_drawn_run_by_run(weeks):
    panel = sections.unstable(weeks)
    assert case_id(2) in panel.text
    assert "changed 3 times in all" in panel.text


def test_runs_are_listed_the_newest_first(weeks):
    text = sections.runs(weeks).text
    ids = [point.run_id for point in weeks.series[0].points]
    assert sorted(ids, key=text.index) == ids[::-1]


def test_markdown_says_the_same(weeks):
    text = weekly_to_markdown(weeks)
    assert text.startswith("# Weekly report 2026-W53\n")
    assert "**PASS, no limits set: no case breaks" in text
    for title in ("Newly broken", "Figures", "Sets", "What was changed", "Golden set", "Runs"):
        assert f"\n### {title}" in text
    assert "| case-001 |" in text


def test_a_single_run_has_every_part(tmp_path):
    store(tmp_path, [ALL])
    alone = period(settings(tmp_path), **DAYS)
    texts = [part(alone).text for part in PARTS]
    assert "there is no other run" in texts[1]
    assert "No case failed in any run." in texts[3]
    assert "One run alone does not drift." in texts[4]
    assert "Every case holds still." in texts[5]
    assert "nothing here rests on a judge" in texts[7]
    assert weekly_to_markdown(alone)


def test_one_run_is_shown_as_figures_with_intervals_and_without_a_chart(tmp_path):
    store(tmp_path, [Week(strength=1.0, lost=frozenset({1, 4}))], repeats=2)
    alone = period(settings(tmp_path), **DAYS)
    panels = [part(alone) for part in PARTS]
    assert "<svg" not in "".join(panel.html for panel in panels[:6])
    assert "One run: lines are drawn from two on." in panels[2].text
    assert re.search(r"recall@5 +0\.917 +0\.\d+ – 1\.000", panels[2].text)
    assert re.search(r"stage +failed cases", panels[3].text)
    assert "the repeats of the last run differ" in panels[5].text


def test_a_run_that_failed_as_a_whole_is_said_in_every_part(tmp_path):
    store(tmp_path, [ALL, Week(errors=frozenset(range(12)))])
    found = period(settings(tmp_path), **DAYS)
    texts = [part(found).text for part in PARTS]
    assert "the last run failed: 12 of 12 calls" in texts[0]
    assert "2 runs, of which at most one was answered: lines are drawn from two on." in texts[2]
    assert re.search(r"recall@5 +– +– +0 +1\.000", texts[2])
    assert "nothing is known of any case" in texts[4]
    assert "every call failed" in texts[9]
    assert "the last run failed: 12 of 12 calls" in weekly_to_markdown(found)
    assert found.to_dict()["series"][0]["runs"][-1]["n_failed_calls"] == 12


def test_answers_have_figures_of_their_own(tmp_path):
    answer_run(tmp_path)
    answer_run(tmp_path, answer_service(answers={**ANSWERS, "q1": ANSWERS["q2"]}))
    found = period(settings(tmp_path), since="2020-01-01")
    (series,) = found.series
    assert (series.name, series.metric) == ("answers · v1", "correct_rate")
    assert "c1" in series.comparison.broken
    # c2 says what it must not, which is a hard rule.
    assert series.verdict.verdict == "fail"
    assert "c2" in {name for blocker in series.verdict.blockers for name in blocker.case_ids}
    text = "".join(part(found).text for part in PARTS)
    assert "claim_coverage" in text
    assert weekly_to_markdown(found)
    assert "1 shadow case apart, in no figure here" in sections.overview(found).text


def test_answers_of_several_repeats_have_intervals_too(tmp_path):
    answer_run(tmp_path, repeats=2)
    (series,) = period(settings(tmp_path), since="2020-01-01").series
    row = series.latest.figure("refusal_precision")
    assert row["low"] <= row["value"] <= row["high"]


def test_weeks_without_a_run_are_named(tmp_path):
    write_week(tmp_path, 0, ALL)
    write_week(tmp_path, 3, ALL)
    panel = sections.overview(period(settings(tmp_path), **DAYS))
    assert "in 2 weeks: 2026-W03, 2026-W04." in panel.text
    assert "is of 2026-01-26, 339 days before the period ends." in panel.text
    near = period(settings(tmp_path), "2026-W05", "2026-W05")
    assert "before the period ends" not in sections.overview(near).text


def test_what_cannot_be_shown_is_said(tmp_path):
    ids = [write_week(tmp_path, n, Week(strength=1.0, version=f"v{n}")) for n in range(2)]
    (settings(tmp_path).home / "calibrations.json").write_text("[", encoding="utf-8")
    run = load_run(ids[1], settings(tmp_path))
    add_note(run, Note(case_id(1), 1, 5, "rerank", "X", None, None, None, "看", "me", "2026-01-20"))
    found = period(settings(tmp_path), **DAYS, dataset="v1")
    for text in (sections.judges(found).text, weekly_to_markdown(found)):
        assert "Calibrations are not shown: " in text
    assert "1 run of other dataset versions." in sections.runs(found).text
    assert "Runs of other dataset versions: 1" in weekly_to_markdown(found)
    assert "1 note on cases that do not fail any more." in sections.notes(found).text


def test_more_unstable_cases_than_are_drawn_are_counted_and_named(tmp_path):
    restless = Week(strength=1.0, lost=frozenset(n for n in range(60) if n % 5 != 3))
    store(tmp_path, [ALL, restless], n_cases=60)
    panel = sections.unstable(period(settings(tmp_path), **DAYS))
    assert panel.text.count("changed once while nothing was changed") == 20
    assert "28 more: case-" in panel.text


def test_several_series_stand_under_their_names(tmp_path):
    write_week(tmp_path, 0, ALL)
    write_week(tmp_path, 1, Week(removed=frozenset(range(12)), added=8, version="other"))
    both = period(settings(tmp_path), **DAYS)
    for part in PARTS:
        html = part(both).html
        if part is not sections.judges:
            assert html.index("retrieval · other") < html.index("retrieval · weekly-golden-v1")
    assert weekly_to_markdown(both).count("\n## retrieval") == 2


def test_runs_that_are_left_out_are_named(tmp_path):
    store(tmp_path, [ALL, ALL])
    broken = min(settings(tmp_path).runs_dir.iterdir())
    (broken / "chunks.parquet").write_bytes(b"no")
    panel = sections.runs(period(settings(tmp_path), **DAYS))
    assert "1 run left out, in no figure above:" in panel.text
    assert f"\n{broken.name}  " in panel.text
    assert "wrong content hash" in panel.text


def test_text_of_others_stays_text(tmp_path):
    hostile = {"embedding_model": SCRIPT, "service": TEXTS[4]}
    store(tmp_path, [ALL, Week(lost=frozenset({1}), version=SCRIPT, manifest=hostile)])
    run = load_run(max(settings(tmp_path).runs_dir.iterdir()))
    note = Note(case_id(1), 1, 5, "rerank", "X", False, None, None, TEXTS[1], SCRIPT, "2026-01-20")
    add_note(run, note)
    found = period(settings(tmp_path), **DAYS)
    panels = [part(found) for part in PARTS]
    html = "".join(panel.html for panel in panels)
    assert "<script" not in html
    assert "<img" not in html
    assert "\x1b" not in html + "".join(panel.text for panel in panels)
    assert "<script>" not in weekly_to_markdown(found).replace("\\<", "")


@pytest.mark.slow
@pytest.mark.browser
def test_the_files_are_written_together_and_open_without_a_script(home):
    files = write_weekly(home / "out" / "week.49", DAYS)
    assert [path.name for path in (files.html, files.markdown, files.json)] == [
        "week.49.html",
        "week.49.md",
        "week.49.json",
    ]
    assert files.pdf is None
    assert json.loads(files.json.read_text(encoding="utf-8")) == files.period
    html = files.html.read_text(encoding="utf-8")
    assert html.count("<h2") == len(sections.HEADINGS)
    assert [name for name in sections.HEADINGS if f">{name}<" not in html] == []
    assert "<script" not in html
    with opened(files.html.as_uri(), width=1280) as page:
        assert page.asked == [files.html.as_uri()]
        assert page.evaluate("document.documentElement.scrollWidth") <= 1280
        page.click("text=Unstable cases")
        assert page.evaluate("window.scrollY") > 0


@pytest.mark.slow
def test_a_failure_keeps_its_notebook_and_the_good_report(home, folder):
    base = home / "week"
    files = write_weekly(base, DAYS)
    before = {path: path.read_bytes() for path in (files.html, files.markdown, files.json)}
    with pytest.raises(ReportError, match=r"50_weekly\.ipynb failed"):
        write_weekly(base, {**DAYS, "since": "2031-01-01"})
    assert {path: path.read_bytes() for path in before} == before
    assert base.with_suffix(".failed.ipynb").is_file()


@pytest.mark.slow
@pytest.mark.browser
def test_a_page_is_printed_on_a4(home):
    files = write_weekly(home / "week", DAYS, pdf=True)
    content = files.pdf.read_bytes()
    assert content.startswith(b"%PDF-")
    assert re.search(rb"/MediaBox ?\[0 0 59[45][^\]]* 84[12]", content)
