"""A run's traces as arrays, for what is computed over all results at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from triage_data import Shown, saved

from ragwb.knowledge.tokens import count_tokens
from ragwb.runs.results import ChunkText, FilteredChunk
from ragwb.runs.traces import Traces, load_traces

FIRST = Shown(
    channels={"vector": ["a", "b", "a"]},
    results=["a"],
    filtered=[("d", "vector", "ACL"), ("e", "vector", "VERSION")],
    scores={"vector": [0.9, 0.8, 0.7]},
)
SECOND = Shown(channels={"vector": ["c"]}, results=["c"], filtered=[])
THIRD = Shown(results=["b"])
FOURTH = Shown(results=["b"], filtered=[("a", "vector", "ACL")])


def load(folder: Path) -> Traces:
    return load_traces(saved(folder, FIRST, SECOND, THIRD, FOURTH))


def test_a_stage_of_many_results_has_a_row_a_result(tmp_path: Path) -> None:
    traces = load(tmp_path)
    codes, scores = traces.padded("vector", list(traces))

    assert traces.chunk_names[codes].tolist() == [
        ["a", "b", "a"],
        ["c", None, None],
        [None, None, None],
        [None, None, None],
    ]
    assert scores[0].tolist() == [0.9, 0.8, 0.7]
    assert np.isnan(scores[1:]).all()


def test_rows_stand_as_they_are_asked_for(tmp_path: Path) -> None:
    traces = load(tmp_path)
    codes, _ = traces.padded("results", [("c2", 1), ("c0", 1)])
    nothing, _ = traces.padded("results", [])

    assert traces.chunk_names[codes].tolist() == [["b"], ["a"]]
    assert nothing.shape == (0, 0)
    assert traces.padded("reranked", list(traces))[0].shape == (4, 0)


def test_what_filters_took_is_found_by_result_and_by_reason(tmp_path: Path) -> None:
    traces = load(tmp_path)

    assert traces.filtered(("c0", 1)) == (
        FilteredChunk("d", "vector", "ACL"),
        FilteredChunk("e", "vector", "VERSION"),
    )
    assert traces.filtered(("c1", 1)) == ()
    assert traces.filtered(("c2", 1)) is None
    assert traces.filtered_by("ACL") == {("c0", 1), ("c3", 1)}
    assert traces.filtered_by("VERSION") == {("c0", 1)}
    assert traces.filtered_by("TENANT") == set()


def test_tokens_are_those_of_title_and_text(tmp_path: Path) -> None:
    run = saved(tmp_path, THIRD, texts={"b": " 退款三天到账。\n", "blank": ""})
    traces = load_traces(run)

    assert traces.chunk("b") == ChunkText("b", text=" 退款三天到账。\n")
    assert traces.n_tokens("b") == count_tokens("\n退款三天到账。")
    assert traces.n_tokens("blank") is None
    assert traces.n_tokens("unknown") is None


def test_traces_are_equal_to_themselves_alone(tmp_path: Path) -> None:
    traces = load(tmp_path)
    assert traces != load_traces(traces.run)
    assert {traces: "kept"}[traces] == "kept"
