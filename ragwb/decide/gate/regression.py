"""The rules of a policy that hold a run against a baseline: broken cases, drops, increases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ragwb.decide.deltas import Sides, delta_rows
from ragwb.decide.gate.baseline import Stored
from ragwb.decide.gate.figures import blocking, measure
from ragwb.decide.gate.policy import Policy
from ragwb.decide.gate.policy_blocks import INCREASES, Drop, Regression
from ragwb.decide.gate.policy_rules import Figure, Slice
from ragwb.decide.gate.result import RuleResult, Status, number_words
from ragwb.decide.gate.rules import Judges
from ragwb.decide.outcomes import Outcomes
from ragwb.decide.thresholds import ROUNDING
from ragwb.html import plain
from ragwb.measure.cost import PERCENTILES
from ragwb.measure.listed import count

if TYPE_CHECKING:
    import pandas as pd

    from ragwb.decide.comparison import Comparison

NO_BASELINE = "no baseline was given: --baseline"

_LOAD = {"max_p95_increase_ms": "; the machine's load between the two runs is in it"}
_INCREASED = dict(zip(INCREASES, ("p95_ms", "context_tokens", "model_calls"), strict=True))


@dataclass(frozen=True, slots=True)
class _Moved:
    """How a figure moved over the cases of both; `worse` counts in the direction that is worse.

    Attributes:
        low, high: 95 % interval of the difference, None where there is none.
        n_better, n_worse: cases that moved, None where only means are known.
        case_ids: the cases that got worse, the most first.
    """

    before: float
    after: float
    worse: float
    n: int
    low: float | None = None
    high: float | None = None
    n_better: int | None = None
    n_worse: int | None = None
    case_ids: tuple[str, ...] = ()


def check_regression(
    policy: Policy, candidate: Outcomes, against: Comparison | Stored | None, judges: Judges
) -> Iterator[RuleResult]:
    """Broken cases, cases that cannot be compared, and drops of single figures."""
    if policy.regression is None:
        return
    broken = _broken(candidate, against)
    yield from _check_broken(policy, policy.regression, candidate, broken)
    if policy.regression.max_left_out is not None:
        yield _check_left_out(policy, policy.regression.max_left_out, against)
    for index, drop in enumerate(policy.regression.drops):
        yield _check_drop(policy, index, drop, candidate, against, judges)


def check_increases(
    policy: Policy, candidate: Outcomes, against: Comparison | Stored | None
) -> Iterator[RuleResult]:
    """The limits of the budget that compare with the baseline."""
    for name, metric in _INCREASED.items():
        limit = getattr(policy.budget, name)
        if limit is None:
            continue
        figure = Figure(metric, None)
        found = _moved(figure, None, candidate, against)
        status, words = _moved_status(str(figure), found, limit, f"at most {limit:g} more allowed")
        yield RuleResult(
            "budget", name, status, words,
            f"{metric} may be at most {limit:g} above the baseline's{_LOAD.get(name, '')}",
            value=None if isinstance(found, str) else found.worse,
            limit=limit, n=None if isinstance(found, str) else found.n,
            case_ids=() if isinstance(found, str) else found.case_ids,
            line=policy.line(("budget", name)),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Broken:
    """The cases that passed before and fail now, the gravest first, among those compared."""

    case_ids: tuple[str, ...]
    compared: frozenset[str]


def _broken(candidate: Outcomes, against: Comparison | Stored | None) -> _Broken | str:
    """The newly broken cases, or why they are not known."""
    if against is None:
        return NO_BASELINE
    if not isinstance(against, Stored):
        known = against.pairs[against.pairs["change"].notna()]
        return _Broken(tuple(against.broken), frozenset(known["case_id"]))
    passed = against.passed(candidate)
    if passed is None:
        return "the baseline is a file of figures that does not tell which cases of this set passed"
    frame = blocking(candidate)
    frame = frame[(frame["status"] == "scored") & frame["failed"].notna()]
    compared = frozenset(frame["case_id"]) - against.unknown
    fails = frame[frame["failed"].astype(bool) & frame["case_id"].isin(passed)]
    return _Broken(tuple(fails["case_id"]), compared)


def _check_broken(
    policy: Policy, block: Regression, candidate: Outcomes, broken: _Broken | str
) -> Iterator[RuleResult]:
    frame = blocking(candidate)
    high = frozenset(frame.loc[frame["risk"] == "high", "case_id"])
    if not isinstance(broken, str) and not broken.compared:
        broken = "no case was scored in both runs"
    if block.max_broken is not None:
        line = policy.line(("regression", "max_broken"))
        yield _broken_rule("max_broken", block.max_broken, broken, None, line)
    line = policy.line(("regression", "max_broken_high_risk"))
    yield _broken_rule("max_broken_high_risk", block.max_broken_high_risk, broken, high, line)


def _broken_rule(
    name: str, limit: int, broken: _Broken | str, high: frozenset[str] | None, line: int | None
) -> RuleResult:
    """One limit of newly broken cases; `high` are those of high risk, where it is about these."""
    of, where = ("", None) if high is None else (" of high risk", "risk=high")
    read_as = f"at most {limit} cases{of} that passed in the baseline may fail"
    if isinstance(broken, str):
        words = f"{name} is not known: {broken}"
        return RuleResult(
            "regression", name, "undecided", words, read_as, where, None, float(limit), line=line
        )
    ids = tuple(one for one in broken.case_ids if high is None or one in high)
    n = len(broken.compared if high is None else broken.compared & high)
    words = f"{len(ids)} of {n} compared cases{of} newly broken, at most {limit} may be"
    return RuleResult(
        "regression", name, "pass" if len(ids) <= limit else "fail", words, read_as, where,
        value=float(len(ids)), limit=float(limit), n=n, case_ids=ids, line=line,
    )  # fmt: skip


def not_compared(comparison: Comparison) -> tuple[str, ...]:
    """The cases that the baseline scored and that no pair holds."""
    scored = comparison.baseline.frame
    ids = scored.loc[scored["status"] == "scored", "case_id"]
    return tuple(ids[~ids.isin(comparison.pairs["case_id"])])


def _check_left_out(policy: Policy, limit: int, against: Comparison | Stored | None) -> RuleResult:
    read_as = f"at most {limit} cases that the baseline scored may be without a pair"
    line = policy.line(("regression", "max_left_out"))
    if against is None or isinstance(against, Stored):
        why = NO_BASELINE if against is None else "the baseline is a file of figures"
        words = f"max_left_out is not known: {why}"
        return RuleResult(
            "regression", "max_left_out", "undecided", words, read_as, limit=limit, line=line
        )
    ids = not_compared(against)
    return RuleResult(
        "regression", "max_left_out", "pass" if len(ids) <= limit else "fail",
        f"{count(len(ids), 'case')} of the baseline cannot be compared, at most {limit} may",
        read_as, value=float(len(ids)), limit=float(limit), n=len(against.pairs), case_ids=ids,
        line=line,
    )  # fmt: skip


def _check_drop(
    policy: Policy,
    index: int,
    drop: Drop,
    candidate: Outcomes,
    against: Comparison | Stored | None,
    judges: Judges,
) -> RuleResult:
    figure, within = drop.figure, drop.cases
    found = _moved(figure, within, candidate, against)
    of = f" of {plain(str(within), width=80)}" if within else ""
    share = " of the baseline's value" if drop.is_relative else ""
    value = None if isinstance(found, str) else _worse(found, drop)
    allowed = f"at most {drop.limit:g}{share} worse allowed"
    most = drop.limit
    if drop.is_relative and not isinstance(found, str):
        most *= abs(found.before)
    said = _moved_status(f"{figure}{of}", found, most, allowed, drop.min_n)
    status, words = judges.weigh(figure, *said)
    few = f"; with fewer than {drop.min_n}: undecided" if drop.min_n > 1 else ""
    return RuleResult(
        block="regression",
        rule=f"{'max_relative_drop' if drop.is_relative else 'max_drop'} {figure}",
        status=status,
        words=words,
        read_as=f"{figure}{of} may be at most {drop.limit:g}{share} worse than the baseline's{few}",
        slice=None if within is None else str(within),
        value=value,
        limit=drop.limit,
        n=None if isinstance(found, str) else found.n,
        case_ids=() if isinstance(found, str) else found.case_ids,
        line=policy.line(("regression", "drops", index)),
    )


def _worse(found: _Moved, drop: Drop) -> float | None:
    """The drop in the unit of its limit; None as a share of nothing."""
    if not drop.is_relative:
        return found.worse
    if not found.before:
        return None if found.worse else 0.0
    return found.worse / abs(found.before)


def _moved_status(
    name: str, found: _Moved | str, most: float, allowed: str, min_n: int = 1
) -> tuple[Status, str]:
    """Whether a figure got worse by no more than `most`, in its own unit."""
    if isinstance(found, str):
        return "undecided", f"{name} against the baseline is not known: {found}"
    before, after = number_words(found.before), number_words(found.after)
    interval = ""
    if found.low is not None and found.high is not None:
        interval = f", 95 % {_signed(found.low)} to {_signed(found.high)}"
    moved = f"{count(found.n, 'case')}"
    if found.n_better is not None:
        moved = f"{found.n_worse} worse and {found.n_better} better of {moved}"
    change = _signed(found.after - found.before)
    words = f"{name} went from {before} to {after} ({moved}; {change}{interval}), {allowed}"
    if found.n < min_n:
        return "undecided", f"{words}; decided from {min_n} on, by the policy"
    return ("pass" if found.worse <= most + ROUNDING else "fail"), words


def _moved(
    figure: Figure, within: Slice | None, candidate: Outcomes, against: Comparison | Stored | None
) -> _Moved | str:
    """How a figure moved, or why that is not known."""
    if against is None:
        return NO_BASELINE
    if isinstance(against, Stored):
        return _moved_stored(figure, within, candidate, against)
    if within is None:
        return _moved_pairs(figure, against.pairs, against, against.delta(str(figure)))
    inside = blocking(candidate, within)["case_id"]
    pairs = against.pairs[against.pairs["case_id"].isin(inside)]
    return _moved_pairs(figure, pairs, against, _delta(figure, pairs, against))


def _moved_stored(
    figure: Figure, within: Slice | None, candidate: Outcomes, stored: Stored
) -> _Moved | str:
    if within is not None:
        return "the baseline is a file of figures without slices"
    before, found = stored.value(figure), measure(candidate, figure)
    if before is None:
        return f"{plain(stored.name)} does not hold it"
    if found.value is None:
        return "the run does not hold it"
    return _Moved(before, found.value, _sign(figure) * (found.value - before), found.n)


def _delta(figure: Figure, pairs: pd.DataFrame, comparison: Comparison) -> dict[str, Any] | None:
    """The row of deltas of a mean over some of the pairs; None when there is none."""
    if f"{figure}_after" not in pairs:
        return None
    # No rule is about latencies of a slice, and their intervals would cost more than all else.
    sides = [
        replace(side, latencies=side.latencies.iloc[:0])
        for side in (comparison.baseline, comparison.candidate)
    ]
    return next(iter(delta_rows(Sides(pairs, (str(figure),), *sides))), None)


def _moved_pairs(
    figure: Figure, pairs: pd.DataFrame, comparison: Comparison, row: dict[str, Any] | None
) -> _Moved | str:
    if row is None or row["delta"] is None:
        return "no case has it in both runs"
    sides = (comparison.baseline, comparison.candidate)
    is_percentile = figure.name in PERCENTILES
    rises = _slower(pairs, *sides) if is_percentile else _worse_cases(figure, pairs)
    return _Moved(
        before=row["baseline"],
        after=row["candidate"],
        worse=_sign(figure) * row["delta"] + 0.0,  # no -0
        n=row["n"],
        low=row["low"],
        high=row["high"],
        n_better=row["win"],
        n_worse=row["loss"],
        case_ids=tuple(map(str, rises[rises > 0].sort_values(ascending=False).index)),
    )


def _worse_cases(figure: Figure, pairs: pd.DataFrame) -> pd.Series[float]:
    """How much worse each case got, by its id."""
    by_id = pairs.set_index("case_id")
    return _sign(figure) * (by_id[f"{figure}_after"] - by_id[f"{figure}_before"])


def _slower(pairs: pd.DataFrame, before: Outcomes, after: Outcomes) -> pd.Series[float]:
    """How much slower the slowest result of each case got, by its id."""
    slowest = [side.latencies.groupby("case_id")["latency_ms"].max() for side in (before, after)]
    return (slowest[1] - slowest[0]).reindex(pairs["case_id"])


def _sign(figure: Figure) -> int:
    return 1 if figure.direction == "lower" else -1


def _signed(value: float) -> str:
    return f"{value:+.4f}".rstrip("0").rstrip(".") if round(value, 4) else "±0"
