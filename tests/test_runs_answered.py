"""Answers of a saved run: read back, scored, and written as layered records."""

import json

import pytest
from answer_data import PLAIN, resolved
from triage_data import told

from ragwb.cli import run as ragwb
from ragwb.errors import RunError, UsageError
from ragwb.measure.answered import JudgedAnswer
from ragwb.records import Chunk, Citation
from ragwb.runs.answered import answered_cases, score_answers
from ragwb.runs.layers import layer_records, write_layers
from ragwb.runs.manifest import RunManifest
from ragwb.runs.notes import Note, add_note
from ragwb.runs.results import ChunkText, Result, StageList
from ragwb.runs.store import load_run
from ragwb.runs.writer import EXPLAIN, write_run

QUESTION = "?"
OBSERVED = ("results", "context")


def result(case_id, repeat=1, *, results=("a", "b"), context=("a",), **given):
    stages = {"results": StageList(results), "context": StageList(context)}
    said = {"mode": "answer", "answer": "三天到账。", "citations": ["a"], "observed": OBSERVED}
    return Result(case_id, repeat, QUESTION, stages=stages, **{**said, **given})


def saved(folder, golden, results, **manifest):
    held = {
        "run_id": "run-1",
        "created_at": "2026-11-30T08:00:00+00:00",
        "base_url": "http://service.example",
        "dataset_version": "v",
        "dataset_hash": "",
        "top_k": 3,
        "packages": {},
        "repeats": 1,
        "knowledge_snapshot": "sha",
    }
    chunks = [
        ChunkText("a", "refund", "2", "退款", "三天到账"),
        ChunkText("b", "refund", "1", None, "七天到账"),
    ]
    made = RunManifest(**{**held, **manifest})
    return load_run(write_run(folder / "runs", made, golden, results, chunks=chunks))


CASE = resolved("c0", ["a"], required_claims=["三天到账"], question=QUESTION)


def test_an_answer_is_read_back_as_it_was_given(tmp_path):
    given = {
        "citations": ["a", "b"],
        "citation_claims": ["三天", None],
        "actions": ["search"],
        "refusal_reason": "NO_EVIDENCE",
        "context_tokens": 10,
        "prompt_tokens": 20,
        "completion_tokens": 5,
        "latency_ms": 1.5,
    }
    run = saved(tmp_path, [CASE], [result("c0", **given)])
    explanation = {"chunk_id": "b", **told(filtered_by=["VERSION"])}
    line = {"case_id": "c0", "repeat": 1, "question": QUESTION, "explanation": explanation}
    (run.path / EXPLAIN).write_text(json.dumps(line) + "\n", encoding="utf-8")
    (one,) = answered_cases(run)
    assert one.citations == (
        Citation(chunk_id="a", claim="三天"),
        Citation(chunk_id="b", claim=None),
    )
    assert (one.mode, one.text, one.refusal_reason) == ("answer", "三天到账。", "NO_EVIDENCE")
    assert (one.results, one.context, one.actions) == (("a", "b"), ("a",), ("search",))
    assert (one.context_tokens, one.prompt_tokens, one.completion_tokens) == (10, 20, 5)
    assert one.latency_ms == 1.5
    assert one.chunks["b"] == Chunk(
        chunk_id="b", document_id="refund", document_version="1", text="七天到账"
    )
    assert score_answers(run, PLAIN).failures()["reason"].tolist() == [
        "STALE_VERSION_LEAK",
        "UNKNOWN_CITATION",
        "UNSAFE_ACTION",
    ]


def test_what_was_not_observed_is_none(tmp_path):
    bare = result("c0", citations=None, observed=("results",), answer=None, mode=None)
    (one,) = answered_cases(saved(tmp_path, [CASE], [bare]))
    for name in ("citations", "context", "actions", "mode", "text", "prompt_tokens", "latency_ms"):
        assert getattr(one, name) is None, name


def test_an_error_stays_an_error(tmp_path):
    golden = [CASE, resolved("c1", ["a"], question=QUESTION)]
    results = [result("c0"), Result("c1", 1, QUESTION, status="error", error="HTTP 500")]
    run = saved(tmp_path, golden, results)
    scores = score_answers(run, PLAIN)
    assert scores.frame["status"].tolist() == ["scored", "error"]
    assert scores.frame["reason"][1] == "HTTP 500"
    assert scores.run_id == "run-1"


def test_a_run_that_only_retrieved_has_no_answers(tmp_path):
    run = saved(tmp_path, [CASE], [result("c0", mode=None, answer=None, citations=None)])
    with pytest.raises(UsageError, match="run run-1 only retrieved"):
        score_answers(run)


def test_the_default_rules_and_a_judge_are_taken(tmp_path):
    run = saved(tmp_path, [CASE], [result("c0", answer="三天到账，已为您办理退款。")])
    judged = {("c0", 1): JudgedAnswer(accepted=True)}
    scores = score_answers(run, judged=judged)
    assert scores.failures()["rule"].tolist() == ["claims-action-done"]
    assert scores.frame["accepted"].tolist() == [0]


def layers_of(run, **given):
    return list(layer_records(run, **given))


def test_a_layered_record_a_case(tmp_path):
    refuse = resolved("c1", mode="refuse", question=QUESTION)
    lost = resolved("c2", ["x"], ["a"], question=QUESTION, required_claims=["五天"])
    results = [result("c0"), result("c1", mode="refuse", citations=[]), result("c2")]
    run = saved(tmp_path, [CASE, refuse, lost], results)
    note = Note("c2", 1, 3, "recall", "NOT_IN_CANDIDATES", True, None, None, "对", "me", "2026")
    add_note(run, note)
    records = layers_of(
        run,
        scores=score_answers(run, PLAIN),
        findings={"c2": ("recall", "NOT_IN_CANDIDATES", 1)},
    )
    assert [record["question_id"] for record in records] == ["c0", "c1", "c2"]
    assert {record["knowledge_version"] for record in records} == {"sha"}
    first, refused, failed = records
    assert first["retrieval"] == {"k": 3, "status": "scored", "recall": 1, "reciprocal_rank": 1}
    assert (first["evidence"]["complete"], first["evidence"]["conflict"]) == (True, False)
    assert (first["generation"]["correct"], first["generation"]["claim_coverage"]) == (True, 1)
    assert (first["failure_stage"], first["reason"], first["review_note"]) == (None, None, None)
    assert refused["retrieval"]["recall"] is None
    assert refused["evidence"]["complete"] is None
    assert refused["generation"]["mode"] == "refuse"
    assert failed["retrieval"]["recall"] == 0.5
    assert failed["evidence"]["complete"] is False
    assert failed["generation"]["correct"] is False
    assert (failed["failure_stage"], failed["reason"]) == ("recall", "NOT_IN_CANDIDATES")
    assert (failed["review_note"]["text"], failed["review_note"]["agreed"]) == ("对", True)


def test_the_repeat_that_failed_stands_for_its_case(tmp_path):
    results = [result("c0"), result("c0", 2, answer="不知道。"), result("c0", 3, results=("b",))]
    run = saved(tmp_path, [CASE], results, repeats=3)
    (record,) = layers_of(run, scores=score_answers(run, PLAIN))
    assert (record["repeat"], record["n_repeats"]) == (2, 3)
    (record,) = layers_of(run)
    assert (record["repeat"], record["generation"]) == (3, None)


def test_figures_and_failure_stage_are_of_the_same_repeat(tmp_path, capfd):
    """Twice the evidence is lost, which is what triage names, after an answer that is wrong."""
    lost = [result("c0", n, results=("b",), context=("b",), citations=("b",)) for n in (2, 3)]
    results = [result("c0", answer="不知道。"), *lost]
    run = saved(tmp_path, [CASE], results, repeats=3)
    assert ragwb(["export", str(run.path), "layers"]) == 0
    (record,) = map(json.loads, capfd.readouterr().out.splitlines())
    assert (record["repeat"], record["failure_stage"]) == (2, "unknown")
    assert (record["retrieval"]["recall"], record["evidence"]["complete"]) == (0, False)


def test_a_case_without_an_answer_is_null(tmp_path):
    failed = Result("c0", 1, QUESTION, status="error", error="HTTP 500")
    (record,) = layers_of(saved(tmp_path, [CASE], [failed]))
    assert (record["repeat"], record["n_repeats"], record["evidence"]) == (None, 0, None)
    assert record["retrieval"]["status"] == "error"


@pytest.mark.parametrize("k", [0, 4])
def test_nothing_is_known_beyond_top_k(tmp_path, k):
    run = saved(tmp_path, [CASE], [result("c0")])
    with pytest.raises(UsageError, match=f"K {k}: the run asked for 3"):
        layers_of(run, k=k)


def test_layers_are_written_as_json_lines(tmp_path):
    hostile = resolved("<b>c0", ["a"], question="退款\x1b[31m？")
    run = saved(tmp_path, [hostile], [result(hostile.case.id)])
    path = tmp_path / "out" / "layers.jsonl"
    assert write_layers(layer_records(run, scores=score_answers(run, PLAIN)), path) == 1
    (line,) = path.read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["question_id"] == hostile.case.id
    with pytest.raises(RunError, match="out"):
        write_layers([], tmp_path / "out")


def test_the_command_prints_or_writes_the_layers(tmp_path, capfd):
    run = saved(tmp_path, [CASE], [result("c0")])
    assert ragwb(["export", str(run.path), "layers"]) == 0
    record = json.loads(capfd.readouterr().out)
    assert record["generation"]["correct"] is True
    path = tmp_path / "layers.jsonl"
    assert ragwb(["export", str(run.path), "layers", "--to", str(path)]) == 0
    assert capfd.readouterr().out == f"{path}\n"
    assert json.loads(path.read_text(encoding="utf-8")) == record
    assert ragwb(["export", str(run.path), "nonsense"]) == 2
    assert "give one of layers" in capfd.readouterr().err


def test_a_run_that_only_retrieved_has_layers_too(tmp_path, capfd):
    run = saved(tmp_path, [CASE], [result("c0", mode=None, answer=None, results=("b",))])
    assert ragwb(["export", str(run.path), "layers"]) == 0
    record = json.loads(capfd.readouterr().out)
    assert record["generation"] is None
    assert record["failure_stage"] is not None
