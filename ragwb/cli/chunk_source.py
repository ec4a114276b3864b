"""Where commands get chunks to resolve evidence with: documents, an index, a service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ragwb.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    import httpx

    from ragwb.golden.dataset import Dataset
    from ragwb.knowledge.chunking import ChunkingSpec
    from ragwb.knowledge.document import Document
    from ragwb.records import Chunk
    from ragwb.settings import Settings

# As ragwb.service.index has it, whose imports need an extra that a folder of documents does not.
INDEX_FILE = "index.sqlite"


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Chunks, and what their source tells of where they are from.

    Attributes:
        chunks: of all tenants and states from a folder, what the token may read from a service.
        published: ids of the chunks of published documents.
        origins: source and version by document; None when the chunks are not all there is and
            nobody tells where they are from.
    """

    chunks: Sequence[Chunk]
    published: frozenset[str]
    origins: Mapping[str, tuple[str | None, str | None]] | None = None

    @property
    def is_whole(self) -> bool:
        """Whether the chunks are all that there is, so that what is absent is nowhere."""
        return self.origins is not None


def load_chunks(folder: Path, spec: ChunkingSpec | None = None) -> Iterable[Chunk]:
    """The chunks of a folder, as `load_knowledge` has them."""
    return load_knowledge(folder, spec).chunks


def load_knowledge(folder: Path, spec: ChunkingSpec | None = None) -> Knowledge:
    """What a folder holds: an index as it was built, or Markdown documents cut in memory.

    Args:
        folder: an index folder of the reference service, or documents with front matter.
        spec: how documents are cut, None for the defaults; an index is cut already.

    Raises:
        UsageError: a spec for an index, or an index of another version.
        DocumentError: the documents are wrong, or there are none.
    """
    from ragwb.knowledge.chunking import ChunkingSpec, chunk_documents
    from ragwb.knowledge.document import load_documents

    if (folder / INDEX_FILE).is_file():
        if spec is not None:
            raise UsageError(
                f"{folder} is an index, cut already: drop --strategy, --size, --overlap"
            )
        from ragwb.service.index import open_index

        index = open_index(folder)
        published = [
            chunk_id
            for row, chunk_id in enumerate(index.chunk_ids)
            if index.document(row).status == "published"
        ]
        chunks = list(index.iter_chunks())
        return Knowledge(chunks, frozenset(published), _origins(index.documents))
    documents = load_documents(folder)
    pieces = list(chunk_documents(documents, spec or ChunkingSpec()))
    states = {_name(document): document.status for document in documents}
    published = [
        piece.chunk_id
        for piece in pieces
        if states[piece.tenant, piece.document_id, piece.document_version] == "published"
    ]
    chunks = [piece.to_record() for piece in pieces]
    return Knowledge(chunks, frozenset(published), _origins(documents))


def _name(document: Document) -> tuple[str, str, str]:
    return document.tenant, document.document_id, document.version


def _origins(documents: Iterable[Document]) -> dict[str, tuple[str | None, str | None]]:
    return {
        "/".join(_name(document)): (document.source, document.version) for document in documents
    }


def fetch_knowledge(
    settings: Settings, dataset: Dataset, *, transport: httpx.AsyncBaseTransport | None = None
) -> Knowledge:
    """What a service holds of the documents and chunk ids that a golden set names.

    Args:
        settings: the service and its token.
        dataset: the golden set.
        transport: replaces the network; a seam for tests.

    Raises:
        UsageError: the service does not tell its chunks.
        SourceError: no answer, a refusal, or a reply that cannot be used.
    """
    from ragwb.golden.passages import referenced_chunk_ids, referenced_documents
    from ragwb.sources.background import run_in_thread
    from ragwb.sources.service import open_clients

    async def fetch() -> list[Chunk] | None:
        async with open_clients(settings, transport=transport) as clients:
            client = clients[None]
            of_documents = await client.get_document_chunks(referenced_documents(dataset))
            of_ids = await client.get_chunks(referenced_chunk_ids(dataset))
        if of_documents is None and of_ids is None:
            return None
        return [*(of_documents or ()), *(of_ids or ())]

    chunks = run_in_thread(fetch)
    if chunks is None:
        raise UsageError(f"{settings.base_url} does not tell its chunks: give --index DIR instead")
    return Knowledge(chunks, frozenset(chunk.chunk_id for chunk in chunks))
