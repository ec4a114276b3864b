"""How a run folder comes to be: started under a lock, filled by the journal, sealed by a hash.

`start_run` makes the folder with its manifest and golden cases, `seal_run` writes the tables, what
scoring follows from and the content hash, and `write_run` does both for results that are already
there (imports, synthetic runs).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from ragwb.errors import RunError
from ragwb.files import write_whole
from ragwb.golden.passages import ResolvedCase
from ragwb.measure.coverage import FILE as COVERAGE_FILE
from ragwb.measure.coverage import find_coverage, save_coverage
from ragwb.measure.facts import FILE as FACTS_FILE
from ragwb.measure.facts import case_facts, save_facts
from ragwb.measure.hits import FILES as HIT_FILES
from ragwb.measure.hits import save_hits
from ragwb.measure.retrieval import find_hits
from ragwb.runs.files import disk_faults, file_hash
from ragwb.runs.journal import JOURNAL, LOCK, Pair, locked
from ragwb.runs.manifest import RunManifest, content_hash
from ragwb.runs.results import ChunkText, Result
from ragwb.runs.tables import (
    CANDIDATES,
    CASES,
    CHUNKS,
    FILTERED,
    Written,
    write_chunks,
    write_tables,
)

MANIFEST = "manifest.json"
GOLDEN = "golden.jsonl"
SERVICE = "service.json"
EXPLAIN = "explain.jsonl"
EXPERIMENT = "experiment.json"
"""In the folder of a run that an experiment made; reports on a service over time leave it out."""
# What scoring reads; runs of earlier versions lack some of them.
DERIVED = (*HIT_FILES.values(), FACTS_FILE, COVERAGE_FILE)
# What the content hash covers; the sidecars grow after sealing and stand outside.
CONTENT = (GOLDEN, SERVICE, CASES, CANDIDATES, FILTERED, CHUNKS, *DERIVED)


def utc_now() -> datetime:
    """The present in UTC."""
    return datetime.now(UTC)


def new_run_id(asked: object, now: datetime) -> str:
    """A run's id: UTC time to the millisecond and a hash of what is asked.

    Args:
        asked: what is asked of whom, as JSON values.
        now: when the run starts.
    """
    text = json.dumps(asked, sort_keys=True, ensure_ascii=False)
    stamp = now.astimezone(UTC).strftime("%Y%m%dT%H%M%S") + f".{now.microsecond // 1000:03d}Z"
    return f"{stamp}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def asked_cases(resolved: Sequence[ResolvedCase]) -> list[ResolvedCase]:
    """The cases that are asked: all but the retired ones, in order."""
    return [case for case in resolved if case.case.is_asked]


@contextmanager
def start_run(
    runs_dir: Path,
    manifest: RunManifest,
    resolved: Sequence[ResolvedCase],
    service: Mapping[str, Any] | None = None,
    *,
    made_by: str | None = None,
) -> Iterator[Path]:
    """Make the folder of a new run and hold its lock while the block runs.

    The manifest is written last, so that a folder with one is a run that can go on.

    Args:
        runs_dir: the folder of runs.
        manifest: without a content hash; `run_id` names the folder.
        resolved: the golden cases with their groups resolved.
        service: the service's manifest in its own words, with what no field of ours holds.
        made_by: the experiment that the run is part of, such as "ragwb sweep k".

    Raises:
        RunError: the folder is there already, or the disk does not take it.
    """
    folder = runs_dir / manifest.run_id
    with disk_faults(folder, "start again"):
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            raise RunError(f"{folder}: a run of this name is there already; start again") from None
    with locked(folder):
        try:
            with disk_faults(folder, "start again"):
                write_whole(folder / GOLDEN, golden_lines(resolved))
                write_whole(folder / SERVICE, _json(service or {}))
                if made_by is not None:
                    write_whole(folder / EXPERIMENT, _json({"made_by": made_by}))
                write_whole(folder / MANIFEST, manifest.to_json())
        except RunError:
            remove_empty_run(folder)
            raise
        yield folder


def remove_empty_run(folder: Path) -> None:
    """Take away the folder of a run in which nothing was answered."""
    for name in (JOURNAL, GOLDEN, SERVICE, EXPERIMENT, MANIFEST, LOCK):
        (folder / name).unlink(missing_ok=True)
    folder.rmdir()


def _json(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode()


def golden_lines(resolved: Iterable[ResolvedCase]) -> bytes:
    """The resolved cases as they stand in `golden.jsonl`, one a line, defaults left out."""
    return b"".join(
        case.model_dump_json(exclude_defaults=True).encode() + b"\n" for case in resolved
    )


def seal_run(
    folder: Path,
    manifest: RunManifest,
    resolved: Sequence[ResolvedCase],
    results: Iterable[Result],
    chunks: Callable[[], Iterable[ChunkText]],
) -> RunManifest:
    """Write what a finished run consists of, and the hash that closes it.

    Args:
        folder: a run folder that this process has locked.
        manifest: its manifest, without a content hash.
        resolved: its golden cases, as in `golden.jsonl`.
        results: in the order of the golden cases, then of repeats.
        chunks: called when the results are written; what is known of every chunk.

    Returns:
        The manifest with its hash.

    Raises:
        OSError: the disk does not take it; the run is as unfinished as before.
    """
    return close_run(folder, manifest, resolved, write_tables(folder, results), chunks())


def close_run(
    folder: Path,
    manifest: RunManifest,
    resolved: Sequence[ResolvedCase],
    written: Written,
    chunks: Iterable[ChunkText],
) -> RunManifest:
    """Write the rest of a run whose tables are written, and its hash (see `seal_run`)."""
    write_chunks(folder, chunks)
    write_derived(folder, resolved, written.answered)
    open_manifest = manifest.model_copy(update={"effective_at": written.effective_at})
    sealed = open_manifest.model_copy(update={"content_hash": folder_hash(folder, open_manifest)})
    write_whole(folder / MANIFEST, sealed.to_json())
    # From here on the run is sealed; a journal that a kill leaves behind is not read any more.
    for name in (JOURNAL, LOCK):
        (folder / name).unlink(missing_ok=True)
    return sealed


def write_derived(folder: Path, resolved: Sequence[ResolvedCase], answered: Sequence[Pair]) -> None:
    """Write the small tables that scoring reads instead of golden cases, answers and candidates.

    Args:
        folder: a run folder with its tables and chunks.
        resolved: its golden cases.
        answered: (case id, repeat) of the results that are ok, in order.
    """
    candidates = folder / CANDIDATES
    save_hits(find_hits(candidates, asked_cases(resolved), answered), folder)
    calls = pq.read_table(folder / CASES, columns=["case_id", "repeat", "status", "error"])
    save_facts(case_facts(resolved, calls.to_pandas()), folder)
    passages = {case.case.id: case.spans for case in resolved if case.spans}
    # The texts, most of the file, are of no use here.
    columns = ["chunk_id", "document_id", "document_version", "start", "end"]
    chunks = pq.read_table(folder / CHUNKS, columns=columns)
    save_coverage(find_coverage(candidates, passages, chunks, answered), folder)


def folder_hash(folder: Path, manifest: RunManifest) -> str:
    """The content hash of a run folder, of its files as they are.

    Raises:
        RunError: a file is missing or cannot be read.
    """
    hashes = {}
    for name in CONTENT:
        try:
            hashes[name] = file_hash(folder / name)
        except OSError as error:
            found = "this run is not whole: copy it again"
            if name in DERIVED and isinstance(error, FileNotFoundError):
                found = "written by an older ragwb, or not copied whole: run again, or copy again"
            raise RunError(f"{folder / name}: {error.strerror}; {found}") from error
    return content_hash(manifest, hashes)


def write_run(
    runs_dir: Path,
    manifest: RunManifest,
    resolved: Sequence[ResolvedCase],
    results: Iterable[Result],
    *,
    chunks: Iterable[ChunkText] = (),
) -> Path:
    """Write a whole sealed run from results that are already there, with bounded memory.

    Args:
        runs_dir: the folder of runs; `manifest.run_id` is made below it.
        manifest: without a content hash.
        resolved: the golden cases with their groups resolved.
        results: in the order of `resolved`, then of repeats.
        chunks: what is known of the chunks.

    Returns:
        The run's folder.
    """
    with start_run(runs_dir, manifest, resolved) as folder:
        with disk_faults(folder, "start again"):
            seal_run(folder, manifest, resolved, results, lambda: chunks)
        return folder
