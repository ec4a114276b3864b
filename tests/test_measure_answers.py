"""The figures of answers: worked values, limits, and what must never enter them."""

import json

import numpy as np
import pandas as pd
import pytest
from answer_data import PLAIN, answered, resolved
from hypothesis import given, settings
from hypothesis import strategies as st

from ragwb.errors import MetricError, UsageError
from ragwb.measure.answer_scores import FIGURES, OTHER
from ragwb.measure.answered import JudgedAnswer
from ragwb.measure.answers import score_answers
from ragwb.measure.statistics import bootstrap_ratio, wilson

MODES = ("answer", "refuse", "clarify")


def figures(scores):
    summary = scores.summary()
    values = zip(summary["metric"], summary["value"], strict=True)
    return {name: None if pd.isna(value) else value for name, value in values}


def of_modes(*pairs, **given):
    """Scores of cases that expect one mode and show another, a case a pair."""
    cases = [
        answered(resolved(f"c{place}", mode=expected), mode=observed)
        for place, (expected, observed) in enumerate(pairs)
    ]
    return score_answers(cases, PLAIN, **given)


def test_modes_worked_by_hand():
    # Expected refuse: 3, of which 2 refused; refused: 4 in all, of which 2 should.
    # Expected answer: 4, refused 1, clarified 1 -> 2/4. Expected clarify: 2, of which 1 clarified.
    scores = of_modes(
        *[("refuse", "refuse")] * 2,
        ("refuse", "answer"),
        *[("answer", "answer")] * 2,
        ("answer", "refuse"),
        ("answer", "clarify"),
        ("clarify", "clarify"),
        ("clarify", "refuse"),
    )
    found = figures(scores)
    assert found["mode_accuracy"] == pytest.approx(5 / 9)
    assert found["refusal_precision"] == pytest.approx(2 / 4)
    assert found["refusal_recall"] == pytest.approx(2 / 3)
    assert found["over_refusal_rate"] == pytest.approx(2 / 4)
    assert found["clarify_precision"] == pytest.approx(1 / 2)
    assert found["clarify_recall"] == pytest.approx(1 / 2)
    assert scores.confusion().loc["answer"].tolist() == [2, 1, 1, 0]
    assert scores.confusion().loc["refuse"].tolist() == [1, 2, 0, 0]
    assert scores.confusion().loc["clarify"].tolist() == [0, 1, 1, 0]
    row = scores.summary().set_index("metric").loc["refusal_recall"]
    expected = wilson(2, 3)
    assert (row["counts"], row["n"], row["n_excluded"]) == ("2/3", 3, 6)
    assert (row["low"], row["high"]) == (expected.low, expected.high)


def test_who_never_refuses_has_no_precision():
    found = figures(of_modes(("refuse", "answer"), ("answer", "answer")))
    assert found["refusal_precision"] is None
    assert found["refusal_recall"] == 0
    assert found["clarify_precision"] is None
    assert found["clarify_recall"] is None
    assert found["refusal_reason_accuracy"] is None


def test_an_answer_of_no_mode_stays_in_every_denominator():
    scores = of_modes(("refuse", None), ("answer", "partial"), ("answer", "answer"))
    found = figures(scores)
    assert found["mode_accuracy"] == pytest.approx(1 / 3)
    assert found["refusal_recall"] == 0
    assert found["over_refusal_rate"] == 0
    assert scores.confusion()[OTHER].tolist() == [1, 1, 0]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(MODES), st.sampled_from([*MODES, None])), min_size=1))
def test_the_rates_agree_with_the_confusion(pairs):
    scores = of_modes(*pairs)
    table, found = scores.confusion(), figures(scores)
    assert table.to_numpy().sum() == len(pairs) == scores.n_scored
    right = sum(table.loc[mode, mode] for mode in MODES)
    assert found["mode_accuracy"] == pytest.approx(right / len(pairs))
    for mode, name in (("refuse", "refusal"), ("clarify", "clarify")):
        column, row = table[mode].sum(), table.loc[mode].sum()
        both = table.loc[mode, mode]
        assert found[f"{name}_precision"] == (pytest.approx(both / column) if column else None)
        assert found[f"{name}_recall"] == (pytest.approx(both / row) if row else None)
    shuffled = of_modes(*reversed(pairs))
    assert figures(shuffled) == pytest.approx(found, nan_ok=True)


def test_the_reason_of_a_refusal_counts_where_there_is_one():
    refuse = {"mode": "refuse", "refusal_trigger": ["NO_EVIDENCE", "OUT_OF_SCOPE"]}
    cases = [
        answered(resolved("right", **refuse), mode="refuse", refusal_reason="OUT_OF_SCOPE"),
        answered(resolved("wrong", **refuse), mode="refuse", refusal_reason="NOT_PERMITTED"),
        answered(resolved("untold", **refuse), mode="refuse"),
        answered(resolved("unlabelled", mode="refuse"), mode="refuse", refusal_reason="X"),
        answered(resolved("not refused", **refuse), mode="answer", refusal_reason="NO_EVIDENCE"),
    ]
    row = score_answers(cases, PLAIN).summary().set_index("metric").loc["refusal_reason_accuracy"]
    assert (row["value"], row["n"]) == (0.5, 2)


def one_row(one, **given):
    return score_answers([one], PLAIN, **given).results.iloc[0]


def test_citations_worked_by_hand():
    # Four distinct ids, one outside the context, two of evidence; two of three groups are cited.
    case = resolved("c", ["a", "b"], ["c"], ["d"])
    row = one_row(
        answered(case, cites=["a", "a", "x", "c", "out"], context=("a", "x", "c")),
    )
    assert row["citation_validity"] == pytest.approx(3 / 4)
    assert row["citation_precision"] == pytest.approx(2 / 4)
    assert row["citation_recall"] == pytest.approx(2 / 3)
    assert row["hard_failure_rate"] == 1


def test_ten_times_the_same_citation_is_one():
    row = one_row(answered(resolved("c", ["a"]), cites=["a"] * 10, context=("a",)))
    assert row[["citation_validity", "citation_precision", "citation_recall"]].tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("given", "validity", "precision", "recall"),
    [
        ({"cites": [], "context": ("a",)}, None, None, 0),
        ({"context": ("a",)}, None, None, None),
        ({"cites": ["a"]}, None, 1, 1),
        ({"cites": ["a"], "context": ()}, 0, 1, 1),
    ],
)
def test_citations_are_null_where_undefined(given, validity, precision, recall):
    row = one_row(answered(resolved("c", ["a"]), **given))
    expected = [validity, precision, recall]
    found = row[["citation_validity", "citation_precision", "citation_recall"]].tolist()
    assert [None if pd.isna(value) else value for value in found] == expected


def test_claims_worked_by_hand():
    claims = [
        {"text": "三天到账"},
        {"text": "原路退回", "variants": ["退回原账户"]},
        {"text": "x", "pattern": r"工作日\w+"},
        {"text": "不收手续费"},
    ]
    case = resolved("c", required_claims=claims, forbidden_claims=["一分钟", "到账"])
    text = "三天 到账，退回原账户，工作日处理。"
    judged = {("c", 1): JudgedAnswer(stated=frozenset({3}))}
    scores = score_answers([answered(case, text)], PLAIN, judged=judged)
    rows = scores.claims()
    how = ["variant", "variant", "pattern", "judge", "", "variant"]
    assert rows["how"].fillna("").tolist() == how
    spans = [text[start:end] for start, end in rows[["start", "end"]].dropna().to_numpy()]
    assert spans == ["三天 到账", "退回原账户", "工作日处理", "到账"]
    assert scores.results["claim_coverage"][0] == 1
    assert scores.results["forbidden_claims"][0] == 1
    assert scores.results["correct_rate"][0] == 0
    alone = score_answers([answered(case, text)], PLAIN)
    assert alone.results["claim_coverage"][0] == pytest.approx(3 / 4)


def test_cases_to_refuse_or_clarify_never_enter_the_figures_of_claims():
    judged = JudgedAnswer(citation_support=0.0, unsupported_rate=1.0)
    for mode in ("refuse", "clarify"):
        case = resolved("c", ["a"], mode=mode, required_claims=["好"])
        one = answered(case, cites=["b"], mode=mode, context=("b",))
        row = one_row(one, judged={("c", 1): judged})
        names = ["claim_coverage", "citation_precision", "citation_recall", "citation_support"]
        assert row[[*names, "unsupported_rate"]].isna().all()
        assert row["correct_rate"] == 1


def test_an_over_refusal_states_nothing():
    case = resolved("c", ["a"], required_claims=["三天到账"])
    row = one_row(answered(case, "无法回答。", mode="refuse", cites=[]))
    assert (row["claim_coverage"], row["citation_recall"], row["over_refusal_rate"]) == (0, 0, 1)


def test_a_claim_that_is_not_decided_is_null(monkeypatch):
    monkeypatch.setattr("ragwb.measure.patterns.TIME_LIMIT_S", 0.01)
    claims = [{"text": "x", "pattern": "(a|aa)+(?=[^a]x)"}]
    case = resolved("c", required_claims=claims, forbidden_claims=claims)
    scores = score_answers([answered(case, "a" * 60)], PLAIN)
    assert scores.claims()["stated"].tolist() == [None, None]
    assert scores.results[["claim_coverage", "forbidden_claims"]].isna().to_numpy().all()
    # Whether the answer contradicts the claim hangs on it, and an undecided rule does not pass.
    assert scores.results["hard_failure_rate"].tolist() == [1]
    judged = {("c", 1): JudgedAnswer(stated=frozenset({0}))}
    found = score_answers([answered(case, "a" * 60)], PLAIN, judged=judged).claims()
    assert found["how"].fillna("").tolist() == ["judge", ""]


@pytest.mark.parametrize(
    ("judged", "broken", "accepted"),
    [
        (None, False, None),
        (None, True, None),
        (True, False, 1),
        (False, False, 0),
        (True, True, 0),
    ],
)
def test_accepted_is_hard_rules_and_judge(judged, broken, accepted):
    given = {"cites": ["out"], "context": ("a",)} if broken else {}
    verdicts = None if judged is None else {("c", 1): JudgedAnswer(accepted=judged)}
    value = one_row(answered(**given), judged=verdicts)["accepted"]
    assert (None if pd.isna(value) else value) == accepted


def test_an_unscored_verdict_is_no_rejection():
    row = one_row(answered(), judged={("c", 1): JudgedAnswer()})
    assert pd.isna(row["accepted"])


def test_chains_are_of_cases_with_several_hops():
    chain = resolved("chain", ["a"], ["b"])
    cases = [
        answered(chain, results=("a", "b"), context=("a",), cites=["a"]),
        answered(resolved("single", ["a"]), results=(), context=(), cites=[]),
    ]
    scores = score_answers(cases, PLAIN)
    found = figures(scores)
    names = ("chain_there", "chain_retrieved", "chain_in_context", "chain_cited")
    assert [found[name] for name in names] == [1, 1, 0, 0]
    table = scores.chains().query("case_id == 'chain'")
    assert table["in_context"].tolist() == [True, False]


def test_statuses_of_cases():
    golden = [
        resolved("scored"),
        resolved("drifted", excluded="drifted: evidence[0]: gone"),
        resolved("shadow", tier="shadow"),
        resolved("retired", tier="retired", excluded="tier retired"),
        resolved("error"),
        resolved("missing"),
        resolved("refuse", mode="refuse", excluded="mode refuse"),
    ]
    cases = [answered(one) for one in golden if one.case.id not in ("retired", "missing", "error")]
    cases.append(answered(golden[4], error="HTTP 500"))
    scores = score_answers(cases, PLAIN, golden=golden)
    assert scores.frame["status"].tolist() == [
        *("scored", "excluded", "excluded", "excluded", "error", "error", "scored")
    ]
    assert scores.n_cases == scores.n_scored + scores.n_excluded + scores.n_errors == 7
    assert scores.frame["reason"].notna().sum() == 5
    kept = scores.frame.set_index("case_id")["mode_accuracy"].notna()
    assert kept[kept].index.tolist() == ["scored", "shadow", "refuse"]
    by_tier = scores.by("tier").query("metric == 'mode_accuracy'").set_index("slice")
    assert by_tier["n"].to_dict() == {"blocking": 2, "retired": 0, "shadow": 1}


def with_repeats(*texts, risk="normal", **given):
    case = resolved("c", required_claims=["好"], risk=risk)
    cases = [answered(case, text, repeat=place) for place, text in enumerate(texts, 1)]
    return score_answers(cases, PLAIN, repeats=len(texts), **given)


def test_a_case_is_its_mean_over_the_repeats():
    scores = with_repeats("好", "坏", "好", "好")
    row = scores.frame.iloc[0]
    assert (row["claim_coverage"], row["n_failed"], row["failed"]) == (0.75, 1, True)
    assert not row["failed_for_comparison"]
    spread = scores.by_repeat().set_index("metric").loc["claim_coverage"]
    assert spread.tolist() == pytest.approx([0.75, 0.5, 0.0])
    assert scores.failed_case_ids() == ["c"]


def test_a_high_risk_case_that_fails_once_has_failed():
    assert with_repeats("好", "坏", "好", risk="high").frame["failed_for_comparison"].all()
    assert with_repeats("坏", "坏", "好").frame["failed_for_comparison"].all()
    assert not with_repeats("好", "好", risk="high").frame["failed_for_comparison"].any()


def test_a_missing_repeat_is_an_error():
    case = resolved("c")
    scores = score_answers([answered(case)], PLAIN, repeats=2)
    assert scores.frame["reason"].tolist() == ["1 of 2 repeats are there"]
    assert figures(scores)["mode_accuracy"] is None


def test_precision_over_repeats_weighs_what_was_observed():
    # Case a must be refused and is in both repeats; b must be answered and is refused in one.
    cases = [
        answered(resolved("a", mode="refuse"), mode="refuse", repeat=1),
        answered(resolved("a", mode="refuse"), mode="refuse", repeat=2),
        answered(resolved("b"), mode="refuse", repeat=1),
        answered(resolved("b"), mode="answer", repeat=2),
    ]
    row = score_answers(cases, PLAIN, repeats=2).summary().set_index("metric")
    found = row.loc["refusal_precision"]
    assert found["value"] == pytest.approx(1 / 1.5)
    assert found["method"] == "bootstrap"
    expected = bootstrap_ratio([1.0, 0.0], [1.0, 0.5])
    assert (found["low"], found["high"]) == (expected.low, expected.high)
    assert row.loc["over_refusal_rate", "value"] == 0.5


def test_a_ratio_of_two_sums_has_an_interval():
    assert bootstrap_ratio([0.0], [0.0]) is None
    interval = bootstrap_ratio(np.ones(20), np.ones(20))
    assert (interval.low, interval.high, interval.resamples) == (1, 1, 10_000)
    with pytest.raises(MetricError, match="null"):
        bootstrap_ratio([np.nan], [1.0])


def test_slices_and_weights():
    cases = [
        answered(resolved("a", tags={"domain": "x"}, weight=3.0)),
        answered(resolved("b", tags={"domain": "y"}), mode="refuse"),
    ]
    scores = score_answers(cases, PLAIN)
    assert scores.fields() == ["tags.domain"]
    by_domain = scores.by("tags.domain").query("metric == 'mode_accuracy'")
    assert by_domain["value"].tolist() == [1, 0]
    row = scores.summary().set_index("metric").loc["mode_accuracy"]
    assert (row["value"], row["weighted"]) == (0.5, 0.75)
    with pytest.raises(UsageError, match=r"no slice 'tags.other'; there are: .*tags.domain"):
        scores.by("tags.other")


def test_results_that_do_not_belong_together_are_refused():
    with pytest.raises(MetricError, match="'c' comes twice in 1"):
        score_answers([answered(), answered()], PLAIN)
    with pytest.raises(MetricError, match="not among the golden cases"):
        score_answers([answered()], PLAIN, golden=[resolved("other")])


def test_nothing_at_all_is_all_null():
    scores = score_answers([], PLAIN)
    assert scores.n_cases == 0
    assert set(figures(scores).values()) == {None}
    assert scores.failures().empty
    assert scores.failed_case_ids() == []


def test_failures_of_all_cases_the_gravest_first():
    case = resolved("a", forbidden_claims=["坏话"])
    cases = [
        answered(case, "坏话"),
        answered(resolved("b", forbidden=["f"]), context=("f",)),
    ]
    scores = score_answers(cases, PLAIN)
    failures = scores.failures()
    assert failures["reason"].tolist() == ["FORBIDDEN_RETRIEVED", "FORBIDDEN_CLAIM"]
    assert failures["case_id"].tolist() == ["b", "a"]
    assert failures["start"].isna().tolist() == [True, False]
    assert scores.hard_failed_case_ids() == ["a", "b"]


def test_text_html_and_json_say_the_same():
    hostile = "<script>alert(1)</script>"
    case = resolved(hostile, forbidden_claims=["坏"])
    scores = score_answers([answered(case, "坏")], PLAIN, run_id="run\x1b[31m")
    said = scores.to_dict()
    assert json.loads(json.dumps(said, allow_nan=False)) == said
    assert set(said["metrics"]) == set(FIGURES)
    assert said["confusion"]["answer"]["answer"] == 1
    assert said["failed_case_ids"] == [hostile]
    (failure,) = said["cases"][0]["hard_failures"]
    assert (failure["rule"], failure["start"], failure["end"]) == ("FORBIDDEN_CLAIM", 0, 1)
    for shown in (repr(scores), scores._repr_html_()):
        assert "1.0000 (1/1)" in shown
        assert "1 break a hard rule" in shown
        assert "\x1b" not in shown
        assert "–" in shown
        assert "<script>" not in shown
