"""A Postgres by its URL: what may be said of it, and one connection that comes back when lost.

A password never leaves this module: no message of the driver that could hold a part of it is
passed on, because a URL with an unescaped `@` or `/` is cut in the wrong place.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ragwb.errors import MissingExtraError, UnreachableError, UsageError

Connection = Any
"""A `psycopg.Connection`; the package is part of an extra."""

FORM = "postgresql://user@host:5432/database"
_SCHEMES = ("postgresql://", "postgres://")
_CONNECT_TIMEOUT_S = 10


class DatabaseLostError(UnreachableError):
    """The database of an index does not answer, or holds the index no more."""


class Database:
    """A connection for many threads, one at a time; opened again once when it was lost.

    Args:
        url: of the database, maybe with a password.
        prepare: what every new connection goes through before it is used.

    Raises:
        UsageError: the URL is wrong, or nobody answers there.
    """

    def __init__(self, url: str, prepare: Callable[[Connection], None]) -> None:
        self._url = url
        self._prepare = prepare
        self._lock = threading.Lock()
        self._connection = self._open()

    def select(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query; `?` marks a value.

        Raises:
            DatabaseLostError: there is no answer, or the tables are gone.
        """
        import psycopg

        marked = query.replace("?", "%s")
        with self._lock:
            try:
                return self._run(marked, values)
            except psycopg.Error as error:
                raise DatabaseLostError(
                    f"the database of the index does not answer ({type(error).__name__})"
                ) from error
            except UsageError as error:
                raise DatabaseLostError(str(error)) from error

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._connection.close()

    def _run(self, query: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        import psycopg

        try:
            return list(self._connection.execute(query, values, binary=True).fetchall())
        except psycopg.OperationalError:
            if not self._connection.closed:
                raise
        # A restarted server is no reason to restart the service; a query only reads.
        self._connection = self._open()
        return list(self._connection.execute(query, values, binary=True).fetchall())

    def _open(self) -> Connection:
        import psycopg

        connection = connect(self._url)
        try:
            self._prepare(connection)
        except BaseException as error:
            connection.close()
            if isinstance(error, psycopg.Error):
                why = " ".join(str(error).split())
                raise UsageError(f"{place(self._url)}: cannot be read: {why}") from None
            raise
        return connection


def connect(url: str) -> Connection:
    """A new connection that commits every statement by itself.

    Raises:
        MissingExtraError: the driver is not installed.
        UsageError: the URL is wrong, or nobody answers there; never with a password.
    """
    parts = _parts(url)
    import psycopg

    given = {"connect_timeout": _CONNECT_TIMEOUT_S, "application_name": "ragwb"}
    missing = {name: value for name, value in given.items() if name not in parts}
    try:
        # Never prepared: the plan has to fit the filter of each question.
        return psycopg.connect(url, autocommit=True, prepare_threshold=None, **missing)
    except psycopg.Error as error:
        why = " ".join(str(error).split())
        raise UsageError(
            f"{place(url)}: no connection to this database: {_safe(why, parts)}"
        ) from (None)


def place(url: str) -> str:
    """Where a database is, as it may be shown: host, port and name, without user and password.

    Raises:
        MissingExtraError, UsageError: as `connect`.
    """
    parts = _parts(url)
    return f"{parts.get('host', 'localhost')}:{parts.get('port', 5432)}/{parts.get('dbname', '')}"


def holds_password(url: str) -> bool:
    """Whether a URL carries a password, be it a readable URL or not."""
    authority = url.partition("://")[2].rpartition("@")[0]
    return bool(authority.partition(":")[2]) or "password=" in url


def _parts(url: str) -> Mapping[str, Any]:
    """The parameters of a URL; whatever does not fit is not shown."""
    try:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict
    except ImportError as error:
        raise MissingExtraError("an index in Postgres", "pgvector") from error
    wrong = UsageError(
        f"the database URL cannot be read: give it as {FORM}; in a password @ is written %40, "
        "/ is %2F, : is %3A and % is %25"
    )
    if not url.startswith(_SCHEMES):
        raise wrong
    try:
        parts: Mapping[str, Any] = conninfo_to_dict(url)
    except psycopg.Error:
        raise wrong from None
    # A password with an unescaped @ or / has spilled into what comes after it.
    spilled = any("@" in str(parts.get(name, "")) for name in ("host", "port", "dbname", "user"))
    port = str(parts.get("port", "")).replace(",", "")
    if spilled or not (port.isdecimal() or not port):
        raise wrong
    return parts


def _safe(message: str, parts: Mapping[str, Any]) -> str:
    password = str(parts.get("password") or "")
    return "refused" if password and password in message else message
