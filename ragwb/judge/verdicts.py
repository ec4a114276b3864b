"""What a judge says: a row an item, order and repeat, saved as JSON Lines and read back.

A verdict that is malformed or missing is unscored: it has no scores and a reason, never a 0.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal

from pydantic import (
    ConfigDict,
    StrictFloat,
    StrictInt,
    StrictStr,
    TypeAdapter,
    ValidationError,
)

from ragwb.errors import DataError, Fault
from ragwb.files import write_whole
from ragwb.html import plain, terminal_json
from ragwb.judge.rows import raise_faults, read_rows
from ragwb.judge.scale import LARGEST, Scale, Value, check_rating

Order = Literal["given", "swapped"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """One answer of a judge about one item.

    Attributes:
        item_id: what was judged.
        scores: by criterion; None when unscored. Where two candidates are compared a positive
            number speaks for the second as given, whatever order they were shown in.
        unscored: why there are no scores.
        order: whether two candidates were shown as given or swapped.
        repeat: which of the fixed number of repeats, from 1.
        rationale: the judge's own words, untrusted.
        model, rubric, rubric_hash, temperature: who judged, and by what.
        length_chars: characters of the answer; of two, the second's minus the first's.
        tags: for slices.
        prompt_tokens, completion_tokens: as the endpoint counts them; 0 from the cache.
        from_cache: whether nobody was asked.
    """

    __pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)

    item_id: str
    # Strict: true is 1 for Python, and no score.
    scores: Mapping[str, StrictInt | StrictFloat | StrictStr] | None = None
    unscored: str | None = None
    order: Order = "given"
    repeat: int = 1
    rationale: str = ""
    model: str | None = None
    rubric: str | None = None
    rubric_hash: str | None = None
    temperature: float | None = None
    length_chars: int | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    from_cache: bool = False


_VERDICT = TypeAdapter(Verdict)


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The verdicts of one judge: one model, one rubric.

    Attributes:
        verdicts: in the order of the file; (item, order, repeat) is unique.
    """

    verdicts: tuple[Verdict, ...]

    @property
    def model(self) -> str | None:
        """The judge's model; None where the file does not say it."""
        return self.verdicts[0].model if self.verdicts else None

    @property
    def rubric(self) -> str | None:
        """The rubric's name and version."""
        return self.verdicts[0].rubric if self.verdicts else None

    @property
    def rubric_hash(self) -> str | None:
        """What the rubric was to the letter."""
        return self.verdicts[0].rubric_hash if self.verdicts else None

    @property
    def item_ids(self) -> tuple[str, ...]:
        """What was judged, unscored items too, each once."""
        return tuple(dict.fromkeys(verdict.item_id for verdict in self.verdicts))

    @property
    def criteria(self) -> tuple[str, ...]:
        """What was scored."""
        said = (verdict.scores or {} for verdict in self.verdicts)
        return tuple(dict.fromkeys(name for scores in said for name in scores))

    def unscored(self) -> dict[str, str]:
        """Items without a single score, and why not."""
        scored = {verdict.item_id for verdict in self.verdicts if verdict.scores}
        return {
            verdict.item_id: verdict.unscored or "no verdict"
            for verdict in self.verdicts
            if verdict.item_id not in scored
        }

    def without_scores_of(self, item_ids: Collection[str]) -> Verdicts:
        """The same verdicts, some items left unscored because they are outside a comparison."""
        return Verdicts(
            tuple(
                replace(verdict, scores=None, unscored="outside the comparison")
                if verdict.item_id in item_ids and verdict.scores
                else verdict
                for verdict in self.verdicts
            )
        )

    def off_scale(self, criterion: str, scale: Scale) -> list[tuple[str, Value]]:
        """Item and score of each verdict that a scale does not hold, in the order of the file."""
        return [
            (verdict.item_id, verdict.scores[criterion])
            for verdict in self.verdicts
            if verdict.scores
            and criterion in verdict.scores
            and not scale.holds(verdict.scores[criterion])
        ]

    def of(self, criterion: str, scale: Scale | None = None) -> dict[str, Value]:
        """One value an item: the mean of its numbers, the commonest of its words.

        An item whose words tie has no value, and neither has one that is unscored.

        Args:
            criterion: what was scored.
            scale: of numbers; when every single verdict is on it, a mean takes the nearest value.
        """
        said: dict[str, list[Value]] = defaultdict(list)
        for verdict in self.verdicts:
            if verdict.scores and criterion in verdict.scores:
                said[verdict.item_id].append(verdict.scores[criterion])
        on_scale = scale is not None and all(
            scale.holds(value) for values in said.values() for value in values
        )
        joined = {item_id: join_repeats(values) for item_id, values in said.items()}
        return {
            item_id: scale.nearest(value)
            if on_scale and scale is not None and not isinstance(value, str)
            else value
            for item_id, value in joined.items()
            if value is not None
        }


def join_repeats(values: Iterable[Value]) -> Value | None:
    """One value for several verdicts on one item; None when words tie or nothing was said."""
    held = list(values)
    numbers = [value for value in held if not isinstance(value, str)]
    if len(numbers) == len(held):
        return _mean(numbers)
    counted = Counter(map(str, held)).most_common(2)
    if len(counted) > 1 and counted[0][1] == counted[1][1]:
        return None
    return counted[0][0]


def _mean(numbers: list[int | float]) -> Value | None:
    if not numbers:
        return None
    mean = sum(numbers) / len(numbers)
    return int(mean) if mean == int(mean) else mean


def save_verdicts(verdicts: Iterable[Verdict], path: str | Path) -> None:
    """Write verdicts as JSON Lines, replacing the file in one step.

    Raises:
        DataError: the file cannot be written.
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, (_line(verdict) for verdict in verdicts))
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror}") from error


def load_verdicts(path: str | Path) -> Verdicts:
    """The verdicts of a file.

    Raises:
        DataError: with every fault: a line that is no verdict or says both a score and why there
            is none, a number that is none, the same item, order and repeat twice, or more than one
            model or rubric in one file.
    """
    path, faults, verdicts = Path(path), list[Fault](), list[Verdict]()
    seen: dict[tuple[str, str, int], str] = {}
    for where, row in read_rows(path):
        try:
            verdict = _VERDICT.validate_python(row)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            name = ".".join(str(part) for part in first["loc"])
            faults.append(Fault(where, name, plain(first["msg"], width=120)))
            continue
        faults += [Fault(where, name, message) for name, message in _wrong(verdict)]
        key = (verdict.item_id, verdict.order, verdict.repeat)
        if key in seen:
            faults.append(Fault(where, "item_id", f"judged twice, first at {seen[key]}"))
        seen[key] = where
        verdicts.append(verdict)
    raise_faults(faults)
    if not verdicts:
        raise DataError(f"{path}: no verdict in it")
    _check_one_judge(path, verdicts)
    return Verdicts(tuple(verdicts))


def _wrong(verdict: Verdict) -> Iterator[tuple[str, str]]:
    """What contradicts itself in a verdict, or cannot be computed with, by field."""
    if verdict.scores and verdict.unscored:
        yield "unscored", "the verdict has scores too: it is scored or not, keep one of both"
    for name, score in (verdict.scores or {}).items():
        try:
            check_rating(score)
        except ValueError as error:
            shown = plain(score, width=40)
            yield f"scores.{plain(name, width=60)}", f"{shown} {error}"
    for name in ("repeat", "length_chars", "prompt_tokens", "completion_tokens"):
        if abs(getattr(verdict, name) or 0) > LARGEST:
            yield name, "a number beyond 2^53"


def _check_one_judge(path: Path, verdicts: list[Verdict]) -> None:
    for name in ("model", "rubric_hash", "temperature"):
        said = list(dict.fromkeys(getattr(verdict, name) for verdict in verdicts))
        if len(said) > 1:
            shown = ", ".join(plain(value, width=40) for value in said[:3])
            raise DataError(f"{path}: several judges in one file: {name} is {shown}; give one each")


def _line(verdict: Verdict) -> bytes:
    return terminal_json(json.dumps(asdict(verdict), ensure_ascii=False)).encode() + b"\n"
