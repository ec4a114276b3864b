"""Where things are and how to reach them: flags > environment > `[tool.ragwb]` > defaults."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragwb.errors import UsageError
from ragwb.files import as_written, read_toml
from ragwb.html import plain

DEFAULT_BASE_URL = "http://127.0.0.1:8080"
EVAL_PATH = "/internal/eval/v1"
KNOWN_KEYS = frozenset({"author", "home", "base_url", "token_file", "token_command", "source"})


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings in force.

    Attributes:
        root: the project's folder, the nearest one upwards that names ragwb in its configuration
            or holds a `.git`; else the current one.
        home: where runs, indexes and caches are kept.
        base_url: the service to ask, without a trailing slash.
        token_file: a file whose content is the bearer token.
        token_command: a command that prints the bearer token.
        source: `[tool.ragwb.source]`, how another service's endpoint is read.
        author: who writes review notes; None for the system's user.
    """

    root: Path
    home: Path
    base_url: str = DEFAULT_BASE_URL
    token_file: Path | None = None
    token_command: str | None = None
    source: Mapping[str, Any] = field(default_factory=dict)
    author: str | None = None

    @property
    def runs_dir(self) -> Path:
        """The folder that holds run folders and nothing else."""
        return self.home / "runs"


def project_root(start: Path | None = None) -> Path:
    """The nearest folder upwards with a `ragwb.toml`, a `[tool.ragwb]` table, or a `.git`."""
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents):
        if _config_file(folder) or (folder / ".git").exists():
            return folder
    return here


def load_settings(
    *,
    base_url: str | None = None,
    token_file: Path | None = None,
    token_command: str | None = None,
    start: Path | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Settings:
    """The settings in force; the arguments are what the user gave as flags.

    Raises:
        UsageError: the configuration file is not TOML, or holds an unknown key or a value of
            another kind than its key asks for.
    """
    root = project_root(start)
    table = _config_table(root)
    configured_home = environ.get("RAGWB_HOME") or table.get("home") or ".ragwb"
    # A token in the environment beats what the file configures, and a flag beats both.
    given = token_file or token_command or environ.get("RAGWB_TOKEN")
    configured = {} if given else table
    configured_file = configured.get("token_file")
    # What is configured is relative to the project, what is typed to the caller's folder.
    if configured_file:
        configured_file = root / Path(configured_file).expanduser()
    return Settings(
        root=root,
        home=(root / Path(configured_home).expanduser()).resolve(),
        base_url=(
            base_url or environ.get("RAGWB_BASE_URL") or table.get("base_url") or DEFAULT_BASE_URL
        ).rstrip("/"),
        token_file=token_file.expanduser().absolute() if token_file else configured_file,
        token_command=token_command or configured.get("token_command"),
        source=table.get("source", {}),
        author=environ.get("RAGWB_AUTHOR") or table.get("author"),
    )


def shared_file(*parts: str) -> Path:
    """A notebook or data file that comes with ragwb: from the wheel, else from the checkout.

    Raises:
        UsageError: neither holds it, which means a broken installation.
    """
    package = Path(__file__).parent
    for base in (package / "_share", package.parent):
        path = base.joinpath(*parts)
        if path.exists():
            return path
    raise UsageError(f"{'/'.join(parts)} is missing from this installation: install ragwb again")


def _config_file(folder: Path) -> Path | None:
    own = folder / "ragwb.toml"
    if own.is_file():
        return own
    shared = folder / "pyproject.toml"
    if shared.is_file() and "[tool.ragwb" in shared.read_text(encoding="utf-8", errors="replace"):
        return shared
    return None


def _config_table(root: Path) -> dict[str, Any]:
    path = _config_file(root)
    if path is None:
        return {}
    parsed = read_toml(path, UsageError)
    tools = parsed.get("tool", {})
    table = tools.get("ragwb") if isinstance(tools, dict) else None
    if table is None:
        table = parsed if path.name == "ragwb.toml" else {}
    if not isinstance(table, dict):
        raise UsageError(f"{path}: tool.ragwb is {as_written(table)}: give a table")
    unknown = sorted(set(table) - KNOWN_KEYS)
    if unknown:
        raise UsageError(
            f"{path}: unknown setting {plain(unknown[0], width=60)!r}; "
            f"known: {', '.join(sorted(KNOWN_KEYS))}"
        )
    for name, value in table.items():
        kind, words = (dict, "a table") if name == "source" else (str, "a string")
        if not isinstance(value, kind):
            raise UsageError(f"{path}: {name} is {as_written(value)}: give {words}")
    return table
