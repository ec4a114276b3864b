from __future__ import annotations

import datetime
import math
import stat
from pathlib import Path

import jwt
import pytest
from service_corpus import KEY, NOW

from ragwb.errors import UsageError
from ragwb.service.auth import (
    LOCAL_CALLER,
    SCOPE_ASK,
    SCOPE_EVAL,
    SCOPE_EXPLAIN,
    identify,
    make_key,
    mint_token,
    read_key,
    require,
)
from ragwb.service.problems import ProblemError

CLAIMS = {
    "sub": "eval",
    "tenant": "starmall",
    "departments": ["support"],
    "scope": SCOPE_EVAL,
    "exp": int(NOW.timestamp()) + 60,
    "iss": "ragwb",
    "aud": "ragwb-service",
}


def mint(**changes: object) -> str:
    values = {
        "subject": "eval",
        "tenant": "starmall",
        "departments": ["support"],
        "scopes": [SCOPE_EVAL, SCOPE_EXPLAIN],
        "now": NOW,
        **changes,
    }
    return mint_token(KEY, **values)  # type: ignore[arg-type]  # values of many types


def sign(key: bytes = KEY, algorithm: str = "HS256", **changes: object) -> str:
    claims = {name: value for name, value in {**CLAIMS, **changes}.items() if value is not None}
    return jwt.encode(claims, key, algorithm=algorithm)


def test_a_minted_token_comes_back_as_its_identity() -> None:
    caller = identify(f"Bearer {mint()}", KEY, now=NOW)

    assert (caller.subject, caller.tenant, caller.departments) == ("eval", "starmall", ("support",))
    assert caller.scopes == {SCOPE_EVAL, SCOPE_EXPLAIN}


def test_a_token_holds_for_its_minutes_and_no_longer() -> None:
    token = f"Bearer {mint(minutes=15)}"
    last = NOW + datetime.timedelta(minutes=15, seconds=-1)

    assert identify(token, KEY, now=last).subject == "eval"
    with pytest.raises(ProblemError, match="expired"):
        identify(token, KEY, now=last + datetime.timedelta(seconds=1))


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Basic abc",
        "Bearer not.a.token",
        f"Bearer {sign(key=b'another key of at least 32 bytes')}",
        f"Bearer {sign(iss='someone')}",
        f"Bearer {sign(aud='another')}",
        f"Bearer {sign(exp=None)}",
        f"Bearer {sign(exp=math.nan)}",
        f"Bearer {sign(exp=math.inf)}",
        f"Bearer {sign(exp=True)}",
        f"Bearer {sign(nbf=-math.inf)}",
        f"Bearer {sign(sub=None)}",
        f"Bearer {sign(iss=None)}",
        f"Bearer {sign(aud=None)}",
        f"Bearer {sign(tenant=None)}",
        f"Bearer {sign(tenant='')}",
        f"Bearer {sign(departments='support')}",
        f"Bearer {sign(departments=[1])}",
        f"Bearer {sign(scope=[SCOPE_EVAL])}",
        f"Bearer {sign(nbf=int(NOW.timestamp()) + 30)}",
        f"Bearer {jwt.encode(CLAIMS, '', algorithm='none')}",
    ],
)
def test_what_is_no_valid_token_is_401(header: str | None) -> None:
    with pytest.raises(ProblemError) as caught:
        identify(header, KEY, now=NOW)

    assert caught.value.status == 401
    assert caught.value.headers["WWW-Authenticate"].startswith("Bearer")


def test_a_refusal_does_not_repeat_the_token() -> None:
    token = sign(iss="someone")
    with pytest.raises(ProblemError) as caught:
        identify(f"Bearer {token}", KEY, now=NOW)

    assert token not in f"{caught.value.detail}{caught.value.headers}"


def test_without_a_key_there_is_one_identity() -> None:
    assert identify(None, None, now=NOW) == LOCAL_CALLER
    assert identify("Bearer x", None, now=NOW) == LOCAL_CALLER
    assert (LOCAL_CALLER.tenant, LOCAL_CALLER.departments) == ("starmall", ("support",))


def test_a_lacking_scope_is_403_and_named() -> None:
    caller = identify(f"Bearer {mint(scopes=[SCOPE_ASK])}", KEY, now=NOW)

    with pytest.raises(ProblemError, match=SCOPE_EVAL) as caught:
        require(caller, SCOPE_EVAL)
    assert caught.value.status == 403


@pytest.mark.parametrize(
    ("changes", "named"),
    [({"scopes": ["admin"]}, "admin"), ({"minutes": 0}, "minutes"), ({"minutes": 9999}, "minutes")],
)
def test_a_token_is_not_minted_for_anything(changes: dict[str, object], named: str) -> None:
    with pytest.raises(UsageError, match=named):
        mint(**changes)


def test_a_key_is_made_for_its_owner_and_never_over_another(tmp_path: Path) -> None:
    path = tmp_path / "home" / "service.key"
    make_key(path)
    first = read_key(path)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(first) >= 32
    with pytest.raises(UsageError, match="there is a key already"):
        make_key(path)
    assert read_key(path) == first


def test_a_key_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    short = tmp_path / "short.key"
    short.write_text("secret\n")

    with pytest.raises(UsageError, match=r"short\.key: the key has 6 bytes"):
        read_key(short)
    with pytest.raises(UsageError, match="--init"):
        read_key(tmp_path / "none.key")
    with pytest.raises(UsageError, match="cannot be written"):
        make_key(short / "below" / "a.key")
