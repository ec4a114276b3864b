"""Faults to plant in the service, as a TOML file lists them: what a triage is held against.

A file names its golden sets (`golden`, relative to it), whether they are answered (`answers`), the
settings of the sound service (a table `[service]`), and any number of faults (`[[fault]]`), each
with a name, a kind, what it is planted for (documents or cases) and the reason code that a triage
has to name for the cases it breaks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from ragwb.errors import DataError, Fault, UsageError
from ragwb.files import read_toml
from ragwb.html import plain
from ragwb.service.config import ServiceConfig
from ragwb.service.fault_kinds import ALL, AnyFault, Configure

# Settings of a service that say how it searches; where things are and who may ask is no fault.
SETTABLE = frozenset(
    {
        *("mode", "candidate_k", "vector_weight", "keyword_weight", "rrf_k", "rerank"),
        *("rerank_weight", "threshold", "deduplicate", "context_budget_tokens"),
        *("answer_threshold", "answer_sentences", "answer_clarify"),
    }
)

_FAULT: TypeAdapter[AnyFault] = TypeAdapter(AnyFault)


@dataclass(frozen=True, slots=True)
class FaultFile:
    """What a file says.

    Attributes:
        golden: the golden sets whose cases the faults break.
        settings: of the sound service, beside its defaults.
        faults: in their order.
        answers: whether the questions are to be answered; else the service only retrieves.
    """

    golden: tuple[Path, ...]
    settings: Mapping[str, Any]
    faults: tuple[AnyFault, ...]
    answers: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """Faults to plant together, and the sound service that they are planted in.

    Attributes:
        settings: of the sound service, beside its defaults.
        faults: in the order of their file.
        questions: the question of every case that a fault may name, by case id.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    faults: tuple[AnyFault, ...] = ()
    questions: Mapping[str, str] = field(default_factory=dict)


NO_FAULTS = Plan()


def read_faults(path: Path) -> FaultFile:
    """The faults of a TOML file.

    Raises:
        UsageError: the file cannot be read or is not TOML.
        DataError: a table is wrong; all mistakes at once.
    """
    table = _load(path)
    faults, mistakes = _read_tables(table, str(path))
    settings, golden = table.get("service", {}), table.get("golden", [])
    answers = table.get("answers", False)
    mistakes += [Fault(str(path), "service", text) for text in _wrong_settings(settings)]
    if not isinstance(golden, list) or not all(isinstance(name, str) for name in golden):
        mistakes.append(Fault(str(path), "golden", "must be a list of files"))
    if not isinstance(answers, bool):
        mistakes.append(Fault(str(path), "answers", "must be true or false"))
    if not mistakes:
        mistakes = [
            Fault(f"{path}: fault {fault.name}", place, text)
            for fault in faults
            for place, text in _wrong_together(settings, fault)
        ]
    if mistakes:
        more = f" (and {len(mistakes) - 1} more)" if len(mistakes) > 1 else ""
        raise DataError(f"{mistakes[0]}{more}", mistakes)
    paths = tuple(path.parent / name for name in golden)
    return FaultFile(paths, settings, tuple(faults), answers)


def choose(file: FaultFile, names: Sequence[str], questions: Mapping[str, str]) -> Plan:
    """The faults of these names, all without any, with the settings that each is planted in.

    Args:
        file: the faults to choose from.
        names: some of theirs.
        questions: by case id.

    Raises:
        UsageError: a name is not in the file, two faults need different settings, or a fault names
            a case that there is no question of.
    """
    known = [fault.name for fault in file.faults]
    for name in names:
        if name not in known:
            raise UsageError(f"no fault {plain(name, width=60)!r}: one of {', '.join(known)}")
    faults = tuple(fault for fault in file.faults if not names or fault.name in names)
    settings = dict(file.settings)
    for fault in faults:
        for key, value in fault.service.items():
            if any(other.service.get(key, value) != value for other in faults):
                raise UsageError(f"the faults need different values of {key}: choose some by name")
            settings[key] = value
        for case_id in fault.cases:
            if case_id != ALL and case_id not in questions:
                raise UsageError(
                    f"fault {fault.name}: no case {plain(case_id, width=60)!r} in the golden set"
                )
    return Plan(settings, faults, questions)


def _load(path: Path) -> dict[str, Any]:
    if path.exists() and not path.is_file():
        raise UsageError(f"{path}: cannot be read: not a plain file")
    return read_toml(path, UsageError)


def _read_tables(table: Mapping[str, Any], where: str) -> tuple[list[AnyFault], list[Fault]]:
    """The faults that are right, and what is wrong with the others and beside them."""
    known = ("answers", "fault", "golden", "service")
    mistakes = [
        Fault(where, plain(key, width=60), f"unknown; known: {', '.join(known)}")
        for key in sorted(set(table) - set(known))
    ]
    entries = table.get("fault")
    if not isinstance(entries, list) or not entries:
        return [], [*mistakes, Fault(where, "fault", "none: give [[fault]] tables")]
    faults: list[AnyFault] = []
    for number, entry in enumerate(entries, start=1):
        fault, found = _read_fault(entry, f"{where}: fault {_called(entry, number)}")
        mistakes += found
        if fault is not None:
            faults.append(fault)
    return faults, [*mistakes, *_wrong_names(where, faults)]


def _called(entry: object, number: int) -> str:
    name = entry.get("name") if isinstance(entry, Mapping) else None
    return plain(name, width=60) if isinstance(name, str) and name else f"number {number}"


def _read_fault(entry: object, where: str) -> tuple[AnyFault | None, list[Fault]]:
    try:
        return _FAULT.validate_python(entry), []
    except ValidationError as error:
        found = error.errors(include_url=False)
        return None, [Fault(where, _place(item["loc"]), _message(item)) for item in found]


def _place(location: Sequence[int | str]) -> str:
    # The first step names the kind, which the table says already.
    steps = location[1:] if len(location) > 1 else location
    return ".".join(str(step) for step in steps)


def _message(item: Any) -> str:
    kind = item["type"]
    if kind == "union_tag_not_found":
        return "kind is missing: say what is broken"
    if kind == "union_tag_invalid":
        return f"kind is one of {item['ctx']['expected_tags']}"
    if kind == "extra_forbidden":
        return "unknown key for this kind"
    return plain(str(item["msg"]).replace("Input should", "must"), width=160)


def _wrong_names(where: str, faults: Iterable[AnyFault]) -> Iterator[Fault]:
    seen: set[str] = set()
    for fault in faults:
        if fault.name in seen:
            yield Fault(f"{where}: fault {fault.name}", "name", "given twice: give another")
        seen.add(fault.name)
    for fault in faults:
        if fault.against is not None and fault.against not in seen - {fault.name}:
            named = plain(fault.against, width=60)
            yield Fault(f"{where}: fault {fault.name}", "against", f"no other fault {named!r}")


def _wrong_together(settings: Mapping[str, Any], fault: AnyFault) -> Iterator[tuple[str, str]]:
    """What is wrong with the settings of a fault on top of those that it is planted in."""
    sound = {**settings, **fault.service}
    found = list(_wrong_settings(sound))
    yield from (("service", text) for text in found)
    if isinstance(fault, Configure) and not found:
        planted = {**sound, **fault.settings}
        yield from (("settings", text) for text in _wrong_settings(planted))


def _wrong_settings(settings: object) -> Iterator[str]:
    if not isinstance(settings, Mapping):
        yield "must be a table"
        return
    unknown = sorted(set(settings) - SETTABLE)
    if unknown:
        yield f"unknown setting {plain(unknown[0])!r}; known: {', '.join(sorted(SETTABLE))}"
        return
    try:
        ServiceConfig(corpus=Path(), index_dir=Path(), cache_dir=Path(), **settings)
    except UsageError as error:
        yield str(error)
