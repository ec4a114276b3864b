"""Points in processes: the same results, and a lost process loses nothing."""

import os

import pytest
from sweep_data import (
    NOW,
    dying_always,
    dying_once,
    figures_of,
    make_dataset,
    make_home,
    small_grid,
)

from ragwb.errors import MissingExtraError, UsageError
from ragwb.sweep.chunking import make_tasks
from ragwb.sweep.points import Task
from ragwb.sweep.pool import run_tasks


def tasks_in(folder) -> list[Task]:
    corpus, settings = make_home(folder)
    grid = small_grid(size=[12, 20, 40])
    dataset = make_dataset()
    return make_tasks(grid, corpus=corpus, dataset=dataset, settings=settings, clock=lambda: NOW)


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> list[dict[str, object]]:
    return figures_of(run_tasks(tasks_in(tmp_path_factory.mktemp("one"))))


@pytest.mark.slow
def test_two_processes_give_what_one_gives(tmp_path, expected):
    told = []
    before = dict(os.environ)
    results = run_tasks(tasks_in(tmp_path), workers=2, on_point=told.append)
    assert figures_of(results) == expected
    assert sorted(r.point.size for r in told) == [12, 20, 40]
    assert dict(os.environ) == before


@pytest.mark.slow
def test_a_lost_process_loses_nothing(tmp_path, expected):
    assert figures_of(run_tasks(tasks_in(tmp_path), workers=2, run=dying_once)) == expected


@pytest.mark.slow
def test_a_point_that_ends_every_process_is_a_row_with_its_error(tmp_path, expected):
    results = run_tasks(tasks_in(tmp_path), workers=2, run=dying_always)
    assert figures_of(results[1:]) == expected[1:]
    assert "its process died each time" in results[0].error
    assert results[0].point.size == 12


def test_fewer_than_one_worker_is_refused(tmp_path):
    with pytest.raises(UsageError, match="workers 0: give at least 1"):
        run_tasks([], workers=0)


def test_no_points_give_no_results():
    assert run_tasks([]) == []


def test_dask_needs_its_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(MissingExtraError, match="--dask needs the extra 'dask'"):
        run_tasks(tasks_in(tmp_path), dask="tcp://127.0.0.1:1")
