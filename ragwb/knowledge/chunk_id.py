"""The id of a chunk: same inputs, same id, on every machine; any of them changed, another id.

Source: the evaluation protocol, "Stable chunk id".
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Sequence

_LINE_END = re.compile(r"\r\n?")
_HEX_DIGITS = 24


def normalise(text: str) -> str:
    """A text in NFC, with LF as line end and without the white space at its end."""
    return unicodedata.normalize("NFC", _LINE_END.sub("\n", text)).rstrip()


def chunk_id(
    *,
    tenant: str,
    document_id: str,
    document_version: str,
    strategy: str,
    strategy_version: str,
    ordinal: int,
    heading_path: Sequence[str],
    body: str,
) -> str:
    """`chunk-` and the first 24 hex digits of SHA-256 over the canonical JSON of the arguments.

    Canonical: keys sorted, no spaces, UTF-8 without escapes; `body` is normalised, the rest is
    taken as it is.

    Args:
        tenant: who owns the document.
        document_id: the document, over all its versions.
        document_version: one version of it.
        strategy: how it was cut.
        strategy_version: changes whenever the same input would be cut differently.
        ordinal: the chunk's place in the document, from 0.
        heading_path: headings above the chunk, the outermost first.
        body: the chunk's text.
    """
    canonical = json.dumps(
        {
            "tenant": tenant,
            "document_id": document_id,
            "document_version": document_version,
            "strategy": strategy,
            "strategy_version": strategy_version,
            "ordinal": ordinal,
            "heading_path": list(heading_path),
            "body": normalise(body),
        },
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
    )
    digest = hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()
    return f"chunk-{digest[:_HEX_DIGITS]}"
