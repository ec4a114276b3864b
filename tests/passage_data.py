"""One body, its sentences as chunks, and short ways to resolve a case in them."""

from __future__ import annotations

from typing import Any

from golden_data import case_data, make_dataset

from ragwb.golden.passages import NOTE_KINDS, ResolvedCase, resolve_dataset
from ragwb.records import Chunk

BODY = "退款审核通过后，三个工作日内到账。节假日顺延。运费不退，由买家承担。"
SENTENCES = [(0, 17), (17, 23), (23, len(BODY))]


def passage(quote: str | None = None, **changes: Any) -> dict[str, Any]:
    data = {"document_id": "refund-policy", "document_version": "2025.3", "quote": quote, **changes}
    return {name: value for name, value in data.items() if value is not None}


def resolve(data: dict[str, Any], chunks: list[Chunk] | None) -> ResolvedCase:
    (resolved,) = resolve_dataset(make_dataset(data), chunks)
    return resolved


def groups_of(data: dict[str, Any], chunks: list[Chunk]) -> list[tuple[str, ...]]:
    return [group.chunk_ids for group in resolve(data, chunks).groups]


def kinds_of(case: ResolvedCase) -> list[str]:
    kinds = [note.split(" ")[0] for note in case.notes]
    assert set(kinds) <= {*NOTE_KINDS}
    return kinds


def any_of(*passages: dict[str, Any], **changes: Any) -> dict[str, Any]:
    evidence = [{"any_of": list(passages), "hop": "到账时间"}]
    return case_data(expected_chunk_ids=None, evidence=evidence, **changes)
