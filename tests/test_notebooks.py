"""Every notebook: how it is written, that it runs headless, how its report opens."""

import json
import re

import nbformat
import pytest
from answer_run_data import ANSWERS, answer_run, answer_service, says
from answer_run_data import CASES as CASES_ANSWERED
from browser import check_one_file, opened, opened_report
from hostile import NAME, SCRIPT, TEXTS, hostile_case
from run_data import case, run, service
from view_data import CASES, STAGES, lossy_run, staged_service

from ragwb.report.answer_evaluation import evaluate_answers
from ragwb.report.evaluation import evaluate
from ragwb.report.files import write_answer_report, write_report
from ragwb.report.notebook import ReportError, read_parameters, run_notebook
from ragwb.settings import shared_file

NOTEBOOKS = sorted(shared_file("notebooks").glob("*.ipynb"))
MAX_CODE_CELLS, MAX_CELL_LINES, MAX_CODE_LINES = 15, 12, 100
FORBIDDEN = re.compile(r"^\s*(def|class|for|while|try|%|!)\b|sys\.exit|open\(", re.M)


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request):
    return nbformat.read(request.param, as_version=4)


def test_there_are_notebooks():
    assert [path.stem for path in NOTEBOOKS] == [
        "10_retrieval_run",
        "20_triage",
        "30_answers",
        "40_compare",
        "50_weekly",
        "60_judge_calibration",
        "70_k",
        "80_chunking",
    ]


def test_a_notebook_carries_no_outputs_and_keeps_its_limits(notebook):
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    lines = [cell.source.splitlines() for cell in code]
    assert not any(cell.outputs or cell.execution_count for cell in code)
    assert len(code) <= MAX_CODE_CELLS
    assert max(map(len, lines)) <= MAX_CELL_LINES
    assert sum(map(len, lines)) <= MAX_CODE_LINES
    assert not any(FORBIDDEN.search(cell.source) for cell in code)


def test_a_notebook_starts_with_its_question_and_ends_with_its_record(notebook):
    first, parameters, setup, *_, last = notebook.cells
    assert first.cell_type == "markdown"
    assert first.source.startswith("# ")
    assert "?" in first.source
    assert parameters.metadata.tags == ["parameters"]
    assert read_parameters(notebook)
    assert "rw.setup()" in setup.source
    assert last.source.startswith("rw.record(")


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The report of a run whose every text is hostile, with one good case and one error beside."""
    folder = tmp_path_factory.mktemp("report")
    fake = service(n_chunks=0, manifest={"embeddingModel": "hash", "service": TEXTS[0]})
    fake.chunks = {f"doc-{n}": text for n, text in enumerate(TEXTS)}
    cases = [hostile_case(n, text) for n, text in enumerate(TEXTS)]
    cases += [
        case(0, dataset_version=cases[0]["dataset_version"], question="退款审核通过后多久到账？")
    ]
    evaluation = evaluate(run(folder, fake, cases), limits={"min_recall": 0.9})
    return write_report(evaluation, folder / "reports" / "run.v1")


@pytest.mark.slow
def test_three_files_are_written_beside_one_another(report):
    assert report.json.name == "run.v1.json"
    assert json.loads(report.json.read_text(encoding="utf-8"))["verdict"] == "fail"
    assert report.markdown.read_text(encoding="utf-8").startswith("# Retrieval report")


@pytest.mark.slow
def test_the_report_is_one_file_without_scripts(report):
    html = report.html.read_text(encoding="utf-8")
    assert "<script" not in html
    assert "default-src 'none'" in html
    linked = set(re.findall(r"https?://[^\s\"'<)]+", html))
    assert linked <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"} | {
        url for url in linked if url.startswith("http://service.example")
    }


@pytest.mark.slow
@pytest.mark.browser
def test_hostile_text_does_nothing_in_a_browser(report):
    with opened(report.html.as_uri()) as page:
        assert page.evaluate("window.owned") is None
        page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert page.evaluate("window.owned") is None
        assert page.asked == [report.html.as_uri()]
        assert page.title() == "Retrieval run"
        assert page.locator("img, iframe, object, embed, form, link").count() == 0


@pytest.mark.slow
@pytest.mark.browser
def test_the_report_opens_with_the_verdict_and_never_scrolls_sideways(report):
    with opened(report.html.as_uri(), width=1280) as page:
        page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert page.evaluate("document.documentElement.scrollWidth") <= 1280
        verdict = page.locator(".rw-verdict")
        assert verdict.inner_text().startswith("FAIL")
        assert verdict.bounding_box()["y"] < 400
        assert page.locator("svg").count() == 3
        assert page.get_by_text("退款审核通过后多久到账？").first.is_visible()


def triaged(source, folder, **parameters):
    """The triage report of a run and what it recorded."""
    html = folder / "triage.html"
    given = {"run": str(source.path), **parameters}
    notebook = shared_file("notebooks", "20_triage.ipynb")
    return html, run_notebook(notebook, given, html, cwd=folder)


@pytest.fixture(scope="module")
def triage_report(tmp_path_factory):
    """The triage report of a run that loses evidence at every stage, its texts hostile."""
    folder = tmp_path_factory.mktemp("triage")
    version = {"dataset_version": NAME}
    cases = [{**given, "tags": {"kind": SCRIPT}, **version} for given in CASES]
    cases += [hostile_case(n, text, expected_chunk_ids=["doc-38"]) for n, text in enumerate(TEXTS)]
    fake = staged_service({**STAGES, **dict.fromkeys(TEXTS, STAGES["recall"])})
    fake.chunks["doc-2"] = TEXTS[1] + TEXTS[2]
    return triaged(run(folder, fake, cases, top_k=3), folder)


@pytest.mark.slow
def test_triage_records_what_the_command_says(triage_report):
    _, recorded = triage_report
    assert recorded["k"] == 3
    assert recorded["n_cases"] == len(CASES) + len(TEXTS)
    assert recorded["cases"][0]["case_id"] == "c5"
    assert {*recorded["cases"][0]} == {"case_id", "stage", "reason", "group", "groups"}


@pytest.mark.slow
def test_the_triage_report_is_one_file_without_scripts(triage_report):
    html = triage_report[0].read_text(encoding="utf-8")
    assert "<script" not in html
    assert "default-src 'none'" in html
    linked = set(re.findall(r"https?://[^\s\"'<)]+", html))
    assert {url for url in linked if "w3.org" not in url} <= {"http://service.example"}


@pytest.mark.slow
@pytest.mark.browser
def test_the_triage_report_reads_in_a_browser_and_hostile_text_does_nothing(triage_report):
    url = triage_report[0].as_uri()
    with opened(url, width=1280) as page:
        page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert page.evaluate("window.owned") is None
        assert page.asked == [url]
        assert page.title() == "Triage"
        assert page.evaluate("document.documentElement.scrollWidth") <= 1280
        assert page.locator("img, iframe, object, embed, form, link").count() == 0
        assert page.locator("details.rw-case").count() == 7 + len(TEXTS)
        # Three charts, and a journey a case.
        assert page.locator("svg.marks").count() == 3 + 7 + len(TEXTS)
        verdict = page.locator(".rw-verdict")
        assert verdict.inner_text().startswith(f"{7 + len(TEXTS)} of {9 + len(TEXTS)} cases fail")
        assert verdict.bounding_box()["y"] < 400


@pytest.mark.slow
def test_triage_of_repeats_at_another_k_lists_what_has_no_section(tmp_path):
    source = lossy_run(tmp_path, repeats=2)
    html, recorded = triaged(source, tmp_path, k=2, case_limit=1, by="risk")
    text = html.read_text(encoding="utf-8")
    assert recorded["k"] == 2
    assert "2 of 2 repeats failed" in text
    assert "6 more cases without a section of their own" in text
    assert text.count('class="rw-fold rw-case"') == 1


@pytest.mark.slow
def test_triage_without_traces_says_what_is_not_observed(tmp_path):
    given = {"tags": {"kind": "a"}}
    cases = [case(1, expected_chunk_ids=["doc-30"], **given), case(2, **given)]
    stages = {"q1": {"results": ["doc-1"]}, "q2": {"results": ["doc-2"]}}
    source = run(tmp_path, staged_service(stages), cases)
    html, recorded = triaged(source, tmp_path)
    assert [one["reason"] for one in recorded["cases"]] == ["NOT_OBSERVED"]
    assert "1 of which the trace does not tell where" in html.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def answer_report(tmp_path_factory):
    """The report of answers that are wrong in every way, with hostile ones among them."""
    folder = tmp_path_factory.mktemp("answers")
    cases = [{**given, "dataset_version": NAME} for given in CASES_ANSWERED]
    answers = {**ANSWERS, **{text: says(text, "doc-1", TEXTS[0]) for text in TEXTS}}
    cases += [
        hostile_case(n, text, reference_answer=text, required_claims=[{"text": SCRIPT}])
        for n, text in enumerate(TEXTS)
    ]
    fake = answer_service(n_chunks=10, answers=answers, manifest={"answerModel": SCRIPT})
    fake.chunks["doc-1"] = TEXTS[1] + TEXTS[2]
    evaluation = evaluate_answers(
        answer_run(folder, fake, cases, repeats=2), limits={"min_mode_accuracy": 0.9}
    )
    files = {"rules": "", "verdicts": [], "rubrics": []}
    return write_answer_report(evaluation, folder / "answers", files)


@pytest.mark.slow
def test_the_answer_report_records_what_its_json_says(answer_report):
    written = json.loads(answer_report.json.read_text(encoding="utf-8"))
    assert written["verdict"] == "fail"
    assert written["thresholds"][0]["name"] == "min_mode_accuracy"
    assert answer_report.markdown.read_text(encoding="utf-8").startswith("# Answer report")


@pytest.mark.slow
def test_the_answer_report_is_one_file_without_scripts(answer_report):
    check_one_file(answer_report.html)


@pytest.mark.slow
@pytest.mark.browser
def test_the_answer_report_reads_in_a_browser_and_hostile_text_does_nothing(answer_report):
    with opened_report(answer_report.html, "Answers") as page:
        assert page.locator("img, iframe, object, embed, form, link").count() == 0
        assert page.locator("details.rw-case").count() == len(CASES_ANSWERED) + len(TEXTS)
        assert page.locator("svg.marks").count() == 1
        verdict = page.locator(".rw-verdict")
        assert verdict.inner_text().startswith("FAIL")
        assert verdict.bounding_box()["y"] < 400


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "given", "why"),
    [
        ("20_triage", {"case_limit": -1}, "-1 cases to open"),
        ("30_answers", {}, "only retrieved: make one with `ragwb answer-eval`"),
        ("60_judge_calibration", {"labels": "none.csv", "verdicts": "v.jsonl"}, "none.csv"),
    ],
)
def test_what_cannot_be_reported_is_one_line_and_leaves_the_good_report(tmp_path, name, given, why):
    html = tmp_path / "report.html"
    html.write_text("good", encoding="utf-8")
    if not name.startswith("60"):
        given = {"run": str(run(tmp_path, service(), [case(1)]).path), **given}
    with pytest.raises(ReportError) as caught:
        run_notebook(shared_file("notebooks", f"{name}.ipynb"), given, html, cwd=tmp_path)
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)
    assert html.read_text(encoding="utf-8") == "good"
    assert (tmp_path / "report.failed.ipynb").is_file()
