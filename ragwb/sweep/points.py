"""One point of a sweep: its own index of the documents, its own run, its figures.

A point is a plain function over inputs that can be sent to another process or machine, and what it
gives is data; all that it computes is kept by content (`cache`), so that it may be asked again.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from ragwb.errors import RagwbError
from ragwb.files import write_whole
from ragwb.golden.dataset import Dataset
from ragwb.service.build import build_index
from ragwb.service.config import ServiceConfig
from ragwb.service.embedding import Embedder, load_embedder
from ragwb.service.index import INDEX_FILE, Index, open_index
from ragwb.service.pipeline import Pipeline, load_rewrite
from ragwb.service.visibility import Caller
from ragwb.sweep.cache import only_one
from ragwb.sweep.cutting import chunker_version, cut_corpus
from ragwb.sweep.grid import Point
from ragwb.sweep.measuring import measure
from ragwb.sweep.questions import embed_questions
from ragwb.sweep.results import IndexFacts, PointResult, load_result, save_result
from ragwb.sweep.searching import Asked, ask

BUILD = "build.json"
_TAKEN = ("build_ms", "n_vectors", "n_computed")


@dataclass(frozen=True, slots=True)
class Task:
    """All that a point needs, wherever it runs.

    Attributes:
        config: its settings; corpus, index and cache are folders that whoever runs it can reach.
        dataset: the golden set.
        callers: who asks, by label of `access`; None for cases without one.
        top_k: results to ask for.
        home: the sweep's own folder, where results and runs are kept.
        key: hash of all that the result depends on.
        now: the time that the service goes by.
    """

    point: Point
    config: ServiceConfig
    dataset: Dataset
    callers: Mapping[str | None, Caller]
    top_k: int
    home: Path
    key: str
    now: datetime

    @property
    def folder(self) -> Path:
        """Where the result is kept."""
        return self.home / "points" / self.key

    @property
    def runs_dir(self) -> Path:
        """The folder of the sweep's runs."""
        return self.home / "runs"


def run_point(task: Task) -> PointResult:
    """What a point gives: from the cache where it is there, else computed and kept.

    It raises nothing but what ends a process: a point that fails is a result with its error, which
    is not kept, so that it is tried again the next time.
    """
    try:
        # Stdout belongs to the results, whatever a function of the user's own prints.
        with redirect_stdout(sys.stderr), only_one(task.folder.with_suffix(".lock")):
            return kept(task) or _compute(task)
    except RagwbError as error:
        fault = str(error)
    except OSError as error:
        fault = f"{error.filename or task.home}: {error.strerror or error}"
    except Exception as error:  # an own chunker, rewrite or model may fail in any way
        fault = f"{type(error).__name__}: {error}"
    return PointResult(task.point, task.key, error=fault, top_k=task.top_k)


def kept(task: Task) -> PointResult | None:
    """The result of a point that is in the cache; None when it is not."""
    return load_result(task.folder, task.runs_dir)


def _compute(task: Task) -> PointResult:
    embedder = _embedder(task.config)
    _build(task, embedder)
    index = open_index(task.config.index_dir)
    try:
        asked = _ask(task, index, embedder)
        result = PointResult(
            point=task.point,
            key=task.key,
            top_k=task.top_k,
            run=asked.run.path,
            index=_facts(task.config.index_dir, index),
            **measure(asked.run, asked.resolved, asked.chunks, index, task.top_k),
        )
    finally:
        index.close()
    save_result(result, task.folder)
    return result


def _mean_tokens(index: Index) -> float | None:
    return float(index.tokens_of.mean()) if len(index.tokens_of) else None


def _ask(task: Task, index: Index, embedder: Embedder) -> Asked:
    rewrite = load_rewrite(task.config.rewrite)
    texts = [case.question for case in task.dataset.cases if case.is_asked]
    questions = embed_questions(embedder, texts, task.home)
    pipeline = Pipeline(
        task.config, index, questions.known(embedder), lambda: task.now, rewrite=rewrite
    )
    return ask(
        pipeline,
        task.dataset,
        task.callers,
        questions,
        top_k=task.top_k,
        runs_dir=task.runs_dir,
        key=task.key,
        chunking=_own_chunking(task.point),
    )


def _own_chunking(point: Point) -> dict[str, Any] | None:
    """How an own chunker cut, for the run's manifest: the index itself knows only ragwb's."""
    if not point.is_own_chunker:
        return None
    version = chunker_version(point.strategy)
    names = {"strategy": point.strategy, "version": version}
    return {**names, "size": point.size, "overlap": point.overlap}


def _build(task: Task, embedder: Embedder) -> None:
    """Bring the index of a point up to date; what it took is kept beside it."""
    point, folder = task.point, task.config.index_dir
    edit = partial(cut_corpus, strategy=point.strategy, size=point.size, overlap=point.overlap)
    told: list[tuple[int, int]] = []
    start = time.perf_counter()
    own = {"edit": edit} if point.is_own_chunker else {}
    with only_one(folder.parent / "build.lock"):
        build_index(
            task.config,
            embedder,
            lambda *state: told.append(state),
            with_sentences=task.config.rerank,
            **own,
        )
        if told:
            held, needed = told[0]  # before anything is computed
            spent = (time.perf_counter() - start) * 1000
            taken = dict(zip(_TAKEN, (spent, needed, needed - held), strict=True))
            write_whole(folder / BUILD, json.dumps(taken).encode())


def _facts(folder: Path, index: Index) -> IndexFacts:
    return IndexFacts(
        n_documents=len(index.documents),
        n_chunks=len(index.chunk_ids),
        n_bytes=(folder / INDEX_FILE).stat().st_size,
        chunk_tokens=_mean_tokens(index),
        **_taken(folder / BUILD),
    )


def _taken(path: Path) -> dict[str, Any]:
    """What a build took, as it was noted; what is not known is left out."""
    try:
        noted = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}  # a build that was killed after its index stood
    known = noted if isinstance(noted, dict) else {}
    return {name: known[name] for name in _TAKEN if isinstance(known.get(name), int | float)}


_LOADED: dict[tuple[object, ...], Embedder] = {}
_LOADING = threading.Lock()


def _embedder(config: ServiceConfig) -> Embedder:
    """The embedder of a configuration, loaded once a process: a model takes seconds."""
    key = (
        config.embedder,
        config.embedding_model,
        config.embedding_url,
        config.embedding_key_env,
    )
    with _LOADING:
        if key not in _LOADED:
            _LOADED[key] = load_embedder(config)
        return _LOADED[key]
