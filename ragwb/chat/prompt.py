"""What a model is asked: a versioned prompt file, filled with passages and a question.

A prompt file is TOML: `version`, `system`, `passage` (with `{number}`, `{title}`, `{version}`,
`{text}`), `user` (with `{passages}`, `{question}`) and `structured`, whether a JSON schema goes
with it. Its name in manifests is its version and a hash of its words.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragwb.chat.endpoint import Message
from ragwb.errors import UsageError
from ragwb.files import read_toml
from ragwb.html import plain
from ragwb.settings import shared_file

_TEXTS = ("version", "system", "passage", "user")
_NEEDED = {"passage": ("{number}", "{text}"), "user": ("{passages}", "{question}")}
_SLOT = re.compile(r"\{(\w+)\}")
# What begins or ends a passage may not stand in one: else its text could speak from outside.
_BORDER = re.compile(r"<(?=\s*/?\s*passage\b)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk as it is put before a model."""

    chunk_id: str
    text: str
    title: str | None = None
    document_version: str | None = None


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt file's words.

    Attributes:
        name: its version and 12 hex digits of its hash; the manifest's `promptVersion`.
        structured: whether the endpoint is asked for JSON of a fixed shape.
    """

    name: str
    system: str
    passage: str
    user: str
    structured: bool = True


def load_prompt(path: Path | None = None) -> Prompt:
    """The prompt of a file; None: the one that comes with ragwb.

    Raises:
        UsageError: the file is not there, not TOML, lacks a text or one of its slots, or holds an
            unknown key.
    """
    path = path or shared_file("datasets", "answers", "prompt.toml")
    table = read_toml(path, UsageError)
    _check(table, path)
    words = [str(table[name]) for name in _TEXTS] + [str(table.get("structured", True))]
    digest = hashlib.sha256("\0".join(words).encode()).hexdigest()[:12]
    return Prompt(
        name=f"{table['version']}@{digest}",
        system=table["system"].strip(),
        passage=table["passage"].strip(),
        user=table["user"].strip(),
        structured=table.get("structured", True),
    )


def build_messages(prompt: Prompt, question: str, passages: Sequence[Passage]) -> list[Message]:
    """The messages that ask a question over passages, numbered from 1 in their order."""
    shown = "\n\n".join(
        _filled(
            prompt.passage,
            {
                "number": str(number),
                "title": _inside(passage.title or "").replace('"', "'"),
                "version": _inside(passage.document_version or "").replace('"', "'"),
                "text": _inside(passage.text.strip()),
            },
        )
        for number, passage in enumerate(passages, 1)
    )
    user = _filled(prompt.user, {"passages": shown, "question": _inside(question)})
    return [{"role": "system", "content": prompt.system}, {"role": "user", "content": user}]


def _filled(template: str, values: Mapping[str, str]) -> str:
    # In one pass: a slot that stands in a passage or in the question stays as it was written.
    return _SLOT.sub(lambda slot: values.get(slot[1], slot[0]), template)


def _inside(text: str) -> str:
    return _BORDER.sub("＜", text)


def _check(table: Mapping[str, Any], path: Path) -> None:
    unknown = sorted(set(table) - {*_TEXTS, "structured"})
    if unknown:
        raise UsageError(f"{path}: unknown key {plain(unknown[0])!r}")
    for name in _TEXTS:
        if not isinstance(table.get(name), str) or not table[name].strip():
            raise UsageError(f"{path}: {name} is missing: a prompt needs {', '.join(_TEXTS)}")
        for slot in _NEEDED.get(name, ()):
            if slot not in table[name]:
                raise UsageError(f"{path}: {name} has no {slot}")
    if not isinstance(table.get("structured", True), bool):
        raise UsageError(f"{path}: structured must be true or false")
