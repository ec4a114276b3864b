"""Where the bearer token comes from, and when it is fetched again.

A token is read from a file, from a command or from `RAGWB_TOKEN`, in that order. A file and a
command are asked again when the service answers 401, and shortly before the `exp` of a JWT. A token
never stands in a message: what this module raises names the source, never the content.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import os
import shlex
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from ragwb.errors import AccessError, UsageError
from ragwb.files import read_bytes
from ragwb.secrets import Secrets
from ragwb.settings import Settings

TOKEN_VARIABLE = "RAGWB_TOKEN"
COMMAND_TIMEOUT_S = 60
RENEW_BEFORE_S = 30.0
# No server takes a header of this size.
_MOST_TOKEN_BYTES = 1_000_000


class TokenSource:
    """A bearer token that can be asked for again.

    Args:
        read: returns the token, or None when there is none; may block.
        renewable: whether `read` can return another token later.
        now: seconds since the epoch; a seam for tests.
    """

    def __init__(
        self,
        read: Callable[[], str | None],
        *,
        renewable: bool,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._read = read
        self._renewable = renewable
        self._now = now
        self._token: str | None = None
        self._secrets = Secrets()
        self._was_read = False
        self._renew_at: float | None = None
        self._reading = asyncio.Lock()

    async def get(self) -> str | None:
        """The token in force, None when none is configured; read again shortly before it expires.

        Raises:
            AccessError: the file or the command gave no usable token.
        """
        if self._is_due():
            async with self._reading:
                if self._is_due():
                    await self._read_again()
        return self._token

    async def renew(self, rejected: str | None) -> str | None:
        """Another token after the service rejected one, or None when there is no other.

        Several calls may be rejected at once; the source is read once for all of them.
        """
        if not self._renewable:
            return None
        async with self._reading:
            if self._token == rejected:
                await self._read_again()
        return self._token if self._token != rejected else None

    @property
    def secrets(self) -> Secrets:
        """Every token that this source ever gave, and those of the sources it shares them with."""
        return self._secrets

    def share(self, secrets: Secrets) -> None:
        """Keep the tokens in a set that other sources keep theirs in too."""
        secrets.update(self._secrets)
        self._secrets = secrets

    def _is_due(self) -> bool:
        if not self._was_read:
            return True
        return self._renew_at is not None and self._now() >= self._renew_at

    async def _read_again(self) -> None:
        self._token = await asyncio.to_thread(self._read)
        self._was_read = True
        self._renew_at = self._due_at(self._token) if self._renewable else None
        if self._token:
            self._secrets.add(self._token)

    def _due_at(self, token: str | None) -> float | None:
        expires = expiry(token) if token else None
        if expires is None:
            return None
        # Half of a short life, so that a token of 20 seconds is not fetched for every call.
        left = max(expires - self._now(), 0.0)
        return expires - min(RENEW_BEFORE_S, left / 2)


def token_source(settings: Settings, environ: Mapping[str, str] = os.environ) -> TokenSource:
    """The token source of the settings: file or command, else `RAGWB_TOKEN`, else none.

    Raises:
        UsageError: both a file and a command are given.
    """
    if settings.token_file is not None and settings.token_command is not None:
        raise UsageError("a token file and a token command are both given: give one of them")
    if settings.token_file is not None:
        return token_from_file(settings.token_file)
    if settings.token_command is not None:
        command = settings.token_command
        return TokenSource(lambda: _run_command(command), renewable=True)
    value = environ.get(TOKEN_VARIABLE, "").strip()
    return TokenSource(lambda: _checked(value, TOKEN_VARIABLE) if value else None, renewable=False)


def token_from_file(path: Path) -> TokenSource:
    """A token source that reads a file, and reads it again when the service rejects the token."""
    return TokenSource(lambda: _read_file(path), renewable=True)


def expiry(token: str) -> float | None:
    """The `exp` of a JWT in seconds since the epoch, unverified; None for any other token."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (binascii.Error, ValueError):
        return None
    expires = claims.get("exp") if isinstance(claims, dict) else None
    return float(expires) if isinstance(expires, int | float) else None


def _read_file(path: Path) -> str:
    try:
        content = read_bytes(path, most=_MOST_TOKEN_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise AccessError(f"token file {path}: {reason}") from error
    return _checked(content.strip(), f"token file {path}")


def _run_command(command: str) -> str:
    where = "the token command"
    try:
        done = subprocess.run(
            shlex.split(command),
            check=False,
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        # `from None`: the exception holds what the command has printed so far.
        raise AccessError(f"{where} gave nothing within {COMMAND_TIMEOUT_S} s") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise AccessError(f"{where} could not be started: {reason}") from error
    if done.returncode != 0:
        raise AccessError(
            f"{where} ended with exit code {done.returncode}; run it by hand to see why "
            "(its output is not shown: it may hold the token)"
        )
    return _checked(done.stdout.strip(), where)


def _checked(token: str, where: str) -> str:
    if not token:
        raise AccessError(f"{where} is empty: it must hold the bearer token and nothing else")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise AccessError(
            f"{where} does not hold one bearer token: "
            "white space, control or non-ASCII characters stand in it"
        )
    return token
