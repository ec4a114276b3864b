"""A drafted policy is read back, is met by the run it was drafted from, and holds no one's text."""

import pytest
from answer_run_data import answer_run
from compare_data import explained, row, two_runs
from gate_data import of_rows, policy_file, rule, scored, with_latencies
from hypothesis import given, settings
from hypothesis import strategies as st
from run_data import case, run, service

from ragwb.decide.gate.gate import gate, gate_outcomes
from ragwb.decide.gate.policy import load_policy
from ragwb.decide.gate.policy_draft import draft_policy, unchecked_leaks
from ragwb.decide.outcomes import outcomes_of


def drafted(folder, outcomes):
    return load_policy(policy_file(folder, draft_policy(outcomes), head=""))


def test_a_run_meets_the_policy_that_was_drafted_from_it(tmp_path):
    opened, worse = two_runs(tmp_path, range(1, 11), range(1, 5))
    policy = drafted(tmp_path, outcomes_of(opened))
    found = gate(opened, policy, baseline=opened)
    assert (found.verdict, found.exit_code) == ("pass", 0)
    assert gate(worse, policy, baseline=opened).verdict == "fail"
    assert policy.k == opened.manifest.top_k
    assert set(policy.safety.may_be_unknown) == {"acl_leak", "tenant_leak", "stale_version_leak"}


def test_the_limits_are_the_ends_of_the_intervals_with_the_counts_beside(tmp_path):
    text = draft_policy(scored([1.0] * 45 + [0.0] * 5))
    assert "min = 0.78  # 0.9000 (45/50), 95 % 0.7864 to 0.9565, n = 50" in text
    assert "max_broken = 1  # one case in fifty, at least one" in text
    assert "max_drop = 0.02  " in text


def test_answers_get_their_own_floors_and_what_is_broken_is_said(tmp_path):
    opened = answer_run(tmp_path)
    outcomes = outcomes_of(opened)
    text = draft_policy(outcomes)
    assert "# forbidden_claim: 1 broke it in this run" in text
    assert "# claim_coverage: 3 cases leave every value possible" in text
    policy = drafted(tmp_path, outcomes)
    assert policy.floors == ()
    assert '# metric = "correct_rate"' in text
    found = gate(opened, policy, baseline=opened)
    assert [one.rule for one in found.blockers] == ["forbidden_claim"]


def test_a_floor_of_few_cases_is_commented_out_with_the_reason(tmp_path):
    few, enough = scored([1.0] * 10 + [0.0] * 9), scored([1.0] * 10 + [0.0] * 10)
    text = draft_policy(few)
    assert "# 19 scored cases are too few for a floor of recall@5, which begins at 20:\n" in text
    assert '# [[floors]]\n# metric = "recall@5"\n# min = 0.31  # 0.5263 (10/19), ' in text
    assert drafted(tmp_path, few).floors == ()
    assert {(floor.metric, floor.min_n) for floor in drafted(tmp_path, enough).floors} == {
        ("recall@5", 10),
        ("mrr@5", 10),
    }


def test_leaks_that_a_run_does_not_show_are_said_to_be_unchecked(tmp_path):
    opened = run(tmp_path, service(), [case(1)])
    text = draft_policy(outcomes_of(opened))
    leaks = unchecked_leaks(outcomes_of(opened))
    assert set(leaks) == {"acl_leak", "tenant_leak", "stale_version_leak"}
    assert f"# LEAKS ARE NOT CHECKED by this policy ({', '.join(leaks)}): this run does" in text
    fake = service()
    known = explained(run(tmp_path, fake, [case(1)]), fake)
    assert "LEAKS" not in draft_policy(outcomes_of(known))


def test_the_increase_of_p95_waits_for_whoever_knows_the_machine(tmp_path):
    outcomes = with_latencies(scored([1.0, 1.0]), [100.0, 120.0])
    assert "load between the two runs is in it:\n# max_p95_increase_ms = 60" in draft_policy(
        outcomes
    )
    assert drafted(tmp_path, outcomes).budget.max_p95_increase_ms is None


def test_only_slices_with_enough_cases_get_a_floor(tmp_path):
    rows = [row(n, 1.0, **{"tags.kind": "many" if n < 25 else "few"}) for n in range(30)]
    policy = drafted(tmp_path, of_rows(rows))
    assert [floor.slice for floor in policy.floors if floor.slice] == ["tags.kind=many"]


def test_high_risk_is_drafted_first_however_few_its_cases_are(tmp_path):
    rows = [row(n, float(n > 1), risk="high" if n < 5 else "normal") for n in range(30)]
    text = draft_policy(of_rows(rows))
    assert "# 5 scored cases are too few for a floor of recall@5, which begins at 20:" in text
    assert text.index('# slice = "risk=high"') < text.index('slice = "risk=normal"')
    assert {floor.slice for floor in drafted(tmp_path, of_rows(rows)).floors} == {
        None,
        "risk=normal",
    }


def test_a_run_without_a_scored_case_gives_a_policy_without_floors(tmp_path):
    rows = [row(0, None, status="error", reason="HTTP 500")]
    policy = drafted(tmp_path, of_rows(rows))
    assert policy.floors == ()
    assert policy.safety.may_be_unknown == ()
    assert "max_errors = 0  # 1 in this run" in draft_policy(of_rows(rows))


@pytest.mark.parametrize("slow", [0.2, 7.0, 99.0, 1234.5])
def test_the_budget_is_what_the_run_took_and_half_as_much_again(tmp_path, slow):
    outcomes = with_latencies(scored([1.0, 1.0]), [slow, slow])
    policy = drafted(tmp_path, outcomes)
    assert slow * 1.5 <= policy.budget.max_p95_ms <= max(1, slow * 1.5 * 1.1 + 1)
    assert rule(gate_outcomes(outcomes, policy), "max_p95_ms").status == "pass"


TAGS = st.text(min_size=1, max_size=12)


@settings(max_examples=60, deadline=None)
@given(one=TAGS, other=TAGS, name=st.text(min_size=1, max_size=20))
def test_other_peoples_names_never_break_the_file(tmp_path_factory, one, other, name):
    rows = [row(n, 1.0, **{"tags.kind": one if n % 2 else other}) for n in range(44)]
    text = draft_policy(of_rows(rows, "run\n[budget]\nmax_errors = 99"), name=name)
    folder = tmp_path_factory.mktemp("draft")
    policy = load_policy(policy_file(folder, text, head=""))
    assert (policy.name, policy.budget.max_errors) == (name, 0)
    for floor in policy.floors:
        if floor.cases is not None:
            assert floor.cases.value in (one, other)


def test_a_draft_is_made_from_a_run_alone(tmp_path):
    opened = run(tmp_path, service(), [case(1)])
    assert opened.run_id in draft_policy(outcomes_of(opened))
