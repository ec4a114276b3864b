"""The blocks of a policy that look at one run alone: safety, floors and the budget."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ragwb.decide.gate.figures import Measured, blocking, measure
from ragwb.decide.gate.policy import Policy
from ragwb.decide.gate.policy_blocks import SAFETY_RULES, Floor
from ragwb.decide.gate.policy_rules import JUDGED, SAFETY, Figure
from ragwb.decide.gate.result import RuleResult, Status, number_words
from ragwb.decide.outcomes import Outcomes
from ragwb.decide.safety import FORBIDDEN, LEAK_RULES, WITHOUT_LABELS
from ragwb.decide.thresholds import ROUNDING
from ragwb.html import plain
from ragwb.judge.standing import UNCALIBRATED, Standing
from ragwb.measure.listed import count

# Why `measure.cases` calls a case an error of which no call failed.
_NO_RESULT = "no result in the run"
_FEWER_REPEATS = " repeats are there"

_LEAK_HINT = (
    "/explain was not asked about all that came back; `ragwb triage RUN` asks, while the service "
    "answers"
)
_HINT = "what decides it was not observed"

BUDGET: Mapping[str, str] = {
    "max_p95_ms": "p95_ms",
    "max_context_tokens": "context_tokens",
    "max_model_calls": "model_calls",
    "max_duplicate_rate": "duplicate_rate",
}
"""Absolute limits of the budget, and the figure of each; duplicates at the policy's K."""


@dataclass(frozen=True, slots=True)
class Judges:
    """What judges said, as far as a gate must know.

    Attributes:
        asked: whether verdicts were given at all.
        standings: by figure, whether it may block; without one it only advises.
    """

    asked: bool = False
    standings: Mapping[str, Standing] = field(default_factory=dict)

    def weigh(self, figure: Figure, status: Status, words: str) -> tuple[Status, str]:
        """What is found of a figure, as advice where it rests on a judge that may not block."""
        standing = self.standings.get(figure.name, UNCALIBRATED)
        if figure.name not in JUDGED or not self.asked or standing.may_block:
            return status, words
        return "advises", f"{words}; the judge {standing.why}"


def check_cases(policy: Policy, outcomes: Outcomes) -> Iterator[RuleResult]:
    """That there is a case to decide by."""
    n = int((blocking(outcomes)["status"] == "scored").sum())
    tiers = outcomes.frame["tier"].value_counts().to_dict()
    held = ", ".join(f"{n_of} {tier}" for tier, n_of in tiers.items()) or "no case at all"
    yield RuleResult(
        "cases",
        "blocking cases",
        "pass" if n else "undecided",
        f"{count(n, 'case')} scored"
        if n
        else f"0 blocking cases were scored: the run holds {held}",
        "at least one blocking case must be scored; other tiers decide nothing",
        value=float(n),
        limit=1.0,
        n=n,
        line=policy.line(("policy",)),
    )


def check_safety(policy: Policy, outcomes: Outcomes) -> Iterator[RuleResult]:
    """Each rule whose tolerance is zero: broken, unknown, or held."""
    named = SAFETY if outcomes.kind == "retrieval" else SAFETY_RULES
    line = policy.line(("safety",))
    for rule in dict.fromkeys((*named, *outcomes.safety, *outcomes.safety_unknown)):
        broken, n = outcomes.safety.get(rule, ()), _looked_at(outcomes, rule)
        status, words = _safety_status(policy, rule, broken, n)
        may = " (may stay unknown)" if rule in policy.safety.may_be_unknown else ""
        read_as = f"no blocking case may break {rule}, in any repeat{may}"
        yield RuleResult(
            "safety", rule, status, words, read_as, value=_broken(status, broken), limit=0.0,
            n=n, case_ids=broken, line=line,
        )  # fmt: skip


def _looked_at(outcomes: Outcomes, rule: str) -> int | None:
    """The answers that a rule was held against; None where nobody knows of all of them."""
    cases = blocking(outcomes)
    if rule not in WITHOUT_LABELS and rule != FORBIDDEN:
        cases = cases[cases["status"] != "excluded"]
    n = int(outcomes.latencies["case_id"].isin(cases["case_id"]).sum())
    return None if n and rule in outcomes.safety_unknown else n


def _safety_status(
    policy: Policy, rule: str, broken: tuple[str, ...], n: int | None
) -> tuple[Status, str]:
    if broken:
        return "fail", f"{rule}: {count(len(broken), 'case')} broke it, and the tolerance is zero"
    if n == 0:
        # No policy can want this: what may stay unknown is what a service cannot show.
        return "undecided", f"{rule} is not known: 0 answers looked at"
    if n is not None:
        return "pass", f"{rule}: no case broke it, {count(n, 'answer')} looked at"
    why = f"{rule} is not known: {_LEAK_HINT if rule in LEAK_RULES else _HINT}"
    if rule in policy.safety.may_be_unknown:
        return "unknown", f"{why}; the policy lets it stay unknown"
    return "undecided", why


def _broken(status: Status, broken: tuple[str, ...]) -> float | None:
    return float(len(broken)) if status in ("pass", "fail") else None


def check_floors(policy: Policy, outcomes: Outcomes, judges: Judges) -> Iterator[RuleResult]:
    """Each absolute limit, held against its figure over its slice."""
    for index, floor in enumerate(policy.floors):
        figure, cases = floor.figure, floor.cases
        way = "min" if floor.max is None else "max"
        found = measure(outcomes, figure, cases)
        status, words = judges.weigh(figure, *_floor_status(floor, figure, found, outcomes))
        of = f" over cases with {cases}" if cases else ""
        few = f"; with fewer than {floor.min_n}: undecided" if floor.min_n > 1 else ""
        yield RuleResult(
            block="floors",
            rule=f"{way} {figure}",
            status=status,
            words=words,
            read_as=f"{figure}{of} must be at {_WAY[way]} {floor.limit:g}{few}",
            slice=None if cases is None else str(cases),
            value=found.value,
            limit=floor.limit,
            n=found.n,
            counts=found.counts,
            case_ids=found.worse_than(floor.limit, figure),
            line=policy.line(("floors", index)),
        )


_WAY = {"min": "least", "max": "most"}


def _floor_status(
    floor: Floor, figure: Figure, found: Measured, outcomes: Outcomes
) -> tuple[Status, str]:
    where = f" of {plain(str(floor.cases), width=80)}" if floor.cases else ""
    name = f"{figure}{where}"
    if found.value is None:
        return "undecided", f"{name} is not known: {_why_unknown(figure, found, outcomes)}"
    way = _WAY["min" if floor.max is None else "max"]
    is_met = meets(found.value, floor.limit, figure)
    shown = number_words(found.value, found.counts)
    words = f"{name} is {shown} over {_of(figure, found.n)}, at {way} {floor.limit:g} wanted"
    if found.n < floor.min_n:
        few = f"{words}; decided from {floor.min_n} on, by the policy"
        return "undecided", few
    return ("pass" if is_met else "fail"), words


def _why_unknown(figure: Figure, found: Measured, outcomes: Outcomes) -> str:
    if figure.name in JUDGED:
        return "give the verdicts of a judge"
    if str(figure) not in outcomes.metrics and figure.is_mean:
        only = " (it only retrieved)" if outcomes.kind == "retrieval" else ""
        return f"the run does not hold it{only}"
    return "it is undefined for every case" if not found.n else "it was not observed"


def check_budget(policy: Policy, outcomes: Outcomes) -> Iterator[RuleResult]:
    """Each absolute limit of the budget, then errors and missing results."""
    for name, metric in BUDGET.items():
        limit = getattr(policy.budget, name)
        if limit is not None:
            k = policy.k if metric == "duplicate_rate" else None
            yield _budgeted(policy, outcomes, name, Figure(metric, k), limit)
    yield from _check_errors(policy, outcomes)


def _budgeted(
    policy: Policy, outcomes: Outcomes, name: str, figure: Figure, limit: float
) -> RuleResult:
    found = measure(outcomes, figure)
    status: Status = "undecided"
    words = f"{figure} is not known: {_why_unknown(figure, found, outcomes)}"
    if found.value is not None:
        status = "pass" if meets(found.value, limit, figure) else "fail"
        shown = number_words(found.value, found.counts)
        words = f"{figure} is {shown} over {_of(figure, found.n)}, at most {limit:g} wanted"
    return RuleResult(
        "budget", name, status, words, f"{figure} must be at most {limit:g}",
        value=found.value, limit=limit, n=found.n, counts=found.counts,
        case_ids=found.worse_than(limit, figure), line=policy.line(("budget", name)),
    )  # fmt: skip


def _check_errors(policy: Policy, outcomes: Outcomes) -> Iterator[RuleResult]:
    """Errors decide nothing by themselves: too many of them leave the run undecided."""
    cases = blocking(outcomes)
    errors = cases[cases["status"] == "error"]
    reasons = errors["reason"].fillna("").astype(str)
    is_missing = (reasons == _NO_RESULT) | reasons.str.endswith(_FEWER_REPEATS)
    failed, missing = (tuple(errors.loc[mask, "case_id"]) for mask in (~is_missing, is_missing))
    most = policy.budget.max_errors
    yield RuleResult(
        "budget", "max_errors", "pass" if len(failed) <= most else "undecided",
        f"{count(len(failed), 'case')} of {len(cases)} failed to be answered, at most {most} may",
        f"at most {most} blocking cases may fail to be answered; beyond: undecided",
        value=float(len(failed)), limit=float(most), n=len(cases), case_ids=failed,
        line=policy.line(("budget", "max_errors")),
    )  # fmt: skip
    is_fine = policy.budget.allow_incomplete or not missing
    yield RuleResult(
        "budget", "allow_incomplete", "pass" if is_fine else "undecided",
        f"{len(missing)} of {count(len(cases), 'case')} not asked, or in fewer repeats than "
        "the run has"
        + (f"; calls that failed count under max_errors ({len(failed)})" if failed else ""),
        "blocking cases may be without a result" if policy.budget.allow_incomplete
        else "every blocking case must have been asked in each repeat (a call that failed was, and "
        "counts under max_errors); else: undecided",
        value=float(len(missing)), limit=None if policy.budget.allow_incomplete else 0.0,
        n=len(cases), case_ids=missing, line=policy.line(("budget", "allow_incomplete")),
    )  # fmt: skip


def meets(value: float, limit: float, figure: Figure) -> bool:
    """Whether a value is on the right side of a limit, or on it."""
    if figure.direction == "higher":
        return value >= limit - ROUNDING
    return value <= limit + ROUNDING


def _of(figure: Figure, n: int) -> str:
    return count(n, "case" if figure.is_mean else "result")
