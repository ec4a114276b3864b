"""A baseline that is a file of figures: no cases to pair, so it holds less than a run does."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragwb.decide.gate.figures import blocking
from ragwb.decide.gate.policy_rules import Figure
from ragwb.decide.outcomes import Outcomes
from ragwb.decide.plausible import check_figures
from ragwb.errors import DataError, Fault
from ragwb.files import read_bytes
from ragwb.html import plain


@dataclass(frozen=True, slots=True)
class Stored:
    """The figures of a run that is not here, such as the JSON of an eval that is under git.

    Attributes:
        name: its file.
        metrics: figures by name, None where undefined.
        dataset_version, top_k, n_cases: None where it does not say so.
        failed: cases that failed at top K; None where it does not name them.
        unknown: cases that were left out or failed to be answered.
    """

    name: str
    metrics: Mapping[str, float | None]
    dataset_version: str | None = None
    top_k: int | None = None
    n_cases: int | None = None
    failed: frozenset[str] | None = None
    unknown: frozenset[str] = frozenset()

    def value(self, figure: Figure) -> float | None:
        """A figure under our name or as others write it, such as recall_at_5."""
        names = [str(figure)]
        if figure.k is not None:
            names += [f"{figure.name}_at_{figure.k}", f"{figure.name}_{figure.k}"]
        return next((self.metrics[name] for name in names if name in self.metrics), None)

    def passed(self, candidate: Outcomes) -> frozenset[str] | None:
        """The candidate's cases that passed here; None where the file cannot tell."""
        manifest = candidate.manifest
        is_same_set = manifest is not None and (
            (self.dataset_version, self.n_cases) == (manifest.dataset_version, candidate.n_cases)
        )
        if self.failed is None or not is_same_set or self.top_k != candidate.k:
            return None
        ids = frozenset(blocking(candidate)["case_id"])
        return ids - self.failed - self.unknown


def load_stored(path: Path) -> Stored:
    """The figures in a JSON file: an eval's report, or names and numbers.

    Raises:
        DataError: it cannot be read, is no such JSON, or its figures are impossible together.
    """
    said = _read(path)
    held = said.get("metrics", said)
    if not isinstance(held, dict):
        raise DataError(f"{path}: metrics: must be figures by name")
    metrics = {
        str(name): None if value is None else float(value)
        for name, value in held.items()
        if value is None or (isinstance(value, int | float) and not isinstance(value, bool))
    }
    if not any(value is not None for value in metrics.values()):
        raise DataError(f"{path}: holds no figure: give a run, or the JSON of an eval's report")
    if faults := [Fault(str(path), "", plain(one, width=300)) for one in check_figures(metrics)]:
        raise DataError(
            f"{faults[0]}; no run can have given it: measure the baseline again", faults
        )
    failed = _ids(said, "failed_case_ids", None)
    return Stored(
        name=str(path),
        metrics=metrics,
        dataset_version=_typed(said, "dataset_version", str),
        top_k=_typed(said, "top_k", int),
        n_cases=_typed(said, "n_cases", int),
        failed=failed,
        unknown=(_ids(said, "excluded", "case_id") or frozenset())
        | (_ids(said, "errors", "case_id") or frozenset()),
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        said = json.loads(read_bytes(path), object_pairs_hook=_once)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not JSON of figures: {plain(error, width=200)}") from error
    if not isinstance(said, dict):
        raise DataError(f"{path}: must be a JSON object of figures")
    return said


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object each of whose names stands once: of two figures nobody knows which is meant."""
    said = dict(pairs)
    if len(said) < len(pairs):
        twice = next(name for name, n in Counter(name for name, _ in pairs).items() if n > 1)
        raise ValueError(f"{twice!r} is given twice; keep one")
    return said


def _typed(said: Mapping[str, Any], name: str, wanted: type) -> Any:
    value = said.get(name)
    return value if isinstance(value, wanted) and not isinstance(value, bool) else None


def _ids(said: Mapping[str, Any], name: str, key: str | None) -> frozenset[str] | None:
    """The case ids of a list, of texts or of objects; None where it is none."""
    held = said.get(name)
    if not isinstance(held, list):
        return None
    ids = (one.get(key) if key and isinstance(one, dict) else one for one in held)
    return frozenset(one for one in ids if isinstance(one, str))
