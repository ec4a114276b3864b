"""A judge against people: how far they agree, beside how far people agree with each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from ragwb.errors import UsageError
from ragwb.judge.agreement import Figure, Paired, agreement, confusion
from ragwb.judge.bias import length_bias, position_bias
from ragwb.judge.labels import Labels, check_known
from ragwb.judge.scale import SIDES, Scale, Value, scale_of
from ragwb.judge.tags import find_tag
from ragwb.judge.verdicts import Verdicts
from ragwb.measure.statistics import RESAMPLES, SEED

ByItem = Mapping[str, Value]
ByAnnotator = Mapping[str, Mapping[str, Value]]


@dataclass(frozen=True, slots=True)
class Slice:
    """The figures of the items that carry one tag's value; name is None for those without it."""

    name: str | None
    n_items: int
    figures: Mapping[str, Figure]


@dataclass(frozen=True, repr=False, eq=False)
class Calibration:
    """A judge held against human labels, on one criterion.

    Attributes:
        criterion: what was rated.
        model, rubric, rubric_hash: the judge; None where its verdicts do not say.
        scale: the values compared; None when the judge's are not on the people's scale.
        cut: both sides were compared as "at least so much"; None when as they are.
        human, judge: the values compared, by item; cut values are 0 and 1.
        judge_human: figures of the judge against every label; items are resampled, not labels.
        human_human: the same between annotators, every pair of them once: the ceiling. Empty with
            one annotator.
        base_rates: (value, share of labels, share of verdicts on labelled items), or empty.
        matrix: counts, human by judge, in the scale's order; None without a scale to count by.
        length, position: what the judge makes of length and of order (`bias`).
        slices: by value of a tag, when one was asked for.
        by: that tag.
        n_items: items with a label and a score.
        n_labels: labels on them.
        n_unscored: labelled items that the judge gave no score, by reason.
        n_unlabelled: judged items that nobody labelled.
        n_incomplete: items that not all annotators labelled.
        n_off_scale: verdicts whose score is not on the scale that was given; 0 when none was.
        annotators: who labelled, sorted.
    """

    criterion: str
    model: str | None
    rubric: str | None
    rubric_hash: str | None
    scale: Scale | None
    cut: Value | None
    human: ByAnnotator
    judge: ByItem
    judge_human: Mapping[str, Figure]
    human_human: Mapping[str, Figure]
    base_rates: tuple[tuple[Value, float, float], ...]
    matrix: tuple[tuple[int, ...], ...] | None
    length: Mapping[str, Figure]
    position: Mapping[str, Figure]
    slices: tuple[Slice, ...]
    by: str | None
    n_items: int
    n_labels: int
    n_unscored: Mapping[str, int]
    n_unlabelled: int
    n_incomplete: int
    n_off_scale: int
    annotators: tuple[str, ...]

    def rows(self) -> list[dict[str, Any]]:
        """One row a figure: judge against people, and people against each other."""
        from ragwb.judge.shown import figure_rows

        return figure_rows(self)

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON values."""
        from ragwb.judge.shown import as_dict

        return as_dict(self)

    def __repr__(self) -> str:
        from ragwb.judge.shown import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from ragwb.judge.shown import as_html

        return as_html(self)


def calibrate(
    labels: Labels,
    verdicts: Verdicts,
    criterion: str,
    *,
    scale: Scale | None = None,
    cut: Value | None = None,
    by: str | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Calibration:
    """Hold a judge against human labels on one criterion.

    Every label counts as one comparison (two annotators give an item two), intervals resample
    items.

    Args:
        labels: by people; all of their items must be among the verdicts, unscored ones too.
        verdicts: of one model and rubric.
        criterion: one of both.
        scale: the values in order; default what the labels show.
        cut: compare only whether a value is at least this, as a decision would.
        by: a tag of the labels or verdicts to slice by, as `name` or `tags.name`.
        resamples: of the bootstrap.
        seed: of the bootstrap.

    Raises:
        UsageError: neither has the criterion, or the tag is unknown.
        DataError: labels of items that the verdicts do not know.
    """
    human, judge = _sides(labels, verdicts, criterion, cut, scale)
    by = None if by is None else find_tag(by, _tag_names(labels, verdicts))
    given = SIDES if cut is not None else scale or scale_of(_all(human))
    judge, shared = _on_scale(judge, given)
    compared = {item_id: human[item_id] for item_id in human if item_id in judge}
    pairs = judge_pairs(compared, judge, shared)
    matrix = confusion(pairs)
    return Calibration(
        criterion=criterion,
        model=verdicts.model,
        rubric=verdicts.rubric,
        rubric_hash=verdicts.rubric_hash,
        scale=shared,
        cut=cut,
        human=compared,
        judge=judge,
        judge_human=agreement(pairs, resamples=resamples, seed=seed),
        human_human=_ceiling(compared, given, resamples, seed),
        base_rates=_base_rates(pairs),
        matrix=None if matrix is None else tuple(tuple(map(int, row)) for row in matrix),
        length=length_bias(compared, judge, verdicts, given, resamples=resamples, seed=seed),
        position=position_bias(verdicts, criterion, compared, resamples=resamples, seed=seed),
        slices=_slices(labels, verdicts, compared, judge, shared, by, resamples, seed),
        by=by,
        n_items=len(compared),
        n_labels=len(pairs.left),
        n_unscored=_unscored(human, compared, verdicts),
        n_unlabelled=len(set(verdicts.item_ids) - set(human)),
        n_incomplete=sum(len(values) < len(labels.annotators) for values in human.values()),
        n_off_scale=0 if scale is None else len(verdicts.off_scale(criterion, scale)),
        annotators=labels.annotators,
    )


def judge_pairs(human: ByAnnotator, judge: ByItem, scale: Scale | None) -> Paired:
    """Every label beside the judge's value of its item: left the person, right the judge."""
    rows = [(at, value, judge[i]) for at, i in enumerate(human) for value in human[i].values()]
    item = np.array([at for at, _, _ in rows], dtype=np.int64)
    return Paired([v for _, v, _ in rows], [v for _, _, v in rows], item, len(human), scale)


def _sides(
    labels: Labels,
    verdicts: Verdicts,
    criterion: str,
    cut: Value | None,
    scale: Scale | None,
) -> tuple[dict[str, dict[str, Value]], dict[str, Value]]:
    """Both sides of a criterion, cut where a cut is given."""
    human = labels.of(criterion)
    # A cut is made through the mean itself, which says more than the value nearest to it.
    shown = None if cut is not None else scale or scale_of(_all(human))
    judge = verdicts.of(criterion, shown)
    for side, where, there in (
        (human, "labels", labels.criteria),
        (judge, "verdicts", verdicts.criteria),
    ):
        if not side and not (where == "verdicts" and not there):
            raise UsageError(f"no {criterion!r} among the {where}; there is {', '.join(there)}")
    check_known(labels, frozenset(verdicts.item_ids), where="the verdicts' file")
    if cut is None:
        return human, judge
    sides = {
        item_id: {who: _side(value, cut, scale) for who, value in said.items()}
        for item_id, said in human.items()
    }
    return sides, {item_id: _side(value, cut, scale) for item_id, value in judge.items()}


def _side(value: Value, cut: Value, scale: Scale | None) -> Value:
    if not isinstance(value, str) and not isinstance(cut, str):
        return int(value >= cut)
    if scale is None or not (scale.holds(value) and scale.holds(cut)):
        raise UsageError(f"a cut at {cut!r} needs an ordered scale that holds {value!r} too")
    return int(scale.place(value) >= scale.place(cut))


def _on_scale(judge: dict[str, Value], given: Scale) -> tuple[dict[str, Value], Scale | None]:
    """The judge's values with the scale of both, or None when the judge rates in other values."""
    if any(isinstance(value, str) for value in given.values):
        if not all(isinstance(value, str) for value in judge.values()):
            return judge, None
        more = sorted({str(value) for value in judge.values()} - set(map(str, given.values)))
        return judge, Scale((*given.values, *more), given.is_ordered and not more)
    if all(given.holds(value) for value in judge.values()):
        return judge, given
    return judge, None


def _ceiling(human: ByAnnotator, scale: Scale, resamples: int, seed: int) -> dict[str, Figure]:
    """Annotators against each other, each pair once, the name that sorts first on the left."""
    rows = [
        (at, human[item_id][first], human[item_id][second])
        for at, item_id in enumerate(human)
        for first, second in combinations(sorted(human[item_id]), 2)
    ]
    if not rows:
        return {}
    # Items with one label have no pair, and are no items of this comparison.
    at = {item: place for place, item in enumerate(dict.fromkeys(item for item, _, _ in rows))}
    item = np.array([at[item] for item, _, _ in rows], dtype=np.int64)
    pairs = Paired([v for _, v, _ in rows], [v for _, _, v in rows], item, len(at), scale)
    return dict(agreement(pairs, resamples=resamples, seed=seed))


def _base_rates(pairs: Paired) -> tuple[tuple[Value, float, float], ...]:
    if (scale := pairs.categories) is None or not len(pairs.left):
        return ()
    n, sides = len(pairs.left), (Counter(pairs.left), Counter(pairs.right))
    return tuple((value, sides[0][value] / n, sides[1][value] / n) for value in scale.values)


def _slices(
    labels: Labels,
    verdicts: Verdicts,
    human: ByAnnotator,
    judge: ByItem,
    scale: Scale | None,
    by: str | None,
    resamples: int,
    seed: int,
) -> tuple[Slice, ...]:
    if by is None:
        return ()
    tags = item_tags(labels, verdicts)
    groups: dict[str | None, dict[str, Mapping[str, Value]]] = {}
    for item_id in human:
        groups.setdefault(tags.get(item_id, {}).get(by), {})[item_id] = human[item_id]
    ordered = sorted(groups.items(), key=lambda group: (group[0] is None, group[0] or ""))
    return tuple(
        Slice(
            name,
            len(items),
            agreement(judge_pairs(items, judge, scale), resamples=resamples, seed=seed),
        )
        for name, items in ordered
    )


def _tag_names(labels: Labels, verdicts: Verdicts) -> set[str]:
    return {name for of_item in item_tags(labels, verdicts).values() for name in of_item}


def item_tags(labels: Labels, verdicts: Verdicts) -> dict[str, dict[str, str]]:
    """The tags of every item, from its verdicts and its labels; a label's wins."""
    found: dict[str, dict[str, str]] = {}
    for verdict in verdicts.verdicts:
        found.setdefault(verdict.item_id, {}).update(verdict.tags)
    for item_id, tags in labels.tags.items():
        found.setdefault(item_id, {}).update(tags)
    return found


def _unscored(human: ByAnnotator, compared: ByAnnotator, verdicts: Verdicts) -> dict[str, int]:
    why = verdicts.unscored()
    missing = (item_id for item_id in human if item_id not in compared)
    return dict(Counter(why.get(i, "the repeats tie, or lack this criterion") for i in missing))


def _all(human: ByAnnotator) -> list[Value]:
    return [value for said in human.values() for value in said.values()]
