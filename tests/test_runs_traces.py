"""A run's traces: what every stage of one result held, read once and cut on demand."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from triage_data import QUESTION, Shown, saved, told

from ragwb.errors import RunError
from ragwb.runs.results import FilteredChunk
from ragwb.runs.traces import Traces, load_traces
from ragwb.runs.writer import EXPLAIN

FULL = Shown(
    channels={"vector": ["a", "b", "a"], "graph": ["c"], "keyword": []},
    fused=["b", "a"],
    reranked=[],
    results=["a"],
    context=["a"],
    filtered=[("d", "vector", "ACL"), ("e", None, "VERSION")],
    rewritten="另一个问题",
    explained={"a": told(ranks={"vector": 1})},
)
PLAIN = Shown(results=["b"], rewritten=QUESTION)


def load(folder: Path, *cases: Any) -> Traces:
    return load_traces(saved(folder, *(cases or (FULL, PLAIN))))


def test_traces_are_by_case_and_repeat_in_the_run_s_order(tmp_path: Path) -> None:
    traces = load(tmp_path, [FULL, FULL], Shown(error="503"), [PLAIN, PLAIN])
    assert list(traces) == [("c0", 1), ("c0", 2), ("c2", 1), ("c2", 2)]
    assert len(traces) == 4
    assert ("c0", 2) in traces
    assert ("c1", 1) not in traces
    assert traces.errors == {("c1", 1): "503"}
    assert [trace.repeat for trace in traces.of_case("c2")] == [1, 2]
    assert traces.of_case("c1") == []
    with pytest.raises(KeyError):
        traces["c1", 1]


def test_a_stage_that_was_not_observed_is_absent_and_an_empty_one_is_there(tmp_path: Path) -> None:
    full, plain = load(tmp_path).values()
    held = {name: list(stage.chunk_ids) for name, stage in full.stages.items()}
    assert held == {
        "vector": ["a", "b", "a"],
        "graph": ["c"],
        "fused": ["b", "a"],
        "reranked": [],
        "results": ["a"],
        "context": ["a"],
    }
    assert list(full.channels) == ["vector", "graph"]
    assert {name: list(stage.chunk_ids) for name, stage in plain.stages.items()} == {
        "results": ["b"]
    }


def test_filters_that_were_not_observed_are_none(tmp_path: Path) -> None:
    full, plain = load(tmp_path).values()
    assert full.filtered == (
        FilteredChunk("d", "vector", "ACL"),
        FilteredChunk("e", None, "VERSION"),
    )
    assert plain.filtered is None
    (empty,) = load(tmp_path / "empty", Shown(results=["a"], filtered=[])).values()
    assert empty.filtered == ()


def test_a_question_that_is_sent_as_it_stands_is_not_rewritten(tmp_path: Path) -> None:
    full, plain = load(tmp_path).values()
    assert (full.rewritten, plain.rewritten) == ("另一个问题", None)


def test_explanations_of_another_question_or_result_are_left_aside(tmp_path: Path) -> None:
    traces = load(tmp_path)
    path = traces.run.path / EXPLAIN
    (line,) = path.read_text(encoding="utf-8").splitlines()
    said = json.loads(line)
    others = [{**said, "question": "别的"}, {**said, "case_id": "c9"}, {**said, "repeat": 2}]
    path.write_text("".join(json.dumps(x) + "\n" for x in [said, *others]), encoding="utf-8")
    read = load_traces(traces.run)
    assert list(read.explanations(("c0", 1))) == ["a"]
    assert read["c0", 1].explanations["a"].ranks == {"vector": 1}
    assert read.explanations(("c1", 1)) == {}


def test_answers_that_came_since_are_known_from_then_on(tmp_path: Path) -> None:
    traces = load(tmp_path)
    (said,) = traces.run.explanations()
    assert traces.explanations(("c1", 1)) == {}
    traces.add_explanations([replace(said, case_id="c1")])
    assert list(traces.explanations(("c1", 1))) == ["a"]


def test_chunks_of_one_text_share_a_key_and_those_without_have_their_own(tmp_path: Path) -> None:
    shown = Shown(results=["a", "b", "c"])
    texts = {"a": "同文 \n", "b": "同文", "c": "别的"}
    traces = load_traces(saved(tmp_path, shown, texts=texts))
    assert traces.text_key("a") == traces.text_key("b") != traces.text_key("c")
    assert traces.text_key("unknown") == "unknown"
    assert traces.chunk("c").text == "别的"
    assert traces.chunk("unknown").text is None
    assert (traces.knows("a"), traces.knows("unknown")) == (True, False)


def test_the_lists_of_a_stage_stand_in_one_array(tmp_path: Path) -> None:
    traces = load(tmp_path)
    codes, scores = traces.padded("results", list(traces))
    assert [[traces.chunk_names[code] for code in row] for row in codes] == [["a"], ["b"]]
    assert scores.shape == codes.shape
    codes, _ = traces.padded("vector", list(traces))
    assert [[traces.chunk_names[code] for code in row] for row in codes] == [
        ["a", "b", "a"],
        [None] * 3,
    ]


TABLES = [
    ("candidates.parquet", "score"),
    ("cases.parquet", "observed"),
    ("filtered.parquet", "reason"),
]


@pytest.mark.parametrize(("name", "column"), TABLES)
def test_a_table_of_another_version_is_one_line(tmp_path: Path, name: str, column: str) -> None:
    run = saved(tmp_path, FULL)
    path = run.path / name
    pq.write_table(pq.read_table(path).drop_columns([column]), path)
    with pytest.raises(RunError, match=f"{name}: no column '{column}'; written by another version"):
        load_traces(run)


@pytest.mark.parametrize("name", [name for name, _ in TABLES])
def test_a_broken_table_is_one_line(tmp_path: Path, name: str) -> None:
    run = saved(tmp_path, FULL)
    (run.path / name).write_bytes(b"PAR1")
    with pytest.raises(RunError, match=f"{name}: cannot be read") as caught:
        load_traces(run)
    assert "\n" not in str(caught.value)
