"""Counted repeats of patterns, counted before an engine writes them out."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwb.golden.expansion import MOST_PARTS, check_expansion, expanded_parts


@pytest.mark.parametrize(
    ("pattern", "n_parts"),
    [
        ("", 0),
        ("三个工作日", 5),
        ("a(?:bc{2,3}){4}", 17),
        ("x{3}|y{,4}|z{5,}", 14),
        ("x{,}", 1),
        ("x{0}", 1),
        ("(?:(?:x{100}){100}){100}", 1_000_000),
        ("((a{1,1000}){1,1000}){1,1000}", 1_000_000_000),
        ("(?P<name>a{9}){9}", 81),
        ("(?<=(?:a{9}){9})b", 82),
        # A count that is written as text, in a set or in a comment, counts nothing.
        (r"\(\[{3}[\](x{9}]\{9}", 8),
        (r"[]{9}()]", 1),
        (r"[^]{9}()]", 1),
        ("a(?#(x{9})", 1),
        ("a{b}", 4),
        ("(?:ab)(?#why){9}", 18),
        # Where the nesting cannot be seen all counts are nested: too many rather than too few.
        ("(?x)(?: (?:ab) {9} ) {9}", 81 * 24),
        ("(?V1)(?:ab[[])(]){9}", 9 * 20),
        ("(?:ab[[:alpha:])(]){9}", 9 * 22),
        ("(a{9}", 45),
        ("a{9}){9}", 8 * 81),
    ],
)
def test_parts_of_a_pattern(pattern: str, n_parts: int) -> None:
    assert expanded_parts(pattern) == n_parts


def test_a_pattern_that_would_fill_the_memory_is_refused() -> None:
    check_expansion(f"x{{{MOST_PARTS}}}")
    with pytest.raises(ValueError, match="come to 10,001 parts, 10,000 at most: lower a count"):
        check_expansion(f"x{{{MOST_PARTS + 1}}}")
    with pytest.raises(ValueError, match="more than a trillion parts"):
        check_expansion(f"x{{{'9' * 5000}}}")


# A pattern and its true number of parts, built together.
Known = tuple[str, int]
PARTS: st.SearchStrategy[Known] = st.sampled_from(
    [
        ("a", 1),
        ("日", 1),
        (r"\(", 1),
        (r"\{", 1),
        ("[(]", 1),
        ("[]{9}]", 1),
        (r"[\]{3}]", 1),
        (".", 1),
    ]
)


def _wider(inner: st.SearchStrategy[Known]) -> st.SearchStrategy[Known]:
    counts = st.tuples(st.integers(0, 5), st.integers(1, 9)).map(lambda n: (n[0], n[0] + n[1]))
    brackets = st.sampled_from(["(", "(?:", "(?=", "(?!"])
    return st.one_of(
        st.lists(inner, min_size=1, max_size=4).map(_joined),
        st.tuples(brackets, inner, counts).map(
            lambda t: (f"{t[0]}{t[1][0]}){{{t[2][0]},{t[2][1]}}}", t[1][1] * t[2][1])
        ),
        st.tuples(inner, inner).map(lambda t: (f"(?:{t[0][0]}|{t[1][0]})", t[0][1] + t[1][1])),
    )


def _joined(some: list[Known]) -> Known:
    return "".join(pattern for pattern, _ in some), sum(n for _, n in some)


@given(st.recursive(PARTS, _wider, max_leaves=12))
def test_never_fewer_parts_than_there_are(known: Known) -> None:
    pattern, n_parts = known
    re.compile(pattern)
    found = expanded_parts(pattern)
    assert n_parts <= found
    # What is counted beside them is the bars between alternatives, each once as often as its group.
    assert found <= 2 * n_parts
