"""Other people's text is escaped wherever it is shown."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwb.html import (
    breakable,
    cell,
    escape,
    escape_markdown,
    plain,
    table,
    tag,
    terminal_json,
    visible,
)

HOSTILE = "<script>alert(1)</script> {{ x }} \x1b[31mred\x1b[0m \u202eevil `code` | [a](b)"


def test_html_cannot_be_opened_or_closed():
    assert escape("</script><img src=x onerror='a'>") == (
        "&lt;/script&gt;&lt;img src=x onerror=&#x27;a&#x27;&gt;"
    )


@given(st.text())
def test_escaped_text_holds_no_markup(text):
    assert not set("<>\"'") & set(escape(text))


@pytest.mark.parametrize(
    ("char", "shown"),
    [
        ("\u202e", "⟨U+202E⟩"),
        ("\x00", "⟨U+0000⟩"),
        ("\x1b", "⟨U+001B⟩"),
        ("\ud800", "⟨U+D800⟩"),
        ("\u2028", "⟨U+2028⟩"),
    ],
)
def test_what_hides_or_reorders_is_written_out(char, shown):
    assert visible(f"a{char}b") == f"a{shown}b"


def test_chinese_and_line_breaks_stay():
    assert visible("退款\n到账\t时间，3–5 个工作日。") == "退款\n到账\t时间，3–5 个工作日。"


@given(st.text())
def test_terminal_text_is_one_line_without_controls(text):
    line = plain(text)
    assert "\n" not in line
    assert "\x1b" not in line


def test_terminal_text_loses_colour_codes_and_is_cut():
    assert plain("\x1b[31mred\x1b[0m alert") == "red alert"
    assert plain("退款审核通过后多久到账", width=5) == "退款审核…"


def test_markdown_syntax_does_not_act():
    assert escape_markdown("a | b\n[x](y) <b>") == r"a \| b \[x\](y) \<b\>"
    assert escape_markdown("# a") == r"\# a"
    assert escape_markdown("- a") == r"\- a"
    assert escape_markdown("_a_ hit_rate 0.5 (1/2)") == r"\_a\_ hit_rate 0.5 (1/2)"
    assert escape_markdown("1. a") == "1\u2060. a"
    assert escape_markdown("0.419") == "0.419"


def test_table_escapes_every_cell_and_shows_unknown_as_a_dash():
    html = table([{"id": HOSTILE, "n": None}], ["id", "n"], numeric=["n"], caption=HOSTILE)
    assert "<script" not in html
    assert '<td class="num">–</td>' in html
    assert cell(0) == "0"


def test_attributes_are_escaped_and_none_is_left_out():
    assert tag("a", "x", title='"><b>', hidden=None) == '<a title="&quot;&gt;&lt;b&gt;">x</a>'


def test_json_for_a_terminal_reads_back_and_drives_nothing():
    value = {"a": "\x9b31m 退款 \u202e", "b": ["\ud800"]}
    text = terminal_json(json.dumps(value, ensure_ascii=False, indent=1))
    assert json.loads(text) == value
    assert "退款" in text
    assert "\x9b" not in text
    assert "\u202e" not in text


@pytest.mark.parametrize(
    "text",
    [
        "refusal_reason_accuracy",
        "conflict-merchant-dispatch-and-return-window",
        "退款到账" * 20,
    ],
)
def test_words_and_what_breaks_by_itself_get_no_break(text):
    assert breakable(text) == text


def test_a_long_id_may_break_at_its_signs_or_every_16():
    assert breakable("sha256:" + "0" * 20) == "sha256:<wbr>0000000000000000<wbr>0000"
    assert cell("a" * 25) == "a" * 16 + "<wbr>" + "a" * 9


@given(st.text() | st.text("ab_-<&退\u202e", min_size=20))
def test_a_break_changes_no_text(text):
    assert breakable(text).replace("<wbr>", "") == escape(text)
