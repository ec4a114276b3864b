"""SQL over all runs: the same figures as `score`, and no way out of the registered views."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import duckdb
import pytest
from run_data import case, interrupted_run, run, service, settings

from ragwb.errors import RagwbError, UsageError
from ragwb.runs.baselines import save_baseline
from ragwb.runs.query import VIEWS, open_query, query_runs
from ragwb.runs.scoring import score
from ragwb.runs.sql import BATCH_ROWS, connect, stoppable
from ragwb.runs.store import Run


@pytest.fixture
def saved(tmp_path: Path) -> Run:
    """c0 and c1 are found within 5, c7 is not; c1 is tagged and c2 is a shadow."""
    cases = [
        case(0),
        case(1, tags={"domain": "退款"}, risk="high"),
        case(7),
        case(2, tier="shadow"),
    ]
    return run(tmp_path, service(), cases)


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_figures_are_those_of_score(saved: Run, tmp_path: Path) -> None:
    found = query_runs(
        """select dataset_version, avg(recall) recall, avg(mrr) mrr
           from cases where scored group by 1""",
        settings(tmp_path),
    )
    summary = score(saved, 5).summary().set_index("metric")["value"]
    (row,) = found.rows()
    assert row == {
        "dataset_version": "v1",
        "recall": pytest.approx(summary["recall@5"]),
        "mrr": pytest.approx(summary["mrr@5"]),
    }


def test_cases_carry_tags_tier_and_risk(saved: Run, tmp_path: Path) -> None:
    sql = "select case_id, tags['domain'] tag, tier, risk, failed from cases order by case_id"
    assert query_runs(sql, settings(tmp_path)).rows() == [
        {"case_id": "c0", "tag": None, "tier": "blocking", "risk": "normal", "failed": False},
        {"case_id": "c1", "tag": "退款", "tier": "blocking", "risk": "high", "failed": False},
        {"case_id": "c2", "tag": None, "tier": "shadow", "risk": "normal", "failed": False},
        {"case_id": "c7", "tag": None, "tier": "blocking", "risk": "normal", "failed": True},
    ]


def test_several_runs_stand_in_each_view(saved: Run, tmp_path: Path) -> None:
    other = run(tmp_path, service(), [case(0), case(1)], top_k=3)
    save_baseline(settings(tmp_path), "before", saved.path)
    sql = "select run_id, top_k, names from runs order by top_k"
    assert query_runs(sql, settings(tmp_path)).rows() == [
        {"run_id": other.run_id, "top_k": 3, "names": ""},
        {"run_id": saved.run_id, "top_k": 5, "names": "before"},
    ]
    sql = """select run_id, count(*) n, max(position) last from candidates
             where stage = 'results' group by 1 order by n"""
    assert [(row["n"], row["last"]) for row in query_runs(sql, settings(tmp_path)).rows()] == [
        (6, 3),
        (20, 5),
    ]
    sql = "select case_id, first_hit from hits join runs using (run_id) where top_k = 3 order by 1"
    assert query_runs(sql, settings(tmp_path)).rows() == [
        {"case_id": "c0", "first_hit": 1},
        {"case_id": "c1", "first_hit": 2},
    ]
    assert query_runs("select count(*) n from cases", settings(tmp_path)).rows() == [{"n": 6}]


@pytest.mark.parametrize("view", sorted(VIEWS))
def test_an_empty_store_has_every_view_without_rows(tmp_path: Path, view: str) -> None:
    assert query_runs(f"select * from {view}", settings(tmp_path)).rows() == []


def test_documented_views_are_the_ones_there_are(saved: Run, tmp_path: Path) -> None:
    for view in VIEWS:
        assert query_runs(f"select run_id from {view}", settings(tmp_path)).table.num_rows > 0


def test_runs_that_no_view_holds_are_named(saved: Run, tmp_path: Path) -> None:
    unfinished = interrupted_run(_made(tmp_path / "other"), service(), n_cases=3, at=1)
    unfinished.rename(saved.path.parent / unfinished.name)
    (saved.path.parent / "junk").mkdir()
    found = query_runs("select count(*) n from runs", settings(tmp_path))
    assert found.rows() == [{"n": 1}]
    assert found.left_out == {unfinished.name: "unfinished", "junk": "broken"}


@pytest.mark.parametrize(
    "sql",
    [
        "select * from read_text('{file}')",
        "select * from '{file}'",
        "select * from glob('/*')",
        "select * from read_parquet('https://example.com/x.parquet')",
    ],
)
def test_a_query_reads_no_file_and_no_network(saved: Run, tmp_path: Path, sql: str) -> None:
    secret = tmp_path / "token.csv"
    secret.write_text("secret\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"disabled by configuration|does not exist"):
        query_runs(sql.format(file=secret), settings(tmp_path))


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("", "0 statements; give one SELECT"),
        ("select 1; drop view runs", "2 statements; give one SELECT"),
        ("copy (select 1) to '/tmp/x.csv'", "COPY is refused"),
        ("create table t (i int)", "CREATE is refused"),
        ("set enable_external_access = true", "SET is refused"),
        ("attach 'x.db'", "ATTACH is refused"),
        ("install httpfs", "LOAD is refused"),
        ("delete from runs", "DELETE is refused"),
        ("selec 1", "syntax error"),
        ("select nothing from runs", 'column "nothing"'),
        ("select * from nowhere", "nowhere does not exist"),
        ("select * from saved", "saved does not exist"),
    ],
)
def test_what_is_no_reading_query_is_one_line(
    saved: Run, tmp_path: Path, sql: str, said: str
) -> None:
    with pytest.raises(UsageError) as error:
        query_runs(sql, settings(tmp_path))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_run_with_a_missing_file_is_named(saved: Run, tmp_path: Path) -> None:
    (saved.path / "hits.parquet").unlink()
    for view in ("hits", "cases"):
        with pytest.raises(RagwbError, match=r"hits\.parquet"):
            query_runs(f"select * from {view}", settings(tmp_path))


def test_values_that_json_has_no_word_for_come_as_what_it_has(tmp_path: Path) -> None:
    sql = """select sum(i) whole, 1.5::decimal(4, 2) part, 'nan'::double nothing,
             date '2026-11-30' as "when", [1, null] list, map {'甲': 1} kept, 2 as whole
             from range(4) t(i)"""
    assert query_runs(sql, settings(tmp_path)).rows() == [
        {
            "whole": 6,
            "part": 1.5,
            "nothing": None,
            "when": "2026-11-30",
            "list": [1, None],
            "kept": {"甲": 1},
            "whole_2": 2,
        }
    ]


def test_the_columns_do_not_depend_on_what_is_null(saved: Run, tmp_path: Path) -> None:
    run(tmp_path, service(), [case(1, tags={"domain": "退款", "kind": "x"})])
    sql = """select column_name, column_type from (describe cases)
             where column_name in ('tags', 'failed', 'recall', 'error')"""
    types = {
        row["column_name"]: row["column_type"] for row in query_runs(sql, settings(tmp_path)).rows()
    }
    assert types == {
        "tags": "MAP(VARCHAR, VARCHAR)",
        "failed": "BOOLEAN",
        "recall": "DOUBLE",
        "error": "VARCHAR",
    }


def test_duckdb_of_the_caller_is_left_alone(saved: Run, tmp_path: Path) -> None:
    query_runs("select 1 from runs", settings(tmp_path))
    assert duckdb.sql("select current_setting('enable_external_access')").fetchall() == [(True,)]


@pytest.mark.parametrize(
    "sql",
    [
        "select r from range(5000000) t(r) order by hash(r)",
        "select count(distinct r) from range(20000000) t(r)",
        "select * from range(100000000000)",
    ],
)
def test_memory_is_bounded_and_the_line_says_so(tmp_path: Path, sql: str) -> None:
    with pytest.raises(UsageError, match=r"more memory than the 0\.0 GB that it may have: ask for"):
        query_runs(sql, settings(tmp_path), memory=30_000_000)


def test_rows_come_a_batch_at_a_time_and_a_fault_among_them_is_one_line(tmp_path: Path) -> None:
    with open_query("select * from range(100000000000)", settings(tmp_path)) as found:
        first = next(found.row_batches())
    assert 0 < len(first) <= BATCH_ROWS
    assert first[0] == {"range": 0}
    sql = "select case when r > 50000 then error('boom') end from range(60000) t(r)"
    with pytest.raises(UsageError, match=r"SQL: .*boom"):
        query_runs(sql, settings(tmp_path))


def test_ctrl_c_ends_a_query_that_would_not_end() -> None:
    main = threading.main_thread().ident
    assert main is not None
    with connect() as connection:

        def endless() -> None:
            signal.pthread_kill(main, signal.SIGINT)
            connection.sql("select count(*) from range(100000000000)").fetchall()

        with pytest.raises(KeyboardInterrupt):
            stoppable(endless, connection.interrupt)
        assert connection.sql("select 1").fetchall() == [(1,)]


def test_nothing_is_written_beside_the_runs(tmp_path: Path) -> None:
    found = query_runs("select current_setting('temp_directory') t", settings(tmp_path))
    assert found.rows() == [{"t": ""}]


def test_a_query_without_an_end_has_one(tmp_path):
    endless = "with recursive t(n) as (select 1 union all select n + 1 from t) select max(n) from t"
    with pytest.raises(UsageError, match=r"no row within 0\.2 s: ask for less, or give more time"):
        query_runs(endless, settings(tmp_path), timeout_s=0.2)
