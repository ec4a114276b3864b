"""What each kind of fault does to the service: to its settings, its corpus, or between its stages.

A fault only ever hooks in at these three seams. `/explain` knows nothing of what happens between
the stages, so that it tells the truth about who may see what.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce

import numpy as np

from ragwb.errors import UsageError
from ragwb.html import plain
from ragwb.knowledge.chunking import ChunkingSpec, DocumentChunk, chunk_document
from ragwb.knowledge.document import Document
from ragwb.service.build import Edit
from ragwb.service.config import ServiceConfig
from ragwb.service.corpus import Corpus, make_corpus
from ragwb.service.fault_kinds import (
    ALL,
    AnyFault,
    CiteOlder,
    Configure,
    Cut,
    DocumentFault,
    Drop,
    DropWords,
    Duplicate,
    Leak,
    Rechunk,
    Relabel,
    Reply,
    Reverse,
    Supersede,
    is_planted_in,
    names_document,
)
from ragwb.service.faults import Plan
from ragwb.service.index import Index
from ragwb.service.pipeline import NOTHING, Between, Rewrite, load_rewrite
from ragwb.service.planted_answers import changed, citing, older_chunks, older_version
from ragwb.service.ranking import Mask, Ranking

# A document with its chunks.
Part = tuple[Document, tuple[DocumentChunk, ...]]
# Fields of a document, or of the settings, by name.
Values = dict[str, object]


@dataclass(frozen=True, slots=True)
class Planted:
    """A service with its faults, ready to be built.

    Attributes:
        config: with the settings that the faults bring; it is what `/manifest` tells.
        edit: what becomes of the corpus before it is indexed.
        rewrite: what becomes of a question, None when nothing does.
        between: from the index to what happens between the stages, by question.
        names: of the faults.
    """

    config: ServiceConfig
    edit: Edit
    rewrite: Rewrite | None
    between: Callable[[Index], Callable[[str], Between]]
    names: tuple[str, ...]


def plant(config: ServiceConfig, plan: Plan) -> Planted:
    """The service of a configuration with the faults of a plan; without any it is sound.

    An index that a fault touches stands in a folder of its own, beside the sound one, so that it
    knows the ids that were there before.

    Raises:
        UsageError: the settings do not go together, or the rewriter of the configuration is not
            there. Documents that the corpus does not have are found when it is edited.
    """
    faults = plan.faults
    sound = replace(config, **plan.settings)
    return Planted(
        config=_configured(sound, faults),
        edit=lambda corpus: _edited(corpus, faults, sound.chunking),
        rewrite=_rewriting(load_rewrite(config.rewrite), plan),
        between=lambda index: _between(index, plan),
        names=tuple(fault.name for fault in faults),
    )


def _configured(config: ServiceConfig, faults: Sequence[AnyFault]) -> ServiceConfig:
    for fault in faults:
        if isinstance(fault, Configure):
            config = replace(config, **fault.settings)
        elif isinstance(fault, DropWords):
            config = replace(config, rewrite=f"without words over {fault.longest_word} characters")
        elif isinstance(fault, Rechunk) and ALL in fault.documents:
            config = replace(config, chunking=_spec(fault, config.chunking))
    edits = [fault.model_dump_json() for fault in faults if type(fault) in _EDITS]
    if not edits:
        return config
    digest = hashlib.sha256("\n".join(edits).encode()).hexdigest()[:8]
    name = f"{config.index_dir.name}-{digest}"
    return replace(config, index_dir=config.index_dir.with_name(name))


def _edited(corpus: Corpus, faults: Sequence[AnyFault], spec: ChunkingSpec) -> Corpus:
    parts: list[Part] = list(zip(corpus.documents, corpus.chunks, strict=True))
    for fault in faults:
        edit = _EDITS.get(type(fault))
        if edit is None or not isinstance(fault, DocumentFault):
            continue
        _check_documents(fault, (document for document, _ in parts))
        parts = [
            after
            for part in parts
            for after in (edit(fault, part, spec) if _is_in(part[0], fault) else [part])
        ]
    if not parts:
        raise UsageError("the faults leave no document in the corpus: name some, not all")
    return make_corpus(parts)


def _check_documents(fault: DocumentFault, documents: Iterable[Document]) -> None:
    """Refuse a fault that names a document which the corpus does not have."""
    held = [(document.document_id, document.version) for document in documents]
    for name in fault.documents:
        if not any(names_document(name, *document) for document in held):
            raise UsageError(
                f"fault {fault.name}: no document {plain(name, width=60)!r} in the corpus: "
                "give an id, or id@version"
            )


def _is_in(document: Document, fault: DocumentFault) -> bool:
    return is_planted_in(fault, document.document_id, document.version)


def _drop(_fault: Drop, _part: Part, _spec: ChunkingSpec) -> list[Part]:
    return []


def _relabel(fault: Relabel, part: Part, _spec: ChunkingSpec) -> list[Part]:
    document, chunks = part
    said: Values = fault.to.model_dump(exclude_none=True)
    if fault.to.departments is not None:
        said["departments"] = tuple(fault.to.departments)
    return [(replace(document, **said), chunks)]  # type: ignore[arg-type]  # values of many types


def _rechunk(fault: Rechunk, part: Part, spec: ChunkingSpec) -> list[Part]:
    return [_chunked(part[0], _spec(fault, spec))]


def _supersede(_fault: Supersede, part: Part, spec: ChunkingSpec) -> list[Part]:
    document = part[0]
    return [part, _chunked(replace(document, version=f"{document.version}.1"), spec)]


def _add_older(_fault: CiteOlder, part: Part, spec: ChunkingSpec) -> list[Part]:
    return [_chunked(replace(part[0], version=older_version(part[0].version)), spec), part]


def _duplicate(fault: Duplicate, part: Part, spec: ChunkingSpec) -> list[Part]:
    document = part[0]
    copies = [
        replace(document, document_id=f"{document.document_id}-copy-{number}")
        for number in range(1, fault.copies + 1)
    ]
    return [*(_chunked(copy, spec) for copy in copies), part]


def _chunked(document: Document, spec: ChunkingSpec) -> Part:
    return document, tuple(chunk_document(document, spec))


def _spec(fault: Rechunk, spec: ChunkingSpec) -> ChunkingSpec:
    said = fault.model_dump(include={"strategy", "size", "overlap"}, exclude_none=True)
    return replace(spec, **said)


# The kinds that change the corpus: from a document in their scope to those that take its place.
_EDITS: Mapping[type, Callable[..., list[Part]]] = {
    Drop: _drop,
    Relabel: _relabel,
    Rechunk: _rechunk,
    Supersede: _supersede,
    Duplicate: _duplicate,
    CiteOlder: _add_older,
}


def _rewriting(rewrite: Rewrite | None, plan: Plan) -> Rewrite | None:
    for fault in plan.faults:
        if isinstance(fault, DropWords):
            rewrite = _dropping(fault.longest_word, _asked(fault, plan), rewrite)
    return rewrite


def _dropping(
    longest: int, asked: Callable[[str], bool], before: Rewrite | None
) -> Callable[[str], str | None]:
    import rjieba

    def rewrite(question: str) -> str | None:
        written = before(question) if before else None
        if not asked(question):
            return written
        return "".join(word for word in rjieba.cut(written or question) if len(word) <= longest)

    return rewrite


def _between(index: Index, plan: Plan) -> Callable[[str], Between]:
    changes = [
        (_asked(fault, plan), change)
        for fault in plan.faults
        if (change := _change(fault, index)) is not None
    ]
    return lambda question: reduce(
        _then, (change for asked, change in changes if asked(question)), NOTHING
    )


def _asked(fault: AnyFault, plan: Plan) -> Callable[[str], bool]:
    """Whether a question is one that the fault is planted for."""
    if ALL in fault.cases:
        return lambda _question: True
    return frozenset(plan.questions[case_id] for case_id in fault.cases).__contains__


def _change(fault: AnyFault, index: Index) -> Between | None:
    """What a fault does between the stages; None when it does nothing there."""
    if isinstance(fault, Leak):
        return Between(visible=_letting_in(fault, index))
    if isinstance(fault, Cut):
        cut = partial(_first, keep=fault.keep)
        return Between(fused=cut) if fault.after == "fused" else Between(reranked=cut)
    if isinstance(fault, Reverse):
        return Between(reranked=_reversed)
    if isinstance(fault, Reply):
        return Between(answer=partial(changed, fault))
    if isinstance(fault, CiteOlder):
        return Between(answer=partial(citing, older_chunks(index)))
    return None


def _then(first: Between, second: Between) -> Between:
    return Between(
        visible=lambda mask: second.visible(first.visible(mask)),
        fused=lambda ranking: second.fused(first.fused(ranking)),
        reranked=lambda ranking: second.reranked(first.reranked(ranking)),
        answer=lambda answer: second.answer(first.answer(answer)),
    )


def _letting_in(fault: Leak, index: Index) -> Callable[[Mask], Mask]:
    _check_documents(fault, index.documents)
    of_document = np.array([_is_in(document, fault) for document in index.documents])
    let_in = of_document[index.document_of]
    return lambda visible: visible | let_in


def _first(ranking: Ranking, keep: int) -> Ranking:
    return Ranking(ranking.rows[:keep], ranking.scores[:keep])


def _reversed(ranking: Ranking) -> Ranking:
    # The scores stay in place: a reranker that puts the worst first gives it the best score.
    return Ranking(ranking.rows[::-1], ranking.scores)
