"""Public evaluation runs through the functions that everyone uses: the figures come out."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import pytrec_eval
from real.comparing import (
    ARXIV_JUDGED,
    ARXIV_RUNS,
    AUTORAG_NODES,
    TREC_OUTPUTS,
    arxiv,
    arxiv_compared,
    arxiv_outcomes,
    arxiv_scores,
    autorag_scores,
    flips_table,
    nomiracl_sides,
    pairwise,
    retrieval_outcomes,
    trec_frame,
    trec_printed,
    trec_sides,
)
from scipy.stats import binomtest

from ragwb.decide.compare import compare_outcomes
from ragwb.decide.comparison import Comparison
from ragwb.decide.gate.gate import gate_outcomes
from ragwb.decide.gate.policy import load_policy
from ragwb.decide.outcomes import Outcomes
from ragwb.decide.plausible import check_figures
from ragwb.errors import DataError

DATA = Path(__file__).parents[2] / "shared" / "data"
RUNS = DATA / "eval-runs"
ARXIV = RUNS / "arxiv-agent"

needs_runs = pytest.mark.skipif(not RUNS.is_dir(), reason="the public runs are not here")
needs_answers = pytest.mark.skipif(
    not (DATA / "nomiracl-zh").is_dir(), reason="the public answers are not here"
)
needs_trec = pytest.mark.skipif(
    not (DATA / "trec-eval").is_dir(), reason="trec_eval's own test data are not here"
)


def delta(comparison: Comparison, metric: str) -> dict[str, Any]:
    found = comparison.delta(metric)
    assert found is not None
    return found


@needs_runs
@pytest.mark.parametrize("name", ARXIV_RUNS)
@pytest.mark.parametrize("system", ["baseline", "agent"])
def test_two_systems_recompute_from_their_ids(name: str, system: str) -> None:
    run = arxiv(ARXIV, name)
    frame = arxiv_scores(run, system).frame.set_index("case_id")
    said = {q["id"]: q["systems"][system]["scores"] for q in run["per_question"]}
    assert len(said) == 6
    for case_id, scores in said.items():
        assert frame.loc[case_id, "recall@5"] == pytest.approx(scores["recall_at_k"], abs=1e-12)
        assert frame.loc[case_id, "mrr@5"] == pytest.approx(scores["mrr"], abs=1e-12)


@needs_runs
@pytest.mark.parametrize("name", ARXIV_RUNS)
def test_means_of_two_systems_are_those_of_the_run_file(name: str) -> None:
    comparison, said = arxiv_compared(ARXIV, name), arxiv(ARXIV, name)["aggregates"]
    theirs = {"recall@5": "recall_at_k", "mrr@5": "mrr", **{m: m for m in ARXIV_JUDGED}}
    for ours, name_there in theirs.items():
        row = delta(comparison, ours)
        assert row["baseline"] == pytest.approx(said["baseline"][name_there], abs=1e-12)
        assert row["candidate"] == pytest.approx(said["agent"][name_there], abs=1e-12)
    for system in ("baseline", "agent"):
        assert check_figures(said[system]) == ()


@needs_runs
@pytest.mark.parametrize(("name", "fixed"), list(zip(ARXIV_RUNS, [0, 0, 3], strict=True)))
def test_six_questions_cannot_show_a_difference(name: str, fixed: int) -> None:
    comparison = arxiv_compared(ARXIV, name)
    words = comparison.in_words()
    assert words[0] == f"{fixed} fixed, 0 broken of 6"
    assert (len(comparison.fixed), comparison.broken) == (fixed, ())
    flips = comparison.flips()
    assert (flips.needed, flips.tells) == (6, False)
    assert "6 flips" in " ".join(words)
    # A question is a sixth of the mean: no pattern is read into so few.
    assert comparison.patterns == ()


@needs_runs
def test_the_third_run_is_better_by_recall_and_not_by_the_judge() -> None:
    comparison = arxiv_compared(ARXIV, ARXIV_RUNS[2])
    assert comparison.fixed == ("q-0001", "q-0003", "q-0004")
    recall, precision = delta(comparison, "recall@5"), delta(comparison, "context_precision")
    assert (recall["baseline"], recall["candidate"]) == (0.75, 1.0)
    assert precision["delta"] == pytest.approx(-0.2305555)
    assert (
        delta(comparison, "faithfulness")["low"] <= 0 <= delta(comparison, "faithfulness")["high"]
    )


@needs_runs
def test_the_same_ids_are_judged_differently_and_the_interval_says_so() -> None:
    runs = [arxiv(ARXIV, name) for name in ARXIV_RUNS[:2]]
    largest = 0.0
    for system in ("baseline", "agent"):
        for one, other in zip(*(run["per_question"] for run in runs), strict=True):
            ids = [q["systems"][system]["retrieved_arxiv_ids"] for q in (one, other)]
            assert ids[0] == ids[1]
        comparison = compare_outcomes(*(arxiv_outcomes(run, system) for run in runs))
        assert delta(comparison, "recall@5")["delta"] == 0
        row, pairs = delta(comparison, "faithfulness"), comparison.pairs
        assert row["low"] < 0 < row["high"]
        moved = pairs["faithfulness_after"] - pairs["faithfulness_before"]
        largest = max(largest, float(moved.abs().max()))
    assert largest == pytest.approx(0.2727, abs=5e-5)


POLICY = """
policy = "seed"
k = 5
[safety]
may_be_unknown = ["forbidden_retrieved", "acl_leak", "tenant_leak", "stale_version_leak"]
[[floors]]
metric = "recall@5"
min = {recall_at_k}
[[floors]]
metric = "mrr@5"
min = {mrr}
"""


@needs_runs
def test_their_gate_fails_twice_and_passes_the_third_run(tmp_path: Path) -> None:
    limits = json.loads((ARXIV / "thresholds.json").read_bytes())
    path = tmp_path / "gate.toml"
    path.write_text(POLICY.format(**limits["metrics"]), encoding="utf-8")
    policy = load_policy(path)
    results = [
        gate_outcomes(arxiv_outcomes(arxiv(ARXIV, name), limits["system"]), policy)
        for name in ARXIV_RUNS
    ]
    assert [result.verdict for result in results] == ["fail", "fail", "pass"]
    blockers = results[0].to_dict()["blockers"]
    assert [(one["value"], one["limit"]) for one in blockers] == [
        (0.5, 0.9),
        (pytest.approx(2 / 3), 0.75),
    ]


@needs_runs
@pytest.mark.parametrize(
    ("node", "mrr", "precision", "duplicate_rate"),
    [
        ("lexical_retrieval", 0.95, 0.1, 0.4),
        ("semantic_retrieval", 1.0, 0.1, 0.6),
        ("hybrid_retrieval", 0.95, 0.125, 0.0),
        ("passage_reranker", 1.0, 0.2, 0.0),
    ],
)
def test_nodes_of_a_pipeline_as_published(
    node: str, mrr: float, precision: float, duplicate_rate: float
) -> None:
    k = AUTORAG_NODES[node]
    summary = autorag_scores(RUNS / "autorag", node).summary().set_index("metric")["value"]
    assert summary[f"recall@{k}"] == 1.0
    assert summary[f"mrr@{k}"] == pytest.approx(mrr)
    assert summary[f"precision@{k}"] == pytest.approx(precision)
    assert summary[f"duplicate_rate@{k}"] == pytest.approx(duplicate_rate)
    table = pd.read_csv(RUNS / "autorag" / "0" / "retrieve_node_line" / node / "summary.csv")
    named = {str(name): name.removeprefix("passage_reranker_") for name in table.columns}
    theirs = table.rename(columns=named).iloc[0]
    assert theirs["retrieval_precision"] == pytest.approx(precision)
    assert check_figures({name: theirs[name] for name in theirs.index if "retrieval" in name}) == ()


@needs_runs
def test_nodes_of_a_pipeline_compared() -> None:
    sides = [
        retrieval_outcomes(autorag_scores(RUNS / "autorag", node), node, 5)
        for node in ("lexical_retrieval", "hybrid_retrieval")
    ]
    comparison = compare_outcomes(*sides)
    assert comparison.in_words()[0] == "0 fixed, 0 broken of 10"
    row = delta(comparison, "duplicate_rate@5")
    assert (row["win"], row["loss"], row["direction"]) == (10, 0, "lower")


@needs_runs
def test_a_committed_baseline_with_an_impossible_figure_is_reported() -> None:
    path = RUNS / "zh-policy-golden" / "baseline.json"
    said = json.loads(path.read_bytes())
    figures = {name: value for name, value in said.items() if not isinstance(value, str)}
    impossible = (
        "hit_rate_at_5 0.875 cannot stand beside ndcg_at_5 0: "
        "at one K all of them are above 0, or none is"
    )
    assert check_figures(figures) == (impossible,)


@needs_runs
def test_the_table_beside_it_is_possible() -> None:
    text = (RUNS / "zh-policy-golden" / "reports" / "ablation_summary.md").read_text("utf-8")
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    assert len(rows) == 6
    for row in rows[1:]:
        names = ("hit_rate@5", "mrr@5", "ndcg@5", "no_answer_false_positive_rate", "p95_ms")
        assert check_figures(dict(zip(names, map(float, row[1:]), strict=True))) == ()


@pytest.fixture(scope="module")
def models() -> dict[str, Outcomes]:
    return nomiracl_sides(DATA / "nomiracl-zh")


@pytest.fixture(scope="module")
def compared(models: dict[str, Outcomes]) -> dict[tuple[str, str], Comparison]:
    return pairwise(models)


@pytest.fixture(scope="module")
def table(compared: dict[tuple[str, str], Comparison]) -> pd.DataFrame:
    return flips_table(compared)


@needs_answers
def test_eleven_models_make_55_comparisons(
    models: dict[str, Outcomes], table: pd.DataFrame
) -> None:
    assert len(table) == 55
    right = {name: int((~side.frame["failed"]).sum()) for name, side in models.items()}
    gained = table["fixed"] - table["broken"]
    expected = [
        right[other] - right[one]
        for one, other in zip(table["baseline"], table["candidate"], strict=True)
    ]
    assert gained.tolist() == expected
    assert (table["n"] == 500).all()


@needs_answers
def test_their_p_values_are_those_of_the_exact_binomial_test(table: pd.DataFrame) -> None:
    theirs = [
        binomtest(fixed, fixed + broken).pvalue
        for fixed, broken in zip(table["fixed"], table["broken"], strict=True)
    ]
    np.testing.assert_allclose(table["p"], theirs, rtol=1e-9)
    assert ((table["p"] < 0.05).sum(), (table["p_adjusted"] < 0.05).sum()) == (48, 45)
    # Holm, the other way round: the sorted values times what is left, made to rise.
    ordered = table.sort_values("p", kind="stable")
    scaled = ordered["p"].to_numpy() * np.arange(55, 0, -1)
    np.testing.assert_allclose(
        ordered["p_adjusted"], np.minimum(np.maximum.accumulate(scaled), 1), rtol=1e-12
    )


@needs_answers
def test_as_many_right_answers_can_be_other_ones(
    compared: dict[tuple[str, str], Comparison],
) -> None:
    comparison = compared["gpt-4-azure", "Mixtral-8x7B-Instruct-v0.1"]
    flips = comparison.flips()
    assert (flips.fixed, flips.broken, flips.p) == (71, 70, 1.0)
    found = {pattern.code: pattern for pattern in comparison.patterns}
    assert list(found) == ["SWAPPED_CASES", "REFUSES_TOO_MUCH"]
    assert len(found["SWAPPED_CASES"].case_ids) == 141
    # It refuses 54 answerable questions more than before, net of those that it gave up refusing.
    over = comparison.pairs.set_index("case_id").loc[list(found["REFUSES_TOO_MUCH"].case_ids)]
    assert set(over["tags.part"]) == {"relevant"}
    row = delta(comparison, "over_refusal_rate")
    assert (row["loss"], row["loss"] - row["win"]) == (len(over), 54)


@needs_answers
def test_over_refusal_is_recognised_where_both_rates_rose_and_nowhere_else(
    compared: dict[tuple[str, str], Comparison],
) -> None:
    rates, fired = ("refusal_recall", "over_refusal_rate"), 0
    for comparison in compared.values():
        both_rose = all(delta(comparison, name)["low"] > 0 for name in rates)
        shown = "REFUSES_TOO_MUCH" in {pattern.code for pattern in comparison.patterns}
        assert shown == both_rose
        fired += shown
    assert fired == 18


@needs_trec
def test_pairwise_deltas_are_the_differences_of_trec_evals_means() -> None:
    folder = DATA / "trec-eval"
    sides = trec_sides(folder)
    printed = {name: trec_printed(folder, name) for name in TREC_OUTPUTS}
    n_compared = 0
    for one, other in combinations(sides, 2):
        comparison = compare_outcomes(sides[one], sides[other])
        assert comparison.n == 3
        assert len(comparison.metrics) == 18
        # There is no success at 100 in what it prints.
        for metric in set(comparison.metrics) - {"success@100"}:
            row, name = delta(comparison, metric), metric.replace("@", "_")
            ends = printed[one][name], printed[other][name]
            # Four digits each: their difference may be off by one in the last.
            assert row["delta"] == pytest.approx(ends[1] - ends[0], abs=1.0001e-4)
            assert row["baseline"] == pytest.approx(ends[0], abs=5.0001e-5)
            n_compared += 1
    assert n_compared == 51


@needs_trec
def test_a_delta_is_exactly_that_of_pytrec_eval() -> None:
    folder = DATA / "trec-eval"
    judged = trec_frame(
        (folder / "qrels.test").read_text().splitlines(), {"case_id": 0, "chunk_id": 2, "grade": 3}
    )
    qrels = {
        topic: dict(zip(rows["chunk_id"], rows["grade"].astype(int), strict=True))
        for topic, rows in judged.groupby("case_id")
    }
    measures = {"map", "recip_rank", "P.5,10", "recall.5,10", "ndcg_cut.5,10"}
    sums = []
    for file in ("results.test", "results.trunc"):
        frame = trec_frame(
            (folder / file).read_text().splitlines(), {"case_id": 0, "chunk_id": 2, "score": 4}
        )
        run = {
            topic: dict(zip(rows["chunk_id"], rows["score"].astype(float), strict=True))
            for topic, rows in frame.groupby("case_id")
        }
        found = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(run)
        sums.append(pd.DataFrame(found).T.sum() / len(qrels))
    sides = trec_sides(folder)
    comparison = compare_outcomes(sides["results.test"], sides["results.trunc"])
    for name, value in (sums[1] - sums[0]).items():
        metric = f"{name.rpartition('_')[0]}@{name.rpartition('_')[2]}"
        metric = str(name) if name in ("map", "recip_rank") else metric
        assert delta(comparison, metric)["delta"] == pytest.approx(value, abs=1e-9)


@needs_runs
def test_a_nan_in_an_imported_metric_names_case_and_column() -> None:
    run = arxiv(ARXIV, ARXIV_RUNS[0])
    run["per_question"][2]["systems"]["agent"]["scores"]["faithfulness"] = float("nan")
    with pytest.raises(DataError, match=r"q-0003.*faithfulness"):
        arxiv_outcomes(run, "agent")
