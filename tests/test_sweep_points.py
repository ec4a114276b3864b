"""A point: its own index and run, the figures of HTTP, and nothing computed twice."""

import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from sweep_data import NOW, figures_of, make_dataset, make_home, small_grid

from ragwb.errors import UsageError
from ragwb.golden.dataset import Dataset, hash_cases
from ragwb.knowledge.chunking import ChunkingSpec
from ragwb.runs.runner import run_retrieval
from ragwb.runs.scoring import score
from ragwb.runs.store import load_run
from ragwb.service.build import build_index
from ragwb.service.config import ServiceConfig
from ragwb.service.embedding import Embedder, load_embedder
from ragwb.service.server import serving
from ragwb.settings import Settings
from ragwb.sweep.chunking import make_tasks, sweep_chunking
from ragwb.sweep.grid import Grid, make_grid
from ragwb.sweep.outcome import ChunkingSweep
from ragwb.sweep.points import Task, kept, run_point
from ragwb.sweep.pool import run_tasks
from ragwb.sweep.questions import embed_questions
from ragwb.sweep.results import RECORD


def sweep(folder: Path, grid: Grid | None = None, **given: object) -> ChunkingSweep:
    corpus, settings = make_home(folder)
    asked = {"dataset": make_dataset(), "k": 3, "corpus": corpus, "settings": settings, **given}
    return sweep_chunking(grid or small_grid(), clock=lambda: NOW, **asked)


def test_a_point_has_the_figures_of_a_run_over_http(tmp_path):
    found = sweep(tmp_path)
    corpus, _ = make_home(tmp_path)
    for result in found.results:
        config = ServiceConfig(
            corpus=corpus,
            index_dir=tmp_path / "http" / result.point.name,
            cache_dir=tmp_path / "cache",
            chunking=ChunkingSpec("fixed", result.point.size),
            embedder="hash",
            port=0,
        )
        with serving(config, clock=lambda: NOW) as base_url:
            settings = Settings(root=tmp_path, home=tmp_path / "other", base_url=base_url)
            run = run_retrieval(make_dataset(), settings, top_k=50)
        asked = load_run(result.run)
        ours, theirs = score(asked, [1, 3, 50]).frame, score(run, [1, 3, 50]).frame
        assert ours.equals(theirs)
        assert (
            asked.candidates()
            .drop(columns="repeat")
            .equals(run.candidates().drop(columns="repeat"))
        )
        fields = {"packages", "created_at", "run_id", "base_url", "content_hash", "concurrency"}
        fields |= {"answer_model", "prompt_version", "temperature"}
        mine, other = (m.model_dump(exclude=fields) for m in (asked.manifest, run.manifest))
        assert mine == other


def test_the_figures_are_those_of_the_sealed_run(tmp_path):
    found = sweep(tmp_path)
    result = found.results[0]
    frame = score(load_run(result.run), [1, 3]).frame
    for name in ("recall", "passage_recall", "passage_iou", "ndcg"):
        assert result.by_k[name][:, 0].tolist() == frame[f"{name}@1"].tolist()
        assert result.by_k[name][:, 2].tolist() == frame[f"{name}@3"].tolist()


def test_a_second_sweep_computes_nothing(tmp_path):
    first = sweep(tmp_path)
    second = sweep(tmp_path)
    assert [result.cached for result in first.results] == [False, False]
    assert [result.cached for result in second.results] == [True, True]
    assert figures_of(first.results) == figures_of(second.results)
    assert [r.run for r in first.results] == [r.run for r in second.results]
    assert first.to_dict() == second.to_dict()


def test_points_that_search_differently_share_an_index(tmp_path):
    found = sweep(tmp_path, small_grid(size=12, mode=["HYBRID", "KEYWORD"]))
    assert len(found.measured) == 2
    assert len(list((tmp_path / "home" / "sweep" / "index").iterdir())) == 1
    assert len({result.index.build_ms for result in found.results}) == 1


def test_sentences_are_embedded_only_for_points_that_rerank(tmp_path):
    without, with_them = sweep(tmp_path, small_grid(size=12, rerank=[False, True])).results
    assert without.index.n_vectors == without.index.n_chunks < with_them.index.n_vectors
    assert without.index.n_bytes < with_them.index.n_bytes
    # The chunks' vectors are there already, and so are those of sentences that are a chunk.
    assert with_them.index.n_computed <= with_them.index.n_vectors - with_them.index.n_chunks


def test_vectors_are_computed_once_for_all_points(tmp_path):
    found = sweep(tmp_path, small_grid(strategy=["fixed", "recursive", "heading"], size=400))
    computed = [result.index.n_computed for result in found.results]
    assert computed[0] == found.results[0].index.n_vectors
    # One chunk a document either way, and the same sentences: there is nothing left to compute.
    assert computed[1] == 0


@pytest.mark.parametrize("lost", ["runs", "index", "questions"])
def test_what_is_deleted_is_made_again(tmp_path, lost):
    first = sweep(tmp_path)
    shutil.rmtree(tmp_path / "home" / "sweep" / lost)
    second = sweep(tmp_path)
    assert [result.cached for result in second.results] == [lost != "runs"] * 2
    assert figures_of(first.results) == figures_of(second.results)


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b'{"point": {}}'])
def test_a_broken_record_is_made_again(tmp_path, content):
    first = sweep(tmp_path)
    for record in (tmp_path / "home" / "sweep" / "points").glob(f"*/{RECORD}"):
        record.write_bytes(content)
    second = sweep(tmp_path)
    assert [result.cached for result in second.results] == [False, False]
    assert figures_of(first.results) == figures_of(second.results)


def cut_in_half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def drop_a_case(path: Path) -> None:
    pq.write_table(pq.read_table(path).slice(1), path)


def ask_for_less(path: Path) -> None:
    path.write_text(path.read_text("utf-8").replace('"top_k": 50', '"top_k": 7'), "utf-8")


@pytest.mark.parametrize(
    ("pattern", "damage"),
    [
        ("sweep/points/*/cases.parquet", cut_in_half),
        ("sweep/points/*/cases.parquet", drop_a_case),
        ("sweep/points/*/point.json", ask_for_less),
        ("sweep/points/*/point.json", lambda path: path.write_text("[" * 100_000, "utf-8")),
        ("sweep/runs/*/candidates.parquet", cut_in_half),
        ("sweep/runs/*/manifest.json", cut_in_half),
    ],
)
def test_what_was_damaged_in_the_cache_is_made_again(tmp_path, pattern, damage):
    first = sweep(tmp_path)
    for path in (tmp_path / "home").glob(pattern):
        damage(path)
    again = sweep(tmp_path)
    assert not any(result.cached for result in again.results)
    assert figures_of(again.results) == figures_of(first.results)
    assert all(result.cached for result in sweep(tmp_path).results)
    assert again.borders("both")


def test_results_in_folders_of_one_another_are_made_again(tmp_path):
    first = sweep(tmp_path)
    one, two = ((tmp_path / "home" / "sweep" / "points" / r.key) for r in first.results)
    shutil.rmtree(two)
    shutil.copytree(one, two)
    again = sweep(tmp_path)
    assert [result.cached for result in again.results] == [True, False]
    assert figures_of(again.results) == figures_of(first.results)


def test_damaged_notes_beside_the_results_cost_nothing_but_time(tmp_path):
    first = sweep(tmp_path)
    shutil.rmtree(tmp_path / "home" / "sweep" / "points")
    for path in (tmp_path / "home").glob("sweep/questions/*.npz"):
        cut_in_half(path)
    for path in (tmp_path / "home").glob("sweep/index/*/of/build.json"):
        path.write_text("[1]", encoding="utf-8")
    again = sweep(tmp_path)
    assert figures_of(again.results) == figures_of(first.results)
    assert {result.index.n_vectors for result in again.results} == {None}


@pytest.mark.parametrize("chunker", ["leaves", "leaves_oddly"])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_chunker_that_leaves_the_process_is_the_error_of_its_point(tmp_path, chunker, workers):
    grid = make_grid(
        {"strategy": [f"sweep_data:{chunker}", "fixed"], "size": 40, "embedder": "hash"}
    )
    lost, sound = sweep(tmp_path, grid, workers=workers).results
    assert "it raised " in str(lost.error)
    assert sound.error is None


def test_what_a_chunker_prints_is_no_result(tmp_path, capsys):
    grid = make_grid({"strategy": "sweep_data:prints", "size": 40, "embedder": "hash"})
    assert sweep(tmp_path, grid).measured
    said = capsys.readouterr()
    assert (said.out, "HELLO" in said.err) == ("", True)


def test_a_killed_sweep_goes_on_and_leaves_no_half_run(tmp_path):
    first = sweep(tmp_path)
    home = tmp_path / "home" / "sweep"
    # As a kill between the run and the record leaves it, and one in the middle of a run.
    (half,) = [r.run for r in first.results if r.point.size == 12]
    (half / "manifest.json").unlink()
    for record in home.glob(f"points/*/{RECORD}"):
        record.unlink()
    second = sweep(tmp_path)
    assert figures_of(first.results) == figures_of(second.results)
    runs = sorted(path.name for path in (home / "runs").iterdir())
    assert runs == sorted(result.run.name for result in second.results)


def test_a_changed_question_is_another_point(tmp_path):
    first = sweep(tmp_path)
    dataset = make_dataset()
    cases = (dataset.cases[0].model_copy(update={"question": "信用卡"}), *dataset.cases[1:])
    second = sweep(tmp_path, dataset=Dataset(dataset.version, cases, hash_cases(cases)))
    assert not any(result.cached for result in second.results)
    assert {r.key for r in first.results}.isdisjoint(r.key for r in second.results)


def test_a_changed_document_is_another_point(tmp_path):
    first = sweep(tmp_path)
    corpus, settings = make_home(tmp_path)
    path = corpus / "codes.md"
    path.write_text(path.read_text(encoding="utf-8") + "\n缺货请等待。\n", encoding="utf-8")
    second = sweep_chunking(
        small_grid(), corpus=corpus, dataset=make_dataset(), settings=settings, clock=lambda: NOW
    )
    assert {r.key for r in first.results}.isdisjoint(r.key for r in second.results)


@pytest.mark.parametrize(
    ("chunker", "said"),
    [
        ("sweep_data:loses_text", "the chunker lost the text from character"),
        ("sweep_data:repeats_text", "the chunker repeats the text"),
        ("sweep_data:raises", "failed: RuntimeError: no cut for today"),
    ],
)
def test_a_point_that_fails_is_a_row_with_its_error(tmp_path, chunker, said):
    grid = make_grid({"strategy": ["fixed", chunker], "size": 12, "embedder": "hash"})
    found = sweep(tmp_path, grid)
    assert [result.error is None for result in found.results] == [True, False]
    assert said in found.results[1].error
    row = found.frame().iloc[1]
    assert said in row["error"]
    assert row[["recall", "chunks", "index_bytes", "p95_ms", "split_passages"]].isna().all()
    assert row["n"] == 0
    assert any(said in line for line in found.in_words())
    # It is tried again the next time.
    assert sweep(tmp_path, grid).results[1].cached is False


def test_an_own_chunker_goes_through_everything(tmp_path):
    grid = make_grid({"strategy": "sweep_data:by_line", "size": 1, "embedder": "hash"})
    (result,) = sweep(tmp_path, grid).results
    assert result.error is None
    chunking = load_run(result.run).manifest.chunking
    assert chunking["strategy"] == "sweep_data:by_line"
    assert len(chunking["version"]) == 16
    # The passage over two sentences of a line is held, for the line is one chunk.
    assert result.cases.set_index("case_id").loc["both", "n_split"] == 0


def test_a_chunker_that_is_not_there_is_said_before_anything_is_built(tmp_path):
    grid = make_grid({"strategy": "no_such_module:cut", "size": 1, "embedder": "hash"})
    with pytest.raises(UsageError, match="give module:function that can be imported"):
        sweep(tmp_path, grid)


def test_an_embedder_that_fails_is_the_error_of_its_point(tmp_path):
    grid = small_grid(embedder=["hash", "folder"])
    grid = replace(grid, settings={"embedding_model": str(tmp_path / "no-model")})
    found = sweep(tmp_path, grid)
    errors = {result.point.embedder: result.error for result in found.results}
    assert errors["hash"] is None
    assert "no such folder" in errors["folder"]


def test_a_disk_that_does_not_take_it_is_the_error_of_its_point(tmp_path):
    _, settings = make_home(tmp_path)
    settings.home.mkdir()
    (settings.home / "sweep").write_text("a file where a folder should be")
    found = sweep(tmp_path)
    assert all("sweep" in result.error for result in found.results)


def test_a_point_can_be_asked_from_its_task_alone(tmp_path):
    tasks: list[Task] = []

    def catch(task: Task):
        tasks.append(task)
        return run_point(task)

    corpus, settings = make_home(tmp_path)
    made = make_tasks(small_grid(), corpus=corpus, dataset=make_dataset(), settings=settings)
    results = run_tasks(made, run=catch)
    assert tasks == made
    assert [kept(task).key for task in tasks] == [result.key for result in results]


def test_questions_are_embedded_once_and_their_time_is_kept(tmp_path):
    calls: list[str] = []
    config = ServiceConfig(corpus=tmp_path, index_dir=tmp_path, cache_dir=tmp_path, embedder="hash")
    plain = load_embedder(config)

    def encode(texts, kind):
        calls.extend(texts if kind == "query" else ())
        return plain.encode(texts, kind)

    counting = Embedder(plain.model, plain.dimensions, encode)
    first = embed_questions(counting, ["甲", "乙", "甲"], tmp_path / "home")
    assert calls == ["甲", "甲", "乙"]  # the first one twice: it warms up
    second = embed_questions(counting, ["甲", "乙", "甲"], tmp_path / "home")
    assert len(calls) == 3
    assert (first.vectors == second.vectors).all()
    assert (first.taken_ms == second.taken_ms).all()
    assert (first.taken_ms > 0).all()
    known = second.known(counting)
    assert (known.query("乙") == plain.query("乙")).all()
    assert len(calls) == 3
    assert (known.query("丙") == plain.query("丙")).all()
    assert calls[3:] == ["丙"]


def test_an_index_does_not_depend_on_those_beside_it(tmp_path):
    found = sweep(tmp_path)
    corpus, _ = make_home(tmp_path)
    alone = ServiceConfig(
        corpus=corpus,
        index_dir=tmp_path / "alone" / "of",
        cache_dir=tmp_path / "cache",
        chunking=ChunkingSpec("fixed", 40),
        embedder="hash",
    )
    path = build_index(alone, load_embedder(alone)) / "index.sqlite"
    assert found.result("40").index.n_bytes == path.stat().st_size
