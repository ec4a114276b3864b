"""A service whose stages are written down by question, and a run that loses evidence everywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from loopback import FakeService, Reply, json_reply
from run_data import case, run, service

from ragwb.runs.store import Run
from ragwb.triage.attribute import triage
from ragwb.view.case_view import CaseView, view_case

NAMES = [f"doc-{n}" for n in range(40)]
K = 3
# Of each question what its stages hold; what is not named was not observed.
STAGES: dict[str, dict[str, Any]] = {
    # doc-1 is in a channel and gone after fusion, doc-2 after reranking, doc-4 beyond K.
    "fusion": {
        "channels": {"vector": ["doc-2", "doc-3"], "keyword": ["doc-1", "doc-4"]},
        "fused": ["doc-2", "doc-3", "doc-5", "doc-6", "doc-4"],
        "reranked": ["doc-3", "doc-5", "doc-6", "doc-4"],
        "results": ["doc-3", "doc-5", "doc-6"],
        "context": ["doc-3", "doc-5", "doc-6"],
    },
    "context": {
        "channels": {"vector": ["doc-2", "doc-1"]},
        "fused": ["doc-2", "doc-1"],
        "results": ["doc-2", "doc-1"],
        "context": ["doc-2"],
    },
    "recall": {
        "channels": {"vector": ["doc-2"], "keyword": []},
        "fused": ["doc-2"],
        "results": ["doc-2", "doc-2"],
        "context": ["doc-2"],
    },
    "results only": {"results": ["doc-2", "doc-3"]},
    "leak": {
        "channels": {"vector": ["doc-9", "doc-1"]},
        "fused": ["doc-9", "doc-1"],
        "results": ["doc-9", "doc-1"],
        "context": ["doc-9", "doc-1"],
    },
    "many": {
        "channels": {"vector": NAMES[:30]},
        "fused": NAMES[:30],
        "reranked": NAMES[:20],
        "results": NAMES[:K],
        "context": NAMES[:K],
    },
    "nothing": {"channels": {"vector": []}, "fused": [], "results": [], "context": []},
}
CASES = [
    case(1, question="fusion", expected_chunk_ids=["doc-1", "doc-2", "doc-4"], tags={"kind": "a"}),
    case(2, question="context", expected_chunk_ids=["doc-1"], tags={"kind": "b"}),
    case(3, question="recall", expected_chunk_ids=["doc-38"], risk="high", tags={"kind": "b"}),
    case(4, question="results only", expected_chunk_ids=["doc-2", "doc-20"]),
    case(5, question="leak", expected_chunk_ids=["doc-1"], forbidden_chunk_ids=["doc-9", "doc-8"]),
    case(6, question="many", expected_chunk_ids=NAMES[:30], tags={"kind": "a"}),
    case(7, question="nothing", expected_chunk_ids=["doc-1"], tags={"kind": "a"}),
    case(8, question="leak", expected_chunk_ids=["doc-1"], tags={"kind": "c"}),
    case(9, question="leak", expected_chunk_ids=[], mode="refuse"),
]


def staged_service(
    stages: Mapping[str, Mapping[str, Any]] = STAGES, *, texts: Mapping[str, str] | None = None
) -> FakeService:
    """A service that answers each question with its stages, whatever top K is asked for."""
    fake = service(n_chunks=0)
    fake.chunks = dict(texts or {name: f"第 {name} 段。" for name in NAMES})

    def reply(data: dict[str, Any]) -> Reply:
        return json_reply(_reply(fake, stages[data["question"]]))

    fake.retrieve = reply
    return fake


def _reply(fake: FakeService, held: Mapping[str, Any]) -> dict[str, Any]:
    def listed(names: Sequence[str]) -> list[dict[str, Any]]:
        return [
            {"chunkId": name, "score": 1 - at / 100, "text": fake.chunks.get(name)}
            for at, name in enumerate(names)
        ]

    said = {
        name: {channel: listed(names) for channel, names in value.items()}
        if name == "channels"
        else listed(value)
        if name in ("fused", "reranked", "results")
        else value
        for name, value in held.items()
    }
    return {"traceId": "t-1", "filtered": [], **said}


def lossy_run(folder: Path, **given: Any) -> Run:
    """The run of `CASES`, asked with top K."""
    return run(folder, staged_service(), CASES, **{"top_k": K, **given})


def case_view(source: Run, case_id: str, *, k: int = K) -> CaseView:
    """One case of a run with its verdict, if it failed."""
    found = triage(source, k=k)
    failed = {one.case_id: one.verdict for one in found.cases}
    trace = found.traces.of_case(case_id)[0]
    return view_case(found.traces, trace, k=k, verdict=failed.get(case_id))
