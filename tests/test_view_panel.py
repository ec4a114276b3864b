"""Panels say the same as text and as HTML."""

import pandas as pd

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
