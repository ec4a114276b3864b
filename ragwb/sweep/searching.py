"""A golden set asked of an index by function calls, and written as an ordinary sealed run."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ragwb.golden.dataset import Dataset
from ragwb.golden.passages import ResolvedCase, resolve_dataset, watch_forbidden
from ragwb.records import Chunk, ServiceManifest
from ragwb.runs.listing import load_manifest
from ragwb.runs.manifest import RunManifest, package_versions, service_fields
from ragwb.runs.results import ChunkText, Result, result_from_reply
from ragwb.runs.store import Run
from ragwb.runs.writer import asked_cases, new_run_id, write_run
from ragwb.service.index import Index
from ragwb.service.pipeline import Pipeline, retrieve
from ragwb.service.said import identity_of, said_of
from ragwb.service.visibility import Caller, may_read
from ragwb.sources.service import Reply
from ragwb.sweep.questions import Questions

Callers = Mapping[str | None, Caller]


@dataclass(frozen=True, slots=True)
class Asked:
    """A run, and what stands in no table of it.

    Attributes:
        run: sealed.
        resolved: the golden cases with their groups.
        chunks: every chunk of the index that a caller may read.
    """

    run: Run
    resolved: list[ResolvedCase]
    chunks: list[Chunk]


def ask(
    pipeline: Pipeline,
    dataset: Dataset,
    callers: Callers,
    questions: Questions,
    *,
    top_k: int,
    runs_dir: Path,
    key: str,
    chunking: Mapping[str, Any] | None = None,
) -> Asked:
    """Ask every case of a golden set that is not retired, and seal what came back as a run.

    Args:
        pipeline: the service.
        dataset: the golden set.
        callers: who asks, by label of `access`; None for cases without one.
        questions: vectors of the questions, and what they took.
        top_k: results to ask for.
        runs_dir: where the run goes; an unfinished one of the same key is taken away.
        key: what the run depends on; its name is made of the time and this.
        chunking: how documents were cut, where it is not what the index says.

    Raises:
        GoldenError: not one id or document of the set is known: another id space.
    """
    readable = _readable(pipeline.index, callers)
    resolved = resolve_dataset(dataset, readable)
    results = [
        _answered(pipeline, case, callers, questions, top_k) for case in asked_cases(resolved)
    ]
    seen = _seen(pipeline.index, results, resolved)
    watched = watch_forbidden(resolved, seen)
    manifest = _manifest(pipeline, dataset, callers, top_k, key, chunking)
    _clear_earlier(runs_dir, manifest.run_id)
    texts = [ChunkText(**chunk.model_dump()) for chunk in seen]
    folder = write_run(runs_dir, manifest, watched, results, chunks=texts)
    return Asked(Run(folder, load_manifest(folder)), watched, readable)


def _readable(index: Index, callers: Callers) -> list[Chunk]:
    open_to = [
        any(may_read(document, caller) for caller in callers.values())
        for document in index.documents
    ]
    rows = [row for row, number in enumerate(index.document_of.tolist()) if open_to[number]]
    return index.chunks(rows)


def _answered(
    pipeline: Pipeline, case: ResolvedCase, callers: Callers, questions: Questions, top_k: int
) -> Result:
    question = case.case.question
    start = time.perf_counter()
    found = retrieve(pipeline, callers[case.case.access], question, top_k, explain=True)
    spent = (time.perf_counter() - start) * 1000
    # The question's vector was looked up; what it took when it was computed belongs to its latency.
    timings = dict(found.timings_ms or {})
    row = questions.row_of.get(found.rewritten_query or question)
    if "embedding" in timings and row is not None:
        taken = float(questions.taken_ms[row])
        spent += taken - timings["embedding"]
        timings["total"] = round(timings["total"] + taken - timings["embedding"], 3)
        timings["embedding"] = round(taken, 3)
    result = result_from_reply(case.case.id, 1, question, Reply(found, max(spent, 0.0), 0.0, 1))
    return replace(result, timings_ms=timings)


def _seen(index: Index, results: Sequence[Result], resolved: Sequence[ResolvedCase]) -> list[Chunk]:
    """Every chunk that came back in any stage or is evidence, ordered by id."""
    names = {
        name for result in results for stage in result.stages.values() for name in stage.chunk_ids
    }
    names |= {name for case in resolved for group in case.groups for name in group.chunk_ids}
    return index.chunks([index.row_of[name] for name in sorted(names) if name in index.row_of])


def _clear_earlier(runs_dir: Path, run_id: str) -> None:
    """Take away what killed sweeps left under the same key, and runs that no record names."""
    for folder in runs_dir.glob(f"*-{run_id.rpartition('-')[2]}"):
        shutil.rmtree(folder, ignore_errors=True)


def _manifest(
    pipeline: Pipeline,
    dataset: Dataset,
    callers: Callers,
    top_k: int,
    key: str,
    chunking: Mapping[str, Any] | None,
) -> RunManifest:
    labelled = {
        label: ServiceManifest(identity=identity_of(caller))
        for label, caller in callers.items()
        if label is not None
    }
    said = service_fields(said_of(pipeline, callers[None]), labelled, answers=False)
    now = pipeline.clock()
    return RunManifest(
        run_id=new_run_id({"sweep": key}, now),
        created_at=now.isoformat(),
        base_url=None,
        dataset_version=dataset.version,
        dataset_hash=dataset.content_hash,
        top_k=top_k,
        repeats=1,
        concurrency=1,
        packages=package_versions(),
        **{**said, **({} if chunking is None else {"chunking": dict(chunking)})},
    )
