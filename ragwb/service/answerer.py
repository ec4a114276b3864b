"""What makes answers of contexts: the extractive answerer, or a chat model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ragwb.chat.answering import Written, ask_model
from ragwb.chat.endpoint import ChatClient
from ragwb.chat.prompt import Passage, load_prompt
from ragwb.service.config import ServiceConfig
from ragwb.service.embedding import Embedder
from ragwb.service.evidence import Evidence
from ragwb.service.extractive import make_extractive, quote_answer
from ragwb.service.index import Index


@dataclass(frozen=True, slots=True)
class Answerer:
    """A way to answer, by the name that locks it.

    Attributes:
        model: the manifest's `answerModel`, with all that its answers depend on.
        write: from evidence to an answer.
        prompt_version, temperature: of a model; None for an answerer that asks none.
        close: frees what it holds.
    """

    model: str
    write: Callable[[Evidence], Written]
    prompt_version: str | None = None
    temperature: float | None = None
    close: Callable[[], None] = lambda: None


def load_answerer(config: ServiceConfig, index: Index, embedder: Embedder) -> Answerer | None:
    """The answerer of a configuration; None when it is off.

    Raises:
        UsageError: the prompt file or the key is not there.
    """
    if config.answerer == "off":
        return None
    if config.answerer == "chat":
        return _chat(config, index)
    extractive = make_extractive(config, index, embedder)
    return Answerer(extractive.name, lambda evidence: Written(quote_answer(extractive, evidence)))


def _chat(config: ServiceConfig, index: Index) -> Answerer:
    prompt = load_prompt(config.chat_prompt)
    client = ChatClient(config.chat)

    def write(evidence: Evidence) -> Written:
        passages = [
            Passage(chunk.chunk_id, chunk.text or "", chunk.title, chunk.document_version)
            for chunk in index.chunks(evidence.rows)
        ]
        return ask_model(client, prompt, evidence.question, passages)

    return Answerer(client.model.model, write, prompt.name, client.model.temperature, client.close)
