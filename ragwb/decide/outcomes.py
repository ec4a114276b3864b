"""What one side of a comparison or a gate holds: a row a case, and what it was made under."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from ragwb import html
from ragwb.decide.authored import authored_frame
from ragwb.decide.imported import checked_frame
from ragwb.decide.safety import Safety, answer_safety, retrieval_safety
from ragwb.golden.passages import ResolvedCase
from ragwb.measure.answer_scores import FIGURES as ANSWER_FIGURES
from ragwb.measure.answer_scores import LOWER_IS_BETTER, AnswerScores
from ragwb.measure.answered import JudgedAnswer
from ragwb.measure.cost import COSTS, PERCENTILES, percentile
from ragwb.measure.counted import CaseCounts
from ragwb.measure.coverage import FIGURES as PASSAGE_FIGURES
from ragwb.measure.facts import TAG
from ragwb.measure.metric import HEADLINE, Metric
from ragwb.measure.rule_pack import RulePack, load_pack
from ragwb.measure.summary import Scores
from ragwb.runs.answered import score_answers
from ragwb.runs.kinds import Kind, Timed, kind_of, timed_of, without_answers
from ragwb.runs.manifest import RunManifest
from ragwb.runs.scoring import score
from ragwb.runs.store import Run, collector_paused
from ragwb.runs.traces import Traces, load_traces
from ragwb.triage.attribute import checked_k

Pair = tuple[str, int]

_LOWER = frozenset({*LOWER_IS_BETTER, *COSTS, *PERCENTILES, "duplicate_rate", "forbidden"})
_HEAD = ("status", "reason", "tier", "set", "risk", "weight")
_LATENCIES = ("case_id", "repeat", "latency_ms", "timings_ms")


@dataclass(frozen=True, repr=False, eq=False)
class Outcomes(CaseCounts):
    """What one side of a comparison or a gate holds.

    Attributes:
        name: the run's id, or a given name.
        kind: whether answers count, or only what was retrieved.
        k: the cut of the results.
        frame: a row a case in the order of the golden set: case_id; case_version int; label, the
            SHA-256 of what the case expects; status (scored, excluded, error); reason; failed, null
            where it is not known (metrics.md: in more than half of the repeats, of a high-risk case
            in any); unstable, failed in some repeats and not in all; tier, set, risk, weight,
            access, permission (asks by an identity of its own, or must be refused for want of
            rights), question, mode, tags.<name>; then each of `metrics` as float64, null where
            undefined. A case of a tier other than blocking is excluded and keeps its figures.
        metrics: figures that are means over cases, such as recall@5, claim_coverage,
            context_tokens.
        latencies: a row an answered (case_id, repeat): latency_ms, null where not observed; of a
            run also timings_ms, the service's own by stage.
        timed: what these milliseconds are of; None where nothing tells.
        manifest: None for figures that are no run.
        run: to open cases and journeys; None for figures that are no run.
        top_k: what the service was asked for; nothing beyond it was observed.
        repeats: passes fixed before the run.
        safety: blocking cases that broke a rule whose tolerance is zero, by the rule: a reason code
            in lower case, such as acl_leak. Empty when none is broken.
        safety_unknown: rules that could not be decided, such as leaks that nothing was asked about.
        shares: the share of its repeats with which a case counts (`AnswerScores.shares`); None when
            every case counts whole.
    """

    name: str
    kind: Kind
    k: int
    frame: pd.DataFrame
    metrics: tuple[str, ...]
    latencies: pd.DataFrame
    manifest: RunManifest | None = None
    run: Run | None = None
    top_k: int = 100
    repeats: int = 1
    safety: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    safety_unknown: tuple[str, ...] = ()
    shares: pd.DataFrame | None = None
    timed: Timed | None = None

    def figures(self) -> dict[str, float | None]:
        """Each of `metrics` as its mean over the scored cases, then p50_ms, p95_ms and p99_ms.

        None where it is undefined or was not observed.
        """
        scored = self.frame[self.frame["status"] == "scored"]
        means = {name: self._mean(scored, name) for name in self.metrics}
        mine = self.latencies["case_id"].isin(scored["case_id"])
        taken = self.latencies.loc[mine, "latency_ms"]
        return {**means, **{name: percentile(taken, q) for name, q in PERCENTILES.items()}}

    def _mean(self, cases: pd.DataFrame, name: str) -> float | None:
        values = cases[name]
        if self.shares is None or name not in self.shares:
            return None if values.isna().all() else float(values.mean())
        shares = self.shares[name].reindex(cases["case_id"]).to_numpy()
        whole = shares[values.notna()].sum()
        return float((values.to_numpy() * shares)[values.notna()].sum() / whole) if whole else None

    def __repr__(self) -> str:
        return (
            f"{html.plain(self.name)}: {self.kind} at K {self.k}, {self.n_cases} cases = "
            f"{self.n_scored} scored + {self.n_excluded} excluded + {self.n_errors} errors"
        )


def lower_is_better(metric: str) -> bool:
    """Whether less of a figure is better: costs, times and shares of what went wrong."""
    name = metric.partition("@")[0]
    return name in _LOWER or name.endswith("_ms")


def outcomes_of(
    run: Run,
    *,
    k: int | None = None,
    kind: Kind | None = None,
    verdicts: Mapping[Pair, JudgedAnswer] | None = None,
    rules: RulePack | str | Path | None = None,
    traces: Traces | None = None,
) -> Outcomes:
    """The outcomes of a saved run.

    Args:
        run: a sealed run.
        k: the cut of the results, 1 to its top K; by default top K.
        kind: by default what the run asked for (`runs.kinds.kind_of`); retrieval where nothing
            tells.
        verdicts: what a judge or a person said of answers, by (case id, repeat).
        rules: the hard rules for answers; by default those that come with ragwb.
        traces: of this run, when they were loaded before.

    Raises:
        MetricError: K is outside 1..top K.
        UsageError: answers are asked of a run that only retrieved.
        DataError: a table of the run, or the rules, are broken; its labels are of another id space.
    """
    k = checked_k(run, k)
    results = run.cases()
    asked = kind_of(run)
    if kind == "answers" and asked == "retrieval":
        raise without_answers(run)
    retrieval = score(run, k)
    answers = None
    if (kind or asked) == "answers":
        with collector_paused():
            # The golden cases take longest to read, and stand in the traces.
            traces = load_traces(run) if traces is None else traces
            answers = score_answers(run, _pack(rules), judged=verdicts, traces=traces)
    golden = run.golden() if traces is None else list(traces.cases.values())
    frame, metrics = _frame(golden, results, retrieval, answers, k)
    found = _safety(run, results, retrieval, answers, k)
    return Outcomes(
        name=run.run_id,
        kind="retrieval" if answers is None else "answers",
        k=k,
        frame=frame,
        metrics=metrics,
        latencies=results.loc[results["status"] == "ok", list(_LATENCIES)].reset_index(drop=True),
        manifest=run.manifest,
        run=run,
        top_k=run.manifest.top_k,
        repeats=run.manifest.repeats,
        safety=found.broken,
        safety_unknown=found.unknown,
        shares=None if answers is None else answers.shares,
        timed=timed_of(run, asked),
    )


def outcomes_from(
    frame: pd.DataFrame | Sequence[Mapping[str, Any]],
    *,
    name: str,
    k: int,
    metrics: Sequence[str],
    kind: Kind = "retrieval",
    manifest: RunManifest | None = None,
) -> Outcomes:
    """The outcomes of figures that were made elsewhere, checked first.

    Args:
        frame: a row a case: case_id and each of `metrics`, null where undefined; as far as they are
            known status, reason, failed and the other columns of `Outcomes.frame`, latency_ms.
            Without status every case is scored; without failed, a case fails whose recall at k is
            below 1, and without a recall nothing is said to fail.
        name: what these figures are called.
        k: the cut that they were made at.
        metrics: their columns.
        kind: what they measure.
        manifest: what they were made under, if known.

    Raises:
        DataError: no case_id, an id twice, a column that is not there, NaN or infinity given as a
            number, a rate outside [0, 1], a failure that does not go with the status; every fault
            names case and column.
    """
    cases = checked_frame(frame, name=name, k=k, metrics=tuple(metrics))
    latencies = cases[["case_id"]].assign(repeat=1, latency_ms=cases["latency_ms"])
    scored = cases["status"] == "scored"
    return Outcomes(
        name=name,
        kind=kind,
        k=k,
        frame=cases.drop(columns="latency_ms"),
        metrics=tuple(metrics),
        latencies=latencies[scored].reset_index(drop=True),
        manifest=manifest,
        top_k=k if manifest is None else manifest.top_k,
        repeats=1 if manifest is None else manifest.repeats,
        safety_unknown=Safety.none_observed().unknown,
    )


def _pack(rules: RulePack | str | Path | None) -> RulePack:
    return rules if isinstance(rules, RulePack) else load_pack(Path(rules) if rules else None)


def _frame(
    golden: Sequence[ResolvedCase],
    results: pd.DataFrame,
    retrieval: Scores,
    answers: AnswerScores | None,
    k: int,
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The frame of `Outcomes`, and the names of its figures."""
    judged = retrieval.frame if answers is None else answers.frame
    suffix = f"@{k}" if answers is None else ""
    n_failed = judged[f"n_failed{suffix}"].astype("Int64")
    tags = [str(name) for name in judged.columns if str(name).startswith(TAG)]
    head = judged[["case_id", *_HEAD]].assign(
        failed=judged[f"failed_for_comparison{suffix}"].astype("boolean"),
        unstable=((n_failed > 0) & (n_failed < judged["n_repeats"])).fillna(False).astype(bool),
    )
    authored = authored_frame(golden).reindex(head["case_id"])
    figures = _figures(results, retrieval, answers, k).reindex(head["case_id"])
    parts = [head, authored.reset_index(drop=True), judged[tags], figures.reset_index(drop=True)]
    frame = pd.concat([part.reset_index(drop=True) for part in parts], axis=1)
    return frame, tuple(str(name) for name in figures.columns)


def _figures(
    results: pd.DataFrame, retrieval: Scores, answers: AnswerScores | None, k: int
) -> pd.DataFrame:
    """Every figure of each case by its name, indexed by case_id; costs that were observed."""
    wanted = [Metric(name, k) for name in (*HEADLINE, *PASSAGE_FIGURES)]
    named = {metric.column: str(metric) for metric in wanted if metric.column in retrieval.frame}
    parts = [retrieval.frame.set_index("case_id")[list(named)].rename(columns=named)]
    if answers is not None:
        parts.append(answers.frame.set_index("case_id")[list(ANSWER_FIGURES)])
    ok = results[results["status"] == "ok"]
    costs = ok.groupby("case_id", sort=False)[list(COSTS)].mean()
    parts.append(costs[[name for name in COSTS if costs[name].notna().any()]])
    return pd.concat(parts, axis=1).astype("float64")


def _safety(
    run: Run, results: pd.DataFrame, retrieval: Scores, answers: AnswerScores | None, k: int
) -> Safety:
    found = retrieval_safety(run, results, retrieval, k)
    return found if answers is None else found.joined(answer_safety(answers, results))
