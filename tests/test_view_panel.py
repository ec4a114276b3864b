"""Panels say the same as text and as HTML."""

import pandas as pd
import pytest

from ragwb.view.panel import Panel, definitions, fold, frame_rows, stack, table_panel, text_table

ROWS = [{"名称": "退款政策", "n": 3}, {"名称": "<b>", "n": None}]


def test_columns_align_with_wide_characters():
    assert text_table(ROWS, ["名称", "n"]).splitlines() == [
        "名称      n",
        "退款政策  3",
        "<b>       –",
    ]


def test_a_table_without_rows_is_a_sentence():
    panel = table_panel([], ["a"], empty="No call failed.")
    assert repr(panel) == "No call failed."
    assert "No call failed." in panel._repr_html_()


def test_a_table_says_the_same_twice():
    panel = table_panel(ROWS, ["名称", "n"], numeric=["n"], empty="")
    assert "退款政策" in panel.text
    assert "退款政策" in panel.html
    assert "&lt;b&gt;" in panel.html


def test_stacked_panels_carry_their_headings():
    panel = stack({"Errors": Panel("none", "<p>none</p>")})
    assert panel.text == "Errors\nnone"
    assert panel.html == "<h4>Errors</h4><p>none</p>"


def test_what_folds_needs_no_script():
    assert fold("a", "b") == '<details class="rw-fold"><summary>a</summary>b</details>'
    assert 'open="open"' in fold("a", "b", is_open=True)
    assert "<dd>–</dd>" in definitions({"trace id": None})


def test_a_row_has_none_where_a_value_is_unknown():
    frame = pd.DataFrame({"name": ["a", None], "n": [1, 2], "value": [float("nan"), 0.5]})
    frame["ids"] = [["x"], None]
    assert frame_rows(frame) == [
        {"name": "a", "n": 1, "value": None, "ids": ["x"]},
        {"name": None, "n": 2, "value": 0.5, "ids": None},
    ]


@pytest.mark.slow
@pytest.mark.browser
def test_no_word_of_a_table_breaks_and_nothing_scrolls_sideways_at_1280_px(tmp_path):
    from browser import opened

    from ragwb.view import theme

    figures = ("raw_agreement", "kappa", "kappa_linear", "kappa_quadratic", "pearson", "spearman")
    value = "-0.520 (-0.24–0.72)"
    sliced = {"domain": "logistics", "n": 28, **dict.fromkeys((*figures, "mae"), value)}
    slices = table_panel([sliced], tuple(sliced), numeric=tuple(sliced)[1:], empty="")
    row = {
        "case_id": "conflict-merchant-dispatch-and-return-window-for-members",
        "refusal_reason_accuracy": "first_preferred_rate",
        "difference": "退款审核通过后多久到账" * 12,
        "expected": "a sentence of words that is long enough to want the whole width " * 3,
        "hash": "0123456789abcdef" * 4,
        "items": "https://service.example/internal/eval/v1/retrieval_of_one_long_path",
    }
    page = tmp_path / "page.html"
    page.write_text(
        '<!doctype html><meta charset="utf-8"><body style="width:1064px;margin:0 auto">'
        + theme.setup().html
        + table_panel([row], tuple(row), empty="").html
        + f'<div class="rw-slices">{slices.html}</div>',
        encoding="utf-8",
    )
    with opened(page.as_uri(), width=1280) as shown:
        assert shown.evaluate("document.documentElement.scrollWidth") <= 1280
        assert shown.evaluate(_TOO_WIDE) == []
        assert shown.evaluate(_BROKEN_WORDS) == []


# Tables that run past the place that they stand in.
_TOO_WIDE = """() => [...document.querySelectorAll("table")].filter(table =>
    table.getBoundingClientRect().right
        > table.parentElement.getBoundingClientRect().right + 1).map(table => table.innerText)"""
# Words of a cell, and of a header above all, whose letters stand on more than one line.
_BROKEN_WORDS = r"""() => [...document.querySelectorAll("th, td")].flatMap(cell => {
    const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), found = [];
    while (walker.nextNode()) {
        for (const word of walker.currentNode.data.matchAll(/\w+/g)) {
            if (word[0].length > 24) continue;
            const range = document.createRange();
            range.setStart(walker.currentNode, word.index);
            range.setEnd(walker.currentNode, word.index + word[0].length);
            if (new Set([...range.getClientRects()].map(box => box.top)).size > 1)
                found.push(word[0]);
        }
    }
    return found;
})"""
