"""The reference knowledge service: what a service under evaluation looks like when it tells all.

`config` (settings), `corpus` → `build` → `index` (what is searched), `embedding` (texts to
vectors), `visibility` (who may see what), `pipeline` and `explain` (a question to results),
`auth`, `app` and `server` (the protocol over HTTP). Needs the extra `service`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragwb.lazy import load_lazily

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

__getattr__ = load_lazily(__name__, _HOMES)
