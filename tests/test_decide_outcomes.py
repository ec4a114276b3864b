"""One side of a comparison: a row a case from a run, or from figures made elsewhere."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from answer_run_data import answer_run, answer_service
from compare_data import METRICS, explained, finding, row, side
from loopback import json_reply
from run_data import case, run, service

from ragwb.decide.authored import label_of
from ragwb.decide.outcomes import lower_is_better, outcomes_from, outcomes_of
from ragwb.errors import DataError, MetricError, UsageError
from ragwb.golden.case import Case
from ragwb.measure.answered import JudgedAnswer
from ragwb.runs.answered import score_answers
from ragwb.runs.scoring import score

LEAKS = ("tenant_leak", "acl_leak", "stale_version_leak")


def labelled(**given):
    return label_of(Case.model_validate(case(1, **given)))


def passage(quote, **given):
    return {"any_of": [{"document_id": "a", "quote": quote}], **given}


# Runs.
def test_a_run_gives_a_row_a_case_with_the_figures_of_its_scores(tmp_path):
    made = run(tmp_path, service(), [case(n, tags={"kind": "fact"}) for n in range(8)])
    found = outcomes_of(made, k=3)
    scores = score(made, 3).frame
    assert (found.kind, found.k, found.top_k, found.repeats) == ("retrieval", 3, 5, 1)
    assert found.frame["case_id"].tolist() == [f"c{n}" for n in range(8)]
    assert found.frame["recall@3"].tolist() == scores["recall@3"].tolist()
    assert found.frame["hit_rate@3"].tolist() == scores["hit@3"].tolist()
    assert found.frame["failed"].tolist() == [False] * 3 + [True] * 5
    assert found.frame["tags.kind"].eq("fact").all()
    assert found.frame["question"].tolist() == [f"q{n}" for n in range(8)]
    assert found.metrics[:2] == ("recall@3", "hit_rate@3")
    assert found.metrics[-3:] == ("context_tokens", "model_calls", "candidates")
    assert found.figures()["recall@3"] == 3 / 8
    assert found.figures()["context_tokens"] == 7
    assert (found.n_cases, found.n_scored) == (8, 8)
    assert len(found.latencies) == 8
    assert "8 cases = 8 scored" in repr(found)


def test_by_default_the_cut_is_top_k(tmp_path):
    assert outcomes_of(run(tmp_path, service(), [case(1)], top_k=4)).k == 4


@pytest.mark.parametrize("k", [0, 6, -1, 2.0, True, "3"])
def test_a_k_that_was_not_observed_names_top_k(tmp_path, k):
    made = run(tmp_path, service(), [case(1)])
    with pytest.raises(MetricError, match="from 1 to 5") as error:
        outcomes_of(made, k=k)
    assert made.run_id in str(error.value)


def test_other_tiers_are_excluded_and_keep_their_figures(tmp_path):
    cases = [case(1), case(2, tier="shadow"), case(3, tier="retired")]
    frame = outcomes_of(run(tmp_path, service(), cases)).frame
    assert frame["status"].tolist() == ["scored", "excluded", "excluded"]
    assert frame["reason"].tolist()[1:] == ["tier shadow", "tier retired"]
    assert frame["recall@5"].tolist()[:2] == [1.0, 1.0]
    assert math.isnan(frame["recall@5"][2])


def test_a_failed_call_is_an_error_and_neither_passed_nor_failed(tmp_path):
    def broken_for_q2(data):
        if data["question"] == "q2":
            return json_reply({"title": "no"}, 400)
        return json_reply({"traceId": "t", "results": [{"chunkId": "doc-1"}]})

    frame = outcomes_of(run(tmp_path, service(retrieve=broken_for_q2), [case(1), case(2)])).frame
    assert frame["status"].tolist() == ["scored", "error"]
    assert frame["failed"].tolist() == [False, pd.NA]
    assert math.isnan(frame["recall@5"][1])


def test_a_case_that_fails_in_some_repeats_is_unstable(tmp_path):
    replies = {
        "q1": ["doc-1", "doc-1", "doc-0"],
        "q2": ["doc-2", "doc-0", "doc-2"],
        "q3": ["doc-3"] * 3,
    }

    def by_turns(data):
        return json_reply(
            {"traceId": "t", "results": [{"chunkId": replies[data["question"]].pop()}]}
        )

    cases = [case(1), case(2, risk="high"), case(3)]
    made = run(tmp_path, service(retrieve=by_turns), cases, repeats=3, concurrency=1)
    frame = outcomes_of(made).frame
    assert frame["unstable"].tolist() == [True, True, False]
    # One repeat of three failed: that is no failure in a comparison, but for a high risk.
    assert frame["failed"].tolist() == [False, True, False]


def test_a_run_of_answers_has_the_figures_of_answers_and_of_retrieval(tmp_path):
    made = answer_run(tmp_path)
    found, scores = outcomes_of(made), score_answers(made)
    assert found.kind == "answers"
    assert found.frame["failed"].tolist() == scores.frame["failed_for_comparison"].tolist()
    summary = scores.summary().set_index("metric")["value"]
    figures = found.figures()
    for name in summary.index:
        assert figures[name] == pytest.approx(summary[name], nan_ok=True) or math.isnan(
            summary[name]
        )
    assert figures["clarify_recall"] is None
    assert figures["recall@5"] == score(made, 5).summary()["value"][0]


def test_figures_of_refusals_count_a_case_by_the_share_of_its_repeats_in_which_it_refused(tmp_path):
    refusal = {"mode": "refuse", "text": "无", "citations": [], "refusalReason": "NO_EVIDENCE"}
    answer = {"mode": "answer", "text": "是", "citations": []}
    turns = {"q1": [refusal, answer, answer], "q2": [refusal] * 3}
    fake = service(answers={})

    def take_turns(data, _):
        said = {**json.loads(fake._retrieve(data)[2]), "answer": turns[data["question"]].pop()}
        return json_reply(said)

    fake._answer = take_turns
    cases = [case(1), case(2, mode="refuse", expected_chunk_ids=[])]
    made = answer_run(tmp_path, fake, cases, repeats=3, concurrency=1)
    expected = score_answers(made).summary().set_index("metric")["value"]["refusal_precision"]
    assert expected == 3 / 4
    assert outcomes_of(made).figures()["refusal_precision"] == expected


def test_a_run_of_answers_can_be_taken_by_its_retrieval(tmp_path):
    found = outcomes_of(answer_run(tmp_path), kind="retrieval")
    assert found.kind == "retrieval"
    assert "claim_coverage" not in found.frame


def all_failed(folder, **manifest):
    fake = answer_service(retrieve=lambda _: json_reply({}, 500), manifest=manifest)
    return answer_run(folder, fake)


def test_a_run_of_answers_is_one_though_every_call_failed(tmp_path):
    found = outcomes_of(all_failed(tmp_path, answerModel="m"))
    assert (found.kind, found.n_scored, found.n_errors) == ("answers", 0, 8)
    assert (found.timed, found.figures()["claim_coverage"]) == ("answer", None)
    # Where nothing tells, it is taken as it is asked for.
    unnamed = all_failed(tmp_path)
    assert outcomes_of(unnamed).kind == "retrieval"
    assert outcomes_of(unnamed, kind="answers").kind == "answers"


def test_a_run_that_only_retrieved_has_no_answers(tmp_path):
    with pytest.raises(UsageError, match="only retrieved"):
        outcomes_of(run(tmp_path, service(), [case(1)]), kind="answers")


def test_what_a_judge_said_counts_where_it_is_given(tmp_path):
    made = answer_run(tmp_path)
    judged = {("c1", 1): JudgedAnswer(citation_support=0.5)}
    assert outcomes_of(made).figures()["citation_support"] is None
    assert outcomes_of(made, verdicts=judged).figures()["citation_support"] == 0.5


# Safety.
def test_forbidden_chunks_and_leaks_are_named_by_their_rule(tmp_path):
    states = {
        "doc-2": {"visible": False, "filteredBy": ["ACL"]},
        "doc-3": {"visible": False, "filteredBy": ["TENANT"]},
        "doc-4": {"visible": False, "state": "retired"},
    }
    cases = [case(1, forbidden_chunk_ids=["doc-0"]), *(case(n) for n in range(2, 5))]
    fake = finding({2, 3, 4}, states=states)
    found = outcomes_of(explained(run(tmp_path, fake, cases), fake))
    assert found.safety == {
        "forbidden_retrieved": ("c1",),
        "tenant_leak": ("c3",),
        "acl_leak": ("c2",),
        "stale_version_leak": ("c4",),
    }
    assert found.safety_unknown == ()


def test_a_leak_of_a_shadow_case_and_one_beyond_the_cut_do_not_count(tmp_path):
    states = {f"doc-{n}": {"visible": False, "filteredBy": ["ACL"]} for n in (2, 3)}
    fake = service(states=states)
    fake.results = {"q1": ["doc-1", "doc-3"], "q2": ["doc-2"]}
    made = explained(run(tmp_path, fake, [case(1), case(2, tier="shadow")]), fake)
    assert outcomes_of(made, k=2).safety == {"acl_leak": ("c1",)}
    # The context holds only what the first K brought.
    assert outcomes_of(made, k=1).safety == {}


def test_leaks_stay_unknown_where_only_some_chunks_were_explained(tmp_path):
    states = {"doc-0": {"visible": False, "filteredBy": ["ACL"]}}
    fake = finding({1}, states=states)
    made = run(tmp_path, fake, [case(1), case(2)])
    assert made.explanations()
    found = outcomes_of(made)
    assert found.safety == {}
    assert found.safety_unknown == LEAKS
    found = outcomes_of(explained(made, fake))
    assert found.safety == {"acl_leak": ("c2",)}
    assert found.safety_unknown == ()


def test_leaks_are_unknown_where_nothing_was_explained(tmp_path):
    made = run(tmp_path, service(explain=False), [case(1)])
    assert outcomes_of(made).safety_unknown == LEAKS
    assert outcomes_of(made).safety == {}


def test_nothing_leaks_to_an_identity_that_may_see_everything(tmp_path):
    said = {"service": "s", "chunks": {"total": 8, "visible": 8}}
    made = run(tmp_path, service(explain=False, manifest=said), [case(1)])
    assert outcomes_of(made).safety_unknown == ()


def test_hard_rules_are_broken_by_blocking_cases_alone(tmp_path):
    found = outcomes_of(answer_run(tmp_path))
    assert found.safety["forbidden_claim"] == ("c2",)
    # c7 cites what is unknown, and is a shadow.
    assert "unknown_citation" not in found.safety


# What a case expects.
def test_a_label_does_not_hang_on_the_version_the_chunking_or_words_for_people():
    evidence = [passage("三天", hop="期限")]
    same = labelled(evidence=evidence)
    assert labelled(evidence=evidence, case_version=4) == same
    assert labelled(evidence=evidence, expected_chunk_ids=["other"]) == same
    assert labelled(evidence=[passage("三天", hop="另一个")]) == same
    assert labelled(evidence=evidence, note="why", tags={"a": "b"}, weight=3) == same


@pytest.mark.parametrize(
    "given",
    [
        {"evidence": [passage("四天")]},
        {"mode": "clarify"},
        {"required_claims": ["三天"]},
        {"forbidden_claims": ["四天"]},
        {"forbidden_chunk_ids": ["x"]},
        {"required_version": "2"},
        {"access": "guest"},
    ],
)
def test_a_label_hangs_on_what_is_expected(given):
    evidence = [passage("三天")]
    assert labelled(**{"evidence": evidence, **given}) != labelled(evidence=evidence)


def test_without_evidence_the_chunk_ids_are_the_label():
    assert labelled(expected_chunk_ids=["a", "b"]) == labelled(expected_chunk_ids=["b", "a"])
    assert labelled(expected_chunk_ids=["a"]) != labelled(expected_chunk_ids=["b"])


def test_permission_is_an_identity_of_its_own_or_a_refusal_for_want_of_rights(tmp_path):
    refused = {"mode": "refuse", "expected_chunk_ids": [], "refusal_trigger": ["NOT_PERMITTED"]}
    frame = outcomes_of(answer_run(tmp_path, cases=[case(1), case(2, **refused)])).frame
    assert frame["permission"].tolist() == [False, True]


# Figures made elsewhere.
def test_figures_fail_below_a_recall_of_one_where_nothing_else_is_said():
    found = side([row(1), row(2, 0.5), row(3, None)])
    assert found.frame["failed"].tolist() == [False, True, pd.NA]
    assert found.figures() == {"recall@5": 0.75, "mrr@5": 0.75, **NO_LATENCY}
    assert found.frame["status"].eq("scored").all()
    assert (found.run, found.manifest, found.safety) == (None, None, {})
    assert found.safety_unknown == (*LEAKS, "forbidden_retrieved")


NO_LATENCY = {"p50_ms": None, "p95_ms": None, "p99_ms": None}


def test_without_a_recall_nothing_is_said_to_fail():
    found = outcomes_from(
        [{"case_id": "a", "faithfulness": 4.5}], name="x", k=5, metrics=["faithfulness"]
    )
    assert found.frame["failed"].tolist() == [pd.NA]
    assert found.figures()["faithfulness"] == 4.5


def test_a_frame_holds_undefined_as_pandas_does():
    frame = pd.DataFrame({"case_id": ["a", "b"], "recall@5": [1.0, math.nan]})
    found = outcomes_from(frame, name="x", k=5, metrics=["recall@5"])
    assert found.figures()["recall@5"] == 1.0


def test_what_some_rows_leave_out_takes_its_default():
    frame = side([row(1, risk="high", unstable=True), {"case_id": "c2", "mrr@5": 0.5}]).frame
    assert frame["risk"].tolist() == ["high", "normal"]
    assert frame["unstable"].tolist() == [True, False]
    assert frame["recall@5"].isna().tolist() == [False, True]


def test_numbers_of_numpy_are_numbers():
    found = side([row(1, np.int64(1)), row(2, np.float32(0.5))])
    assert found.frame["recall@5"].tolist() == [1.0, 0.5]
    with pytest.raises(DataError, match="case c1: recall@5: is"):
        side([row(1, np.True_)])


def test_figures_carry_latencies():
    found = side([row(1, latency_ms=10), row(2, latency_ms=30)])
    assert found.figures()["p95_ms"] == 30


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([row(1), row(1)], "case c1: case_id: comes twice"),
        ([row(1, math.nan)], "case c1: recall@5: is NaN"),
        ([row(1, math.inf)], "case c1: recall@5: is infinite"),
        ([row(1, 1.5)], "case c1: recall@5: is 1.5: it goes from 0 to 1"),
        ([row(1, -0.1)], "case c1: recall@5: is -0.1"),
        ([row(1, "0.5")], "case c1: recall@5: is '0.5'"),
        ([row(1, True)], "case c1: recall@5: is True"),
        ([row(1, latency_ms=-1)], "case c1: latency_ms: is -1"),
        ([row(1, failed=None)], "case c1: failed: is null although the case is scored"),
        ([row(1, status="error", failed=True)], "case c1: failed: is given although"),
        ([row(1, status="passed")], "case c1: status: is 'passed'"),
        ([{**row(1), "case_id": None}], "row 1: case_id: is empty"),
        ([{**row(1), "case_id": ""}], "row 1: case_id: is empty"),
        ([{"case_id": "c1", "mrr@5": 1.0}], "no column 'recall@5'; there are: case_id, mrr@5"),
        ([], "no column 'case_id'; there are: none"),
    ],
)
def test_figures_at_fault_name_case_and_column(rows, said):
    with pytest.raises(DataError) as error:
        side(rows)
    assert said in str(error.value)
    assert str(error.value).startswith("figures")


def test_all_faults_are_reported_at_once():
    with pytest.raises(DataError, match="and 3 more faults") as error:
        side([row(1, 2.0), row(2, math.nan)])
    assert len(error.value.faults) == 4


def test_names_from_data_cannot_drive_a_terminal():
    with pytest.raises(DataError) as error:
        side([{**row(1, 2.0), "case_id": "a\x1b[31m\nb"}], name="x\x1b[2J")
    assert "\x1b" not in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("metric", "lower"),
    [
        *(("recall@5", False), ("claim_coverage", False), ("accepted", False)),
        *(("duplicate_rate@5", True), ("p95_ms", True), ("context_tokens", True)),
        *(("unsupported_rate", True), ("over_refusal_rate", True), ("rerank_ms", True)),
    ],
)
def test_which_way_is_better(metric, lower):
    assert lower_is_better(metric) is lower


def test_the_metrics_of_the_kit_are_figures():
    assert set(METRICS) <= set(side([row(1)]).frame.columns)
