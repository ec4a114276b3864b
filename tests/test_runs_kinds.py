"""What a run asked for, and which run is named where one of answers is needed."""

import pytest
from answer_run_data import answer_run, answer_service
from loopback import json_reply
from run_data import case, interrupted_run, run, service

from ragwb.errors import RunError, UsageError
from ragwb.runs.answered import score_answers
from ragwb.runs.kinds import Asked, asked_of, kind_of, timed_of, without_answers
from ragwb.runs.listing import runs_in
from ragwb.runs.tables import CASES


def asked(run):
    return next(asked_of(one) for one in runs_in(run.path.parent) if one.path == run.path)


def test_a_run_tells_what_it_asked_for(tmp_path):
    retrieved = run(tmp_path, service(), [case(0), case(1)])
    answered = answer_run(tmp_path, answer_service(), [case(0)])
    assert asked(retrieved) == Asked("retrieval", 0)
    assert asked(answered) == Asked("answers", 0)


def test_failed_calls_are_counted_and_alone_tell_no_kind(tmp_path):
    found = json_reply({"results": [{"chunkId": "doc-0"}]})
    some = service(retrieve=lambda q: found if q["question"] == "q0" else json_reply({}, 500))
    none = service(retrieve=lambda _: json_reply({}, 500))
    some, none = (run(tmp_path, fake, [case(0), case(1)]) for fake in (some, none))
    assert asked(some) == Asked("retrieval", 1)
    assert asked(none) == Asked(None, 2)


def broken_down(model=None):
    """A service whose every call fails, and which may name its answerer."""
    manifest = {} if model is None else {"service": "s", "answerModel": model}
    return answer_service(retrieve=lambda _: json_reply({}, 500), manifest=manifest)


def test_where_every_call_failed_the_model_tells_that_answers_were_asked_for(tmp_path):
    answered = answer_run(tmp_path, broken_down("m-1"), [case(0)])
    retrieved = run(tmp_path, broken_down("m-1"), [case(0)])
    unnamed = answer_run(tmp_path, broken_down(), [case(0)])
    assert [asked(one).kind for one in (answered, retrieved, unnamed)] == [
        "answers",
        None,
        None,
    ]
    assert [kind_of(one) for one in (answered, retrieved, unnamed)] == ["answers", None, None]


def test_the_time_of_a_call_is_of_what_was_asked(tmp_path):
    retrieved = run(tmp_path, service(), [case(0)])
    answered = answer_run(tmp_path, answer_service(), [case(0)])
    assert timed_of(retrieved, kind_of(retrieved)) == "retrieval"
    assert timed_of(answered, kind_of(answered)) == "answer"
    assert timed_of(answered, None) is None


def test_a_kind_needs_the_table_of_cases(tmp_path):
    found = run(tmp_path, service(), [case(0)])
    (found.path / CASES).write_bytes(b"PAR1")
    with pytest.raises(RunError, match=r"cases\.parquet: cannot be read"):
        kind_of(found)


def test_a_table_that_cannot_be_read_tells_nothing(tmp_path):
    found = run(tmp_path, service(), [case(0)])
    (found.path / CASES).write_bytes(b"PAR1")
    assert asked(found) == Asked(None, None)
    (found.path / CASES).unlink()
    assert asked(found) == Asked(None, None)


def test_the_newest_run_of_answers_is_named(tmp_path):
    interrupted_run(tmp_path, service(), 2, 1)
    older, newer = (answer_run(tmp_path, answer_service(), [case(0)], top_k=k) for k in (3, 5))
    retrieved = run(tmp_path, service(), [case(0)])
    with pytest.raises(UsageError, match=f"the newest run of answers is {newer.run_id}"):
        score_answers(retrieved)
    (newer.path / "manifest.json").write_text("{", encoding="utf-8")
    assert older.run_id in str(without_answers(retrieved))


def test_without_one_the_command_is_named(tmp_path):
    retrieved = run(tmp_path, service(), [case(0)])
    assert str(without_answers(retrieved)).endswith("make one with `ragwb answer-eval`")
