"""The service over a database: commands, errors, and what is never shown."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import anyio
import httpx
import numpy as np
import psycopg
import pytest
from postgres_server import indexes_in
from service_corpus import NOW, make_running, make_settings, write_corpus
from typer.testing import CliRunner

from ragwb.cli import app
from ragwb.cli.served import served
from ragwb.errors import UsageError
from ragwb.service.app import Running, create_app
from ragwb.service.database import DatabaseLostError
from ragwb.service.embedding import Embedder, load_embedder
from ragwb.service.indexes import ready_index
from ragwb.service.pipeline import Pipeline
from ragwb.settings import EVAL_PATH

GOLDEN = Path(__file__).parents[2] / "datasets" / "retrieval"
TERMINATE = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE pid <> pg_backend_pid() AND datname = 'work'"
)

pytestmark = pytest.mark.server


def ask(running: Running) -> httpx.Response:
    """One question, through ASGI."""

    async def go() -> httpx.Response:
        transport = httpx.ASGITransport(create_app(running))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            asked = {"question": "退款多久到账", "topK": 3}
            return await client.post(f"{EVAL_PATH}/retrieve", json=asked)

    return anyio.run(go)


def test_a_lost_connection_is_opened_again_and_a_lost_index_is_a_503(
    database: str, tmp_path: Path
) -> None:
    write_corpus(tmp_path / "corpus")
    config = replace(make_settings(tmp_path), database_url=database)
    embedder = load_embedder(config)
    with closing(ready_index(config, embedder)) as index:
        running = make_running(Pipeline(config, index, embedder, lambda: NOW), config, key=None)
        first = ask(running)
        with psycopg.connect(database, autocommit=True) as admin:
            admin.execute(TERMINATE)
            again = ask(running)
            for name in indexes_in(database):
                admin.execute(f'DROP SCHEMA "{name}" CASCADE')
        gone = ask(running)
        with psycopg.connect(database, autocommit=True) as admin:
            admin.execute(TERMINATE)
        still = ask(running)

        assert first.json()["results"] == again.json()["results"] != []
        assert gone.status_code == still.status_code == 503
        assert gone.headers["Retry-After"]
        assert "database of the index" in gone.json()["detail"]
        assert "is gone; start the service again" in still.json()["detail"]
        with pytest.raises(DatabaseLostError):
            list(index.iter_chunks())


def test_nobody_who_may_not_install_pgvector_is_left_in_the_dark(
    postgres: str, database: str, tmp_path: Path
) -> None:
    write_corpus(tmp_path / "corpus")
    with psycopg.connect(postgres, autocommit=True) as admin:
        admin.execute("CREATE ROLE poor LOGIN")
        try:
            poor = replace(
                make_settings(tmp_path), database_url=database.replace("postgres@", "poor@")
            )
            with pytest.raises(UsageError, match="CREATE EXTENSION vector"):
                ready_index(poor, load_embedder(poor))
            with psycopg.connect(database, autocommit=True) as owner:
                owner.execute("CREATE EXTENSION vector")
            with pytest.raises(UsageError, match="cannot be written: permission denied"):
                ready_index(poor, load_embedder(poor))
        finally:
            admin.execute("DROP ROLE poor")


def test_too_many_dimensions_for_a_graph_are_refused_at_once(database: str, tmp_path: Path) -> None:
    write_corpus(tmp_path / "corpus")
    config = make_settings(tmp_path, database_url=database, scan="hnsw")
    wide = Embedder("wide", 3000, lambda texts, _kind: np.eye(len(texts), 3000, dtype=np.float32))
    with pytest.raises(UsageError, match="up to 2000 numbers, wide gives 3000: use scan exact"):
        ready_index(config, wide)
    with closing(ready_index(replace(config, scan="exact"), wide)) as index:
        assert index.sentences_of([0])[0].shape[1] == 3000


def test_a_wrong_database_is_one_line_without_the_password(database: str, tmp_path: Path) -> None:
    write_corpus(tmp_path / "corpus")
    wrong = database.replace("/work?", "/none?").replace("postgres@", "postgres:s3cret-word@")
    config = make_settings(tmp_path, database_url=wrong)
    with pytest.raises(UsageError, match='database "none" does not exist') as caught:
        ready_index(config, load_embedder(config))
    assert "s3cret" not in f"{caught.value} {caught.value.__cause__} {config}"
    assert "\n" not in str(caught.value)


def test_the_service_over_a_database(
    database: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("RAGWB_HOME", str(tmp_path / "home"))
    corpus = write_corpus(tmp_path / "corpus")
    flags = ["--corpus", str(corpus), "--embedder", "hash", "--scan", "hnsw", "--database-url"]
    secret = database.replace("postgres@", "postgres:s3cret-word@")
    with served([*flags, secret]) as base_url:
        manifest = httpx.get(f"{base_url}{EVAL_PATH}/manifest")
        ask = {"question": "错误码 E-1047 表示什么", "topK": 3}
        reply = httpx.post(f"{base_url}{EVAL_PATH}/answer", json=ask)
        page = httpx.post(
            f"{base_url}{EVAL_PATH}/chunks", json={"documents": [{"documentId": "codes"}]}
        )
    said = capfd.readouterr()

    assert manifest.json()["indexVersion"].endswith("-hnsw-100")
    assert "E-1047" in reply.json()["answer"]["text"]
    assert [chunk["documentId"] for chunk in page.json()["chunks"]]
    assert "list of processes" in said.err
    assert not (tmp_path / "home" / "index").exists()
    for text in (manifest.text, reply.text, said.out, said.err):
        assert "s3cret" not in text


def test_the_index_command_says_where_it_is_and_what_is_missed(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAGWB_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("RAGWB_DATABASE_URL", database.replace("postgres@", "postgres:s3cret-word@"))
    golden = GOLDEN / "golden-set-v1-holdout.jsonl"
    done = CliRunner().invoke(
        app,
        [
            "index",
            "--embedder",
            "hash",
            "--scan",
            "hnsw",
            "--check",
            str(golden),
            "--candidate-k",
            "7",
        ],
    )

    assert done.exit_code == 0, done.output
    where, found = done.stdout.splitlines()
    assert "/work, schema ragwb1_" in where
    assert found.startswith("hnsw: filtered recall ")
    assert "the first 7 each" in found
    assert "s3cret" not in done.output
