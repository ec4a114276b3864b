"""What people still owe a period: judges without a calibration, review notes that are open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragwb.decide.weekly.series import Point
from ragwb.errors import DataError, RunError
from ragwb.judge.standing import (
    CALIBRATIONS,
    UNCALIBRATED,
    CalibrationRecord,
    JudgePolicy,
    load_records,
    recorded_standing,
)
from ragwb.runs.notes import Note, load_notes
from ragwb.settings import Settings


@dataclass(frozen=True, slots=True)
class JudgeStatus:
    """A judge that is on record, or that a run of the period names, and what it may do.

    Attributes:
        model, rubric: the judge; the rubric is its name where it is on record, else its hash.
        may_block: whether its calibration lets it decide.
        why: in a sentence.
        recorded_at: when it was calibrated, UTC; None when it is not on record.
        kappa: the worst of its deciding criteria; None where it is undefined or not on record.
        n_items: labelled items behind it, the fewest of a criterion.
        n_runs: runs of the period that name it.
    """

    model: str
    rubric: str
    may_block: bool
    why: str
    recorded_at: str | None
    kappa: float | None
    n_items: int | None
    n_runs: int


@dataclass(frozen=True, slots=True)
class OpenNote:
    """A review note on a case that still fails in the last run of its series.

    Attributes:
        run_id: the run that it was written on.
        note: the note.
    """

    run_id: str
    note: Note


@dataclass(frozen=True, slots=True)
class Notes:
    """The review notes on the runs of a series.

    Attributes:
        open: those on cases that still fail, or whose call failed, in the last run; oldest first.
        n_closed: those on cases that do not fail there any more.
        problems: runs whose notes cannot be read, each in a sentence.
    """

    open: tuple[OpenNote, ...] = ()
    n_closed: int = 0
    problems: tuple[str, ...] = ()


def judge_statuses(
    points: Sequence[Point], settings: Settings, policy: JudgePolicy | None = None
) -> tuple[tuple[JudgeStatus, ...], str]:
    """Every judge on record or named by a run, and why there are none where the file is broken.

    Args:
        points: the runs of a period.
        settings: where calibrations are kept.
        policy: what a calibration must show; default kappa 0.6 on 50 labelled items.
    """
    used: dict[tuple[str, str], int] = {}
    for point in points:
        manifest = point.run.manifest
        if manifest.judge_model and manifest.rubric_hash:
            key = (manifest.judge_model, manifest.rubric_hash)
            used[key] = used.get(key, 0) + 1
    try:
        records = load_records(settings.home / CALIBRATIONS)
    except DataError as error:
        return (), f"Calibrations are not shown: {error}"
    policy = policy or JudgePolicy()
    found = [_recorded(one, used.pop((one.model, one.rubric_hash), 0), policy) for one in records]
    return (*found, *(_unrecorded(*key, n) for key, n in used.items())), ""


def review_notes(points: Sequence[Point]) -> Notes:
    """The review notes on the runs of a series, open ones apart."""
    frame = points[-1].outcomes.frame
    failing = frame["failed"].fillna(False).astype(bool) | (frame["status"] == "error")
    still = set(frame.loc[failing, "case_id"])
    found, n_closed, problems = [], 0, []
    for point in points:
        try:
            notes = load_notes(point.run)
        except RunError as error:
            problems.append(f"Review notes of {point.run_id} are not shown: {error}")
            continue
        open_ones = [OpenNote(point.run_id, note) for note in notes if note.case_id in still]
        found += open_ones
        n_closed += len(notes) - len(open_ones)
    found.sort(key=lambda one: one.note.written_at)
    return Notes(tuple(found), n_closed, tuple(problems))


def _recorded(record: CalibrationRecord, n_runs: int, policy: JudgePolicy) -> JudgeStatus:
    standing = recorded_standing(record, policy)
    kappas = [one.kappa for one in record.decisions.values()]
    known = [kappa for kappa in kappas if kappa is not None]
    return JudgeStatus(
        model=record.model,
        rubric=record.rubric,
        may_block=standing.may_block,
        why="decides" if standing.may_block else standing.why,
        recorded_at=record.recorded_at,
        kappa=min(known) if known and len(known) == len(kappas) else None,
        n_items=min((one.n_items for one in record.decisions.values()), default=None),
        n_runs=n_runs,
    )


def _unrecorded(model: str, rubric_hash: str, n_runs: int) -> JudgeStatus:
    return JudgeStatus(
        model=model,
        rubric=rubric_hash[:12],
        may_block=UNCALIBRATED.may_block,
        why=UNCALIBRATED.why,
        recorded_at=None,
        kappa=None,
        n_items=None,
        n_runs=n_runs,
    )
