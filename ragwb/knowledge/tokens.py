"""Token counts and token borders, by a tokenizer whose vocabulary comes in its wheel.

`TOKENIZER` is fixed: another one would cut other chunks, so that every strategy's version, and with
it every chunk id, would have to change.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Protocol, cast

TOKENIZER = "o200k_base"

# The tokenizer refuses a text of more than 200,000 tokens; a character has four at most.
_MAX_CHARS = 50_000
_SURROGATE = re.compile("[\ud800-\udfff]")


class _Encoding(Protocol):
    def encode_ordinary(self, text: str) -> list[int]: ...

    def decode_tokens_bytes(self, tokens: list[int]) -> list[bytes]: ...


@cache
def _encoding() -> _Encoding:
    # It opens its vocabularies by a function that Python 3.11 deprecates, the first at its import.
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        import bpe_openai  # half a second: only who counts pays

        return cast(_Encoding, bpe_openai.get_encoding(TOKENIZER))


def count_tokens(text: str) -> int:
    """Number of tokens of a text under `TOKENIZER`, ≥ 0; names of special tokens are plain text."""
    encoding = _encoding()
    return sum(len(encoding.encode_ordinary(part)) for _, part in _parts(text))


def token_spans(text: str) -> list[tuple[int, int]]:
    """Code-point spans [start, end) of a text's tokens.

    The spans tile the text. A code point that takes several tokens is one span, so there may be
    fewer spans than tokens, never more.

    Example: token_spans("退款𠮷") == [(0, 2), (2, 3)], with 5 tokens
    """
    encoding = _encoding()
    spans: list[tuple[int, int]] = []
    for offset, part in _parts(text):
        pieces = encoding.decode_tokens_bytes(encoding.encode_ordinary(part))
        spans.extend((offset + start, offset + end) for start, end in _whole_spans(pieces))
    return spans


def _whole_spans(pieces: list[bytes]) -> Iterator[tuple[int, int]]:
    """Spans of byte pieces, those that end inside a code point joined to the next."""
    start = 0
    held = b""
    for piece in pieces:
        held += piece
        try:
            end = start + len(held.decode("utf-8"))
        except UnicodeDecodeError:
            continue
        yield start, end
        start, held = end, b""


def _parts(text: str) -> Iterator[tuple[int, str]]:
    """The text in parts that the tokenizer takes, cut after a line break where there is one."""
    # A lone surrogate has no UTF-8; one replacement for each keeps every offset.
    clean = _SURROGATE.sub("\ufffd", text)
    start = 0
    while len(clean) - start > _MAX_CHARS:
        line_end = clean.rfind("\n", start, start + _MAX_CHARS) + 1
        end = line_end if line_end > start else start + _MAX_CHARS
        yield start, clean[start:end]
        start = end
    if start < len(clean):
        yield start, clean[start:]
