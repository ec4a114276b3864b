"""The report of a sweep over K: its parts, its files, its page."""

import json
import re

import pytest
from browser import check_one_file, opened_report
from hostile import NAME, SCRIPT, TEXTS, hostile_case
from k_data import CASES, TOP_K, fickle_answers, measured, swept_run
from run_data import run, service

from ragwb.errors import UsageError
from ragwb.report import k_sections as sections
from ragwb.report.k_report import k_to_markdown, k_to_page, write_k_report
from ragwb.sweep import Budget, sweep_k


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    return sweep_k(swept_run(tmp_path_factory.mktemp("run")))


@pytest.fixture(scope="module")
def answered(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    made = measured(folder, [1, 2, TOP_K], fickle_answers(), answers=True)
    return sweep_k(made.largest, [1, 2, TOP_K], measured=made.runs.values())


def test_the_head_says_which_k_why_and_of_what(swept):
    text = sections.overview(swept).text
    assert text.startswith("K = 4: recall 0.833 for 36 tokens a case")
    assert "- From K = 3 to 4: 1 case gained, +9 tokens a case (c3)." in text
    assert (
        "- From K = 4 to 5: no case gained, 1 case lost, +9 tokens a case. Lost: forbids." in text
    )
    assert "Latency and answers at K = 1, 2, 3, 4, 5 were not measured" in text
    assert text.endswith("top K 6 · 6 of 9 cases scored, 3 excluded")


def test_a_budget_that_nothing_meets_leads_the_head(swept):
    panel = sections.overview(swept, Budget(max_tokens=1))
    assert panel.text.startswith("No K meets 1 tokens a case: the nearest is K = 1 with 9 tokens")
    assert "rw-undecided" in panel.html


def test_answers_that_speak_for_another_k_are_heard(answered):
    text = sections.overview(answered).text
    assert "- The answers speak for another one. K = 2: correct_rate" in text
    assert "another one" not in sections.overview(answered, metric="correct_rate").text


def test_answers_that_speak_for_the_same_k_say_nothing(tmp_path):
    made = measured(tmp_path, [1, 2], fickle_answers(), answers=True)
    found = sweep_k(made.largest, [1, 2], measured=made.runs.values())
    assert found.recommend().k == found.recommend(metric="correct_rate").k == 2
    assert "another one" not in sections.overview(found).text


def test_figures_say_where_nothing_was_measured(swept, answered):
    rows = sections.figure_rows(swept)
    assert [row["latency, p95"] for row in rows["Cost"][:-1]] == ["not measured"] * 5
    assert rows["Retrieval"][2]["hit_rate"] == "4/6 (0.667)"
    assert re.fullmatch(r"0\.667 \[0\.\d\d – 1\.00\]", rows["Retrieval"][2]["recall"])
    text = sections.figures(swept).text
    assert "\nRetrieval\n" in text
    assert "\nPassages\n" not in text
    assert "\nAnswers\n" in sections.figures(answered).text


def test_beyond_top_k_the_table_says_not_observed(tmp_path):
    rows = sections.figure_rows(sweep_k(swept_run(tmp_path), [TOP_K, 9]))
    assert rows["Retrieval"][1]["recall"] == "not observed"
    assert rows["Cost"][1]["tokens a case"] == "not observed"


def test_steps_name_their_cases(swept, answered):
    rows = sections.step_rows(swept)
    assert (rows[0]["gained"], rows[0]["lost"]) == ("2: c1, c1b", "0")
    assert rows[3]["lost"] == "1: forbids"
    assert rows[0]["p95"] == "not measured"
    assert sections.answer_step_rows(swept) == []
    assert [row["no longer answered rightly"] for row in sections.answer_step_rows(answered)] == [
        *("0", "2: c1, refuses all")
    ]
    assert "Right answers" in sections.steps(answered).text


def test_one_k_has_no_step(tmp_path):
    found = sweep_k(swept_run(tmp_path), [3])
    assert "no step to another" in sections.steps(found).text
    assert "no step to another" in k_to_page(found)


def test_slices_the_lowest_first_and_those_without_a_scored_case_named(swept, tmp_path):
    rows = sections.slice_rows(swept, "tags.kind")
    assert [(row["tags.kind"], row["n"]) for row in rows] == [("(none)", 2), ("a", 2), ("b", 2)]
    assert rows[1]["K = 1"] == "0.500"
    cases = [*CASES, {**CASES[6], "id": "odd", "tags": {"kind": "odd"}}]
    odd = sweep_k(run(tmp_path, service(10), cases, top_k=2))
    assert "Without a case that is scored: odd." in sections.slices(odd, "tags.kind").text
    with pytest.raises(UsageError, match="no slice"):
        sections.slices(swept, "nosuch")


def test_of_many_ks_some_stand_beside_one_another(tmp_path):
    found = sweep_k(swept_run(tmp_path, service(30), top_k=30))
    first = sections.slice_rows(found, "risk")[0]
    shown = [name for name in first if name.startswith("K = ")]
    assert len(shown) <= 9
    assert shown[-1] == "K = 30"
    assert "K = 1, 2, 3, 4, 5, 6, 7, 8 … 20 were not measured" in sections.overview(found).text


def test_measured_runs_show_each_pass(answered):
    rows = sections.measured_rows(answered)
    assert [(row["K"], row["calls"], row["at once"]) for row in rows] == [
        *(("1", 18, 1), ("2", 18, 1), ("6", 18, 1))
    ]
    assert all(row["p95 of each pass"].count(" · ") == 1 for row in rows)


def test_markdown_is_a_page_of_tables(answered):
    text = k_to_markdown(answered, Budget(max_tokens=1000))
    assert text.startswith("# K sweep: v1\n\n**K = 6: ")
    for title in ("Retrieval", "Answers", "Cost", "From each K to the next", "Measured"):
        assert f"\n## {title}\n" in text


def hostile_sweep(folder):
    cases = [{**one, "dataset_version": NAME} for one in CASES]
    cases += [hostile_case(n, text) for n, text in enumerate(TEXTS)]
    fake = service(10)
    fake.chunks["doc-1"] = TEXTS[1] + TEXTS[2]
    return sweep_k(run(folder, fake, cases, top_k=TOP_K))


def test_hostile_text_is_text_in_every_part(tmp_path):
    found = hostile_sweep(tmp_path)
    parts = [
        sections.overview(found),
        sections.figures(found),
        sections.steps(found),
        sections.slices(found, "tags.kind"),
        sections.measured(found),
    ]
    for part in parts:
        assert "<script" not in part.html
        assert "\x1b" not in part.text
    assert SCRIPT not in k_to_markdown(found)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    found = hostile_sweep(folder)
    budget = Budget(max_tokens=10_000_000)
    return write_k_report(found, folder / "reports" / "k.v1", budget=budget, by="tags.kind")


@pytest.mark.slow
def test_four_files_are_written_beside_one_another(report):
    written = json.loads(report.json.read_text(encoding="utf-8"))
    assert (report.json.name, report.interactive.name) == ("k.v1.json", "k.v1.interactive.html")
    assert written["recommendation"]["budget"]["max_tokens"] == 10_000_000
    assert report.markdown.read_text(encoding="utf-8").startswith("# K sweep: ")


@pytest.mark.slow
def test_the_report_is_one_file_without_scripts(report):
    check_one_file(report.html)


@pytest.mark.slow
@pytest.mark.browser
def test_both_pages_read_in_a_browser_and_hostile_text_does_nothing(report):
    for file in (report.html, report.interactive):
        with opened_report(file, "K sweep") as page:
            verdict = page.locator(".rw-verdict")
            assert verdict.inner_text().startswith("K = ")
            assert verdict.bounding_box()["y"] < 400
            assert page.locator("svg.marks").count() == (2 if file == report.html else 1)
