"""Passage vectors kept on disk by model and text, so that a second build computes none."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from ragwb.errors import UsageError
from ragwb.service.embedding import BATCH, Embedder, Vectors

CACHE_FILE = "embeddings.sqlite"
_BUSY_S = 60.0
_SQL_VARIABLES = 500


def cached_passages(
    embedder: Embedder,
    texts: Sequence[str],
    folder: Path,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Vectors:
    """Vectors of passages, computed only where the cache has none, and kept batch by batch.

    Args:
        embedder: the model; its name is part of the key.
        texts: passages, in any order, repeats allowed.
        folder: where the cache file is; made when absent.
        progress: told the number of distinct texts done and their total.

    Returns:
        float32, one unit row a text, in the order of `texts`.

    Raises:
        UsageError: the cache file is no database, or is locked for a minute.
    """
    try:
        return _cached(embedder, texts, folder / CACHE_FILE, progress)
    except sqlite3.DatabaseError as error:
        raise UsageError(
            f"{folder / CACHE_FILE}: cannot be used ({error}); delete it, it is only a cache"
        ) from error


def _cached(
    embedder: Embedder, texts: Sequence[str], path: Path, progress: Callable[[int, int], None]
) -> Vectors:
    path.parent.mkdir(parents=True, exist_ok=True)
    keys = [_key(embedder.model, text) for text in texts]
    distinct = dict(zip(keys, texts, strict=True))
    with closing(_open(path)) as store:
        found = _read(store, list(distinct), embedder.dimensions)
        missing = [key for key in distinct if key not in found]
        progress(len(distinct) - len(missing), len(distinct))
        for batch in _batches(missing, BATCH):
            vectors = embedder.encode([distinct[key] for key in batch], "passage")
            _write(store, batch, vectors)
            found.update(zip(batch, vectors, strict=True))
            progress(len(found), len(distinct))
    if not keys:
        return np.zeros((0, embedder.dimensions), dtype=np.float32)
    return np.stack([found[key] for key in keys])


def _key(model: str, text: str) -> str:
    return hashlib.sha256(f"{model}\0passage\0{text}".encode()).hexdigest()


def _open(path: Path) -> sqlite3.Connection:
    store = sqlite3.connect(path, timeout=_BUSY_S)
    # Two builds may share the cache: with a write-ahead log neither blocks the other's reads.
    store.execute("PRAGMA journal_mode=WAL")
    store.execute("CREATE TABLE IF NOT EXISTS vectors (key TEXT PRIMARY KEY, vector BLOB NOT NULL)")
    return store


def _read(store: sqlite3.Connection, keys: list[str], dimensions: int) -> dict[str, Vectors]:
    found: dict[str, Vectors] = {}
    for batch in _batches(keys, _SQL_VARIABLES):
        marks = ",".join("?" * len(batch))
        rows = store.execute(f"SELECT key, vector FROM vectors WHERE key IN ({marks})", batch)
        found.update((key, np.frombuffer(blob, dtype="<f4")) for key, blob in rows)
    return {key: vector for key, vector in found.items() if len(vector) == dimensions}


def _write(store: sqlite3.Connection, keys: list[str], vectors: Vectors) -> None:
    rows = [(key, row.astype("<f4").tobytes()) for key, row in zip(keys, vectors, strict=True)]
    with store:
        store.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)


def _batches(keys: list[str], size: int) -> Iterator[list[str]]:
    for at in range(0, len(keys), size):
        yield keys[at : at + size]
