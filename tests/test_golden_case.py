from __future__ import annotations

from typing import Any

import pytest
from golden_data import case_data, evidence_data
from pydantic import ValidationError

from ragwb.golden.case import (
    Case,
    Claim,
    EvidenceGroup,
    Passage,
    lacks_evidence,
    quote_sha256,
    to_snake_case,
)

QUOTE = {"document_id": "refund-policy", "document_version": "2025.3", "quote": "三个工作日"}


def errors_of(data: dict[str, Any]) -> str:
    with pytest.raises(ValidationError) as caught:
        Case.model_validate(data)
    return str(caught.value)


def test_defaults() -> None:
    case = Case.model_validate(case_data())

    assert (case.case_version, case.mode, case.tier, case.set) == (1, "answer", "blocking", "core")
    assert (case.risk, case.weight, case.tags) == ("normal", 1.0, {})
    assert case.evidence == case.forbidden_evidence == case.refusal_trigger == ()
    assert case.retired_reason is None


def test_both_spellings_are_one_case() -> None:
    camel = {
        "datasetVersion": "v1",
        "id": "a",
        "caseVersion": 2,
        "question": "问？",
        "evidence": [{"anyOf": [{"documentId": "d", "documentVersion": "1", "quote": "文"}]}],
        "forbiddenEvidence": [{"anyOf": [{"documentId": "d", "quote": "旧"}]}],
        "forbiddenChunkIds": ["x"],
        "referenceAnswer": "答。",
        "requiredClaims": [{"text": "答", "variants": ["对"]}],
        "requiredVersion": "1",
        "refusalTrigger": [],
        "retiredReason": None,
        "knowledgeVersion": "k",
    }
    snake = {to_snake_case(name): value for name, value in camel.items()}

    assert "retired_reason" in snake
    assert Case.model_validate(camel) == Case.model_validate(snake)


def test_both_spellings_of_one_field_are_refused() -> None:
    assert "gives dataset_version a second time" in errors_of(case_data(datasetVersion="golden-v1"))


@pytest.mark.parametrize(
    ("told", "mode"),
    [
        ({"answerable": True}, "answer"),
        ({"answerable": False}, "refuse"),
        ({"should_refuse": True}, "refuse"),
        ({"shouldRefuse": False}, "answer"),
        ({"answerable": False, "should_refuse": True}, "refuse"),
        ({"answerable": False, "should_refuse": False}, "clarify"),
        ({"expected": {"mode": "clarify"}}, "clarify"),
        ({"expected": {"mode": "clarify"}, "answerable": False}, "clarify"),
        ({"mode": "refuse", "answerable": False}, "refuse"),
        ({"answerable": None}, "answer"),
    ],
)
def test_modes_of_existing_files(told: dict[str, Any], mode: str) -> None:
    assert Case.model_validate({**case_data(), **told}).mode == mode


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"answerable": True, "should_refuse": True}, "answerable and should_refuse leave no mode"),
        ({"mode": "answer", "answerable": False}, "answerable and mode leave no mode"),
        ({"answerable": "yes"}, "must be true or false, found 'yes'"),
        ({"expected": {"mode": "answer", "text": "x"}}, 'must be {"mode": …}'),
        ({"expected": "answer"}, 'must be {"mode": …}'),
        ({"expected": {"mode": []}}, "expected leave no mode"),
        ({"mode": {}, "answerable": True}, "answerable and mode leave no mode"),
        ({"accepted_variants": "三天"}, "must be a list of texts"),
        ({"accepted_variants": ["三天"], "required_claims": 3}, "required_claims"),
        ({"accepted_variants": ["三天"], "required_claims": [{"text": "a", "variants": 3}]}, "var"),
    ],
)
def test_foreign_fields_that_say_no_case(told: dict[str, Any], message: str) -> None:
    assert message in errors_of(case_data(**told))


@pytest.mark.parametrize("name", ["required_evidence", "evidence_required", "evidenceRequired"])
def test_evidence_of_existing_files(name: str) -> None:
    data = case_data(expected_chunk_ids=None)
    data[name] = ["doc-x#L18-L31", "doc-x@2#L4", {"document_id": "doc-y", "quote": "文"}]

    assert Case.model_validate(data).evidence == (
        EvidenceGroup(any_of=(Passage(document_id="doc-x", lines=(18, 31)),)),
        EvidenceGroup(any_of=(Passage(document_id="doc-x", document_version="2", lines=(4, 4)),)),
        EvidenceGroup(any_of=(Passage(document_id="doc-y", quote="文"),)),
    )


def test_claims_may_be_texts() -> None:
    case = Case.model_validate(case_data(required_claims=["甲"], forbidden_claims=[{"text": "乙"}]))

    assert case.required_claims == (Claim(text="甲"),)
    assert case.forbidden_claims == (Claim(text="乙"),)


@pytest.mark.parametrize(
    ("data", "claims"),
    [
        ({"required_claims": ["甲", "乙"]}, [("甲", ("丙",)), ("乙", ("丙",))]),
        ({"required_claims": [{"text": "甲", "variants": ["丁"]}]}, [("甲", ("丁", "丙"))]),
        ({"reference_answer": "答"}, [("答", ("丙",))]),
        ({}, [("丙", ("丙",))]),
    ],
)
def test_accepted_variants_state_every_claim(
    data: dict[str, Any], claims: list[tuple[str, tuple[str, ...]]]
) -> None:
    case = Case.model_validate(case_data(accepted_variants=["丙"], **data))

    assert [(claim.text, claim.variants) for claim in case.required_claims] == claims


def test_empty_accepted_variants_say_nothing() -> None:
    assert Case.model_validate(case_data(accepted_variants=[])).required_claims == ()


def test_owner_and_knowledge_version_of_existing_files() -> None:
    case = Case.model_validate(case_data(regression_owner="组", knowledgeVersion="2026-11"))

    assert (case.owner, case.knowledge_version) == ("组", "2026-11")


def test_forbidden_groups_are_each_of_their_passages() -> None:
    old = {**QUOTE, "document_version": "2024.1"}
    case = Case.model_validate(
        case_data(forbidden_evidence=[{"any_of": [QUOTE, old]}, "doc-x#L1", QUOTE])
    )

    assert [passage.document_id for passage in case.forbidden_evidence] == [
        "refund-policy",
        "refund-policy",
        "doc-x",
        "refund-policy",
    ]


@pytest.mark.parametrize(
    ("passage", "message"),
    [
        ({"document_id": "d"}, "says no place"),
        ({"document_id": "d", "sha256": "0" * 64}, "says no place"),
        ({"document_id": "d", "start": 1}, "start and end go together"),
        ({"document_id": "d", "start": 5, "end": 5}, "end 5 must be greater than start 5"),
        ({"document_id": "d", "lines": [0, 2]}, "counted from 1"),
        ({"document_id": "d", "lines": [3, 2]}, "counted from 1"),
        ({"document_id": "", "quote": "文"}, "must not be empty"),
        ({"document_id": "d", "quote": " \n"}, "must not be empty"),
        ({"document_id": "d", "quote": "文", "sha256": "0" * 64}, "not that of the normalised"),
        ({"document_id": "d", "quote": "文", "sha256": "xyz"}, "sha256"),
        ("doc-x:L3", "is not like document#L18-L31"),
    ],
)
def test_a_passage_that_says_no_place(passage: object, message: str) -> None:
    assert message in errors_of(evidence_data(passage))  # type: ignore[arg-type]


def test_the_sha256_is_of_the_normalised_quote() -> None:
    assert quote_sha256("cafe\u0301\r\n ") == quote_sha256("café")
    Passage(document_id="d", quote="café", sha256=quote_sha256("cafe\u0301\n"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id": " a"}, "white space at its ends"),
        ({"id": "a\u202eb"}, "control characters"),
        ({"id": 7}, "valid string"),
        ({"case_version": 0}, "greater than or equal to 1"),
        ({"case_version": "1"}, "valid integer"),
        ({"question": "  "}, "must not be empty"),
        ({"mode": "reject"}, "'answer', 'refuse' or 'clarify'"),
        ({"tier": "gold"}, "'shadow', 'blocking', 'diagnostic' or 'retired'"),
        ({"set": "all"}, "'core', 'incremental' or 'online'"),
        ({"risk": "low"}, "'normal' or 'high'"),
        ({"weight": 0}, "greater than 0"),
        ({"weight": float("inf")}, "finite"),
        ({"refusal_trigger": ["NO_IDEA"]}, "NO_EVIDENCE"),
        ({"tags": {"domain": 1}}, "valid string"),
        ({"required_claims": [{"text": "甲", "pattern": "("}]}, "not a regular expression"),
        ({"required_claims": [{"text": "甲", "pattern": "[[a]"}]}, "Possible nested set"),
        (
            {"required_claims": [{"text": "甲", "pattern": "(?:(?:x{100}){100}){100}"}]},
            "its counted repeats come to 1,000,000 parts, 10,000 at most",
        ),
        ({"forbidden_claims": [{"text": "甲", "pattern": "(x{200}){200}"}]}, "40,000 parts"),
        ({"required_claims": [{"text": "甲", "pattern": "a" * 2001}]}, "longer than 2000 char"),
        ({"expected_chunk_ids": ["a", "a"]}, "'a' is given twice"),
        ({"expected_chunk_ids": [""]}, "must not be empty"),
        ({"expected_chunk_ids": ["a"], "forbidden_chunk_ids": ["a"]}, "'a' is expected too"),
        ({"evidence": [{"any_of": []}]}, "at least 1 item"),
        ({"colour": "red"}, "Extra inputs"),
    ],
)
def test_a_wrong_field_is_refused(changes: dict[str, Any], message: str) -> None:
    assert message in errors_of(case_data(**changes))


@pytest.mark.parametrize(
    ("changes", "lacks"),
    [
        ({"expected_chunk_ids": None}, True),
        ({"expected_chunk_ids": []}, True),
        ({"expected_chunk_ids": None, "evidence": []}, True),
        ({"expected_chunk_ids": None, "mode": "refuse"}, False),
        ({"expected_chunk_ids": None, "answerable": False}, False),
        ({"expected_chunk_ids": None, "required_evidence": ["d#L1"]}, False),
        ({}, False),
    ],
)
def test_only_a_case_to_be_answered_needs_evidence(changes: dict[str, Any], lacks: bool) -> None:
    data = case_data(**changes)

    assert lacks_evidence(data) is lacks
    if lacks:
        assert "missing on a case to be answered" in errors_of(data)
    else:
        Case.model_validate(data)


def test_tags_are_sorted() -> None:
    assert list(Case.model_validate(case_data(tags={"b": "1", "a": "2"})).tags) == ["a", "b"]


@pytest.mark.parametrize(
    "changes",
    [
        {"answerable": "x" * 100_000},
        {"evidence": ["x" * 100_000]},
        {"expected_chunk_ids": ["x" * 100_000] * 2},
        {"expected_chunk_ids": ["x" * 100_000], "forbidden_chunk_ids": ["x" * 100_000]},
    ],
)
def test_a_message_quotes_no_more_than_a_reader_needs(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as caught:
        Case.model_validate(case_data(**changes))

    for detail in caught.value.errors():
        assert len(detail["msg"]) < 200
