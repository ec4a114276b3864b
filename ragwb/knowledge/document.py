"""A document of the knowledge: Markdown with front matter on whose it is and when it holds."""

from __future__ import annotations

import datetime
import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast, get_args

from ragwb.errors import DocumentError, Fault
from ragwb.knowledge.front_matter import quote, read_front_matter

DocumentStatus = Literal["published", "unpublished", "retired"]
FRONT_MATTER_KEYS = (
    "tenant",
    "document_id",
    "version",
    "title",
    "status",
    "departments",
    "effective_from",
    "effective_to",
    "source",
)

_REQUIRED = ("tenant", "document_id", "version", "title", "status")
_FENCE = re.compile(r"---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_LINE_END = re.compile(r"\r\n?")
# A text for people to read: a file that is longer is of another kind, or has no end.
MAX_DOCUMENT_BYTES = 16_000_000
# An id becomes part of a file name and of `document#L1-L9`.
_UNSAFE_IN_ID = re.compile(r"[\s/\\#\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Document:
    """One version of a document.

    Attributes:
        tenant: who owns it.
        document_id: the document, over all its versions; (tenant, document_id, version) is unique.
        version: this version, as text.
        title: for people.
        status: only what is published can be found.
        departments: who may read it; empty means everyone of the tenant.
        effective_from: first day on which it holds, None for always.
        effective_to: first day on which it no longer holds, None for never.
        source: where the text comes from.
        body: the text after the front matter, LF as line end; all offsets count its code points.
        path: the file, when it came from one.
    """

    tenant: str
    document_id: str
    version: str
    title: str
    status: DocumentStatus
    departments: tuple[str, ...]
    effective_from: datetime.date | None
    effective_to: datetime.date | None
    source: str | None
    body: str
    path: Path | None = None


def parse_document(text: str, *, path: Path | None = None) -> Document:
    """The document that a file's text holds.

    Args:
        text: the whole file; a BOM and CRLF are accepted.
        path: the file, for messages and for `Document.path`.

    Raises:
        DocumentError: the front matter is missing or wrong, or no text follows; all faults at once.
    """
    where = str(path) if path else "document"
    document, faults = _parse(text, path)
    if document is None:
        raise _document_error(where, faults)
    return document


def load_documents(folder: Path) -> list[Document]:
    """Every document of a folder: all `*.md` files below it, sorted by path, hidden folders aside.

    A link is followed where it ends inside the folder. A link that leads out of it, a device or a
    pipe, and a file of more than `MAX_DOCUMENT_BYTES` are faults.

    Raises:
        DocumentError: with the faults of all files, among them a (tenant, document_id, version)
            that two files claim; or the folder holds no document.
    """
    paths = [path for path in sorted(folder.rglob("*.md")) if not _is_hidden(path, folder)]
    if not paths:
        problem = "no *.md below it" if folder.is_dir() else "no such folder"
        raise DocumentError(f"{folder}: {problem}: give the folder of the knowledge documents")
    documents: list[Document] = []
    faults: list[Fault] = []
    for path in paths:
        document, found = _read(path, folder)
        faults.extend(found)
        if document is not None:
            documents.append(document)
    faults.extend(_find_duplicates(documents))
    if faults:
        raise _document_error(str(folder), faults)
    return documents


def _is_hidden(path: Path, folder: Path) -> bool:
    # Jupyter keeps copies in .ipynb_checkpoints: they would all be duplicates.
    return any(part.startswith(".") for part in path.relative_to(folder).parts)


def _read(path: Path, folder: Path) -> tuple[Document | None, list[Fault]]:
    try:
        data = _read_bytes(path, folder)
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"byte {error.start} is not UTF-8: save the file as UTF-8"
        return None, [Fault(str(path), "", message)]
    except OSError as error:
        return None, [Fault(str(path), "", f"cannot be read: {error.strerror}")]
    except DocumentError as error:
        return None, [Fault(str(path), "", str(error))]
    return _parse(text, path)


def _read_bytes(path: Path, folder: Path) -> bytes:
    """The bytes of a regular file of the folder, never more than a document may have."""
    real = os.path.realpath(path, strict=True)
    if not Path(real).is_relative_to(os.path.realpath(folder)):
        raise DocumentError("leads out of the folder of the documents: put the file itself there")
    # Opened before it is looked at, so that what is read is what was looked at.
    with open(real, "rb", opener=_open_at_once) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise DocumentError("is not a regular file: remove it or rename it")
        data = file.read(MAX_DOCUMENT_BYTES + 1)
    if len(data) > MAX_DOCUMENT_BYTES:
        raise DocumentError(f"more than {MAX_DOCUMENT_BYTES} bytes: split the document")
    return data


def _open_at_once(path: str, flags: int) -> int:
    # A pipe would keep the reader until somebody writes into it.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _parse(text: str, path: Path | None) -> tuple[Document | None, list[Fault]]:
    where = str(path) if path else "document"
    clean = _LINE_END.sub("\n", text.removeprefix("\ufeff"))
    fence = _FENCE.match(clean)
    if fence is None:
        message = "no front matter: the file must start with YAML between two lines of ---"
        return None, [Fault(f"{where}:1", "", message)]
    front, faults = read_front_matter(fence.group(1), where)
    if front is None:
        return None, faults
    faults.extend(Fault(where, key, message) for key, message in _check_front_matter(front))
    body = clean[fence.end() :]
    if not body.strip():
        faults.append(Fault(where, "", "no text after the front matter"))
    if faults:
        return None, faults
    return _build(front, body, path), []


def _check_front_matter(front: Mapping[Any, Any]) -> Iterable[tuple[str, str]]:
    """(key, message) for everything wrong with a front matter."""
    known = ", ".join(FRONT_MATTER_KEYS)
    for key in front:
        if key not in FRONT_MATTER_KEYS:
            yield quote(key), f"unknown key; known: {known}"
    for key in _REQUIRED:
        if front.get(key) in (None, ""):
            yield key, "missing: give a value"
        elif not isinstance(front[key], str):
            yield key, _describe_no_text(key, front[key])
    for key in ("document_id", "version"):
        if isinstance(front.get(key), str) and _UNSAFE_IN_ID.search(front[key]):
            yield (
                key,
                f"{_show(front[key])} holds white space, a slash or #: use letters, digits, - . _",
            )
    status = front.get("status")
    if isinstance(status, str) and status and status not in get_args(DocumentStatus):
        yield "status", f"{_show(status)} is not one of {', '.join(get_args(DocumentStatus))}"
    yield from _check_optional(front)


def _check_optional(front: Mapping[Any, Any]) -> Iterable[tuple[str, str]]:
    departments = front.get("departments")
    if departments is not None and not (
        isinstance(departments, list)
        and all(isinstance(name, str) and name.strip() for name in departments)
    ):
        yield "departments", "must be a list of names, [] for everyone of the tenant"
    source = front.get("source")
    if source is not None and not isinstance(source, str):
        yield "source", _describe_no_text("source", source)
    dates = []
    for key in ("effective_from", "effective_to"):
        try:
            dates.append(_parse_date(front.get(key)))
        except ValueError:
            yield key, f"{_show(front[key])} is not a day: write YYYY-MM-DD"
    if len(dates) == 2 and dates[0] and dates[1] and dates[1] <= dates[0]:
        yield "effective_to", f"{dates[1]} is not after effective_from {dates[0]}: it never holds"


def _describe_no_text(key: str, value: object) -> str:
    return f'must be text, found {_show(value)}: write {key}: "{quote(value)}"'


def _show(value: object) -> str:
    """A value as Python writes it, as short as a message needs."""
    try:
        return quote(repr(value))
    except ValueError:  # a number of too many digits, alone or in a list
        return quote(value)


def _parse_date(value: object) -> datetime.date | None:
    if value is None or (
        isinstance(value, datetime.date) and not isinstance(value, datetime.datetime)
    ):
        return value
    if isinstance(value, str):
        return datetime.date.fromisoformat(value)
    raise ValueError(value)


def _build(front: Mapping[str, Any], body: str, path: Path | None) -> Document:
    return Document(
        tenant=front["tenant"],
        document_id=front["document_id"],
        version=front["version"],
        title=front["title"],
        status=cast(DocumentStatus, front["status"]),
        departments=tuple(front.get("departments") or ()),
        effective_from=_parse_date(front.get("effective_from")),
        effective_to=_parse_date(front.get("effective_to")),
        source=front.get("source"),
        body=body,
        path=path,
    )


def _find_duplicates(documents: Iterable[Document]) -> Iterable[Fault]:
    first: dict[tuple[str, str, str], Document] = {}
    for document in documents:
        key = (document.tenant, document.document_id, document.version)
        held = first.setdefault(key, document)
        if held is not document:
            name = f"{document.document_id} version {document.version} of {document.tenant}"
            message = f"{name} already stands in {held.path}: give it another version"
            yield Fault(str(document.path), "version", message)


def _document_error(where: str, faults: list[Fault]) -> DocumentError:
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    first = faults[0] if faults else Fault(where, "", "no document")
    return DocumentError(f"{first}{more}", faults)
