"""The tokens of a run, and taking them out of everything that a service says.

A service may echo a token in any spelling: escaped in JSON, percent-encoded in an address, or in
lower case as a host's name. So texts are scrubbed after decoding, keys too, and without regard to
case. The clients of a run share one set, since a service knows the tokens of all of them.
"""

from __future__ import annotations

import json
import os
import re
from typing import Any
from urllib.parse import quote

import pydantic_core

from ragwb.errors import UsageError

# A shorter "token" would be found by chance in ordinary text and make holes in it.
SHORTEST_SCRUBBED = 8
SHOWN_AS = "[token]"
_BOM = b"\xef\xbb\xbf"


class Secrets:
    """Tokens that were ever in force, and texts without them."""

    def __init__(self) -> None:
        self._spellings: set[str] = set()
        self._pattern: re.Pattern[str] | None = None

    def add(self, token: str) -> None:
        """Remember a token; one of less than 8 characters is left alone."""
        if len(token) < SHORTEST_SCRUBBED or token in self._spellings:
            return
        self._spellings |= {token, quote(token, safe="")}
        # The longest first, so that a token that begins another one leaves no rest of it.
        spellings = sorted(self._spellings, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, spellings)), re.IGNORECASE)

    def update(self, other: Secrets) -> None:
        """Remember all tokens of another set too."""
        for spelling in other._spellings:
            self.add(spelling)

    def scrub(self, text: str) -> str:
        """Text without any of the tokens."""
        return text if self._pattern is None else self._pattern.sub(SHOWN_AS, text)

    def scrub_body(self, body: bytes) -> bytes:
        """A reply without any of the tokens; one that holds none comes back byte for byte."""
        if self._pattern is None:
            return body
        try:
            said = pydantic_core.from_json(body.removeprefix(_BOM))
        except ValueError:  # no JSON: nothing is decoded later either
            text = body.decode("utf-8", "surrogateescape")
            return self.scrub(text).encode("utf-8", "surrogateescape")
        clean = self._scrub_value(said)
        # NaN is not equal to itself, which only costs writing the reply again.
        if clean == said:
            return body
        return json.dumps(clean, ensure_ascii=False, separators=(",", ":")).encode()

    def _scrub_value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.scrub(value)
        if isinstance(value, list):
            return [self._scrub_value(item) for item in value]
        if isinstance(value, dict):
            return {self.scrub(key): self._scrub_value(item) for key, item in value.items()}
        return value


def key_from_environment(variable: str) -> str:
    """The key that an environment variable holds.

    Raises:
        UsageError: it holds none, or what is no key. A name that does not look like one may be the
            key itself, given by mistake, and is not repeated.
    """
    key = os.environ.get(variable, "").strip()
    if key and key.isascii() and key.isprintable():
        return key
    named = f" {variable}" if re.fullmatch("[A-Z_][A-Z0-9_]*", variable) else " that was named"
    raise UsageError(f"the environment variable{named} holds no key: set it to the key")
