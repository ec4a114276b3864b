"""How the golden set itself changed between the runs of a series."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ragwb.decide.conditions import Conditions, conditions
from ragwb.decide.outcomes import Outcomes
from ragwb.decide.weekly.series import Point


@dataclass(frozen=True, slots=True)
class GoldenChange:
    """What became of the golden set between two runs.

    Attributes:
        before, after: dataset versions; before_hash, after_hash: of the sets.
        added, removed: case ids that only the later, and only the earlier one holds.
        changed: case ids whose version or labels differ.
    """

    before: str
    after: str
    before_hash: str
    after_hash: str
    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """A place on the time axis where the manifest of a run differs from that of the run before it.

    Attributes:
        number: from 1, as it stands in the charts.
        index: the position in the series, from 0, of the run that is different.
        conditions: what differs.
        golden: what became of the golden set; None when it is the same.
    """

    number: int
    index: int
    conditions: Conditions
    golden: GoldenChange | None

    @property
    def words(self) -> str:
        """What changed, in words: each factor with its values, then the golden set."""
        parts = [f"{factor.words} {factor.values}" for factor in self.conditions.factors]
        if self.golden is not None:
            parts.append(_golden_words(self.golden))
        return "; ".join(parts) or _other_words(self.conditions)


def marks(points: Sequence[Point]) -> tuple[Mark, ...]:
    """Every place in a series where something that the manifests name changed, in order."""
    return tuple(
        Mark(number, index, found, golden)
        for number, (index, found, golden) in enumerate(_changes(points), 1)
    )


def _changes(points: Sequence[Point]) -> Iterator[tuple[int, Conditions, GoldenChange | None]]:
    for index, (before, after) in enumerate(pairwise(points), 1):
        found = conditions(before.run.manifest, after.run.manifest)
        if found.changes:
            yield index, found, golden_change(before.outcomes, after.outcomes)


def golden_change(before: Outcomes, after: Outcomes) -> GoldenChange | None:
    """How the set of a later run differs from that of an earlier one; None when it is the same."""
    old, new = before.manifest, after.manifest
    if old is None or new is None or old.dataset_hash == new.dataset_hash:
        return None
    labels = {name: _labels(side) for name, side in (("before", before), ("after", after))}
    earlier, later = labels["before"], labels["after"]
    return GoldenChange(
        before=old.dataset_version,
        after=new.dataset_version,
        before_hash=old.dataset_hash,
        after_hash=new.dataset_hash,
        added=tuple(case_id for case_id in later if case_id not in earlier),
        removed=tuple(case_id for case_id in earlier if case_id not in later),
        changed=tuple(
            case_id
            for case_id, label in later.items()
            if case_id in earlier and earlier[case_id] != label
        ),
    )


def _labels(outcomes: Outcomes) -> dict[str, tuple[int, str]]:
    columns = outcomes.frame[["case_id", "case_version", "label"]]
    return {
        case_id: (version, label)
        for case_id, version, label in columns.itertuples(index=False, name=None)
    }


def _golden_words(golden: GoldenChange) -> str:
    counts = {"added": golden.added, "removed": golden.removed, "changed": golden.changed}
    said = ", ".join(f"{len(ids)} {what}" for what, ids in counts.items() if ids)
    named = f" {golden.before} → {golden.after}" if golden.before != golden.after else ""
    return f"golden set{named}: {said or 'no case added, removed or relabelled'}"


def _other_words(found: Conditions) -> str:
    return ", ".join(sorted({change.field for change in found.changes}))
