"""What is a document, a chunk, an id?

Documents are Markdown files (`document`) with front matter (`front_matter`), cut by one of three
strategies (`chunking`) into pieces whose ids are the same on every machine (`chunk_id`); sizes are
tokens (`tokens`).
"""

from __future__ import annotations

from ragwb.knowledge.chunk_id import chunk_id
from ragwb.knowledge.chunking import (
    ChunkingSpec,
    DocumentChunk,
    chunk_document,
    chunk_documents,
)
from ragwb.knowledge.document import Document, load_documents, parse_document
from ragwb.knowledge.tokens import count_tokens, token_spans

__all__ = [
    "ChunkingSpec",
    "Document",
    "DocumentChunk",
    "chunk_document",
    "chunk_documents",
    "chunk_id",
    "count_tokens",
    "load_documents",
    "parse_document",
    "token_spans",
]
