from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st
from retrieval_reference import figures

from ragwb.errors import DataError, MetricError
from ragwb.measure import kernel
from ragwb.measure.blocks import Block
from ragwb.measure.labels import LABEL_SCHEMA
from ragwb.measure.retrieval import (
    METRICS,
    Hits,
    Labels,
    find_hits,
    load_hits,
    save_hits,
    score_hits,
)
from ragwb.runs.results import Result, StageList
from ragwb.runs.tables import write_tables

KS = (1, 2, 3, 5, 10, 100)
COLUMNS = ("case_id", "repeat", "stage", "position", "chunk_id")


@dataclass
class Resolved:
    case: SimpleNamespace
    groups: list[SimpleNamespace]
    forbidden_chunk_ids: Sequence[str]


def resolved(case_id: str, groups: Sequence[Sequence[str]], forbidden: Sequence[str] = ()):
    return Resolved(
        SimpleNamespace(id=case_id), [SimpleNamespace(chunk_ids=g) for g in groups], forbidden
    )


def candidates(results: dict[tuple[str, int], Sequence[str]], stage: str = "results") -> pa.Table:
    rows = [
        (case_id, repeat, stage, position, chunk)
        for (case_id, repeat), chunks in results.items()
        for position, chunk in enumerate(chunks, 1)
    ]
    columns = [list(column) for column in zip(*rows, strict=True)] or [[]] * 5
    types = [pa.string(), pa.int32(), pa.string(), pa.int32(), pa.string()]
    return pa.table(
        [pa.array(c, t) for c, t in zip(columns, types, strict=True)], names=list(COLUMNS)
    )


def scored(retrieved, groups, k, forbidden=()) -> dict[str, float]:
    hits = find_hits(
        candidates({("q", 1): retrieved}), [resolved("q", groups, forbidden)], [("q", 1)]
    )
    row = score_hits(hits, k).iloc[0]
    return {name: row[f"{name}@{k}"] for name in METRICS}


WORKED = [
    # retrieved, groups, K, recall, hit, mrr, ndcg, map, precision, duplicate_rate
    ("c10 c99 c11", ["c10", "c11"], 1, 0.5, 1, 1, 1, 0.5, 1, 0),
    ("c10 c99 c11", ["c10", "c11"], 2, 0.5, 1, 1, 0.61315, 0.5, 0.5, 0),
    ("c10 c99 c11", ["c10", "c11"], 3, 1, 1, 1, 0.91972, 0.83333, 0.66667, 0),
    ("c1 c1 c2", ["c2"], 2, 0, 0, 0, 0, 0, 0, 0.5),
    ("c1 c1 c2", ["c2"], 3, 1, 1, 0.33333, 0.5, 0.33333, 0.33333, 0.33333),
    ("x faq policy", ["faq policy"], 2, 1, 1, 0.5, 0.63093, 0.5, 0.5, 0),
    ("faq policy x fee", ["faq policy", "fee"], 2, 0.5, 1, 1, 0.61315, 0.5, 1, 0),
    ("faq policy x fee", ["faq policy", "fee"], 4, 1, 1, 1, 0.87722, 0.75, 0.75, 0),
    ("big x", ["big", "big small"], 1, 1, 1, 1, 1, 1, 1, 0),
    ("", ["c1"], 5, 0, 0, 0, 0, 0, 0, 0),
]


@pytest.mark.parametrize("row", WORKED)
def test_worked_values(row) -> None:
    retrieved, groups, k, *expected = row
    got = scored(retrieved.split(), [group.split() for group in groups], k)
    names = ("recall", "hit", "mrr", "ndcg", "map", "precision", "duplicate_rate")
    assert [got[name] for name in names] == pytest.approx(expected, abs=5e-6)
    assert got["failed"] == (expected[0] < 1)


ELSEWHERE = [
    # Where other tools differ: metric, retrieved, groups, K, the value here.
    ("recall", "A A B", ["A", "B"], 2, 0.5),
    ("ndcg", "A A B", ["A", "B"], 2, 0.61315),
    ("ndcg", "A A B", ["A", "B"], 3, 0.91972),
    ("mrr", "d1 d2 d3", ["d3"], 3, 1 / 3),
    ("ndcg", "X A B", ["A", "B", "C"], 3, 0.53072),
    ("ndcg", "A", ["A", "B", "C", "D", "E"], 5, 0.33916),
    ("precision", "A B x", ["A", "B"], 5, 0.4),
    ("mrr", "A X B", ["A", "B"], 3, 1.0),
]


@pytest.mark.parametrize("row", ELSEWHERE)
def test_values_where_other_tools_differ(row) -> None:
    metric, retrieved, groups, k, expected = row
    got = scored(retrieved.split(), [group.split() for group in groups], k)
    assert got[metric] == pytest.approx(expected, abs=5e-6)


CHUNKS = [f"chunk-{i}" for i in range(8)]
GROUPS = st.lists(st.lists(st.sampled_from(CHUNKS), max_size=4), max_size=4)
CASE = st.tuples(
    GROUPS,
    st.lists(st.sampled_from(CHUNKS), max_size=3),
    st.lists(st.lists(st.sampled_from(CHUNKS), max_size=14), min_size=1, max_size=3),
)


def agrees(frame: pd.DataFrame, results, labels) -> None:
    for row in frame.to_dict("records"):
        groups, forbidden = labels[row["case_id"]]
        retrieved = results[row["case_id"], row["repeat"]]
        for k in KS:
            for name, value in figures(retrieved, groups, forbidden, k).items():
                got = row[f"{name}@{k}"]
                where = f"{name}@{k} of {retrieved} for {groups}"
                if value is None:
                    assert pd.isna(got), where
                else:
                    assert got == pytest.approx(value, abs=1e-12), where


@settings(deadline=None, max_examples=80)
@given(cases=st.lists(CASE, max_size=6), batch_rows=st.sampled_from([1, 2, 7, 100_000]))
def test_agrees_with_the_plain_definitions(cases, batch_rows) -> None:
    labels = {f"case-{i}": (groups, bad) for i, (groups, bad, _) in enumerate(cases)}
    results = {
        (f"case-{i}", repeat): chunks
        for i, (_, _, repeats) in enumerate(cases)
        for repeat, chunks in enumerate(repeats, 1)
    }
    hits = find_hits(
        candidates(results),
        [resolved(case_id, *label) for case_id, label in labels.items()],
        list(results),
        batch_rows=batch_rows,
    )
    frame = score_hits(hits, KS)
    assert list(zip(frame["case_id"], frame["repeat"], strict=True)) == list(results)
    agrees(frame, results, labels)


def random_run(seed: int, *, n_cases: int = 40, duplicates: bool = True, shared: bool = True):
    rng = np.random.default_rng(seed)
    labels, results = {}, {}
    for i in range(n_cases):
        ids = [f"chunk-{j:03d}" for j in rng.permutation(120)]
        n_groups = int(rng.integers(1, 5))
        if shared:
            groups = [list(rng.choice(ids[:12], rng.integers(1, 4))) for _ in range(n_groups)]
        else:
            groups = [[chunk] for chunk in ids[:n_groups]]
        retrieved = list(rng.permutation(ids[: int(rng.integers(0, 110))]))
        if duplicates and retrieved:
            retrieved += list(rng.choice(retrieved, 5))
        labels[f"q{i}"] = (groups, list(rng.choice(ids[:20], 2)))
        results[f"q{i}", 1] = [str(chunk) for chunk in retrieved]
    return labels, results


def hits_of(labels, results, **options):
    cases = [resolved(case_id, *label) for case_id, label in labels.items()]
    return find_hits(candidates(results), cases, list(results), **options)


def test_agrees_with_the_plain_definitions_on_long_results_in_any_blocks() -> None:
    labels, results = random_run(1)
    for batch_rows in (64, 2048, 100_000):
        agrees(score_hits(hits_of(labels, results, batch_rows=batch_rows), KS), results, labels)


def test_agrees_with_trec_eval_where_each_group_has_one_chunk_and_nothing_repeats() -> None:
    labels, results = random_run(2, duplicates=False, shared=False)
    frame = score_hits(hits_of(labels, results), KS).set_index("case_id")
    qrels = {case: {str(group[0]): 1 for group in groups} for case, (groups, _) in labels.items()}
    run = {case: {c: -float(i) for i, c in enumerate(ids)} for (case, _), ids in results.items()}
    names = {"recall": "recall", "P": "precision", "map_cut": "map", "ndcg_cut": "ndcg"}
    names |= {"success": "hit"}
    cutoffs = ",".join(map(str, KS))
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {f"{name}.{cutoffs}" for name in names})
    compared = 0
    for case_id, figures_there in theirs.evaluate(run).items():
        for name, value in figures_there.items():
            metric, _, k = name.rpartition("_")
            assert frame.at[case_id, f"{names[metric]}@{k}"] == pytest.approx(value, abs=1e-12)
            compared += 1
    assert compared == len(names) * len(KS) * sum(bool(ids) for ids in results.values())


def test_agrees_with_plain_sql_over_the_file(tmp_path: Path) -> None:
    labels, results = random_run(3)
    path = tmp_path / "candidates.parquet"
    pq.write_table(candidates(results), path, row_group_size=700)
    rows = [
        (case_id, number, chunk)
        for case_id, (groups, _) in labels.items()
        for number, group in enumerate(groups)
        for chunk in group
    ]
    wanted = pd.DataFrame(rows, columns=["case_id", "number", "chunk_id"])
    with duckdb.connect() as connection:
        connection.register("wanted", wanted)
        theirs = connection.sql(f"""
            with first as (
                select w.case_id, w.number, min(c.position) as hit from wanted w
                left join read_parquet('{path}') c
                    on c.case_id = w.case_id and c.chunk_id = w.chunk_id group by all)
            select case_id, avg(coalesce(hit <= 10, false)::int) as recall,
                coalesce(max(if(hit <= 10, 1 / hit, 0)), 0) as mrr from first group by all
        """).df()
        repeats = connection.sql(f"""
            select case_id, 1 - count(distinct chunk_id) / count(*) as rate
            from read_parquet('{path}') where position <= 10 group by all
        """).df()
    cases = [resolved(case_id, *label) for case_id, label in labels.items()]
    frame = score_hits(find_hits(path, cases, list(results)), 10).set_index("case_id")
    theirs = theirs.set_index("case_id").reindex(frame.index)
    np.testing.assert_allclose(frame["recall@10"], theirs["recall"], atol=1e-12)
    np.testing.assert_allclose(frame["mrr@10"], theirs["mrr"], atol=1e-12)
    rates = repeats.set_index("case_id")["rate"].reindex(frame.index).fillna(0)
    np.testing.assert_allclose(frame["duplicate_rate@10"], rates, atol=1e-12)


def test_the_order_of_labels_and_of_cases_in_them_changes_nothing() -> None:
    labels, results = random_run(4)
    rows = [
        (case_id, number, chunk, False)
        for case_id, (groups, _) in labels.items()
        for number, group in enumerate(groups)
        for chunk in group
    ]
    rows += [(case_id, None, chunk, True) for case_id, (_, bad) in labels.items() for chunk in bad]
    table = pa.table([list(column) for column in zip(*rows, strict=True)], schema=LABEL_SCHEMA)
    shuffled = table.take(pa.array(np.random.default_rng(0).permutation(len(table))))
    frames = [
        score_hits(find_hits(candidates(results), Labels.from_tables([t]), list(results)), KS)
        for t in (table, shuffled)
    ]
    pd.testing.assert_frame_equal(*frames)
    agrees(frames[0], results, labels)


def test_other_stages_are_not_looked_at() -> None:
    table = pa.concat_tables(
        [candidates({("q", 1): ["a", "b"]}, "fused"), candidates({("q", 1): ["b"]}, "results")]
    )
    got = {
        stage: score_hits(find_hits(table, [resolved("q", [["a"]])], [("q", 1)], stage=stage), 1)
        for stage in ("fused", "results", "reranked")
    }
    assert {stage: frame.at[0, "recall@1"] for stage, frame in got.items()} == {
        "fused": 1.0,
        "results": 0.0,
        "reranked": 0.0,
    }


def test_a_case_without_groups_has_nulls_but_for_duplicates_and_forbidden() -> None:
    got = scored(["x", "x"], [], 2, forbidden=["x"])
    assert {name for name, value in got.items() if not pd.isna(value)} == {
        "duplicate_rate",
        "forbidden",
    }
    assert (got["duplicate_rate"], got["forbidden"]) == (0.5, 1)


def test_a_group_that_no_chunk_can_satisfy_counts_as_not_found() -> None:
    got = scored(["a"], [["a"], []], 5)
    assert got["recall"] == 0.5
    assert got["ndcg"] == pytest.approx(0.61315, abs=5e-6)
    assert scored(["a"], [[]], 5)["ndcg"] == 0.0


def test_an_order_that_beats_the_greedy_one_counts_one() -> None:
    # Greedy takes a (3 groups), then b and c (1 each); b, c, then nothing satisfies as fast.
    groups = [["a", "b"], ["a", "b"], ["a", "c"], ["b"], ["c"], ["a", "c"]]
    assert scored(["b", "c"], groups, 2)["ndcg"] == 1.0
    assert scored(["a", "b", "c"], groups, 3)["ndcg"] <= 1.0


@pytest.mark.parametrize("k", [0, 101, -1, 2.5, True, "5"])
def test_a_k_outside_its_range_is_refused(k) -> None:
    with pytest.raises(MetricError, match="from 1 to 100"):
        score_hits(hits_of({"q": ([["a"]], [])}, {("q", 1): ["a"]}), [k])
    with pytest.raises(MetricError, match="no K"):
        score_hits(hits_of({"q": ([["a"]], [])}, {("q", 1): ["a"]}), [])


def bad_positions(positions: Sequence[int]) -> pa.Table:
    table = candidates({("q", 1): ["a", "b", "c"]})
    return table.set_column(3, "position", pa.array(positions, pa.int32()))


@pytest.mark.parametrize("positions", [[1, 3, 2], [2, 3, 4], [1, 1, 2], [0, 1, 2], [1, 2, 4]])
def test_positions_that_do_not_go_1_2_3_are_refused(positions) -> None:
    with pytest.raises(DataError, match="'q', repeat 1: position"):
        find_hits(bad_positions(positions), [resolved("q", [["a"]])], [("q", 1)])


@pytest.mark.parametrize("batch_rows", [1, 100_000])
def test_a_case_that_comes_twice_is_refused(batch_rows) -> None:
    once = candidates({("q", 1): ["a"], ("r", 1): ["b"]})
    twice = pa.concat_tables([once, candidates({("q", 1): ["c"]})])
    labels = [resolved("q", [["a"]]), resolved("r", [["b"]])]
    with pytest.raises(DataError, match="'q', repeat 1 comes twice"):
        find_hits(twice, labels, [("q", 1), ("r", 1)], batch_rows=batch_rows)


def test_what_does_not_belong_together_is_refused(tmp_path: Path) -> None:
    labels = [resolved("q", [["a"]])]
    with pytest.raises(DataError, match="'q', repeat 2 was not asked for"):
        find_hits(candidates({("q", 2): ["a"]}), labels, [("q", 1)])
    with pytest.raises(DataError, match="repeat 1 comes twice"):
        find_hits(candidates({("q", 1): ["a"]}), labels, [("q", 1), ("q", 1)])
    with pytest.raises(DataError, match="'q' comes twice"):
        find_hits(candidates({("q", 1): ["a"]}), labels * 2, [("q", 1)])
    with pytest.raises(DataError, match="'position' is missing; found: case_id"):
        find_hits(candidates({}).drop_columns(["position"]), labels, [])
    nameless = candidates({("q", 1): ["a"]}).set_column(4, "chunk_id", pa.nulls(1, pa.string()))
    with pytest.raises(DataError, match="is null"):
        find_hits(nameless, labels, [("q", 1)])
    (tmp_path / "candidates.parquet").write_bytes(b"no table")
    with pytest.raises(DataError, match="not a Parquet file"):
        find_hits(tmp_path / "candidates.parquet", labels, [])


def test_a_file_that_breaks_off_is_named(tmp_path: Path) -> None:
    path = tmp_path / "candidates.parquet"
    pq.write_table(candidates(random_run(6)[1]), path)
    whole = path.read_bytes()
    path.write_bytes(whole[:40] + bytes(200) + whole[240:])
    with pytest.raises(DataError, match=r"candidates\.parquet: cannot be read"):
        find_hits(path, [], [])


def test_nothing_asked_gives_no_rows() -> None:
    assert score_hits(find_hits(candidates({}), [], []), 5).empty


def test_hits_survive_being_saved(tmp_path: Path) -> None:
    labels, results = random_run(5)
    hits = hits_of(labels, results)
    save_hits(hits, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "hits.parquet",
        "labelled.parquet",
        "repeats.parquet",
    ]
    loaded = load_hits(tmp_path)
    pd.testing.assert_frame_equal(score_hits(loaded, KS), score_hits(hits, KS))
    assert repr(loaded) == repr(hits)
    pq.write_table(hits.groups.drop_columns(["first_hit"]), tmp_path / "hits.parquet")
    with pytest.raises(DataError, match="'first_hit' is missing"):
        load_hits(tmp_path)
    (tmp_path / "hits.parquet").unlink()
    with pytest.raises(DataError, match="cannot be read"):
        load_hits(tmp_path)


def test_a_path_with_a_quote_is_a_path(tmp_path: Path) -> None:
    path = tmp_path / "it's.parquet"
    pq.write_table(candidates({("q", 1): ["a"]}), path)
    hits = find_hits(path, [resolved("q", [["a"]])], [("q", 1)])
    assert hits.groups.column("first_hit").to_pylist() == [1]


def test_a_label_that_only_shares_a_hash_is_told_apart_by_its_id() -> None:
    same = np.full(3, 7, dtype=np.uint64)
    block = Block(
        case_hash=np.full(3, 1, dtype=np.uint64),
        repeat=np.full(3, 1, dtype=np.int32),
        position=np.arange(1, 4, dtype=np.int32),
        chunk_hash=same,
        chunk_ids=pa.array(["a", "b", "c"]),
        starts=np.array([0]),
    )
    wanted = kernel.Wanted(np.zeros(3, np.int64), np.arange(3), same, pa.array(["b", "z", "a"]))
    assert kernel.find_first(block, wanted).position.tolist() == [2, 0, 1]


def test_one_long_result_among_short_ones_needs_no_padding() -> None:
    labels = {f"q{i}": ([["c"], ["a"]], ["a"]) for i in range(20)}
    results = {(case_id, 1): ["c"] for case_id in labels}
    results["q7", 1] = ["x", "a", "x", *(f"y{i}" for i in range(97)), "c"]
    agrees(score_hits(hits_of(labels, results), KS), results, labels)


def test_labels_can_come_in_pieces_of_whole_cases() -> None:
    labels, results = random_run(8)
    rows = [
        (case_id, number, chunk, False)
        for case_id, (groups, _) in labels.items()
        for number, group in enumerate(groups)
        for chunk in group
    ]
    pieces = [
        pa.table([list(column) for column in zip(*part, strict=True)], schema=LABEL_SCHEMA)
        for part in ([r for r in rows if r[0] < "q2"], [r for r in rows if r[0] >= "q2"])
    ]
    hits = find_hits(candidates(results), Labels.from_tables(pieces), list(results))
    without_forbidden = {case_id: (groups, []) for case_id, (groups, _) in labels.items()}
    agrees(score_hits(hits, KS), results, without_forbidden)
    with pytest.raises(DataError, match="comes twice: give each case once"):
        Labels.from_tables([pieces[0], pieces[0]])
    with pytest.raises(DataError, match="'forbidden' is missing"):
        Labels.from_tables([pieces[0].drop_columns(["forbidden"])])


def test_more_cases_than_are_labelled_at_a_time() -> None:
    # 30,000 cases x 4 labels are more than one part of 100,000 rows.
    cases = [resolved(f"q{i}", [["a", "b"], ["b", "c"]]) for i in range(30_000)]
    hits = find_hits(candidates({("q29999", 1): ["x", "b"]}), cases, [("q0", 1), ("q29999", 1)])
    assert score_hits(hits, 2)["recall@2"].tolist() == [0.0, 1.0]


def test_results_without_anything_asked_and_hits_that_do_not_belong_together() -> None:
    with pytest.raises(DataError, match="'q', repeat 1 was not asked for"):
        find_hits(candidates({("q", 1): ["a"]}), [], [])
    hits = hits_of({"q": ([["a"]], [])}, {("q", 1): ["a"]})
    other = hits_of({"r": ([["a"]], [])}, {("r", 1): ["a"]})
    with pytest.raises(DataError, match=r"repeats\.parquet does not list"):
        score_hits(Hits(hits.groups, hits.labelled, other.repeats), 1)


def test_the_files_of_the_store_are_read_a_stage_at_a_time(tmp_path: Path) -> None:
    labels, results = random_run(9)
    rows = [
        Result(
            *pair,
            "?",
            n_results=len(chunks),
            stages={"vector": StageList(chunks[::-1]), "results": StageList(chunks)},
        )
        for pair, chunks in results.items()
    ]
    write_tables(tmp_path, rows, block_pairs=7)
    cases = [resolved(case_id, *label) for case_id, label in labels.items()]
    for stage, lists in (
        ("results", results),
        ("vector", {pair: chunks[::-1] for pair, chunks in results.items()}),
    ):
        hits = find_hits(tmp_path / "candidates.parquet", cases, list(results), stage=stage)
        agrees(score_hits(hits, KS), lists, labels)
