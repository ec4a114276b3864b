"""Names for runs, kept in `$RAGWB_HOME/baselines.json`."""

from __future__ import annotations

import json
import re
from pathlib import Path

from ragwb.errors import RunError, UsageError
from ragwb.files import read_bytes, write_whole
from ragwb.html import plain
from ragwb.runs.files import disk_faults
from ragwb.runs.manifest import RUN_ID_PATTERN
from ragwb.settings import Settings

BASELINES = "baselines.json"
RESERVED = "latest"


def load_baselines(settings: Settings) -> dict[str, str]:
    """Run ids, or paths of runs that stand elsewhere, by name.

    Raises:
        RunError: the file is not a JSON object of texts.
    """
    path = settings.home / BASELINES
    try:
        names = json.loads(read_bytes(path))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise RunError(f"{path}: cannot be read; remove it and name the baselines again") from error
    if not isinstance(names, dict) or not all(isinstance(run, str) for run in names.values()):
        raise RunError(f"{path}: must hold names and run ids; remove it and name them again")
    return names


def save_baseline(settings: Settings, name: str, run: Path) -> None:
    """Give a run folder a name; a name that is in use moves to this run.

    Raises:
        UsageError: the name is not one word of letters, digits, `.`, `_` and `-`, or is `latest`.
    """
    if not re.fullmatch(RUN_ID_PATTERN, name) or name == RESERVED:
        raise UsageError(
            f"baseline name {plain(name, width=60)!r}: give one word of letters, digits, "
            "'.', '_' and '-' that is not 'latest'"
        )
    inside = run.parent.resolve() == settings.runs_dir.resolve()
    names = {**load_baselines(settings), name: run.name if inside else str(run.resolve())}
    settings.home.mkdir(parents=True, exist_ok=True)
    with disk_faults(settings.home, "give the name again"):
        content = json.dumps(names, ensure_ascii=False, indent=2, sort_keys=True) + "\n"
        write_whole(settings.home / BASELINES, content.encode())
