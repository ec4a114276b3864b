"""The golden sets that come with ragwb, against the documents that come with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragwb.golden.dataset import load_dataset
from ragwb.golden.passages import ResolvedCase, resolve_dataset
from ragwb.knowledge.chunking import ChunkingSpec, chunk_documents
from ragwb.knowledge.document import load_documents
from ragwb.records import Chunk

DATASETS = Path(__file__).parent.parent / "datasets"
# Evidence that does not hold; `split` and `gone` are findings about a chunking.
BROKEN = ("drifted", "differs", "missing", "unknown", "forbidden", "hidden")


@pytest.fixture(scope="module")
def chunks() -> list[Chunk]:
    documents = load_documents(DATASETS / "knowledge")
    return [chunk.to_record() for chunk in chunk_documents(documents, ChunkingSpec())]


def broken(cases: list[ResolvedCase]) -> list[str]:
    return [f"{case.case.id}: {note}" for case in cases for note in case.notes if is_broken(note)]


def is_broken(note: str) -> bool:
    return note.startswith(BROKEN)


def test_there_are_golden_sets() -> None:
    assert list((DATASETS / "retrieval").glob("*.jsonl"))


@pytest.mark.parametrize(
    "path", sorted((DATASETS / "retrieval").glob("*.jsonl")), ids=lambda path: path.name
)
def test_every_id_and_passage_holds_after_re_chunking(path: Path, chunks: list[Chunk]) -> None:
    dataset = load_dataset(path)
    resolved = resolve_dataset(dataset, chunks)

    assert broken(resolved) == []
    assert [case.case.id for case in resolved if case.excluded and case.case.mode == "answer"] == []


def test_a_label_that_no_longer_holds_is_named(chunks: list[Chunk]) -> None:
    path = sorted((DATASETS / "retrieval").glob("*.jsonl"))[0]
    dataset = load_dataset(path)
    case = next(
        case for case in dataset.cases if case.evidence and len(case.evidence[0].any_of) == 1
    )
    name = case.evidence[0].any_of[0].document_id

    cut_short = [chunk for chunk in chunks if chunk.document_id != name]
    assert any(
        line.startswith(f"{case.id}: ") for line in broken(resolve_dataset(dataset, cut_short))
    )
