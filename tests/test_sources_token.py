from __future__ import annotations

import asyncio
import base64
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ragwb.errors import AccessError, UsageError
from ragwb.settings import Settings
from ragwb.sources.token import TokenSource, expiry, token_from_file, token_source


def settings(**given: object) -> Settings:
    return Settings(root=Path(), home=Path(), **given)  # type: ignore[arg-type]  # many types


def get(source: TokenSource) -> str | None:
    return asyncio.run(source.get())


def jwt(expires: object) -> str:
    claims = base64.urlsafe_b64encode(json.dumps({"exp": expires}).encode()).rstrip(b"=")
    return f"head.{claims.decode()}.signature"


def counted(tokens: list[str]) -> tuple[Callable[[], str], list[str]]:
    """A reader that gives one token after the other, and what it gave."""
    given: list[str] = []

    def read() -> str:
        given.append(tokens[len(given)])
        return given[-1]

    return read, given


def test_file_beats_the_environment_and_is_stripped(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("from-file\n")
    source = token_source(settings(token_file=path), {"RAGWB_TOKEN": "from-environment"})
    assert get(source) == "from-file"


def test_environment_is_used_where_nothing_else_is_given() -> None:
    assert (
        get(token_source(settings(), {"RAGWB_TOKEN": " from-environment "})) == "from-environment"
    )
    assert get(token_source(settings(), {"RAGWB_TOKEN": "  "})) is None
    assert get(token_source(settings(), {})) is None


def test_command_prints_the_token() -> None:
    command = f"{sys.executable} -c \"print('printed-token')\""
    assert get(token_source(settings(token_command=command), {})) == "printed-token"


def test_file_and_command_together_are_refused(tmp_path: Path) -> None:
    both = settings(token_file=tmp_path / "token", token_command="print-token")
    with pytest.raises(UsageError, match="give one of them"):
        token_source(both, {})


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import sys; print('secret-value'); sys.exit(3)", "exit code 3"),
        ("print('')", "is empty"),
        ("print('secret-value and words')", "does not hold one bearer token"),
        ("print('secret-value\\u007f')", "does not hold one bearer token"),
    ],
)
def test_a_command_that_fails_is_named_and_its_output_is_not_shown(code: str, message: str) -> None:
    source = token_source(settings(token_command=f'{sys.executable} -c "{code}"'), {})
    with pytest.raises(AccessError, match=message) as caught:
        get(source)
    assert "secret-value" not in str(caught.value)


def test_a_command_that_is_not_there_is_one_line() -> None:
    with pytest.raises(AccessError, match="could not be started: No such file"):
        get(token_source(settings(token_command="no-such-command-anywhere"), {}))


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(AccessError, match="No such file"):
        get(token_from_file(tmp_path / "absent"))


def test_a_rejected_token_is_read_again_once_for_all_calls() -> None:
    read, given = counted(["first", "second", "third"])
    source = TokenSource(read, renewable=True)

    async def calls() -> list[str | None]:
        rejected = await source.get()
        return list(await asyncio.gather(*(source.renew(rejected) for _ in range(4))))

    assert asyncio.run(calls()) == ["second"] * 4
    assert given == ["first", "second"]


def test_the_same_token_again_is_no_other_token() -> None:
    source = TokenSource(lambda: "same", renewable=True)

    async def renewed() -> str | None:
        return await source.renew(await source.get())

    assert asyncio.run(renewed()) is None


def test_a_token_of_the_environment_cannot_be_renewed() -> None:
    source = token_source(settings(), {"RAGWB_TOKEN": "fixed-token"})

    async def renewed() -> str | None:
        return await source.renew(await source.get())

    assert asyncio.run(renewed()) is None


def test_a_jwt_is_read_again_before_it_expires() -> None:
    clock = {"now": 1000.0}
    read, given = counted([jwt(1900), jwt(9900)])
    source = TokenSource(read, renewable=True, now=lambda: clock["now"])

    async def tokens_at(*times: float) -> list[str | None]:
        found = []
        for clock["now"] in times:
            found.append(await source.get())
        return found

    # Due 30 s before 1900.
    assert asyncio.run(tokens_at(1000, 1869, 1870)) == [jwt(1900), jwt(1900), jwt(9900)]
    assert len(given) == 2


def test_a_short_lived_jwt_is_not_fetched_for_every_call() -> None:
    clock = {"now": 1000.0}
    read, given = counted([jwt(1020), jwt(1040)])
    source = TokenSource(read, renewable=True, now=lambda: clock["now"])

    async def tokens_at(*times: float) -> None:
        for clock["now"] in times:
            await source.get()

    asyncio.run(tokens_at(1000, 1005, 1009))
    assert given == [jwt(1020)]


@pytest.mark.parametrize(
    ("token", "expires"),
    [(jwt(1900), 1900.0), (jwt("soon"), None), ("opaque", None), ("a.b.c", None), ("a.!!.c", None)],
)
def test_expiry_is_that_of_a_jwt(token: str, expires: float | None) -> None:
    assert expiry(token) == expires


def test_scrub_removes_every_token_that_was_ever_given() -> None:
    read, _ = counted(["token-one-1", "token-two-2"])
    source = TokenSource(read, renewable=True)

    async def both() -> None:
        await source.renew(await source.get())

    asyncio.run(both())
    assert source.secrets.scrub("a token-one-1 b token-two-2") == "a [token] b [token]"
    assert source.secrets.scrub_body(b'{"x": "token-two-2"}') == b'{"x":"[token]"}'
