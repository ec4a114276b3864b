from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from ragwb.golden import case
from ragwb.records import Chunk, Explanation, Retrieval, ServiceManifest, names_identity

OF_IDENTITY = """
tenant tenants tenantId tenant_id TENANT-ID TENANTID TenantIDs x_tenant X-Tenant-ID callerTenant
tenantCode ｔｅｎａｎｔＩｄ ten\u200bant tenancy department departments DEPARTMENT department_ids
dept depts deptId dept_ids deptids userDept subject subjects subjectId subject_id SUBJECTID sub
jwt_sub user users userId userid USERID userIDs user_name username current_user x-user-id uid
identity identityId principal principalId roles userRoles role_id org_id callerId on_behalf_of_user
effective effectiveAt effective_at EFFECTIVE.AT effectiveFrom as_of asOf asof AS_OF as_of_date
asofdate date query_date queryDate time queryTime timestamp now at validAt currentTime from_date
startDate date_range tenant2 point_in_time
"""
OF_OTHERS = """
updated updated_at createdAt candidate candidateK validate valid subject_line subjectMatter
subjective user_query userQuestion user_prompt userInput role timeout timeoutMs max_time_ms
runtime trousers diffuser browser depth maxDepth adept lieutenant question query q k top_k topK
limit text content messages model data mandate latest template category domain kind status rate
format identifier chunk_id documentId uuid id name session_id search_query filter from to sort
attribute include_timestamps sub_question subtopic subset principal_amount principle organic
timezone period access effect list_id context token at_k data_type knowledge_version
"""


def retrieval(**fields: object) -> Retrieval:
    return Retrieval.model_validate_json(json.dumps({"results": [], **fields}))


def test_a_null_entry_of_a_table_was_not_observed() -> None:
    said = retrieval(
        channels={"vector": [], "keyword": None}, timingsMs={"vector": 3.5, "rerank": None}
    )
    assert said.channels == {"vector": []}
    assert said.timings_ms == {"vector": 3.5}


def test_a_table_of_nothing_but_nulls_was_not_observed_and_an_empty_one_was() -> None:
    nothing = retrieval(channels={"vector": None}, timingsMs={"total": None})
    assert nothing.observed == ("results",)
    assert retrieval(channels={}, timingsMs={}).observed == ("channels", "results", "timings_ms")


def test_an_explanation_without_its_lists_is_not_one_with_empty_lists() -> None:
    head = {"chunkId": "a", "state": "published", "visible": True}
    nulls = {"movedTo": None, "filteredBy": None, "ranks": None}
    absent, null = (Explanation.model_validate({**head, **more}) for more in ({}, nulls))
    assert absent == null
    assert (null.moved_to, null.filtered_by, null.ranks) == (None, None, None)
    empty = {"movedTo": [], "filteredBy": [], "ranks": {"vector": 17, "keyword": None}}
    said = Explanation.model_validate({**head, **empty})
    assert (said.moved_to, said.filtered_by) == ([], [])
    assert said.ranks == {"vector": 17, "keyword": None}  # looked at, and not there


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", '"NaN"'])
@pytest.mark.parametrize(
    ("body", "field"),
    [
        ('{"results": [{"chunkId": "a", "score": %s}]}', "results.0.score"),
        ('{"results": [], "fused": [{"chunkId": "a", "score": %s}]}', "fused.0.score"),
        ('{"results": [], "timingsMs": {"total": %s}}', "timingsMs.total"),
    ],
)
def test_a_number_that_is_none_is_a_fault_of_its_field(body: str, number: str, field: str) -> None:
    with pytest.raises(ValidationError, match="finite number") as caught:
        Retrieval.model_validate_json(body % number)
    assert [".".join(map(str, error["loc"])) for error in caught.value.errors()] == [field]


def test_a_version_may_be_written_as_a_number() -> None:
    said = ServiceManifest.model_validate({"indexVersion": 7, "chunking": {"version": 1}})
    assert said.index_version == "7"
    assert said.chunking is not None
    assert said.chunking.version == "1"


@pytest.mark.parametrize(
    "name",
    OF_IDENTITY.split(),
)
def test_names_of_identity_and_time(name: str) -> None:
    assert names_identity(name)


@pytest.mark.parametrize(
    "name",
    OF_OTHERS.split(),
)
def test_other_names_that_look_like_them(name: str) -> None:
    assert not names_identity(name)


def test_no_field_of_a_golden_case_names_either() -> None:
    models = (case.Case, case.Passage, case.EvidenceGroup, case.Claim)
    names = {name for model in models for name in model.model_fields}
    assert len(names) > 30
    assert {name for name in names if names_identity(name)} == set()


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ('"modelCalls": 3000000000', "modelCalls"),
        ('"modelCalls": -1', "modelCalls"),
        ('"tokens": {"context": 1e23}', "tokens.context"),
        ('"tokens": {"prompt": -1}', "tokens.prompt"),
    ],
)
def test_a_count_that_no_table_holds_is_a_fault_of_its_field(fields: str, place: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Retrieval.model_validate_json(f'{{"results": [], {fields}}}')
    assert [".".join(map(str, error["loc"])) for error in caught.value.errors()] == [place]


@pytest.mark.parametrize("number", ["1e22", "-1", "NaN", "1e400", "9223372036854775808"])
@pytest.mark.parametrize("name", ["start", "end"])
def test_an_offset_that_is_no_place_is_not_observed(number: str, name: str) -> None:
    body = '{"chunkId": "a", "start": 1, "end": 2}'.replace(
        f'"{name}": {1 if name == "start" else 2}', f'"{name}": {number}'
    )
    chunk = Chunk.model_validate_json(body)
    assert (chunk.chunk_id, chunk.start, chunk.end) == ("a", None, None)


@pytest.mark.parametrize("rank", [0, -5, 2**31, 10**400, 1.5])
def test_a_rank_that_is_no_position_is_refused(rank: float) -> None:
    with pytest.raises(ValidationError, match=r"ranks\.vector"):
        Explanation.model_validate(
            {"chunkId": "a", "state": "published", "visible": True, "ranks": {"vector": rank}}
        )
