"""What a comparison says: lists, deltas, slices, words, and the same numbers in every face."""

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from compare_data import compared, row, side, two_runs
from hypothesis import given, settings
from hypothesis import strategies as st

from ragwb.decide.compare import compare, compare_outcomes
from ragwb.decide.comparison import FLIP_COLUMNS
from ragwb.decide.deltas import DELTA_COLUMNS
from ragwb.errors import UsageError
from ragwb.measure.statistics import holm, mcnemar, paired_bootstrap

RECALLS = st.lists(
    st.tuples(st.sampled_from([0.0, 0.5, 1.0, None]), st.sampled_from([0.0, 0.5, 1.0, None])),
    min_size=1,
    max_size=12,
)


def between(before, after, **given):
    return compare_outcomes(side(before, "before", **given), side(after, "after", **given))


# Lists.
def test_what_weighs_most_broke_first():
    given = [
        row(1),
        row(2, weight=2.0),
        row(3, access="guest"),
        row(4, risk="high"),
        row(5),
        row(6, access="guest", risk="high"),
    ]
    failed = [{**one, "recall@5": 0.0} for one in given]
    found = between(given, failed)
    assert found.broken == ("c4", "c6", "c3", "c2", "c1", "c5")
    assert between(failed, given).fixed == found.broken
    assert "Broken among them: 2 high risk (c4, c6), 1 permission (c3), 1 high value (c2)" in (
        found.in_words()
    )


def test_unstable_cases_are_listed_whatever_they_changed_to():
    found = between([row(1, unstable=True), row(2, 0)], [row(1), row(2)])
    assert (found.unstable, found.fixed) == (("c1",), ("c2",))
    assert "1 unstable, failing in some repeats and not in all: c1" in found.in_words()


# Deltas.
def test_a_delta_is_the_mean_difference_with_its_paired_interval():
    before, after = [0.0, 0.5, 1.0, 1.0], [1.0, 1.0, 0.5, 1.0]
    found = compared(before, after).delta("recall@5")
    (interval,) = paired_bootstrap(before, after)
    assert (found["baseline"], found["candidate"], found["delta"]) == (0.625, 0.875, 0.25)
    assert (found["low"], found["high"]) == (interval.low, interval.high)
    assert (found["win"], found["tie"], found["loss"]) == (2, 1, 1)
    assert (found["n"], found["n_excluded"], found["direction"]) == (4, 0, "higher")
    assert found["p"] is None


def test_a_figure_that_is_yes_or_no_has_counts_and_a_test():
    found = compared([1.0] * 8 + [0.0] * 2, [1.0] * 9 + [0.0]).delta("recall@5")
    assert (found["counts"], found["p"]) == ("8/10 → 9/10", mcnemar(1, 0))


def test_above_a_hundred_pairs_there_are_no_counts():
    assert compared([1.0] * 101, [1.0] * 101).delta("recall@5")["counts"] is None
    assert compared([1.0] * 100, [1.0] * 100).delta("recall@5")["counts"] == "100/100 → 100/100"


def test_an_undefined_figure_leaves_a_pair_out_of_it_alone():
    found = compared([1.0, None, 0.0, 1.0], [1.0, 1.0, 1.0, None])
    recall = found.delta("recall@5")
    assert (found.n, recall["n"], recall["n_excluded"]) == (4, 2, 2)
    assert (recall["baseline"], recall["candidate"]) == (0.5, 1.0)


def test_a_figure_that_nobody_has_has_no_row():
    assert compared([None, None], [None, None]).deltas().empty


def test_a_figure_of_one_side_has_no_delta():
    found = compared([None, None], [1.0, 1.0]).delta("recall@5")
    assert (found["n"], found["delta"], found["low"]) == (0, None, None)


def test_less_is_better_where_it_is():
    given = {"metrics": ("duplicate_rate@5", "context_tokens")}
    before = [{"case_id": "a", "duplicate_rate@5": 0.5, "context_tokens": 1000}]
    after = [{"case_id": "a", "duplicate_rate@5": 0.0, "context_tokens": 1380}]
    found = between(before, after, **given)
    rate, tokens = found.delta("duplicate_rate@5"), found.delta("context_tokens")
    assert (rate["direction"], rate["win"], rate["loss"]) == ("lower", 1, 0)
    assert (tokens["delta"], tokens["loss"], tokens["p"]) == (380, 1, None)


def test_a_precision_is_taken_over_what_each_side_did():
    given = {"metrics": ("refusal_precision",), "kind": "answers"}
    refused = [(1.0, 1.0), (0.0, None), (None, 1.0), (None, None)]
    before, after = (
        [
            {"case_id": f"c{n}", "failed": False, "refusal_precision": pair[i]}
            for n, pair in enumerate(refused)
        ]
        for i in (0, 1)
    )
    found = between(before, after, **given).delta("refusal_precision")
    assert (found["baseline"], found["candidate"], found["delta"]) == (0.5, 1.0, 0.5)
    assert (found["n"], found["n_excluded"]) == (3, 1)
    assert found["low"] <= 0.5 <= found["high"]


def test_a_case_counts_in_a_precision_by_the_share_of_its_repeats_that_refused():
    given = {"metrics": ("refusal_precision",), "kind": "answers"}
    rows = [
        {"case_id": "c1", "failed": False, "refusal_precision": 0.0},
        {"case_id": "c2", "failed": False, "refusal_precision": 1.0},
    ]
    before, after = side(rows, "before", **given), side(rows, "after", **given)
    shares = pd.DataFrame({"refusal_precision": [1.0, 1 / 3]}, index=["c2", "c1"])
    found = compare_outcomes(before, replace(after, shares=shares)).delta("refusal_precision")
    assert (found["baseline"], found["candidate"]) == (0.5, 0.75)


def test_weights_stand_beside_and_change_nothing():
    before = [row(1, 0.0, weight=3.0), row(2, 1.0)]
    after = [row(1, 1.0, weight=3.0), row(2, 1.0)]
    found = between(before, after).delta("recall@5")
    assert (found["delta"], found["weighted"]) == (0.5, 0.75)
    assert compared([0.0], [1.0]).delta("recall@5")["weighted"] is None


def test_latencies_are_compared_at_their_percentiles():
    before = [row(n, latency_ms=100.0 + n) for n in range(40)]
    after = [row(n, latency_ms=210.0 + n) for n in range(40)]
    found = between(before, after)
    p95 = found.delta("p95_ms")
    assert (p95["baseline"], p95["candidate"], p95["n"], p95["loss"]) == (137, 247, 40, 40)
    assert p95["low"] <= p95["delta"] == 110 <= p95["high"]
    assert found.delta("p99_ms")["low"] is None
    assert "p95 +110 ms" in found.in_words()[2]
    assert found.deltas()["metric"].tolist()[-3:] == ["p50_ms", "p95_ms", "p99_ms"]


def test_a_latency_that_only_one_side_has_is_left_out():
    before = [row(1, latency_ms=10.0), row(2, latency_ms=20.0)]
    found = between(before, [row(1, latency_ms=11.0), row(2)]).delta("p50_ms")
    assert (found["n"], found["n_excluded"], found["delta"]) == (1, 1, 1.0)
    assert between(before, [row(1), row(2)]).delta("p50_ms") is None


# Slices.
def sliced():
    before = [row(n, 0.0, **{"tags.kind": "abc"[n % 3]}) for n in range(30)]
    after = [row(n, float(n % 3 == 0), **{"tags.kind": "abc"[n % 3]}) for n in range(30)]
    return between(before, after)


def test_slices_have_their_own_deltas_and_holms_p_values():
    found = sliced()
    assert found.fields() == ["tags.kind"]
    frame = found.deltas(by="tags.kind")
    assert list(frame.columns) == ["slice", *DELTA_COLUMNS, "p_adjusted"]
    recall = frame[frame["metric"] == "recall@5"].set_index("slice")
    assert recall["delta"].tolist() == [1.0, 0.0, 0.0]
    assert recall["p_adjusted"].tolist() == holm([mcnemar(10, 0), 1.0, 1.0])


def test_flips_of_slices_add_up_and_are_corrected():
    found = sliced()
    frame = found.flips_by("tags.kind")
    assert list(frame.columns) == list(FLIP_COLUMNS)
    assert frame["fixed"].tolist() == [10, 0, 0]
    assert frame["n"].sum() == found.flips().n == 30
    assert frame["p_adjusted"][0] == 3 * mcnemar(10, 0)


def test_cases_without_a_tag_are_a_slice():
    rows = [row(1, **{"tags.kind": "a"}), row(2, **{"tags.kind": None})]
    labels = between(rows, rows).flips_by("tags.kind")["slice"].tolist()
    assert labels[0] == "a"
    assert pd.isna(labels[1])


@pytest.mark.parametrize("name", ["tags.nothing", "recall@5", "", "\x1b[2J"])
def test_an_unknown_slice_names_those_that_are(name):
    found = sliced()
    for by in (found.deltas, found.flips_by):
        with pytest.raises(UsageError, match=r"there are: tags\.kind, risk") as error:
            by(name)
        assert "\x1b" not in str(error.value)


# Words.
def test_by_a_hundred_the_counts_lead():
    before, after = [0.0] + [1.0] * 49, [1.0] * 50
    words = compared(before, after).in_words()
    assert words[0] == "1 fixed, 0 broken of 50"
    assert "%" not in words[0]
    assert words[2].startswith("recall@5 +0.02 (1 fixed, 0 broken), ")
    assert words[3] == (
        "A difference that 50 cases cannot show (exact McNemar, p = 1): "
        "6 flips one way would be needed"
    )


def test_above_a_hundred_the_share_stands_beside_the_counts():
    words = compared([0.0] * 20 + [1.0] * 180, [1.0] * 200).in_words()
    assert words[0] == "20 fixed, 0 broken of 200: failing 20/200 (10.0 %) → 0/200 (0.0 %)"
    assert words[3].startswith("More fixed than chance would do")


def test_costs_that_nobody_observed_are_said_to_be_that():
    assert "p95 not observed, context not observed" in compared([1.0], [1.0]).in_words()[2]


def test_latency_and_tokens_stand_beside_quality():
    names = ("recall@5", "context_tokens", "model_calls")
    before, after = (
        [
            {"case_id": f"c{n}", "recall@5": 1.0, "latency_ms": 100.0}
            | {"context_tokens": tokens, "model_calls": calls}
            for n in range(20)
        ]
        for tokens, calls in ((1000, 1), (1380, 2))
    )
    after = [{**one, "latency_ms": 210.4} for one in after]
    found = between(before, after, metrics=names)
    assert found.in_words()[2] == (
        "recall@5 +0.00 (0 fixed, 0 broken), p95 +110 ms, context +380 tokens a case, "
        "model calls +1 a case"
    )
    lines = {line.split()[0]: line for line in repr(found).splitlines()}
    assert lines["context_tokens"].split()[1:] == [
        *("1,000.0", "1,380.0", "+380", "+380", "to", "+380", "0/0/20", "20")
    ]
    assert lines["p95_ms"].split()[1:4] == ["100.0", "210.4", "+110"]


def test_small_times_keep_their_digits_and_nothing_is_minus_nothing():
    before = [row(n, latency_ms=1.0) for n in range(3)]
    after = [row(n, latency_ms=0.75) for n in range(3)]
    found = between(before, after)
    assert "p95 +0 ms" in found.in_words()[2]
    assert "-0.25" in repr(found)


def test_a_figure_without_a_delta_is_shown_as_a_dash():
    lines = repr(compared([None, None], [1.0, 1.0])).splitlines()
    assert [line for line in lines if line.startswith("recall@5")][-1].split()[1:] == [
        *("–", "–", "–", "–", "0/0/0", "0")
    ]


def test_figures_without_passing_and_failing_are_led_by_the_first():
    given = {"metrics": ("faithfulness",)}
    before = [{"case_id": n, "faithfulness": 3.0} for n in "abc"]
    after = [{"case_id": n, "faithfulness": 4.0} for n in "abc"]
    words = between(before, after, **given).in_words()
    assert words[0] == "no case is known to pass or fail, figures of 3 pairs alone"
    assert words[2].startswith("faithfulness +1.00 (3 better, 0 worse)")


def test_without_a_pair_nothing_is_compared_and_nothing_is_a_number():
    found = between([row(1, None, status="error", reason="HTTP 500")], [row(1)])
    words = found.in_words()
    assert words[0] == "nothing to compare, no case was scored on both sides"
    assert "1 left out: 1 error in the baseline" in words
    assert (found.n, found.fixed, found.broken, found.unstable) == (0, (), (), ())
    assert found.deltas().empty
    assert found.fields() == []
    assert found.to_dict()["flips"]["p"] == 1.0
    assert "nothing to compare" in repr(found)


def test_patterns_join_a_comparison_and_change_no_figure():
    found = compared([0.0, 1.0], [1.0, 1.0])
    again = found.with_patterns(())
    assert again.patterns == ()
    assert again.deltas().equals(found.deltas())


def test_what_is_left_out_is_counted_by_its_reason():
    error = {"status": "error", "reason": "HTTP 500"}
    before = [row(1), row(2), row(3, None, **error), row(4, label="a")]
    after = [row(1), row(3), row(4, label="b"), row(5), row(6)]
    assert (
        "5 left out: 2 only in the candidate; 1 error in the baseline; "
        "1 with other labels or another question; 1 only in the baseline"
    ) in between(before, after).in_words()


# Faces.
def test_the_json_has_the_keys_that_scripts_rely_on(tmp_path):
    found = compare(*two_runs(tmp_path, {1, 2}, {2, 3}))
    said = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert said["baseline"] == found.baseline.name
    assert (said["k"], said["n"], said["confounded"]) == (5, 11, False)
    assert (said["fixed"], said["broken"], said["unmatched"]) == (["c3"], ["c1"], [])
    assert said["changed_conditions"] == []
    recall = said["deltas"][0]
    assert {"metric", "baseline", "candidate", "delta", "low", "high", "n"} <= recall.keys()
    assert (recall["metric"], recall["n"]) == ("recall@5", 11)
    assert said["flips"]["needed"] == 6
    assert said["summary"] == list(found.in_words())


def test_changed_conditions_are_whole_fields_of_the_manifest(tmp_path):
    found = compare(*two_runs(tmp_path, {1}, {1}, top_k=8))
    assert found.changed_conditions == [{"field": "top_k", "baseline": 5, "candidate": 8}]
    assert found.in_words()[1] == "This comparison isolates top K (5 → 8)"


def test_text_and_html_say_the_same_numbers():
    found = compared([0.0, 0.5, 1.0, 1.0], [1.0, 1.0, 0.5, 1.0])
    text, page = repr(found), found._repr_html_()
    for said in ("0.6250", "0.8750", "+0.2500", "2/1/1", *found.in_words()[:2]):
        assert said in text
        assert said in page


def test_hostile_names_are_shown_and_not_obeyed():
    name = "<script>alert(1)</script>\x1b[2J"
    before = [{**row(1), "case_id": name, "risk": "high"}]
    after = [{**row(1, 0.0), "case_id": name, "risk": "high"}]
    found = compare_outcomes(side(before, name), side(after, name))
    assert "\x1b" not in repr(found)
    assert "<script>" not in found._repr_html_()
    assert name in found.broken


def test_a_frame_that_is_handed_out_is_the_callers():
    found = compared([0.0], [1.0])
    whole, by_risk = found.deltas(), found.deltas(by="risk")
    whole["delta"] = by_risk["delta"] = 7.0
    assert found.delta("recall@5")["delta"] == 1.0
    assert found.deltas(by="risk")["delta"].tolist() == [1.0, 1.0]


@settings(max_examples=30, deadline=None)
@given(RECALLS)
def test_lists_and_flips_count_every_pair_that_is_known_once(pairs):
    found = compared(*zip(*pairs, strict=True))
    lists = (found.fixed, found.broken, found.still_failing, found.still_passing)
    known = [n for n, pair in enumerate(pairs) if None not in pair]
    assert sorted(i for one in lists for i in one) == sorted(f"c{n}" for n in known)
    flips = found.flips()
    assert (flips.fixed, flips.broken, flips.n) == (*map(len, lists[:2]), len(known))


@settings(max_examples=30, deadline=None)
@given(RECALLS, st.randoms(use_true_random=False))
def test_the_order_of_cases_changes_no_figure(pairs, random):
    rows = [(row(n, a), row(n, b)) for n, (a, b) in enumerate(pairs)]
    there = between(*map(list, zip(*rows, strict=True)))
    random.shuffle(rows)
    back = between(*map(list, zip(*rows, strict=True)))
    names = ["baseline", "candidate", "delta", "n", "win", "tie", "loss"]
    left, right = there.deltas()[names], back.deltas()[names]
    assert np.allclose(left.to_numpy(float), right.to_numpy(float), equal_nan=True)


def test_nothing_undefined_is_a_number():
    said = compared([None, 1.0], [1.0, None]).to_dict()
    assert said["deltas"][0]["delta"] is None
    assert not any(
        isinstance(value, float) and math.isnan(value)
        for one in said["deltas"]
        for value in one.values()
    )
