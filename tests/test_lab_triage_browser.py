"""The triage browser in JupyterLab in a real browser: filtered, walked, tried and noted by hand."""

import nbformat
import pytest
from hostile import SCRIPT, TEXTS, hostile_case
from lab import jupyter_lab, opened_notebook, shoot
from loopback import json_reply
from run_data import case, run, service

from ragwb.cli.notebooks import copy_notebooks
from ragwb.cli.served import served
from ragwb.golden.dataset import load_dataset
from ragwb.runs.notes import NOTES, load_notes
from ragwb.runs.runner import run_retrieval
from ragwb.settings import Settings, shared_file

pytestmark = [pytest.mark.slow, pytest.mark.browser]

HEIGHT = 1500  # tall enough for the whole browser, so that a picture shows it


@pytest.fixture(scope="module")
def reviewed(tmp_path_factory):
    """A run on the reference service, and the triage notebook as it comes."""
    folder = tmp_path_factory.mktemp("triage")
    golden = load_dataset(shared_file("datasets", "retrieval", "golden-set-v1.jsonl"))
    with served(["--mode", "HYBRID", "--embedder", "hash"]) as url:
        settings = Settings(root=folder, home=folder / "home", base_url=url)
        found = run_retrieval(golden, settings, top_k=5)
    copy_notebooks(folder / "notebooks")
    path = folder / "notebooks" / "20_triage.ipynb"
    notebook = nbformat.read(path, as_version=4)
    (cell,) = [c for c in notebook.cells if "parameters" in c.metadata.get("tags", ())]
    assert "interactive: bool = True" in cell.source
    nbformat.write(notebook, path)
    return folder, found


def open_tab(page, title):
    page.locator(".rw-case-panel .lm-TabBar-tab", has_text=title).click()


def shown_case(page):
    return page.locator(".rw-head h4").inner_text()


def picked(page):
    """The case that is marked in the list, by its label."""
    return page.eval_on_selector(".rw-list select", "list => list.selectedOptions[0].label")


def wait_for_text(page, selector, words):
    page.locator(selector, has_text=words).first.wait_for(timeout=30_000)


def test_a_person_filters_walks_tries_and_notes(reviewed):
    folder, found = reviewed
    with (
        jupyter_lab(folder / "notebooks", folder / "home") as base,
        opened_notebook(base, "20_triage.ipynb") as page,
    ):
        page.set_viewport_size({"width": 1440, "height": HEIGHT})
        page.locator(".rw-case-panel .rw-chart svg").wait_for(timeout=120_000)
        page.locator(".rw-browser").evaluate("browser => browser.scrollIntoView()")
        page.get_by_role("button", name="No", exact=True).click()  # to news of Jupyter
        shoot(page, "browser-1-opened")

        page.locator(".rw-filter-stage select").select_option("rerank (19)")
        wait_for_text(page, ".rw-steps", "1 of 19 (of 26)")
        labels = page.locator(".rw-list option").all_inner_texts()
        assert len(labels) == 19
        assert all("rerank" in label for label in labels)
        shoot(page, "browser-2-filtered")

        page.locator(".rw-list select").focus()
        for place in (2, 3, 4):
            page.keyboard.press("ArrowDown")
            wait_for_text(page, ".rw-steps", f"{place} of 19")
        page.keyboard.press("ArrowUp")
        wait_for_text(page, ".rw-steps", "3 of 19")
        case_id = shown_case(page)
        assert case_id in picked(page)
        wait_for_text(page, ".rw-journey", case_id)
        grid = page.locator(".rw-stages table").first
        assert grid.evaluate("table => table.scrollWidth <= table.parentElement.clientWidth")
        shoot(page, "browser-3-walked")

        open_tab(page, "What if")
        page.locator(".rw-what-k .noUi-handle").focus()
        page.keyboard.press("ArrowRight")
        wait_for_text(page, ".rw-effect", "K = 6")
        wait_for_text(page, ".rw-effect", "This case")
        wait_for_text(page, ".rw-effect", "The whole run")
        page.locator(".rw-what-rerank select").select_option("off")
        wait_for_text(page, ".rw-effect", "no reranker")
        assert "K = 6" not in page.locator(".rw-effect").inner_text()
        shoot(page, "browser-4-what-if")

        open_tab(page, "Review note")
        page.get_by_role("button", name="I correct it").click()
        page.locator(".rw-note-form select").nth(0).select_option("knowledge")
        page.locator(".rw-note-form select").nth(1).select_option("CHUNK_SPLIT")
        page.locator(".rw-note-form textarea").fill("切片把这一句切断了。\n" + SCRIPT)
        page.get_by_role("button", name="save the note").click()
        wait_for_text(page, ".rw-said", NOTES)
        wait_for_text(page, ".rw-notes", "切片把这一句切断了。")
        wait_for_text(page, ".lm-TabBar-tab", "Review note (1)")
        shoot(page, "browser-5-noted")

        assert picked(page).startswith("✎")
        assert page.locator(".rw-browser .rw-warning").count() == 0
        assert page.locator(".jp-OutputArea-output[data-mime-type*='stderr']").count() == 0
        assert page.evaluate("window.owned") is None
        assert not [url for url in page.asked if "127.0.0.1" not in url and "data:" not in url[:5]]
    (note,) = load_notes(found)
    assert note.case_id == case_id
    assert (note.stage, note.corrected_stage, note.corrected_reason) == (
        "rerank",
        "knowledge",
        "CHUNK_SPLIT",
    )
    assert note.text.startswith("切片把这一句切断了。")
    assert "切片把这一句切断了。" in (found.path / NOTES).read_text(encoding="utf-8")


@pytest.fixture
def hostile(tmp_path):
    """A run whose every text and id is hostile, and one of a service that tells ids alone."""
    fake = service(n_chunks=0, manifest={"service": SCRIPT})
    fake.chunks = {f"{SCRIPT}-{n}": text for n, text in enumerate(TEXTS)}
    fake.results = {text: [f"{SCRIPT}-{n}" for n in range(1, 6)] for text in TEXTS}
    cases = [
        hostile_case(n, text, expected_chunk_ids=[f"{SCRIPT}-{0 if n else 3}"])
        for n, text in enumerate(TEXTS)
    ]
    runs = [run(tmp_path, fake, cases)]
    bare = service(
        retrieve=lambda asked: json_reply({"results": [{"chunkId": "doc-1"}]}),
        manifest=None,
        explain=False,
        chunk_call=False,
    )
    runs.append(run(tmp_path, bare, [case(1), case(2)]))
    notebook = nbformat.v4.new_notebook(
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3 (ipykernel)"}}
    )
    notebook.cells = [
        nbformat.v4.new_code_cell(f"import ragwb as rw\nrw.browse(rw.load_run({found.run_id!r}))")
        for found in runs
    ]
    (tmp_path / "notebooks").mkdir()
    nbformat.write(notebook, tmp_path / "notebooks" / "hostile.ipynb")
    return tmp_path


def test_hostile_texts_do_not_act_and_ids_alone_suffice(hostile):
    with (
        jupyter_lab(hostile / "notebooks", hostile / "home") as base,
        opened_notebook(base, "hostile.ipynb") as page,
    ):
        page.locator(".rw-case-panel .rw-chart svg").nth(1).wait_for(timeout=120_000)
        browser = page.locator(".rw-browser").first
        n_cases = browser.locator(".rw-list option").count()
        assert n_cases == len(TEXTS) - 1
        for place in range(1, n_cases + 1):
            browser.locator(".rw-steps", has_text=f"{place} of {n_cases}").wait_for()
            for title in ("What if", "Answer", "Review note", "Stages"):
                browser.locator(".rw-case-panel .lm-TabBar-tab", has_text=title).click()
            browser.get_by_role("button", name="next").click()
        shoot(page, "browser-hostile")
        browser.locator(".rw-case-panel .lm-TabBar-tab", has_text="Review note").click()
        browser.locator(".rw-note-form textarea").fill(TEXTS[1])
        browser.get_by_role("button", name="save the note").click()
        browser.locator(".rw-notes", has_text="onerror").wait_for()
        assert page.locator(".rw-browser img, .rw-browser script").count() == 0
        assert page.evaluate("window.owned") is None
        assert page.locator(".rw-browser .rw-warning").all_inner_texts() == []
        bare = page.locator(".rw-browser").nth(1)
        assert "1 of 1" in bare.locator(".rw-steps").text_content()
