"""Who may see what, and now: the reasons that keep a document from an identity."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable
from dataclasses import dataclass

from ragwb.knowledge.document import Document

# From "whose is it" to "which one is it": each reason only says something to people for whom those
# before it do not hold, so the first one is the one to report.
REASONS = ("TENANT", "STATUS", "ACL", "EFFECTIVE_TIME", "VERSION")

_NUMBER = re.compile(r"(\d+)")
DocumentKey = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is asking, from the token or the fixed local identity.

    Attributes:
        departments: what the caller belongs to; documents may name some of them.
        scopes: what the caller may call.
    """

    subject: str
    tenant: str
    departments: tuple[str, ...]
    scopes: frozenset[str]


def newest_versions(documents: Iterable[Document], today: datetime.date) -> dict[DocumentKey, str]:
    """The version in force of each document: of those published and effective, the newest.

    Newest is what came into force last; of equals the greater version, numbers compared as such
    (2025.10 is after 2025.9).
    """
    newest: dict[DocumentKey, Document] = {}
    for document in documents:
        if document.status != "published" or not is_effective(document, today):
            continue
        key = (document.tenant, document.document_id)
        if key not in newest or _age(newest[key]) < _age(document):
            newest[key] = document
    return {key: document.version for key, document in newest.items()}


def is_effective(document: Document, today: datetime.date) -> bool:
    """Whether a document holds on a day: from its first day on, before the day it ends."""
    started = document.effective_from is None or document.effective_from <= today
    return started and (document.effective_to is None or today < document.effective_to)


def may_read(document: Document, caller: Caller) -> bool:
    """Whether a caller has the right to a document's text, be it in force or not.

    Superseded and expired versions can be read, since evidence that must not be found has to be
    named; drafts, withdrawn documents, other tenants' and other departments' cannot.
    """
    return (
        document.tenant == caller.tenant
        and document.status == "published"
        and _is_member(document, caller)
    )


def filter_reasons(
    document: Document,
    caller: Caller,
    today: datetime.date,
    newest: dict[DocumentKey, str],
) -> tuple[str, ...]:
    """Every reason that keeps a document from a caller today, in the order of `REASONS`.

    Returns:
        () when it is visible. Of another tenant's document nothing but TENANT is told.
    """
    if document.tenant != caller.tenant:
        return ("TENANT",)
    in_force = newest.get((document.tenant, document.document_id), document.version)
    holds = {
        "STATUS": document.status != "published",
        "ACL": not _is_member(document, caller),
        "EFFECTIVE_TIME": not is_effective(document, today),
        "VERSION": in_force != document.version,
    }
    return tuple(reason for reason in REASONS if holds.get(reason))


def _is_member(document: Document, caller: Caller) -> bool:
    return not document.departments or bool(set(document.departments) & set(caller.departments))


def _age(document: Document) -> tuple[datetime.date, list[tuple[int, int, str]]]:
    return (document.effective_from or datetime.date.min, _version_key(document.version))


def _version_key(version: str) -> list[tuple[int, int, str]]:
    """Pieces that compare numbers as numbers; a number stands before a word at the same place."""
    return [
        (0, int(piece), "") if piece.isdecimal() else (1, 0, piece)
        for piece in _NUMBER.split(version)
        if piece
    ]
