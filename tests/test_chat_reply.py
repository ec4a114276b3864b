"""JSON in whatever a model wraps it in."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwb.chat.reply import find_object


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"score": 3}', {"score": 3}),
        ('```json\n{"score": 3}\n```', {"score": 3}),
        ('Sure, here it is:\n```\n{"score": 3}\n```\nAnything else?', {"score": 3}),
        ('{"score": 3} I hope this helps {really}.', {"score": 3}),
        ('{not json} but {"score": 3}', {"score": 3}),
        ('{"a": 1} {"b": 2}', {"a": 1}),
        ('{"text": "a } and a { in it"}', {"text": "a } and a { in it"}),
        ("", None),
        ("no object", None),
        ("[1, 2]", None),
        ('{"score": 3', None),
        ('{"outer": {"score": 3}', None),
        ('{"score": NaN}', None),
        ('{"score": Infinity}', None),
    ],
)
def test_objects_in_text(text, found):
    assert find_object(text) == found


def test_braces_without_end_end():
    assert find_object("{" * 1_000_000) is None
    assert find_object("{ " * 200_000) is None


@given(st.dictionaries(st.text(), st.integers() | st.text()), st.text("ab`\n ", max_size=20))
def test_an_object_is_found_behind_any_words_without_braces(value, words):
    assert find_object(f"{words}{json.dumps(value)}{words}") == value
