from __future__ import annotations

import sys

import pytest

from ragwb.errors import MissingExtraError, UsageError
from ragwb.service.database import connect, holds_password, place

SECRET = "s3cret-word"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (f"postgresql://me:{SECRET}@db.example:6543/kb", "db.example:6543/kb"),
        (f"postgres://me:{SECRET}@db.example/kb?sslmode=require", "db.example:5432/kb"),
        (f"postgresql://db.example/kb?user=me&password={SECRET}", "db.example:5432/kb"),
        (f"postgresql://me:{SECRET}@a:1,b:2/kb", "a,b:1,2/kb"),
        ("postgresql://me@/kb?host=/var/run/postgresql", "/var/run/postgresql:5432/kb"),
        (f"postgresql://me:a?[{SECRET}@db.example/kb", "db.example:5432/kb"),
        ("postgresql:///", "localhost:5432/"),
    ],
)
def test_a_place_is_shown_without_user_and_password(url: str, shown: str) -> None:
    assert place(url) == shown
    assert holds_password(url) is (SECRET in url)


# A password that was not escaped spills into host, port or name.
SPILLED = [
    f"postgresql://me:a@{SECRET}@db.example/kb",
    f"postgresql://me:a/{SECRET}@db.example/kb",
    f"postgresql://me:1/{SECRET}@db.example/kb",
    f"postgresql://me:%{SECRET}@db.example/kb",
    f"postgresql://me:{SECRET}@db.example:port/kb",
    f"mysql://me:{SECRET}@db.example/kb",
    f"host=db.example password={SECRET}",
    SECRET,
    "",
]


@pytest.mark.parametrize("url", SPILLED)
def test_a_wrong_url_is_one_line_that_shows_nothing_of_it(url: str) -> None:
    for use in (place, connect):
        with pytest.raises(UsageError, match="postgresql://user@host:5432/database") as caught:
            use(url)
        assert SECRET not in f"{caught.value} {caught.value.__cause__}"
        assert "\n" not in str(caught.value)


def test_nobody_at_the_address_is_one_line_without_the_password() -> None:
    url = f"postgresql://me:{SECRET}@127.0.0.1:1/kb?connect_timeout=1"
    with pytest.raises(UsageError, match=r"127\.0\.0\.1:1/kb: no connection") as caught:
        connect(url)
    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_the_driver_says_is_kept_back_where_it_holds_the_password() -> None:
    with pytest.raises(UsageError, match="no connection to this database: refused") as caught:
        connect("postgresql://me:connection@127.0.0.1:1/kb")
    assert str(caught.value).count("connection") == 1


def test_without_the_driver_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'ragwb\[pgvector\]'"):
        place("postgresql:///")
