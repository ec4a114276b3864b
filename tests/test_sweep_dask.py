"""Points on a Dask cluster of two workers, one of which is killed in the middle."""

import dask
import distributed
import pytest
from sweep_data import dying_always, dying_once, figures_of
from test_sweep_pool import tasks_in

from ragwb.errors import UnreachableError
from ragwb.sweep.pool import run_tasks

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    settings = {
        "distributed.scheduler.allowed-failures": 1,
        "temporary-directory": str(tmp_path_factory.mktemp("dask")),
    }
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
        ) as cluster,
    ):
        yield cluster.scheduler_address


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    return figures_of(run_tasks(tasks_in(tmp_path_factory.mktemp("one"))))


def test_a_cluster_gives_what_one_process_gives(tmp_path, address, expected):
    told = []
    results = run_tasks(tasks_in(tmp_path), dask=address, on_point=told.append)
    assert figures_of(results) == expected
    assert len(told) == 3


def test_the_points_of_a_lost_worker_are_done_again(tmp_path, address, expected):
    results = run_tasks(tasks_in(tmp_path), dask=address, run=dying_once)
    assert (tmp_path / "home" / "sweep" / "died").exists()
    assert figures_of(results) == expected


def test_a_point_that_ends_every_worker_is_a_row_with_its_error(tmp_path, address, expected):
    results = run_tasks(tasks_in(tmp_path), dask=address, run=dying_always)
    assert figures_of(results[1:]) == expected[1:]
    assert "its process died each time" in results[0].error


@pytest.mark.parametrize("nowhere", ["tcp://127.0.0.1:1", "no address", "tcp://nope"])
def test_an_address_where_nothing_answers_is_said(tmp_path, nowhere):
    with pytest.raises(UnreachableError, match="no scheduler answers"):
        run_tasks(tasks_in(tmp_path), dask=nowhere)
