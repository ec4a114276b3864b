"""Which saved runs lie in a period, and which cannot be used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from ragwb.decide.weekly.series import DatedRun, LeftOut, dated_run, is_same_line
from ragwb.decide.weekly.weeks import Span, read_time
from ragwb.errors import RagwbError
from ragwb.runs.listing import RunEntry, list_runs
from ragwb.runs.store import load_run
from ragwb.settings import Settings

_MOST_TRIED = 20  # runs from before the period, in search of one to hold the first week against


_EXPERIMENT = "made by an experiment, such as `ragwb sweep k --measure`"


@dataclass(frozen=True, slots=True)
class Found:
    """The runs of a period.

    Attributes:
        runs: sealed ones, in the order of time.
        left_out: unfinished and broken ones, and those of experiments, each with its reason.
        n_other: runs of other dataset versions than the one asked for.
        earlier: sealed runs from before the period, the newest first, not opened yet.
    """

    runs: tuple[DatedRun, ...]
    left_out: tuple[LeftOut, ...]
    n_other: int
    earlier: tuple[RunEntry, ...]


@dataclass(frozen=True, slots=True)
class Listed:
    """The run folders of a store as their manifests place them, none opened.

    Attributes:
        sealed: of the period and dataset, with their times.
        left_out, n_other, earlier: as in `Found`.
    """

    sealed: tuple[tuple[RunEntry, datetime], ...]
    left_out: tuple[LeftOut, ...]
    n_other: int
    earlier: tuple[RunEntry, ...]


def list_period(settings: Settings, span: Span, dataset: str | None) -> Listed:
    """The runs of a period by their manifests alone.

    A broken folder does not say when it was made: it is left out of any period.
    """
    sealed: list[tuple[RunEntry, datetime]] = []
    left_out: list[LeftOut] = []
    earlier: list[RunEntry] = []
    n_other = 0
    for entry in list_runs(settings):
        at = _made_at(entry)
        if entry.manifest is None or at is None:
            left_out.append(LeftOut(entry.run_id, "its manifest cannot be read, or has no time"))
        elif at.date() > span.until:
            continue
        elif dataset is not None and entry.manifest.dataset_version != dataset:
            n_other += span.holds(at)
        elif entry.made_by is not None:
            left_out += [LeftOut(entry.run_id, _EXPERIMENT)] if span.holds(at) else []
        elif at.date() < span.since:
            earlier += [entry] if entry.status == "sealed" else []
        elif entry.status == "sealed":
            sealed.append((entry, at))
        else:
            left_out.append(LeftOut(entry.run_id, "not finished: --resume asks for the rest"))
    return Listed(tuple(sealed), tuple(left_out), n_other, tuple(earlier))


def find_runs(settings: Settings, span: Span, dataset: str | None) -> Found:
    """The runs of a period, each opened and its content checked against its hash."""
    listed = list_period(settings, span, dataset)
    opened = [_opened(entry, at, settings) for entry, at in listed.sealed]
    runs = [one for one in opened if isinstance(one, DatedRun)]
    broken = [one for one in opened if isinstance(one, LeftOut)]
    return Found(
        runs=tuple(sorted(runs, key=lambda one: (one.at, one.run.run_id))),
        left_out=(*listed.left_out, *broken),
        n_other=listed.n_other,
        earlier=listed.earlier,
    )


def older_runs(settings: Settings, found: Found, latest: DatedRun) -> Iterator[DatedRun]:
    """Runs from before the period that can stand in the series of a run, the newest first."""
    for entry in found.earlier[:_MOST_TRIED]:
        at = _made_at(entry)
        opened = _opened(entry, at, settings) if at is not None else None
        if isinstance(opened, DatedRun) and is_same_line(opened, latest):
            yield opened


def _made_at(entry: RunEntry) -> datetime | None:
    return read_time(entry.manifest.created_at) if entry.manifest else None


def _opened(entry: RunEntry, at: datetime, settings: Settings) -> DatedRun | LeftOut:
    try:
        return dated_run(load_run(entry.path, settings), at)
    except RagwbError as error:
        return LeftOut(entry.run_id, str(error))
