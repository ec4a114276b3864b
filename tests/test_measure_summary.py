from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from golden_data import case_data, make_dataset

from ragwb.errors import MetricError, UsageError
from ragwb.golden.case import Case
from ragwb.golden.passages import NO_GROUPS, ResolvedCase, ResolvedGroup, resolve_dataset
from ragwb.measure.cases import score_cases
from ragwb.measure.retrieval import find_hits
from ragwb.measure.statistics import wilson
from ragwb.measure.summary import Scores
from ragwb.records import Chunk


def golden(
    case_id: str,
    *groups: tuple[str, ...],
    excluded: str | None = None,
    forbidden: tuple[str, ...] = (),
    **fields: object,
) -> ResolvedCase:
    given = {"expected_chunk_ids": ("x",)} if fields.get("mode", "answer") == "answer" else {}
    case = Case(dataset_version="v", id=case_id, question="?", **given, **fields)
    return ResolvedCase(
        case=case,
        groups=tuple(ResolvedGroup(index=i, chunk_ids=ids) for i, ids in enumerate(groups)),
        forbidden_chunk_ids=forbidden,
        excluded=excluded,
    )


def scores_of(
    cases: list[ResolvedCase], results: dict[tuple[str, int], list[str] | str], **options
) -> Scores:
    """Scores of results given as lists of ids, or as the text of an error."""
    answered = {pair: ids for pair, ids in results.items() if not isinstance(ids, str)}
    rows = [
        (case_id, repeat, "results", position, chunk)
        for (case_id, repeat), ids in answered.items()
        for position, chunk in enumerate(ids, 1)
    ]
    types = (pa.string(), pa.int32(), pa.string(), pa.int32(), pa.string())
    names = ("case_id", "repeat", "stage", "position", "chunk_id")
    columns = list(zip(*rows, strict=True)) or [()] * 5
    candidates = pa.table(
        [pa.array(c, t) for c, t in zip(columns, types, strict=True)], names=list(names)
    )
    frame = pd.DataFrame(
        [
            (*pair, "error", ids) if isinstance(ids, str) else (*pair, "ok", None)
            for pair, ids in results.items()
        ],
        columns=["case_id", "repeat", "status", "error"],
    )
    hits = find_hits(candidates, cases, list(answered))
    return score_cases(cases, frame, hits, **{"top_k": 5, **options})


def value(scores: Scores, metric: str) -> pd.Series:
    return scores.summary().set_index("metric").loc[metric]


@pytest.fixture
def mixed() -> Scores:
    cases = [
        golden("found", ("a",), tags={"domain": "refund"}),
        golden("lost", ("a",), tags={"domain": "fee"}, risk="high"),
        golden("empty", ("a",), tags={"domain": "fee"}),
        golden("broken", ("a",)),
        golden("absent", ("a",)),
        golden("refuse", mode="refuse", excluded=NO_GROUPS, forbidden=("bad",)),
        golden("drifted", ("a",), excluded="drifted: evidence[0]"),
        golden("shadow", ("a",), tier="shadow"),
        golden("retired", ("a",), tier="retired", retired_reason="gone"),
    ]
    results = {
        ("found", 1): ["a", "b"],
        ("lost", 1): ["b", "b"],
        ("empty", 1): [],
        ("broken", 1): "503 three times",
        ("refuse", 1): ["bad"],
        ("drifted", 1): ["a"],
        ("shadow", 1): ["a"],
    }
    return scores_of(cases, results, ks=[1, 5], run_id="run-1")


def test_every_case_is_scored_excluded_or_an_error_with_a_reason(mixed: Scores) -> None:
    frame = mixed.frame.set_index("case_id")
    assert frame["status"].to_dict() == {
        "found": "scored",
        "lost": "scored",
        "empty": "scored",
        "broken": "error",
        "absent": "error",
        "refuse": "excluded",
        "drifted": "excluded",
        "shadow": "excluded",
        "retired": "excluded",
    }
    assert frame["reason"].dropna().to_dict() == {
        "broken": "503 three times",
        "absent": "no result in the run",
        "refuse": "no evidence groups",
        "drifted": "drifted: evidence[0]",
        "shadow": "tier shadow",
        "retired": "tier retired",
    }
    assert mixed.n_cases == mixed.n_scored + mixed.n_excluded + mixed.n_errors == 9
    assert (mixed.n_scored, mixed.n_excluded, mixed.n_errors) == (3, 4, 2)


@pytest.mark.parametrize("mode", ["refuse", "clarify"])
def test_evidence_of_a_case_to_be_refused_or_clarified_is_in_no_mean(mode: str) -> None:
    chunks = [Chunk(chunk_id=name, document_id=name, text="运费不退") for name in ("a", "b")]
    evidence = [{"any_of": [{"document_id": "b", "quote": "运费不退"}]}]
    dataset = make_dataset(
        case_data(expected_chunk_ids=["a"]),
        case_data(expected_chunk_ids=["b"], mode=mode, forbidden_chunk_ids=["a"]),
        case_data(expected_chunk_ids=None, mode=mode, evidence=evidence),
    )
    resolved = resolve_dataset(dataset, chunks)
    scores = scores_of(resolved, {(f"case-{n}", 1): ["a"] for n in range(3)})

    frame = scores.frame.set_index("case_id")
    assert frame["status"].tolist() == ["scored", "excluded", "excluded"]
    assert frame["reason"].tolist()[1:] == [f"mode {mode}"] * 2
    assert value(scores, "recall@5")[["value", "n", "n_excluded"]].tolist() == [1.0, 1, 2]
    # What must not come back is watched all the same.
    assert frame["recall@5"].isna().tolist() == [False, True, True]
    assert frame["forbidden@5"].tolist() == [0.0, 1.0, 0.0]


def test_a_case_missing_from_the_run_is_an_error_and_not_a_better_mean() -> None:
    scores = scores_of([golden("q", ("a",)), golden("r", ("a",))], {("q", 1): ["a"]})
    assert value(scores, "recall@5")[["value", "n", "n_errors"]].tolist() == [1.0, 1, 1]


def test_the_headline_is_the_mean_of_scored_cases(mixed: Scores) -> None:
    row = value(mixed, "hit_rate@5")
    assert (row["value"], row["n"], row["n_excluded"], row["n_errors"]) == (1 / 3, 3, 4, 2)
    assert row["counts"] == "1/3"
    interval = wilson(1, 3)
    assert (row["low"], row["high"], row["method"]) == (interval.low, interval.high, "wilson")
    assert value(mixed, "recall@5")["method"] == "bootstrap"
    assert value(mixed, "duplicate_rate@5")["value"] == pytest.approx(0.5 / 3)
    assert np.isnan(row["weighted"])


def test_figures_that_mean_nothing_are_null_in_the_frame(mixed: Scores) -> None:
    frame = mixed.frame.set_index("case_id")
    for case_id in ("broken", "absent", "refuse", "drifted", "retired"):
        assert np.isnan(frame.at[case_id, "recall@5"]), case_id
        assert pd.isna(frame.at[case_id, "failed@5"]), case_id
    assert frame.at["empty", "recall@5"] == 0.0
    assert frame.at["refuse", "forbidden@5"] == 1
    assert np.isnan(frame.at["broken", "forbidden@5"])
    assert frame.at["shadow", "recall@5"] == 1.0


def test_lists_of_cases(mixed: Scores) -> None:
    assert mixed.failed_case_ids() == ["lost", "empty"]
    assert mixed.forbidden_case_ids() == ["refuse"]
    assert mixed.failed_repeats(5) == {"lost": 1, "empty": 1}
    with pytest.raises(MetricError, match="no scores at K 3: there are 1, 5"):
        mixed.failed_case_ids(3)


def test_slices_carry_their_own_n(mixed: Scores) -> None:
    fee = mixed.by("tags.domain")
    rows = fee[fee["metric"] == "recall@5"].set_index("slice")
    assert rows.index[:2].tolist() == ["fee", "refund"]
    assert pd.isna(rows.index[2])
    assert rows["n"].tolist() == [2, 1, 0]
    assert rows.loc["fee", "value"] == 0.0
    tiers = mixed.by("tier")
    tiers = tiers[tiers["metric"] == "recall@5"].set_index("slice")
    assert tiers["n"].to_dict() == {"blocking": 3, "retired": 0, "shadow": 1}
    assert np.isnan(tiers.loc["retired", "value"])
    with pytest.raises(UsageError, match=r"there are: tier, set, risk, tags\.domain"):
        mixed.by("domain")


def test_a_k_beyond_top_k_is_null_for_nothing_beyond_was_observed() -> None:
    scores = scores_of([golden("q", ("a",))], {("q", 1): ["a"]}, top_k=2, ks=[1, 2, 10])
    row = value(scores, "recall@10")
    assert np.isnan(row["value"])
    assert row["n"] == 0
    assert scores.to_dict()["metrics"]["recall@10"] is None
    only_beyond = scores_of([golden("q", ("a",))], {("q", 1): ["a"]}, top_k=2, ks=[10])
    assert only_beyond.ks == (10,)
    assert np.isnan(value(only_beyond, "hit_rate@10")["value"])


def test_default_cutoffs_follow_top_k() -> None:
    assert scores_of([golden("q", ("a",))], {("q", 1): ["a"]}, top_k=7).ks == (1, 3, 5, 7)


def test_a_weighted_mean_stands_beside_the_macro_mean() -> None:
    cases = [golden("q", ("a",), weight=3.0), golden("r", ("a",))]
    row = value(scores_of(cases, {("q", 1): ["a"], ("r", 1): []}), "recall@5")
    assert (row["value"], row["weighted"]) == (0.5, 0.75)


def test_a_case_is_its_mean_over_repeats_and_fails_by_its_risk() -> None:
    cases = [golden("normal", ("a",)), golden("high", ("a",), risk="high"), golden("no", ("a",))]
    results = {}
    for repeat in range(1, 11):
        results["normal", repeat] = [] if repeat in (3, 7) else ["a"]
        results["high", repeat] = [] if repeat == 2 else ["a"]
        results["no", repeat] = [] if repeat > 4 else ["a"]
    scores = scores_of(cases, results, repeats=10)
    frame = scores.frame.set_index("case_id")
    assert frame["recall@5"].tolist() == pytest.approx([0.8, 0.9, 0.4])
    assert frame["n_failed@5"].tolist() == [2, 1, 6]
    assert frame["failed@5"].tolist() == [True, True, True]
    assert frame["failed_for_comparison@5"].tolist() == [False, True, True]
    assert scores.failed_repeats(5) == {"normal": 3, "high": 2, "no": 5}
    row = value(scores, "hit_rate@5")
    assert (row["counts"], row["method"]) == (None, "bootstrap")
    repeats = scores.by_repeat().set_index("metric").loc["recall@5"]
    assert repeats["mean"] == pytest.approx(0.7)
    assert repeats["worst"] == pytest.approx(1 / 3)


def test_a_repeat_is_never_dropped() -> None:
    cases = [golden("failed", ("a",)), golden("short", ("a",))]
    results = {("failed", 1): ["a"], ("failed", 2): "timed out", ("short", 1): ["a"]}
    scores = scores_of(cases, results, repeats=2)
    assert scores.frame["status"].tolist() == ["error", "error"]
    assert scores.frame["reason"].tolist() == ["repeat 2: timed out", "1 of 2 repeats are there"]


def test_nothing_scored_gives_nulls_and_no_warning() -> None:
    scores = scores_of([golden("q", ("a",))], {("q", 1): "refused"})
    assert scores.summary()["value"].isna().all()
    assert scores.to_dict()["metrics"]["recall@5"] is None
    (line,) = (line for line in repr(scores).splitlines() if line.startswith("recall@5"))
    assert line.split() == ["recall@5", "–", "–", "–", "0"]
    assert scores.by_repeat()["mean"].isna().all()


def test_further_figures_are_summarised_like_the_rest() -> None:
    extra = pd.DataFrame({"case_id": ["q"], "repeat": [1], "passage_recall@5": [0.25]})
    scores = scores_of([golden("q", ("a",))], {("q", 1): ["a"]}, ks=5, extra=extra)
    assert value(scores, "passage_recall@5")["value"] == 0.25


def test_hits_of_another_run_are_refused() -> None:
    cases = [golden("q", ("a",))]
    results = pd.DataFrame(
        {"case_id": ["q"], "repeat": [1], "status": ["error"], "error": ["refused"]}
    )
    hits = find_hits(
        pa.table(
            {
                "case_id": pa.array(["q"]),
                "repeat": pa.array([1], pa.int32()),
                "stage": ["results"],
                "position": pa.array([1], pa.int32()),
                "chunk_id": ["a"],
            }
        ),
        cases,
        [("q", 1)],
    )
    with pytest.raises(MetricError, match="another run"):
        score_cases(cases, results, hits, top_k=5)


def test_text_html_and_json_say_the_same_numbers(mixed: Scores) -> None:
    text, page, data = repr(mixed), mixed._repr_html_(), json.loads(json.dumps(mixed.to_dict()))
    assert text.splitlines()[0] == (
        "Scores of run-1: 9 cases = 3 scored + 4 excluded + 2 errors, top K 5"
    )
    for shown in (text, page):
        assert "10,000 resamples, seed 20250101" in shown
    for row in mixed.summary().itertuples():
        shown = f"{row.value:.4f}" + (f" ({row.counts})" if isinstance(row.counts, str) else "")
        assert shown in text
        assert f'<td class="num">{shown}</td>' in page
        assert data["metrics"][row.metric] == pytest.approx(row.value)
    assert data["run_id"] == "run-1"
    assert (data["n_scored"], data["n_excluded"]) == (3, 4)
    by_case = {case["case_id"]: case for case in data["cases"]}
    assert by_case["found"]["recall@5"] == 1.0
    assert by_case["broken"]["recall@5"] is None
    assert by_case["drifted"]["reason"] == "drifted: evidence[0]"


def test_a_hostile_run_id_is_escaped() -> None:
    scores = scores_of([golden("q", ("a",))], {("q", 1): ["a"]}, run_id="<b>\x1b[31mrun")
    assert "<b>" not in scores._repr_html_()
    assert "\x1b" not in repr(scores)
