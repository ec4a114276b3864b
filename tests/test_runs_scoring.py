from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import run_data
from loopback import json_reply
from run_data import case, service

from ragwb.errors import DataError, GoldenError, MetricError, UsageError
from ragwb.runs.results import ChunkText, Result, StageList
from ragwb.runs.scoring import score, score_trec, trec_rows
from ragwb.runs.store import Run, load_run
from ragwb.runs.tables import CANDIDATES, CASES, CHUNKS
from ragwb.runs.writer import GOLDEN, write_run


def run_of(
    folder: Path, results: dict[str, list[str]], *cases: dict[str, Any], **given: Any
) -> Run:
    return run_data.run(folder, service(results=results), cases, **given)


def test_scores_follow_from_the_run_at_any_k(tmp_path: Path) -> None:
    run = run_of(tmp_path, {"q1": ["doc-0", "doc-1"], "q2": ["doc-0"]}, case(1), case(2))
    scores = score(run, k=[1, 2, 10])
    frame = scores.frame.set_index("case_id")
    assert frame[["recall@1", "recall@2", "mrr@2"]].to_dict("index") == {
        "c1": {"recall@1": 0.0, "recall@2": 1.0, "mrr@2": 0.5},
        "c2": {"recall@1": 0.0, "recall@2": 0.0, "mrr@2": 0.0},
    }
    assert frame["recall@10"].isna().all()  # nothing beyond top K = 5 was observed
    assert (scores.top_k, scores.ks, scores.run_id) == (5, (1, 2, 10), run.run_id)


def test_a_sealed_run_is_scored_from_its_small_tables_which_it_keeps(tmp_path: Path) -> None:
    passage = case(1, expected_chunk_ids=[], evidence=[PASSAGE], tags={"domain": "fee"})
    run = run_of(tmp_path, {}, passage, case(2), repeats=2)
    expected = score(load_run(run.path), k=[1, 4])
    for name in (GOLDEN, CASES, CANDIDATES, CHUNKS):
        (run.path / name).unlink()
    opened = load_run(run.path, verify=False)
    pd.testing.assert_frame_equal(score(opened, k=[1, 4]).frame, expected.frame)
    for path in run.path.glob("*.parquet"):
        path.unlink()
    pd.testing.assert_frame_equal(score(opened, k=[1, 4]).results, expected.results)
    assert score(opened, k=2).ks == (2,)


def test_by_default_the_usual_ks_up_to_top_k(tmp_path: Path) -> None:
    run = run_of(tmp_path, {}, case(1), top_k=4)
    assert score(run).ks == (1, 3, 4)


def test_every_case_is_scored_excluded_or_an_error(tmp_path: Path) -> None:
    fake = service()
    fake.retrieve = lambda body: (
        json_reply({}, 500) if body["question"] == "q3" else json_reply({"results": []})
    )
    cases = [
        case(1),
        case(2, tier="diagnostic"),
        case(3),
        case(4, tier="retired"),
        case(5, mode="refuse", expected_chunk_ids=[]),
    ]
    scores = score(run_data.run(tmp_path, fake, cases))
    assert dict(zip(scores.frame["case_id"], scores.frame["status"], strict=True)) == {
        "c1": "scored",
        "c2": "excluded",
        "c3": "error",
        "c4": "excluded",
        "c5": "excluded",
    }
    assert (scores.n_scored, scores.n_excluded, scores.n_errors) == (1, 3, 1)


def test_a_k_out_of_range_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MetricError, match="101"):
        score(run_of(tmp_path, {}, case(1)), k=[101])


def test_another_id_space_is_no_score_of_zero(tmp_path: Path) -> None:
    run = run_of(tmp_path, {}, case(1))
    here = run.golden()[0]
    group = here.groups[0].model_copy(update={"chunk_ids": ("elsewhere",)})
    other = here.model_copy(update={"groups": (group,)})
    manifest = run.manifest.model_copy(update={"run_id": "other", "content_hash": None})
    chunks = [ChunkText(chunk_id) for chunk_id in run.chunks()["chunk_id"]]
    result = Result("c1", 1, "q1", n_results=1, stages={"results": StageList(["doc-0"])})
    path = write_run(
        tmp_path / "written",
        manifest,
        [other],
        [result],
        chunks=chunks,
    )
    with pytest.raises(GoldenError, match="another id space"):
        score(load_run(path))


PASSAGE = {"document_id": "doc", "document_version": "1", "quote": "第 1 段"}  # 5 of 6 characters


def test_passages_are_scored_in_characters(tmp_path: Path) -> None:
    passage = case(1, expected_chunk_ids=[], evidence=[PASSAGE])
    run = run_of(tmp_path, {"q1": ["doc-0", "doc-1"]}, passage, case(2))
    frame = score(run, k=[1, 2, 10]).frame.set_index("case_id")
    assert frame.loc["c1", ["passage_recall@1", "passage_recall@2"]].tolist() == [0.0, 1.0]
    # 5 characters of the 12 of two chunks; nothing is left uncovered.
    assert frame.loc["c1", "passage_precision@2"] == pytest.approx(5 / 12)
    assert frame.loc["c1", "passage_iou@2"] == pytest.approx(5 / 12)
    assert frame.loc["c1", "passage_iou@1"] == 0.0
    assert pd.isna(frame.loc["c1", "passage_recall@10"])
    assert pd.isna(frame.loc["c2", "passage_recall@2"])  # evidence by id alone


def test_without_passages_there_are_no_passage_figures(tmp_path: Path) -> None:
    scores = score(run_of(tmp_path, {}, case(1)))
    assert not [name for name in scores.frame if str(name).startswith("passage")]


def test_trec_sorts_again_by_score(tmp_path: Path) -> None:
    fake = service()
    tied = {"results": [{"chunkId": f"doc-{n}", "score": 1.0} for n in (1, 2, 3)]}
    fake.retrieve = lambda _: json_reply(tied)
    run = run_data.run(tmp_path, fake, [case(3)])
    assert score(run, k=5).frame["mrr@5"].tolist() == [pytest.approx(1 / 3)]
    result = score_trec(run, k=5)
    assert (result["sorted_by"], result["level"]) == ("score", 1)
    assert result["metrics"]["recip_rank"] == 1.0  # equal scores: ids descending
    assert result["cases"][0]["case_id"] == "c3"
    assert {"metric": "recip_rank", "value": 1.0, "n": 1} in trec_rows(result)


def test_trec_takes_the_position_where_scores_are_missing(tmp_path: Path) -> None:
    run = run_of(tmp_path, {"q3": ["doc-1", "doc-2", "doc-3"]}, case(3), repeats=2)
    result = score_trec(run, k=[3])
    assert result["sorted_by"] == "position"
    assert result["metrics"]["recip_rank"] == pytest.approx(1 / 3)
    assert result["metrics"]["P@3"] == pytest.approx(1 / 3)


def test_trec_accounts_for_every_case(tmp_path: Path) -> None:
    fake = service()
    fake.retrieve = lambda body: {
        "q2": json_reply({"results": []}),  # trec_eval leaves a topic without results out
        "q3": json_reply({}, 500),
    }.get(body["question"], json_reply({"results": [{"chunkId": "doc-1"}]}))
    cases = [case(1), case(2), case(3), case(4, tier="diagnostic")]
    result = score_trec(run_data.run(tmp_path, fake, cases), k=1)
    counts = {name: result[name] for name in result if name.startswith("n_")}
    assert counts == {"n_cases": 4, "n_scored": 1, "n_excluded": 2, "n_errors": 1}
    assert [row["n"] for row in trec_rows(result)] == [1] * len(result["metrics"])


def test_trec_refuses_duplicates(tmp_path: Path) -> None:
    run = run_of(tmp_path, {"q1": ["doc-1", "doc-1"]}, case(1))
    with pytest.raises(DataError, match="comes twice"):
        score_trec(run)


def test_no_other_tool_is_imitated(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="give one of trec"):
        score_trec(run_of(tmp_path, {}, case(1)), compat="ranx")
