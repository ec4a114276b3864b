"""A Postgres for the tests of a folder, and a database of its own for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from postgres_server import postgres_server


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    with postgres_server() as url:
        yield url


@pytest.fixture
def database(postgres: str) -> Iterator[str]:
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as admin:
        admin.execute("CREATE DATABASE work")
        yield postgres.replace("/postgres?", "/work?")
        admin.execute("DROP DATABASE work WITH (FORCE)")
