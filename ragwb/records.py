"""The protocol: what a service says, as records, and what a request must not say.

A list that is None was not observed; an empty list was observed and is empty. Ranks are positions
from 1 in the list as returned. JSON is camelCase, the attributes are snake_case. Source: the
evaluation protocol.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

CHANNEL_STAGES = ("vector", "keyword")
STAGES = (*CHANNEL_STAGES, "fused", "reranked", "results", "context")

FilterReason = Literal["ACL", "TENANT", "STATUS", "EFFECTIVE_TIME", "VERSION", "THRESHOLD"]
Mode = Literal["answer", "refuse", "clarify"]
RefusalReason = Literal[
    "NO_EVIDENCE",
    "NOT_PERMITTED",
    "OUT_OF_SCOPE",
    "VERSION_MISSING",
    "EVIDENCE_CONFLICT",
    "CONDITION_MISSING",
]
ChunkState = Literal["published", "unpublished", "retired", "missing"]
MAX_TOP_K = 100


T = TypeVar("T")


def _observed(entries: Any) -> Any:
    """A table without its entries that are null; None when it holds no others."""
    if not isinstance(entries, Mapping) or None not in entries.values():
        return entries
    return {name: value for name, value in entries.items() if value is not None} or None


# A table in which an entry that is null was not observed, like one that is absent.
Observed = Annotated[dict[str, T] | None, BeforeValidator(_observed)]


# What a run's tables hold; a number beyond is a fault of its field, and no run that cannot be kept.
Count32 = Annotated[int, Field(ge=0, le=2**31 - 1)]
Count64 = Annotated[int, Field(ge=0, le=2**63 - 1)]
# A position counts from 1.
Rank = Annotated[int, Field(ge=1, le=2**31 - 1)]


class Record(BaseModel):
    """Base of the protocol's records: camelCase outside, unknown fields ignored, frozen.

    NaN and infinities are refused: JSON has none, and a score that is none would sort anywhere.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="ignore",
        frozen=True,
        allow_inf_nan=False,
    )


class Candidate(Record):
    """A chunk at one position of one stage; everything but its id may be unobserved (None)."""

    chunk_id: str = Field(min_length=1)
    score: float | None = None
    document_id: str | None = None
    document_version: str | None = None
    title: str | None = None
    text: str | None = None


class Filtered(Record):
    """A chunk that a filter kept out of a channel's first candidates; id and reason only."""

    chunk_id: str = Field(min_length=1)
    channel: str | None = None
    reason: str


class Tokens(Record):
    """Token counts, each ≥ 0 or None; `context` is counted by the service's own tokenizer."""

    context: Count64 | None = None
    prompt: Count64 | None = None
    completion: Count64 | None = None


class Retrieval(Record):
    """The reply to one question.

    Attributes:
        channels: candidates after the filters, by channel.
        filtered: chunks that would stand in a channel's first candidates without the filters.
        fused: the merged list; reranked: None when no reranker ran or it was not observed.
        results: the list that counts, in the service's order, duplicates kept.
        context: ids put before the model, in order, after the token budget.
        timings_ms: milliseconds by stage and `total`, measured by the service.
    """

    trace_id: str | None = None
    effective_at: str | None = None
    rewritten_query: str | None = None
    channels: Observed[list[Candidate]] = None
    filtered: list[Filtered] | None = None
    fused: list[Candidate] | None = None
    reranked: list[Candidate] | None = None
    results: list[Candidate]
    context: list[str] | None = None
    tokens: Tokens | None = None
    timings_ms: Observed[float] = None
    model_calls: Count32 | None = None

    @property
    def observed(self) -> tuple[str, ...]:
        """Names of the fields that the service gave, in the protocol's order."""
        return tuple(name for name in type(self).model_fields if getattr(self, name) is not None)


class Citation(Record):
    """What an answer cites: a chunk, and the words of the answer that rest on it where known."""

    chunk_id: str = Field(min_length=1)
    claim: str | None = None


class Answer(Record):
    """What was made of the evidence.

    Attributes:
        text: as a person reads it; may be empty.
        citations: in the order of the text; None when the service does not tell them.
        refusal_reason: why it does not answer, a code of few (see `RefusalReason`), or its own.
        actions: names of what it says was done, such as a refund; None when not told.
    """

    mode: Mode
    text: str
    citations: list[Citation] | None = None
    refusal_reason: str | None = None
    actions: list[str] | None = None


class Answered(Retrieval):
    """The reply to a question that was to be answered: all of a retrieval, and the answer."""

    answer: Answer


class Chunk(Record):
    """A stored piece of a document; `start` and `end` are code points in the document's body.

    Both are None when one is no place in a text (negative, NaN, beyond 2**63 - 1).
    """

    chunk_id: str
    document_id: str | None = None
    document_version: str | None = None
    title: str | None = None
    text: str | None = None
    start: int | None = None
    end: int | None = None

    @model_validator(mode="before")
    @classmethod
    def _without_impossible_places(cls, said: Any) -> Any:
        if not isinstance(said, Mapping):
            return said
        places = [said.get(name) for name in ("start", "end")]
        if any(isinstance(p, int | float) and not 0 <= p <= 2**63 - 1 for p in places):
            return {**said, "start": None, "end": None}
        return said


class Explanation(Record):
    """What the service knows of one chunk for one question; what it does not say is None.

    Attributes:
        moved_to: ids that now hold the same text.
        filtered_by: reasons that keep the chunk from who asks.
        ranks: position by stage, from 1, without the candidate cut; None where the stage was looked
            at and does not hold the chunk.
    """

    chunk_id: str
    state: ChunkState
    moved_to: list[str] | None = None
    visible: bool
    filtered_by: list[str] | None = None
    ranks: dict[str, Rank | None] | None = None


class Identity(Record):
    """Who the token says is asking."""

    subject: str | None = None
    tenant: str | None = None
    departments: list[str] | None = None


class Chunking(Record):
    """How documents are cut: size and overlap in tokens."""

    model_config = ConfigDict(coerce_numbers_to_str=True)  # a version may be written as a number

    strategy: str | None = None
    version: str | None = None
    size: int | None = None
    overlap: int | None = None


class ServiceManifest(Record):
    """What the service locks for a run; what it does not say is None."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    protocol: str | None = None
    service: str | None = None
    code_version: str | None = None
    knowledge_snapshot: str | None = None
    index_version: str | None = None
    chunking: Chunking | None = None
    embedding_model: str | None = None
    embedding_dimensions: int | None = None
    distance: str | None = None
    candidate_k: int | None = None
    threshold: float | None = None
    keyword: bool | None = None
    rewrite: bool | str | None = None
    fusion: dict[str, object] | None = None
    rerank: str | None = None
    context_budget_tokens: int | None = None
    answer_model: str | None = None
    prompt_version: str | None = None
    temperature: float | None = None
    identity: Identity | None = None


# Rule 1 of the protocol: identity comes from the token, time from the server's clock.
# These name one of the two wherever they stand in a name, whatever stands beside them.
_ALWAYS = re.compile(r"(?<!lieu)tenant|tenanc|department|(?<!a)dept(?!h)|identity|identities")
_ALWAYS_WORDS = frozenset({"effective", "asof", "roles"})
# These do so alone, or beside nothing but the words that follow: subjectId, but not subject_line.
_WHO = frozenset(
    {
        *("subject", "subjects", "sub", "user", "users", "username", "uid", "uids", "principal"),
        *("principals", "caller", "employee", "org", "orgs", "organization", "organisation"),
        *("role", "login"),
    }
)
_BESIDE_WHO = frozenset(
    {
        *("id", "ids", "uuid", "key", "keys", "code", "codes", "name", "names", "no", "number"),
        *("list", "filter", "email", "info", "context", "claim", "token", "jwt", "auth", "session"),
        *("x", "my", "current", "end", "client", "by", "as", "for", "on", "of", "behalf"),
    }
)
_WHEN = frozenset({"date", "dates", "time", "times", "datetime", "timestamp", "now", "today", "at"})
_BESIDE_WHEN = frozenset(
    {
        *("x", "the", "of", "by", "as", "in", "on", "for", "from", "to", "begin", "start", "end"),
        *("before", "after", "since", "until", "between", "range", "filter", "valid", "validity"),
        *("current", "query", "search", "request", "req", "reference", "ref", "business", "server"),
        *("client", "snapshot", "utc", "iso", "local", "value", "point"),
    }
)
_BOUNDARY = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_KNOWN = sorted(_ALWAYS_WORDS | _WHO | _BESIDE_WHO | _WHEN | _BESIDE_WHEN, key=len, reverse=True)
_GLUED = re.compile(f"(?:{'|'.join(_KNOWN)})++")
_KNOWN_WORD = re.compile("|".join(_KNOWN))


@lru_cache(maxsize=4096)
def names_identity(name: str) -> bool:
    """Whether a field's name stands for who asks or at what time, in any spelling.

    Tenant, subject, department and time are found in tenantId, x_tenant, DEPT-IDS, callerTenant,
    userid, as_of_date; candidate, updated, subject_line, user_query and timeout are other words.
    The `role` of a chat message is one too, since that is how many endpoints take a question.
    """
    plain = unicodedata.normalize("NFKC", name)
    letters = re.sub(r"[\W\d_]+", "", plain).casefold()
    if _ALWAYS.search(letters):
        return True
    if letters == "role":
        return False
    parts = [part.lower() for part in _BOUNDARY.findall(plain)]
    return _stands_for_identity(parts) or _stands_for_identity([letters])


def _stands_for_identity(parts: Sequence[str]) -> bool:
    words: list[str] = []
    for part in parts:
        # "userid" is two words that nobody marked; "trousers" is one, and holds neither.
        words += _KNOWN_WORD.findall(part) if _GLUED.fullmatch(part) else [part]
    if _ALWAYS_WORDS.intersection(words) or ("as", "of") in pairwise(words):
        return True
    return any(
        not named.isdisjoint(words) and (named | beside).issuperset(words)
        for named, beside in ((_WHO, _BESIDE_WHO), (_WHEN, _BESIDE_WHEN))
    )
