"""JSON objects in a file and the lines they start on: JSONL, objects that span lines, or one array.

JSONL is read line by line, so its size does not matter. The other two are what people's editors
and `python -m json.tool` write; they are read whole, as is a pipe.
"""

from __future__ import annotations

import codecs
import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from ragwb.errors import GoldenError
from ragwb.files import open_plain

# A case is a question with its labels: a line that is longer belongs to a file of another kind.
MAX_CASE_BYTES = 4_000_000
# A file that is not JSONL is held in memory; a bigger one can be written as JSONL.
MAX_WHOLE_BYTES = 64_000_000

_SPACE = re.compile(r"\s*")
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class RawCase:
    """One value of a file, or what is wrong at its place.

    Attributes:
        line: the line it starts on, from 1.
        value: what the JSON says, when `fault` is None.
        fault: why there is no value.
    """

    line: int
    value: Any = None
    fault: str | None = None


def read_raw_cases(path: Path) -> Iterator[RawCase]:
    """Every value of a file, in order.

    Raises:
        GoldenError: the file cannot be read.
    """
    try:
        with open_plain(path, most=MAX_WHOLE_BYTES) as file:
            yield from _read_cases(file)
    except OSError as error:
        raise GoldenError(f"{path}: cannot be read: {error.strerror}") from error


def _read_cases(file: BinaryIO) -> Iterator[RawCase]:
    lines = _read_lines(file)
    head = list(islice(lines, 2))
    if _is_jsonl([text for _, text in head]):
        for line, text in chain(head, lines):
            yield text if isinstance(text, RawCase) else _parse_line(line, text)
    else:
        yield from _read_whole(file)


def _read_lines(file: BinaryIO) -> Iterator[tuple[int, str | RawCase]]:
    """Numbered lines that are not blank; one that cannot be read as its fault."""
    for line, data in enumerate(iter(lambda: file.readline(MAX_CASE_BYTES), b""), start=1):
        encoding = _find_other_encoding(data) if line == 1 else None
        if encoding:
            yield line, RawCase(line, fault=f"{encoding}: save the file as UTF-8")
            return
        if len(data) == MAX_CASE_BYTES and not data.endswith(b"\n"):
            yield line, RawCase(line, fault=f"more than {MAX_CASE_BYTES} bytes: not a case")
            return
        try:
            text = data.decode("utf-8-sig" if line == 1 else "utf-8")
        except UnicodeDecodeError as error:
            fault = f"byte {error.start} of the line is not UTF-8: save the file as UTF-8"
            yield line, RawCase(line, fault=fault)
            continue
        if text.strip():
            yield line, text


def _find_other_encoding(data: bytes) -> str | None:
    """The encoding that a file's first bytes name, when it is not UTF-8."""
    # The mark of UTF-32 starts with that of UTF-16.
    if data.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "UTF-32"
    return "UTF-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else None


def _is_jsonl(head: list[str | RawCase]) -> bool:
    """Whether the first two lines hold an object each, be it a broken one."""
    texts = [text.rstrip() for text in head if isinstance(text, str)]
    if len(texts) < len(head) or not texts:
        return True
    first = texts[0].lstrip()
    if not first.startswith("{"):
        return not first.startswith("[")
    return _parse_line(1, first).fault is None or all(text[0] == "{" for text in texts[1:])


def _parse_line(line: int, text: str) -> RawCase:
    # With its end, what is missing at the end of a line would be missing at the start of the next.
    text = text.rstrip("\r\n")
    try:
        return RawCase(line, _check_text(text, _DECODER.decode(text)))
    except json.JSONDecodeError as error:
        return RawCase(line, fault=_describe(error))
    except (ValueError, RecursionError) as error:
        return RawCase(line, fault=f"not JSON: {error}")


def _describe(error: json.JSONDecodeError) -> str:
    # Some of the parser's messages expect a place, and end with "at".
    return f"not JSON: {error.msg.removesuffix(' at')} at character {error.colno}"


def _read_whole(file: BinaryIO) -> Iterator[RawCase]:
    """The objects of an array, or of a text one after the other, up to the first broken one."""
    if file.seek(0, os.SEEK_END) > MAX_WHOLE_BYTES:
        fault = f"more than {MAX_WHOLE_BYTES} bytes and not JSONL: write one case a line"
        yield RawCase(1, fault=fault)
        return
    file.seek(0)
    try:
        text = file.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        yield RawCase(1, fault=f"byte {error.start} is not UTF-8: save the file as UTF-8")
        return
    line, counted = 1, 0
    for at, value, problem in _walk(text):
        line += text.count("\n", counted, at)
        counted = at
        yield RawCase(line, value, problem)


def _walk(text: str) -> Iterator[tuple[int, Any, str | None]]:
    """(character, value, fault) of each object in a text."""
    at = _skip_space(text, 0)
    in_array = text.startswith("[", at)
    at = _skip_space(text, at + 1) if in_array else at
    while at < len(text):
        if in_array and text[at] == "]":
            rest = _skip_space(text, at + 1)
            if rest < len(text):
                yield rest, None, "more follows the array: keep one array"
            return
        try:
            value, end = _DECODER.raw_decode(text, at)
            yield at, _check_text(text[at:end], value), None
        except json.JSONDecodeError as error:
            yield error.pos, None, _describe(error)
            return
        except (ValueError, RecursionError) as error:
            yield at, None, f"not JSON: {error}"
            return
        at = _skip_space(text, end)
        if in_array and text.startswith(",", at):
            at = _skip_space(text, at + 1)
    if in_array:
        yield len(text), None, "not JSON: the array is not closed"


def _skip_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _check_text(source: str, value: Any) -> Any:
    """The value, unless an escape in it is half a character, which no file can be written with."""
    if "\\u" in source and _SURROGATE.search(json.dumps(value, ensure_ascii=False)):
        raise ValueError("half of a surrogate pair (\\ud800 to \\udfff) is not a character")
    return value


def _refuse_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    held = dict(pairs)
    if len(held) < len(pairs):
        # The parser would keep the last without a word.
        keys = [key for key, _ in pairs]
        twice = next(key for key, n in Counter(keys).items() if n > 1)
        raise ValueError(f"{json.dumps(twice)} stands twice in one object: keep one")
    return held


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number that JSON knows")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_refuse_repeats, parse_constant=_refuse_constant, strict=True
)
