"""Saved runs: a folder a run, opened by id, prefix, path, `latest` or a baseline's name."""

from __future__ import annotations

import gc
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pydantic_core
from pydantic import TypeAdapter, ValidationError

from ragwb.errors import RunError
from ragwb.golden.passages import ResolvedCase
from ragwb.html import escape, plain, table
from ragwb.measure.coverage import load_coverage
from ragwb.measure.facts import load_facts
from ragwb.measure.hits import Hits, load_hits
from ragwb.measure.listed import some
from ragwb.records import Explanation
from ragwb.runs.baselines import load_baselines
from ragwb.runs.far import FarPath, far_folder, is_far
from ragwb.runs.files import open_part
from ragwb.runs.journal import JOURNAL
from ragwb.runs.listing import first_fault, list_runs, load_manifest
from ragwb.runs.manifest import RUN_ID_PATTERN, RunManifest
from ragwb.runs.tables import ADDED, CANDIDATES, CASES, CHUNKS, FILTERED, SCHEMAS
from ragwb.runs.writer import EXPLAIN, GOLDEN, MANIFEST, SERVICE, folder_hash
from ragwb.settings import Settings, load_settings

LATEST = "latest"
_SHOWN = ("run_id", "dataset_version", "top_k", "repeats", "service", "index_version")


@dataclass(frozen=True, slots=True)
class Explained:
    """What the service said of one chunk for one question of a run."""

    case_id: str
    repeat: int
    question: str
    explanation: Explanation


_EXPLAINED = TypeAdapter(list[Explained])
_ONE_EXPLAINED = TypeAdapter(Explained)


@dataclass(frozen=True, repr=False)
class Run:
    """A sealed run: its folder and its manifest; every table is read when it is asked for.

    The small tables that scoring follows from are kept once they are read, for a sealed run never
    changes: to score it again at other Ks is arithmetic.
    """

    path: Path
    manifest: RunManifest

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.manifest.run_id

    def cases(self) -> pd.DataFrame:
        """Answers: a row a (case_id, repeat), in the order of the golden set."""
        return self._frame(CASES)

    def candidates(self, stage: str | None = None, case_id: str | None = None) -> pd.DataFrame:
        """What stood where: a row a (case_id, repeat, stage, position), position from 1.

        Args:
            stage: a channel name, fused, reranked, results or context; None for all.
            case_id: one case; None for all.
        """
        wanted = [("stage", "==", stage), ("case_id", "==", case_id)]
        return self._frame(CANDIDATES, [term for term in wanted if term[2] is not None])

    def filtered(self) -> pd.DataFrame:
        """What the filters kept out: a row a (case_id, repeat, position) of the service's list."""
        return self._frame(FILTERED)

    def chunks(self) -> pd.DataFrame:
        """What is known of every chunk that the run names: a row a chunk_id."""
        return self._frame(CHUNKS)

    def golden(self) -> list[ResolvedCase]:
        """The golden cases as they were scored, retired ones included, in their order."""
        return load_golden(self.path)

    def hits(self) -> Hits:
        """The small tables from which every retrieval figure follows."""
        return self._hits

    def facts(self) -> pa.Table:
        """What scoring needs of each case besides its hits (see `measure.facts.case_facts`)."""
        return self._facts

    def coverage(self) -> pa.Table:
        """How far results cover passages; no rows when no case names any (`measure.coverage`)."""
        return self._coverage

    @cached_property
    def _hits(self) -> Hits:
        return load_hits(self.path)

    @cached_property
    def _facts(self) -> pa.Table:
        return load_facts(self.path)

    @cached_property
    def _coverage(self) -> pa.Table:
        return load_coverage(self.path)

    def service(self) -> dict[str, Any]:
        """The service's manifest in its own words; empty when it has none."""
        path = self.path / SERVICE
        try:
            with open_part(path) as file:
                said: dict[str, Any] = json.loads(file.read())
        except (OSError, ValueError, RecursionError) as error:
            raise RunError(f"{path}: cannot be read: {_first_line(error)}") from error
        return said

    def explanations(self) -> list[Explained]:
        """What `/explain` said, as far as it was asked; empty when it was not observed."""
        path = self.path / EXPLAIN
        if not path.exists():
            return []
        lines = list(_numbered_lines(path))
        with collector_paused():
            try:
                # One call for all of them is three times as fast as one a line.
                found = _EXPLAINED.validate_json(b"[" + b",".join(x for _, x in lines) + b"]")
            except ValidationError:
                found = []
        # Not a line each: the first that is none is found, and named.
        return found if len(found) == len(lines) else [_explained(path, *x) for x in lines]

    def __repr__(self) -> str:
        manifest = self.manifest
        return (
            f"Run {manifest.run_id}: {plain(manifest.dataset_version)} at "
            f"{plain(manifest.base_url)}, top K {manifest.top_k}, repeats {manifest.repeats}"
        )

    def _repr_html_(self) -> str:
        said = self.manifest.model_dump()
        rows = [{"field": name, "value": said[name]} for name in _SHOWN]
        return table(rows, ["field", "value"], caption=f"Run {escape(self.run_id)}")

    def _frame(
        self, name: str, terms: list[tuple[str, str, str | None]] | None = None
    ) -> pd.DataFrame:
        path = self.path / name
        try:
            held = frozenset(pq.read_schema(path).names)
            missing = [column for column in SCHEMAS[name].names if column not in held]
            for column in missing:
                if column not in ADDED.get(name, ()):
                    raise RunError(f"{path}: no column {column!r}; it is not a table of a run")
            frame: pd.DataFrame = pq.read_table(path, filters=terms or None).to_pandas()
            frame = frame.assign(**dict.fromkeys(missing)) if missing else frame
        except (OSError, pa.ArrowInvalid) as error:
            raise RunError(f"{path}: cannot be read: {_first_line(error)}") from error
        return frame


def load_run(
    ref: str | Path, settings: Settings | None = None, *, verify: bool | None = None
) -> Run:
    """A sealed run by id, unique prefix, path, URL, `latest` (the newest) or baseline name.

    Args:
        ref: a name given by `runs baseline` wins over `latest`, an id and a prefix.
        settings: where the runs are; default the settings in force.
        verify: compare the content hash, which reads every file of the run once; None does where
            the run is on a disk, and not at a URL, of which only what is asked for is read.

    Raises:
        MissingExtraError: a URL of a filesystem whose package is not installed.
        RunError: no such run, an ambiguous prefix, a run that is not finished, a missing file, or a
            content that is not what was sealed.
    """
    path = find_run(ref, settings)
    manifest = load_manifest(path)
    if not manifest.sealed:
        raise RunError(
            f"run {path.name} is not finished: the same {_command(path)} command with "
            f"--resume {path.name} asks for the rest"
        )
    verified = not isinstance(path, FarPath) if verify is None else verify
    if verified and folder_hash(path, manifest) != manifest.content_hash:
        raise RunError(
            f"{path}: wrong content hash, it is not what was sealed: copy it again or run again"
        )
    return Run(path, manifest)


def _command(folder: Path) -> str:
    """The command that an unfinished run was begun with; both while it has answered nothing."""
    path = folder / JOURNAL
    for _, line in _numbered_lines(path) if path.exists() else ():
        try:
            said = pydantic_core.from_json(line)
        except ValueError:
            continue
        # A service replies with an answer or without one; a model over saved contexts only answers.
        reply = said.get("reply", said) if isinstance(said, dict) else {}
        if isinstance(reply, dict) and "answer" in reply:
            return "ragwb answer-eval"
        if isinstance(reply, dict) and reply is not said and reply:
            return "ragwb retrieval-eval"
    return "ragwb retrieval-eval or answer-eval"


def find_run(ref: str | Path, settings: Settings | None = None) -> Path:
    """The folder of a run, finished or not (see `load_run`).

    A name is only ever looked up among the run folders; whatever has a separator in it is a path as
    typed.

    Raises:
        RunError: no such run, or more than one.
    """
    settings = settings or load_settings()
    text = str(ref)
    if is_far(text) and not isinstance(ref, Path):
        return _folder_at(cast(Path, far_folder(text)))
    if isinstance(ref, Path) or not re.fullmatch(RUN_ID_PATTERN, text):
        return _folder_at(Path(text))
    baselines = load_baselines(settings)
    if text in baselines:
        return _named(settings, baselines[text], f"baseline {text}")
    if text == LATEST:
        return _latest(settings)
    if (settings.runs_dir / text / MANIFEST).is_file():
        return settings.runs_dir / text
    return _by_prefix(settings, text)


def load_golden(folder: Path) -> list[ResolvedCase]:
    """The resolved cases of a run folder, finished or not.

    Raises:
        RunError: the file is absent, or a line is not a resolved case.
    """
    path = folder / GOLDEN
    cases = []
    with collector_paused():
        for number, line in _numbered_lines(path):
            try:
                cases.append(ResolvedCase.model_validate_json(line))
            except ValidationError as error:
                raise RunError(f"{path}:{number}: {first_fault(error)}") from error
    return cases


@contextmanager
def collector_paused() -> Iterator[None]:
    """No garbage collection while many objects are made that all stay: 2.6 times as fast."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with open_part(path) as file:
            yield from enumerate(file, 1)
    except OSError as error:
        raise RunError(f"{path}: {error.strerror}; this run is not whole: copy it again") from error


def _explained(path: Path, number: int, line: bytes) -> Explained:
    try:
        return _ONE_EXPLAINED.validate_json(line)
    except ValidationError as error:
        raise RunError(f"{path}:{number}: not an explanation; remove the line") from error


def _folder_at(path: Path) -> Path:
    if not (path / MANIFEST).is_file():
        raise RunError(f"no run at {plain(path)}: ragwb runs list shows the runs that are there")
    return path.resolve()


def _named(settings: Settings, target: str, what: str) -> Path:
    path = settings.runs_dir / target
    if re.fullmatch(RUN_ID_PATTERN, target) is None:
        path = cast(Path, far_folder(target)) if is_far(target) else Path(target)
    if not (path / MANIFEST).is_file():
        raise RunError(f"{what} names the run {plain(target)}, which is not there any more")
    return path


def _latest(settings: Settings) -> Path:
    for entry in list_runs(settings):
        if entry.status == "sealed":
            return entry.path
    raise RunError(
        f"no finished run in {settings.runs_dir}: make one with ragwb retrieval-eval or ragwb demo"
    )


def _by_prefix(settings: Settings, prefix: str) -> Path:
    found = [entry for entry in list_runs(settings) if entry.run_id.startswith(prefix)]
    if len(found) == 1:
        return found[0].path
    if not found:
        raise RunError(f"no run {prefix!r} in {settings.runs_dir}: ragwb runs list shows them")
    named = some([entry.run_id for entry in found], 3)
    raise RunError(f"{prefix!r} is the beginning of {len(found)} runs: {named}; type more of it")


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
