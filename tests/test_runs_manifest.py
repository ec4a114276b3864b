from __future__ import annotations

import pytest
from pydantic import ValidationError

from ragwb.records import ServiceManifest
from ragwb.runs.manifest import (
    Change,
    RunManifest,
    content_hash,
    diff_manifests,
    package_versions,
    service_fields,
)

BASE = RunManifest(
    run_id="r1",
    created_at="2026-11-30T08:00:00+00:00",
    base_url="http://a",
    dataset_version="v1",
    dataset_hash="h",
    top_k=5,
    packages={"python": "3.11"},
    repeats=1,
)


def changed(**given: object) -> RunManifest:
    return BASE.model_copy(update=given)


def test_times_ids_and_hosts_are_no_conditions() -> None:
    other = changed(
        run_id="r2",
        created_at="later",
        base_url="http://b",
        effective_at="now",
        content_hash="x",
    )
    assert diff_manifests(BASE, other) == []


@pytest.mark.parametrize(
    "name",
    sorted(
        set(RunManifest.model_fields)
        - {"run_id", "created_at", "base_url", "effective_at", "content_hash"}
    ),
)
def test_every_other_field_is_a_condition(name: str) -> None:
    other = changed(**{name: "another"})
    assert diff_manifests(BASE, other) == [Change(name, getattr(BASE, name), "another")]


def test_changes_come_in_the_order_of_the_manifest() -> None:
    changes = diff_manifests(BASE, changed(concurrency=9, dataset_hash="other", rerank="m"))
    assert [change.field for change in changes] == ["dataset_hash", "rerank", "concurrency"]


def test_the_hash_covers_manifest_and_files_but_not_itself() -> None:
    first = content_hash(BASE, {"a": "1"})
    assert first == content_hash(changed(content_hash="x"), {"a": "1"})
    assert first != content_hash(BASE, {"a": "2"})
    assert first != content_hash(changed(top_k=6), {"a": "1"})


def test_what_the_service_did_not_say_is_unknown() -> None:
    assert service_fields(None) == {}
    said = service_fields(ServiceManifest(service="s", protocol="1", rewrite=False))
    assert (said["service"], said["rewrite"], said["candidate_k"]) == ("s", False, None)
    assert "protocol" not in said


def test_labelled_identities_stand_under_labels() -> None:
    own = ServiceManifest.model_validate({"identity": {"subject": "u", "tenant": "t"}})
    said = service_fields(own, {"hr": own, "guest": None})
    assert said["identity"] == {
        "subject": "u",
        "tenant": "t",
        "departments": None,
        "labels": {
            "hr": {"subject": "u", "tenant": "t", "departments": None},
            "guest": None,
        },
    }


def test_versions_are_texts_of_what_is_installed() -> None:
    versions = package_versions()
    assert {"python", "ragwb", "pyarrow", "httpx"} <= set(versions)
    assert "not installed" not in versions.values()


@pytest.mark.parametrize("run_id", ["../x", "", ".", "a/b", "a\n"])
def test_an_id_is_one_safe_word(run_id: str) -> None:
    with pytest.raises(ValidationError):
        RunManifest.model_validate({**BASE.model_dump(), "run_id": run_id})
