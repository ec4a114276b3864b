"""What one answer holds without end, in a list for people."""

from hypothesis import given
from hypothesis import strategies as st

from ragwb.measure.listed import MOST_LISTED, first_of, listed


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
