"""What one answer holds without end, in a list for people."""

from hypothesis import given
from hypothesis import strategies as st

from ragwb.measure.listed import MOST_LISTED, count, first_of, joined, listed, some


def test_what_repeats_is_named_once_and_counted_and_the_rest_is_told():
    assert listed(["c1"] * 9_998 + ["c2", "c1"]) == ["c1 ×9,999", "c2"]
    many = listed(f"c{n}" for n in range(10_000))
    assert many[:2] == ["c0", "c1"]
    assert many[MOST_LISTED:] == ["and 9,980 more"]
    # Names that are counted already are no counts.
    assert listed({"a": None, "b": None}) == ["a", "b"]
    assert listed([]) == []


@given(st.lists(st.integers()), st.integers(1, 5))
def test_nothing_is_lost_without_being_counted(things, most):
    shown, more = first_of(things, most)
    n_more = int(more.split()[1]) if more else 0
    assert list(shown) == things[: len(shown)]
    assert len(shown) + n_more == len(things)
    assert len(shown) <= most


def test_of_many_names_the_first_stand_in_a_line():
    assert some(["a", "b"]) == "a, b"
    assert some([f"c{n}" for n in range(1_010)], 2) == "c0, c1 and 1,008 more"
    assert some([]) == ""
    # For a terminal each name is made plain, and cut by itself.
    assert some(["a\x1b[31m\nb", "long" * 9], width=5) == "a b, long…"
    assert some(["a\nb"]) == "a\nb"


def test_one_of_a_thing_has_no_s():
    assert [count(n, "case") for n in (0, 1, 1_000)] == ["0 cases", "1 case", "1,000 cases"]


def test_words_are_joined_as_a_sentence_lists_them():
    assert [joined("abc"[:n]) for n in (1, 2, 3)] == ["a", "a and b", "a, b and c"]
