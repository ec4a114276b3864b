"""Answers to small golden cases, for the tests of the figures of answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ragwb.golden.case import Case
from ragwb.golden.passages import ResolvedCase, ResolvedGroup
from ragwb.measure.answered import AnsweredCase
from ragwb.measure.rule_pack import RulePack
from ragwb.records import Chunk, Citation

PLAIN = RulePack(name="plain", version="1")
"""A pack without rules of its own."""


def resolved(
    case_id: str = "c",
    *groups: Sequence[str],
    forbidden: Sequence[str] = (),
    excluded: str | None = None,
    **fields: Any,
) -> ResolvedCase:
    """A golden case whose groups hold these chunks; without groups one that expects chunk x."""
    given = {"expected_chunk_ids": ("x",)} if fields.get("mode", "answer") == "answer" else {}
    labels = {"dataset_version": "v", "id": case_id, "question": "?", **given, **fields}
    return ResolvedCase(
        case=Case.model_validate(labels),
        groups=tuple(ResolvedGroup(index=i, chunk_ids=tuple(g)) for i, g in enumerate(groups)),
        forbidden_chunk_ids=tuple(forbidden),
        excluded=excluded,
    )


def answered(
    case: ResolvedCase | None = None,
    text: str | None = "好。",
    *,
    cites: Sequence[str] | None = None,
    **given: Any,
) -> AnsweredCase:
    """An answer of mode answer that cites these chunks."""
    citations = None if cites is None else tuple(Citation(chunk_id=name) for name in cites)
    labels: dict[str, Any] = {"mode": "answer", "text": text, "citations": citations, **given}
    return AnsweredCase(case or resolved(), **labels)


def chunk(chunk_id: str, document_id: str | None = None, version: str | None = None) -> Chunk:
    """A chunk of a document."""
    return Chunk(chunk_id=chunk_id, document_id=document_id, document_version=version)
