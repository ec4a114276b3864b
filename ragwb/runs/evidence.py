"""What a run asks a service besides its questions: chunks to resolve evidence, texts, explanations.

All of it is optional for a service. Before the questions a fault ends the run, since the evidence
would be resolved wrongly; after them it is only logged, since every answer is there already.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from ragwb.errors import SourceError
from ragwb.golden.dataset import Dataset
from ragwb.golden.passages import (
    ResolvedCase,
    referenced_chunk_ids,
    referenced_documents,
    resolve_dataset,
    suspects,
)
from ragwb.records import Chunk, Explanation
from ragwb.runs.asking import Clients, each
from ragwb.runs.results import ChunkText, Result
from ragwb.runs.store import Explained
from ragwb.sources.service import BATCH

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LostEvidence:
    """Chunks of the groups that a case lost at top K, and the repeats in which any was lost.

    Of a group without chunks, the expected ids that may be those (see `passages.suspects`).
    """

    case_id: str
    question: str
    access: str | None
    repeats: list[int]
    chunk_ids: dict[str, None]


@dataclass(slots=True)
class Seen:
    """What passes by while the results of a run are written: chunks, and evidence that was lost.

    Attributes:
        chunks: what the replies say of each chunk, by id.
        lost: by case id.
        cited: ids that answers cite, be they known or not.
    """

    cases: dict[str, ResolvedCase]
    top_k: int
    chunks: dict[str, ChunkText] = field(default_factory=dict)
    lost: dict[str, LostEvidence] = field(default_factory=dict)
    cited: set[str] = field(default_factory=set)

    def watch(self, results: Iterable[Result]) -> Iterator[Result]:
        """The results unchanged, noted on their way."""
        for result in results:
            for chunk in result.chunks:
                known = self.chunks.get(chunk.chunk_id)
                if known is None or (known.text is None and chunk.text is not None):
                    self.chunks[chunk.chunk_id] = chunk
            self.cited.update(result.citations or ())
            if result.status == "ok":
                self._note_lost(result)
            yield result

    def _note_lost(self, result: Result) -> None:
        resolved = self.cases[result.case_id]
        found = set(result.stages["results"].chunk_ids[: self.top_k])
        unheld = suspects(resolved)
        lost = [
            chunk_id
            for group in resolved.groups
            if found.isdisjoint(group.chunk_ids)
            for chunk_id in group.chunk_ids or unheld[group.index]
        ]
        if not lost:
            return
        entry = self.lost.setdefault(
            result.case_id,
            LostEvidence(result.case_id, result.question, resolved.case.access, [], {}),
        )
        entry.repeats.append(result.repeat)
        entry.chunk_ids.update(dict.fromkeys(lost))


async def resolve_golden(
    dataset: Dataset, clients: Clients, chunks: Iterable[Chunk] | None
) -> tuple[list[ResolvedCase], list[Chunk]]:
    """The golden cases with their evidence as chunk ids, and the chunks that this was found in.

    Args:
        dataset: the golden set.
        clients: by label of identity; evidence that only a label may read is asked for with its
            token.
        chunks: a local index to resolve with; None asks the service.

    Raises:
        UsageError: passages, and neither a local index nor `/chunks`.
        GoldenError: not one id or passage of the set is known there.
        SourceError: the service did not answer.
    """
    if chunks is None:
        known = await _ask_for_evidence(dataset, clients)
    else:
        known = list(chunks)
    return list(resolve_dataset(dataset, known)), known or []


async def _ask_for_evidence(dataset: Dataset, clients: Clients) -> list[Chunk] | None:
    documents = referenced_documents(dataset)
    chunk_ids = referenced_chunk_ids(dataset)
    found: dict[str, Chunk] = {}
    observed = False
    for client in clients.values():
        # Nothing to ask for is not an answer: the service is observed only where it was asked.
        told = [await client.get_document_chunks(documents)] if documents else []
        told += [await client.get_chunks(chunk_ids)] if chunk_ids else []
        for chunks in told:
            observed = observed or chunks is not None
            found.update((chunk.chunk_id, chunk) for chunk in chunks or ())
    return list(found.values()) if observed else None


async def explain_lost(
    lost: Iterable[LostEvidence], clients: Clients, *, concurrency: int
) -> bytes:
    """The lines of `explain.jsonl`: what the service knows of the chunks of lost groups.

    A case is asked once, as its own identity; its lines stand under every repeat that lost
    something. Empty when the service has no `/explain` for these tokens.
    """
    lines: dict[str, bytes] = {}
    closed: set[str | None] = set()

    async def ask(entry: LostEvidence) -> None:
        if entry.access in closed:
            return
        try:
            said = await clients[entry.access].explain(entry.question, list(entry.chunk_ids))
        except SourceError as error:
            _log.warning("lost evidence is not explained further: %s", error)
            said = None
        if said is None:
            closed.add(entry.access)
        else:
            lines[entry.case_id] = explain_lines(entry, said)

    entries = list(lost)
    await each(entries, ask, concurrency=concurrency)
    return b"".join(lines.get(entry.case_id, b"") for entry in entries)


def explain_lines(entry: LostEvidence, said: Sequence[Explanation]) -> bytes:
    """A line a repeat and explanation."""
    return b"".join(
        explain_line(Explained(entry.case_id, repeat, entry.question, explanation))
        for repeat in entry.repeats
        for explanation in said
    )


def explain_line(said: Explained) -> bytes:
    """A line of `explain.jsonl`: case_id, repeat, question, explanation."""
    line = {
        "case_id": said.case_id,
        "repeat": said.repeat,
        "question": said.question,
        "explanation": said.explanation.model_dump(),
    }
    return json.dumps(line, ensure_ascii=False).encode() + b"\n"


async def complete_chunks(
    seen: Seen, known: Iterable[Chunk], clients: Clients, *, concurrency: int
) -> list[ChunkText]:
    """What is known of every chunk that came back, is cited or is evidence, ordered by id.

    Texts and offsets that the replies did not give are asked for, one identity after the other.
    Evidence that the service does not know either is left out.
    """
    chunks = dict(seen.chunks)
    for chunk in known:
        chunks[chunk.chunk_id] = _merged(chunks.get(chunk.chunk_id), chunk)
    evidence = {
        chunk_id
        for resolved in seen.cases.values()
        for group in resolved.groups
        for chunk_id in group.chunk_ids
    }
    for label in clients:
        missing = {c.chunk_id for c in chunks.values() if c.text is None or c.start is None}
        missing |= evidence - chunks.keys()
        await _fetch(sorted(missing), label, clients, chunks, concurrency)
    for label in clients:
        # Apart from the others, since a model may cite what no service takes for an id.
        await _fetch(sorted(seen.cited - chunks.keys()), label, clients, chunks, concurrency)
    return [chunks[chunk_id] for chunk_id in sorted(chunks)]


async def _fetch(
    chunk_ids: Sequence[str],
    label: str | None,
    clients: Clients,
    chunks: dict[str, ChunkText],
    concurrency: int,
) -> None:
    closed = False

    async def ask(batch: Sequence[str]) -> None:
        nonlocal closed
        if closed:
            return
        try:
            found = await clients[label].get_chunks(batch)
        except SourceError as error:
            _log.warning("texts of chunks are not fetched further: %s", error)
            found = None
        closed = found is None
        for chunk in found or ():
            if chunk.chunk_id in batch:
                chunks[chunk.chunk_id] = _merged(chunks.get(chunk.chunk_id), chunk)

    batches = [chunk_ids[start : start + BATCH] for start in range(0, len(chunk_ids), BATCH)]
    await each(batches, ask, concurrency=concurrency)


def _merged(known: ChunkText | None, chunk: Chunk) -> ChunkText:
    """What `/chunks` says of a chunk, and where it is silent what a reply said."""
    said = {name: value for name, value in chunk.model_dump().items() if value is not None}
    return replace(known or ChunkText(chunk.chunk_id), **said)
