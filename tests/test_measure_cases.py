"""Scores of many random cases, against a plain rule and a plain mean for each of them."""

from __future__ import annotations

import random
from pathlib import Path
from statistics import fmean
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ragwb.errors import DataError
from ragwb.golden.case import Case
from ragwb.golden.passages import NO_GROUPS, ResolvedCase, ResolvedGroup
from ragwb.measure.cases import score_cases, score_facts
from ragwb.measure.facts import FILE, case_facts, load_facts, save_facts
from ragwb.measure.retrieval import find_hits, score_hits
from ragwb.measure.summary import Scores

KS = (1, 3)
NAMES = ("case_id", "repeat", "stage", "position", "chunk_id")
IDS = [f"k{i}" for i in range(6)]

Calls = dict[tuple[str, int], list[str] | str]


def random_case(rng: random.Random, number: int) -> ResolvedCase:
    tier = rng.choice(["blocking"] * 3 + ["shadow", "retired"])
    groups = [tuple(rng.sample(IDS, rng.randrange(3))) for _ in range(rng.randrange(4))]
    case = Case(
        dataset_version="v",
        id=f"c{number}",
        question="?",
        mode="answer" if groups else "refuse",
        expected_chunk_ids=("x",) if groups else (),
        tier=tier,
        retired_reason="gone" if tier == "retired" else None,
        risk=rng.choice(["high", "normal"]),
        tags=rng.choice([{}, {"a": "1"}, {"b": "2", "a": "3"}]),
    )
    return ResolvedCase(
        case=case,
        groups=tuple(ResolvedGroup(index=i, chunk_ids=ids) for i, ids in enumerate(groups)),
        forbidden_chunk_ids=tuple(rng.sample(IDS, rng.randrange(2))),
        excluded=rng.choice(["drifted: evidence[0]", *[None if groups else NO_GROUPS] * 4]),
    )


def random_calls(rng: random.Random, cases: list[ResolvedCase], repeats: int) -> Calls:
    """A list of ids, the text of an error, or nothing for each repeat of a case that is asked."""
    calls: Calls = {}
    for case in cases:
        for repeat in range(1, repeats + 1):
            if case.case.tier != "retired" and rng.random() < 0.9:
                ids = [rng.choice(IDS) for _ in range(rng.randrange(5))]
                calls[case.case.id, repeat] = ids if rng.random() < 0.9 else "503"
    return calls


def scores_of(cases: list[ResolvedCase], calls: Calls, repeats: int) -> Scores:
    answered = {pair: ids for pair, ids in calls.items() if not isinstance(ids, str)}
    rows = [
        (*pair, "results", position, chunk_id)
        for pair, ids in answered.items()
        for position, chunk_id in enumerate(ids, 1)
    ]
    types = (pa.string(), pa.int32(), pa.string(), pa.int32(), pa.string())
    columns = list(zip(*rows, strict=True)) or [()] * 5
    candidates = pa.table(
        [pa.array(c, t) for c, t in zip(columns, types, strict=True)],
        names=NAMES,
    )
    return score_cases(
        cases,
        results_of(calls),
        find_hits(candidates, cases, list(answered)),
        top_k=5,
        ks=KS,
        repeats=repeats,
    )


def results_of(calls: Calls) -> pd.DataFrame:
    rows = [
        (*pair, "error", said) if isinstance(said, str) else (*pair, "ok", None)
        for pair, said in calls.items()
    ]
    return pd.DataFrame(rows, columns=["case_id", "repeat", "status", "error"])


def outcome(case: ResolvedCase, calls: Calls, repeats: int) -> tuple[str, str | None]:
    mine = {r: calls[case.case.id, r] for r in range(1, 9) if (case.case.id, r) in calls}
    errors = {repeat: said for repeat, said in mine.items() if isinstance(said, str)}
    if case.case.tier == "retired":
        return "excluded", "tier retired"
    if not mine:
        return "error", "no result in the run"
    if errors:
        first = min(errors)
        return "error", errors[first] if first == 1 else f"repeat {first}: {errors[first]}"
    if len(mine) < repeats:
        return "error", f"{len(mine)} of {repeats} repeats are there"
    if case.excluded:
        return "excluded", case.excluded
    tier = case.case.tier
    return ("scored", None) if tier == "blocking" else ("excluded", f"tier {tier}")


def figures(row: dict[str, Any], results: list[dict[str, Any]]) -> dict[str, float | None]:
    """Means over the repeats of what still means something for the case."""
    by_tier = (row["reason"] or "").startswith("tier ")
    means: dict[str, float | None] = {}
    for name in [f"{metric}@{k}" for metric in ("recall", "map", "forbidden") for k in KS]:
        values = [result[name] for result in results if not pd.isna(result[name])]
        is_kept = row["status"] == "scored" or by_tier or name.startswith("forbidden")
        is_kept = is_kept and row["status"] != "error"
        means[name] = fmean(values) if values and is_kept else None
    return means


@pytest.mark.parametrize("seed", range(25))
def test_each_case_has_its_own_outcome_and_means(seed: int) -> None:
    rng = random.Random(seed)
    repeats = rng.choice([1, 1, 3])
    cases = [random_case(rng, number) for number in range(30)]
    calls = random_calls(rng, cases, repeats)
    scores = scores_of(cases, calls, repeats)
    results = scores.results.to_dict("records")
    for case, row in zip(cases, scores.frame.to_dict("records"), strict=True):
        row["reason"] = None if pd.isna(row["reason"]) else row["reason"]
        assert row["case_id"] == case.case.id
        assert (row["status"], row["reason"]) == outcome(case, calls, repeats)
        mine = [result for result in results if result["case_id"] == case.case.id]
        assert row["n_repeats"] == len(mine)
        assert {n: None if pd.isna(row[n]) else row[n] for n in figures(row, mine)} == {
            name: pytest.approx(value, rel=1e-15) if value is not None else None
            for name, value in figures(row, mine).items()
        }
        tags = {n: row[f"tags.{n}"] for n in "ab" if not pd.isna(row.get(f"tags.{n}"))}
        assert tags == case.case.tags


def test_the_order_of_results_is_not_that_of_cases() -> None:
    rng = random.Random(1)
    cases = [random_case(rng, number) for number in range(30)]
    calls = random_calls(rng, cases, 3)
    shuffled = dict(rng.sample(list(calls.items()), len(calls)))
    ordered = dict(sorted(calls.items()))
    # The reason names the first error, which does depend on the order.
    pd.testing.assert_frame_equal(
        scores_of(cases, shuffled, 3).frame.drop(columns="reason"),
        scores_of(cases, ordered, 3).frame.drop(columns="reason"),
        rtol=1e-15,
    )


def test_facts_survive_being_saved(tmp_path: Path) -> None:
    rng = random.Random(2)
    cases = [random_case(rng, number) for number in range(10)]
    facts = case_facts(cases, results_of(random_calls(rng, cases, 1)))
    save_facts(facts, tmp_path)
    assert load_facts(tmp_path).equals(facts)
    pq.write_table(facts.drop_columns(["tier"]), tmp_path / FILE)
    with pytest.raises(DataError, match="'tier' is missing"):
        load_facts(tmp_path)


def test_no_case_gives_no_score() -> None:
    hits = find_hits(pa.table({name: [] for name in NAMES}), [], [])
    assert score_hits(hits, 5).empty
    assert score_facts(case_facts([], results_of({})), hits, top_k=5).n_cases == 0
