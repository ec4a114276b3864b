"""What a run depends on: its manifest, and how two manifests differ."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from ragwb import __version__
from ragwb.records import ServiceManifest

PACKAGES = ("duckdb", "httpx", "numpy", "pandas", "pyarrow", "pydantic")
# What always differs and changes no figure: times, ids and hosts.
ASIDE = frozenset({"run_id", "created_at", "base_url", "effective_at", "content_hash"})
RUN_ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"


class RunManifest(BaseModel):
    """What a run depends on, under these keys exactly; what the service did not say is None.

    Attributes:
        created_at: UTC, ISO 8601; effective_at: the earliest time that a reply was made for.
        dataset_hash, content_hash: SHA-256 in hex; content_hash is None until the run is sealed.
        identity: as the service named it; with `--identity`, `labels` holds those of the labels.
        code_version, service: of the service; packages: of the workbench.
        threshold, temperature: in the service's own units; context_budget_tokens in its tokens.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    run_id: str = Field(pattern=RUN_ID_PATTERN)
    created_at: str
    base_url: str | None
    dataset_version: str
    dataset_hash: str
    knowledge_snapshot: str | None = None
    index_version: str | None = None
    embedding_model: str | None = None
    embedding_dimensions: int | None = None
    distance: str | None = None
    chunking: dict[str, Any] | None = None
    candidate_k: int | None = None
    top_k: int = Field(ge=1, le=100)
    threshold: float | None = None
    keyword: bool | None = None
    rewrite: bool | str | None = None
    fusion: dict[str, Any] | None = None
    rerank: str | None = None
    context_budget_tokens: int | None = None
    identity: dict[str, Any] | None = None
    effective_at: str | None = None
    answer_model: str | None = None
    prompt_version: str | None = None
    temperature: float | None = None
    judge_model: str | None = None
    rubric_hash: str | None = None
    code_version: str | None = None
    packages: dict[str, str]
    service: str | None = None
    repeats: int = Field(ge=1)
    concurrency: int | None = None
    content_hash: str | None = None

    @property
    def sealed(self) -> bool:
        """Whether the run is complete and its content hashed; it never changes from then on."""
        return self.content_hash is not None

    def to_dict(self) -> dict[str, Any]:
        """The manifest as JSON values, in its order."""
        return self.model_dump(mode="json")

    def to_json(self) -> bytes:
        """The manifest as it stands in `manifest.json`."""
        return (self.model_dump_json(indent=2) + "\n").encode()


@dataclass(frozen=True, slots=True)
class Change:
    """A field in which two manifests differ."""

    field: str
    baseline: Any
    candidate: Any


# What only an answer depends on.
_ANSWERING = frozenset({"answer_model", "prompt_version", "temperature"})


def service_fields(
    manifest: ServiceManifest | None,
    labelled: Mapping[str, ServiceManifest | None] | None = None,
    *,
    answers: bool = True,
) -> dict[str, Any]:
    """The fields of a run's manifest that the service said.

    Args:
        manifest: the service's own, None when it has none.
        labelled: what it said to each labelled identity; only who they are is kept.
        answers: whether the run asks for answers; else how they are made is left out.
    """
    names = set(ServiceManifest.model_fields) - {"protocol"}
    if not answers:
        names -= _ANSWERING
    said = {} if manifest is None else manifest.model_dump(include=names)
    labels = {
        label: own.identity.model_dump() if own is not None and own.identity is not None else None
        for label, own in (labelled or {}).items()
    }
    if labels:
        said["identity"] = {**(said.get("identity") or {}), "labels": labels}
    return said


def package_versions() -> dict[str, str]:
    """Versions of Python and of the packages that ask and compute."""
    found = {"python": platform.python_version(), "ragwb": __version__}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def diff_manifests(baseline: RunManifest, candidate: RunManifest) -> list[Change]:
    """The fields in which two manifests differ, times, ids and hosts aside, in their order.

    One change is an experiment; several make a comparison confounded.
    """
    return [
        Change(name, getattr(baseline, name), getattr(candidate, name))
        for name in RunManifest.model_fields
        if name not in ASIDE and getattr(baseline, name) != getattr(candidate, name)
    ]


def content_hash(manifest: RunManifest, file_hashes: Mapping[str, str]) -> str:
    """SHA-256 in hex over the manifest without this hash and the hash of each file of the run."""
    locked = {
        "manifest": manifest.model_dump(mode="json", exclude={"content_hash"}),
        "files": dict(file_hashes),
    }
    text = json.dumps(locked, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
