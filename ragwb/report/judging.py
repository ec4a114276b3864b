"""A judge held against people from its files: the figures, what it may do, and what follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragwb.errors import UsageError
from ragwb.html import plain
from ragwb.judge.calibration import Calibration, calibrate
from ragwb.judge.comparison import JudgeComparison, compare_judges
from ragwb.judge.labels import Labels, load_labels
from ragwb.judge.rubric import Criterion, Rubric, load_rubric
from ragwb.judge.sampling import restore_ids
from ragwb.judge.scale import Value, read_value
from ragwb.judge.standing import (
    JudgePolicy,
    Standing,
    find_record,
    judge_standing,
    record_calibration,
)
from ragwb.judge.verdicts import Verdicts, load_verdicts

if TYPE_CHECKING:
    from ragwb.settings import Settings
    from ragwb.view.panel import Panel


@dataclass(frozen=True, repr=False, eq=False)
class JudgeReview:
    """A judge held against people on every criterion that both rated.

    Attributes:
        calibrations: one a criterion, the values as they are or at the cut that was given.
        decisions: one a criterion that accepts or rejects, compared at its `accept_from`.
        comparisons: with a second judge, one a criterion.
        rubric: what the verdicts follow; None when none was given.
        standing: what the judge may do by the calibration on record; None without a rubric.
    """

    calibrations: tuple[Calibration, ...]
    decisions: tuple[Calibration, ...]
    comparisons: tuple[JudgeComparison, ...]
    rubric: Rubric | None
    standing: Standing | None

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON values."""
        standing = self.standing
        return {
            "calibrations": [one.to_dict() for one in self.calibrations],
            "decisions": [one.to_dict() for one in self.decisions],
            "comparisons": [one.to_dict() for one in self.comparisons],
            "standing": None
            if standing is None
            else {"may_block": standing.may_block, "why": standing.why},
        }

    def headline(self) -> Panel:
        """What the judge may do, and how far it agrees with people, in a few lines."""
        from ragwb.report.judge_sections import headline

        return headline(self)

    def __repr__(self) -> str:
        return self.headline().text

    def _repr_html_(self) -> str:
        return self.headline().html


def review_judge(
    labels: str | Path | Sequence[str | Path],
    verdicts: str | Path,
    *,
    second: str | Path | None = None,
    rubric: Rubric | str | Path | None = None,
    key: str | Path | None = None,
    criteria: Sequence[str] = (),
    cut: Value | str | None = None,
    by: str | None = None,
    min_kappa: float = JudgePolicy().min_kappa,
    min_labels: int = JudgePolicy().min_labels,
    settings: Settings | None = None,
    record: bool = False,
) -> JudgeReview:
    """Hold a judge's verdicts against human labels, both from files.

    Args:
        labels: CSV or JSON Lines of labels (`judge.labels`), one file or several.
        verdicts: JSON Lines of verdicts (`judge.verdicts`).
        second: verdicts of another judge, or of another version of the rubric.
        rubric: the rubric of the verdicts, or its file: its scales are checked and its decisions
            compared.
        key: the key of a blind sheet, when the labels are of one.
        criteria: what to compare; default all that labels and verdicts share.
        cut: compare only whether a value is at least this; a text is read as in a file of labels.
        by: a tag to slice by.
        min_kappa: least kappa on record of a judge that may block.
        min_labels: least number of labelled items for that.
        settings: where calibrations are on record; default the settings in force.
        record: put this calibration on record first.

    Raises:
        DataError: a file is wrong, or labels are of items that the verdicts do not know.
        UsageError: a file is not named, nothing is shared, a tag or criterion is unknown, or
            nothing to record.
    """
    paths = [labels] if isinstance(labels, str | Path) else list(labels)
    if not (paths and all(map(str, paths)) and str(verdicts)):
        raise UsageError("give labels and verdicts, each as a file")
    policy = JudgePolicy(min_kappa, min_labels)
    rubric = load_rubric(rubric) if isinstance(rubric, str | Path) else rubric
    cut = _read_cut(cut) if isinstance(cut, str) else cut
    held = load_labels(*paths, scales=rubric.scales if rubric else None)
    held = held if key is None else restore_ids(held, Path(key))
    said = load_verdicts(verdicts)
    other = None if second is None else load_verdicts(second)
    names = tuple(criteria) or _shared(held, said)
    scales = {name: rubric.scales.get(name) if rubric else None for name in names}
    deciding = [one for one in (rubric.criteria if rubric else ()) if _decides(one, held)]
    decisions = tuple(
        calibrate(held, said, one.name, scale=one.scale, cut=one.accept_from) for one in deciding
    )
    if record:
        if rubric is None:
            raise UsageError("a calibration is put on record for a rubric: give it")
        record_calibration(decisions, rubric, settings)
    return JudgeReview(
        calibrations=tuple(
            calibrate(held, said, name, scale=scales[name], cut=cut, by=by) for name in names
        ),
        decisions=decisions,
        comparisons=()
        if other is None
        else tuple(
            compare_judges(held, said, other, name, scale=scales[name], cut=_cut(name, cut, rubric))
            for name in names
        ),
        rubric=rubric,
        standing=None if rubric is None else standing_of(rubric, said, policy, settings),
    )


def _shared(labels: Labels, verdicts: Verdicts) -> tuple[str, ...]:
    """What both rated; all that people rated when the judge scored nothing at all."""
    said = verdicts.criteria
    names = tuple(name for name in labels.criteria if name in said or not said)
    if not names:
        raise UsageError(
            f"labels rate {', '.join(labels.criteria)} and the verdicts {', '.join(said)}: "
            "nothing is shared"
        )
    return names


def _read_cut(said: str) -> Value | None:
    try:
        return read_value(said)
    except ValueError as error:
        raise UsageError(f"cut {plain(said, width=40)!r}: {error}") from error


def _decides(criterion: Criterion, labels: Labels) -> bool:
    return criterion.accept_from is not None and criterion.name in labels.criteria


def _cut(name: str, cut: Value | None, rubric: Rubric | None) -> Value | None:
    """The cut that was given, else where the rubric accepts."""
    if cut is not None or rubric is None:
        return cut
    return next((one.accept_from for one in rubric.criteria if one.name == name), None)


def standing_of(
    rubric: Rubric,
    verdicts: Verdicts,
    policy: JudgePolicy | None = None,
    settings: Settings | None = None,
) -> Standing:
    """What the judge of these verdicts may do, by the calibration on record.

    Args:
        rubric: what the verdicts are said to follow.
        verdicts: of one judge.
        policy: default kappa 0.6 on 50 labelled items.
        settings: where calibrations are on record; default the settings in force.
    """
    if verdicts.model is None or verdicts.rubric_hash != rubric.hash:
        return Standing(False, "advises: its verdicts do not say this rubric and their model")
    off = [
        found for name, scale in rubric.scales.items() for found in verdicts.off_scale(name, scale)
    ]
    if off:
        item, value = (plain(part, width=40) for part in off[0])
        why = f"{len(off)} of its scores are not on the rubric's scale ({value} of {item})"
        return Standing(False, f"advises: {why}")
    found = find_record(verdicts.model, rubric.hash, settings)
    return judge_standing(rubric, found, policy)
