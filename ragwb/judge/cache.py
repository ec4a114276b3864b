"""Verdicts kept on disk by content, model and rubric, so that nobody is asked twice."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from pathlib import Path
from typing import Any

from ragwb.errors import UsageError

CACHE_FILE = "verdicts.sqlite"
_BUSY_S = 60.0
_TABLE = "CREATE TABLE IF NOT EXISTS verdicts (key TEXT PRIMARY KEY, reply TEXT NOT NULL)"


class VerdictCache:
    """The replies of judges that were verdicts, by key; safe to use from several threads.

    A row that cannot be read is no verdict: it is taken out, counted, and the judge asked again.

    Args:
        folder: where the cache file is; made when absent.

    Attributes:
        path: of the cache file.
        n_broken: rows taken out.

    Raises:
        UsageError: the file is no database or cannot be made, or is locked for a minute.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / CACHE_FILE
        self.n_broken = 0
        self._lock = threading.Lock()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._store = sqlite3.connect(self.path, timeout=_BUSY_S, check_same_thread=False)
            # Two commands may share the cache: with a write-ahead log neither blocks the other.
            self._store.execute("PRAGMA journal_mode=WAL")
            with self._store:
                self._store.execute(_TABLE)
        except (OSError, sqlite3.DatabaseError) as error:
            raise self._unusable(error) from error

    def __enter__(self) -> VerdictCache:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._store.close()

    def get(self, key: str) -> str | None:
        """The reply kept under a key, or None where there is none that can be read.

        Raises:
            UsageError: the file cannot be read.
        """
        try:
            with self._lock:
                # As bytes: what is no UTF-8 would be an error of the whole query.
                row = self._store.execute(
                    "SELECT CAST(reply AS BLOB) FROM verdicts WHERE key = ?", (key,)
                ).fetchone()
        except sqlite3.DatabaseError as error:
            raise self._unusable(error) from error
        if row is None:
            return None
        try:
            return bytes(row[0]).decode()
        except (TypeError, UnicodeDecodeError):
            self.discard(key)
            return None

    def discard(self, key: str) -> None:
        """Take out a row that is no verdict, and count it.

        Raises:
            UsageError: the file cannot be written.
        """
        try:
            with self._lock, self._store:
                self.n_broken += 1
                self._store.execute("DELETE FROM verdicts WHERE key = ?", (key,))
        except sqlite3.DatabaseError as error:
            raise self._unusable(error) from error

    def put(self, key: str, reply: str) -> None:
        """Keep a reply.

        Raises:
            UsageError: the file cannot be written.
        """
        try:
            with self._lock, self._store:
                self._store.execute("INSERT OR REPLACE INTO verdicts VALUES (?, ?)", (key, reply))
        except sqlite3.DatabaseError as error:
            raise self._unusable(error) from error

    def _unusable(self, error: Exception) -> UsageError:
        return UsageError(f"{self.path}: cannot be used ({error}); delete it, it is only a cache")


def verdict_key(asked: Any) -> str:
    """The key of everything that a verdict depends on, as JSON values."""
    written = json.dumps(asked, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(written.encode()).hexdigest()
