"""Which runs there are: a folder a run, read by its manifest alone."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from ragwb.errors import RunError
from ragwb.files import read_text
from ragwb.html import plain
from ragwb.runs.files import open_part
from ragwb.runs.manifest import RunManifest
from ragwb.runs.writer import EXPERIMENT, MANIFEST
from ragwb.settings import Settings, load_settings


@dataclass(frozen=True, slots=True)
class RunEntry:
    """A run in a list: sealed, unfinished (it can be resumed) or broken (it cannot be read)."""

    run_id: str
    status: Literal["sealed", "unfinished", "broken"]
    manifest: RunManifest | None
    path: Path

    @property
    def made_by(self) -> str | None:
        """The experiment that made it, such as `ragwb sweep k`; None for a run of its own."""
        path = self.path / EXPERIMENT
        if not path.exists():
            return None
        try:
            said = json.loads(read_text(path, RunError))
        except (RunError, ValueError, RecursionError):
            said = None
        named = said.get("made_by") if isinstance(said, dict) else None
        return str(named or "an experiment")


def list_runs(settings: Settings | None = None) -> list[RunEntry]:
    """All run folders, the newest first, broken ones last."""
    return runs_in((settings or load_settings()).runs_dir)


def runs_in(folder: Path) -> list[RunEntry]:
    """The run folders in a folder, the newest first, broken ones last; none where it is far."""
    if not folder.is_dir():
        return []
    entries = [_entry(path) for path in sorted(folder.iterdir()) if path.is_dir()]
    return sorted(entries, key=_age, reverse=True)


def load_manifest(folder: Path) -> RunManifest:
    """The manifest of a run folder.

    Raises:
        RunError: it is absent or not a manifest.
    """
    path = folder / MANIFEST
    try:
        with open_part(path) as file:
            return RunManifest.model_validate_json(file.read())
    except OSError as error:
        raise RunError(f"{path}: {error.strerror}; this is no run folder") from error
    except ValidationError as error:
        said = first_fault(error)
        if any(fault["type"] == "extra_forbidden" for fault in error.errors()):
            said += "; written by a newer ragwb: update ragwb"
        raise RunError(f"{path}: {said}") from error


def first_fault(error: ValidationError) -> str:
    """The first thing that is wrong with a file of a run, and where in it; one line."""
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return plain(f"{where}: {first['msg']}" if where else first["msg"], width=160)


def _entry(path: Path) -> RunEntry:
    try:
        manifest = load_manifest(path)
    except RunError:
        return RunEntry(path.name, "broken", None, path)
    return RunEntry(path.name, "sealed" if manifest.sealed else "unfinished", manifest, path)


def _age(entry: RunEntry) -> tuple[str, str]:
    return (entry.manifest.created_at if entry.manifest else "", entry.run_id)
