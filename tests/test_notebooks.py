"""Every notebook: how it is written, that it runs headless, how its report opens."""

import json
import re

import nbformat
import pytest
from browser import opened
from hostile import TEXTS, hostile_case
from run_data import case, run, service

from ragwb.report.evaluation import evaluate
from ragwb.report.files import write_report
from ragwb.report.notebook import read_parameters
from ragwb.settings import shared_file

NOTEBOOKS = sorted(shared_file("notebooks").glob("*.ipynb"))
MAX_CODE_CELLS, MAX_CELL_LINES, MAX_CODE_LINES = 15, 12, 100
FORBIDDEN = re.compile(r"^\s*(def|class|for|while|try|%|!)\b|sys\.exit|open\(", re.M)


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request):
    return nbformat.read(request.param, as_version=4)


def test_there_are_notebooks():
    assert [path.stem for path in NOTEBOOKS] == ["10_retrieval_run"]


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
