"""The files of a comparison: JSON, Markdown, and a page that opens in a browser."""

import json
from dataclasses import replace

import pytest
from answer_run_data import answer_run, answer_service
from browser import check_one_file, opened, opened_report
from compared_data import AFTER, BEFORE, CASES, compared, compared_answers, staged_run
from hostile import NAME, SCRIPT, TEXTS, hostile_case
from loopback import json_reply

from ragwb.decide.compare import compare, compare_outcomes
from ragwb.decide.outcomes import outcomes_from
from ragwb.decide.patterns import Pattern
from ragwb.errors import UsageError
from ragwb.report.compare_report import compare_to_markdown, write_compare_report
from ragwb.report.notebook import run_notebook
from ragwb.settings import shared_file


def hostile_runs(folder):
    """Two runs whose every text is hostile; the good cases stand beside them."""
    texts = TEXTS
    cases = [{**one, "dataset_version": NAME} for one in CASES]
    cases += [hostile_case(n, text, expected_chunk_ids=["doc-1"]) for n, text in enumerate(texts)]
    return [
        staged_run(folder / name, {**stages, **dict.fromkeys(texts, shown)}, cases)
        for name, stages, shown in (
            ("a", BEFORE, BEFORE["falls"]),
            ("b", AFTER, AFTER["falls"]),
        )
    ]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    return write_compare_report(compare(*hostile_runs(folder)), folder / "reports" / "diff.v1")


@pytest.mark.slow
def test_three_files_are_written_beside_one_another(report):
    assert report.json.name == "diff.v1.json"
    written = json.loads(report.json.read_text(encoding="utf-8"))
    assert written["broken"][:2] == ["c3", "c2"]
    assert written["n"] == 6 + len(TEXTS)
    assert report.markdown.read_text(encoding="utf-8").startswith("# Comparison: ")


@pytest.mark.slow
def test_the_page_is_one_file_without_scripts(report):
    check_one_file(report.html)


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_reads_in_a_browser_and_hostile_text_does_nothing(report, scheme):
    with opened_report(report.html, "Comparison", color_scheme=scheme) as page:
        assert page.locator("img, iframe, object, embed, form, link").count() == 0
        n_cases = 6 + len(TEXTS)
        assert page.locator("details.rw-case").count() == n_cases
        # Figures, cost and slices; two journeys a case.
        assert page.locator("svg.marks").count() == 3 + 2 * n_cases
        words = page.locator(".rw-verdict")
        assert words.inner_text().startswith(f"1 fixed, {3 + len(TEXTS)} broken of {n_cases}")
        assert words.bounding_box()["y"] < 400


@pytest.mark.slow
@pytest.mark.browser
def test_both_journeys_stand_side_by_side(report):
    with opened(report.html.as_uri(), width=1280) as page:
        first = page.locator("details.rw-case[open] .rw-pair").nth(1)
        left, right = (box.bounding_box() for box in first.locator("svg.marks").all())
        assert left["y"] == pytest.approx(right["y"], abs=40)
        assert left["x"] + left["width"] <= right["x"]


@pytest.mark.slow
def test_answers_at_another_k_and_slice_go_through_the_notebook(tmp_path):
    found = compared_answers(tmp_path)
    given = {
        "baseline": str(found.baseline.run.path),
        "candidate": str(found.candidate.run.path),
        "k": 3,
        "by": "risk",
        "case_limit": 1,
        "other_limit": 0,
    }
    page = tmp_path / "diff.html"
    notebook = shared_file("notebooks", "40_compare.ipynb")
    recorded = run_notebook(notebook, given, page, cwd=tmp_path)
    assert recorded["k"] == 3
    assert recorded["broken"] == ["c1"]
    html = page.read_text(encoding="utf-8")
    assert "审核后当天到账" in html
    assert "4 more cases are not opened here" in html
    assert "correct_rate by risk" in html


def test_markdown_leads_with_the_words_and_lists_what_changed(tmp_path):
    text = compare_to_markdown(compared(tmp_path))
    lines = text.splitlines()
    assert "**1 fixed, 3 broken of 6**" in lines
    heads = [line for line in lines if line.startswith("## ")]
    assert heads == ["## Broken", "## Fixed", "## Figures", "## Conditions", "## Not compared"]
    assert "| c3 | high risk | recall@3 1 → 0 | falls high |" in lines
    assert "| c7 | both | excluded: no evidence groups |" in lines


def test_markdown_names_the_patterns_and_hostile_text_stays_text(tmp_path):
    pattern = Pattern("SWAPPED_CASES", SCRIPT, "2 fixed, *2* broken", ("c1",), "the tags")
    found = replace(compare(*hostile_runs(tmp_path)), patterns=(pattern,))
    text = compare_to_markdown(found)
    assert r"(SWAPPED_CASES): 2 fixed, \*2\* broken Look first: the tags." in text
    assert SCRIPT not in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "[click]" not in text
    assert r"\[click\]" in text


def test_figures_that_are_no_run_make_no_report(tmp_path):
    frame = [{"case_id": "c1", "recall@5": 1.0}]
    side = outcomes_from(frame, name="elsewhere", k=5, metrics=["recall@5"])
    with pytest.raises(UsageError, match="compare two saved runs"):
        write_compare_report(compare_outcomes(side, side), tmp_path / "diff")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_report_is_made_where_nothing_pairs(tmp_path):
    fake = answer_service(retrieve=lambda _: json_reply({}, 500))
    found = compare(answer_run(tmp_path), answer_run(tmp_path, fake))
    html = write_compare_report(found, tmp_path / "diff").html.read_text(encoding="utf-8")
    assert "nothing pairs: 8 errors in the candidate" in html
    assert "8 cases in no count above" in html
