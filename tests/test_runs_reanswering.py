"""Another model over saved contexts: nothing is retrieved again, and nothing else changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from chat_fake import FakeModel, client, completion
from loopback import Reply, json_reply
from run_data import case, golden, no_wait, service, settings

from ragwb.chat.prompt import Prompt, load_prompt
from ragwb.errors import AccessError, ReplyError, RunError, UsageError
from ragwb.runs.kinds import timed_of
from ragwb.runs.manifest import diff_manifests
from ragwb.runs.reanswering import answer_from_run
from ragwb.runs.runner import run_answers, run_retrieval
from ragwb.runs.store import Run, load_run

PROMPT = Prompt("p@1", "s", "[{number}] {text}", "{passages}\n问：{question}", structured=True)


def saved(folder: Path, n_cases: int = 2, **given: Any) -> Run:
    """A run of retrievals whose contexts hold texts."""
    fake = given.pop("fake", None) or service()
    dataset = golden(folder, [case(n) for n in range(n_cases)])
    given = {"top_k": 3, "transport": fake.transport(), "sleep": no_wait, **given}
    return run_retrieval(dataset, settings(folder), **given)


def said(text: str = "见[2]。", **fields: Any) -> str:
    return json.dumps({"mode": "answer", "text": text, "reason": None, "actions": [], **fields})


def again(run: Run, model: FakeModel, folder: Path, **given: Any) -> Run:
    asked = client(model, temperature=given.pop("temperature", 0.0))
    return answer_from_run(run, asked, PROMPT, settings(folder), **given)


def test_the_saved_context_is_what_the_model_sees(tmp_path):
    run = saved(tmp_path)
    model = FakeModel([said()])
    found = again(run, model, tmp_path)
    prompt = model.asked[0]["messages"][1]["content"]
    assert prompt == "[1] 第 0 段。\n\n[2] 第 1 段。\n\n[3] 第 2 段。\n问：q0"
    first = found.cases().iloc[0]
    assert (first["mode"], first["answer"]) == ("answer", "见。")
    assert list(first["citations"]) == ["doc-1"]
    assert list(first["citation_claims"]) == ["见。"]
    assert (first["prompt_tokens"], first["completion_tokens"], first["model_calls"]) == (11, 5, 1)


def test_nothing_but_the_answer_changes(tmp_path):
    run = saved(tmp_path)
    found = again(run, FakeModel([said()]), tmp_path, temperature=0.3)
    assert {change.field for change in diff_manifests(run.manifest, found.manifest)} == {
        "answer_model",
        "prompt_version",
        "temperature",
    }
    assert (found.manifest.answer_model, found.manifest.prompt_version) == ("m", "p@1")
    assert found.manifest.temperature == 0.3
    assert found.candidates().equals(run.candidates())
    assert found.filtered().equals(run.filtered())
    assert found.chunks().equals(run.chunks())
    assert found.golden() == run.golden()
    assert found.hits().groups == run.hits().groups
    assert found.service()["contextsFrom"] == run.run_id
    # No service was asked, and the time is that of the model alone.
    assert (run.manifest.base_url is None, found.manifest.base_url) == (False, None)
    assert timed_of(found, "answers") == "model"
    kept = ["case_id", "repeat", "question", "trace_id", "effective_at", "n_results", "candidates"]
    assert found.cases()[kept].equals(run.cases()[kept])


def test_it_is_a_sealed_run_of_its_own(tmp_path):
    run = saved(tmp_path)
    found = again(run, FakeModel([said()]), tmp_path)
    assert found.run_id != run.run_id
    assert load_run(found.run_id, settings(tmp_path)).manifest == found.manifest


def test_what_timed_the_retrieval_is_not_told_as_the_answer_s(tmp_path):
    found = again(saved(tmp_path), FakeModel([said()]), tmp_path)
    row = found.cases().iloc[0]
    assert row["timings_ms"] is None
    assert "timings_ms" not in row["observed"]
    assert {"answer", "context", "channels"} <= set(row["observed"])


def test_an_answer_run_is_answered_again_by_another_model(tmp_path):
    fake = service(answers={"q0": {"mode": "answer", "text": "旧", "actions": ["x"]}})
    run = run_answers(
        golden(tmp_path, [case(0)]), settings(tmp_path), top_k=3, transport=fake.transport()
    )
    row = again(run, FakeModel([said("新[1]")]), tmp_path).cases().iloc[0]
    assert (row["answer"], list(row["actions"])) == ("新", [])
    assert list(row["observed"]).count("answer") == 1


def test_more_repeats_use_the_saved_contexts_again(tmp_path):
    model = FakeModel([said(f"{n}[1]") for n in range(6)])
    found = again(saved(tmp_path), model, tmp_path, repeats=3, concurrency=1)
    assert len(model.asked) == 6
    assert found.manifest.repeats == 3
    frame = found.cases()
    assert frame["repeat"].tolist() == [1, 2, 3, 1, 2, 3]
    assert frame["answer"].tolist() == ["0", "2", "4", "1", "3", "5"]
    assert len(found.candidates("context")) == 3 * 6


def test_explanations_go_with_their_repeats(tmp_path):
    fake = service(results={"q1": ["doc-5"]})
    run = saved(tmp_path, fake=fake)
    found = again(run, FakeModel([said()]), tmp_path, repeats=2)
    assert [said.case_id for said in run.explanations()] == ["c1"]
    assert [(said.case_id, said.repeat) for said in found.explanations()] == [("c1", 1), ("c1", 2)]


def test_a_call_that_fails_is_an_error_of_its_case(tmp_path):
    model = FakeModel([said(), json_reply({"error": "no"}, 500), said(mode="x"), said()])
    frame = again(saved(tmp_path, 4), model, tmp_path, concurrency=1).cases()
    assert frame["status"].tolist() == ["ok", "error", "error", "ok"]
    assert "500" in frame["error"][1]
    assert "mode 'x'" in frame["error"][2]
    assert frame["answer"].isna().tolist() == [False, True, True, False]


def test_an_error_of_the_saved_run_stays_one(tmp_path):
    def broken(data: dict[str, Any]) -> Reply:
        return json_reply({"title": "no"}, 500)

    fake = service()
    fake.retrieve = lambda data: broken(data) if data["question"] == "q1" else _found(data)
    model = FakeModel([said()])
    frame = again(saved(tmp_path, fake=fake), model, tmp_path).cases()
    assert frame["status"].tolist() == ["ok", "error"]
    assert len(model.asked) == 1


def _found(data: dict[str, Any]) -> Reply:
    results = [{"chunkId": "doc-0", "text": "第 0 段。"}]
    return json_reply({"results": results, "context": ["doc-0"]})


@pytest.mark.parametrize(("status", "kind"), [(401, AccessError), (404, ReplyError)])
def test_an_endpoint_that_refuses_the_first_question_leaves_no_run(tmp_path, status, kind):
    run = saved(tmp_path)
    with pytest.raises(kind, match=str(status)):
        again(run, FakeModel([json_reply({}, status)]), tmp_path)
    assert [path.name for path in settings(tmp_path).runs_dir.iterdir()] == [run.run_id]


def test_an_interrupted_run_goes_on_where_it_was(tmp_path):
    run = saved(tmp_path, 3)

    def interrupt(body: dict[str, Any]) -> Reply:
        raise KeyboardInterrupt

    first = FakeModel([said(), interrupt])
    with pytest.raises(RunError, match="--resume"):
        again(run, first, tmp_path, concurrency=1)
    (name,) = (p.name for p in settings(tmp_path).runs_dir.iterdir() if p.name != run.run_id)
    with pytest.raises(RunError, match=f"the same ragwb answer-eval command with --resume {name}"):
        load_run(name, settings(tmp_path))
    second = FakeModel([said("后[1]")])
    found = again(run, second, tmp_path, resume=name)
    assert len(second.asked) == 2
    assert found.cases()["answer"].tolist() == ["见。", "后", "后"]


def test_it_does_not_go_on_with_another_prompt(tmp_path):
    run = saved(tmp_path)

    def interrupt(body: dict[str, Any]) -> Reply:
        raise KeyboardInterrupt

    with pytest.raises(RunError, match="--resume"):
        again(run, FakeModel([said(), interrupt]), tmp_path, concurrency=1)
    (name,) = (p.name for p in settings(tmp_path).runs_dir.iterdir() if p.name != run.run_id)
    with pytest.raises(RunError, match="prompt_version was 'p@1'"):
        answer_from_run(
            run, client(FakeModel([said()])), load_prompt(), settings(tmp_path), resume=name
        )


def test_a_run_without_contexts_cannot_be_answered(tmp_path):
    fake = service()
    fake.retrieve = lambda _: json_reply({"results": [{"chunkId": "doc-0"}]})
    with pytest.raises(RunError, match="told no context"):
        again(saved(tmp_path, fake=fake), FakeModel([said()]), tmp_path)


def test_a_context_without_its_text_is_an_error_of_its_case(tmp_path):
    fake = service(chunk_call=False)
    fake.retrieve = lambda _: json_reply({"results": [{"chunkId": "doc-0"}], "context": ["doc-0"]})
    frame = again(saved(tmp_path, fake=fake), FakeModel([said()]), tmp_path).cases()
    assert frame["error"].str.contains("no text of doc-0").all()


@pytest.mark.parametrize("given", [{"repeats": 0}, {"concurrency": 0}])
def test_numbers_below_one_are_refused(tmp_path, given):
    with pytest.raises(UsageError, match="at least 1"):
        again(saved(tmp_path), FakeModel([said()]), tmp_path, **given)


def test_an_empty_context_is_answered_on_nothing(tmp_path):
    fake = service()
    fake.retrieve = lambda _: json_reply({"results": [], "context": []})
    model = FakeModel([completion("REFUSE: NO_EVIDENCE")])
    frame = again(saved(tmp_path, fake=fake), model, tmp_path).cases()
    assert model.asked[0]["messages"][1]["content"] == "\n问：q0"
    assert frame["refusal_reason"].tolist() == ["NO_EVIDENCE", "NO_EVIDENCE"]
