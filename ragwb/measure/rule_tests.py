"""The tests that a rule pack carries, run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ragwb.golden.case import Case
from ragwb.golden.passages import ResolvedCase
from ragwb.html import plain
from ragwb.measure.answered import AnsweredCase
from ragwb.measure.pack_rules import check_rule
from ragwb.measure.rule_pack import CaseTest, Rule, RulePack, RuleTest
from ragwb.measure.rules import check_rules


@dataclass(frozen=True, slots=True)
class RuleTestResult:
    """What one test of a pack came to.

    Attributes:
        rule: the rule that it tests; "hard rules" for those that hold everywhere.
        number: of the test within its rule, from 1; 0 when the rule lacks a test.
        text: the answer that was tested.
        expected, found: what should fail and what did, in words.
        passed: whether they agree.
    """

    rule: str
    number: int
    text: str
    expected: str
    found: str
    passed: bool


def run_pack_tests(pack: RulePack) -> tuple[RuleTestResult, ...]:
    """The results of a pack's tests, in its order.

    A rule without a test that fails, or without one that passes, fails for that.

    Raises:
        MetricError: a pattern takes too long.
    """
    return (*_rule_results(pack), *_case_results(pack))


def _rule_results(pack: RulePack) -> Iterator[RuleTestResult]:
    for rule in pack.rules:
        for number, test in enumerate(rule.tests, 1):
            yield _rule_result(rule, number, test)
        for wanted, has_one in (
            ("a test that fails", any(test.fails is not False for test in rule.tests)),
            ("a test that passes", any(test.fails is False for test in rule.tests)),
        ):
            if not has_one:
                yield RuleTestResult(rule.name, 0, "", wanted, "none", passed=False)


def _rule_result(rule: Rule, number: int, test: RuleTest) -> RuleTestResult:
    case = _case(question=test.question, tags=test.tags)
    answered = AnsweredCase(case, mode=test.mode, text=test.text, actions=test.actions)
    found = list(check_rule(rule, answered))
    named = [test.text[one.start : one.end] for one in found if one.start is not None]
    passed = test.fails in named if isinstance(test.fails, str) else bool(found) == test.fails
    expected = f"fails: {test.fails}" if isinstance(test.fails, str) else _word(test.fails)
    shown = f"fails: {', '.join(named)}" if named else _word(bool(found))
    return RuleTestResult(rule.name, number, test.text, plain(expected), plain(shown), passed)


def _case_results(pack: RulePack) -> Iterator[RuleTestResult]:
    for number, test in enumerate(pack.tests, 1):
        found = tuple(dict.fromkeys(f.rule for f in check_rules(_answer_of(test), pack)))
        passed = set(found) == set(test.fails)
        expected, shown = (", ".join(names) or "passes" for names in (test.fails, found))
        yield RuleTestResult("hard rules", number, test.text, expected, shown, passed)


def _answer_of(test: CaseTest) -> AnsweredCase:
    case = _case(
        question=test.question,
        required_version=test.required_version,
        required_claims=test.required_claims,
        forbidden_claims=test.forbidden_claims,
    )
    return AnsweredCase(case, mode="answer", text=test.text, actions=test.actions)


def _case(**labels: object) -> ResolvedCase:
    named = {"dataset_version": "rules", "id": "test", "expected_chunk_ids": ["evidence"]}
    return ResolvedCase(case=Case.model_validate({**named, **labels}))


def _word(fails: bool) -> str:
    return "fails" if fails else "passes"
