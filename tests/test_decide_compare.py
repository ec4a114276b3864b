"""Two saved runs compared, and everything that can be wrong with them."""

import json
from pathlib import Path

import pytest
from answer_run_data import answer_run, answer_service, says
from chat_fake import FakeModel, client
from compare_data import compared, finding, row, side, two_answer_runs, two_runs
from loopback import json_reply
from run_data import case, interrupted_run, run, service, settings

from ragwb.chat.prompt import Prompt
from ragwb.decide.compare import compare, compare_outcomes
from ragwb.decide.outcomes import outcomes_of
from ragwb.errors import MetricError, RunError, UsageError
from ragwb.measure.answered import JudgedAnswer
from ragwb.runs.baselines import save_baseline
from ragwb.runs.reanswering import answer_from_run
from ragwb.runs.scoring import score
from ragwb.runs.store import Run


def test_two_runs_are_compared_case_by_case(tmp_path):
    before, after = two_runs(tmp_path, {1, 2, 3}, {2, 3, 4, 5})
    found = compare(before, after)
    assert (found.fixed, found.broken) == (("c4", "c5"), ("c1",))
    assert found.still_passing == ("c2", "c3")
    assert found.still_failing == tuple(f"c{n}" for n in range(6, 12))
    recall = found.delta("recall@5")
    assert (recall["baseline"], recall["candidate"], recall["n"]) == (3 / 11, 4 / 11, 11)
    assert recall["baseline"] == score(before, 5).summary()["value"][0]
    assert found.in_words()[:2] == (
        "2 fixed, 1 broken of 11",
        "Nothing that the manifests name changed",
    )


def test_runs_are_opened_by_what_names_them(tmp_path):
    before, after = two_runs(tmp_path, {1}, {2})
    here = settings(tmp_path)
    save_baseline(here, "vector", before.path)
    by_name = compare("vector", "latest", settings=here)
    assert by_name.baseline.name == before.run_id
    assert compare(before.path, after.run_id, settings=here).fixed == by_name.fixed == ("c2",)


@pytest.mark.parametrize("k", [1, 3, 5])
def test_runs_of_different_top_k_compare_at_any_k_that_both_reach(tmp_path, k):
    before, after = two_runs(tmp_path, {1}, {1, 2}, top_k=8)
    found = compare(before, after, k=k)
    assert (found.k, found.fixed) == (k, ("c2",))
    assert found.delta(f"recall@{k}")["n"] == 11
    assert compare(before, after).k == 5


@pytest.mark.parametrize("k", [6, 8, 0, 1.0, True])
def test_a_k_beyond_either_top_k_names_both(tmp_path, k):
    before, after = two_runs(tmp_path, {1}, {1}, top_k=8)
    with pytest.raises(MetricError, match="from 1 to 5") as error:
        compare(before, after, k=k)
    assert f"5 of {before.run_id} and 8 of {after.run_id}" in str(error.value)


def test_the_same_run_twice_has_no_changes_and_says_so(tmp_path):
    made = run(tmp_path, finding({1}), [case(1), case(2)])
    found = compare(made, Run(made.path, made.manifest))
    assert found.in_words() == ("0 changes: both are the same run",)
    assert found.fixed == found.broken == ()
    assert set(found.deltas()["delta"]) == {0.0}


def test_different_repeats_are_said(tmp_path):
    found = compare(*two_runs(tmp_path, {1}, {1, 2}, repeats=3))
    assert found.fixed == ("c2",)
    assert "Repeats differ, 1 against 3: a case counts once, as its mean over them" in (
        found.in_words()
    )


def test_of_different_sets_only_the_common_cases_count_and_the_first_line_says_so(tmp_path):
    before = run(tmp_path, finding({1, 2}), [case(n) for n in range(1, 6)])
    after = run(tmp_path, finding({2, 3}), [case(n) for n in range(2, 8)])
    found = compare(before, after)
    assert found.in_words()[0] == "only the 4 cases common to both sets: 1 fixed, 0 broken of 4"
    assert found.unmatched == ("c6", "c7", "c1")
    assert found.to_dict()["unmatched"] == ["c6", "c7", "c1"]


def test_a_case_of_another_version_is_not_compared(tmp_path):
    before = run(tmp_path, finding({1, 2}), [case(1), case(2)])
    after = run(tmp_path, finding({1, 2}), [case(1, case_version=2), case(2)])
    found = compare(before, after)
    assert found.pairs["case_id"].tolist() == ["c2"]
    assert found.left_out[0].reason == "labels changed: case version 1, then 2"


def test_without_a_common_case_there_is_nothing_to_compare(tmp_path):
    before = run(tmp_path, finding({1}), [case(1)])
    after = run(tmp_path, finding({2}), [case(2)])
    with pytest.raises(UsageError, match="no case in common"):
        compare(before, after)


def test_an_incomplete_run_is_compared_without_its_errors_and_says_so(tmp_path):
    def broken_for_q2(data):
        if data["question"] == "q2":
            return json_reply({"title": "no"}, 400)
        return json_reply({"traceId": "t", "results": [{"chunkId": f"doc-{data['question'][1:]}"}]})

    cases = [case(1), case(2), case(3)]
    before = run(tmp_path, finding({1, 2}), cases)
    after = run(tmp_path, service(retrieve=broken_for_q2), cases)
    found = compare(before, after)
    assert (found.n, found.fixed, found.broken) == (2, ("c3",), ())
    assert found.left_out[0].side == "candidate"
    words = found.in_words()
    assert "1 left out: 1 error in the candidate" in words
    assert "The candidate is incomplete: 1 of 3 cases were not answered" in words


def test_a_run_that_is_not_finished_is_an_error(tmp_path):
    folder = interrupted_run(tmp_path, service(), 4, at=2)
    done = run(tmp_path, service(), [case(n) for n in range(4)])
    with pytest.raises(RunError, match="is not finished"):
        compare(done, folder)


@pytest.mark.parametrize("name", ["cases.parquet", "golden.jsonl", "facts.parquet"])
def test_a_missing_file_is_an_error(tmp_path, name):
    before, after = two_runs(tmp_path, {1}, {2})
    (after.path / name).unlink()
    with pytest.raises(RunError, match=name):
        compare(before.path, after.path)


def test_another_content_than_was_sealed_is_an_error(tmp_path):
    before, after = two_runs(tmp_path, {1}, {2})
    with (after.path / "golden.jsonl").open("a", encoding="utf-8") as file:
        file.write("\n")
    with pytest.raises(RunError, match="wrong content hash"):
        compare(before.path, after.path)


def test_a_baseline_that_does_not_exist_is_an_error(tmp_path):
    made = run(tmp_path, service(), [case(1)])
    with pytest.raises(RunError, match="no run 'nightly'"):
        compare("nightly", made, settings=settings(tmp_path))
    with pytest.raises(RunError, match="no run at"):
        compare(Path(tmp_path / "nowhere"), made)


# Answers.
def test_runs_of_answers_are_compared_by_their_answers(tmp_path):
    before, after = two_answer_runs(
        tmp_path, q1=says("审核后五天。", "doc-1"), q2=says("一般三天。", "doc-2")
    )
    found = compare(before, after)
    assert (found.fixed, found.broken) == (("c2",), ("c1",))
    assert found.delta("forbidden_claims")["delta"] == -1
    assert found.delta("forbidden_claims")["win"] == 1
    assert found.delta("recall@5")["delta"] == 0
    assert "correct_rate +0.00 (1 fixed, 1 broken)" in " ".join(found.in_words())


def test_verdicts_count_for_the_side_that_they_are_of(tmp_path):
    before, after = two_answer_runs(tmp_path)
    low, high = ({("c1", 1): JudgedAnswer(citation_support=share)} for share in (0.5, 1.0))
    found = compare(before, after, verdicts=(low, high))
    assert found.delta("citation_support")["delta"] == 0.5
    assert compare(before, after).delta("citation_support") is None


def test_a_run_that_only_retrieved_is_compared_by_retrieval_and_it_is_said(tmp_path):
    answers = answer_run(tmp_path)
    only = run(tmp_path, service(), [case(n) for n in (1, 2, 4)])
    for before, after in ((only, answers), (answers, only)):
        found = compare(before, after)
        assert found.baseline.kind == found.candidate.kind == "retrieval"
        assert "claim_coverage" not in set(found.deltas()["metric"])
    assert found.notes == (
        "The baseline answers and the candidate only retrieves: compared by what was retrieved",
        "Latencies are not compared: those of the baseline are of a retrieval and its answer, "
        "those of the candidate of a retrieval",
    )
    assert found.notes[0] in found.in_words()


@pytest.mark.parametrize("manifest", [{"answerModel": "m"}, {}])
def test_a_run_of_answers_that_all_failed_is_not_taken_for_one_of_retrievals(tmp_path, manifest):
    answers = answer_run(tmp_path)
    fake = answer_service(retrieve=lambda _: json_reply({}, 500), manifest=manifest)
    failed = answer_run(tmp_path, fake)
    for before, after in ((failed, answers), (answers, failed)):
        found = compare(before, after)
        assert (found.baseline.kind, found.candidate.kind, found.notes) == (
            "answers",
            "answers",
            (),
        )
        assert (found.n, {one.why for one in found.left_out}) == (0, {"error"})


def test_the_time_of_a_model_over_saved_contexts_is_not_that_of_a_service(tmp_path):
    answers = answer_run(tmp_path)
    reply = json.dumps({"mode": "answer", "text": "见[1]。", "reason": None, "actions": []})
    prompt = Prompt("p@1", "s", "[{number}] {text}", "{passages} {question}", structured=True)
    again = [
        answer_from_run(answers, client(FakeModel([reply])), prompt, settings(tmp_path))
        for _ in range(2)
    ]
    found = compare(answers, again[0])
    assert found.notes == (
        "Latencies are not compared: those of the baseline are of a retrieval and its answer, "
        "those of the candidate of the call of the model alone, over saved contexts",
    )
    p95 = found.delta("p95_ms")
    assert p95["baseline"] is not None
    assert p95["candidate"] is not None
    assert [p95[name] for name in ("delta", "low", "high", "n", "win", "loss")] == [
        *(None, None, None),
        *(0, 0, 0),
    ]
    assert "p95 not comparable" in " ".join(found.in_words())
    # Of two such runs they are of the same work.
    alike = compare(*again)
    assert (alike.notes, alike.delta("p95_ms")["delta"] is None) == ((), False)


def test_imported_answers_cannot_be_taken_by_their_retrieval(tmp_path):
    figures = side([row(1)], kind="answers")
    with pytest.raises(UsageError, match="figures of one kind"):
        compare_outcomes(figures, outcomes_of(run(tmp_path, service(), [case(1)])))


def test_sides_of_another_cut_are_an_error():
    with pytest.raises(MetricError, match="at K 5 and figures at 3"):
        compare_outcomes(side([row(1)]), side([row(1)], k=3))


def test_patterns_are_found_in_what_was_compared():
    found = compared([1.0] * 20 + [0.0] * 20, [0.0] * 5 + [1.0] * 20 + [0.0] * 15)
    assert found.to_dict()["patterns"] == [
        {
            "code": one.code,
            "title": one.title,
            "sentence": one.sentence,
            "case_ids": list(one.case_ids),
            "look_at": one.look_at,
        }
        for one in found.patterns
    ]
