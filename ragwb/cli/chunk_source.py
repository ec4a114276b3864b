"""Where commands get chunks to resolve evidence with: documents, an index, a service."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ragwb.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    import httpx

    from ragwb.golden.dataset import Dataset
    from ragwb.knowledge.chunking import ChunkingSpec
    from ragwb.records import Chunk
    from ragwb.settings import Settings

# As ragwb.service.index has it, whose imports need an extra that a folder of documents does not.
INDEX_FILE = "index.sqlite"


def load_chunks(folder: Path, spec: ChunkingSpec | None = None) -> Iterable[Chunk]:
    """The chunks of a folder: an index as it was built, or Markdown documents cut in memory.

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

        return open_index(folder).iter_chunks()
    documents = load_documents(folder)
    return [chunk.to_record() for chunk in chunk_documents(documents, spec or ChunkingSpec())]


def fetch_chunks(
    settings: Settings, dataset: Dataset, *, transport: httpx.AsyncBaseTransport | None = None
) -> list[Chunk]:
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
    return chunks
