"""Evidence of golden cases as chunk ids, for whatever chunking is in use.

Chunk ids change with every re-chunking, a passage does not. All chunks that hold a passage form one
group; a passage that no chunk holds is split, and each chunk of its smallest cover becomes a group.
Source: metrics.md, "Evidence as passages".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, PlainSerializer

from ragwb.errors import GoldenError, UsageError
from ragwb.golden.case import Case, EvidenceGroup, Passage
from ragwb.golden.chunk_index import ChunkIndex
from ragwb.golden.dataset import Dataset
from ragwb.golden.passage_search import FoundPassage, distinct, find_passage, touching_chunks
from ragwb.golden.quotes import NormalisedText, normalise_text
from ragwb.golden.spans import Span, merged
from ragwb.records import Chunk

NO_GROUPS = "no evidence groups"
RETIRED = "tier retired"

# First words of a note, by what it asks of whom: `drifted`, `differs` and `forbidden` are faults of
# the label, `missing` and `unknown` of the knowledge, `split` is a finding about the chunking.
# `hidden` is forbidden text that these chunks do not show: a service hides it from who may not read
# it, and among all chunks it is a label that watches nothing.
NOTE_KINDS = ("drifted", "differs", "missing", "unknown", "split", "gone", "forbidden", "hidden")


def _span_object(span: Span) -> dict[str, Any]:
    return span._asdict()


# In JSON an object with names, not the list that a tuple would be.
_SpanObject = Annotated[Span, PlainSerializer(_span_object)]


class _Resolved(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ResolvedGroup(_Resolved):
    """Chunks any one of which satisfies an evidence group.

    Attributes:
        index: the group's place in its case, from 0; a split passage makes several groups.
        chunk_ids: the alternatives; () when the knowledge has none, a group that is never found.
        hop: what the group contributes, for people.
        split: whether it was born of a passage that no chunk holds whole.
        label: the label it comes from: evidence[0] or expected_chunk_ids[0].
    """

    index: int
    chunk_ids: tuple[str, ...]
    hop: str | None = None
    split: bool = False
    label: str = ""


class ResolvedCase(_Resolved):
    """A golden case as it is scored; one line of a run's golden.jsonl.

    Attributes:
        groups: all needed; a case that must be refused or clarified mostly has none.
        forbidden_chunk_ids: what must not be retrieved, distinct.
        excluded: why the case is left out of the means, else None.
        notes: findings, each `kind label: text` with a kind of `NOTE_KINDS`.
        spans: the required passages, merged and sorted: of each group the first alternative that
            was found, at the first place where a chunk holds it.
    """

    case: Case
    groups: tuple[ResolvedGroup, ...] = ()
    forbidden_chunk_ids: tuple[str, ...] = ()
    excluded: str | None = None
    notes: tuple[str, ...] = ()
    spans: tuple[_SpanObject, ...] = ()


def resolve_dataset(dataset: Dataset, chunks: Iterable[Chunk] | None) -> list[ResolvedCase]:
    """The cases of a golden set with their evidence as chunk ids, in the order of the set.

    Args:
        dataset: the golden set.
        chunks: what the service or an index holds of `referenced_documents` and
            `referenced_chunk_ids`, or all of it; None when the service does not tell its chunks.

    Raises:
        GoldenError: not one id or document of the whole set is known: another id space, not a 0.
        UsageError: chunks is None and a case names its evidence as passages alone.
    """
    if chunks is None:
        _check_ids_suffice(dataset)
        return [_resolve_case(case, None) for case in dataset.cases]
    index = ChunkIndex(chunks)
    _check_id_space(dataset, index)
    return [_resolve_case(case, index) for case in dataset.cases]


def watch_forbidden(
    resolved: Iterable[ResolvedCase], chunks: Iterable[Chunk]
) -> list[ResolvedCase]:
    """The cases with the forbidden chunks that only the replies of a run told of.

    A service rightly hides another tenant's or department's chunks from `/chunks`. Should it return
    one all the same, its document and text in the reply say what it is. Where a reply does not tell
    document or version, the forbidden quote in its text is enough, unless the case requires it.

    Args:
        resolved: cases as resolved before the run.
        chunks: what the run has seen.
    """
    told = list(chunks)
    index, bare = ChunkIndex(told), _without_origin(told)
    watched = []
    for case in resolved:
        seen, _ = _resolve_forbidden(case.case, index)
        required = {name for group in case.groups for name in group.chunk_ids}
        quoted = (name for name in _quoting(case.case, bare) if name not in required)
        names = distinct((*case.forbidden_chunk_ids, *seen, *quoted))
        watched.append(case.model_copy(update={"forbidden_chunk_ids": names}))
    return watched


def _without_origin(chunks: Iterable[Chunk]) -> list[tuple[Chunk, NormalisedText]]:
    return [
        (chunk, normalise_text(chunk.text))
        for chunk in chunks
        if chunk.text is not None and (chunk.document_id is None or chunk.document_version is None)
    ]


def _quoting(case: Case, bare: Iterable[tuple[Chunk, NormalisedText]]) -> Iterator[str]:
    """Ids of chunks of untold origin that hold a forbidden quote."""
    quotes = [(p.document_id, p.quote) for p in case.forbidden_evidence if p.quote is not None]
    for chunk, view in bare if quotes else ():
        for document_id, quote in quotes:
            if chunk.document_id in (None, document_id) and view.find(quote):
                yield chunk.chunk_id


def suspects(resolved: ResolvedCase) -> dict[int, tuple[str, ...]]:
    """Expected ids that may be the chunks of a group without any, by the group's index.

    A passage that a service does not show has no chunks; the ids that the case expects and no group
    holds are what to ask about it. Where there are as many as such groups, each has its own. Under
    another chunking than the one that the set names they say nothing.
    """
    empty = [group.index for group in resolved.groups if not group.chunk_ids]
    held = {chunk_id for group in resolved.groups for chunk_id in group.chunk_ids}
    left = tuple(i for i in resolved.case.expected_chunk_ids if i not in held)
    if len(left) == len(empty):
        return {index: (chunk_id,) for index, chunk_id in zip(empty, left, strict=True)}
    return dict.fromkeys(empty, left)


def referenced_documents(dataset: Dataset) -> list[tuple[str, str | None]]:
    """(document_id, document_version) of all passages of cases that are asked, distinct, sorted."""
    named = {
        (passage.document_id, passage.document_version)
        for case in _asked(dataset)
        for passage in _passages(case)
    }
    return sorted(named, key=lambda name: (name[0], name[1] or ""))


def referenced_chunk_ids(dataset: Dataset) -> list[str]:
    """Chunk ids that the cases that are asked expect or forbid, distinct, sorted."""
    return sorted(
        {
            chunk_id
            for case in _asked(dataset)
            for chunk_id in (*case.expected_chunk_ids, *case.forbidden_chunk_ids)
        }
    )


def _resolve_case(case: Case, index: ChunkIndex | None) -> ResolvedCase:
    if not case.is_asked:
        return ResolvedCase(case=case, excluded=RETIRED)
    parts = list(_resolve_groups(case, index))
    groups = [group for part in parts for group in part.groups]
    notes = [note for part in parts for note in part.notes]
    forbidden, forbidden_notes = _resolve_forbidden(case, index)
    drifted = next((note for note in notes if note.startswith("drifted ")), None)
    if drifted is not None:
        excluded: str | None = "drifted: " + drifted.removeprefix("drifted ")
    else:
        excluded = _excluded_by_mode(case, has_groups=bool(groups))
    required = {name for group in groups for name in group.chunk_ids}
    both = [f"forbidden {name}: holds required text too" for name in forbidden if name in required]
    return ResolvedCase(
        case=case,
        groups=tuple(
            group.model_copy(update={"index": place}) for place, group in enumerate(groups)
        ),
        forbidden_chunk_ids=forbidden,
        excluded=excluded,
        notes=(*notes, *_compare_ids(case, groups, index), *forbidden_notes, *both),
        spans=tuple(merged(part.span for part in parts if part.span is not None)),
    )


def _excluded_by_mode(case: Case, *, has_groups: bool) -> str | None:
    """Why a case whose labels hold is no retrieval case; its groups are watched all the same."""
    if not has_groups:
        return NO_GROUPS
    return None if case.mode == "answer" else f"mode {case.mode}"


@dataclass(frozen=True, slots=True)
class _Part:
    """What one label of a case resolves to."""

    groups: list[ResolvedGroup]
    notes: list[str]
    span: Span | None = None


def _resolve_groups(case: Case, index: ChunkIndex | None) -> Iterator[_Part]:
    if case.evidence and index is not None:
        for place, group in enumerate(case.evidence):
            yield _resolve_group(group, f"evidence[{place}]", index)
        return
    for place, chunk_id in enumerate(case.expected_chunk_ids):
        label = f"expected_chunk_ids[{place}]"
        yield _Part([ResolvedGroup(index=0, chunk_ids=(chunk_id,), label=label)], [])


def _resolve_group(group: EvidenceGroup, label: str, index: ChunkIndex) -> _Part:
    """The holders of all alternatives; when none is held, the first split one's cover."""
    found = [find_passage(passage, index) for passage in group.any_of]
    held = [passage for passage in found if passage.state == "held"]
    split = [passage for passage in found if passage.state == "split"]
    used = held or split[:1]
    if not used:
        # One drifted alternative is enough: the label is at fault, and no score would be fair.
        state = "drifted" if any(passage.state == "drifted" for passage in found) else "missing"
        details = "; ".join(passage.detail for passage in found)
        empty = ResolvedGroup(index=0, chunk_ids=(), hop=group.hop, label=label)
        return _Part([empty], [f"{state} {label}: {details}"])
    notes = [f"split {label}: {used[0].detail}"] if not held else []
    notes += [
        f"gone {label}.any_of[{place}]: {passage.detail}"
        for place, passage in enumerate(found)
        if passage.state in ("drifted", "missing")
    ]
    all_holders = distinct(name for passage in held for ids in passage.groups for name in ids)
    groups = [
        ResolvedGroup(index=0, chunk_ids=ids, hop=group.hop, split=not held, label=label)
        for ids in ((all_holders,) if held else used[0].groups)
    ]
    return _Part(groups, notes, used[0].span)


def _resolve_forbidden(case: Case, index: ChunkIndex | None) -> tuple[tuple[str, ...], list[str]]:
    """Ids that must not come: those named, and those with a forbidden passage or a part of it."""
    names = list(case.forbidden_chunk_ids)
    notes: list[str] = []
    for place, passage in enumerate(case.forbidden_evidence):
        found = find_passage(passage, index) if index is not None else None
        if index is not None and found is not None and found.state == "split":
            names.extend(touching_chunks(passage, index))
        elif found is not None and found.groups:
            names.extend(found.groups[0])
        else:
            notes.append(_describe_unwatched(f"forbidden_evidence[{place}]", passage, found))
    return distinct(names), notes


def _describe_unwatched(label: str, passage: Passage, found: FoundPassage | None) -> str:
    """The note on a forbidden passage that no chunk holds."""
    detail = found.detail if found is not None else "the service does not tell its chunks"
    # A version that is shown and says something else is a fault of the label; without a version
    # the text may stand in one that is not shown.
    is_drifted = found is not None and found.state == "drifted" and passage.document_version
    kind = "forbidden" if is_drifted else "hidden"
    return f"{kind} {label}: watched in the replies alone: {detail}"


def _compare_ids(
    case: Case, groups: list[ResolvedGroup], index: ChunkIndex | None
) -> Iterator[str]:
    """Notes on ids that the index does not hold, and on ids that the evidence does not lead to."""
    if index is None:
        return
    means = "the evidence scores" if case.evidence else "re-chunked or removed"
    for place, name in enumerate(case.expected_chunk_ids):
        if name not in index:
            yield f"unknown expected_chunk_ids[{place}]: {name} is not in the index: {means}"
    for place, name in enumerate(case.forbidden_chunk_ids):
        if name not in index:
            yield f"hidden forbidden_chunk_ids[{place}]: {name} is not in the index"
    if case.evidence and all(name in index for name in case.expected_chunk_ids):
        yield from _compare_groups(case.expected_chunk_ids, groups)


def _compare_groups(expected: tuple[str, ...], groups: list[ResolvedGroup]) -> Iterator[str]:
    # Only under the chunking that the ids are of can the two be compared.
    if not expected:
        return
    led_to = {name for group in groups for name in group.chunk_ids}
    for place, name in enumerate(expected):
        if name not in led_to:
            yield f"differs expected_chunk_ids[{place}]: {name} holds no evidence of the case"
    for group in groups:
        if group.chunk_ids and not {*group.chunk_ids} & {*expected}:
            yield f"differs {group.label}: no expected id is among {', '.join(group.chunk_ids)}"


def _check_ids_suffice(dataset: Dataset) -> None:
    lacking = [case.id for case in _asked(dataset) if case.evidence and not case.expected_chunk_ids]
    if lacking:
        raise UsageError(
            f"{dataset.path or dataset.version}: {len(lacking)} cases name passages alone (first"
            f" {lacking[0]}) and the service does not tell its chunks: give --index DIR"
        )


def _check_id_space(dataset: Dataset, index: ChunkIndex) -> None:
    names = referenced_chunk_ids(dataset)
    documents = {document_id for document_id, _ in referenced_documents(dataset)}
    if not names and not documents:
        return
    if any(name in index for name in names) or any(index.bodies(name, None) for name in documents):
        return
    asked = f"its {len(names)} chunk ids and {len(documents)} documents"
    where = dataset.path or dataset.version
    if not len(index):
        raise GoldenError(
            f"{where}: {asked}: not one chunk can be read: check who asks (tenant, departments) "
            "and what is asked (the base URL, the corpus)"
        )
    raise GoldenError(
        f"{where}: another id space: none of {asked} is among the {len(index)} chunks: check "
        "what is asked (the index, the corpus or the base URL)"
    )


def _asked(dataset: Dataset) -> Iterator[Case]:
    return (case for case in dataset.cases if case.is_asked)


def _passages(case: Case) -> Iterator[Passage]:
    for group in case.evidence:
        yield from group.any_of
    yield from case.forbidden_evidence
