"""The answerer's wire protocol against a real server: prompt, schema, usage, key, a whole run."""

import json

import httpx
import pytest
from chat_server import KEY, MODEL, chat_server
from service_corpus import write_corpus

from ragwb.chat.answering import Written, ask_model
from ragwb.chat.endpoint import ChatClient, ChatModel
from ragwb.chat.prompt import Passage, load_prompt
from ragwb.cli.served import served
from ragwb.errors import AccessError, ReplyError
from ragwb.golden.dataset import load_dataset
from ragwb.records import Answered
from ragwb.runs.reanswering import answer_from_run
from ragwb.runs.runner import run_retrieval
from ragwb.settings import EVAL_PATH, Settings

pytestmark = pytest.mark.server

PASSAGES = [Passage("c1", "退款审核通过后，储蓄卡三天到账。", "退款", "1")]
MODES = {"answer", "refuse", "clarify"}


@pytest.fixture(scope="module")
def endpoint():
    with chat_server() as url:
        yield url


@pytest.fixture
def model(endpoint, monkeypatch):
    monkeypatch.setenv("CHAT_KEY", KEY)
    return ChatModel(url=endpoint, model=MODEL, key_env="CHAT_KEY", max_tokens=256, timeout_s=120)


def attempt(model: ChatModel) -> Written | ReplyError:
    with ChatClient(model) as client:
        try:
            return ask_model(client, load_prompt(), "几天到账？", PASSAGES)
        except ReplyError as error:
            return error


def test_the_schema_is_met_or_the_fault_is_a_line(model):
    written = attempt(model)
    if isinstance(written, ReplyError):
        # A model this small may write its text without end.
        assert "cut off at max_tokens 256" in str(written)
        return
    assert written.answer.mode in MODES
    assert written.completion.prompt_tokens > 100
    assert 0 < written.completion.completion_tokens <= 256


def test_a_wrong_key_is_refused(endpoint, monkeypatch):
    monkeypatch.setenv("OTHER_KEY", "another-key-altogether")
    wrong = ChatModel(url=endpoint, model=MODEL, key_env="OTHER_KEY")
    with ChatClient(wrong) as client, pytest.raises(AccessError) as caught:
        ask_model(client, load_prompt(), "几天到账？", PASSAGES)
    assert "another-key" not in str(caught.value)


def test_the_service_answers_with_it_and_a_saved_run_is_answered_again(
    model, endpoint, tmp_path, monkeypatch
):
    monkeypatch.setenv("RAGWB_HOME", str(tmp_path / "home"))
    flags = ["--corpus", str(write_corpus(tmp_path / "corpus")), "--embedder", "hash"]
    flags += ["--answerer", "chat", "--chat-url", endpoint, "--chat-model", MODEL]
    golden = tmp_path / "golden.jsonl"
    case = {"dataset_version": "v", "id": "a", "question": "退款几天到账", "mode": "refuse"}
    golden.write_text(json.dumps(case) + "\n", encoding="utf-8")
    with served([*flags, "--chat-key-env", "CHAT_KEY"]) as url:
        manifest = httpx.get(f"{url}{EVAL_PATH}/manifest").json()
        asked = {"question": "退款几天到账", "topK": 2}
        reply = httpx.post(f"{url}{EVAL_PATH}/answer", json=asked, timeout=120)
        settings = Settings(root=tmp_path, home=tmp_path / "home", base_url=url)
        run = run_retrieval(load_dataset(golden), settings, top_k=2)
    assert (manifest["answerModel"], manifest["temperature"]) == (MODEL, 0.0)
    if reply.status_code == 200:
        assert Answered.model_validate(reply.json()).answer.mode in MODES
    else:
        assert "cut off" in reply.json()["detail"]
    with ChatClient(model) as client:
        again = answer_from_run(run, client, load_prompt(), settings, concurrency=1)
    row = again.cases().iloc[0]
    assert row["mode"] in MODES or "cut off" in row["error"]
    assert again.manifest.answer_model == MODEL
