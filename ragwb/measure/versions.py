"""Values that a case pins and an answer contradicts: versions, codes, and what its claims say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ragwb.golden.case import Case
from ragwb.html import plain
from ragwb.measure.answered import AnsweredCase
from ragwb.measure.claims import find_claim
from ragwb.measure.statements import find_contradiction
from ragwb.measure.values import Kind, Value, find_values


@dataclass(frozen=True, slots=True)
class Contradicted:
    """A value of an answer that contradicts what its case pins.

    Attributes:
        said: the value in the answer's text.
        proof: a sentence with both.
    """

    said: Value
    proof: str


def contradicted_values(answered: AnsweredCase, kinds: Iterable[Kind]) -> Iterator[Contradicted]:
    """The values of an answer that contradict its case, each once.

    A version or code is contradicted when the answer names another one of the same shape and the
    pinned one nowhere: who names both may be comparing them. What the evidence or a claim of the
    case says itself contradicts nothing. A required claim is contradicted when
    the answer does not state it, and says the same words with another value.

    Args:
        answered: the answer, of mode answer.
        kinds: which kinds of values are pinned.

    Raises:
        MetricError: the pattern of a required claim takes too long.
    """
    pinned, case, text = set(kinds), answered.case.case, answered.text or ""
    told: set[int] = set()
    known = _known_values(case)
    for kind, wanted in (("version", _versions(case)), ("code", _codes(case))):
        found = _contradicted(wanted, text, kind, known) if kind in pinned else None
        if found is not None:
            told.add(found.said.start)
            yield found
    for claim in case.required_claims:
        if find_claim(claim, text) is not None:
            continue
        for wording in (claim.text, *claim.variants):
            both = find_contradiction(wording, text)
            if both is None or both.said.kind not in pinned or both.said.start in told:
                continue
            told.add(both.said.start)
            yield Contradicted(both.said, _proof(both.said, both.pinned.text))


def other_versions(answered: AnsweredCase) -> list[tuple[str, str, str]]:
    """Cited chunks of a required document in another version than the case pins.

    Returns:
        chunk id, document id, document version; in the order of the citations.
    """
    case = answered.case.case
    if case.required_version is None:
        return []
    wanted = case.required_version
    passages = (passage for group in case.evidence for passage in group.any_of)
    documents = {p.document_id for p in passages if p.document_version == wanted}
    labelled = (answered.chunks.get(i) for group in answered.case.groups for i in group.chunk_ids)
    documents |= {
        str(chunk.document_id) for chunk in labelled if chunk and chunk.document_version == wanted
    }
    found = []
    for chunk_id in answered.cited or ():
        chunk = answered.chunks.get(chunk_id)
        if chunk is None or chunk.document_id not in documents:
            continue
        if chunk.document_version not in (None, wanted):
            found.append((chunk_id, str(chunk.document_id), str(chunk.document_version)))
    return found


def _versions(case: Case) -> dict[str, str]:
    """The pinned version by its shape."""
    if case.required_version is None:
        return {}
    values = [v for v in find_values(f"v{case.required_version}") if v.kind == "version"]
    return {value.group: value.value for value in values}


def _codes(case: Case) -> dict[str, str]:
    """The code of each shape in question and required claims; of several of a shape none."""
    texts = [case.question, *(claim.text for claim in case.required_claims)]
    found: dict[str, set[str]] = {}
    for value in (value for text in texts for value in find_values(text)):
        if value.kind == "code":
            found.setdefault(value.group, set()).add(value.value)
    return {group: next(iter(codes)) for group, codes in found.items() if len(codes) == 1}


def _known_values(case: Case) -> frozenset[str]:
    """The values that stand in the case's evidence, claims and reference answer."""
    quotes = [p.quote for group in case.evidence for p in group.any_of if p.quote]
    wordings = [w for c in case.required_claims for w in (c.text, *c.variants)]
    texts = [*quotes, *wordings, case.reference_answer or ""]
    return frozenset(value.value for text in texts for value in find_values(text))


def _contradicted(
    wanted: dict[str, str], text: str, kind: str, known: frozenset[str]
) -> Contradicted | None:
    for group, value in wanted.items():
        said = [v for v in find_values(text) if v.kind == kind and v.group == group]
        others = [v for v in said if v.value not in known]
        if others and all(v.value != value for v in said):
            return Contradicted(others[0], _proof(others[0], value))
    return None


def _proof(said: Value, pinned: str) -> str:
    return f"says “{plain(said.text, width=40)}”, the case pins {plain(pinned, width=40)}"
