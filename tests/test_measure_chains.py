"""How far the hops of a case got, and when a context is in conflict."""

import pytest
from answer_data import answered, chunk, resolved

from ragwb.measure.chains import evidence_conflict, hops, whole_chain

CASE = resolved("c", ["a", "b"], ["c"], [])


def test_each_hop_says_how_far_it_got():
    one = answered(CASE, results=("b", "c"), context=("b",), cites=["c"])
    found = hops(one)
    assert [(h.there, h.retrieved, h.in_context, h.cited) for h in found] == [
        (True, True, True, False),
        (True, True, False, True),
        (False, False, False, False),
    ]
    assert [whole_chain(found[:2], step) for step in ("there", "retrieved", "in_context")] == [
        True,
        True,
        False,
    ]


def test_what_was_not_observed_is_unknown():
    found = hops(answered(CASE, results=("a",)))
    assert found[0].in_context is None
    assert found[0].cited is None
    assert whole_chain(found, "cited") is None


CHUNKS = {
    "new": chunk("new", "d", "2"),
    "new2": chunk("new2", "d", "2"),
    "old": chunk("old", "d", "1"),
    "other": chunk("other", "e", "1"),
    "bare": chunk("bare", "d"),
}


@pytest.mark.parametrize(
    ("context", "conflict"),
    [
        (("new", "old"), True),
        (("new", "bare", "old"), True),
        (("new", "new2", "other"), False),
        (("new", "bare"), None),
        (("new", "gone"), None),
        ((), False),
        (None, None),
    ],
)
def test_two_versions_of_one_document_are_a_conflict(context, conflict):
    assert evidence_conflict(answered(context=context, chunks=CHUNKS)) is conflict


def test_passages_that_the_case_marks_are_a_conflict():
    marked = {"mode": "clarify", "refusal_trigger": ["EVIDENCE_CONFLICT"]}
    case = resolved("c", ["x", "both"], ["y", "both"], **marked)
    chunks = {name: chunk(name, name, "1") for name in ("x", "y", "both")}
    for context, conflict in ((("x", "y"), True), (("x",), False), (("both",), False)):
        assert evidence_conflict(answered(case, context=context, chunks=chunks)) is conflict
    case = resolved("c", ["x"], ["y"])
    assert evidence_conflict(answered(case, context=("x", "y"), chunks=chunks)) is False
