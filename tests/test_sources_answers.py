"""The call that asks for an answer: of the protocol, and of an endpoint that is mapped."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from loopback import FakeService, json_reply

from ragwb.chat.reply import WRONG_SHAPE
from ragwb.errors import ReplyError, UsageError
from ragwb.records import Answer, Answered, Citation, Retrieval
from ragwb.settings import EVAL_PATH, Settings
from ragwb.sources.mapping import load_mapping
from ragwb.sources.service import Reply, open_clients

MAPPED = {
    "path": "/chat",
    "body": {"q": "{question}"},
    "results": "sources[].{chunkId: id}",
    "answer": {
        "mode": "(refused && 'refuse') || 'answer'",
        "text": "reply",
        "citations": "sources[?cited].{chunkId: id}",
    },
}


def ask(transport: httpx.AsyncBaseTransport, source: Mapping[str, Any] | None = None) -> Reply:
    settings = Settings(
        root=Path(), home=Path(), base_url="http://service.example", source=source or {}
    )

    async def run() -> Reply:
        async with open_clients(settings, transport=transport) as clients:
            return await clients[None].answer("问", 5)

    return asyncio.run(run())


def answer_of(reply: Reply) -> Answer:
    assert isinstance(reply.retrieval, Answered)
    return reply.retrieval.answer


def replying(body: object) -> httpx.MockTransport:
    return httpx.MockTransport(lambda _: httpx.Response(200, json=body))


def test_an_answer_and_its_retrieval() -> None:
    said = {"mode": "answer", "text": "三天", "citations": [{"chunkId": "d-0", "claim": "三天"}]}
    service = FakeService(chunks={"d-0": "退款三天。"}, answers={"问": said})
    reply = ask(service.transport())
    assert answer_of(reply) == Answer(
        mode="answer", text="三天", citations=[Citation(chunk_id="d-0", claim="三天")]
    )
    assert [result.chunk_id for result in reply.retrieval.results] == ["d-0"]
    assert "answer" in reply.retrieval.observed
    assert service.asked == ["问"]


def test_it_asks_question_and_top_k_and_nothing_else() -> None:
    asked: list[tuple[str, Any]] = []

    def handle(request: httpx.Request) -> httpx.Response:
        asked.append((request.url.path, json.loads(request.content)))
        return httpx.Response(200, json={"results": [], "answer": {"mode": "refuse", "text": ""}})

    ask(httpx.MockTransport(handle))
    assert asked == [(f"{EVAL_PATH}/answer", {"question": "问", "topK": 5})]


def test_what_an_answer_does_not_tell_is_not_observed() -> None:
    answer = answer_of(ask(replying({"results": [], "answer": {"mode": "answer", "text": "x"}})))
    assert (answer.citations, answer.actions, answer.refusal_reason) == (None, None, None)
    told = {"mode": "answer", "text": "x", "citations": [], "actions": []}
    answer = answer_of(ask(replying({"results": [], "answer": told})))
    assert (answer.citations, answer.actions) == ([], [])


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"results": []}, "answer: Field required"),
        ({"results": [], "answer": None}, "answer"),
        ({"results": [], "answer": {"text": "x"}}, r"answer\.mode"),
        ({"results": [], "answer": {"mode": "maybe", "text": "x"}}, r"answer\.mode"),
        ({"results": [], "answer": {"mode": "answer"}}, r"answer\.text"),
        (
            {"results": [], "answer": {"mode": "answer", "text": "", "citations": [{}]}},
            r"answer\.citations\.0\.chunkId",
        ),
        ({"answer": {"mode": "answer", "text": "x"}}, "results: Field required"),
    ],
)
def test_an_answer_of_another_shape_is_one_line_that_says_where(body: object, said: str) -> None:
    start = rf"^POST http://service\.example.*/answer: {WRONG_SHAPE}: "
    with pytest.raises(ReplyError, match=start + said):
        ask(replying(body))


def test_a_service_without_answers_says_so_by_its_status() -> None:
    with pytest.raises(ReplyError) as caught:
        ask(FakeService().transport())
    assert caught.value.status == 404


def test_a_mapped_endpoint_gives_its_answer_in_its_own_words() -> None:
    body = {"reply": "三天", "sources": [{"id": 1, "cited": True}, {"id": 2, "cited": False}]}
    reply = ask(replying(body), MAPPED)
    assert answer_of(reply).text == "三天"
    assert answer_of(reply).citations == [Citation(chunk_id="1")]
    assert [result.chunk_id for result in reply.retrieval.results] == ["1", "2"]
    refused = ask(replying({"reply": "不行", "refused": True, "sources": []}), MAPPED)
    assert answer_of(refused).mode == "refuse"


def test_a_mapping_without_an_answer_cannot_be_asked_for_one() -> None:
    source = {name: value for name, value in MAPPED.items() if name != "answer"}
    with pytest.raises(ReplyError, match="answer: Field required"):
        ask(replying({"sources": []}), source)


def test_a_mapped_answer_is_no_part_of_a_retrieval() -> None:
    mapping = load_mapping(MAPPED)
    assert mapping is not None
    read = mapping.read(json.dumps({"reply": "x", "sources": []}).encode())
    assert not hasattr(Retrieval.model_validate(read), "answer")


def test_a_broken_expression_of_an_answer_is_named() -> None:
    with pytest.raises(UsageError, match=r"answer\.text"):
        load_mapping({**MAPPED, "answer": {"text": "["}})


def test_too_many_results_are_a_fault_of_an_answer_too() -> None:
    body = {"results": [{"chunkId": str(n)} for n in range(6)], "answer": MAPPED["answer"]}
    body["answer"] = {"mode": "answer", "text": "x"}
    with pytest.raises(ReplyError, match="6 results for topK 5"):
        ask(httpx.MockTransport(lambda _: httpx.Response(200, content=json_reply(body)[2])))
