from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import pytrec_eval

from ragwb.errors import DataError, MetricError
from ragwb.measure.trec import trec_figures

DATA = Path(__file__).parents[2] / "shared" / "data" / "trec-eval"
KS = (1, 5, 10, 15, 20, 30, 100)
needs_data = pytest.mark.skipif(not DATA.exists(), reason="trec_eval's own test data are not here")


def read_qrels(name: str) -> pd.DataFrame:
    rows = [line.split() for line in (DATA / name).read_text().splitlines()]
    return pd.DataFrame(
        [(case_id, chunk_id, int(grade)) for case_id, _, chunk_id, grade in rows],
        columns=["case_id", "chunk_id", "grade"],
    )


def read_run(name: str) -> pd.DataFrame:
    rows = [line.split() for line in (DATA / name).read_text().splitlines()]
    return pd.DataFrame(
        [(row[0], row[2], float(row[4])) for row in rows], columns=["case_id", "chunk_id", "score"]
    )


def expected(name: str) -> dict[tuple[str, str], str]:
    rows = [line.split() for line in (DATA / name).read_text().splitlines()]
    return {(topic, metric): value for metric, topic, value in rows}


@needs_data
@pytest.mark.parametrize(
    ("output", "qrels", "run", "options", "n_compared"),
    [
        ("out.test", "qrels.test", "results.test", {}, 8),
        ("out.test.aq", "qrels.test", "results.test", {}, 120),
        ("out.test.aqc", "qrels.test", "results.trunc", {"complete": True}, 120),
        ("out.test.aqcM", "qrels.test", "results.trunc", {"complete": True, "depth": 100}, 120),
        ("out.test.aql", "qrels.rel_level", "results.test", {"level": 2}, 120),
    ],
)
def test_prints_what_trec_eval_prints(output, qrels, run, options, n_compared) -> None:
    frame = trec_figures(read_qrels(qrels), read_run(run), KS, **options)
    frame.loc["all"] = frame.mean()
    theirs = expected(output)
    compared = [
        (f"{value:.4f}", theirs[topic, name.replace("@", "_")], topic, name)
        for topic, row in frame.iterrows()
        for name, value in row.items()
        if (topic, name.replace("@", "_")) in theirs
    ]
    assert len(compared) == n_compared
    assert [row for row in compared if row[0] != row[1]] == []


@pytest.mark.parametrize("level", [1, 2])
def test_agrees_with_pytrec_eval_on_grades_ties_and_scores_too_close_for_32_bits(level) -> None:
    rng = np.random.default_rng(level)
    qrels = {f"q{i}": {f"d{j}": int(rng.integers(-1, 4)) for j in range(30)} for i in range(25)}
    qrels["none"] = {"d1": 0}
    run = {
        case_id: {
            f"d{j}": float(rng.integers(0, 12)) + float(rng.integers(0, 3)) * 1e-9
            for j in rng.permutation(60)[:40]
        }
        for case_id in qrels
    }
    cutoffs = ",".join(map(str, KS))
    names = ("P", "recall", "success", "map_cut", "ndcg_cut")
    theirs = pytrec_eval.RelevanceEvaluator(
        qrels, {*(f"{n}.{cutoffs}" for n in names), "map", "ndcg", "recip_rank"}, level
    ).evaluate(run)
    ours = trec_figures(flat(qrels, "grade"), flat(run, "score"), KS, level=level)
    assert sorted(theirs) == ours.index.tolist()
    for case_id, figures in theirs.items():
        for name, value in figures.items():
            stem, _, k = name.rpartition("_")
            column = f"{stem}@{k}" if k.isdigit() else name
            assert ours.at[case_id, column] == pytest.approx(value, abs=1e-9), (case_id, name)


def flat(topics: dict[str, dict[str, float]], value: str) -> pd.DataFrame:
    rows = [(case_id, c, v) for case_id, chunks in topics.items() for c, v in chunks.items()]
    return pd.DataFrame(rows, columns=["case_id", "chunk_id", value])


def test_sorts_ties_by_id_descending_which_this_package_never_does() -> None:
    run = flat({"q": {"d1": 1.0, "d2": 1.0, "d3": 1.0}}, "score")
    assert trec_figures(flat({"q": {"d3": 1}}, "grade"), run, 3).at["q", "recip_rank"] == 1.0


def test_a_missing_topic_is_left_out_unless_all_are_counted() -> None:
    qrels = flat({"q": {"a": 1}, "r": {"b": 1}}, "grade")
    run = flat({"q": {"a": 1.0}, "unjudged": {"a": 1.0}}, "score")
    assert trec_figures(qrels, run, 1)["P@1"].mean() == 1.0
    assert trec_figures(qrels, run, 1, complete=True)["P@1"].mean() == 0.5


def test_refuses_what_trec_eval_refuses() -> None:
    qrels = flat({"q": {"a": 1}}, "grade")
    twice = pd.concat([flat({"q": {"a": 1.0}}, "score")] * 2)
    with pytest.raises(DataError, match="'a' comes twice for 'q'"):
        trec_figures(qrels, twice, 1)
    with pytest.raises(DataError, match="'score' is missing; found: case_id, chunk_id, grade"):
        trec_figures(qrels, qrels, 1)
    with pytest.raises(MetricError, match="a score is null"):
        trec_figures(qrels, flat({"q": {"a": None}}, "score"), 1)
    with pytest.raises(MetricError, match="from 1 to 100"):
        trec_figures(qrels, flat({"q": {"a": 1.0}}, "score"), 0)
