"""The flags of an index in Postgres, and what its graph misses."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragwb.errors import UsageError
from ragwb.html import plain

if TYPE_CHECKING:
    from ragwb.service.config import ServiceConfig
    from ragwb.service.embedding import Embedder
    from ragwb.service.index import Index
    from ragwb.service.visibility import Caller

DATABASE_URL_ENV = "RAGWB_DATABASE_URL"

DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        help="Index in this Postgres with pgvector: postgresql://user@host/database. A password "
        f"belongs into PGPASSWORD or .pgpass, or the whole URL into {DATABASE_URL_ENV}."
    ),
]
Scan = Annotated[
    str | None,
    typer.Option(help="Postgres: exact (default), hnsw, or hnsw-plain (filters afterwards)."),
]
EfSearch = Annotated[
    int | None, typer.Option(help="hnsw: rows that a walk keeps in view, 1 to 1000.")
]


def database_flags(url: str | None, scan: str | None, ef_search: int | None) -> dict[str, Any]:
    """The settings of an index in Postgres; the environment gives the URL that no flag gives."""
    if url is not None:
        from ragwb.service.database import holds_password

        if holds_password(url):
            typer.echo(
                "--database-url: its password can be read in the list of processes; give it in "
                f"PGPASSWORD, or the URL in {DATABASE_URL_ENV}",
                err=True,
            )
    return {
        "database_url": url or os.environ.get(DATABASE_URL_ENV) or None,
        "scan": scan,
        "ef_search": ef_search,
    }


def shown_place(config: ServiceConfig, index: Index) -> str:
    """Where an index in Postgres is, without user and password."""
    from ragwb.service.database import place
    from ragwb.service.postgres import schema_of

    version = index.meta["index_version"].partition("-")[0]
    return f"{place(str(config.database_url))}, schema {schema_of(version)}"


@dataclass(frozen=True, slots=True)
class Check:
    """What is asked to see what a graph misses.

    Attributes:
        questions: of a golden set; caller: whose filters stand in the way.
    """

    questions: list[str]
    caller: Caller


def load_check(
    config: ServiceConfig, dataset: Path | None, tenant: str | None, departments: str | None
) -> Check | None:
    """The questions of a golden set, asked by somebody; None without a golden set.

    Args:
        config: of the service.
        dataset: the golden set.
        tenant: of who asks; None for that of the fixed local identity.
        departments: of who asks, joined by commas; None likewise.

    Raises:
        UsageError: the index is a file, which always compares exactly. GoldenError: the set is
            wrong.
    """
    if dataset is None:
        return None
    if config.database_url is None:
        raise UsageError("--check is for an index in Postgres: a file is always compared exactly")
    from ragwb.golden import load_dataset
    from ragwb.service.auth import LOCAL_CALLER
    from ragwb.service.visibility import Caller

    own = LOCAL_CALLER.departments if departments is None else _names(departments)
    caller = Caller("check", tenant or LOCAL_CALLER.tenant, own, frozenset())
    return Check([case.question for case in load_dataset(dataset).cases], caller)


def shown_check(check: Check, config: ServiceConfig, index: Index, model: Embedder) -> str:
    """What the index gives of the exact scan's first `candidate_k`, as one line for a terminal."""
    from ragwb.service.filtered_recall import filtered_recall
    from ragwb.service.pipeline import Pipeline, utc_now

    pipeline = Pipeline(config, index, model, utc_now)
    return plain(filtered_recall(pipeline, check.caller, check.questions, config.candidate_k))


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())
