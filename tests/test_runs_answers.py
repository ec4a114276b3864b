"""Runs that ask for answers: what they hold, how they end early, and older runs beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pyarrow.parquet as pq
import pytest
from run_data import case, golden, interrupt_at, no_wait, service, settings

from ragwb.errors import ReplyError, RunError
from ragwb.runs.runner import run_answers, run_retrieval
from ragwb.runs.store import Run, load_run
from ragwb.runs.tables import CASES

ANSWER = {
    "mode": "answer",
    "text": "三天。",
    "citations": [{"chunkId": "doc-1", "claim": "三天。"}, {"chunkId": "doc-2"}],
    "actions": ["refund"],
}
MANIFEST = {"service": "fake 1", "answerModel": "m", "promptVersion": "p@1", "temperature": 0.2}


def answers(folder: Path, fake: Any, n_cases: int = 2, **given: Any) -> Run:
    dataset = golden(folder, [case(n) for n in range(n_cases)])
    given = {"top_k": 5, "transport": fake.transport(), "sleep": no_wait, **given}
    return run_answers(dataset, settings(folder), **given)


def test_what_was_answered_stands_in_the_cases(tmp_path):
    run = answers(tmp_path, service(answers={"q0": ANSWER}))
    first, second = run.cases().to_dict("records")
    assert (first["mode"], first["answer"]) == ("answer", "三天。")
    assert list(first["citations"]) == ["doc-1", "doc-2"]
    assert list(first["citation_claims"]) == ["三天。", None]
    assert list(first["actions"]) == ["refund"]
    assert "answer" in first["observed"]
    assert (second["mode"], second["refusal_reason"]) == ("refuse", "NO_EVIDENCE")
    assert list(second["citations"]) == []
    assert second["actions"] is None


def test_all_of_the_retrieval_is_there_too(tmp_path):
    run = answers(tmp_path, service(answers={}))
    assert len(run.candidates("context", "c0")) == 5
    assert len(run.hits().groups) > 0
    assert load_run(run.run_id, settings(tmp_path)).manifest == run.manifest


def test_only_an_answer_run_says_how_answers_are_made(tmp_path):
    fake = service(answers={}, manifest=MANIFEST)
    answered = answers(tmp_path, fake).manifest
    dataset = golden(tmp_path, [case(0)])
    retrieved = run_retrieval(
        dataset, settings(tmp_path), top_k=5, transport=fake.transport()
    ).manifest
    assert (answered.answer_model, answered.prompt_version) == ("m", "p@1")
    assert answered.temperature == 0.2
    assert (retrieved.answer_model, retrieved.prompt_version) == (None, None)
    assert retrieved.temperature is None


@pytest.mark.parametrize("status", [404, 405, 501])
def test_a_service_without_answers_leaves_no_run(tmp_path, status):
    fake = service()

    def without(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/answer"):
            return httpx.Response(status)
        return fake.transport().handle_request(request)

    with pytest.raises(ReplyError, match=f"/answer: {status}"):
        answers(tmp_path, fake, transport=httpx.MockTransport(without))
    assert list(settings(tmp_path).runs_dir.iterdir()) == []


def test_a_retrieval_without_an_answer_is_an_error_of_its_case(tmp_path):
    fake = service(answers={"q0": {"mode": "maybe", "text": "x"}})
    run = answers(tmp_path, fake)
    first, second = run.cases().to_dict("records")
    assert first["status"] == "error"
    assert "answer.mode" in first["error"]
    assert second["status"] == "ok"


def test_each_repeat_is_asked(tmp_path):
    fake = service(answers={})
    run = answers(tmp_path, fake, repeats=3)
    assert fake.asked.count("q0") == 3
    assert run.cases()["repeat"].tolist() == [1, 2, 3, 1, 2, 3]


def test_an_interrupted_run_goes_on_and_nothing_is_asked_twice(tmp_path):
    fake = service(answers={"q0": ANSWER})
    with pytest.raises(RunError, match="interrupted"):
        answers(tmp_path, fake, 4, transport=interrupt_at(fake, "q2"), concurrency=1)
    (folder,) = settings(tmp_path).runs_dir.iterdir()
    run = answers(tmp_path, fake, 4, resume=folder.name)
    assert fake.asked.count("q0") == 1
    assert run.cases()["mode"].tolist() == ["answer", "refuse", "refuse", "refuse"]


def test_retrievals_do_not_go_on_as_answers(tmp_path):
    fake = service(answers={})
    dataset = golden(tmp_path, [case(n) for n in range(4)])
    with pytest.raises(RunError, match="interrupted"):
        run_retrieval(
            dataset,
            settings(tmp_path),
            top_k=5,
            transport=interrupt_at(fake, "q2"),
            concurrency=1,
        )
    (folder,) = settings(tmp_path).runs_dir.iterdir()
    with pytest.raises(RunError, match="begun with retrieval and cannot go on with answers"):
        answers(tmp_path, fake, 4, resume=folder.name)


def test_a_run_of_an_older_ragwb_reads_as_not_observed(tmp_path):
    run = answers(tmp_path, service(answers={"q0": ANSWER}))
    path = run.path / CASES
    table = pq.read_table(path)
    pq.write_table(table.drop_columns(["citation_claims", "actions"]), path)
    frame = run.cases()
    assert frame["citation_claims"].isna().all()
    assert frame["actions"].isna().all()
    assert set(frame.columns) == {*table.column_names}


def test_a_table_without_any_other_column_is_none_of_a_run(tmp_path):
    run = answers(tmp_path, service(answers={}))
    path = run.path / CASES
    pq.write_table(pq.read_table(path).drop_columns(["mode"]), path)
    with pytest.raises(RunError, match="no column 'mode'"):
        run.cases()


def test_what_is_known_of_a_cited_chunk_is_kept_though_it_did_not_come_back(tmp_path):
    cited = {**ANSWER, "citations": [{"chunkId": "doc-9"}, {"chunkId": "made\nup"}]}
    fake = service(10, answers={"q0": cited})
    run = answers(tmp_path, fake, n_cases=1)
    held = {row["chunk_id"]: row for row in run.chunks().to_dict("records")}
    assert held["doc-9"]["document_id"] == "doc"
    assert held["doc-9"]["text"] == fake.chunks["doc-9"]
    # What no service knows is no chunk.
    assert "made\nup" not in held
