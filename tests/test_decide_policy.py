"""A policy file: what it says, and every way in which it can be wrong, with its line."""

import re

import pytest
from gate_data import HEAD, policy_file
from hypothesis import given
from hypothesis import strategies as st

from ragwb.decide.gate.policy import load_policy
from ragwb.decide.gate.policy_blocks import SAFETY_RULES
from ragwb.decide.gate.policy_lines import key_lines, key_twice, line_of, place_words
from ragwb.decide.gate.policy_rules import AT_K, WITHOUT_K, Slice, find_figure, find_slice
from ragwb.errors import DataError
from ragwb.settings import shared_file


def faults(folder, text, **given):
    with pytest.raises(DataError) as caught:
        load_policy(policy_file(folder, text, **given))
    return [str(fault).removeprefix(f"{folder}/") for fault in caught.value.faults]


def test_the_least_policy_has_every_default(tmp_path):
    found = load_policy(policy_file(tmp_path, head='policy = "least"\n'))
    assert (found.name, found.k, found.floors, found.regression) == ("least", 5, (), None)
    assert [found.states.of(v) for v in ("pass", "undecided", "fail")] == ["ship", "canary", "hold"]
    assert (found.budget.max_errors, found.budget.allow_incomplete) == (0, False)
    assert (found.judge.min_kappa, found.judge.min_labels) == (0.6, 50)
    assert not found.needs_baseline


def test_every_block_is_read_with_its_lines(tmp_path):
    text = """[states]
pass = "go"
[[floors]]
metric = "recall@5"
min = 1
slice = "tags.kind=exact=code"
[[floors]]
metric = "duplicate_rate@5"
max = 0.02
[regression]
max_broken = 2
[[regression.drops]]
metric = "mrr@5"
max_relative_drop = 0.05
"""
    found = load_policy(policy_file(tmp_path, text))
    assert found.states.of("pass") == "go"
    assert (found.floors[0].limit, found.floors[0].min_n) == (1.0, 1)
    assert found.floors[0].cases == Slice("tags.kind", "exact=code")
    assert [found.line(("floors", n)) for n in (0, 1)] == [5, 9]
    assert found.line(("regression", "drops", 0, "max_relative_drop")) == 16
    assert found.line(("budget", "max_errors")) is None
    assert found.needs_baseline
    assert found.regression.max_broken_high_risk == 0


def test_an_increase_in_the_budget_needs_a_baseline_too(tmp_path):
    found = load_policy(policy_file(tmp_path, "[budget]\nmax_p95_increase_ms = 0\n"))
    assert found.needs_baseline


def test_a_byte_order_mark_is_no_fault(tmp_path):
    assert load_policy(policy_file(tmp_path, head="\ufeff" + HEAD)).k == 5


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("max_p95 = 1\n", "p.toml:3: max_p95: unknown key; known: policy, k, states"),
        ("[budgets]\nmax_errors = 0\n", "p.toml:3: budgets: unknown key; did you mean budget?"),
        ("[budget]\nmax_p95 = 1\n", "p.toml:4: budget.max_p95: unknown key; did you mean"),
        ("[states]\nok = 'x'\n", "p.toml:4: states.ok: unknown key; known: pass, undecided, fail"),
        (
            "[safety]\nmax_leaks = 1\n",
            "p.toml:4: safety.max_leaks: safety has zero tolerance and takes no limit",
        ),
        (
            "[safety]\nmay_be_unknown = ['acl']\n",
            "p.toml:4: safety.may_be_unknown: unknown safety rule 'acl'; known: forbidden_retr",
        ),
        ("[[floors]]\nmin = 0.8\n", "p.toml:3: floors[0].metric: missing: give it"),
        (
            "[[floors]]\nmetric = 'recal@5'\nmin = 0.8\n",
            "p.toml:4: floors[0].metric: unknown metric 'recal@5'; did you mean recall?",
        ),
        (
            "[[floors]]\nmetric = 'xyz'\nmin = 0.8\n",
            "p.toml:4: floors[0].metric: unknown metric 'xyz'; known: recall@K",
        ),
        (
            "[[floors]]\nmetric = 'recall'\nmin = 0.8\n",
            "p.toml:4: floors[0].metric: metric 'recall': write its K, 1 to 100: recall@5",
        ),
        ("[[floors]]\nmetric = 'recall@0'\nmin = 0.8\n", "p.toml:4: floors[0].metric: metric"),
        ("[[floors]]\nmetric = 'recall@101'\nmin = 0.8\n", "p.toml:4: floors[0].metric: metric"),
        ("[[floors]]\nmetric = 'recall@五'\nmin = 0.8\n", "p.toml:4: floors[0].metric: metric"),
        ("[[floors]]\nmetric = 'p95_ms@5'\nmax = 8\n", "p.toml:4: floors[0].metric: unknown"),
        (
            "[[floors]]\nmetric = 'recall@5'\nmin = 1.2\n",
            "p.toml:5: floors[0].min: 1.2 is impossible: recall goes from 0 to 1",
        ),
        ("[[floors]]\nmetric = 'recall@5'\nmin = -0.1\n", "p.toml:5: floors[0].min: must be"),
        ("[[floors]]\nmetric = 'recall@5'\nmin = nan\n", "p.toml:5: floors[0].min: must be a fin"),
        ("[[floors]]\nmetric = 'p95_ms'\nmax = inf\n", "p.toml:5: floors[0].max: must be a fin"),
        ("[[floors]]\nmetric = 'recall@5'\nmin = '1'\n", "p.toml:5: floors[0].min: must be a num"),
        ("[[floors]]\nmetric = 'recall@5'\nmin = true\n", "p.toml:5: floors[0].min: must be a num"),
        ("[[floors]]\nmetric = 'recall@5'\n", "p.toml:3: floors[0].min: give min, one limit a"),
        (
            "[[floors]]\nmetric = 'recall@5'\nmax = 0.5\n",
            "p.toml:5: floors[0].max: higher recall is better: give min",
        ),
        (
            "[[floors]]\nmetric = 'over_refusal_rate'\nmin = 0.5\n",
            "p.toml:5: floors[0].min: lower over_refusal_rate is better: give max",
        ),
        (
            "[[floors]]\nmetric = 'recall@5'\nmin = 0.5\nmin_n = 0\n",
            "p.toml:6: floors[0].min_n: must be greater than or equal to 1, found 0",
        ),
        (
            "[[floors]]\nmetric = 'recall@5'\nmin = 0.5\nslice = 'kind=a'\n",
            "p.toml:6: floors[0].slice: slice 'kind=a': write field=value",
        ),
        (
            "[[floors]]\nmetric = 'recall@5'\nmin = 0.5\nslice = 'tier=shadow'\n",
            "p.toml:6: floors[0].slice: slice 'tier=shadow'",
        ),
        ("floors = 3\n", "p.toml:3: floors: must be a list; write [[…]] for a rule, found 3"),
        ("floors = [3]\n", "p.toml:3: floors[0]: must be a table, found 3"),
        (
            "[[floors]]\nmetric = 'mrr@5'\nmin = 0.5\n[[floors]]\nmetric = 'mrr@5'\nmin = 1\n",
            "p.toml:6: floors[1]: a second rule for mrr@5: keep one",
        ),
        (
            "[regression]\nmax_broken = 1.5\n",
            "p.toml:4: regression.max_broken: must be a whole number, found 1.5",
        ),
        ("[regression]\nmax_broken = -1\n", "p.toml:4: regression.max_broken: must be greater"),
        (
            "[[regression.drops]]\nmetric = 'p95_ms'\nmax_drop = 1\n",
            "p.toml:4: regression.drops[0].metric: p95_ms is no mean over cases",
        ),
        (
            "[[regression.drops]]\nmetric = 'mrr@5'\n",
            "p.toml:3: regression.drops[0].max_drop: give max_drop or max_relative_drop, one",
        ),
        (
            "[[regression.drops]]\nmetric = 'mrr@5'\nmax_drop = 2\n",
            "p.toml:5: regression.drops[0].max_drop: 2 is impossible",
        ),
        (
            "[[regression.drops]]\nmetric = 'mrr@5'\nmax_relative_drop = 1.5\n",
            "p.toml:5: regression.drops[0].max_relative_drop: must be less than or equal to 1",
        ),
        (
            "[regression]\ndrops = [{metric = 'mrr@5', max_drop = 0.1, slice = 'risk=high'},\n"
            "{metric = 'mrr@5', max_drop = 0.2, slice = 'risk = high'}]\n",
            "p.toml:4: regression.drops[1]: a second rule for mrr@5 of risk=high: keep one",
        ),
        ("[budget]\nallow_incomplete = 1\n", "p.toml:4: budget.allow_incomplete: must be true or"),
        ("[judge]\nmin_kappa = 2\n", "p.toml:4: judge.min_kappa: must be less than or equal to 1"),
        ("[budget]\nmax_errors = 0\nmax_errors = 1\n", "p.toml:5: budget.max_errors: is given tw"),
        ("[budget]\n[judge]\n[budget]\n", "p.toml:5: budget: is given twice, first in line 3"),
        ("k = 3\n", "p.toml:3: k: is given twice, first in line 2: keep one"),
    ],
)
def test_a_wrong_policy_is_one_fault_with_its_line(tmp_path, text, wanted):
    (fault,) = faults(tmp_path, text)
    assert fault.startswith(wanted)


def test_all_faults_of_a_file_are_told_in_the_order_of_its_lines(tmp_path):
    text = "[budget]\nx = 1\n[[floors]]\nmetric = 'y'\nmin = 2\n[judge]\nmin_labels = 0\n"
    found = faults(tmp_path, text)
    assert [fault.split(":")[1] for fault in found] == ["4", "6", "9"]


@pytest.mark.parametrize(
    ("head", "wanted"),
    [
        ("k = 5\n", "policy: missing: give it"),
        ('policy = ""\n', "p.toml:1: policy: must"),
        ('policy = "p"\nk = 0\n', "p.toml:2: k: must be greater than or equal to 1"),
        ('policy = "p"\nk = 101\n', "p.toml:2: k: must be less than or equal to 100"),
    ],
)
def test_a_wrong_head_is_a_fault(tmp_path, head, wanted):
    (fault,) = faults(tmp_path, "", head=head)
    assert wanted in fault


@pytest.mark.parametrize("text", ["k = ", "[", "a = [1,", "= 3"])
def test_what_is_no_toml_is_one_line(tmp_path, text):
    with pytest.raises(DataError, match=r"p\.toml: not TOML"):
        load_policy(policy_file(tmp_path, head=text))


def test_a_file_that_is_not_there_is_one_line(tmp_path):
    with pytest.raises(DataError, match=r"no\.toml: cannot be read"):
        load_policy(tmp_path / "no.toml")


def test_every_figure_has_a_direction_and_prints_back():
    for name in AT_K:
        figure = find_figure(f"{name}@7")
        assert (str(figure), figure.highest) == (f"{name}@7", 1.0)
    lower = {name for name in WITHOUT_K if find_figure(name).direction == "lower"}
    assert {"p95_ms", "context_tokens", "over_refusal_rate", "unsupported_rate"} <= lower
    assert lower.isdisjoint({"accepted", "claim_coverage", "refusal_recall"})
    assert find_figure("duplicate_rate@5").direction == "lower"


def test_every_hard_rule_is_a_safety_rule_once():
    assert len(set(SAFETY_RULES)) == len(SAFETY_RULES)
    assert {"acl_leak", "tenant_leak", "forbidden_claim", "unsafe_action"} <= set(SAFETY_RULES)


@pytest.mark.parametrize("text", ["risk", "risk=", "=high", "tags.=x", "status=scored", ""])
def test_what_is_no_slice_is_refused(text):
    with pytest.raises(ValueError, match="write field=value"):
        find_slice(text)


def test_the_policy_of_the_demo_is_a_policy():
    found = load_policy(shared_file("datasets", "gate.toml"))
    assert found.needs_baseline
    assert found.safety.may_be_unknown == ()


KEYS = st.from_regex(re.compile(r"[a-z]{1,6}"), fullmatch=True)


@given(st.lists(KEYS, unique=True, max_size=8), st.integers(0, 3))
def test_the_line_of_a_key_is_where_it_stands(names, gap):
    text = ("\n" * gap).join(f"{name} = 1\n" for name in ["", *names] if name)
    lines = key_lines(f"# head\n[[t]]\n{text}")
    for number, name in enumerate(names):
        assert lines["t", 0, name] == 3 + number * (1 + gap)
    assert key_twice(text) is None


def test_a_place_without_a_line_has_that_of_what_is_around_it():
    lines = key_lines("[a.b]\n'x y' = 1\n")
    assert lines == {("a", "b"): 1, ("a", "b", "x y"): 2}
    assert line_of(lines, ("a", "b", "c", 0)) == 1
    assert line_of(lines, ("q",)) is None
    assert place_words(("floors", 0, "min")) == "floors[0].min"
