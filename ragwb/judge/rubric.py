"""What a judge is asked to decide: a file of criteria, scales, examples and an output schema.

A rubric is TOML or JSON: `name`, `version`, `kind` (answer, support, pair), `instructions`,
`criteria` (name, question, scale from the worst to the best, accept_from, meanings), `examples`
(kind positive or negative, the material, the verdict, why) and `output_schema`, a JSON schema of
the judge's reply, made from the criteria where the file has none. Its hash covers all of that, so
that a calibration is of exactly these words.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr, ValidationError

from ragwb.errors import DataError, Fault
from ragwb.files import MOST_TOML_BYTES, read_text
from ragwb.html import plain
from ragwb.judge.rows import raise_faults
from ragwb.judge.scale import LARGEST, Scale, Value
from ragwb.judge.schema import check_schema, schema_of
from ragwb.judge.strict_json import read_strictly
from ragwb.settings import shared_file

Kind = Literal["answer", "support", "pair"]
# What stands before the judge, by the kind of rubric.
MATERIAL: Mapping[Kind, tuple[str, ...]] = {
    "answer": ("question", "reference", "context", "answer"),
    "support": ("context", "claim"),
    "pair": ("question", "reference", "context", "first", "second"),
}
RATIONALE = "rationale"
# What else has a column in a sheet or a file of labels.
_RESERVED = frozenset({RATIONALE, "item_id", "annotator", "comment", "labels", "tags"}).union(
    *MATERIAL.values()
)


@dataclass(frozen=True, slots=True)
class Criterion:
    """One thing that the judge decides.

    Attributes:
        question: what it asks.
        scale: its values, from the worst to the best.
        accept_from: the least value that is good enough; None where it decides nothing.
        meanings: what a value means, by the value as text.
    """

    name: str
    question: str
    scale: Scale
    accept_from: Value | None = None
    meanings: Mapping[str, str] = field(default_factory=dict)

    def accepts(self, value: Value) -> bool:
        """Whether a value is good enough; everything is where the criterion decides nothing.

        Raises:
            DataError: a word that is not on the scale.
        """
        if self.accept_from is None:
            return True
        if isinstance(value, str) or isinstance(self.accept_from, str):
            if not self.scale.holds(value):
                shown = plain(value, width=40)
                raise DataError(f"{shown!r} is not on the scale of {self.name}: judge again")
            return self.scale.place(value) >= self.scale.place(self.accept_from)
        return value >= self.accept_from


@dataclass(frozen=True, slots=True)
class Example:
    """A worked verdict: `positive` shows what is good, `negative` what is not."""

    kind: Literal["positive", "negative"]
    material: Mapping[str, str]
    verdict: Mapping[str, Value]
    why: str


@dataclass(frozen=True, slots=True)
class Rubric:
    """A rubric as it was read.

    Attributes:
        hash: hex SHA-256 of its content, whatever the file's format, order of keys or comments.
        output_schema: the JSON schema of a reply.
    """

    name: str
    version: str
    kind: Kind
    instructions: str
    criteria: tuple[Criterion, ...]
    examples: tuple[Example, ...]
    output_schema: Mapping[str, Any]
    hash: str

    @property
    def label(self) -> str:
        """Name and version, for people."""
        return f"{self.name} {self.version}"

    @property
    def scales(self) -> dict[str, Scale]:
        """The scales by criterion."""
        return {criterion.name: criterion.scale for criterion in self.criteria}

    def accepts(self, scores: Mapping[str, Value]) -> bool:
        """Whether every criterion accepts its score.

        Raises:
            KeyError: a criterion has no score.
        """
        return all(criterion.accepts(scores[criterion.name]) for criterion in self.criteria)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


_Text = Annotated[str, Field(min_length=1)]
_Score = StrictInt | StrictStr


class _CriterionFile(_Strict):
    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    question: _Text
    scale: Annotated[tuple[_Score, ...], Field(min_length=2, max_length=100)]
    accept_from: _Score | None = None
    meanings: dict[str, str] = {}


class _ExampleFile(_Strict):
    kind: Literal["positive", "negative"]
    verdict: dict[str, _Score]
    why: _Text
    question: str | None = None
    reference: str | None = None
    context: str | None = None
    answer: str | None = None
    claim: str | None = None
    first: str | None = None
    second: str | None = None


class _RubricFile(_Strict):
    name: _Text
    version: _Text
    kind: Kind = "answer"
    instructions: _Text
    criteria: Annotated[tuple[_CriterionFile, ...], Field(min_length=1)]
    examples: tuple[_ExampleFile, ...] = ()
    output_schema: dict[str, Any] | None = None


def default_rubric(kind: Kind = "answer") -> Rubric:
    """The rubric of a kind that comes with ragwb."""
    return load_rubric(default_rubric_file(kind))


def default_rubric_file(kind: Kind) -> Path:
    """The file of the rubric of a kind that comes with ragwb."""
    return shared_file("datasets", "judge", f"{kind}.toml")


def load_rubric(path: str | Path) -> Rubric:
    """The rubric of a file.

    Raises:
        DataError: with every fault: not TOML or JSON, a field missing, unknown or wrong, a scale
            with a value twice, a pair's scale that is not symmetric, an example beside the scale,
            a schema that is none or that does not ask for the criteria.
    """
    path = Path(path)
    content = _read(path)
    try:
        said = _RubricFile.model_validate(content)
    except ValidationError as error:
        faults = [
            Fault(str(path), ".".join(map(str, part["loc"])), plain(part["msg"], width=160))
            for part in error.errors(include_url=False, include_input=False)
        ]
        raise DataError(_first(faults), faults) from error
    raise_faults([Fault(str(path), name, message) for name, message in _faults(said)])
    criteria = tuple(_criterion(one) for one in said.criteria)
    return Rubric(
        name=said.name,
        version=said.version,
        kind=said.kind,
        instructions=said.instructions.strip(),
        criteria=criteria,
        examples=tuple(_example(one) for one in said.examples),
        output_schema=said.output_schema or _schema(said),
        hash=_hash(said),
    )


def _read(path: Path) -> Any:
    text = read_text(path, DataError, most=MOST_TOML_BYTES)
    try:
        return read_strictly(text) if path.suffix.lower() == ".json" else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: neither TOML nor JSON: {plain(error, width=120)}") from error


def _first(faults: list[Fault]) -> str:
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return f"{faults[0]}{more}"


def _faults(said: _RubricFile) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    names = [criterion.name for criterion in said.criteria]
    found += [
        (f"criteria.{name}", "named twice" if names.count(name) > 1 else "a reserved name")
        for name in dict.fromkeys(names)
        if names.count(name) > 1 or name in _RESERVED
    ]
    for criterion in said.criteria:
        found += _scale_faults(criterion, said.kind)
    for number, example in enumerate(said.examples, 1):
        found += _example_faults(f"examples.{number}", example, said)
    if said.output_schema is not None and not found:
        scales = {criterion.name: criterion.scale for criterion in said.criteria}
        found += [("output_schema", fault) for fault in check_schema(said.output_schema, scales)]
    return found


def _scale_faults(criterion: _CriterionFile, kind: Kind) -> list[tuple[str, str]]:
    where, scale = f"criteria.{criterion.name}", criterion.scale
    found = []
    if len({type(value) for value in scale}) > 1:
        found.append((where, "scale mixes numbers and words"))
    elif len(set(scale)) < len(scale):
        found.append((where, "scale names a value twice"))
    elif any(isinstance(value, int) and abs(value) > LARGEST for value in scale):
        found.append((where, "scale holds a number beyond 2^53"))
    elif isinstance(scale[0], int) and list(scale) != sorted(scale, key=int):
        found.append((where, "scale must go from the worst to the best number"))
    elif kind == "pair" and [v for v in scale if isinstance(v, str)]:
        found.append((where, "a pair is compared by numbers, below 0 for the first"))
    elif kind == "pair" and sorted(-int(value) for value in scale) != list(scale):
        found.append((where, "a pair's scale must be the same on both sides of 0"))
    if criterion.accept_from is not None and criterion.accept_from not in scale:
        found.append((where, f"accept_from {criterion.accept_from!r} is not on the scale"))
    if kind == "pair" and criterion.accept_from is not None:
        found.append((where, "a pair is compared, not accepted: leave accept_from out"))
    unknown = [value for value in criterion.meanings if value not in map(str, scale)]
    found += [(where, f"meaning of {value!r}, which is not on the scale") for value in unknown]
    return found


def _example_faults(where: str, example: _ExampleFile, said: _RubricFile) -> list[tuple[str, str]]:
    scales = {criterion.name: criterion.scale for criterion in said.criteria}
    found = []
    if set(example.verdict) != set(scales):
        found.append((where, f"verdict must give {', '.join(scales)}"))
    for name, value in example.verdict.items():
        if name in scales and value not in scales[name]:
            found.append((where, f"{name} {value!r} is not on the scale"))
    given = _material(example)
    wrong = [name for name in given if name not in MATERIAL[said.kind]]
    found += [
        (where, f"{name} is nothing that a rubric of kind {said.kind} shows") for name in wrong
    ]
    needed = MATERIAL[said.kind][-1]
    if needed not in given:
        found.append((where, f"no {needed}: there is nothing to judge"))
    return found


def _material(example: _ExampleFile) -> dict[str, str]:
    names = ("question", "reference", "context", "answer", "claim", "first", "second")
    values = {name: getattr(example, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def _criterion(said: _CriterionFile) -> Criterion:
    return Criterion(
        said.name, said.question.strip(), Scale(said.scale), said.accept_from, said.meanings
    )


def _example(said: _ExampleFile) -> Example:
    return Example(said.kind, _material(said), said.verdict, said.why.strip())


def _schema(said: _RubricFile) -> dict[str, Any]:
    return schema_of({criterion.name: criterion.scale for criterion in said.criteria}, RATIONALE)


def _hash(said: _RubricFile) -> str:
    content = said.model_dump(mode="json")
    content["output_schema"] = said.output_schema or _schema(said)
    written = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(written.encode()).hexdigest()
