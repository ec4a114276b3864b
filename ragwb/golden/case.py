"""One golden case: a question with what must, may and must not happen.

Fields are snake_case; the camelCase spelling of the same names is read too, and so are the names
that existing golden files use (`_FOREIGN`, `_read_mode`, `_read_variants`). Unknown fields are
refused.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from hashlib import sha256 as sha256_of
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictInt,
    model_validator,
)
from pydantic_core import PydanticCustomError

from ragwb.golden.expansion import check_expansion
from ragwb.knowledge.chunk_id import normalise
from ragwb.records import Mode, RefusalReason

Tier = Literal["shadow", "blocking", "diagnostic", "retired"]

_CAMEL_HUMP = re.compile(r"(?<=[a-z0-9])([A-Z])")
# doc-id, doc-id@version, then #L18 or #L18-L31
_LINE_REFERENCE = re.compile(
    r"(?P<id>[^@#]+)(?:@(?P<version>[^#]+))?#L(?P<first>\d{1,9})(?:-L?(?P<last>\d{1,9}))?"
)
_FOREIGN = {
    "required_evidence": "evidence",
    "evidence_required": "evidence",
    "regression_owner": "owner",
}

MAX_PATTERN_CHARS = 2_000
MISSING_EVIDENCE = (
    "missing on a case to be answered: give evidence or expected_chunk_ids, or another mode"
)


def _fault(field: str, message: str) -> PydanticCustomError:
    """A fault of one field, found while looking at all of them."""
    return PydanticCustomError("golden", "{message}", {"field": field, "message": message})


def _show(value: object, limit: int = 60) -> str:
    """A value for a message, cut where a reader would stop."""
    text = repr(value)
    return text if len(text) <= limit else f"{text[:limit]}…"


def _check_label(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty")
    if text != text.strip() or not text.isprintable():
        raise ValueError("must not hold control characters, nor white space at its ends")
    return text


def _check_not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty")
    return text


def _check_distinct(values: tuple[str, ...]) -> tuple[str, ...]:
    twice = sorted(value for value, n in Counter(values).items() if n > 1)
    if twice:
        raise ValueError(f"{_show(twice[0])} is given twice: keep one")
    return values


def _sort_tags(tags: dict[str, str]) -> dict[str, str]:
    # The content hash must not depend on the order in which tags were typed.
    return dict(sorted(tags.items()))


def to_snake_case(name: str) -> str:
    """The snake_case spelling of a camelCase name; any other name as it is."""
    return _CAMEL_HUMP.sub(r"_\1", name).lower() if name[:1].islower() else name


Label = Annotated[str, AfterValidator(_check_label)]
Text = Annotated[str, AfterValidator(_check_not_blank)]
ChunkIds = Annotated[tuple[Label, ...], AfterValidator(_check_distinct)]


class Model(BaseModel):
    """Base of the golden models: frozen, unknown fields refused, camelCase names read."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _read_names(cls, data: Any) -> Any:
        if not isinstance(data, Mapping) or data.keys() <= cls.model_fields.keys():
            return data
        return _rename(data, cls._known_names())

    @classmethod
    def _known_names(cls) -> Mapping[str, str]:
        return {name: name for name in cls.model_fields}


def _rename(data: Mapping[str, Any], known: Mapping[str, str]) -> dict[str, Any]:
    """The data under the names of the model; names that it does not know are left to be refused."""
    renamed: dict[str, Any] = {}
    for name, value in data.items():
        target = known.get(to_snake_case(name), name) if isinstance(name, str) else name
        if target in renamed:
            raise _fault(name, f"gives {target} a second time: keep one")
        renamed[target] = value
    return renamed


class Passage(Model):
    """Evidence as a place in a document, which no re-chunking moves.

    Attributes:
        document_id: the document; document_version: None when any version will do.
        quote: the exact text; where it is given it decides, and any occurrence counts.
        sha256: of the normalised quote, or of the normalised text at the offsets or lines.
        start: first code point in the document's body; end: one past the last.
        lines: first and last line of the body, from 1, both included.
    """

    document_id: Label
    document_version: Label | None = None
    quote: Text | None = None
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    start: Annotated[StrictInt, Field(ge=0)] | None = None
    end: Annotated[StrictInt, Field(ge=1)] | None = None
    lines: tuple[StrictInt, StrictInt] | None = None

    @model_validator(mode="after")
    def _check_place(self) -> Self:
        if (self.start is None) != (self.end is None):
            raise ValueError("start and end go together: give both")
        if self.start is not None and self.end is not None and self.end <= self.start:
            raise ValueError(f"end {self.end} must be greater than start {self.start}")
        if self.lines is not None and not 1 <= self.lines[0] <= self.lines[1]:
            raise ValueError(f"lines {list(self.lines)} must be [first, last], counted from 1")
        if self.quote is None and self.start is None and self.lines is None:
            raise ValueError("says no place: give a quote, start and end, or lines")
        if self.quote and self.sha256 and self.sha256 != quote_sha256(self.quote):
            raise ValueError("sha256 is not that of the normalised quote: one of them was changed")
        return self


def quote_sha256(quote: str) -> str:
    """Hex SHA-256 of a quote in NFC, with LF as line end and without white space at its end."""
    return sha256_of(normalise(quote).encode("utf-8", "surrogatepass")).hexdigest()


def _read_passage(value: Any) -> Any:
    """`doc-x#L18-L31` as a passage; anything else as it is."""
    if not isinstance(value, str):
        return value
    match = _LINE_REFERENCE.fullmatch(value)
    if match is None:
        raise ValueError(f"{_show(value)} is not like document#L18-L31 or document@version#L18-L31")
    first = int(match["first"])
    return {
        "document_id": match["id"],
        "document_version": match["version"],
        "lines": (first, int(match["last"] or first)),
    }


def _read_group(value: Any) -> Any:
    """A passage that stands alone as a group of one."""
    if isinstance(value, Mapping) and ("any_of" in value or "anyOf" in value):
        return value
    return value if isinstance(value, EvidenceGroup) else {"any_of": [value]}


def _read_forbidden(value: Any) -> Any:
    """Forbidden groups as their passages: each of them must not be there."""
    if not isinstance(value, list | tuple):
        return value
    flat: list[Any] = []
    for entry in value:
        group = entry.get("any_of", entry.get("anyOf")) if isinstance(entry, Mapping) else None
        flat.extend(group if isinstance(group, list | tuple) else [entry])
    return flat


def _read_claim(value: Any) -> Any:
    return {"text": value} if isinstance(value, str) else value


ReadPassage = Annotated[Passage, BeforeValidator(_read_passage)]


class EvidenceGroup(Model):
    """Passages that can stand in for one another; a case needs one of each of its groups.

    Attributes:
        any_of: the alternatives, at least one.
        hop: what the group contributes, for people.
    """

    any_of: Annotated[tuple[ReadPassage, ...], Field(min_length=1)]
    hop: str | None = None


class Claim(Model):
    """A statement that an answer must or must not make.

    Attributes:
        text: the statement, for people and as its first accepted wording.
        variants: other accepted wordings.
        pattern: a regular expression that an accepted wording matches, at most 2,000 characters and
            of bounded counted repeats (see `golden.expansion`).
    """

    text: Text
    variants: tuple[Text, ...] = ()
    pattern: str | None = None

    @model_validator(mode="after")
    def _check_pattern(self) -> Self:
        pattern = self.pattern or ""
        if len(pattern) > MAX_PATTERN_CHARS:
            raise ValueError(f"pattern is longer than {MAX_PATTERN_CHARS} characters: shorten it")
        try:
            # A pattern that Python warns of will mean something else in a later version.
            with warnings.catch_warnings(action="error"):
                re.compile(pattern)
        except (Warning, re.error, RecursionError, OverflowError) as error:
            raise ValueError(f"pattern is not a regular expression: {error}") from error
        check_expansion(pattern)
        return self


ReadClaim = Annotated[Claim, BeforeValidator(_read_claim)]


class Case(Model):
    """One golden case.

    Attributes:
        dataset_version: the same in all cases of a file.
        id: unique in its set; (id, case_version) pairs results of different runs.
        mode: what the service must do: answer, refuse or clarify.
        expected_chunk_ids: one evidence group of one chunk each, under the chunking they came from.
        evidence: groups of passages, all needed; where given, they score under any chunking.
        forbidden_chunk_ids, forbidden_evidence: what must not be retrieved.
        required_claims, forbidden_claims: what the answer must state and must not state.
        required_version: the version that an answer must rest on.
        refusal_trigger: accepted reasons of a refusal, by the protocol's codes.
        tags: labels to slice by; risk: high fails when any repeat fails.
        weight: share in traffic, > 0; for the weighted mean beside the macro mean.
        tier: shadow, blocking (the headline and the gate), diagnostic, retired (not asked).
        set: core, incremental or online.
        access: label of the identity that asks; period: label of a past time for the history call.
    """

    dataset_version: Label
    id: Label
    case_version: Annotated[StrictInt, Field(ge=1)] = 1
    question: Text
    mode: Mode = "answer"
    expected_chunk_ids: ChunkIds = ()
    evidence: tuple[Annotated[EvidenceGroup, BeforeValidator(_read_group)], ...] = ()
    forbidden_chunk_ids: ChunkIds = ()
    forbidden_evidence: Annotated[tuple[ReadPassage, ...], BeforeValidator(_read_forbidden)] = ()
    reference_answer: str | None = None
    required_claims: tuple[ReadClaim, ...] = ()
    forbidden_claims: tuple[ReadClaim, ...] = ()
    required_version: Label | None = None
    refusal_trigger: tuple[RefusalReason, ...] = ()
    tags: Annotated[dict[Label, str], AfterValidator(_sort_tags)] = Field(default_factory=dict)
    risk: Literal["normal", "high"] = "normal"
    weight: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    tier: Tier = "blocking"
    set: Literal["core", "incremental", "online"] = "core"
    source: str | None = None
    owner: str | None = None
    annotators: tuple[str, ...] = ()
    note: str | None = None
    retired_reason: str | None = None
    access: Label | None = None
    period: Label | None = None
    knowledge_version: Label | None = None

    @model_validator(mode="before")
    @classmethod
    def _read_foreign(cls, data: Any) -> Any:
        if not isinstance(data, Mapping) or data.keys() <= cls.model_fields.keys():
            return data
        return _read_variants(_read_mode(_rename(data, cls._known_names())))

    @property
    def is_asked(self) -> bool:
        """Whether a run asks it; a retired case stays in the set and is not asked."""
        return self.tier != "retired"

    @classmethod
    def _known_names(cls) -> Mapping[str, str]:
        foreign = ("answerable", "should_refuse", "expected", "accepted_variants")
        return {name: name for name in (*cls.model_fields, *foreign)} | _FOREIGN

    @model_validator(mode="after")
    def _check_labels(self) -> Self:
        if self.mode == "answer" and not self.evidence and not self.expected_chunk_ids:
            raise _fault("evidence", MISSING_EVIDENCE)
        both = sorted({*self.expected_chunk_ids} & {*self.forbidden_chunk_ids})
        if both:
            raise _fault("forbidden_chunk_ids", f"{_show(both[0])} is expected too: keep one")
        return self


def _read_mode(data: dict[str, Any]) -> dict[str, Any]:
    """`answerable`, `should_refuse` and `expected: {mode}` as `mode`; they must agree with it."""
    told = dict(_read_flags(data))
    expected = data.pop("expected", None)
    if expected is not None:
        if not isinstance(expected, Mapping) or expected.keys() != {"mode"}:
            raise _fault("expected", 'must be {"mode": …} and nothing else')
        told["expected"] = [expected["mode"]]
    if not told:
        return data
    if "mode" in data:
        told["mode"] = [data["mode"]]
    left = [mode for mode in get_args(Mode) if all(mode in modes for modes in told.values())]
    if not left:
        raise _fault("mode", f"{' and '.join(told)} leave no mode that fits all: keep mode alone")
    return {**data, "mode": left[0]}


def _read_flags(data: dict[str, Any]) -> Iterable[tuple[str, list[Any]]]:
    """The modes that each of the two flags leaves open."""
    for name, if_true in (("answerable", "answer"), ("should_refuse", "refuse")):
        flag = data.pop(name, None)
        if flag is None:
            continue
        if not isinstance(flag, bool):
            raise _fault(name, f"must be true or false, found {_show(flag)}")
        yield name, [mode for mode in get_args(Mode) if (mode == if_true) is flag]


def _read_variants(data: dict[str, Any]) -> dict[str, Any]:
    """`accepted_variants`, wordings of the whole answer: stated, they state each of its claims."""
    variants = data.pop("accepted_variants", None)
    if not variants:
        return data
    if not isinstance(variants, list) or not all(isinstance(text, str) for text in variants):
        raise _fault("accepted_variants", "must be a list of texts")
    claims = data.get("required_claims") or [data.get("reference_answer") or variants[0]]
    if isinstance(claims, list):
        claims = [_widen_claim(claim, variants) for claim in claims]
    return {**data, "required_claims": claims}


def _widen_claim(claim: Any, variants: list[str]) -> Any:
    """The claim with these variants after its own; what is no claim as it is, to be refused."""
    claim = _read_claim(claim)
    own = claim.get("variants", []) if isinstance(claim, Mapping) else None
    return {**claim, "variants": [*own, *variants]} if isinstance(own, list) else claim


def lacks_evidence(data: Mapping[str, Any]) -> bool:
    """Whether raw data, in any spelling, name no evidence for a case to be answered.

    For data with other faults: a model is checked as a whole only when each of its fields is right.
    """
    try:
        named = _read_mode(_rename(data, Case._known_names()))
    except PydanticCustomError:
        return False
    answered = named.get("mode", "answer") == "answer"
    return answered and not named.get("evidence") and not named.get("expected_chunk_ids")
