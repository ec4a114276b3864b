"""A service that hides a document from `/chunks` and returns it all the same is caught."""

import pytest
from loopback import json_reply
from run_data import case, run, service

from ragwb.report.evaluation import evaluate

SECRET = "财务内部放款上限为每日 200 万元"
LEAKED = {
    "chunkId": "secret-0",
    "documentId": "finance-manual",
    "documentVersion": "3.2",
    "text": f"## 额度\n\n{SECRET}。",
}
FORBIDDEN = {"document_id": "finance-manual", "document_version": "3.2", "quote": SECRET}


def returning(*results):
    return service(retrieve=lambda _: json_reply({"results": list(results)}))


@pytest.mark.parametrize("given", [{}, {"mode": "refuse", "expected_chunk_ids": []}])
def test_forbidden_text_in_a_reply_fails_the_run(tmp_path, given):
    cases = [case(1, forbidden_evidence=[FORBIDDEN], **given), case(2)]
    found = run(tmp_path, returning({"chunkId": "doc-1"}, {"chunkId": "doc-2"}, LEAKED), cases)
    assert found.golden()[0].forbidden_chunk_ids == ("secret-0",)
    evaluation = evaluate(found)
    assert evaluation.forbidden_case_ids == ("c1",)
    assert evaluation.verdict == "fail"


@pytest.mark.parametrize("untold", [("documentId", "documentVersion"), ("documentVersion",)])
def test_the_quote_is_enough_where_a_reply_does_not_tell_its_origin(tmp_path, untold):
    leaked = {name: value for name, value in LEAKED.items() if name not in untold}
    cases = [case(1, forbidden_evidence=[FORBIDDEN])]
    evaluation = evaluate(run(tmp_path, returning({"chunkId": "doc-1"}, leaked), cases))
    assert evaluation.forbidden_case_ids == ("c1",)


def test_a_required_chunk_of_untold_origin_is_not_forbidden_by_the_same_words(tmp_path):
    required = {"chunkId": "doc-1", "text": LEAKED["text"]}
    evaluation = evaluate(
        run(tmp_path, returning(required), [case(1, forbidden_evidence=[FORBIDDEN])])
    )
    assert evaluation.verdict == "pass"


def test_another_version_or_document_is_not_the_forbidden_one(tmp_path):
    others = [{**LEAKED, "documentVersion": "4.0"}, {**LEAKED, "chunkId": "b", "documentId": "b"}]
    cases = [case(1, forbidden_evidence=[FORBIDDEN])]
    evaluation = evaluate(run(tmp_path, returning({"chunkId": "doc-1"}, *others), cases))
    assert evaluation.forbidden_case_ids == ()
    assert evaluation.verdict == "pass"
