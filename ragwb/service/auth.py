"""Who is calling: signed tokens, or on loopback without a key one fixed local identity."""

from __future__ import annotations

import datetime
import math
import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jwt

from ragwb.errors import UsageError
from ragwb.files import read_bytes
from ragwb.service.config import AUDIENCE, ISSUER
from ragwb.service.problems import ProblemError
from ragwb.service.visibility import Caller

SCOPE_EVAL = "knowledge:eval"
SCOPE_EXPLAIN = "knowledge:eval:explain"
SCOPE_HISTORY = "knowledge:eval:history"
SCOPE_ASK = "knowledge:ask"
SCOPES = (SCOPE_EVAL, SCOPE_EXPLAIN, SCOPE_HISTORY, SCOPE_ASK)
LOCAL_CALLER = Caller("local", "starmall", ("support",), frozenset({SCOPE_EVAL, SCOPE_EXPLAIN}))
TOKEN_MINUTES = 15
MAX_TOKEN_MINUTES = 24 * 60

_ALGORITHM = "HS256"
# RFC 7518, 3.2: a key of HS256 is no shorter than its hash.
_MIN_KEY_BYTES = 32
_MOST_KEY_BYTES = 1_000_000


def make_key(path: Path) -> None:
    """Write a new random key to a file that only its owner can read; never over another one.

    Raises:
        UsageError: the file is there already or cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        raise UsageError(f"{path}: there is a key already; remove it to make another") from error
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from error
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(secrets.token_urlsafe(48) + "\n")


def read_key(path: Path) -> bytes:
    """The key that a file holds, white space around it left out.

    Raises:
        UsageError: the file cannot be read, or its key is shorter than 32 bytes.
    """
    try:
        key = read_bytes(path, most=_MOST_KEY_BYTES).strip()
    except OSError as error:
        raise UsageError(
            f"{path}: no key can be read here; `ragwb token --init` makes one"
        ) from error
    if len(key) < _MIN_KEY_BYTES:
        raise UsageError(f"{path}: the key has {len(key)} bytes; at least {_MIN_KEY_BYTES}")
    return key


def mint_token(
    key: bytes,
    *,
    subject: str,
    tenant: str,
    departments: Sequence[str],
    scopes: Sequence[str],
    now: datetime.datetime,
    minutes: int = TOKEN_MINUTES,
    issuer: str = ISSUER,
    audience: str = AUDIENCE,
) -> str:
    """A signed token for an identity.

    Args:
        key: the service's key.
        subject: who it is for.
        tenant: whose documents they see.
        departments: what they belong to.
        scopes: what it opens, some of `SCOPES`.
        now: when it starts.
        minutes: how long it holds, 1 to 1440.
        issuer: as the service expects it.
        audience: as the service expects it.

    Raises:
        UsageError: an unknown scope, or minutes out of range.
    """
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown:
        raise UsageError(f"scope {unknown[0]!r} is not known: {', '.join(SCOPES)}")
    if not 1 <= minutes <= MAX_TOKEN_MINUTES:
        raise UsageError(f"minutes is {minutes}: 1 to {MAX_TOKEN_MINUTES}")
    claims = {
        "sub": subject,
        "tenant": tenant,
        "departments": list(departments),
        "scope": " ".join(scopes),
        "iat": int(now.timestamp()),
        "exp": int((now + datetime.timedelta(minutes=minutes)).timestamp()),
        "iss": issuer,
        "aud": audience,
    }
    return jwt.encode(claims, key, algorithm=_ALGORITHM)


def identify(
    authorization: str | None,
    key: bytes | None,
    *,
    now: datetime.datetime,
    issuer: str = ISSUER,
    audience: str = AUDIENCE,
) -> Caller:
    """Who an `Authorization` header speaks for; without a key always the local identity.

    Raises:
        ProblemError: 401 when there is no token, or it is not signed with the key, names another
            issuer or audience, is over, or lacks a claim. The reason says no more than that.
    """
    if key is None:
        return LOCAL_CALLER
    scheme, _, token = (authorization or "").partition(" ")
    if scheme.casefold() != "bearer" or not token.strip():
        raise _unauthorized("a bearer token is needed", error=None)
    try:
        claims = jwt.decode(
            token.strip(),
            key,
            algorithms=[_ALGORITHM],
            issuer=issuer,
            audience=audience,
            # Times are compared below with the service's own clock.
            options={
                "require": ["sub", "exp", "iss", "aud"],
                "verify_exp": False,
                "verify_nbf": False,
                "verify_iat": False,
            },
        )
    except jwt.InvalidTokenError as error:
        raise _unauthorized("the token is not valid here") from error
    _check_times(claims, now)
    return _caller(claims)


def require(caller: Caller, scope: str) -> None:
    """Refuse a caller whose token does not carry a scope.

    Raises:
        ProblemError: 403 that names the scope.
    """
    if scope not in caller.scopes:
        challenge = {"WWW-Authenticate": f'Bearer error="insufficient_scope", scope="{scope}"'}
        raise ProblemError(403, f"the token lacks the scope {scope}", headers=challenge)


def _check_times(claims: Mapping[str, Any], now: datetime.datetime) -> None:
    ends, starts = claims["exp"], claims.get("nbf", 0)
    if not (_is_moment(ends) and _is_moment(starts)):
        raise _unauthorized("the token is not valid here")
    if now.timestamp() >= ends:
        raise _unauthorized("the token has expired")
    if now.timestamp() < starts:
        raise _unauthorized("the token does not hold yet")


def _is_moment(value: object) -> bool:
    # RFC 7519, 2: a number, with or without a fraction. NaN and Infinity would never be over.
    return type(value) is int or (isinstance(value, float) and math.isfinite(value))


def _caller(claims: Mapping[str, Any]) -> Caller:
    tenant, departments = claims.get("tenant"), claims.get("departments", [])
    scope = claims.get("scope", "")
    well_formed = (
        isinstance(tenant, str)
        and tenant
        and isinstance(scope, str)
        and isinstance(departments, list)
        and all(isinstance(name, str) for name in departments)
    )
    if not well_formed:
        raise _unauthorized("the token's claims tenant, departments or scope are not usable")
    return Caller(str(claims["sub"]), str(tenant), tuple(departments), frozenset(scope.split()))


def _unauthorized(detail: str, error: str | None = "invalid_token") -> ProblemError:
    # RFC 6750, 3.1: without a token the challenge carries no error code.
    challenge = f'Bearer error="{error}"' if error else "Bearer"
    return ProblemError(401, detail, headers={"WWW-Authenticate": challenge})
