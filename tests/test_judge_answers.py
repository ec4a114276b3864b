"""The answers of a run become items, and verdicts become what is known of each answer."""

import json

import httpx
import pytest
from judge_data import rubric
from run_data import case, golden, no_wait, service, settings

from ragwb.judge.answers import claims_of, items_of, judged_answers, run_answers_of
from ragwb.judge.rubric import default_rubric
from ragwb.judge.verdicts import Verdict, Verdicts
from ragwb.runs.runner import run_answers

ANSWERS = {
    "q1": {
        "mode": "answer",
        "text": "第 1 段说三天到账。余额即时到账。",
        "citations": [{"chunkId": "doc-0", "claim": "第 1 段说三天到账"}],
    },
    "q2": {"mode": "refuse", "text": "没有依据", "refusalReason": "NO_EVIDENCE"},
    "q3": {"mode": "answer", "text": "", "citations": None},
}


def answering(fake):
    """The fake as a transport that also answers."""

    def handle(request):
        path = request.url.path.replace("/answer", "/retrieve")
        status, headers, body = fake.answer(
            request.method, path, dict(request.headers), request.content
        )
        if path != request.url.path:
            question = json.loads(request.content)["question"]
            body = json.dumps({**json.loads(body), "answer": ANSWERS[question]}).encode()
        return httpx.Response(status, headers=headers, content=body)

    return httpx.MockTransport(handle)


@pytest.fixture
def answered(tmp_path):
    def make(**given):
        cases = [case(1, reference_answer="三天", tags={"d": "x"}), case(2), case(3)]
        return run_answers(
            golden(tmp_path, cases), settings(tmp_path), top_k=2,
            transport=answering(service(n_chunks=3)), sleep=no_wait, **given,
        )  # fmt: skip

    return make


def test_answers_and_no_refusals_are_judged(answered, tmp_path):
    first, empty = run_answers_of(answered())
    assert (first.item_id, first.pair) == ("c1", ("c1", 1))
    assert first.context == {"doc-0": "第 0 段。", "doc-1": "第 1 段。"}
    assert first.claims == {"第 1 段说三天到账": ("doc-0",), "余额即时到账": ()}
    assert first.tags == {"d": "x", "risk": "normal"}
    item = first.item()
    assert item.material["context"] == "[1] 第 0 段。\n\n[2] 第 1 段。"
    assert item.material["reference"] == "三天"
    assert (empty.answer, empty.claims) == ("", {})


def test_repeats_are_items_of_their_own(answered):
    found = run_answers_of(answered(repeats=2))
    assert [answer.item_id for answer in found] == ["c1/1", "c1/2", "c3/1", "c3/2"]


def test_a_support_rubric_asks_each_claim_with_each_chunk(answered):
    answers = run_answers_of(answered())
    items = items_of(answers, default_rubric("support"))
    assert len(items) == 4
    values = [{"support": v} for v in ("supported", "unsupported", "unsupported", "partial")]
    said = Verdicts(
        tuple(Verdict(item.item_id, scores) for item, scores in zip(items, values, strict=True))
    )
    assert [claim.text for claim in claims_of(answers, said)] == list(answers[0].claims)
    found = judged_answers(answers, support=said)
    assert found["c1", 1].citation_support == 1
    assert found["c1", 1].unsupported_rate == 0.5
    assert found["c1", 1].accepted is None
    assert found["c3", 1].unsupported_rate is None


def test_a_judge_of_whole_answers_accepts_or_not(answered, tmp_path):
    answers = run_answers_of(answered())
    one = rubric(tmp_path)
    said = Verdicts((Verdict("c1", {"good": 1}), Verdict("c3", unscored="the answer is empty")))
    found = judged_answers(answers, whole=said, rubric=one)
    assert found["c1", 1].accepted is False
    assert found["c3", 1].accepted is None


def test_a_run_holds_no_pairs(answered):
    with pytest.raises(ValueError, match="give a file of items"):
        items_of(run_answers_of(answered()), default_rubric("pair"))
