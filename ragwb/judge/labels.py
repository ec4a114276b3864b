"""What people say: labels by item, annotator and criterion, read from CSV or JSON Lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from ragwb.errors import DataError, Fault
from ragwb.html import plain
from ragwb.judge.rows import name_of, raise_faults, read_rows
from ragwb.judge.rubric import MATERIAL
from ragwb.judge.scale import Scale, Value, check_rating, read_value
from ragwb.judge.tags import TAG, read_tags
from ragwb.measure.listed import count, some

# What a sheet shows beside the labels, or what the annotator wrote beside them.
SHOWN = frozenset({"answer_b", "comment"}).union(*MATERIAL.values())


@dataclass(frozen=True, slots=True)
class Label:
    """One annotator's value of one criterion for one item."""

    item_id: str
    annotator: str
    criterion: str
    value: Value


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels of one or several files.

    Attributes:
        labels: in the order of the files; (item, annotator, criterion) is unique.
        tags: by item, for slices.
        n_empty: cells that nobody filled in.
    """

    labels: tuple[Label, ...]
    tags: Mapping[str, Mapping[str, str]]
    n_empty: int = 0

    @property
    def criteria(self) -> tuple[str, ...]:
        """What was labelled, in the order of the files."""
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


def load_labels(*paths: str | Path, scales: Mapping[str, Scale] | None = None) -> Labels:
    """The labels of one or several files, such as the copies of a sheet that came back.

    CSV: item_id, annotator, a column a criterion, columns tags.<name>; JSON Lines: item_id,
    annotator, labels {criterion: value}, tags {name: value}. An empty cell is no label. The
    columns that a sheet shows (question, context, answer …) are passed over.

    Args:
        paths: the files, in any order; at least one.
        scales: by criterion; a value must be on the scale of its criterion.

    Raises:
        DataError: with every fault: no item or annotator, the same annotator twice for one item, a
            value that is no number or word, or not on the scale, a criterion that the rubric has
            not, a tag that is no text.
    """
    faults = list[Fault]()
    labels: dict[tuple[str, str, str], Label] = {}
    tags: dict[str, dict[str, str]] = {}
    lines: dict[tuple[str, str, str], str] = {}
    n_empty = 0
    for where, row in chain.from_iterable(read_rows(Path(path)) for path in paths):
        item_id, annotator = (name_of(row.get(key)) for key in ("item_id", "annotator"))
        said = list(_values(row))
        named = {"item_id": item_id, "annotator": annotator}
        if missing := [key for key, name in named.items() if not name]:
            # A row that an annotator has not come to yet has no name and no label.
            is_open = bool(item_id) and all(_is_empty(value) for _, value in said)
            n_empty += len(said) if is_open else 0
            faults += [
                Fault(where, key, "empty: every label needs it") for key in missing if not is_open
            ]
            continue
        try:
            tags.setdefault(item_id, {}).update(read_tags(row))
        except ValueError as error:
            faults.append(Fault(where, "tags", str(error)))
        n_empty += sum(_is_empty(value) for _, value in said)
        for criterion, value in said:
            key = (item_id, annotator, criterion)
            try:
                if not _is_empty(value):
                    labels[key] = Label(*key, _checked(key, value, lines, scales))
                    lines[key] = where
            except ValueError as error:
                faults.append(Fault(where, plain(criterion, width=60), str(error)))
    raise_faults(faults)
    if not labels:
        files = some([str(path) for path in paths])
        raise DataError(f"{files}: no label in it: item_id, annotator and a column a criterion")
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
            f"labels of {count(len(unknown), 'item')} that {where} does not know: {shown}"
            f"{' …' if len(unknown) > 3 else ''}; are both files of the same sample?"
        )


def _checked(
    key: tuple[str, str, str],
    said: Any,
    lines: Mapping[tuple[str, str, str], str],
    scales: Mapping[str, Scale] | None,
) -> Value:
    """The value of a label that may stand; a ValueError says why it may not."""
    item_id, annotator, criterion = key
    value = _value(said)
    if key in lines:
        raise ValueError(
            f"{plain(annotator, width=40)} labels {plain(item_id, width=60)} twice, first at "
            f"{lines[key]}: keep one"
        )
    if scales is None:
        return value
    if criterion not in scales:
        raise ValueError(f"no criterion of the rubric; it has {', '.join(scales)}")
    if not scales[criterion].holds(value):
        allowed = ", ".join(map(str, scales[criterion].values))
        raise ValueError(f"{plain(value, width=40)!r} is not on the scale {allowed}")
    return value


def _values(row: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    nested = row.get("labels")
    if isinstance(nested, Mapping):
        yield from nested.items()
        return
    for name, value in row.items():
        if name not in SHOWN | {"item_id", "annotator", "tags"} and not name.startswith(TAG):
            yield name, value


def _is_empty(said: Any) -> bool:
    return said is None or (isinstance(said, str) and not said.strip())


def _value(said: Any) -> Value:
    """A number where it reads as one, a word else; a ValueError says why it is neither."""
    if isinstance(said, bool):
        return str(said).casefold()
    try:
        if isinstance(said, int):
            check_rating(said)
            return said
        value = read_value(said if isinstance(said, str) else str(said))
    except ValueError as error:
        raise ValueError(f"{plain(said, width=40)!r} {error}") from error
    if value is None or isinstance(said, list | dict):
        raise ValueError(f"{plain(said, width=40)!r} is no label: write one number or one word")
    return value
