"""A run held against a policy, with what judges say of its answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ragwb.decide.gate.gate import gate as gate_run
from ragwb.decide.gate.policy import Policy, load_policy
from ragwb.decide.gate.result import GateResult
from ragwb.judge.standing import JudgePolicy, Standing
from ragwb.measure.answered import JudgedAnswer
from ragwb.measure.rule_pack import load_pack
from ragwb.report.answer_judging import FIGURES_OF_KIND, consult_judges
from ragwb.runs.answered import score_answers
from ragwb.runs.store import Run, load_run

if TYPE_CHECKING:
    from ragwb.settings import Settings

Pair = tuple[str, int]


def gate(
    run: Run | str | Path,
    policy: Policy | str | Path,
    *,
    baseline: Run | str | Path | None = None,
    verdicts: Sequence[str | Path] = (),
    rubrics: Sequence[str | Path] = (),
    rules: str | Path | None = None,
    settings: Settings | None = None,
) -> GateResult:
    """Hold a run against a release policy: pass, fail or undecided, with every blocker named.

    Args:
        run: a sealed run, or an id, a unique prefix, a path, `latest` or a baseline's name.
        policy: a TOML file, or a policy that was read.
        baseline: a run, found in the same ways, or a JSON file of figures such as the report of an
            eval. Without one, rules that compare are undecided.
        verdicts: files of a judge's verdicts on this run's answers. What rests on them blocks only
            with a calibration on record that meets the policy, and advises else.
        rubrics: the rubrics that they follow, beside those that come with ragwb.
        rules: a rule pack, by default the one that comes with ragwb.
        settings: where runs and calibrations are; default the settings in force.

    Raises:
        DataError: the policy, a run, or a file of figures, rules, verdicts or rubrics is wrong.
        UsageError: the policy or the verdicts are not for this run; no case in common.
    """
    policy = policy if isinstance(policy, Policy) else load_policy(policy)
    opened = run if isinstance(run, Run) else load_run(run, settings)
    pack = load_pack(None if rules is None else Path(rules))
    judged: Mapping[Pair, JudgedAnswer] | None = None
    standings: dict[str, Standing] = {}
    if verdicts:
        scores = score_answers(opened, pack)
        broken = {pair: bool(outcome.failures) for pair, outcome in scores.outcomes.items()}
        judging = consult_judges(
            opened,
            verdicts,
            rubrics=rubrics,
            broken=broken,
            policy=JudgePolicy(policy.judge.min_kappa, policy.judge.min_labels),
            settings=settings,
        )
        judged = judging.answers
        for judge in judging.judges:
            standings |= dict.fromkeys(FIGURES_OF_KIND[judge.rubric.kind], judge.standing)
    return gate_run(
        opened,
        policy,
        baseline=baseline,
        verdicts=judged,
        standings=standings,
        rules=pack,
        settings=settings,
    )
