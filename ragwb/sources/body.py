"""Reading the body of a reply: decompressed piece by piece, and never beyond a size."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import httpx

from ragwb.errors import ReplyError
from ragwb.html import plain

# 100 results of 300 kB each; a body above it is a fault, not an answer.
LARGEST_BODY = 32 * 1024 * 1024
# What is asked for and understood. Codings upon codings, as in "gzip, gzip", make megabytes of
# bytes at each layer, and no service needs them.
ACCEPTED_CODING = "gzip"
_GZIP_WINDOW = 16 + zlib.MAX_WBITS
# Gives at most so many bytes of what a piece holds.
_Decode = Callable[[bytes, int], bytes]


async def read_body(response: httpx.Response, call: str) -> bytes:
    """The whole body of a reply that is open, decompressed.

    A refusal in another coding than gzip is read as empty: its status says enough.

    Args:
        response: opened with `stream=True`; the caller closes it.
        call: method and address, for messages.

    Raises:
        ReplyError: more than `LARGEST_BODY` bytes, a coding that was not asked for, or broken gzip.
    """
    coding = response.headers.get("content-encoding", "").strip().lower()
    if coding in {"", "identity"}:
        return await _read(response, call, lambda piece, _: piece)
    if coding not in {"gzip", "x-gzip"}:
        if not response.is_success:
            return b""
        raise ReplyError(
            f"{call}: a body in the content coding {plain(coding, width=40)!r}, "
            f"where {ACCEPTED_CODING} or none was asked for"
        )
    gzip = zlib.decompressobj(_GZIP_WINDOW)
    try:
        body = await _read(response, call, gzip.decompress)
    except zlib.error as error:
        raise ReplyError(f"{call}: a body whose compression is broken") from error
    if body and not gzip.eof:
        raise ReplyError(f"{call}: a body whose compression is broken: it ends too early")
    return body


async def _read(response: httpx.Response, call: str, decode: _Decode) -> bytes:
    pieces: list[bytes] = []
    room = LARGEST_BODY
    async for raw in response.stream:  # type: ignore[union-attr]  # async: an AsyncClient's
        piece = decode(raw, room + 1)
        room -= len(piece)
        if room < 0:
            raise ReplyError(
                f"{call}: a body of more than {LARGEST_BODY // 2**20} MiB, not read to its end"
            )
        pieces.append(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
