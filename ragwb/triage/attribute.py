"""Which cases failed, at which stage and why: from the saved run alone, never a guess.

Source: metrics.md, "Failure stage".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ragwb.errors import MetricError
from ragwb.measure.answer_scores import AnswerScores
from ragwb.runs.store import Run, collector_paused
from ragwb.runs.traces import Pair, Traces, load_traces
from ragwb.triage.generation import judge_answers
from ragwb.triage.groups import judge_group, lost_groups, uncited_groups
from ragwb.triage.leaks import find_leaks
from ragwb.triage.observed import Conditions, observe
from ragwb.triage.reasons import REASONS, UNCITED, depth
from ragwb.triage.result import Triage
from ragwb.triage.verdict import AnswerFinding, CaseVerdict, GroupVerdict, Leak, TriagedCase


def triage(run: Run, *, k: int | None = None, scores: AnswerScores | None = None) -> Triage:
    """Why each failed case of a run failed: stage, reason and proof.

    Offline: what `/explain` said is read from the run, nothing is asked. A case fails when one of
    its groups has no chunk in the first K results, or none of those is in the context where that
    was observed, or when evidence came back that must not be there; in a run of answers also when
    nothing of this is so and the answer has the wrong mode, breaks a hard rule or leaves out a
    required claim; in any of its repeats.

    Args:
        run: a sealed run.
        k: the cut of the results, 1 to the run's top K; by default top K.
        scores: of the run's answers, by the rules and the verdicts that count; by default by the
            hard rules that come with ragwb. Without verdicts of people, or of a judge that may
            block, UNSUPPORTED_CLAIM is not observed.

    Raises:
        MetricError: K is outside 1..top K.
        RunError: a table of the run is absent or cannot be read.
        DataError: the default pack is broken.
    """
    with collector_paused():
        return triage_traces(load_traces(run), k=k, scores=scores)


def triage_traces(
    traces: Traces,
    *,
    k: int | None = None,
    scores: AnswerScores | None = None,
    unasked: Mapping[str | None, str] | None = None,
) -> Triage:
    """Why each failed case of a run failed, from traces that are read already (see `triage`).

    Args:
        traces: of a saved run.
        k: as in `triage`.
        scores: as in `triage`.
        unasked: where `/explain` was not asked for what the run lacks, why, by the label of who
            asked (None: the default identity); it stands in the proofs.
    """
    conditions = _conditions(traces, checked_k(traces.run, k), unasked or {})
    answers = judge_answers(traces, scores)
    failed: list[TriagedCase] = []
    passed, errors, unjudged = [], [], []
    for case_id, pairs in _pairs_by_case(traces).items():
        excluded = traces.cases[case_id].excluded
        verdicts = [
            _verdict(traces, pair, conditions, answers.get(pair, ()))
            for pair in pairs
            if pair in traces
        ]
        error = next((traces.errors[pair] for pair in pairs if pair in traces.errors), None)
        if lost := [verdict for verdict in verdicts if verdict is not None]:
            failed.append(_over_repeats(lost, len(verdicts)))
        elif error is not None:
            errors.append((case_id, error))
        elif excluded is not None and not any(pair in answers for pair in pairs):
            unjudged.append((case_id, excluded))
        else:
            passed.append(case_id)
    return Triage(
        run=traces.run,
        k=conditions.k,
        traces=traces,
        cases=tuple(sorted(failed, key=lambda case: _gravity(traces, case))),
        passed=tuple(passed),
        errors=tuple(errors),
        unjudged=tuple(unjudged),
    )


def checked_k(run: Run, k: int | None) -> int:
    """The cut of the results, by default the run's top K.

    Raises:
        MetricError: it is outside 1..top K.
    """
    top_k = run.manifest.top_k
    if k is None:
        return top_k
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= top_k:
        raise MetricError(
            f"K is {k!r}: give a whole number from 1 to {top_k}, the top K of run {run.run_id}: "
            "nothing beyond it was observed"
        )
    return k


def _conditions(traces: Traces, k: int, unasked: Mapping[str | None, str]) -> Conditions:
    """What the service says of itself; a manifest without the field of rerank does not say."""
    run = traces.run
    said = run.service()
    reranks = said["rerank"] is not None if "rerank" in said else None
    chunks = said.get("chunks")
    counts = chunks if isinstance(chunks, Mapping) else {}
    total = counts.get("total")
    return Conditions(
        k=k,
        candidate_k=run.manifest.candidate_k,
        context_budget=run.manifest.context_budget_tokens,
        reranks=reranks,
        hides_nothing=total is not None and total == counts.get("visible"),
        knows_labels=knows_labels(traces),
        unasked=unasked,
    )


def knows_labels(traces: Traces) -> bool:
    """Whether ids are in use here that the set expects; looked up only where a group lacks its own.

    Without, the ids are those of another chunking.
    """
    if all(group.chunk_ids for case in traces.cases.values() for group in case.groups):
        return False
    expected = (i for case in traces.cases.values() for i in case.case.expected_chunk_ids)
    return any(traces.knows(chunk_id) for chunk_id in expected)


def _pairs_by_case(traces: Traces) -> dict[str, list[Pair]]:
    """The results of each case that was asked, errors too, in the order of the set."""
    found: dict[str, list[Pair]] = {}
    for pair in sorted([*traces, *traces.errors], key=lambda pair: pair[1]):
        found.setdefault(pair[0], []).append(pair)
    return {case_id: found[case_id] for case_id in traces.cases if case_id in found}


def _verdict(
    traces: Traces, pair: Pair, conditions: Conditions, said: tuple[AnswerFinding, ...]
) -> CaseVerdict | None:
    """Why a result failed, `said` being what is wrong with its answer; None when it passed."""
    resolved, result = traces.cases[pair[0]], traces.result(pair)
    lists = {"results": traces.ids(pair, "results")}
    if "context" in result["observed"]:
        lists["context"] = traces.ids(pair, "context")
    required = () if resolved.excluded is not None else resolved.groups
    lost = lost_groups(required, lists["results"][: conditions.k], lists.get("context"))
    leaks = find_leaks(
        {**lists, "citations": result["citations"] or ()},
        traces.explanations(pair),
        resolved.forbidden_chunk_ids,
        k=conditions.k,
    )
    # An answer without its evidence may be wrong for that alone.
    findings = () if lost else said
    if not lost and not leaks and not findings:
        return None
    is_unused = not leaks and bool(findings) and findings[0].reason == UNCITED
    groups: tuple[GroupVerdict, ...] = ()
    if lost or is_unused:
        observed = observe(traces, traces[pair], conditions)
        unused = uncited_groups(observed) if is_unused else ()
        groups = (*(judge_group(observed, group) for group in lost), *unused)
    reason = _first_reason(leaks, groups, findings)
    return CaseVerdict(pair[0], pair[1], REASONS[reason].stage, reason, groups, leaks, findings)


def _first_reason(
    leaks: Sequence[Leak], groups: Sequence[GroupVerdict], findings: Sequence[AnswerFinding]
) -> str:
    if leaks:
        return leaks[0].reason
    return _earliest(groups) if groups else findings[0].reason


def _earliest(groups: Sequence[GroupVerdict]) -> str:
    """The reason of the earliest known group, of equals the first; unknown only when none is."""
    return min(groups, key=lambda group: depth(group.stage)).reason


def _over_repeats(failed: Sequence[CaseVerdict], n_repeats: int) -> TriagedCase:
    """A case by the most frequent verdict of its repeats, of equals the earliest stage.

    A leak goes before what is more frequent.
    """
    counts = Counter((verdict.stage, verdict.reason) for verdict in failed)
    chosen = min(
        failed,
        key=lambda v: (v.stage != "security", -counts[v.stage, v.reason], depth(v.stage)),
    )
    return TriagedCase(chosen, dict(counts.most_common()), n_repeats, len(failed))


def _gravity(traces: Traces, case: TriagedCase) -> tuple[bool, bool, int, float]:
    """The order of `result.WORST_FIRST`: what sorts first is worst."""
    golden, stage = traces.cases[case.case_id].case, case.verdict.stage
    return (stage != "security", golden.risk != "high", depth(stage), -golden.weight)
