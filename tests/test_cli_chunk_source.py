from __future__ import annotations

from pathlib import Path

import pytest
from golden_data import case_data, evidence_data, make_dataset
from loopback import FakeService
from service_corpus import make_settings, write_corpus

from ragwb.cli.chunk_source import INDEX_FILE, fetch_knowledge, load_chunks, load_knowledge
from ragwb.errors import UsageError
from ragwb.knowledge.chunking import ChunkingSpec
from ragwb.service import index as service_index
from ragwb.service.build import build_index
from ragwb.service.embedding import load_embedder
from ragwb.settings import Settings

DATASET = make_dataset(
    evidence_data({"document_id": "refund", "quote": "三日到账"}),
    case_data(expected_chunk_ids=["fee-1", "gone-1"]),
)


def test_an_index_and_its_documents_give_the_same_chunks(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus")
    config = make_settings(tmp_path)
    folder = build_index(config, load_embedder(config))

    from_index = {chunk.chunk_id: chunk for chunk in load_chunks(folder)}
    from_documents = {chunk.chunk_id: chunk for chunk in load_chunks(corpus)}
    assert from_index == from_documents
    assert len(from_index) > 8


def test_an_index_and_its_documents_tell_the_same_of_their_origin(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus")
    config = make_settings(tmp_path)

    from_index = load_knowledge(build_index(config, load_embedder(config)))
    from_documents = load_knowledge(corpus)
    assert from_index.origins == from_documents.origins
    assert from_index.published == from_documents.published
    assert from_index.is_whole
    names = {chunk.chunk_id: chunk.document_id for chunk in from_index.chunks}
    unpublished = {names[chunk_id] for chunk_id in names.keys() - from_index.published}
    assert unpublished == {"draft", "withdrawn"}
    assert from_index.origins is not None
    assert from_index.origins["starmall/refund/2025.9"] == ("测试", "2025.9")


def test_documents_are_cut_as_asked(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus")

    assert len(list(load_chunks(corpus, ChunkingSpec(size=8)))) > len(list(load_chunks(corpus)))


def test_an_index_is_cut_already(tmp_path: Path) -> None:
    (tmp_path / INDEX_FILE).touch()

    with pytest.raises(UsageError, match="is an index, cut already: drop --strategy"):
        load_chunks(tmp_path, ChunkingSpec())


def test_the_name_of_the_index_file_is_the_service_s() -> None:
    assert service_index.INDEX_FILE == INDEX_FILE


def test_a_service_tells_what_a_set_names(tmp_path: Path) -> None:
    service = FakeService(
        chunks={"refund-1": "三日", "refund-2": "到账。", "fee-1": "不退。", "other-1": "别的。"}
    )

    knowledge = fetch_knowledge(
        Settings(root=tmp_path, home=tmp_path), DATASET, transport=service.transport()
    )
    assert [chunk.chunk_id for chunk in knowledge.chunks] == ["refund-1", "refund-2", "fee-1"]
    assert knowledge.published == {"refund-1", "refund-2", "fee-1"}
    assert (knowledge.is_whole, knowledge.origins) == (False, None)


def test_a_service_that_does_not_tell_its_chunks(tmp_path: Path) -> None:
    service = FakeService(chunk_call=False)

    with pytest.raises(UsageError, match="does not tell its chunks: give --index DIR instead"):
        fetch_knowledge(
            Settings(root=tmp_path, home=tmp_path), DATASET, transport=service.transport()
        )
