"""What a whole case resolves to: ids beside evidence, cases left out, forbidden evidence, spans."""

from __future__ import annotations

import pytest
from golden_data import case_data, cut, evidence_data, make_dataset
from passage_data import BODY, SENTENCES, any_of, kinds_of, passage, resolve

from ragwb.errors import UsageError
from ragwb.golden.case import Case
from ragwb.golden.passages import (
    ResolvedCase,
    ResolvedGroup,
    referenced_chunk_ids,
    referenced_documents,
    resolve_dataset,
    suspects,
)

# Ids.


def test_each_expected_id_is_a_group_known_or_not() -> None:
    case = resolve(case_data(expected_chunk_ids=["c0", "x"]), cut(BODY, SENTENCES))

    assert [group.chunk_ids for group in case.groups] == [("c0",), ("x",)]
    assert [group.label for group in case.groups] == [
        "expected_chunk_ids[0]",
        "expected_chunk_ids[1]",
    ]
    assert case.notes == (
        "unknown expected_chunk_ids[1]: x is not in the index: re-chunked or removed",
    )


def test_under_another_chunking_the_evidence_scores() -> None:
    data = evidence_data(passage("运费不退"), expected_chunk_ids=["old"])
    case = resolve(data, cut(BODY, SENTENCES))

    assert [group.chunk_ids for group in case.groups] == [("c2",)]
    assert case.notes == (
        "unknown expected_chunk_ids[0]: old is not in the index: the evidence scores",
    )


def test_under_their_own_chunking_ids_and_evidence_are_compared() -> None:
    chunks = cut(BODY, SENTENCES)
    agreeing = evidence_data(passage("运费不退"), expected_chunk_ids=["c2"])
    differing = evidence_data(passage("运费不退"), expected_chunk_ids=["c0"])

    assert resolve(agreeing, chunks).notes == ()
    assert resolve(differing, chunks).notes == (
        "differs expected_chunk_ids[0]: c0 holds no evidence of the case",
        "differs evidence[0]: no expected id is among c2",
    )


def test_without_chunks_the_ids_are_used() -> None:
    case = resolve(evidence_data(passage("x"), expected_chunk_ids=["a", "b"]), None)

    assert [group.chunk_ids for group in case.groups] == [("a",), ("b",)]
    assert (case.notes, case.spans) == ((), ())


def test_passages_without_ids_or_chunks_need_an_index() -> None:
    dataset = make_dataset(case_data(), evidence_data(passage("x")))

    with pytest.raises(UsageError, match=r"1 cases .*\(first case-1\).* give --index DIR"):
        resolve_dataset(dataset, None)


# Cases that are not scored.


def test_retired_cases_are_not_asked() -> None:
    retired = evidence_data(passage("x", document_id="gone"), tier="retired")
    dataset = make_dataset(retired, case_data(expected_chunk_ids=["c0"]))

    first, _ = resolve_dataset(dataset, cut(BODY, SENTENCES))
    assert (first.excluded, first.groups) == ("tier retired", ())
    assert referenced_documents(dataset) == []
    assert resolve_dataset(make_dataset(retired), None)[0].excluded == "tier retired"


@pytest.mark.parametrize("mode", ["refuse", "clarify"])
def test_a_case_to_be_refused_or_clarified_is_excluded_with_its_evidence_or_without(
    mode: str,
) -> None:
    chunks = cut(BODY, SENTENCES)
    conflict = evidence_data(passage("运费不退"), mode=mode)
    by_id = case_data(expected_chunk_ids=["c0"], mode=mode)
    dataset = make_dataset(case_data(expected_chunk_ids=None, mode=mode), conflict, by_id)

    cases = resolve_dataset(dataset, chunks)
    assert [case.excluded for case in cases] == ["no evidence groups", *[f"mode {mode}"] * 2]
    assert [len(case.groups) for case in cases] == [0, 1, 1]


def test_a_drifted_label_is_told_whatever_the_mode() -> None:
    case = resolve(evidence_data(passage("不在了"), mode="refuse"), cut(BODY, SENTENCES))

    assert case.excluded is not None
    assert case.excluded.startswith("drifted: evidence[0]")


# Forbidden evidence.


def test_forbidden_passages_are_all_chunks_that_hold_them() -> None:
    case = resolve(
        case_data(
            expected_chunk_ids=["c0"],
            forbidden_chunk_ids=["c1"],
            forbidden_evidence=[passage("运费不退"), passage("节假日")],
        ),
        cut(BODY, SENTENCES),
    )

    assert case.forbidden_chunk_ids == ("c1", "c2")
    assert case.notes == ()


def test_a_split_forbidden_passage_is_all_chunks_that_touch_it() -> None:
    chunks = cut(BODY, [(0, 12), (6, 20), (18, 24), (24, len(BODY))])
    case = resolve(
        case_data(expected_chunk_ids=["c3"], forbidden_evidence=[passage(BODY[10:23])]), chunks
    )

    assert case.forbidden_chunk_ids == ("c0", "c1", "c2")


def test_forbidden_text_that_the_chunks_do_not_show_is_noted() -> None:
    data = case_data(
        expected_chunk_ids=["c0"],
        forbidden_chunk_ids=["x"],
        forbidden_evidence=[
            passage("不在了", document_version=None),
            passage("x", document_id="faq"),
            passage("x", document_version="2019.1"),
        ],
    )
    case = resolve(data, cut(BODY, SENTENCES))

    assert case.forbidden_chunk_ids == ("x",)
    assert kinds_of(case) == ["hidden"] * 4
    assert kinds_of(resolve(data, None)) == ["hidden"] * 3


def test_a_forbidden_quote_that_its_version_no_longer_holds_is_a_fault_of_the_label() -> None:
    data = case_data(expected_chunk_ids=["c0"], forbidden_evidence=[passage("不在了")])

    (note,) = resolve(data, cut(BODY, SENTENCES)).notes
    assert note.startswith("forbidden forbidden_evidence[0]: watched in the replies alone: ")


def test_a_chunk_that_is_required_and_forbidden_is_noted() -> None:
    data = evidence_data(passage("三个工作日"), forbidden_evidence=[passage("退款审核")])
    case = resolve(data, cut(BODY, SENTENCES))

    assert case.forbidden_chunk_ids == ("c0",)
    assert case.notes == ("forbidden c0: holds required text too",)


# Required text.


def test_spans_are_merged_and_sorted() -> None:
    data = evidence_data(
        passage("运费不退"),
        passage(BODY[8:13]),
        passage(BODY[11:17]),
        passage(BODY[17:20]),
        passage("x", document_id="faq"),
    )
    case = resolve(data, cut(BODY, SENTENCES))

    assert [(span.start, span.end) for span in case.spans] == [(8, 20), (23, 27)]


def test_the_span_of_a_group_is_that_of_its_first_alternative_found() -> None:
    case = resolve(any_of(passage("节假日"), passage("运费不退")), cut(BODY, SENTENCES))

    assert [(span.start, span.end) for span in case.spans] == [(17, 20)]


# What callers need.


def test_documents_and_ids_to_ask_for() -> None:
    dataset = make_dataset(
        evidence_data(passage("a"), passage("b", document_id="faq", document_version=None)),
        case_data(expected_chunk_ids=["z", "b"], forbidden_chunk_ids=["a"]),
        case_data(forbidden_evidence=[passage("c", document_version="2024.1"), passage("a")]),
    )

    assert referenced_documents(dataset) == [
        ("faq", None),
        ("refund-policy", "2024.1"),
        ("refund-policy", "2025.3"),
    ]
    assert referenced_chunk_ids(dataset) == ["a", "b", "chunk-1", "z"]


def test_a_resolved_case_survives_json() -> None:
    data = any_of(
        passage(BODY[10:20]),
        forbidden_evidence=["faq#L1"],
        required_claims=[{"text": "甲", "variants": ["乙"]}],
        tags={"domain": "refund"},
    )
    case = resolve(data, cut(BODY, SENTENCES))

    assert ResolvedCase.model_validate_json(case.model_dump_json()) == case


@pytest.mark.parametrize(
    ("groups", "expected", "found"),
    [
        ([("a",), ()], ["a", "x"], {1: ("x",)}),
        ([(), ("a",), ()], ["x", "a", "y"], {0: ("x",), 2: ("y",)}),
        ([(), ()], ["x"], {0: ("x",), 1: ("x",)}),
        ([()], ["x", "y"], {0: ("x", "y")}),
        ([()], [], {0: ()}),
        ([("a",)], ["a", "x"], {}),
    ],
)
def test_the_suspects_of_a_group_without_chunks(
    groups: list[tuple[str, ...]], expected: list[str], found: dict[int, tuple[str, ...]]
) -> None:
    data = case_data(expected_chunk_ids=expected, mode="answer" if expected else "refuse")
    resolved = ResolvedCase(
        case=Case.model_validate(data),
        groups=tuple(ResolvedGroup(index=i, chunk_ids=ids) for i, ids in enumerate(groups)),
    )
    assert suspects(resolved) == found
