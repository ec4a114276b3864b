"""What a fault makes of an answer: another mode, other words, other citations."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ragwb.records import Answer, Citation
from ragwb.service.fault_kinds import Reply
from ragwb.service.index import Index

_OLDER = "0."


def changed(fault: Reply, answer: Answer) -> Answer:
    """An answer as a fault has it; one of a mode that it does not name stays as it is."""
    if answer.mode not in fault.modes:
        return answer
    mode, reason = answer.mode, answer.refusal_reason
    if fault.mode is not None:
        mode, reason = fault.mode, fault.refusal_reason
    kept = [] if fault.uncites else answer.citations or []
    return answer.model_copy(
        update={
            "mode": mode,
            "refusal_reason": reason,
            "text": _text(fault, answer.text),
            "citations": [*kept, *(Citation(chunk_id=name) for name in fault.cites)],
            "actions": [*(answer.actions or []), *fault.actions],
        }
    )


def _text(fault: Reply, said: str) -> str:
    lines = (said if fault.text is None else fault.text).split("\n")
    if fault.without is not None:
        lines = [line for line in lines if re.search(fault.without, line) is None]
    return "\n".join([*lines, *([fault.adds] if fault.adds else [])])


def older_version(version: str) -> str:
    """A version that came before another: of two alike the smaller number is the older one."""
    return f"{_OLDER}{version}"


def older_chunks(index: Index) -> dict[str, str]:
    """The chunk of the older version by that of the same place in the newer one."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    for chunk_id, number in zip(index.chunk_ids, index.document_of.tolist(), strict=True):
        document = index.documents[number]
        key = (document.tenant, document.document_id, document.version)
        rows.setdefault(key, []).append(chunk_id)
    return {
        new: old
        for (tenant, document_id, version), held in rows.items()
        for new, old in zip(
            held, rows.get((tenant, document_id, older_version(version)), ()), strict=False
        )
    }


def citing(others: Mapping[str, str], answer: Answer) -> Answer:
    """An answer with other chunks cited in the place of those that are named."""
    if answer.citations is None:
        return answer
    citations = [
        citation.model_copy(update={"chunk_id": others.get(citation.chunk_id, citation.chunk_id)})
        for citation in answer.citations
    ]
    return answer.model_copy(update={"citations": citations})
