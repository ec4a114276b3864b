"""What people say: labels by item, annotator and criterion, read from CSV or JSON Lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragwb.errors import DataError, Fault
from ragwb.html import plain
from ragwb.judge.rows import raise_faults, read_rows
from ragwb.judge.scale import Scale, Value, read_value

# What a sheet shows beside the labels, or what the annotator wrote beside them.
SHOWN = frozenset({"question", "context", "answer", "answer_b", "reference", "comment"})
TAG = "tags."


@dataclass(frozen=True, slots=True)
class Label:
    """One annotator's value of one criterion for one item."""

    item_id: str
    annotator: str
    criterion: str
    value: Value


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels of a file.

    Attributes:
        labels: in the order of the file; (item, annotator, criterion) is unique.
        tags: by item, for slices.
        n_empty: cells that nobody filled in.
    """

    labels: tuple[Label, ...]
    tags: Mapping[str, Mapping[str, str]]
    n_empty: int = 0

    @property
    def criteria(self) -> tuple[str, ...]:
        """What was labelled, in the order of the file."""
        return tuple(dict.fromkeys(label.criterion for label in self.labels))

    @property
    def annotators(self) -> tuple[str, ...]:
        """Who labelled, sorted."""
        return tuple(sorted({label.annotator for label in self.labels}))

    def of(self, criterion: str) -> dict[str, dict[str, Value]]:
        """The values of a criterion: by item, then by annotator."""
        found: dict[str, dict[str, Value]] = {}
        for label in self.labels:
            if label.criterion == criterion:
                found.setdefault(label.item_id, {})[label.annotator] = label.value
        return found


def load_labels(path: str | Path, *, scales: Mapping[str, Scale] | None = None) -> Labels:
    """The labels of a file.

    CSV: item_id, annotator, a column a criterion, columns tags.<name>; JSON Lines: item_id,
    annotator, labels {criterion: value}, tags {name: value}. An empty cell is no label. The
    columns that a sheet shows (question, context, answer …) are passed over.

    Args:
        path: the file.
        scales: by criterion; a value must be on the scale of its criterion.

    Raises:
        DataError: with every fault: no item or annotator, the same annotator twice for one item, a
            value that is not on the scale, a criterion that the rubric has not.
    """
    path, faults = Path(path), list[Fault]()
    labels: dict[tuple[str, str, str], Label] = {}
    tags: dict[str, dict[str, str]] = {}
    lines: dict[tuple[str, str, str], str] = {}
    n_empty = 0
    for where, row in read_rows(path):
        item_id, annotator = (_name(row.get(key)) for key in ("item_id", "annotator"))
        missing = [
            key for key, name in (("item_id", item_id), ("annotator", annotator)) if not name
        ]
        if missing:
            faults += [Fault(where, key, "empty: every label needs it") for key in missing]
            continue
        tags.setdefault(item_id, {}).update(_tags(row))
        for criterion, said in _values(row):
            value = _value(said)
            if value is None:
                n_empty += 1
                continue
            key = (item_id, annotator, criterion)
            if fault := _fault(key, value, lines, scales):
                faults.append(Fault(where, criterion, fault))
                continue
            lines[key] = where
            labels[key] = Label(item_id, annotator, criterion, value)
    raise_faults(faults)
    if not labels:
        raise DataError(f"{path}: no label in it: item_id, annotator and a column a criterion")
    return Labels(tuple(labels.values()), tags, n_empty)


def check_known(labels: Labels, item_ids: Sequence[str] | frozenset[str], *, where: str) -> None:
    """Refuse labels of items that nobody knows.

    Raises:
        DataError: naming the first of them.
    """
    known = frozenset(item_ids)
    unknown = [i for i in dict.fromkeys(label.item_id for label in labels.labels) if i not in known]
    if unknown:
        shown = ", ".join(plain(i, width=60) for i in unknown[:3])
        raise DataError(
            f"labels of {len(unknown)} items that {where} does not know: {shown}"
            f"{' …' if len(unknown) > 3 else ''}; are both files of the same sample?"
        )


def _fault(
    key: tuple[str, str, str],
    value: Value,
    lines: Mapping[tuple[str, str, str], str],
    scales: Mapping[str, Scale] | None,
) -> str | None:
    item_id, annotator, criterion = key
    if key in lines:
        return (
            f"{plain(annotator, width=40)} labels {plain(item_id, width=60)} twice, first at "
            f"{lines[key]}: keep one"
        )
    if scales is None:
        return None
    if criterion not in scales:
        return f"no criterion of the rubric; it has {', '.join(scales)}"
    if not scales[criterion].holds(value):
        allowed = ", ".join(map(str, scales[criterion].values))
        return f"{plain(value, width=40)!r} is not on the scale {allowed}"
    return None


def _values(row: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    nested = row.get("labels")
    if isinstance(nested, Mapping):
        yield from nested.items()
        return
    for name, value in row.items():
        if name not in SHOWN | {"item_id", "annotator", "tags"} and not name.startswith(TAG):
            yield name, value


def _tags(row: Mapping[str, Any]) -> dict[str, str]:
    nested = row.get("tags")
    found = dict(nested) if isinstance(nested, Mapping) else {}
    found |= {name.removeprefix(TAG): value for name, value in row.items() if name.startswith(TAG)}
    return {str(name): str(value) for name, value in found.items() if value not in (None, "")}


def _name(said: Any) -> str:
    return "" if said is None or isinstance(said, bool | list | dict) else str(said).strip()


def _value(said: Any) -> Value | None:
    """A number where it reads as one, a word else; None for an empty cell."""
    if said is None or isinstance(said, bool | list | dict):
        return None if said is None else str(said).casefold()
    if isinstance(said, int):
        return said
    return read_value(str(said))
