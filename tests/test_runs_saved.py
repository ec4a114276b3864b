"""What is read back from a run's tables is what went into them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from loopback import json_reply
from run_data import case, golden, no_wait, service, settings

from ragwb.errors import RunError
from ragwb.records import Answered
from ragwb.runs.results import StageList, result_from_reply
from ragwb.runs.runner import run_answers
from ragwb.runs.saved import saved_chunks, saved_results
from ragwb.runs.store import Run
from ragwb.runs.tables import CANDIDATES
from ragwb.sources.service import Reply

SAID = {
    "traceId": "t",
    "effectiveAt": "2026-11-30T08:00:00Z",
    "rewrittenQuery": "另一问",
    "channels": {"vector": [{"chunkId": "doc-1", "score": 0.5}], "keyword": []},
    "filtered": [{"chunkId": "x", "channel": "vector", "reason": "ACL"}],
    "fused": [{"chunkId": "doc-1", "score": 0.1}, {"chunkId": "doc-1", "score": 0.1}],
    "results": [{"chunkId": "doc-1", "documentId": "doc", "documentVersion": "1", "text": "一"}],
    "context": [],
    "tokens": {"context": 3, "prompt": 9},
    "timingsMs": {"total": 1.5},
    "modelCalls": 2,
    "answer": {"mode": "answer", "text": "一", "citations": [{"chunkId": "doc-1"}]},
}


def made(folder: Path) -> Run:
    fake = service(answers={"q0": SAID["answer"]})
    fake.retrieve = lambda _: json_reply(SAID)
    dataset = golden(folder, [case(0, expected_chunk_ids=["doc-1"])])
    return run_answers(
        dataset, settings(folder), top_k=3, transport=fake.transport(), sleep=no_wait
    )


def test_a_result_comes_back_as_it_was(tmp_path):
    (found,) = saved_results(made(tmp_path))
    reply = Reply(Answered.model_validate_json(json.dumps(SAID)), 0.0, 0.0, 1)
    told = result_from_reply("c0", 1, "q0", reply)
    stages = {
        name: StageList(
            list(held.chunk_ids),
            held.scores or [None] * len(held.chunk_ids),
            held.document_ids or [None] * len(held.chunk_ids),
            held.document_versions or [None] * len(held.chunk_ids),
        )
        for name, held in told.stages.items()
        if held.chunk_ids
    }
    stages["context"] = StageList([])
    assert replace(found, latency_ms=0.0) == replace(
        told, stages=stages, chunks=(), filtered=tuple(told.filtered), citations=["doc-1"]
    )


def test_chunks_come_back_with_their_texts(tmp_path):
    assert ("doc-1", "第 1 段。") in [
        (chunk.chunk_id, chunk.text) for chunk in saved_chunks(made(tmp_path))
    ]


def test_a_missing_table_is_said_in_a_line(tmp_path):
    run = made(tmp_path)
    (run.path / CANDIDATES).unlink()
    with pytest.raises(RunError, match=r"candidates\.parquet: cannot be read"):
        list(saved_results(run))
