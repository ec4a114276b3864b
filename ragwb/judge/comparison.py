"""Two judges, or two versions of a rubric, on the same labelled items."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ragwb.html import escape, plain, table, tag
from ragwb.judge.agreement import FIGURES, Figure
from ragwb.judge.calibration import Calibration, calibrate
from ragwb.judge.labels import Labels
from ragwb.judge.scale import Scale, Value
from ragwb.judge.verdicts import Verdicts
from ragwb.measure.statistics import RESAMPLES, SEED, mcnemar

# Whether more of a figure is better.
_BETTER_ABOVE = {"mae": False, "pearson": True, "spearman": True}
_SHOWN = ("figure", "first", "second", "difference")


@dataclass(frozen=True, slots=True)
class Flip:
    """An item on which two judges differ.

    Attributes:
        human: what the annotators say, by name.
        first, second: the judges' values.
    """

    item_id: str
    human: Mapping[str, Value]
    first: Value
    second: Value


@dataclass(frozen=True, repr=False, eq=False)
class JudgeComparison:
    """Two judges held against the same labels of one criterion.

    Attributes:
        criterion, cut: what was compared, and at which value decisions were taken.
        first, second: their values as they are, on the items that both scored.
        first_decides, second_decides: the same at the cut; as they are without one.
        only_first_right, only_second_right: undisputed items on which one alone agrees with people.
        p_value: exact McNemar of those two; None when a judge's values are not the people's.
        flips: items on which the two decide differently, in the order of the labels.
        n_items: items that both scored; n_disputed: those on which people disagree, which stand
            outside McNemar.
        n_one_side: labelled items that only one of them scored.
    """

    criterion: str
    cut: Value | None
    first: Calibration
    second: Calibration
    first_decides: Calibration
    second_decides: Calibration
    only_first_right: int
    only_second_right: int
    p_value: float | None
    flips: tuple[Flip, ...]
    n_items: int
    n_disputed: int
    n_one_side: int

    @property
    def findings(self) -> list[str]:
        """Where one figure improves while another falls, in sentences."""
        sides = (self.first, self.first_decides), (self.second, self.second_decides)
        before, after = (
            {**_values(as_is.judge_human), "kappa": decides.judge_human["kappa"].value}
            for as_is, decides in sides
        )
        return contradictions(before, after)

    def rows(self) -> list[dict[str, Any]]:
        """One row a figure of agreement with people: first, second, difference."""
        rows = []
        for name in FIGURES:
            is_decision = name in {"raw_agreement", "kappa"}
            pair = (
                (self.first_decides, self.second_decides)
                if is_decision
                else (self.first, self.second)
            )
            before, after = (one.judge_human[name].value for one in pair)
            known = before is not None and after is not None
            # mypy does not follow `known`: it says that neither is None.
            difference = after - before if known else None  # type: ignore[operator]
            rows.append(
                {"figure": name, "first": before, "second": after, "difference": difference}
            )
        return rows

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON values."""
        return {
            "criterion": self.criterion,
            "cut": self.cut,
            "first": _judge(self.first),
            "second": _judge(self.second),
            "n_items": self.n_items,
            "n_disputed": self.n_disputed,
            "n_one_side": self.n_one_side,
            "figures": self.rows(),
            "only_first_right": self.only_first_right,
            "only_second_right": self.only_second_right,
            "mcnemar_p": self.p_value,
            "findings": self.findings,
            "flips": [
                {"item_id": f.item_id, "human": dict(f.human), "first": f.first, "second": f.second}
                for f in self.flips
            ],
        }

    def summary(self) -> str:
        """What changed, in a line."""
        p = "undefined" if self.p_value is None else f"p = {self.p_value:.4g}"
        return (
            f"{self.criterion}: {self.n_items} items scored by both, {len(self.flips)} decided "
            f"differently; right where the other is wrong: first {self.only_first_right}, second "
            f"{self.only_second_right}, McNemar {p}; {self.n_disputed} items on which people "
            f"disagree stand outside it"
        )

    def __repr__(self) -> str:
        lines = [self.summary(), *self.findings]
        lines += [
            f"{row['figure']}: {row['first']} → {row['second']}" for row in self._written_rows()
        ]
        return "\n".join(map(plain, lines))

    def _repr_html_(self) -> str:
        html = tag("p", escape(self.summary()))
        html += "".join(tag("p", escape(line), class_="rw-warning") for line in self.findings)
        return html + table(self._written_rows(), _SHOWN, numeric=_SHOWN[1:])

    def _written_rows(self) -> list[dict[str, object]]:
        return [
            {
                name: f"{value:.4f}" if isinstance(value, float) else value
                for name, value in row.items()
            }
            for row in self.rows()
        ]


def compare_judges(
    labels: Labels,
    first: Verdicts,
    second: Verdicts,
    criterion: str,
    *,
    scale: Scale | None = None,
    cut: Value | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> JudgeComparison:
    """Two judges on the same labels: their figures, who is right alone, and where they flip.

    Args:
        labels: by people.
        first: verdicts of one model and rubric.
        second: verdicts of another.
        criterion: one of all three.
        scale: the values in order; default what the labels show.
        cut: decisions are "at least this"; default the values as they are.
        resamples: of the bootstrap.
        seed: of the bootstrap.

    Raises:
        UsageError: the criterion is missing somewhere.
        DataError: labels of items that one of the judges does not know.
    """
    both = _in_both(first, second, criterion)
    sides = [_only(verdicts, both) for verdicts in (first, second)]
    options: dict[str, Any] = {"scale": scale, "resamples": resamples, "seed": seed}
    as_is = [calibrate(labels, side, criterion, **options) for side in sides]
    decides = (
        as_is
        if cut is None
        else [calibrate(labels, side, criterion, cut=cut, **options) for side in sides]
    )
    human = {i: said for i, said in decides[0].human.items() if i in both}
    judges = [{i: v for i, v in one.judge.items() if i in human} for one in decides]
    agreed = {
        i: next(iter(said.values())) for i, said in human.items() if len(set(said.values())) == 1
    }
    right = [{i for i in agreed if values[i] == agreed[i]} for values in judges]
    on_scale = all(one.scale is not None for one in decides)
    alone = (len(right[0] - right[1]), len(right[1] - right[0]))
    labelled = {label.item_id for label in labels.labels if label.criterion == criterion}
    scored = [set(verdicts.of(criterion)) & labelled for verdicts in (first, second)]
    return JudgeComparison(
        criterion=criterion,
        cut=cut,
        first=as_is[0],
        second=as_is[1],
        first_decides=decides[0],
        second_decides=decides[1],
        only_first_right=alone[0],
        only_second_right=alone[1],
        p_value=mcnemar(alone[1], alone[0]) if on_scale else None,
        flips=tuple(
            Flip(i, human[i], judges[0][i], judges[1][i])
            for i in human
            if judges[0][i] != judges[1][i]
        ),
        n_items=len(human),
        n_disputed=len(human) - len(agreed),
        n_one_side=len(scored[0] ^ scored[1]),
    )


def contradictions(
    before: Mapping[str, float | None], after: Mapping[str, float | None]
) -> list[str]:
    """Where error or correlation improve while kappa at the decision falls, or the reverse.

    Args:
        before: figures by name: kappa, and any of mae, pearson, spearman.
        after: the same of the other judge.

    Returns:
        A sentence for each; empty when all that is known moves one way. A judge may come nearer to
        people on average and still decide worse, for a decision asks only on which side of the cut
        a value lies: a report needs both.
    """
    old, new = before.get("kappa"), after.get("kappa")
    if old is None or new is None or old == new:
        return []
    found = []
    for name, is_better_above in _BETTER_ABOVE.items():
        first, second = before.get(name), after.get(name)
        if first is None or second is None or first == second:
            continue
        improves = (second > first) == is_better_above
        if improves != (new > old):
            found.append(
                f"{name} {'improves' if improves else 'gets worse'} ({first:.4f} → {second:.4f}) "
                f"while kappa at the decision {'rises' if new > old else 'falls'} "
                f"({old:.4f} → {new:.4f}): choose by the decision that the judge will take"
            )
    return found


def _in_both(first: Verdicts, second: Verdicts, criterion: str) -> frozenset[str]:
    return frozenset(first.of(criterion)) & frozenset(second.of(criterion))


def _only(verdicts: Verdicts, item_ids: frozenset[str]) -> Verdicts:
    """The verdicts on some items; of the others only that they were asked."""
    return verdicts.without_scores_of(set(verdicts.item_ids) - item_ids)


def _judge(calibration: Calibration) -> dict[str, Any]:
    return {
        "model": calibration.model,
        "rubric": calibration.rubric,
        "rubric_hash": calibration.rubric_hash,
    }


def _values(figures: Mapping[str, Figure]) -> dict[str, float | None]:
    return {name: figure.value for name, figure in figures.items()}
