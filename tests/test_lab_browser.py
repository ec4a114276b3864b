"""The notebooks in JupyterLab in a real browser: every cell runs, every chart is shown."""

import pytest
from hostile import SCRIPT, hostile_case
from lab import jupyter_lab, opened_notebook, shoot
from run_data import case, run, service

from ragwb.cli.notebooks import copy_notebooks

pytestmark = [pytest.mark.slow, pytest.mark.browser]


@pytest.fixture
def home(tmp_path):
    """A home with one run: a good case, a failed one, and one whose texts are hostile."""
    cases = [
        case(1, question="退款审核通过后多久到账？", tags={"domain": "退款"}),
        case(2, question="没收到票", tags={"domain": "发票"}),
        hostile_case(3, SCRIPT, dataset_version="v1"),
    ]
    run(tmp_path, service(results={"没收到票": ["doc-0"]}), cases)
    copy_notebooks(tmp_path / "notebooks")
    return tmp_path / "home"


def test_the_retrieval_notebook_runs_cell_by_cell(home, tmp_path):
    with (
        jupyter_lab(tmp_path / "notebooks", home) as base,
        opened_notebook(base, "10_retrieval_run.ipynb") as page,
    ):
        page.locator(".rw-verdict").wait_for(timeout=90_000)
        manifest = page.get_by_role("cell", name="content_hash")
        manifest.wait_for(state="attached", timeout=90_000)
        assert page.locator(".jp-RenderedHTMLCommon svg").count() >= 3
        assert page.locator(".jp-OutputArea-output[data-mime-type*='stderr']").count() == 0
        assert page.get_by_text("没收到票").first.is_visible()
        assert page.evaluate("window.owned") is None
        page.locator(".rw-verdict").scroll_into_view_if_needed()
        shoot(page, "lab")
