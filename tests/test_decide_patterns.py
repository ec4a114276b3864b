from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from loopback import FakeService
from run_data import case, run

from ragwb.decide.compare import compare_outcomes
from ragwb.decide.comparison import Comparison
from ragwb.decide.outcomes import Outcomes, outcomes_from, outcomes_of
from ragwb.decide.patterns import PATTERNS, SWALLOWED, Pattern, Reading, find_patterns
from ragwb.runs.manifest import RunManifest

N = 40
MANIFEST = RunManifest(
    run_id="r1",
    created_at="2026-11-30T08:00:00+00:00",
    base_url=None,
    dataset_version="v1",
    dataset_hash="a" * 64,
    candidate_k=50,
    top_k=5,
    packages={},
    repeats=1,
)


def side(name: str, n: int = N, *, kind: str = "retrieval", **columns: Any) -> Outcomes:
    """One side of n cases c0 …; a figure is one number, or the numbers of the first cases.

    A column `a_b` is the figure a_b, `a_b_at_5` the figure a_b@5; the last number goes on.
    """
    manifest = columns.pop("manifest", None)
    rows: list[dict[str, Any]] = [{"case_id": f"c{i}"} for i in range(n)]
    figures = []
    for given, values in columns.items():
        figure = given.replace("_at_5", "@5")
        held = list(values) if isinstance(values, list) else [values]
        for i, row in enumerate(rows):
            row[figure] = held[min(i, len(held) - 1)]
        if figure not in ("latency_ms", "failed", "unstable"):
            figures.append(figure)
    return outcomes_from(rows, name=name, k=5, metrics=figures, kind=kind, manifest=manifest)


def compared(before: dict[str, Any], after: dict[str, Any], **given: Any) -> Comparison:
    return compare_outcomes(side("before", **before, **given), side("after", **after, **given))


def first(n: int, then: float, rest: float) -> list[float]:
    return [then] * n + [rest]


def codes(comparison: Comparison) -> list[str]:
    return [pattern.code for pattern in comparison.patterns]


def only(comparison: Comparison, code: str) -> Pattern:
    (found,) = comparison.patterns
    assert found.code == code
    assert found.look_at
    assert "\n" not in found.sentence
    return found


SAME = {"recall_at_5": 1.0, "hit_rate_at_5": 1.0, "mrr_at_5": 0.5}


def test_two_alike_sides_show_nothing() -> None:
    assert compared(SAME, SAME).patterns == ()


@pytest.mark.parametrize("code", PATTERNS)
def test_a_rule_without_its_figures_stays_silent(code: str) -> None:
    comparison = compared({"latency_ms": 1.0}, {"latency_ms": 2.0})
    assert PATTERNS[code](Reading(comparison)) is None


def test_every_rule_gives_the_code_that_it_stands_under() -> None:
    names = [rule.__name__.upper() for rule in PATTERNS.values()]
    assert list(PATTERNS) == names


def test_second_evidence_lost() -> None:
    lost = {"recall_at_5": first(10, 0.5, 1.0), "hit_rate_at_5": 1.0}
    found = only(compared(lost, lost), "SECOND_EVIDENCE_LOST")
    assert found.case_ids == tuple(f"c{i}" for i in range(10))
    assert found.sentence.startswith(
        "hit_rate@5 is 1.0000 and recall@5 0.8750: 10 of 40 cases found a piece"
    )


def test_three_of_ten_cases_may_be_none_in_another_ten() -> None:
    three, four = ({"recall_at_5": first(n, 0.5, 1.0), "hit_rate_at_5": 1.0} for n in (3, 4))
    assert codes(compared(three, three, n=10)) == []
    assert codes(compared(four, four, n=10)) == ["SECOND_EVIDENCE_LOST"]


@pytest.mark.parametrize(
    "after",
    [
        # Small: not a case in twenty.
        {"recall_at_5": first(7, 0.8, 1.0), "hit_rate_at_5": 1.0},
        # The hit rate is not high: nothing at all was found.
        {"recall_at_5": first(10, 0.0, 0.8), "hit_rate_at_5": first(10, 0.0, 1.0)},
        # Every case has one piece of evidence.
        {"recall_at_5": first(4, 0.0, 1.0), "hit_rate_at_5": first(4, 0.0, 1.0)},
    ],
)
def test_second_evidence_is_not_called_lost(after: dict[str, Any]) -> None:
    assert codes(compared(after, after)) == []


def test_crowded_context() -> None:
    before = {"recall_at_5": first(20, 0.5, 1.0), "claim_coverage": 1.0, "context_tokens": 500.0}
    after = {
        "recall_at_5": 1.0,
        "claim_coverage": [1.0] * 10 + [0.5] * 20 + [1.0],
        "context_tokens": 900.0,
    }
    found = only(compared(before, after, kind="answers"), "CROWDED_CONTEXT")
    # First those that found more and said less, then those that only said less.
    assert found.case_ids == tuple(f"c{i}" for i in range(10, 30))
    assert "context +400 tokens a case: 20 of 40 cases said less, 10 of them" in found.sentence
    assert found.sentence.startswith("recall@5 +0.2500 (")


@pytest.mark.parametrize(
    ("recall", "coverage"),
    [
        (first(1, 0.5, 1.0), first(20, 0.5, 1.0)),  # recall moved within its interval
        (first(20, 0.5, 1.0), first(1, 0.5, 1.0)),  # claims moved within theirs
        (first(5, 0.5, 1.0), first(20, 0.5, 1.0)),  # five cases all went up: too few to tell
        (first(20, 0.5, 1.0), first(5, 0.5, 1.0)),  # five went down
    ],
)
def test_context_is_not_called_crowded_within_the_interval(
    recall: list[float], coverage: list[float]
) -> None:
    before = {"recall_at_5": recall, "claim_coverage": 1.0}
    after = {"recall_at_5": 1.0, "claim_coverage": coverage}
    assert codes(compared(before, after, kind="answers")) == []


def test_of_a_handful_of_cases_nothing_is_said_to_rise() -> None:
    # All five moved one way: the interval leaves 0 out, and no test would tell.
    before = {"recall_at_5": 0.5, "claim_coverage": 1.0}
    after = {"recall_at_5": 1.0, "claim_coverage": 0.5}
    assert codes(compared(before, after, kind="answers", n=5)) == []
    assert codes(compared(before, after, kind="answers", n=6)) == ["CROWDED_CONTEXT"]


def test_slower_not_better() -> None:
    before = {"mrr_at_5": 0.5, "latency_ms": 100.0, "manifest": MANIFEST}
    after = {
        "mrr_at_5": [0.45, 0.55, 0.5],
        "latency_ms": [200.0] * 37 + [300.0, 400.0, 300.0],
        "manifest": MANIFEST.model_copy(update={"run_id": "r2", "keyword": True}),
    }
    found = only(compared(before, after), "SLOWER_NOT_BETTER")
    assert found.case_ids == ("c38", "c37", "c39")
    assert found.sentence.startswith("p95 +200 ms (")
    assert found.look_at == "candidate K, the reranker and the context budget"


def test_slower_not_better_names_the_part_that_changed() -> None:
    before = {"mrr_at_5": 0.5, "latency_ms": 100.0, "manifest": MANIFEST}
    other = MANIFEST.model_copy(update={"run_id": "r2", "candidate_k": 200, "keyword": True})
    after = {"mrr_at_5": 0.5, "latency_ms": 200.0, "manifest": other}
    found = only(compared(before, after), "SLOWER_NOT_BETTER")
    assert found.look_at == "what changed: candidate K (50 → 200)"


@pytest.mark.parametrize("update", [{}, {"judge_model": "another"}, None])
def test_where_nothing_that_takes_time_is_known_to_have_changed_no_time_was_added(update) -> None:
    other = None if update is None else MANIFEST.model_copy(update={"run_id": "r2", **update})
    before = {"mrr_at_5": 0.5, "latency_ms": 100.0, "manifest": other and MANIFEST}
    assert codes(compared(before, {"mrr_at_5": 0.5, "latency_ms": 200.0, "manifest": other})) == []


@pytest.mark.parametrize(
    ("stage", "said"),
    [("rerank", ["; most of it in rerank (+100 ms at the median)"]), ("embedding", [])],
)
def test_slower_names_the_stage_and_is_silent_where_no_change_touches_it(stage, said) -> None:
    sides = []
    for name, took in (("before", 0.0), ("after", 100.0)):
        update = {"run_id": name, "rerank": "maxsim" if took else None}
        manifest = MANIFEST.model_copy(update=update)
        one = side(name, mrr_at_5=0.5, latency_ms=100.0 + took, manifest=manifest)
        told = [("vector", 50.0), (stage, 40.0 + took), ("total", 90.0 + took)]
        timings = pd.Series([told] * N, dtype="object")
        sides.append(replace(one, latencies=one.latencies.assign(timings_ms=timings)))
    found = compare_outcomes(*sides)
    assert [one.sentence[one.sentence.index(";") :] for one in found.patterns] == said
    headline = found.in_words()[2]
    noted = "(one run each, most of it in embedding: the machine's load is in it)"
    assert (noted in headline) is not bool(said)


@pytest.mark.parametrize(
    ("after", "n"),
    [
        ({"mrr_at_5": 0.5, "latency_ms": [400.0, 100.0]}, N),  # one slow call
        ({"mrr_at_5": 0.5, "latency_ms": 104.0}, N),  # nobody would notice
        ({"mrr_at_5": 0.6, "latency_ms": 200.0}, N),  # it is better
        ({"mrr_at_5": 0.4, "latency_ms": 200.0}, N),  # it is worse, which is no pattern
        ({"mrr_at_5": 0.5, "latency_ms": 200.0}, 10),  # too few cases to tell a p95
    ],
)
def test_it_is_not_called_slower_for_nothing(after: dict[str, Any], n: int) -> None:
    other = MANIFEST.model_copy(update={"run_id": "r2", "candidate_k": 200})
    before = {"mrr_at_5": 0.5, "latency_ms": 100.0, "manifest": MANIFEST}
    assert codes(compared(before, {**after, "manifest": other}, n=n)) == []


def test_swapped_cases() -> None:
    before = {"recall_at_5": [0.0, 0.0, 0.0, 1.0]}
    after = {"recall_at_5": [1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0]}
    found = only(compared(before, after), "SWAPPED_CASES")
    assert found.case_ids == ("c3", "c4", "c5", "c0", "c1", "c2")
    assert found.sentence.endswith("yet 3 were fixed and 3 broken of 40")


def test_swapped_answers_go_by_the_rate_of_correct_ones() -> None:
    before = {"correct_rate": [0.0, 0.0, 1.0], "failed": [True, True, False]}
    after = {"correct_rate": [1.0, 1.0, 0.0, 0.0, 1.0], "failed": [False, False, True, True, False]}
    found = only(compared(before, after, kind="answers"), "SWAPPED_CASES")
    assert found.sentence.startswith("correct_rate +0.0000 (")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([0.0, 1.0], [1.0, 0.0, 1.0]),  # a single case each way
        ([0.0] * 20 + [1.0], [1.0] * 20 + [0.0, 0.0, 1.0]),  # the mean moved
        ([0.0, 0.0, 0.0, 1.0], [1.0]),  # nothing broke
    ],
)
def test_cases_are_not_called_swapped(before: list[float], after: list[float]) -> None:
    assert codes(compared({"recall_at_5": before}, {"recall_at_5": after})) == []


def test_unstable_cases_are_no_swap() -> None:
    before = {"recall_at_5": [0.0, 0.0, 1.0], "unstable": [True, True, False]}
    after = {"recall_at_5": [1.0, 1.0, 0.0, 0.0, 1.0]}
    assert codes(compared(before, after)) == []


def test_refuses_too_much() -> None:
    should = [1.0] * 20 + [None]
    must = [None] * 20 + [0.0]
    before = {"refusal_recall": [0.0] * 10 + should[10:], "over_refusal_rate": must}
    after = {"refusal_recall": should, "over_refusal_rate": [None] * 20 + [1.0] * 8 + [0.0]}
    found = only(compared(before, after, kind="answers"), "REFUSES_TOO_MUCH")
    assert found.case_ids == tuple(f"c{i}" for i in range(20, 28))
    assert "8 of 40 cases that must be answered are not any more" in found.sentence


@pytest.mark.parametrize(("right", "wrong"), [(10, 1), (1, 10), (10, 0)])
def test_refusing_more_is_no_pattern_within_an_interval(right: int, wrong: int) -> None:
    before = {
        "refusal_recall": [0.0] * 20 + [None],
        "over_refusal_rate": [None] * 20 + [0.0],
    }
    after = {
        "refusal_recall": [1.0] * right + [0.0] * (20 - right) + [None],
        "over_refusal_rate": [None] * 20 + [1.0] * wrong + [0.0],
    }
    assert codes(compared(before, after, kind="answers")) == []


def swallowing(folder: Path, chunks: object, order: list[str]) -> Outcomes:
    """A run of 12 cases over eight chunks of which the expected one stands where `order` says."""
    folder.mkdir()
    fake = FakeService(
        chunks={f"doc-{n}": f"第 {n} 段。" for n in range(8)},
        manifest={"service": "fake 1", "chunks": chunks},
    )
    for n in range(12):
        fake.results[f"q{n}"] = [name if name != "it" else "doc-0" for name in order]
    cases = [case(n, expected_chunk_ids=["doc-0"]) for n in range(12)]
    return outcomes_of(run(folder, fake, cases))


MISSED = ["doc-1", "doc-2", "doc-3", "doc-4", "doc-5"]
LAST = ["doc-1", "doc-2", "doc-3", "doc-4", "it"]
FIRST = ["it", "doc-1", "doc-2", "doc-3", "doc-4"]


def patterns_of(folder: Path, chunks: object, order: list[str]) -> tuple[Pattern, ...]:
    before = swallowing(folder / "before", chunks, MISSED)
    return find_patterns(compare_outcomes(before, swallowing(folder / "after", chunks, order)))


def test_k_swallows_the_corpus(tmp_path: Path) -> None:
    (found,) = patterns_of(tmp_path, {"total": 9, "visible": 8}, LAST)
    assert found.code == "K_SWALLOWS_CORPUS"
    assert "with 5 of 8 visible chunks returned; at K 1 no difference is shown" in found.sentence
    assert found.case_ids == tuple(f"c{n}" for n in range(12))


def test_of_three_chunks_there_is_no_smaller_k_to_tell_by(tmp_path: Path) -> None:
    (found,) = patterns_of(tmp_path, {"total": 3}, FIRST)
    assert "with 3 of 3 visible chunks returned" in found.sentence
    assert "at K" not in found.sentence


@pytest.mark.parametrize(
    ("chunks", "order"),
    [
        ({"total": 9, "visible": 8}, FIRST),  # it is better where K leaves most out, too
        ({"total": 9, "visible": 8}, MISSED),  # nothing rose
        ({"total": 1000, "visible": int(5 / SWALLOWED) + 1}, LAST),  # most is left out
        ({"total": "many", "visible": True}, LAST),  # no number
        (None, LAST),  # the service does not say
    ],
)
def test_k_is_not_said_to_swallow(tmp_path: Path, chunks: object, order: list[str]) -> None:
    assert patterns_of(tmp_path, chunks, order) == ()


def test_without_the_baselines_run_no_smaller_k_is_told(tmp_path: Path) -> None:
    after = swallowing(tmp_path / "after", {"total": 8}, FIRST)
    rows = [{"case_id": f"c{n}", "recall@5": 0.0} for n in range(12)]
    labels = after.frame[["label", "case_version", "question"]].to_dict("records")
    rows = [{**row, **label} for row, label in zip(rows, labels, strict=True)]
    before = outcomes_from(rows, name="imported", k=5, metrics=["recall@5"])
    found = only(compare_outcomes(before, after), "K_SWALLOWS_CORPUS")
    assert found.sentence.endswith("with 5 of 8 visible chunks returned")


def test_no_pairs_no_patterns() -> None:
    comparison = compared(SAME, SAME)
    assert find_patterns(_Empty(comparison)) == ()


class _Empty:
    """A comparison without its pairs."""

    def __init__(self, comparison: Comparison) -> None:
        self.baseline, self.candidate = comparison.baseline, comparison.candidate
        self.k, self.conditions = comparison.k, comparison.conditions
        self.pairs = comparison.pairs[:0]

    def deltas(self, by: str | None = None) -> Any:
        raise AssertionError("nothing is to be computed")


def test_a_pattern_as_json() -> None:
    pattern = Pattern("CODE", "title", "sentence", ("c1", "c2"), "look")
    assert pattern.to_dict() == {
        "code": "CODE",
        "title": "title",
        "sentence": "sentence",
        "case_ids": ["c1", "c2"],
        "look_at": "look",
    }
