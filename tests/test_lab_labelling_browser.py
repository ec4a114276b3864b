"""The labelling form in JupyterLab in a real browser: mouse and keys, kept, opened again."""

import json

import nbformat
import pytest
from hostile import TEXTS
from lab import jupyter_lab, opened_notebook, shoot

from ragwb.judge.items import Item
from ragwb.judge.rubric import default_rubric
from ragwb.judge.sampling import draw_sample, write_sheet
from ragwb.view.labelling import labels_path

pytestmark = [pytest.mark.slow, pytest.mark.browser]

ANNOTATOR = "标注员-1"
CONTEXT = "[1] 退款政策（2025.3）\n" + "退款审核通过后，款项在 3 个工作日内原路退回。" * 60
PLAIN = {
    "question": "退款审核通过后多久到账？",
    "reference": "3 个工作日内。",
    "context": CONTEXT,
    "answer": "- 审核通过后 3 个工作日内原路退回 [1]。\n- 节假日顺延。",
}

CHOOSE_TWICE_AND_SAVE = """() => {
  const values = () => document.querySelector(".rw-criterion").querySelectorAll("button");
  values()[0].click();
  values()[1].click();
  document.querySelector(".rw-onward").click();
}"""

HOSTILE_RUBRIC = """
name = {name}
version = "1"
instructions = {name}
[[criteria]]
name = "good"
question = {name}
scale = [1, 2]
meanings = {{ 1 = {name} }}
"""


@pytest.fixture
def sheet(tmp_path):
    """A sheet of plain and hostile items, a rubric of hostile words, and notebooks for both."""
    items = [Item("plain", PLAIN)]
    items += [
        Item(f"hostile-{at}", dict.fromkeys(PLAIN, text), {"model": "secret-model"})
        for at, text in enumerate(TEXTS)
    ]
    folder = tmp_path / "notebooks"
    path = folder / "sheet.csv"
    write_sheet(draw_sample(items, len(items)), default_rubric(), path)
    notebook = nbformat.v4.new_notebook(
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3 (ipykernel)"}}
    )
    words = HOSTILE_RUBRIC.format(name=json.dumps(TEXTS[1]))
    (folder / "hostile.toml").write_text(words, encoding="utf-8")
    for name, given in (("label", ""), ("hostile", ", rubric='hostile.toml'")):
        code = f"import ragwb as rw\nrw.label_sheet({path.name!r}, {ANNOTATOR!r}{given})"
        notebook.cells = [nbformat.v4.new_code_cell(code)]
        nbformat.write(notebook, folder / f"{name}.ipynb")
    return path


def test_a_person_labels_by_mouse_and_by_keys_and_finds_it_again(sheet):
    labels = labels_path(sheet, ANNOTATOR)
    with jupyter_lab(sheet.parent, sheet.parent.parent) as base:
        with opened_notebook(base, "label.ipynb") as page:
            open_form(page)
            refuse_news(page)
            shoot(page, "label-1-opened")
            choose(page, "correctness", "4")
            choose(page, "completeness", "2")
            shoot(page, "label-2-chosen")
            page.get_by_role("button", name="save, next").click()
            wait_for_head(page, "item 2 of 9; 1 labelled")
            assert blind(page)

            # The form has the focus now: no click is needed for the next one.
            for key in ("5", "3"):
                page.keyboard.press(key)
            shoot(page, "label-3-keys")
            page.keyboard.press("Enter")
            wait_for_head(page, "item 3 of 9; 2 labelled")
            page.keyboard.press("1")
            page.keyboard.press("Shift+Tab")
            page.locator(".rw-criterion").first.locator(":focus").wait_for()
            page.keyboard.press("0")
            page.get_by_role("button", name="save, next").click()
            wait_for_head(page, "item 4 of 9; 2 labelled")

            # A choice that changes and is saved in one go: the widget still holds the change back.
            page.evaluate(CHOOSE_TWICE_AND_SAVE)
            wait_for_head(page, "item 5 of 9; 2 labelled")
            assert page.locator(".jp-Notebook .jp-MarkdownCell").count() == 0
        said = [json.loads(line) for line in labels.read_text(encoding="utf-8").splitlines()]
        assert [one["labels"] for one in said] == [
            {"correctness": 4, "completeness": 2},
            {"correctness": 5, "completeness": 3},
            {"correctness": 2},
        ]
        assert {one["annotator"] for one in said} == {ANNOTATOR}

        with opened_notebook(base, "label.ipynb") as page:
            open_form(page)
            wait_for_head(page, "item 3 of 9; 2 labelled")
            for shown in (["5", "3"], ["4", "2"]):
                page.get_by_role("button", name="back").click()
                page.locator(".rw-criterion").first.locator(
                    ".mod-active", has_text=shown[0]
                ).wait_for()
                chosen = page.locator(".rw-criterion .mod-active").all_inner_texts()
                assert [words.split()[0] for words in chosen] == shown
            shoot(page, "label-4-again")


def test_hostile_texts_do_not_act(sheet):
    with (
        jupyter_lab(sheet.parent, sheet.parent.parent) as base,
        opened_notebook(base, "hostile.ipynb") as page,
    ):
        open_form(page)
        refuse_news(page)
        for place in range(1, 10):
            wait_for_head(page, f"item {place} of 9")
            assert blind(page)
            assert page.get_by_role("button", name="save, next").is_visible()
            shoot(page, f"label-hostile-{place}")
            page.get_by_role("button", name="save, next").click()
        texts = page.locator(".rw-labelling")
        assert texts.locator("img, script, svg").count() == 0
        assert page.evaluate("window.owned") is None
        assert not [url for url in page.asked if "127.0.0.1" not in url and "data:" not in url[:5]]
    assert not labels_path(sheet, ANNOTATOR).exists()


def open_form(page):
    page.set_viewport_size({"width": 1440, "height": 1000})
    page.locator(".rw-labelling h3").wait_for(timeout=120_000)


def refuse_news(page):
    """Jupyter asks once, over a corner of the form."""
    page.get_by_role("button", name="No", exact=True).click()


def wait_for_head(page, words):
    page.locator(".rw-labelling h3", has_text=words).wait_for(timeout=30_000)


def choose(page, criterion, value):
    at = [one.name for one in default_rubric().criteria].index(criterion)
    group = page.locator(".rw-criterion").nth(at)
    group.locator(".widget-toggle-button", has_text=value).first.click()


def blind(page):
    """Whether neither a model nor the id behind the item is to be seen."""
    shown = page.locator(".rw-labelling").inner_text()
    return "secret-model" not in shown and "hostile-" not in shown
