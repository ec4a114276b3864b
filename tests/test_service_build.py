from __future__ import annotations

import dataclasses
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from service_corpus import make_settings, write_corpus, write_document

from ragwb.errors import DocumentError
from ragwb.service.build import build_index
from ragwb.service.config import ServiceConfig
from ragwb.service.embedding import Embedder, Kind, Vectors, load_embedder
from ragwb.service.index import INDEX_FILE, open_index


class KilledError(Exception):
    """Stands for whatever ends a build half way."""


def counting(embedder: Embedder, seen: list[str]) -> Embedder:
    def encode(texts: Sequence[str], kind: Kind) -> Vectors:
        seen.extend(texts)
        return embedder.encode(texts, kind)

    return dataclasses.replace(embedder, encode=encode)


def failing(embedder: Embedder) -> Embedder:
    def encode(texts: Sequence[str], kind: Kind) -> Vectors:
        raise KilledError

    return dataclasses.replace(embedder, encode=encode)


@pytest.fixture
def config(tmp_path: Path) -> ServiceConfig:
    write_corpus(tmp_path / "corpus")
    return make_settings(tmp_path)


def test_only_changed_texts_are_computed(config: ServiceConfig) -> None:
    seen: list[str] = []
    embedder = counting(load_embedder(config), seen)
    build_index(config, embedder)
    seen.clear()
    write_document(config.corpus, "codes", "# 错误码\n\n## E-2000\n\n缺货时会显示这个代码。\n")
    build_index(config, embedder)

    # Its chunk and its one sentence are the same text, which is computed once.
    assert seen == [
        "错误码 / E-2000\n# 错误码\n\n## E-2000\n\n缺货时会显示这个代码。",
        "错误码 / E-2000\n缺货时会显示这个代码。",
    ]


def test_a_corpus_that_did_not_change_is_not_built_again(config: ServiceConfig) -> None:
    embedder = load_embedder(config)
    build_index(config, embedder)
    before = (config.index_dir / INDEX_FILE).stat().st_ino
    told: list[tuple[int, int]] = []
    build_index(config, failing(embedder), lambda *state: told.append(state))

    assert (config.index_dir / INDEX_FILE).stat().st_ino == before
    assert told == []


def test_sentences_are_added_where_they_are_needed_and_then_kept(config: ServiceConfig) -> None:
    def n_sentences(**given: bool) -> int:
        index = open_index(build_index(config, load_embedder(config), **given))
        index.close()
        return len(index.sentence_vectors)

    assert n_sentences(with_sentences=False) == 0
    n = n_sentences()
    assert n > 0
    assert n_sentences(with_sentences=False) == n


def test_a_build_that_fails_leaves_the_old_index_and_nothing_else(config: ServiceConfig) -> None:
    embedder = load_embedder(config)
    build_index(config, embedder)
    before = open_index(config.index_dir).meta
    write_document(config.corpus, "codes", "# 错误码\n\n新的正文。\n")
    with pytest.raises(KilledError):
        build_index(config, failing(embedder))

    assert open_index(config.index_dir).meta == before
    assert {path.name for path in config.index_dir.iterdir()} == {INDEX_FILE, "build.lock"}


def test_a_killed_build_leaves_the_old_index(config: ServiceConfig) -> None:
    embedder = load_embedder(config)
    build_index(config, embedder)
    before = open_index(config.index_dir).meta
    write_document(config.corpus, "codes", "# 错误码\n\n新的正文。\n")
    program = (
        "import os, signal, sys\nfrom pathlib import Path\n"
        "sys.path.insert(0, sys.argv[2])\n"
        "from service_corpus import make_settings\n"
        "from ragwb.service.build import build_index\n"
        "from ragwb.service.embedding import load_embedder\n"
        "config = make_settings(Path(sys.argv[1]))\n"
        "def kill(done, total):\n"
        "    if done == total: os.kill(os.getpid(), signal.SIGKILL)\n"
        "build_index(config, load_embedder(config), kill)\n"
    )
    tests = Path(__file__).parent
    home = config.corpus.parent
    done = subprocess.run(
        [sys.executable, "-c", program, str(home), str(tests)], cwd=tests.parent, check=False
    )

    assert done.returncode == -signal.SIGKILL
    assert list(config.index_dir.glob(f"{INDEX_FILE}.partial-*"))
    assert open_index(config.index_dir).meta == before
    build_index(config, embedder)
    assert open_index(config.index_dir).meta != before
    assert not list(config.index_dir.glob(f"{INDEX_FILE}.partial-*"))


def test_an_open_index_stays_as_it_was_opened(config: ServiceConfig) -> None:
    embedder = load_embedder(config)
    build_index(config, embedder)
    opened = open_index(config.index_dir)
    texts = [chunk.text for chunk in opened.iter_chunks()]
    write_document(config.corpus, "codes", "# 错误码\n\n新的正文。\n")
    build_index(config, embedder)

    assert [chunk.text for chunk in opened.iter_chunks()] == texts


def test_progress_is_told_in_distinct_texts(config: ServiceConfig) -> None:
    told: list[tuple[int, int]] = []
    build_index(config, load_embedder(config), lambda *state: told.append(state))

    assert told == sorted(told)
    assert len({total for _, total in told}) == 1
    assert told[-1][0] == told[-1][1] > 0


def test_faults_of_the_corpus_are_raised_before_anything_is_written(tmp_path: Path) -> None:
    write_corpus(tmp_path / "corpus")
    write_document(tmp_path / "corpus", "bad", "正文\n", status="live")
    config = make_settings(tmp_path)

    with pytest.raises(DocumentError, match="status"):
        build_index(config, load_embedder(config))
    assert not config.index_dir.exists()
