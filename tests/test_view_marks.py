"""What charts share: colours by name with or without a legend, and names that fit a line."""

from hostile import SCRIPT

from ragwb.view.marks import chart_of, colour_by, shape_by, short_name


def test_colours_and_shapes_keep_their_order_and_stand_in_a_legend_below():
    drawn = chart_of([{"kind": SCRIPT}]).mark_point()
    drawn = drawn.encode(colour_by("kind", {"b": "#111111", "a": "#222222"}), shape_by("kind", {}))
    colour = drawn.to_dict()["encoding"]["color"]
    assert colour["scale"] == {"domain": ["b", "a"], "range": ["#111111", "#222222"]}
    assert colour["legend"] == {"orient": "bottom"}
    assert drawn.to_dict()["data"] == {"values": [{"kind": SCRIPT}]}


def test_bars_that_are_named_beside_them_need_no_legend():
    bars = chart_of([]).mark_bar().encode(colour_by("stage", {"a": "#111111"}, has_legend=False))
    assert bars.to_dict()["encoding"]["color"]["legend"] is None


def test_a_name_fits_a_line():
    assert short_name(None, 4) == "(none)"
    assert short_name("a\nb\u202e", 40) == "a b⟨U+202E⟩"
    assert short_name("退款政策", 5) == "退…"
