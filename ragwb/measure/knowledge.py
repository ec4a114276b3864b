"""Figures of the data layer: is the evidence in the index, whole, and only once?"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import chain

from ragwb.golden.passages import ResolvedCase
from ragwb.knowledge.chunk_id import normalise
from ragwb.records import Chunk


def knowledge_coverage(cases: Iterable[ResolvedCase], published: Collection[str]) -> float | None:
    """Share of evidence groups of which a chunk is published in the index.

    Args:
        cases: resolved golden cases.
        published: ids of the published chunks, as a set.

    Returns:
        In [0, 1]; None without groups.
    """
    groups = chain.from_iterable(case.groups for case in cases)
    found = [any(chunk_id in published for chunk_id in group.chunk_ids) for group in groups]
    return sum(found) / len(found) if found else None


def split_rate(cases: Iterable[ResolvedCase]) -> float | None:
    """Share of evidence passages that no chunk holds whole.

    A passage is a label of a case, `evidence[i]` with its alternatives; ids are no passages.

    Returns:
        In [0, 1]; None without passages.
    """
    is_split: dict[tuple[str, str], bool] = {}
    for case in cases:
        for group in case.groups:
            if group.label.startswith("evidence"):
                label = (case.case.id, group.label)
                is_split[label] = is_split.get(label, False) or group.split
    return sum(is_split.values()) / len(is_split) if is_split else None


def corpus_duplicate_rate(chunks: Iterable[Chunk]) -> float | None:
    """Share of chunks whose normalised text stands under another id as well.

    Args:
        chunks: the chunks of an index; one without a text is not counted, one that comes again
            counts once.

    Returns:
        In [0, 1]; None without chunks.
    """
    by_text: dict[str, set[str]] = {}
    for chunk in chunks:
        if chunk.text is not None:
            by_text.setdefault(normalise(chunk.text), set()).add(chunk.chunk_id)
    n_chunks = sum(len(ids) for ids in by_text.values())
    n_twins = sum(len(ids) for ids in by_text.values() if len(ids) > 1)
    return n_twins / n_chunks if n_chunks else None


def unattributed_documents(documents: Mapping[str, tuple[str | None, str | None]]) -> list[str]:
    """Names of documents without a source or a version, sorted.

    Args:
        documents: source and version by a document's name, None or "" where there is none.
    """
    return sorted(name for name, origin in documents.items() if not all(origin))
