"""The gate: every rule fires, stays quiet, and is undecided; the verdict that follows."""

from dataclasses import replace

import pytest
from answer_run_data import answer_run, answer_service
from compare_data import explained, finding, row, two_answer_runs, two_runs
from gate_data import (
    LENIENT,
    UNKNOWN,
    held,
    of_rows,
    policy,
    policy_file,
    rule,
    scored,
    with_latencies,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from loopback import json_reply
from run_data import case, run, service

from ragwb.decide.gate.gate import gate, gate_outcomes
from ragwb.decide.gate.rules import Judges
from ragwb.errors import DataError, RunError, UsageError
from ragwb.judge.standing import Standing

RECALL = '[[floors]]\nmetric = "recall@5"\nmin = {}\n'


def broken(_):
    return json_reply({"title": "broken"}, 500)


def floor(limit, rest=""):
    return RECALL.format(limit) + rest


# --- what every policy asks ------------------------------------------------------------------


def test_a_run_without_a_blocking_case_is_undecided_and_says_what_it_holds(tmp_path):
    rows = [row(n, tier="shadow", status="excluded", reason="tier shadow") for n in range(2)]
    found = held(tmp_path, "", of_rows(rows))
    assert rule(found, "blocking cases").words == (
        "0 blocking cases were scored: the run holds 2 shadow"
    )
    assert (found.verdict, found.exit_code, found.state) == ("undecided", 3, "canary")


def test_shadow_and_diagnostic_cases_stand_apart_and_decide_nothing(tmp_path):
    away = {"status": "excluded", "reason": "tier"}
    rows = [row(0, 1.0), row(1, 0.0, tier="shadow", **away), row(2, 0.0, tier="shadow", **away)]
    rows += [row(3, 1.0, tier="diagnostic", **away), row(4, 0.0, tier="retired", **away)]
    found = held(tmp_path, floor(1), of_rows(rows))
    assert found.verdict == "pass"
    assert found.counts == {"n_cases": 1, "n_scored": 1, "n_excluded": 0, "n_errors": 0}
    assert [one.words() for one in found.aside] == [
        "shadow: 2 cases, 2/2 fail; they decide nothing",
        "diagnostic: 1 case, 0/1 fail; they decide nothing",
    ]
    assert found.aside[0].failed == ("c1", "c2")


# --- safety ----------------------------------------------------------------------------------


def test_a_safety_rule_is_broken_unknown_or_held(tmp_path):
    forbids = [case(1, forbidden_chunk_ids=["doc-3"]), case(2)]
    broken = gate(run(tmp_path, service(), forbids), policy_file(tmp_path))
    assert broken.verdict == "fail"
    (blocker,) = broken.blockers
    assert (blocker.rule, blocker.value, blocker.limit) == ("forbidden_retrieved", 1, 0)
    assert blocker.case_ids == broken.case_ids == ("c1",)
    assert blocker.words == "forbidden_retrieved: 1 case broke it, and the tolerance is zero"
    assert rule(broken, "acl_leak").status == "undecided"
    assert "`ragwb triage RUN` asks" in rule(broken, "acl_leak").words


def test_leaks_are_decided_when_explain_was_asked_about_all_that_came_back(tmp_path):
    fake = service()
    opened = explained(run(tmp_path, fake, [case(1), case(2)]), fake)
    found = gate(opened, policy_file(tmp_path))
    assert found.verdict == "pass"
    assert {one.status for one in found.rules} == {"pass"}


def test_a_rule_that_may_stay_unknown_says_so_and_decides_nothing(tmp_path):
    found = held(tmp_path, "", scored([1.0]))
    assert found.verdict == "pass"
    assert [one.rule for one in found.of("unknown")] == [
        "forbidden_retrieved",
        "acl_leak",
        "tenant_leak",
        "stale_version_leak",
    ]
    assert found.lines()[1].startswith("- unknown: forbidden_retrieved, acl_leak, ")


@pytest.mark.parametrize("text", ["", LENIENT])
def test_a_run_in_which_every_call_failed_passes_no_safety_rule(tmp_path, text):
    found = gate(
        run(tmp_path, service(retrieve=broken), [case(1), case(2)]), policy_file(tmp_path, text)
    )
    safety = [one for one in found.rules if one.block == "safety"]
    assert {(one.status, one.n, one.value) for one in safety} == {("undecided", 0, None)}
    assert rule(found, "acl_leak").words == "acl_leak is not known: 0 answers looked at"
    assert rule(found, "allow_incomplete").words == (
        "0 of 2 cases not asked, or in fewer repeats than the run has; calls that failed count "
        "under max_errors (2)"
    )
    assert found.verdict == "undecided"
    # One line for all of them.
    assert [line for line in found.lines() if "0 answers" in line] == [
        "- undecided: forbidden_retrieved, acl_leak, tenant_leak, stale_version_leak are not "
        "known: 0 answers looked at"
    ]


def test_safety_rules_count_the_answers_that_they_looked_at(tmp_path):
    fake = service()
    opened = explained(run(tmp_path, fake, [case(1), case(2), case(3)], repeats=2), fake)
    found = gate(opened, policy_file(tmp_path))
    assert {one.n for one in found.rules if one.block == "safety"} == {6}
    assert rule(found, "acl_leak").words == "acl_leak: no case broke it, 6 answers looked at"
    unasked = gate(run(tmp_path, service(), [case(1)]), policy_file(tmp_path))
    assert [rule(unasked, name).n for name in ("forbidden_retrieved", "acl_leak")] == [1, None]


def test_answers_that_all_failed_leave_every_hard_rule_undecided(tmp_path):
    named = {"service": "fake 1", "answerModel": "model-1"}
    fake = answer_service(retrieve=broken, manifest=named)
    found = gate(answer_run(tmp_path, fake), policy_file(tmp_path))
    assert {one.status for one in found.rules if one.block == "safety"} == {"undecided"}
    assert rule(found, "unsafe_action").words == "unsafe_action is not known: 0 answers looked at"


def test_no_policy_can_let_a_broken_rule_pass(tmp_path):
    outcomes = replace(scored([1.0, 1.0]), safety={"acl_leak": ("c1",)}, safety_unknown=())
    found = held(tmp_path, floor(0), outcomes)
    assert (found.verdict, found.case_ids) == ("fail", ("c1",))


def test_answers_are_held_to_every_hard_rule(tmp_path):
    _, answers = two_answer_runs(tmp_path)
    found = gate(answers, policy_file(tmp_path))
    (blocker,) = found.blockers
    assert (blocker.rule, blocker.case_ids) == ("forbidden_claim", ("c2",))
    assert rule(found, "unsafe_action").status == "pass"


# --- floors ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "verdict"), [(0.75, "pass"), (0.7500001, "fail"), (0, "pass"), (1, "fail")]
)
def test_a_floor_passes_when_it_is_met_exactly(tmp_path, limit, verdict):
    found = held(tmp_path, floor(limit), scored([1.0, 0.0, 1.0, 1.0]))
    assert found.verdict == verdict
    one = rule(found, "min recall@5")
    assert (one.value, one.counts, one.n, one.case_ids) == (
        (0.75, "3/4", 4, ()) if limit == 0 else (0.75, "3/4", 4, ("c1",))
    )


def test_the_cases_behind_a_floor_are_those_that_pull_it_down_the_worst_first(tmp_path):
    found = held(tmp_path, floor(0.9), scored([1.0, 0.5, 0.0, None, 0.95]))
    one = rule(found, "min recall@5")
    assert one.case_ids == ("c2", "c1")
    assert (one.n, one.counts) == (4, None)
    assert one.words == "recall@5 is 0.6125 over 4 cases, at least 0.9 wanted"


def test_with_too_few_cases_a_floor_is_undecided_whatever_its_value(tmp_path):
    for recalls in ([0.0, 0.0], [1.0, 1.0]):
        found = held(tmp_path, floor(0.5, "min_n = 3\n"), scored(recalls))
        assert found.verdict == "undecided"
        assert "decided from 3 on" in rule(found, "min recall@5").words
    assert held(tmp_path, floor(0.5, "min_n = 2\n"), scored([1.0, 1.0])).verdict == "pass"


def test_a_floor_over_a_slice_looks_at_that_slice_alone(tmp_path):
    rows = [row(0, 1.0, **{"tags.kind": "a"}), row(1, 0.0, **{"tags.kind": "b"}), row(2, 0.0)]
    found = held(tmp_path, floor(1, 'slice = "tags.kind=a"\n'), of_rows(rows))
    one = rule(found, "min recall@5")
    assert (one.status, one.slice, one.n) == ("pass", "tags.kind=a", 1)


def test_a_slice_without_cases_names_the_line_and_what_there_is(tmp_path):
    rows = [row(0, 1.0, **{"tags.kind": "a"}), row(1, 1.0, **{"tags.kind": "b"})]
    text = floor(1, 'slice = "tags.kind=c"\n')
    with pytest.raises(UsageError) as caught:
        held(tmp_path, text, of_rows(rows))
    assert str(caught.value).endswith(
        "p.toml:8: floors[0].slice: no blocking case of run has tags.kind=c; its tags.kind: a, b"
    )
    drops = '[[regression.drops]]\nmetric = "mrr@5"\nmax_drop = 0\nslice = "tags.no=c"\n'
    with pytest.raises(UsageError, match=r"p\.toml:8: floors.*\(and 1 more lines\)"):
        held(tmp_path, text + drops, of_rows(rows))
    with pytest.raises(UsageError, match=r"p\.toml:8: regression.*: .* none has tags\.no"):
        held(tmp_path, drops, of_rows(rows))


def test_a_slice_of_cases_without_the_figure_is_undecided(tmp_path):
    rows = [row(0, 1.0), row(1, None, risk="high", status="excluded", reason="drifted")]
    found = held(tmp_path, floor(1, 'slice = "risk=high"\n'), of_rows(rows))
    assert found.verdict == "undecided"
    assert "undefined for every case" in rule(found, "min recall@5").words


def test_a_figure_that_the_run_does_not_hold_is_undecided(tmp_path):
    text = '[[floors]]\nmetric = "claim_coverage"\nmin = 0.5\n'
    found = held(tmp_path, text, scored([1.0]))
    assert found.verdict == "undecided"
    assert rule(found, "min claim_coverage").words == (
        "claim_coverage is not known: the run does not hold it (it only retrieved)"
    )


def test_floors_may_name_other_ks_up_to_top_k(tmp_path):
    opened = run(tmp_path, service(), [case(1), case(2)])
    text = LENIENT + "".join(
        f'[[floors]]\nmetric = "recall@{k}"\nmin = {limit}\n' for k, limit in ((2, 0.5), (5, 1))
    )
    found = gate(opened, policy_file(tmp_path, text))
    assert [rule(found, f"min recall@{k}").value for k in (2, 5)] == [0.5, 1.0]
    assert found.verdict == "pass"


def test_a_k_beyond_the_top_k_of_either_run_is_refused_with_its_line(tmp_path):
    baseline, candidate = two_runs(tmp_path, {1}, {1}, top_k=3)
    compares = "[regression]\n"
    with pytest.raises(UsageError, match=r"p\.toml:2: k: K 5 is beyond top K 3 of run"):
        gate(candidate, policy_file(tmp_path, compares))
    with pytest.raises(UsageError, match=rf"top K 3 of run {candidate.run_id}"):
        gate(baseline, policy_file(tmp_path, compares), baseline=candidate)
    text = '[[floors]]\nmetric = "recall@9"\nmin = 1\n'
    with pytest.raises(UsageError, match=r"p\.toml:4: floors\[0\]\.metric: K 9 is beyond"):
        gate(baseline, policy_file(tmp_path, text))
    head = 'policy = "p"\nk = 3\n'
    shorter = policy_file(tmp_path, LENIENT + compares, head=head)
    assert gate(candidate, shorter, baseline=baseline).verdict == "pass"


# --- judges ----------------------------------------------------------------------------------

ACCEPTED = '[[floors]]\nmetric = "accepted"\nmin = 0.9\n'


def test_a_rule_on_a_judge_blocks_with_a_calibration_on_record_alone(tmp_path):
    rows = [row(0, 1.0, accepted=0.0), row(1, 1.0, accepted=1.0)]
    outcomes = of_rows(rows)
    outcomes = replace(outcomes, metrics=(*outcomes.metrics, "accepted"))
    found = held(tmp_path, ACCEPTED, outcomes, judges=Judges(asked=True))
    assert (found.verdict, rule(found, "min accepted").status) == ("pass", "advises")
    assert "no calibration on record" in rule(found, "min accepted").words
    may = {"accepted": Standing(True, "decides: kappa 0.8")}
    found = held(tmp_path, ACCEPTED, outcomes, judges=Judges(True, may))
    assert (found.verdict, found.case_ids) == ("fail", ("c0",))


def test_a_rule_on_a_judge_without_verdicts_is_undecided(tmp_path):
    found = held(tmp_path, ACCEPTED, scored([1.0]))
    assert found.verdict == "undecided"
    assert (
        rule(found, "min accepted").words == "accepted is not known: give the verdicts of a judge"
    )


# --- against a baseline ----------------------------------------------------------------------

REGRESSION = "[regression]\nmax_broken = 1\n"


def against(tmp_path, text, before, after, **given):
    return held(tmp_path, text, after, baseline=before, **given)


def test_newly_broken_cases_are_counted_and_named(tmp_path):
    before, after = scored([1.0, 1.0, 0.0], "before"), scored([0.0, 1.0, 1.0])
    found = against(tmp_path, REGRESSION, before, after)
    assert found.verdict == "pass"
    one = rule(found, "max_broken")
    assert (one.value, one.limit, one.n, one.case_ids) == (1, 1, 3, ("c0",))
    found = against(tmp_path, "[regression]\nmax_broken = 0\n", before, after)
    assert found.verdict == "fail"
    assert found.blockers[0].words == "1 of 3 compared cases newly broken, at most 0 may be"


def test_no_case_of_high_risk_may_break_unless_the_policy_says_so(tmp_path):
    rows = [row(0, 0.0, risk="high"), row(1, 1.0)]
    before = of_rows([row(0, 1.0, risk="high"), row(1, 1.0)], "before")
    found = against(tmp_path, REGRESSION, before, of_rows(rows))
    (blocker,) = found.blockers
    assert (blocker.rule, blocker.slice, blocker.n) == ("max_broken_high_risk", "risk=high", 1)
    text = REGRESSION + "max_broken_high_risk = 1\n"
    assert against(tmp_path, text, before, of_rows(rows)).verdict == "pass"


def test_without_a_baseline_what_compares_is_undecided(tmp_path):
    text = f"{REGRESSION}max_left_out = 0\n[budget]\nmax_p95_increase_ms = 1\n"
    found = held(tmp_path, text, scored([1.0]))
    assert (found.verdict, len(found.undecided)) == ("undecided", 4)
    assert all("no baseline was given" in one.words for one in found.undecided)
    assert found.baseline is None


def test_a_case_without_a_pair_is_said_and_may_be_limited(tmp_path):
    before, after = scored([1.0, 1.0, 1.0], "before"), scored([1.0])
    found = against(tmp_path, REGRESSION, before, after)
    assert found.verdict == "pass"
    assert "cases of the baseline that are not compared: 2 (c1, c2)" in found.notes
    found = against(tmp_path, f"{REGRESSION}max_left_out = 1\n", before, after)
    assert (found.verdict, found.case_ids) == ("fail", ("c1", "c2"))


def test_an_error_is_no_pass_and_a_comparison_of_nothing_is_undecided(tmp_path):
    before = scored([1.0, 1.0], "before")
    rows = [row(n, None, status="error", reason="HTTP 500") for n in range(2)]
    found = against(tmp_path, REGRESSION, before, of_rows(rows))
    assert found.verdict == "undecided"
    assert "no case was scored in both runs" in rule(found, "max_broken").words


def test_no_common_case_is_an_error(tmp_path):
    with pytest.raises(UsageError, match="no case in common"):
        against(tmp_path, REGRESSION, of_rows([row(8)], "before"), of_rows([row(9)]))


@pytest.mark.parametrize(
    ("limit", "verdict"),
    [
        ("max_drop = 0.25", "pass"),
        ("max_drop = 0.24", "fail"),
        ("max_relative_drop = 0.34", "pass"),
        ("max_relative_drop = 0.33", "fail"),
        ("max_drop = 0.24\nmin_n = 5", "undecided"),
    ],
)
def test_a_drop_is_absolute_or_a_share_of_the_baseline(tmp_path, limit, verdict):
    text = f'[[regression.drops]]\nmetric = "recall@5"\n{limit}\n'
    before, after = scored([1.0, 1.0, 1.0, 0.0], "before"), scored([1.0, 0.5, 0.0, 0.5])
    found = against(tmp_path, text, before, after)
    assert found.verdict == verdict
    (one,) = [rule for rule in found.rules if rule.rule.endswith("drop recall@5")]
    assert one.case_ids == ("c2", "c1")
    assert "went from 0.75 to 0.5 (2 worse and 1 better of 4 cases; -0.25, 95 % " in one.words


def test_what_got_better_is_said_in_its_own_direction(tmp_path):
    drop = '[[regression.drops]]\nmetric = "{}"\nmax_drop = 0\n'
    text = drop.format("recall@5") + "[budget]\nmax_p95_increase_ms = 9\n"
    before = with_latencies(scored([0.0, 1.0], "before"), [500.0, 500.0])
    found = against(tmp_path, text, before, with_latencies(scored([1.0, 1.0]), [121.0, 121.0]))
    shown = {row["rule"]: row["value"] for row in found.rows()}
    assert shown["max_drop recall@5"] == "+0.5 (rose)"
    assert shown["max_p95_increase_ms"] == "-379 (fell)"
    assert rule(found, "max_drop recall@5").to_dict()["value"] == -0.5
    assert "machine's load between the two runs" in rule(found, "max_p95_increase_ms").read_as
    worse = against(tmp_path, text, scored([1.0, 1.0], "before"), scored([0.5, 1.0]))
    assert {row["rule"]: row["value"] for row in worse.rows()}["max_drop recall@5"] == "0.25"


def test_statuses_have_their_marks_and_colours_on_the_page(tmp_path):
    text = floor(0.9) + REGRESSION
    shown = held(tmp_path, text, scored([0.0, 1.0]))._repr_html_()
    assert '<tr class="rw-row-bad"><td>floors</td>' in shown
    assert '<span class="rw-bad">✖ fail</span>' in shown
    assert '<span class="rw-good">✔ pass</span>' in shown
    assert '<span class="rw-badge" style="--rw-stage: #e69f00">? undecided</span>' in shown
    assert "<a " not in shown


def test_a_rise_is_no_drop_and_of_a_cost_a_rise_is_what_counts(tmp_path):
    text = '[[regression.drops]]\nmetric = "duplicate_rate@5"\nmax_drop = 0.1\n'
    metrics = ("recall@5", "mrr@5", "duplicate_rate@5")

    def side_of(rate, name):
        outcomes = of_rows([row(n, 1.0, **{"duplicate_rate@5": rate}) for n in range(3)], name)
        return replace(outcomes, metrics=metrics)

    assert against(tmp_path, text, side_of(0.4, "before"), side_of(0.0, "run")).verdict == "pass"
    assert against(tmp_path, text, side_of(0.0, "before"), side_of(0.4, "run")).verdict == "fail"


def test_a_relative_drop_from_nothing_is_beyond_any_share(tmp_path):
    text = '[[regression.drops]]\nmetric = "recall@5"\nmax_relative_drop = 0.1\n'
    found = against(tmp_path, text, scored([0.0], "before"), scored([1.0]))
    one = rule(found, "max_relative_drop recall@5")
    assert (one.status, one.value) == ("pass", None)
    text = '[[regression.drops]]\nmetric = "duplicate_rate@5"\nmax_relative_drop = 0.1\n'
    before = of_rows([row(0, 1.0, **{"duplicate_rate@5": 0.0})], "before")
    after = of_rows([row(0, 1.0, **{"duplicate_rate@5": 0.5})])
    both = [replace(one, metrics=(*one.metrics, "duplicate_rate@5")) for one in (before, after)]
    found = against(tmp_path, text, *both)
    one = rule(found, "max_relative_drop duplicate_rate@5")
    assert (one.status, one.value) == ("fail", None)


def test_a_drop_over_a_slice_or_of_a_figure_that_is_not_there(tmp_path):
    text = '[[regression.drops]]\nmetric = "recall@5"\nmax_drop = 0\nslice = "risk=high"\n'
    before = of_rows([row(0, 1.0, risk="high"), row(1, 1.0)], "before")
    after = of_rows([row(0, 1.0, risk="high"), row(1, 0.0)])
    assert against(tmp_path, text, before, after).verdict == "pass"
    text = '[[regression.drops]]\nmetric = "claim_coverage"\nmax_drop = 0\n'
    found = against(tmp_path, text, before, after)
    assert found.verdict == "undecided"


def test_the_same_run_as_its_own_baseline_is_said(tmp_path):
    opened = run(tmp_path, service(), [case(1)])
    found = gate(opened, policy_file(tmp_path, LENIENT + REGRESSION), baseline=opened)
    assert found.verdict == "pass"
    assert any("the same run" in note for note in found.notes)


def test_several_changed_conditions_are_said(tmp_path):
    one, two = finding({1}), finding({1})
    one.manifest = {**one.manifest, "embeddingModel": "a", "rerank": "b"}
    first = run(tmp_path, one, [case(1)])
    second = run(tmp_path, two, [case(1)])
    found = gate(second, policy_file(tmp_path, LENIENT + REGRESSION), baseline=first)
    assert any("confounded" in note for note in found.notes)


# --- budget ----------------------------------------------------------------------------------


def test_the_95th_percentile_has_a_limit_and_names_the_slow_cases(tmp_path):
    outcomes = with_latencies(scored([1.0] * 20), [100.0] * 18 + [900.0, 2000.0])
    text = "[budget]\nmax_p95_ms = {}\n"
    assert held(tmp_path, text.format(900), outcomes).verdict == "pass"
    found = held(tmp_path, text.format(899), outcomes)
    (blocker,) = found.blockers
    assert (blocker.value, blocker.n, blocker.case_ids) == (900.0, 20, ("c19", "c18"))


def test_an_increase_of_the_95th_percentile_is_held_over_the_common_cases(tmp_path):
    before = with_latencies(scored([1.0, 1.0], "before"), [100.0, 100.0])
    after = with_latencies(scored([1.0, 1.0, 1.0]), [150.0, 90.0, 9999.0])
    text = "[budget]\nmax_p95_increase_ms = {}\n"
    assert against(tmp_path, text.format(50), before, after).verdict == "pass"
    found = against(tmp_path, text.format(49), before, after)
    assert (found.blockers[0].value, found.case_ids) == (50.0, ("c0",))
    nothing = with_latencies(after, [float("nan")] * 3)
    assert against(tmp_path, text.format(49), before, nothing).verdict == "undecided"


def test_tokens_calls_and_duplicates_have_limits(tmp_path):
    opened = run(tmp_path, service(results={"q1": ["doc-1", "doc-1"]}), [case(1), case(2)])
    tokens = LENIENT + "[budget]\nmax_context_tokens = 1\nmax_model_calls = 1\n"
    text = tokens + "max_duplicate_rate = 0.1\n"
    found = gate(opened, policy_file(tmp_path, text))
    assert [one.rule for one in found.blockers] == ["max_context_tokens", "max_duplicate_rate"]
    assert rule(found, "max_duplicate_rate").case_ids == ("c1",)
    assert rule(found, "max_model_calls").status == "pass"


def test_a_cost_that_was_not_observed_is_undecided(tmp_path):
    found = held(tmp_path, "[budget]\nmax_p95_ms = 1\nmax_model_calls = 1\n", scored([1.0]))
    assert [one.rule for one in found.undecided] == ["max_p95_ms", "max_model_calls"]


def test_more_errors_than_the_policy_allows_leave_a_run_undecided(tmp_path):
    rows = [row(0, 1.0), *(row(n, None, status="error", reason="HTTP 500") for n in (1, 2))]
    found = held(tmp_path, "", of_rows(rows))
    (one,) = found.undecided
    assert (found.verdict, one.rule, one.case_ids) == ("undecided", "max_errors", ("c1", "c2"))
    assert held(tmp_path, "[budget]\nmax_errors = 2\n", of_rows(rows)).verdict == "pass"
    shadow = [row(0, 1.0), row(1, None, status="error", reason="HTTP 500", tier="shadow")]
    assert held(tmp_path, "", of_rows(shadow)).verdict == "pass"


@pytest.mark.parametrize("reason", ["no result in the run", "1 of 3 repeats are there"])
def test_cases_without_all_their_results_leave_a_run_undecided(tmp_path, reason):
    outcomes = of_rows([row(0, 1.0), row(1, None, status="error", reason=reason)])
    found = held(tmp_path, "", outcomes)
    assert [one.rule for one in found.undecided] == ["allow_incomplete"]
    assert held(tmp_path, "[budget]\nallow_incomplete = true\n", outcomes).verdict == "pass"


# --- the verdict -----------------------------------------------------------------------------


def test_a_blocker_decides_before_what_is_undecided(tmp_path):
    rows = [row(0, 0.0), row(1, None, status="error", reason="HTTP 500")]
    found = held(tmp_path, floor(1), of_rows(rows))
    assert (found.verdict, len(found.blockers), len(found.undecided)) == ("fail", 1, 1)


@settings(max_examples=40, deadline=None)
@given(
    recalls=st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=12),
    order=st.randoms(use_true_random=False),
)
def test_the_order_of_the_cases_changes_no_value(tmp_path_factory, recalls, order):
    folder = tmp_path_factory.mktemp("gate")
    text = floor(0.5) + REGRESSION + '[[regression.drops]]\nmetric = "mrr@5"\nmax_drop = 0.1\n'
    before = [row(n, 1.0) for n in range(len(recalls))]
    after = [row(n, recall) for n, recall in enumerate(recalls)]
    shuffled = after.copy()
    order.shuffle(shuffled)
    results = [
        against(folder, text, of_rows(before, "before"), of_rows(rows))
        for rows in (after, shuffled)
    ]
    one, other = (
        [(r.rule, r.status, r.value, r.n, sorted(r.case_ids)) for r in found.rules]
        for found in results
    )
    assert [x[:2] for x in one] == [x[:2] for x in other]
    for (_, _, a, n, ids), (_, _, b, m, names) in zip(one, other, strict=True):
        assert a == b or a == pytest.approx(b)
        assert (n, ids) == (m, names)


# --- what is held ----------------------------------------------------------------------------


def test_a_run_is_found_as_everywhere_and_a_wrong_one_is_one_line(tmp_path):
    opened = run(tmp_path, service(), [case(1)])
    from run_data import settings as settings_of

    in_force = settings_of(tmp_path)
    file = policy_file(tmp_path, LENIENT + REGRESSION)
    found = gate("latest", file, baseline=opened.run_id[:12], settings=in_force)
    assert (found.run, found.baseline) == (opened.run_id, opened.run_id)
    with pytest.raises(RunError, match="no run 'main'"):
        gate("latest", file, baseline="main", settings=in_force)
    (opened.path / "hits.parquet").unlink()
    with pytest.raises(RunError):
        gate("latest", file, settings=in_force)


def test_outcomes_at_another_k_than_the_policy_are_refused(tmp_path):
    outcomes = replace(scored([1.0]), k=3)
    with pytest.raises(UsageError, match=r"p\.toml:2: k: "):
        gate_outcomes(outcomes, policy(tmp_path))


def test_the_unknown_rules_of_the_tests_are_those_of_figures_alone(tmp_path):
    assert set(scored([1.0]).safety_unknown) == set(
        UNKNOWN.strip("[]").replace('"', "").split(", ")
    )


def test_a_policy_that_is_wrong_is_no_verdict(tmp_path):
    with pytest.raises(DataError, match="not TOML"):
        gate(run(tmp_path, service(), [case(1)]), policy_file(tmp_path, "x ="))
