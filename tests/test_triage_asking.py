"""Which chunks `/explain` is asked for: what was lost, what may be it, and all that came back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from triage_data import QUESTION, Shown, saved, told

from ragwb.errors import MetricError
from ragwb.runs.explaining import Wanted
from ragwb.runs.traces import load_traces
from ragwb.triage.asking import unexplained


def wanted(folder: Path, *cases: Any, k: int | None = None) -> list[Wanted]:
    return unexplained(load_traces(saved(folder, *cases)), k=k)


def ids(folder: Path, shown: Shown, k: int | None = None) -> list[str]:
    return [i for entry in wanted(folder, shown, k=k) for i in entry.chunk_ids[1]]


def test_lost_groups_come_first_then_all_that_came_back(tmp_path: Path) -> None:
    shown = Shown(
        groups=[["a", "b"], ["x1"]],
        results=["x1", "x2", "x1", "x3"],
        context=["x1", "y"],
        citations=["z", "x1"],
    )
    assert ids(tmp_path, shown, k=3) == ["a", "b", "x1", "x2", "y", "z"]


def test_what_was_explained_is_left_out(tmp_path: Path) -> None:
    shown = Shown(results=["x1", "x2"], explained={"a": told(), "x2": told()})
    assert ids(tmp_path, shown) == ["x1"]
    done = Shown(results=["a"], explained={"a": told()})
    assert wanted(tmp_path / "done", done) == []


def test_a_case_is_one_entry_with_its_repeats(tmp_path: Path) -> None:
    given = {"access": "hr"}
    found = Shown(results=["a"], given=given)
    lost = Shown(results=["x1"], given=given)
    assert wanted(tmp_path, [found, lost], Shown(error="503")) == [
        Wanted("c0", QUESTION, "hr", {1: ["a"], 2: ["a", "x1"]})
    ]


def test_a_group_without_chunks_asks_for_the_ids_that_the_case_expects(tmp_path: Path) -> None:
    case = {"mode": "answer", "expected_chunk_ids": ["x1", "s1"]}
    shown = Shown(groups=[[], ["x1"]], results=["x1"], given=case)
    assert ids(tmp_path / "1", shown) == ["s1", "x1"]
    # Not one of the ids is in use here: they are of another chunking.
    other = Shown(groups=[[]], results=["x1"], given={**case, "expected_chunk_ids": ["s1"]})
    assert ids(tmp_path / "2", other) == ["x1"]


def test_of_a_case_that_is_not_judged_only_what_came_back(tmp_path: Path) -> None:
    shown = Shown(results=["x1"], resolved={"excluded": "drifted: evidence[0]"})
    assert ids(tmp_path, shown) == ["x1"]


def test_a_k_that_was_not_asked_for_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MetricError, match="from 1 to 3"):
        wanted(tmp_path, Shown(results=["a"]), k=4)
