"""Ship or not: a run held against a policy, and against the run it would replace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ragwb.decide.gate.baseline import Stored, load_stored
from ragwb.decide.gate.figures import blocking, slice_values, with_cutoffs
from ragwb.decide.gate.policy import Policy, load_policy
from ragwb.decide.gate.policy_blocks import Drop, Floor
from ragwb.decide.gate.policy_lines import Place
from ragwb.decide.gate.regression import check_increases, check_regression, not_compared
from ragwb.decide.gate.result import Aside, GateResult, RuleResult
from ragwb.decide.gate.rules import Judges, check_budget, check_cases, check_floors, check_safety
from ragwb.decide.outcomes import Outcomes, outcomes_of
from ragwb.errors import Fault, UsageError
from ragwb.html import plain
from ragwb.judge.standing import Standing
from ragwb.measure.answered import JudgedAnswer
from ragwb.measure.listed import some
from ragwb.measure.rule_pack import RulePack
from ragwb.runs.store import Run, load_run
from ragwb.settings import Settings

if TYPE_CHECKING:
    from ragwb.decide.comparison import Comparison

MOST_SHOWN = 8


def gate(
    run: Run | str | Path,
    policy: Policy | str | Path,
    *,
    baseline: Run | str | Path | None = None,
    verdicts: Mapping[tuple[str, int], JudgedAnswer] | None = None,
    standings: Mapping[str, Standing] | None = None,
    rules: RulePack | str | Path | None = None,
    settings: Settings | None = None,
) -> GateResult:
    """Hold a run against a release policy.

    Args:
        run: a sealed run, or what `load_run` finds it by.
        policy: a policy, or its file.
        baseline: a run, what `load_run` finds it by, or a JSON file of figures such as the report
            of an eval. Without one, rules that compare are undecided.
        verdicts: what judges said of the run's answers, by (case id, repeat).
        standings: by figure (accepted, citation_support, unsupported_rate), whether it may block;
            without one the rules on it advise.
        rules: the hard rules for answers; by default those that come with ragwb.
        settings: where runs are; default the settings in force.

    Raises:
        DataError: the policy, a run or the file of figures is wrong.
        UsageError: the policy is not for this run: a K beyond the top K of one of the two, or a
            slice without cases, with the line of the policy; the two have no case in common.

    Source: metrics.md, "Verdict".
    """
    policy = policy if isinstance(policy, Policy) else load_policy(policy)
    opened = run if isinstance(run, Run) else load_run(run, settings)
    against = _baseline(baseline, settings)
    _check_cutoffs(policy, opened, against)
    candidate = outcomes_of(opened, k=policy.k, verdicts=verdicts, rules=rules)
    before = outcomes_of(against, k=policy.k, rules=rules) if isinstance(against, Run) else against
    return gate_outcomes(
        candidate, policy, baseline=before, judges=Judges(verdicts is not None, standings or {})
    )


def gate_outcomes(
    outcomes: Outcomes,
    policy: Policy,
    *,
    baseline: Outcomes | Stored | None = None,
    judges: Judges | None = None,
) -> GateResult:
    """Hold outcomes against a policy: those of a run, or figures made elsewhere.

    Args:
        outcomes: of the run, at the policy's K.
        policy: the policy.
        baseline: outcomes at the same K, stored figures, or None.
        judges: what is known of the judges behind the figures.

    Raises:
        UsageError: another K, or a slice without cases, with the line of the policy; no case in
            common.
    """
    if outcomes.k != policy.k:
        message = f"the figures of {outcomes.name} are cut at K {outcomes.k}: make them at this K"
        _refuse([policy.fault(("k",), message)])
    judges, ks = judges or Judges(), _cutoffs(policy)
    candidate = with_cutoffs(outcomes, ks)
    _refuse(_empty_slices(policy, candidate))
    against: Comparison | Stored | None = None
    if isinstance(baseline, Outcomes):
        from ragwb.decide.compare import paired_outcomes

        against = paired_outcomes(with_cutoffs(baseline, ks), candidate)
    else:
        against = baseline
    return GateResult(
        policy=policy,
        run=outcomes.name,
        baseline=None if baseline is None else baseline.name,
        rules=tuple(_rules(policy, candidate, against, judges)),
        counts=_counts(candidate),
        aside=tuple(_aside(candidate)),
        notes=tuple(_notes(policy, against)),
    )


def _rules(
    policy: Policy, candidate: Outcomes, against: Comparison | Stored | None, judges: Judges
) -> Iterator[RuleResult]:
    yield from check_cases(policy, candidate)
    yield from check_safety(policy, candidate)
    yield from check_floors(policy, candidate, judges)
    yield from check_regression(policy, candidate, against, judges)
    yield from check_budget(policy, candidate)
    yield from check_increases(policy, candidate, against)


def _baseline(given: Run | str | Path | None, settings: Settings | None) -> Run | Stored | None:
    """The run or the stored figures that a name or a path stands for."""
    if given is None or isinstance(given, Run):
        return given
    path = Path(given)
    if path.suffix == ".json" and not path.is_dir():
        return load_stored(path)
    return load_run(given, settings)


def _of_rules(policy: Policy) -> Iterator[tuple[Place, Floor | Drop]]:
    for index, floor in enumerate(policy.floors):
        yield ("floors", index), floor
    for index, drop in enumerate(policy.regression.drops if policy.regression else ()):
        yield ("regression", "drops", index), drop


def _cutoffs(policy: Policy) -> set[int]:
    return {policy.k, *(rule.figure.k or policy.k for _, rule in _of_rules(policy))}


def _check_cutoffs(policy: Policy, run: Run, against: Run | Stored | None) -> None:
    """Refuse a K beyond what a run was asked for."""
    wanted: list[tuple[Place, int]] = [(("k",), policy.k)]
    wanted += [((*place, "metric"), rule.figure.k or 1) for place, rule in _of_rules(policy)]
    compared = [against] if isinstance(against, Run) and policy.needs_baseline else []
    _refuse(
        policy.fault(
            place,
            f"K {k} is beyond top K {one.manifest.top_k} of run {one.run_id}: "
            "nothing beyond it was observed",
        )
        for place, k in wanted
        for one in (run, *compared)
        if k > one.manifest.top_k
    )


def _empty_slices(policy: Policy, candidate: Outcomes) -> Iterator[Fault]:
    for place, rule in _of_rules(policy):
        within = rule.cases
        if within is None or len(blocking(candidate, within)):
            continue
        values = slice_values(candidate, within.field)
        there = ", ".join(values[:MOST_SHOWN]) + (" …" if len(values) > MOST_SHOWN else "")
        hint = f"its {within.field}: {there}" if values else f"none has {within.field}"
        yield policy.fault(
            (*place, "slice"),
            f"no blocking case of {candidate.name} has {within}; {hint}",
        )


def _refuse(faults: Iterable[Fault]) -> None:
    found = list(faults)
    if found:
        more = f" (and {len(found) - 1} more lines)" if len(found) > 1 else ""
        raise UsageError(f"{found[0]}{more}")


def _counts(outcomes: Outcomes) -> dict[str, int]:
    status = blocking(outcomes)["status"]
    return {
        "n_cases": len(status),
        "n_scored": int((status == "scored").sum()),
        "n_excluded": int((status == "excluded").sum()),
        "n_errors": int((status == "error").sum()),
    }


def _aside(outcomes: Outcomes) -> Iterator[Aside]:
    for tier in ("shadow", "diagnostic"):
        cases = outcomes.frame[outcomes.frame["tier"] == tier]
        if len(cases):
            known = cases[cases["failed"].notna()]
            failed = tuple(known.loc[known["failed"].astype(bool), "case_id"])
            yield Aside(tier, len(cases), len(known), failed)


def _notes(policy: Policy, against: Comparison | Stored | None) -> Iterator[str]:
    if against is None or isinstance(against, Stored):
        if isinstance(against, Stored) and policy.needs_baseline:
            yield (
                f"the baseline {plain(against.name)} is a file of figures: means are compared as "
                "they stand, over cases that may differ"
            )
        return
    if ids := not_compared(against):
        named = some(ids, MOST_SHOWN, width=60)
        yield f"cases of the baseline that are not compared: {len(ids)} ({named})"
    if against.is_same_run:
        yield "the run and its baseline are the same run: no rule that compares can fail"
    elif against.confounded:
        yield plain(against.conditions.sentence)
    for one in against.notes:
        yield plain(one)
