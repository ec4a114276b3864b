"""`/answer`: the search and what an answerer makes of it, and what becomes of its faults."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from chat_fake import FakeModel
from loopback import json_reply
from service_corpus import NOW, make_pipeline, make_running

from ragwb.chat.answering import Written
from ragwb.chat.endpoint import Completion
from ragwb.records import Answer, Answered, Citation
from ragwb.service.answerer import Answerer, load_answerer
from ragwb.service.app import create_app
from ragwb.service.pipeline import Between, Pipeline
from ragwb.settings import EVAL_PATH

QUESTION = {"question": "退款审核通过后多久到账", "topK": 3}
SAID = Answer(
    mode="answer",
    text="三天。",
    citations=[Citation(chunk_id="c", claim="三天。")],
    refusal_reason=None,
    actions=[],
)


def answering(pipeline: Pipeline, **changes: Any) -> Pipeline:
    """The pipeline with the answerer of its configuration, or with a given one."""
    answerer = load_answerer(pipeline.config, pipeline.index, pipeline.embedder)
    return replace(pipeline, **{"answerer": answerer, **changes})


def call(pipeline: Pipeline, path: str = "/answer", method: str = "POST") -> httpx.Response:
    app = create_app(make_running(pipeline, pipeline.config, key=None))

    async def go() -> httpx.Response:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            body = QUESTION if method == "POST" else None
            return await client.request(method, EVAL_PATH + path, json=body)

    return anyio.run(go)


def test_an_answer_comes_with_all_of_its_retrieval(tmp_path: Path) -> None:
    pipeline = answering(make_pipeline(tmp_path))
    reply = call(pipeline).json()
    found = call(pipeline, "/retrieve").json()
    changing = {"traceId", "timingsMs", "answer"}
    assert {k: v for k, v in reply.items() if k not in changing} == {
        k: v for k, v in found.items() if k not in changing
    }
    answered = Answered.model_validate(reply)
    assert answered.answer.mode == "answer"
    assert {one.chunk_id for one in answered.answer.citations or ()} <= set(answered.context or ())
    assert set(reply["timingsMs"]) == {*found["timingsMs"], "answer"}
    assert reply["answer"]["refusalReason"] is None
    assert reply["answer"]["actions"] == []


def test_the_total_counts_the_answer(tmp_path: Path) -> None:
    timings = call(answering(make_pipeline(tmp_path))).json()["timingsMs"]
    assert timings["total"] >= timings["answer"] + timings["fusion"]


def test_the_manifest_names_the_extractive_answerer(tmp_path: Path) -> None:
    said = call(answering(make_pipeline(tmp_path)), "/manifest", "GET").json()
    assert said["answerModel"] == "extractive 1, no threshold, 4 sentences, asks back"
    assert (said["promptVersion"], said["temperature"]) == (None, None)


def test_off_answers_nothing(tmp_path: Path) -> None:
    pipeline = answering(make_pipeline(tmp_path, answerer="off"))
    assert pipeline.answerer is None
    assert call(pipeline).status_code == 501
    assert call(pipeline, "/manifest", "GET").json()["answerModel"] is None


def test_a_model_s_usage_is_told(tmp_path: Path) -> None:
    written = Written(SAID, Completion("x", prompt_tokens=40, completion_tokens=6))
    pipeline = answering(make_pipeline(tmp_path), answerer=Answerer("m", lambda _: written))
    reply = call(pipeline).json()
    assert reply["tokens"]["prompt"] == 40
    assert reply["tokens"]["completion"] == 6
    assert reply["tokens"]["context"] > 0
    assert reply["modelCalls"] == call(pipeline, "/retrieve").json()["modelCalls"] + 1


def test_what_is_planted_behind_the_answerer(tmp_path: Path) -> None:
    def planted(answer: Answer) -> Answer:
        return answer.model_copy(update={"text": "planted"})

    pipeline = answering(make_pipeline(tmp_path), between=lambda _question: Between(answer=planted))
    assert call(pipeline).json()["answer"]["text"] == "planted"


def test_the_context_and_no_more_goes_before_a_chat_model(tmp_path: Path) -> None:
    fake = FakeModel(['{"mode": "answer", "text": "三天[1]。", "reason": null, "actions": []}'])
    with fake.serve() as url:
        pipeline = answering(make_pipeline(tmp_path, answerer="chat", chat_url=url, chat_model="m"))
        reply = call(pipeline).json()
        said = call(pipeline, "/manifest", "GET").json()
        pipeline.close()
    assert reply["answer"]["text"] == "三天。"
    assert reply["answer"]["citations"] == [{"chunkId": reply["context"][0], "claim": "三天。"}]
    assert reply["tokens"]["prompt"] == 11
    prompt = fake.asked[0]["messages"][1]["content"]
    assert prompt.count("<passage ") == len(reply["context"])
    texts = {result["chunkId"]: result["text"] for result in reply["results"]}
    assert all(texts[name].strip() in prompt for name in reply["context"])
    assert said["answerModel"] == "m"
    assert said["promptVersion"].startswith("answer-v1@")
    assert said["temperature"] == 0.0


@pytest.mark.parametrize("status", [401, 500])
def test_a_model_that_fails_is_a_500_with_a_line(tmp_path: Path, status: int) -> None:
    fake = FakeModel([json_reply({"error": {"message": "no"}}, status)])
    with fake.serve() as url:
        pipeline = answering(make_pipeline(tmp_path, answerer="chat", chat_url=url, chat_model="m"))
        reply = call(pipeline)
        pipeline.close()
    assert reply.status_code == 500
    assert f"the answerer failed: POST {url}" in reply.json()["detail"]
    assert str(status) in reply.json()["detail"]


def test_the_clock_of_the_service_is_kept(tmp_path: Path) -> None:
    reply = call(answering(make_pipeline(tmp_path))).json()
    assert reply["effectiveAt"] == NOW.strftime("%Y-%m-%dT%H:%M:%SZ")
