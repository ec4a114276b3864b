"""Columns cut by key hold what the rows hold, whatever the order of keys and where values miss."""

import math

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from ragwb.runs.segments import Segments

LISTS = st.dictionaries(
    st.tuples(st.sampled_from("abc"), st.integers(1, 3)),
    st.lists(
        st.tuples(st.sampled_from(["x", "y", None]), st.none() | st.floats(-1, 1)), min_size=1
    ),
)


def segments(lists):
    rows = [(*key, *row) for key, held in lists.items() for row in held]
    columns = list(zip(*rows, strict=True)) or [(), (), (), ()]
    types = {"case_id": pa.string(), "repeat": pa.int64(), "name": pa.string(), "n": pa.float64()}
    table = pa.table(
        {name: pa.array(c, t) for (name, t), c in zip(types.items(), columns, strict=True)}
    )
    return Segments(table, ("case_id", "repeat"), ("name", "n"))


@settings(deadline=None)
@given(LISTS)
def test_a_span_cuts_the_rows_of_its_key(lists):
    found = segments(lists)
    assert list(found.spans) == list(lists)
    for key, span in found.spans.items():
        names, numbers = zip(*lists[key], strict=True)
        assert found.texts("name", *span) == list(names)
        known = found.numbers("n", *span)
        assert known == (None if set(numbers) == {None} else list(numbers))


@settings(deadline=None)
@given(LISTS)
def test_padded_lists_say_the_same_as_the_lists(lists):
    found = segments(lists)
    codes, values = found.padded("name", "n", list(found.spans.values()))
    names = found.names("name")
    for at, held in enumerate(lists.values()):
        assert names[codes[at]].tolist()[: len(held)] == [name for name, _ in held]
        assert (codes[at, len(held) :] == -1).all()
        shown = [None if math.isnan(value) else value for value in values[at]]
        assert shown[: len(held)] == [n for _, n in held]
        assert set(shown[len(held) :]) <= {None}


@settings(deadline=None)
@given(LISTS, st.sampled_from("xyz"))
def test_rows_with_a_text_are_found(lists, text):
    rows = [name for held in lists.values() for name, _ in held]
    expected = [at for at, name in enumerate(rows) if name == text]
    assert segments(lists).rows_with("name", text).tolist() == expected
