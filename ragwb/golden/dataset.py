"""A golden set: a JSONL file of cases, read line by line, checked as a whole, hashed, written back.

Read besides: a BOM, CRLF, blank lines, objects over several lines, and one JSON array of objects.
All faults of a file are reported at once. A file that carries identity or a time is refused:
identity comes from the token, time from the server's clock.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ragwb.errors import Fault, GoldenError
from ragwb.files import write_whole
from ragwb.golden.case import MISSING_EVIDENCE, Case, lacks_evidence
from ragwb.golden.lines import RawCase, read_raw_cases
from ragwb.records import names_identity

CARRIES_IDENTITY = "carries identity or time: remove it, they come from the token and the server"

# Enough to mend a file by; a file of another kind has one a line, and nobody reads a million.
MAX_FAULTS = 10_000

_TYPE_NAMES = {
    "string_type": "must be text",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "tuple_type": "must be a list",
    "dict_type": "must be an object of texts",
    "model_type": "must be an object",
    "too_short": "must not be empty",
}


@dataclass(frozen=True, slots=True)
class Dataset:
    """A golden set that passed all checks.

    Attributes:
        version: the `dataset_version` of every case.
        cases: in the order of the file; ids are unique.
        content_hash: hex SHA-256 of the cases as they are written, however they were spelt.
        path: the file, when it came from one.
    """

    version: str
    cases: tuple[Case, ...]
    content_hash: str
    path: Path | None = None


def load_dataset(path: str | Path) -> Dataset:
    """The golden set of a file.

    Raises:
        GoldenError: with every fault of the file (up to `MAX_FAULTS`), each with line and field.
    """
    path = Path(path)
    cases: list[Case] = []
    faults: list[Fault] = []
    seen: dict[str, int] = {}
    versions: dict[str, int] = {}
    for raw in read_raw_cases(path):
        case, found = _read_case(raw, path)
        faults.extend(found)
        faults.extend(_check_in_set(raw, seen, versions, path))
        if case is not None:
            cases.append(case)
        if len(faults) >= MAX_FAULTS:
            faults.append(Fault(str(path), "", f"more than {MAX_FAULTS} faults: stopped reading"))
            break
    if not cases and not faults:
        faults.append(Fault(str(path), "", "no case in it: write one JSON object a line"))
    if faults:
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        raise GoldenError(f"{faults[0]}{more}", faults)
    return Dataset(cases[0].dataset_version, tuple(cases), hash_cases(cases), path)


def hash_cases(cases: Iterable[Case]) -> str:
    """Hex SHA-256 of the cases as `save_dataset` writes them."""
    digest = hashlib.sha256()
    for case in cases:
        digest.update(case_line(case).encode("utf-8"))
        digest.update(b"\n")
    return digest.hexdigest()


def case_line(case: Case) -> str:
    """A case as one line of JSON: snake_case, what equals its default left out."""
    return case.model_dump_json(exclude_defaults=True)


def save_dataset(cases: Iterable[Case], path: str | Path) -> None:
    """Writes cases as JSONL, replacing the file in one step; a failure leaves the old one.

    Raises:
        GoldenError: the file cannot be written.
    """
    lines = (f"{case_line(case)}\n".encode() for case in cases)
    try:
        write_whole(Path(path), lines)
    except OSError as error:
        raise GoldenError(f"{path}: cannot be written: {error.strerror}") from error


def _read_case(raw: RawCase, path: Path) -> tuple[Case | None, list[Fault]]:
    where = f"{path}:{raw.line}"
    if raw.fault is not None:
        return None, [Fault(where, "", raw.fault)]
    try:
        return _check_case(raw.value, where)
    except RecursionError:
        return None, [Fault(where, "", "nested too deeply to be a case")]


def _check_case(value: object, where: str) -> tuple[Case | None, list[Fault]]:
    if not isinstance(value, dict):
        return None, [Fault(where, "", f"must be a JSON object, found {_show(value)}")]
    faults = [Fault(where, field, CARRIES_IDENTITY) for field in _find_identity(value)]
    try:
        case = Case.model_validate(value)
    except ValidationError as error:
        named = {fault.field for fault in faults}
        found = [(field, text) for field, text in _explain(error) if field not in named]
        if lacks_evidence(value) and ("evidence", MISSING_EVIDENCE) not in found:
            found.append(("evidence", MISSING_EVIDENCE))
        return None, faults + [Fault(where, field, text) for field, text in found]
    return (None, faults) if faults else (case, [])


def _check_in_set(
    raw: RawCase, seen: dict[str, int], versions: dict[str, int], path: Path
) -> Iterator[Fault]:
    """Faults of a case beside those before it, broken ones too; both dicts say on which line."""
    data = raw.value if isinstance(raw.value, dict) else {}
    where = f"{path}:{raw.line}"
    case_id = data.get("id")
    if isinstance(case_id, str) and case_id:
        if case_id in seen:
            yield Fault(where, "id", f"{_show(case_id)} stands on line {seen[case_id]} already")
        seen.setdefault(case_id, raw.line)
    version = data.get("dataset_version", data.get("datasetVersion"))
    if isinstance(version, str) and version and version not in versions:
        versions[version] = raw.line
        first, line = next(iter(versions.items()))
        if first != version:
            message = (
                f"{_show(version)} beside {_show(first)} on line {line}: one file, one version"
            )
            yield Fault(where, "dataset_version", message)


def _find_identity(value: object, field: str = "") -> Iterator[str]:
    """Places of keys that name an identity or a time, at any depth and in any spelling."""
    if isinstance(value, dict):
        for key, held in value.items():
            place = f"{field}.{key}" if field else str(key)
            if names_identity(str(key)):
                yield place
            else:
                yield from _find_identity(held, place)
    elif isinstance(value, list):
        for index, held in enumerate(value):
            yield from _find_identity(held, f"{field}[{index}]")


def _explain(error: ValidationError) -> Iterator[tuple[str, str]]:
    """(field, message) of each error of a case, in words for who mends the file."""
    for detail in error.errors(include_url=False):
        if detail["type"] == "too_short" and detail.get("input"):
            continue  # the list is short because its members failed, each with an error of its own
        context = detail.get("ctx", {})
        steps = [*detail["loc"], *([context["field"]] if "field" in context else [])]
        field = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
        yield field.removeprefix("."), _describe(detail["type"], detail, context)


def _describe(kind: str, detail: Mapping[str, Any], context: Mapping[str, Any]) -> str:
    found = _show(detail.get("input"))
    if kind == "missing":
        return "missing: give it"
    if kind == "extra_forbidden":
        name = str(detail["loc"][-1])
        near = difflib.get_close_matches(name, Case.model_fields, n=1, cutoff=0.75)
        return f"unknown field{f'; did you mean {near[0]}?' if near else ': remove it'}"
    if kind == "literal_error":
        return f"must be {context['expected']}, found {found}"
    if kind == "golden":
        return str(context["message"])
    if kind == "value_error":
        return str(context["error"])
    message = _TYPE_NAMES.get(kind) or detail["msg"].replace("Input should", "must")
    return f"{message}, found {found}"


def _show(value: object, limit: int = 60) -> str:
    """A value as short JSON, for a message."""
    text = json.dumps(value, ensure_ascii=True, default=str)
    return text if len(text) <= limit else f"{text[:limit]}…"
