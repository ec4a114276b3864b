"""One layered record a case: what the data, the retrieval, the evidence and the answer came to.

The layers are those of a report: data, retrieval, evidence, generation (metrics.md).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ragwb.errors import UsageError
from ragwb.files import write_whole
from ragwb.golden.passages import ResolvedCase
from ragwb.html import terminal_json
from ragwb.measure.answer_figures import AnswerOutcome
from ragwb.measure.answer_scores import AnswerScores
from ragwb.measure.answered import AnsweredCase
from ragwb.measure.chains import evidence_conflict, hops, whole_chain
from ragwb.measure.shown import json_number
from ragwb.measure.summary import Scores
from ragwb.runs.answered import answered_cases
from ragwb.runs.files import disk_faults
from ragwb.runs.notes import Note, load_notes
from ragwb.runs.scoring import score
from ragwb.runs.store import Run

# Stage and reason of a failed case, and the repeat in which they were found.
Finding = tuple[str, str, int]


def layer_records(
    run: Run,
    *,
    k: int | None = None,
    scores: AnswerScores | None = None,
    findings: Mapping[str, Finding] | None = None,
) -> Iterator[dict[str, Any]]:
    """A record a case in the order of the golden set; what was not observed is null.

    A case with repeats stands with the one of its finding; without a finding with the first of
    them that failed, by its answer or else its retrieval, and with its first when none did.

    Args:
        run: a sealed run.
        k: the cut of the results; by default the run's top K.
        scores: of its answers; None when it only retrieved.
        findings: stage, reason and repeat of each failed case, as triage names them; None when
            nobody looked, which is null and no pass.

    Yields:
        question_id, repeat, n_repeats, run_id, dataset_version, knowledge_version; retrieval {k,
        status, recall, reciprocal_rank}; evidence {complete: every group in the context, conflict,
        hops}; generation {mode, expected_mode, claims, claim_coverage, hard_failures, correct};
        failure_stage, reason; review_note, the last one.

    Raises:
        UsageError: K is beyond the run's top K.
    """
    top_k = run.manifest.top_k
    k = top_k if k is None else k
    if not 1 <= k <= top_k:
        raise UsageError(f"K {k}: the run asked for {top_k}; give a K from 1 to {top_k}")
    layers = _Layers(run, score(run, [k]), scores, k)
    notes = _last_notes(load_notes(run))
    for resolved in run.golden():
        case_id = resolved.case.id
        stage, reason, repeat = (findings or {}).get(case_id, (None, None, None))
        yield {
            **layers.record(resolved, repeat),
            "failure_stage": stage,
            "reason": reason,
            "review_note": notes.get(case_id),
        }


def write_layers(records: Iterable[Mapping[str, Any]], path: Path) -> int:
    """Write layered records as JSON Lines; a file there is replaced.

    Returns:
        How many there are.

    Raises:
        RunError: the file cannot be written.
    """
    # What could drive a terminal is written as escapes; Chinese stays readable.
    lines = [
        terminal_json(json.dumps(record, ensure_ascii=False, allow_nan=False)).encode() + b"\n"
        for record in records
    ]
    with disk_faults(path, "export again, or give another file"):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, lines)
    return len(lines)


class _Layers:
    """What stands in the records of a run, looked up by case."""

    def __init__(self, run: Run, retrieval: Scores, scores: AnswerScores | None, k: int) -> None:
        self._k = k
        self._run = run
        self._scores = scores
        self._answers: dict[str, dict[int, AnsweredCase]] = {}
        for one in answered_cases(run):
            if one.error is None:
                self._answers.setdefault(one.case_id, {})[one.repeat] = one
        self._status = dict(zip(retrieval.frame["case_id"], retrieval.frame["status"], strict=True))
        names = ["case_id", "repeat", f"recall@{k}", f"mrr@{k}"]
        rows = retrieval.results[names].itertuples(index=False, name=None)
        self._figures = {(case_id, repeat): figures for case_id, repeat, *figures in rows}

    def record(self, resolved: ResolvedCase, found_in: int | None) -> dict[str, Any]:
        case_id, manifest = resolved.case.id, self._run.manifest
        held = self._answers.get(case_id, {})
        repeat = found_in if found_in in held else self._chosen(case_id, held)
        answered = None if repeat is None else held[repeat]
        return {
            "question_id": case_id,
            "repeat": repeat,
            "n_repeats": len(held),
            "run_id": manifest.run_id,
            "dataset_version": manifest.dataset_version,
            "knowledge_version": manifest.knowledge_snapshot,
            "retrieval": self._retrieval(case_id, repeat),
            "evidence": None if answered is None else _evidence(answered),
            "generation": self._generation(case_id, repeat),
        }

    def _chosen(self, case_id: str, held: Mapping[int, AnsweredCase]) -> int | None:
        """The first repeat that failed, by its answer or else its retrieval; else the first."""
        order = sorted(held)
        for repeat in order:
            outcome = self._outcome(case_id, repeat)
            if outcome is not None and outcome.figures["correct_rate"] == 0:
                return repeat
        for repeat in order:
            if self._scores is None and self._figure(case_id, repeat, 0) not in (None, 1.0):
                return repeat
        return order[0] if order else None

    def _outcome(self, case_id: str, repeat: int | None) -> AnswerOutcome | None:
        if self._scores is None or repeat is None:
            return None
        return self._scores.outcomes.get((case_id, repeat))

    def _figure(self, case_id: str, repeat: int | None, place: int) -> float | None:
        figures = self._figures.get((case_id, repeat))
        return None if figures is None else json_number(figures[place])

    def _retrieval(self, case_id: str, repeat: int | None) -> dict[str, Any]:
        return {
            "k": self._k,
            "status": self._status.get(case_id),
            "recall": self._figure(case_id, repeat, 0),
            "reciprocal_rank": self._figure(case_id, repeat, 1),
        }

    def _generation(self, case_id: str, repeat: int | None) -> dict[str, Any] | None:
        outcome = self._outcome(case_id, repeat)
        if outcome is None:
            return None
        correct = outcome.figures["correct_rate"]
        return {
            "mode": outcome.answered.mode,
            "expected_mode": outcome.answered.case.case.mode,
            "claims": [asdict(claim) for claim in outcome.claims],
            "claim_coverage": outcome.figures["claim_coverage"],
            "hard_failures": [asdict(failure) for failure in outcome.failures],
            "correct": None if correct is None else bool(correct),
        }


def _evidence(answered: AnsweredCase) -> dict[str, Any]:
    found = hops(answered)
    return {
        "complete": whole_chain(found, "in_context") if found else None,
        "conflict": evidence_conflict(answered),
        "hops": [asdict(hop) for hop in found],
    }


def _last_notes(notes: Iterable[Note]) -> dict[str, dict[str, Any]]:
    """The last note of each case: who said what, and whether they agree with triage."""
    names = ("text", "author", "agreed", "corrected_stage", "corrected_reason", "written_at")
    return {note.case_id: {name: getattr(note, name) for name in names} for note in notes}
