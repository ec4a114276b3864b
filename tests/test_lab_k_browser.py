"""The K notebook in JupyterLab in a real browser: a slider moves K through all four charts."""

import pytest
from hostile import SCRIPT
from k_data import CASES, TOP_K
from lab import jupyter_lab, opened_notebook, shoot
from run_data import run, service

from ragwb.cli.notebooks import copy_notebooks

pytestmark = [pytest.mark.slow, pytest.mark.browser]


@pytest.fixture
def home(tmp_path):
    cases = [*CASES, {**CASES[3], "id": f"h{SCRIPT}", "question": SCRIPT}]
    run(tmp_path, service(10), cases, top_k=TOP_K)
    copy_notebooks(tmp_path / "notebooks")
    return tmp_path / "home"


def test_a_slider_moves_the_marked_k_and_a_cell_can_be_run_again(home, tmp_path):
    with (
        jupyter_lab(tmp_path / "notebooks", home) as base,
        opened_notebook(base, "70_k.ipynb") as page,
    ):
        slider = page.locator(".rw-live input[type=range]")
        slider.wait_for(timeout=120_000)
        page.get_by_text("K = 4: ").first.wait_for()
        slide = "e => { e.value = 2; e.dispatchEvent(new Event('input')); }"
        slider.evaluate(slide)
        page.locator(".rw-live svg text", has_text="K = 2: ").wait_for()
        assert page.locator(".jp-OutputArea-output[data-mime-type*='stderr']").count() == 0
        assert page.evaluate("window.owned") is None
        slider.scroll_into_view_if_needed()
        shoot(page, "lab-k")
        page.locator(".rw-live").scroll_into_view_if_needed()
        page.locator(".jp-CodeCell", has_text="k_linked").locator(".jp-InputArea").click()
        page.keyboard.press("Control+Enter")
        page.locator(".rw-live svg text", has_text="K = 4: ").wait_for(timeout=60_000)
        page.locator(".rw-live input[type=range]").evaluate(slide)
        page.locator(".rw-live svg text", has_text="K = 2: ").wait_for()
