"""The reference knowledge service: what a service under evaluation looks like when it tells all.

`config` (settings), `corpus` → `build` → `index` (what is searched), `embedding` (texts to
vectors), `visibility` (who may see what), `pipeline` and `explain` (a question to results),
`auth`, `app` and `server` (the protocol over HTTP). Needs the extra `service`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ragwb.service.build import build_index as build_index
    from ragwb.service.config import ServiceConfig as ServiceConfig
    from ragwb.service.index import open_index as open_index
    from ragwb.service.server import serve as serve
    from ragwb.service.server import serving as serving

_HOMES = {
    "ServiceConfig": "config",
    "build_index": "build",
    "open_index": "index",
    "serve": "server",
    "serving": "server",
}
__all__ = ["ServiceConfig", "build_index", "open_index", "serve", "serving"]


def __getattr__(name: str) -> Any:
    """Import a name of the package's face when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
