from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from golden_data import case_data, evidence_data, write_100_mb, write_lines
from hypothesis import given, settings
from hypothesis import strategies as st

from ragwb.errors import Fault, GoldenError
from ragwb.golden.case import Case
from ragwb.golden.dataset import MAX_FAULTS, load_dataset, save_dataset

PASSAGE = {"document_id": "refund-policy", "document_version": "2025.3", "quote": "三个工作日"}


NAMES = [
    *Case.model_fields,
    *["answerable", "shouldRefuse", "expected", "accepted_variants", "requiredEvidence", "mode"],
    *["any_of", "document_id", "quote", "start", "end", "lines", "text", "variants", "pattern"],
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "golden.jsonl"


def faults_of(path: Path) -> list[str]:
    """Faults of a file without its folder."""
    with pytest.raises(GoldenError) as caught:
        load_dataset(path)
    return [str(fault).removeprefix(f"{path.parent}/") for fault in caught.value.faults]


def test_a_set_in_the_order_of_its_file(path: Path) -> None:
    write_lines(path, case_data(id="b"), evidence_data(PASSAGE, id="a"))
    dataset = load_dataset(path)

    assert (dataset.version, dataset.path) == ("golden-v1", path)
    assert load_dataset(str(path)) == dataset
    assert [case.id for case in dataset.cases] == ["b", "a"]


def test_the_hash_is_of_what_the_cases_say(path: Path) -> None:
    write_lines(path, case_data(tags={"b": "1", "a": "2"}))
    hashed = load_dataset(path).content_hash

    camel = {"tags": {"a": "2", "b": "1"}, "datasetVersion": "golden-v1", "weight": 1, "note": None}
    data = {**case_data(dataset_version=None), **camel}
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(data, indent=4).replace("\n", "\r\n").encode())
    assert load_dataset(path).content_hash == hashed

    write_lines(path, case_data(tags={"b": "1", "a": "3"}))
    assert load_dataset(path).content_hash != hashed


def test_a_broken_line_is_named(path: Path) -> None:
    write_lines(path, case_data(id="a"), '{"id": "b", "question": }', case_data(id="c"))

    (fault,) = faults_of(path)
    assert fault.startswith("golden.jsonl:2: not JSON: Expecting value at character 25")


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"id": "null"}, None),
        ({"id": ""}, "id: must not be empty"),
        ({"id": 5}, "id: must be text, found 5"),
        ({"id": None}, "id: missing: give it"),
        ({"question": None}, "question: missing: give it"),
        ({"dataset_version": None}, "dataset_version: missing: give it"),
        ({"expected_chunk_ids": None}, "evidence: missing on a case to be answered"),
        ({"expectedChunkId": ["a"]}, "expectedChunkId: unknown field; did you mean expected_chunk"),
        ({"zzz": 1}, "zzz: unknown field: remove it"),
        ({"weight": -1}, "weight: must be greater than 0, found -1"),
        ({"tier": "gold"}, "tier: must be 'shadow', 'blocking', 'diagnostic' or 'retired', found"),
        ({"tags": ["a"]}, "tags: must be an object of texts"),
        ({"evidence": {"a": 1}}, "evidence: must be a list"),
        ({"evidence": [{"any_of": []}]}, "evidence[0].any_of: must not be empty"),
        (
            {"evidence": [{"any_of": [PASSAGE, {"document_id": "d", "quote": ""}]}]},
            "evidence[0].any_of[1].quote: must not be empty",
        ),
        ({"answerable": False, "mode": "answer"}, "mode: answerable and mode leave no mode"),
        ({"required_claims": [{"txt": "x"}]}, "required_claims[0].text: missing"),
    ],
)
def test_a_wrong_field_is_named(path: Path, changes: dict[str, Any], fault: str | None) -> None:
    write_lines(path, case_data(**changes))

    if fault is None:
        assert load_dataset(path).cases[0].id == "null"
    else:
        assert any(found.startswith(f"golden.jsonl:1: {fault}") for found in faults_of(path))


def test_a_null_id_is_named(path: Path) -> None:
    write_lines(path, {**case_data(), "id": None})

    assert faults_of(path) == ["golden.jsonl:1: id: must be text, found null"]


def test_all_faults_come_at_once(path: Path) -> None:
    write_lines(
        path,
        case_data(id="a"),
        case_data(id="", question=None, expected_chunk_ids=None),
        "[]",
        case_data(id="a", tier="gold"),
        case_data(id="b", dataset_version="golden-v2"),
        case_data(id="a"),
        case_data(id="c", dataset_version="golden-v2"),
    )

    assert faults_of(path) == [
        "golden.jsonl:2: id: must not be empty",
        "golden.jsonl:2: question: missing: give it",
        "golden.jsonl:2: evidence: missing on a case to be answered: give evidence or"
        " expected_chunk_ids, or another mode",
        "golden.jsonl:3: must be a JSON object, found []",
        "golden.jsonl:4: tier: must be 'shadow', 'blocking', 'diagnostic' or 'retired',"
        ' found "gold"',
        'golden.jsonl:4: id: "a" stands on line 1 already',
        'golden.jsonl:5: dataset_version: "golden-v2" beside "golden-v1" on line 1: one file,'
        " one version",
        'golden.jsonl:6: id: "a" stands on line 1 already',
    ]


def test_a_list_whose_members_are_wrong_is_not_called_empty(path: Path) -> None:
    write_lines(path, evidence_data({"document_id": "d"}))

    (fault,) = faults_of(path)
    assert "evidence[0].any_of[0]: says no place" in fault


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 2) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(NAMES), inner),
    max_leaves=4,
)


@given(st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=8))
@settings(deadline=None, database=None, max_examples=300)
def test_whatever_a_line_says_it_is_a_case_or_a_fault(
    tmp_path_factory: pytest.TempPathFactory, data: dict[str, Any]
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    path.write_text(json.dumps(case_data() | data), encoding="utf-8")

    faults: tuple[Fault, ...] = ()
    try:
        n_cases = len(load_dataset(path).cases)
    except GoldenError as error:
        n_cases, faults = 0, error.faults
    assert n_cases == (0 if faults else 1)
    assert all("\n" not in str(fault) for fault in faults)


def test_a_line_nested_too_deeply_is_named(path: Path) -> None:
    # The parser takes some depths that the checks after it do not: each must end as a fault.
    depths = range(800, 1000)
    write_lines(path, *('{"a":' * depth + "1" + "}" * depth for depth in depths))

    faults = faults_of(path)
    assert {fault.split(":")[1] for fault in faults} == {str(n + 1) for n in range(len(depths))}
    assert any("nested too deeply to be a case" in fault for fault in faults)


IDENTITY_KEYS = [
    "tenantId",
    "tenant_id",
    "TENANT-ID",
    "Tenant Id",
    "ｔｅｎａｎｔＩｄ",
    "subject",
    "subjectId",
    "sub",
    "departments",
    "Department",
    "department_ids",
    "effectiveAt",
    "effective_at",
    "EFFECTIVE.AT",
    "identity",
    "userId",
    "as_of",
    "callerTenant",
    "x-dept-ids",
]


@pytest.mark.parametrize("key", IDENTITY_KEYS)
def test_identity_and_time_are_refused_at_any_depth(path: Path, key: str) -> None:
    write_lines(
        path,
        case_data(id="a", **{key: "x"}),
        case_data(id="b", tags={key: "x"}),
        evidence_data({**PASSAGE, key: ["x"]}, id="c"),
        case_data(id="d", note={"deep": [{"deeper": {key: None}}]}),
    )

    faults = [fault for fault in faults_of(path) if "carries identity or time" in fault]
    places = [key, f"tags.{key}", f"evidence[0].any_of[0].{key}", f"note.deep[0].deeper.{key}"]
    assert [fault.split(": ")[1] for fault in faults] == places
    assert [fault.split(":")[1] for fault in faults] == ["1", "2", "3", "4"]


def test_identity_is_told_once_and_not_as_an_unknown_field_too(path: Path) -> None:
    write_lines(path, case_data(tenantId="starmall"))

    (fault,) = faults_of(path)
    assert fault.startswith("golden.jsonl:1: tenantId: carries identity or time")


def test_words_in_texts_are_no_identity(path: Path) -> None:
    write_lines(path, case_data(question='"tenantId" 是什么？', tags={"domain": "departments"}))

    assert len(load_dataset(path).cases) == 1


@pytest.mark.parametrize("content", ["", "\n \n", "\ufeff"])
def test_a_file_without_cases_is_an_error(path: Path, content: str) -> None:
    path.write_text(content, encoding="utf-8")

    assert faults_of(path) == ["golden.jsonl: no case in it: write one JSON object a line"]


def test_faults_of_a_file_of_another_kind_have_an_end(path: Path) -> None:
    path.write_text("x\n" * (MAX_FAULTS + 5), encoding="utf-8")

    faults = faults_of(path)
    assert len(faults) == MAX_FAULTS + 1
    assert faults[-1] == f"golden.jsonl: more than {MAX_FAULTS} faults: stopped reading"


def test_the_message_counts_the_other_faults(path: Path) -> None:
    write_lines(path, "x", "y", "z")

    with pytest.raises(GoldenError, match=r"golden\.jsonl:1: not JSON.* \(and 2 more\)"):
        load_dataset(path)


def test_a_file_of_100_mb_is_read(path: Path) -> None:
    write_100_mb(path)

    assert path.stat().st_size > 100_000_000
    assert len(load_dataset(path).cases) == 10_000


def test_what_is_saved_is_read_back(path: Path) -> None:
    full = evidence_data(
        PASSAGE,
        {"document_id": "d", "lines": [1, 2]},
        required_claims=[{"text": "三天", "variants": ["3 天"], "pattern": "三|3"}],
        forbidden_evidence=["d#L9"],
        tags={"domain": "refund"},
        risk="high",
        weight=2.5,
        mode="clarify",
        refusal_trigger=["CONDITION_MISSING"],
    )
    cases = tuple(map(Case.model_validate, (full, case_data(id="b", question="“引号”\n换行？"))))
    save_dataset(cases, path)

    assert load_dataset(path).cases == cases
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") == 2
    assert "“引号”" in text
    assert "null" not in text
    assert '"case_version"' not in text


def test_saving_replaces_in_one_step_and_keeps_the_mode(path: Path, tmp_path: Path) -> None:
    write_lines(path, case_data())
    path.chmod(0o640)
    link = tmp_path / "link.jsonl"
    link.symlink_to(path)
    cases = load_dataset(path).cases
    save_dataset(cases, link)

    assert link.is_symlink()
    assert load_dataset(path).cases == cases
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert sorted(file.name for file in tmp_path.iterdir()) == ["golden.jsonl", "link.jsonl"]


def test_a_save_that_fails_leaves_the_old_file(path: Path, tmp_path: Path) -> None:
    write_lines(path, case_data())
    before = path.read_bytes()

    def cases() -> Any:
        yield load_dataset(path).cases[0]
        raise OSError(28, "No space left on device")

    with pytest.raises(GoldenError, match="cannot be written: No space left on device"):
        save_dataset(cases(), path)

    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["golden.jsonl"]


def test_a_folder_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(GoldenError, match="cannot be written: No such file"):
        save_dataset((), tmp_path / "nowhere" / "golden.jsonl")
