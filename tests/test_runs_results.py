from __future__ import annotations

import pytest

from ragwb.records import Retrieval
from ragwb.runs.results import (
    ChunkText,
    FilteredChunk,
    StageList,
    error_line,
    journal_line,
    result_from_line,
    result_from_reply,
)
from ragwb.sources.service import Reply

FULL = {
    "traceId": "t",
    "effectiveAt": "2026-11-30T08:00:00Z",
    "rewrittenQuery": "改写",
    "channels": {
        "vector": [{"chunkId": "a", "score": 0.5}, {"chunkId": "b"}],
        "keyword": [{"chunkId": "b", "score": 7.0}],
    },
    "filtered": [{"chunkId": "x", "channel": "vector", "reason": "ACL"}],
    "fused": [{"chunkId": "b"}, {"chunkId": "a"}],
    "reranked": [],
    "results": [
        {"chunkId": "b", "score": 1.0, "documentId": "d", "documentVersion": "1", "text": "文"},
        {"chunkId": "b"},
    ],
    "context": ["b", "c"],
    "tokens": {"context": 8, "prompt": 9, "completion": 10},
    "timingsMs": {"total": 1.5},
    "modelCalls": 2,
}


def reply(body: dict[str, object]) -> Reply:
    return Reply(Retrieval.model_validate(body), latency_ms=12.5, waited_ms=3.5, attempts=2)


def test_every_field_of_a_reply_has_its_place() -> None:
    result = result_from_reply("c", 3, "问", reply(FULL))
    assert (result.case_id, result.repeat, result.question, result.status) == ("c", 3, "问", "ok")
    assert (result.trace_id, result.effective_at) == ("t", "2026-11-30T08:00:00Z")
    assert result.rewritten_query == "改写"
    assert (result.latency_ms, result.waited_ms, result.attempts) == (12.5, 3.5, 2)
    assert (result.context_tokens, result.prompt_tokens, result.completion_tokens) == (8, 9, 10)
    assert (result.model_calls, result.n_results, result.candidates) == (2, 2, 2)
    assert result.timings_ms == {"total": 1.5}
    assert result.filtered == [FilteredChunk("x", "vector", "ACL")]
    assert result.stages == {
        "vector": StageList(["a", "b"], [0.5, None]),
        "keyword": StageList(["b"], [7.0]),
        "fused": StageList(["b", "a"]),
        "reranked": StageList([]),
        "results": StageList(["b", "b"], [1.0, None], ["d", None], ["1", None]),
        "context": StageList(["b", "c"]),
    }
    assert list(result.chunks) == [
        ChunkText("a"),
        ChunkText("b", "d", "1", None, "文"),
        ChunkText("c"),
    ]
    assert set(result.observed) == set(Retrieval.model_fields)


def test_what_was_not_observed_stays_unknown() -> None:
    result = result_from_reply("c", 1, "q", reply({"results": []}))
    assert result.n_results == 0
    assert result.candidates is None
    assert result.context_tokens is None
    assert result.stages == {"results": StageList([])}
    assert result.observed == ("results",)


def test_empty_channels_are_observed_and_hold_nothing() -> None:
    result = result_from_reply("c", 1, "q", reply({"results": [], "channels": {"vector": []}}))
    assert result.candidates == 0
    assert result.stages["vector"] == StageList([])


@pytest.mark.parametrize("body", [FULL, {"results": []}, {"results": [], "filtered": []}])
def test_a_line_of_the_journal_loses_nothing(body: dict[str, object]) -> None:
    line = journal_line("c", 1, "问\u2028题\n", reply(body))
    assert line.count(b"\n") == 1
    assert result_from_line(line) == result_from_reply("c", 1, "问\u2028题\n", reply(body))


def test_a_lone_surrogate_in_a_question_survives_the_journal() -> None:
    line = error_line("c", 1, "\ud800", "boom", 1)
    assert b"\\ud800" in line


def test_an_error_keeps_its_words_and_attempts() -> None:
    result = result_from_line(error_line("c", 2, "问", "boom", 4))
    assert (result.status, result.error, result.attempts, result.repeat) == ("error", "boom", 4, 2)
    assert result.n_results is None
    assert result.stages == {}
