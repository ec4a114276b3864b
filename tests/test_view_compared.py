"""One case as two runs left it: which chunks share a line, and their ranks in both."""

import pytest
from compared_data import AFTER, K, compared, ranked, staged_run
from run_data import case

from ragwb.report.compare_cases import open_cases
from ragwb.view.case_view import CaseView, view_case
from ragwb.view.compared import ComparedCase, RankLine, Side, rank_lines, rank_step, step_words


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
    return compared(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def opened(comparison):
    """Every case by its question."""
    ids = comparison.pairs["case_id"].tolist()
    return {one.question: one for one in open_cases(comparison, ids)}


def side(folder, expected, stages) -> CaseView:
    """One case of a run of its own."""
    from ragwb.runs.traces import load_traces

    given = case(1, question="one", expected_chunk_ids=expected)
    traces = load_traces(staged_run(folder, {"one": stages}, [given]))
    return view_case(traces, traces.of_case("c1")[0], k=K)


def between(before: CaseView, after: CaseView) -> ComparedCase:
    sides = Side("a", before), Side("b", after)
    return ComparedCase("c1", "one", "fixed", False, (), {}, *sides)


def test_a_chunk_that_both_runs_know_has_one_line(opened):
    lines = rank_lines(opened["gains"])
    assert [line.chunk_ids for line in lines] == [
        (name, name) for name in ("doc-1", "doc-2", "doc-3", "doc-4")
    ]
    assert lines[0] == RankLine("required 1", "required", ("doc-1", "doc-1"), (False, True))
    assert {line.name for line in lines[1:]} == {"other"}


def test_ranks_stand_in_the_order_of_the_runs(opened):
    gains = opened["gains"]
    line = rank_lines(gains)[0]
    assert rank_step(gains, line, "reranked") == ("4", "1")
    assert rank_step(gains, line, "results") == ("–", "1")
    assert step_words(("4", "1")) == "4 → 1"
    assert step_words(("1", "1")) == "1"


def test_a_stage_that_one_run_does_not_show_is_not_observed_there(opened):
    falls = opened["falls high"]
    assert falls.stages == ("vector", "keyword", "fused", "reranked", "results", "context")
    forbidden = next(line for line in rank_lines(falls) if line.role == "forbidden")
    assert forbidden.chunk_ids == ("doc-9", "doc-9")
    assert forbidden.is_good == (True, True)
    assert rank_step(falls, forbidden, "keyword") == ("?", "1")


def test_under_another_chunking_chunks_of_the_same_evidence_share_a_line(tmp_path):
    before = side(tmp_path / "a", ["doc-1"], ranked("doc-1", "doc-5"))
    after = side(tmp_path / "b", ["doc-7"], ranked("doc-5", "doc-7"))
    required, other = rank_lines(between(before, after))
    assert required.chunk_ids == ("doc-1", "doc-7")
    assert required.is_good == (True, True)
    assert rank_step(between(before, after), required, "results") == ("1", "2")
    assert other.chunk_ids == ("doc-5", "doc-5")


def test_a_case_without_evidence_on_one_side_keeps_the_lines_of_the_other(tmp_path):
    before = side(tmp_path / "a", ["doc-1"], ranked("doc-1"))
    after = side(tmp_path / "b", ["doc-1", "doc-39"], AFTER["falls"])
    lines = [line for line in rank_lines(between(before, after)) if line.role == "required"]
    assert [line.name for line in lines] == ["required 1", "required 2"]
    assert lines[1].chunk_ids == (None, "doc-39")
    assert lines[1].is_good == (None, False)
    assert rank_step(between(before, after), lines[1], "results") == ("–", "–")


def test_what_stands_in_the_place_of_evidence_comes_by_its_best_rank(opened):
    others = [line.chunk_ids[0] for line in rank_lines(opened["passes"]) if line.role == "other"]
    assert others == ["doc-2", "doc-3"]
