"""What every run begins with: its arguments checked, its questions, its manifest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ragwb.errors import UsageError
from ragwb.golden.dataset import Dataset
from ragwb.golden.passages import ResolvedCase
from ragwb.runs.asking import Question
from ragwb.runs.manifest import RunManifest, package_versions, service_fields
from ragwb.runs.writer import asked_cases, new_run_id, utc_now
from ragwb.sources.reading import FullManifest


def check_range(name: str, value: int, low: int, high: int | None = None) -> None:
    """Refuse a number outside its range.

    Raises:
        UsageError: it is below `low`, or above `high` where there is one.
    """
    if value < low or (high is not None and value > high):
        allowed = f"from {low} to {high}" if high is not None else f"of at least {low}"
        raise UsageError(f"{name} {value}: must be a whole number {allowed}")


def check_labels(dataset: Dataset, identities: Mapping[str, Path]) -> None:
    """Refuse a golden set with a label that nobody's token belongs to.

    Raises:
        UsageError: a case that is asked has such a label.
    """
    for case in dataset.cases:
        label = case.access
        if label is not None and case.is_asked and label not in identities:
            raise UsageError(
                f"case {case.id} is asked as {label!r}, which has no token: "
                f"give --identity {label}=TOKEN_FILE"
            )


def questions_of(resolved: Sequence[ResolvedCase], repeats: Iterable[int]) -> list[Question]:
    """The questions of these repeats; each is a whole pass: all cases once, then all again."""
    return [
        Question(case.case.id, repeat, case.case.question, case.case.access)
        for repeat in repeats
        for case in asked_cases(resolved)
    ]


def in_own_words(said: FullManifest | None) -> dict[str, Any]:
    """What a service said of itself, to the letter; empty when it has no manifest."""
    return {} if said is None else said.model_dump(mode="json", by_alias=True, exclude_unset=True)


def new_manifest(
    dataset: Dataset,
    base_url: str | None,
    said: Mapping[str | None, FullManifest | None],
    *,
    top_k: int,
    repeats: int,
    concurrency: int,
    answers: bool,
    asked: Mapping[str, object],
) -> RunManifest:
    """The manifest of a run that begins now.

    Args:
        dataset: the golden set.
        base_url: of the service.
        said: what it said of itself, by label; None for the identity without one.
        top_k: results to ask for.
        repeats: passes over the set.
        concurrency: questions under way at once.
        answers: whether answers are asked for.
        asked: what else tells this run from others, JSON values; it goes into its id alone.
    """
    labelled = {label: own for label, own in said.items() if label is not None}
    now = utc_now()
    common = {
        "base_url": base_url,
        "dataset_hash": dataset.content_hash,
        "top_k": top_k,
        "service": in_own_words(said[None]),
    }
    return RunManifest(
        run_id=new_run_id({**common, **asked}, now),
        created_at=now.isoformat(),
        base_url=base_url,
        dataset_version=dataset.version,
        dataset_hash=dataset.content_hash,
        top_k=top_k,
        repeats=repeats,
        concurrency=concurrency,
        packages=package_versions(),
        **service_fields(said[None], labelled, answers=answers),
    )
