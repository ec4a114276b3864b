"""Blind review: a stratified sample as a sheet, without scores, model names or telling ids."""

from __future__ import annotations

import hashlib
import json
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ragwb.errors import DataError, UsageError
from ragwb.files import read_text, write_whole
from ragwb.html import plain
from ragwb.judge.items import Item
from ragwb.judge.labels import Labels
from ragwb.judge.rows import write_csv
from ragwb.judge.rubric import MATERIAL, Rubric
from ragwb.judge.strict_json import read_strictly
from ragwb.judge.tags import find_tag
from ragwb.measure.statistics import SEED

KEY_ENDING = ".key.json"
# As many as a person labels in an afternoon, and what a calibration needs.
SHEET_ITEMS = 50


@dataclass(frozen=True, slots=True)
class Sample:
    """Items to be labelled, shuffled.

    Attributes:
        items: with sheet ids that tell nothing.
        key: the item id behind each sheet id.
        strata: (stratum, items drawn, items there were), sorted by stratum.
    """

    items: tuple[Item, ...]
    key: Mapping[str, str]
    strata: tuple[tuple[str, int, int], ...]


def draw_sample(
    items: Sequence[Item], size: int, *, by: Sequence[str] = (), seed: int = SEED
) -> Sample:
    """A stratified sample without replacement: shares as in the whole, and one of each stratum.

    Args:
        items: to draw from.
        size: items to draw, at least as many as there are strata, at most all.
        by: tags whose values make the strata, as `name` or `tags.name`; none: one stratum.
        seed: of the drawing and the order; the same gives the same sheet.

    Raises:
        UsageError: no such size, or a tag that no item has.
    """
    strata = _strata(items, by)
    if not len(strata) <= size <= len(items):
        raise UsageError(
            f"{size} items: there are {len(items)} in {len(strata)} strata; give a number between"
        )
    rng = random.Random(seed)
    counts = _allocate({name: len(held) for name, held in strata.items()}, size)
    drawn = [item for name in sorted(strata) for item in rng.sample(strata[name], counts[name])]
    rng.shuffle(drawn)
    ids = {item.item_id: _sheet_id(item.item_id, seed) for item in drawn}
    return Sample(
        items=tuple(replace(item, item_id=ids[item.item_id]) for item in drawn),
        key={sheet_id: item_id for item_id, sheet_id in ids.items()},
        strata=tuple((name, counts[name], len(strata[name])) for name in sorted(strata)),
    )


def write_sheet(sample: Sample, rubric: Rubric, path: Path) -> Path:
    """Write the sheet as CSV, and its key beside it; the sheet has no scores, models or tags.

    Args:
        sample: as drawn.
        rubric: its criteria become empty columns.
        path: of the CSV; a file that is there is not replaced, for somebody may have labelled it.

    Returns:
        The path of the key, which annotators should not see.

    Raises:
        UsageError: the file is there.
        DataError: a file cannot be written.
    """
    key = path.with_name(path.name + KEY_ENDING)
    for there in (path, key):
        if there.exists():
            raise UsageError(f"{there} is there, and may hold labels: give another name")
    shown = MATERIAL[rubric.kind]
    criteria = [criterion.name for criterion in rubric.criteria]
    columns = ["item_id", "annotator", *shown, *criteria, "comment"]
    empty = dict.fromkeys(["annotator", *criteria, "comment"], "")
    rows = [
        {"item_id": item.item_id, **empty, **{n: item.material.get(n, "") for n in shown}}
        for item in sample.items
    ]
    try:
        write_csv(path, columns, rows)
        write_whole(key, json.dumps(dict(sample.key), ensure_ascii=False, indent=1).encode())
    except OSError as error:
        raise DataError(f"{error.filename or path}: {error.strerror}") from error
    return key


def restore_ids(labels: Labels, key_path: Path) -> Labels:
    """Labels of a sheet under the ids of the items behind it.

    Raises:
        DataError: the key cannot be read, or does not know a label's item.
    """
    key = load_key(key_path)
    unknown = [one.item_id for one in labels.labels if one.item_id not in key]
    if unknown:
        shown = plain(unknown[0], width=60)
        raise DataError(f"{key_path}: does not know {shown!r}; is it of this sheet?")
    return Labels(
        tuple(replace(one, item_id=key[one.item_id]) for one in labels.labels),
        {key[item_id]: tags for item_id, tags in labels.tags.items() if item_id in key},
        labels.n_empty,
    )


def load_key(path: Path) -> dict[str, str]:
    """The item behind each id of a sheet.

    Raises:
        DataError: the file cannot be read, or is no object that gives each id of a sheet an item of
            its own.
    """
    text = read_text(path, DataError)
    try:
        said = read_strictly(text)
    except ValueError as error:
        raise DataError(f"{path}: not the key of a sheet: {plain(error, width=120)}") from error
    if not isinstance(said, dict):
        raise DataError(f"{path}: not the key of a sheet: it must be an object of ids")
    sheet_ids: dict[str, str] = {}
    for sheet_id, item_id in said.items():
        shown = plain(sheet_id, width=60)
        if not isinstance(item_id, str) or not item_id.strip():
            raise DataError(f"{path}: not the key of a sheet: {shown!r} must stand for one item")
        if item_id in sheet_ids:
            raise DataError(
                f"{path}: not the key of a sheet: {plain(sheet_ids[item_id], width=60)!r} and "
                f"{shown!r} both stand for item {plain(item_id, width=60)!r}"
            )
        sheet_ids[item_id] = sheet_id
    return said


def _strata(items: Sequence[Item], by: Sequence[str]) -> dict[str, list[Item]]:
    known = {tag for item in items for tag in item.tags}
    by = [find_tag(name, known) for name in by]
    strata: dict[str, list[Item]] = defaultdict(list)
    for item in items:
        strata[" · ".join(item.tags.get(name, "–") for name in by)].append(item)
    return dict(strata)


def _allocate(sizes: Mapping[str, int], total: int) -> dict[str, int]:
    """Largest remainders over what is left when each stratum has one."""
    free, rest = total - len(sizes), sum(sizes.values()) - len(sizes)
    exact = {name: free * (size - 1) / rest if rest else 0.0 for name, size in sizes.items()}
    counts = {name: 1 + int(share) for name, share in exact.items()}
    order = sorted(sizes, key=lambda name: (int(exact[name]) - exact[name], name))
    for name in order[: total - sum(counts.values())]:
        counts[name] += 1
    return counts


def _sheet_id(item_id: str, seed: int) -> str:
    # A letter first: a spreadsheet would write an id of digits, or such as 12e34567, its own way.
    return "s" + hashlib.sha256(f"{seed}\0{item_id}".encode()).hexdigest()[:10]
