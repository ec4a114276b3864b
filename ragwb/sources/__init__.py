"""Who tells us? Clients of the evaluation protocol and of other people's endpoints.

`ServiceClient` asks, `open_clients` connects one client an identity, `TokenSource` keeps a bearer
token in force and `load_mapping` reads `[tool.ragwb.source]`. Names are loaded when they are first
used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragwb.lazy import load_lazily

if TYPE_CHECKING:
    from ragwb.sources.mapping import SourceMapping, load_mapping
    from ragwb.sources.service import Reply, ServiceClient, open_clients
    from ragwb.sources.token import TokenSource, token_from_file, token_source

_HOME = {
    "Reply": "service",
    "ServiceClient": "service",
    "SourceMapping": "mapping",
    "TokenSource": "token",
    "load_mapping": "mapping",
    "open_clients": "service",
    "token_from_file": "token",
    "token_source": "token",
}
__all__ = [
    "Reply",
    "ServiceClient",
    "SourceMapping",
    "TokenSource",
    "load_mapping",
    "open_clients",
    "token_from_file",
    "token_source",
]

__getattr__ = load_lazily(__name__, _HOME)
