from __future__ import annotations

import datetime
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from service_corpus import make_pipeline, make_settings, write_corpus

from ragwb.errors import UsageError
from ragwb.knowledge.chunking import ChunkingSpec
from ragwb.service.build import build_index
from ragwb.service.embedding import load_embedder
from ragwb.service.index import INDEX_FILE, open_index, read_meta


def test_rows_carry_chunks_documents_vectors_and_tokens(tmp_path: Path) -> None:
    index = make_pipeline(tmp_path).index
    chunks = list(index.iter_chunks())

    assert [chunk.chunk_id for chunk in chunks] == list(index.chunk_ids)
    assert index.vectors.shape == (len(chunks), 256)
    assert len(index.sentence_starts) == len(chunks) + 1
    assert index.sentence_starts[-1] == len(index.sentence_vectors)
    assert (np.diff(index.sentence_starts) >= 1).all()
    assert (index.tokens_of > 0).all()
    row = index.row_of[chunks[0].chunk_id]
    assert index.document(row).document_id == chunks[0].document_id
    assert index.document(row).effective_from == datetime.date(2025, 1, 1)


def test_chunks_come_in_the_order_asked(tmp_path: Path) -> None:
    index = make_pipeline(tmp_path).index
    rows = [3, 0, 3]

    assert [chunk.chunk_id for chunk in index.chunks(rows)] == [index.chunk_ids[r] for r in rows]


def test_keyword_finds_a_code_and_a_word_of_two_characters(tmp_path: Path) -> None:
    index = make_pipeline(tmp_path).index

    for question in ("E-1047 怎么办", "ｅ－1047"):
        best = int(np.argmax(index.keyword_scores(question)))
        assert index.document(best).document_id == "codes"
    found = np.isfinite(index.keyword_scores("运费"))
    assert [chunk.title for chunk in index.chunks(np.flatnonzero(found).tolist())] == [
        "退款政策 / 运费"
    ]


@pytest.mark.parametrize("question", ["", "？！", '" OR * NEAR(', "zzz", "退" * 4000, "a-b " * 900])
def test_keyword_takes_any_text(question: str, tmp_path: Path) -> None:
    scores = make_pipeline(tmp_path).index.keyword_scores(question)

    assert not np.isnan(scores).any()


def test_moved_rows_follow_the_text_within_the_tenant(tmp_path: Path) -> None:
    before = make_pipeline(tmp_path).index
    old_id = before.chunks([before.row_of[i] for i in before.chunk_ids])[0].chunk_id
    source = (tmp_path / "corpus" / "codes.md").read_text(encoding="utf-8")
    (tmp_path / "corpus" / "codes.md").write_text(
        source.replace('version: "1"', 'version: "2"'), encoding="utf-8"
    )
    after = make_pipeline(tmp_path).index

    assert old_id not in after.row_of
    moved = after.moved_rows(old_id)
    assert [after.document(row).version for row in moved] == ["2"]
    assert after.moved_rows("chunk-never-held") == []


def test_an_index_beside_it_tells_the_ids_of_another_chunking(tmp_path: Path) -> None:
    first = make_pipeline(tmp_path, index_dir=tmp_path / "index" / "a").index
    second = make_pipeline(
        tmp_path, index_dir=tmp_path / "index" / "b", chunking=ChunkingSpec("fixed", 400, 0)
    ).index

    whole = next(
        i for i in first.chunk_ids if first.document(first.row_of[i]).document_id == "draft"
    )
    assert whole not in second.row_of
    assert [second.document(row).document_id for row in second.moved_rows(whole)] == ["draft"]


def test_absent_and_foreign_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no index here"):
        open_index(tmp_path)
    (tmp_path / INDEX_FILE).write_bytes(b"not a database, but long enough to be read as one" * 9)
    with pytest.raises(UsageError, match="build it again"):
        open_index(tmp_path)
    assert read_meta(tmp_path) is None


def test_an_index_of_another_format_is_refused_and_built_again(tmp_path: Path) -> None:
    pipeline = make_pipeline(tmp_path)
    pipeline.index.close()
    with sqlite3.connect(pipeline.index.path) as store:
        store.execute("UPDATE meta SET value = '\"0\"' WHERE key = 'format'")
    store.close()

    with pytest.raises(UsageError, match="build it again"):
        open_index(pipeline.config.index_dir)
    again = open_index(build_index(pipeline.config, pipeline.embedder))
    assert again.chunk_ids == pipeline.index.chunk_ids


def test_an_empty_question_of_the_channel_matches_nothing(tmp_path: Path) -> None:
    write_corpus(tmp_path / "corpus")
    config = make_settings(tmp_path)
    index = open_index(build_index(config, load_embedder(config)))

    assert not np.isfinite(index.keyword_scores("。")).any()
