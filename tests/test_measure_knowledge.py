from __future__ import annotations

from ragwb.golden.case import Case
from ragwb.golden.passages import ResolvedCase, ResolvedGroup
from ragwb.measure.knowledge import (
    corpus_duplicate_rate,
    knowledge_coverage,
    split_rate,
    unattributed_documents,
)
from ragwb.records import Chunk


def case(*groups: ResolvedGroup) -> ResolvedCase:
    golden = Case(dataset_version="v", id="q", question="?", expected_chunk_ids=("a",))
    return ResolvedCase(case=golden, groups=groups)


def group(index: int, *chunk_ids: str, label: str = "evidence[0]", split: bool = False):
    return ResolvedGroup(index=index, chunk_ids=chunk_ids, label=label, split=split)


def test_coverage_counts_groups_with_a_published_chunk() -> None:
    cases = [case(group(0, "a", "b"), group(1, "c"), group(2))]
    assert knowledge_coverage(cases, {"b"}) == 1 / 3
    assert knowledge_coverage([], {"b"}) is None


def test_split_rate_counts_a_split_passage_once_and_no_ids() -> None:
    cases = [
        case(
            group(0, "a", split=True),
            group(1, "b", split=True),
            group(2, "c", label="evidence[1]"),
            group(3, "d", label="expected_chunk_ids[0]"),
        )
    ]
    assert split_rate(cases) == 1 / 2
    assert split_rate([case(group(0, "d", label="expected_chunk_ids[0]"))]) is None


def test_duplicates_of_a_corpus_are_other_ids_with_the_same_normalised_text() -> None:
    texts = {"a": "退款\r\n三天 ", "b": "退款\n三天", "c": "运费"}
    chunks = [Chunk(chunk_id=chunk_id, text=text) for chunk_id, text in texts.items()]
    assert corpus_duplicate_rate([*chunks, chunks[2]]) == 2 / 3
    assert corpus_duplicate_rate([Chunk(chunk_id="d")]) is None


def test_documents_without_source_or_version_are_named() -> None:
    origins = {"b": ("wiki", None), "a": ("", "1"), "c": ("wiki", "1")}
    assert unattributed_documents(origins) == ["a", "b"]
