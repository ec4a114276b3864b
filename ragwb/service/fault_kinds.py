"""The kinds of faults, and what each says of itself in a file of faults."""

from __future__ import annotations

import datetime
import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from ragwb.knowledge.document import DocumentStatus
from ragwb.records import Mode

ALL = "*"

Text = Annotated[str, Field(min_length=1)]
# Documents as `id`, for all its versions, or `id@version`; cases by their id; "*" for all.
Names = Annotated[list[Text], Field(min_length=1)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def _check_pattern(text: str) -> str:
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"must be a regular expression: {error}") from error
    return text


class PlantedFault(_Table):
    """What every fault says of itself.

    Attributes:
        name: unique in its file.
        reason: the reason code that a triage has to name.
        evidence: whose chunks the golden evidence is resolved with: those of the sound service
            (`clean`: ids that the faulty one may not hold any more), or the faulty one's own.
        service: settings of the sound service that this fault is planted in, beside the file's.
        cases: golden cases whose questions it is planted for, or "*". A fault of the knowledge or
            of the settings holds for every question; a drill then only asks those of these cases.
        against: the fault of the same file whose service is the sound one here: what always
            refuses is right where it must be refused. None for the service without faults.
        explains: whether `/explain` may be asked. It tells a leak, and a leak goes before what is
            planted where both hold.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
    reason: Text
    evidence: Literal["clean", "planted"] = "clean"
    service: dict[str, Any] = Field(default_factory=dict)
    cases: Names = Field(default=[ALL])
    against: Text | None = None
    explains: bool = True


class DocumentFault(PlantedFault):
    """A fault of some documents, each named `id`, in all its versions, or `id@version`."""

    documents: Names


class Drop(DocumentFault):
    """The documents are not in the knowledge."""

    kind: Literal["drop"]


class Labels(_Table):
    """What the index says of a document instead; None leaves it as it is."""

    tenant: Text | None = None
    document_id: Text | None = None
    status: DocumentStatus | None = None
    departments: list[Text] | None = None
    effective_from: datetime.date | None = None
    effective_to: datetime.date | None = None


class Relabel(DocumentFault):
    """The index says something else of the documents; their chunks keep text and id."""

    kind: Literal["relabel"]
    to: Labels


class Rechunk(DocumentFault):
    """The documents are cut in another way; what is None is cut as the service cuts."""

    kind: Literal["rechunk"]
    strategy: Text | None = None
    size: Annotated[int, Field(ge=1)] | None = None
    overlap: Annotated[int, Field(ge=0)] | None = None


class Supersede(DocumentFault):
    """A newer version of each document, with the same text, is in force."""

    kind: Literal["supersede"]


class Duplicate(DocumentFault):
    """The documents stand in the knowledge several times; the copies come first among equals."""

    kind: Literal["duplicate"]
    copies: Annotated[int, Field(ge=1, le=100)]


class Leak(DocumentFault):
    """The filters let the documents through, whoever asks; `/explain` still says what is so."""

    kind: Literal["leak"]


class Configure(PlantedFault):
    """The service searches with other settings, and its manifest says so."""

    kind: Literal["configure"]
    settings: Annotated[dict[str, Any], Field(min_length=1)]


class DropWords(PlantedFault):
    """A rewrite of the question that drops its words of more than `longest_word` characters."""

    kind: Literal["drop_words"]
    longest_word: Annotated[int, Field(ge=0)]


class Cut(PlantedFault):
    """A list ends early: of the fused or the reranked one, only the first `keep` go on."""

    kind: Literal["cut"]
    after: Literal["fused", "reranked"]
    keep: Annotated[int, Field(ge=0)]


class Reverse(PlantedFault):
    """The reranker puts the worst first."""

    kind: Literal["reverse"]


class Reply(PlantedFault):
    """Answers are changed when they are made; what is None or empty stays as it is.

    Attributes:
        modes: the modes of the answers that are changed.
        mode, refusal_reason: what they become, both at once.
        text: what they say instead.
        without: a pattern; the lines of the text that it matches are left out.
        adds: a last line of the text.
        uncites: whether the citations are taken away.
        cites: ids that are cited besides.
        actions: names of what was done.
    """

    kind: Literal["reply"]
    modes: Annotated[list[Mode], Field(min_length=1)] = Field(default=["answer"])
    mode: Mode | None = None
    refusal_reason: Text | None = None
    text: Text | None = None
    without: Annotated[str, Field(min_length=1), AfterValidator(_check_pattern)] | None = None
    adds: Text | None = None
    uncites: bool = False
    cites: list[Text] = Field(default=[])
    actions: list[Text] = Field(default=[])


class CiteOlder(DocumentFault):
    """An older version of each document, with the same text, is in the knowledge and is cited."""

    kind: Literal["cite_older"]


AnyFault = Annotated[
    Drop
    | Relabel
    | Rechunk
    | Supersede
    | Duplicate
    | Leak
    | Configure
    | DropWords
    | Cut
    | Reverse
    | Reply
    | CiteOlder,
    Field(discriminator="kind"),
]


def is_planted_in(fault: DocumentFault, document_id: str, version: str | None) -> bool:
    """Whether a version of a document is among those that a fault is planted in."""
    return any(names_document(name, document_id, version) for name in fault.documents)


def names_document(name: str, document_id: str, version: str | None) -> bool:
    """Whether a name stands for a version of a document: `*`, its id, or id@version."""
    return name in (ALL, document_id, f"{document_id}@{version}")
