"""What the service knows of given chunks for a question: state, filters, ranks without a cut."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from ragwb.records import ChunkState, Explanation
from ragwb.service.embedding import Vectors
from ragwb.service.index import Index
from ragwb.service.pipeline import (
    Pipeline,
    Timings,
    ask_channels,
    below_threshold,
    document_reasons,
    order,
    visible_rows,
)
from ragwb.service.ranking import Mask, Ranking, Scores, best
from ragwb.service.visibility import Caller

Rankings = dict[str, Ranking | None]


def explain(
    pipeline: Pipeline, caller: Caller, question: str, chunk_ids: Iterable[str]
) -> list[Explanation]:
    """What the service knows of chunks for a question that is taken as it stands, never rewritten.

    Ranks have neither candidate cut nor threshold. Those of a chunk that the caller may not see
    are the ones it would have if it alone were let in: whether a filter is all that is missing.

    Of another tenant's chunk nothing is told but TENANT: its state is always published, and it has
    no ranks and no place where its text went, since all of these say something of the text.

    Returns:
        One explanation per id, in the order asked; an unknown id has the state missing. An id that
        is asked several times is explained once, and told as often as it is asked.
    """
    asked, vector = ask_channels(pipeline, question, Timings())
    scores = {name: channel.scores() for name, channel in asked.items()}
    reasons = document_reasons(pipeline, caller, pipeline.clock())
    visible = visible_rows(pipeline.index, reasons)
    rank = partial(_rank, pipeline, scores, vector)
    of_visible = rank(visible)

    def explain_one(chunk_id: str) -> Explanation:
        row = pipeline.index.row_of.get(chunk_id)
        if row is None:
            moved = _moved(pipeline.index, chunk_id, caller)
            return _untold(chunk_id, of_visible, state="missing", moved_to=moved)
        if pipeline.index.document(row).tenant != caller.tenant:
            return _untold(chunk_id, of_visible, state="published", filtered_by=["TENANT"])
        held = of_visible if visible[row] else rank(_with(visible, row))
        return _known(pipeline, caller, row, reasons, scores, held)

    wanted = list(chunk_ids)
    explained = {chunk_id: explain_one(chunk_id) for chunk_id in dict.fromkeys(wanted)}
    return [explained[chunk_id] for chunk_id in wanted]


def _rank(
    pipeline: Pipeline, scores: dict[str, Scores], vector: Vectors | None, allowed: Mask
) -> Rankings:
    channels = {name: best(values, allowed) for name, values in scores.items()}
    fused, reranked = order(pipeline, channels, vector, Timings())
    return {**channels, "fused": fused, "reranked": reranked}


def _with(visible: Mask, row: int) -> Mask:
    mask = visible.copy()
    mask[row] = True
    return mask


def _untold(
    chunk_id: str,
    stages: Iterable[str],
    *,
    state: ChunkState,
    moved_to: Sequence[str] = (),
    filtered_by: Sequence[str] = (),
) -> Explanation:
    """The explanation of a chunk that is not seen and has no rank anywhere."""
    return Explanation(
        chunk_id=chunk_id,
        state=state,
        moved_to=list(moved_to),
        visible=False,
        filtered_by=list(filtered_by),
        ranks=dict.fromkeys(stages),
    )


def _known(
    pipeline: Pipeline,
    caller: Caller,
    row: int,
    reasons: Sequence[tuple[str, ...]],
    scores: dict[str, Scores],
    held: Rankings,
) -> Explanation:
    index, config = pipeline.index, pipeline.config
    found = list(reasons[int(index.document_of[row])])
    below = any(below_threshold(config, name, values)[row] for name, values in scores.items())
    return Explanation(
        chunk_id=index.chunk_ids[row],
        state=index.document(row).status,
        moved_to=_moved(index, index.chunk_ids[row], caller),
        visible=not found,
        filtered_by=[*found, "THRESHOLD"] if below else found,
        ranks={name: ranking.rank(row) if ranking else None for name, ranking in held.items()},
    )


def _moved(index: Index, chunk_id: str, caller: Caller) -> list[str]:
    """The caller's tenant's published chunks that hold the text; none moves into a draft."""
    documents = ((row, index.document(row)) for row in index.moved_rows(chunk_id))
    return [
        index.chunk_ids[row]
        for row, document in documents
        if document.status == "published" and document.tenant == caller.tenant
    ]
