"""What should happen?

A golden set is a JSONL file of cases (`case`), checked as a whole and hashed (`dataset`); its
evidence is resolved to the chunk ids of whatever chunking is in use (`passages`).
"""

from __future__ import annotations

from ragwb.golden.case import Case, Claim, EvidenceGroup, Passage
from ragwb.golden.chunk_index import ChunkIndex
from ragwb.golden.dataset import Dataset, load_dataset, save_dataset
from ragwb.golden.passages import (
    ResolvedCase,
    ResolvedGroup,
    referenced_chunk_ids,
    referenced_documents,
    resolve_dataset,
)

__all__ = [
    "Case",
    "ChunkIndex",
    "Claim",
    "Dataset",
    "EvidenceGroup",
    "Passage",
    "ResolvedCase",
    "ResolvedGroup",
    "load_dataset",
    "referenced_chunk_ids",
    "referenced_documents",
    "resolve_dataset",
    "save_dataset",
]
