"""What a judge may do: block only with a calibration on record for exactly its model and rubric."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ConfigDict, TypeAdapter, ValidationError

from ragwb.errors import DataError, UsageError
from ragwb.files import read_bytes, write_whole
from ragwb.html import plain
from ragwb.judge.calibration import Calibration
from ragwb.judge.rubric import Rubric
from ragwb.judge.scale import Value
from ragwb.settings import Settings, load_settings

CALIBRATIONS = "calibrations.json"


@dataclass(frozen=True, slots=True)
class JudgePolicy:
    """What a calibration must show before a judge may block.

    Attributes:
        min_kappa: least Cohen's kappa of the accepting decision. 0.6 is where Landis and Koch
            (Biometrics 33 (1977) 159-174) begin to call an agreement substantial.
        min_labels: least number of labelled items that the judge scored.
    """

    min_kappa: float = 0.6
    min_labels: int = 50

    def __post_init__(self) -> None:
        if not -1 <= self.min_kappa <= 1:
            raise UsageError(f"min_kappa {self.min_kappa:g}: must be a number from -1 to 1")
        if self.min_labels < 1:
            raise UsageError(f"min_labels {self.min_labels}: must be 1 or more")


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """How a judge's accepting decision on one criterion agreed with people.

    Attributes:
        kappa: None where it is undefined; low, high: 95 %, None where not known.
        ceiling: kappa between people; None with one annotator.
        n_items, n_labels: labelled items that the judge scored, and the labels on them.
        n_unscored: labelled items that it did not.
    """

    # NaN would be below no limit.
    __pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)

    kappa: float | None
    low: float | None
    high: float | None
    ceiling: float | None
    n_items: int
    n_labels: int
    n_unscored: int


@dataclass(frozen=True, slots=True)
class CalibrationRecord:
    """A calibration on record: the judge to the letter, and each deciding criterion.

    Attributes:
        rubric: name and version, for people; `rubric_hash` is what counts.
        recorded_at: UTC, ISO 8601.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    model: str
    rubric: str
    rubric_hash: str
    decisions: Mapping[str, DecisionRecord]
    recorded_at: str


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether a judge's verdict decides or only advises, and why, in a sentence."""

    may_block: bool
    why: str


UNCALIBRATED = Standing(False, "advises: no calibration on record for this model and rubric")


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Whether an answer is accepted: hard rules AND judge, never a product or an average.

    Attributes:
        accepted: None when the judge decides and has no verdict.
        judged: what the judge says; None when it is unscored or there is no judge.
        why: in a sentence.
    """

    accepted: bool | None
    judged: bool | None
    why: str


_RECORDS = TypeAdapter(list[CalibrationRecord])


def record_calibration(
    calibrations: Sequence[Calibration],
    rubric: Rubric,
    settings: Settings | None = None,
    *,
    now: datetime | None = None,
) -> CalibrationRecord:
    """Put a calibration on record, in place of an earlier one of the same model and rubric.

    Args:
        calibrations: one for each criterion that decides, compared at its `accept_from`.
        rubric: the rubric that the verdicts were made with.
        settings: where the record is kept; default the settings in force.
        now: the time to write down; default the present.

    Raises:
        UsageError: the verdicts do not say their model, are of another rubric, score what is not
            on its scale, or a deciding criterion is missing or was compared otherwise.
        DataError: the file of records is broken or cannot be written.
    """
    model = _check(calibrations, rubric)
    record = CalibrationRecord(
        model=model,
        rubric=rubric.label,
        rubric_hash=rubric.hash,
        decisions={one.criterion: _decision(one) for one in calibrations},
        recorded_at=(now or datetime.now(UTC)).isoformat(timespec="seconds"),
    )
    path = (settings or load_settings()).home / CALIBRATIONS
    others = [old for old in load_records(path) if not _is_of(old, model, rubric.hash)]
    written = json.dumps([asdict(one) for one in (*others, record)], ensure_ascii=False, indent=2)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, written.encode() + b"\n")
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror}") from error
    return record


def load_records(path: Path) -> list[CalibrationRecord]:
    """The calibrations on record; empty when there is no file.

    Raises:
        DataError: the file is broken.
    """
    try:
        return _RECORDS.validate_json(read_bytes(path)) if path.exists() else []
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        said = plain(f"{'.'.join(map(str, first['loc']))}: {first['msg']}", width=160)
        raise DataError(f"{path}: not a file of calibrations: {said}") from error


def find_record(
    model: str, rubric_hash: str, settings: Settings | None = None
) -> CalibrationRecord | None:
    """The calibration on record for exactly this model and rubric."""
    path = (settings or load_settings()).home / CALIBRATIONS
    return next((one for one in load_records(path) if _is_of(one, model, rubric_hash)), None)


def judge_standing(
    rubric: Rubric, record: CalibrationRecord | None, policy: JudgePolicy | None = None
) -> Standing:
    """Whether a judge with this rubric may block, by its calibration on record.

    Args:
        rubric: the rubric in use.
        record: of the model in use and this rubric, or None.
        policy: default kappa 0.6 on 50 labelled items.
    """
    deciding = [one.name for one in rubric.criteria if one.accept_from is not None]
    if not deciding:
        return Standing(False, f"advises: rubric {rubric.label} accepts and rejects nothing")
    if record is None or record.rubric_hash != rubric.hash:
        return UNCALIBRATED
    return recorded_standing(record, policy, deciding)


def recorded_standing(
    record: CalibrationRecord,
    policy: JudgePolicy | None = None,
    deciding: Sequence[str] | None = None,
) -> Standing:
    """Whether the judge of a calibration on record may block.

    Args:
        record: of the judge.
        policy: default kappa 0.6 on 50 labelled items.
        deciding: criteria that accept or reject; by default those that the record holds.
    """
    policy = policy or JudgePolicy()
    deciding = list(record.decisions) if deciding is None else deciding
    if not deciding:
        return Standing(False, "advises: it accepts and rejects nothing")
    for name in deciding:
        found = record.decisions.get(name)
        if found is None or found.kappa is None:
            return Standing(False, f"advises: kappa of {name} is undefined in its calibration")
        if found.n_items < policy.min_labels:
            return Standing(
                False, f"advises: {found.n_items} labels of {name}, {policy.min_labels} are needed"
            )
        if found.kappa < policy.min_kappa:
            return Standing(
                False, f"advises: kappa {found.kappa:.3f} of {name} is below {policy.min_kappa:g}"
            )
    worst = min(record.decisions[name].kappa or 0.0 for name in deciding)
    return Standing(True, f"decides: calibrated on {record.recorded_at[:10]}, kappa {worst:.3f}")


def accept(
    rules_pass: bool, scores: Mapping[str, Value] | None, rubric: Rubric, standing: Standing
) -> Acceptance:
    """Whether an answer is accepted: its hard rules pass and a judge that may block accepts it.

    Args:
        rules_pass: whether every hard rule passes; a rule that fails decides alone.
        scores: the judge's, by criterion; None when unscored.
        rubric: what they mean.
        standing: of the judge.
    """
    judged = None if scores is None else rubric.accepts(scores)
    if not rules_pass:
        return Acceptance(False, judged, "a hard rule fails")
    if not standing.may_block:
        return Acceptance(True, judged, f"hard rules pass; the judge {standing.why}")
    if judged is None:
        return Acceptance(None, None, "hard rules pass; the judge, which decides, has no verdict")
    said = "accepts" if judged else "rejects"
    return Acceptance(judged, judged, f"hard rules pass; the calibrated judge {said}")


def _check(calibrations: Sequence[Calibration], rubric: Rubric) -> str:
    compared = {one.criterion: one.cut for one in calibrations}
    for criterion in rubric.criteria:
        if criterion.accept_from is not None and compared.get(criterion.name) is None:
            raise UsageError(f"{criterion.name} decides, and there is no label of it")
    models = {one.model for one in calibrations}
    if len(models) != 1 or None in models:
        raise UsageError("the verdicts do not say which model judged: nothing to put on record")
    if any(one.rubric_hash != rubric.hash for one in calibrations):
        raise UsageError(
            f"the verdicts were made with another rubric than {rubric.label} as it is now: "
            "judge again, or give the rubric that was used"
        )
    for one in calibrations:
        if one.n_off_scale:
            raise UsageError(
                f"{one.n_off_scale} verdicts score {one.criterion} by a value that is not on the "
                f"scale of {rubric.label}: no verdicts of this rubric, nothing to put on record"
            )
    return str(models.pop())


def _decision(calibration: Calibration) -> DecisionRecord:
    kappa, ceiling = calibration.judge_human["kappa"], calibration.human_human.get("kappa")
    return DecisionRecord(
        kappa=kappa.value,
        low=kappa.interval.low if kappa.interval else None,
        high=kappa.interval.high if kappa.interval else None,
        ceiling=ceiling.value if ceiling else None,
        n_items=calibration.n_items,
        n_labels=calibration.n_labels,
        n_unscored=sum(calibration.n_unscored.values()),
    )


def _is_of(record: CalibrationRecord, model: str, rubric_hash: str) -> bool:
    return (record.model, record.rubric_hash) == (model, rubric_hash)
