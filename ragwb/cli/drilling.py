"""Planting faults in the reference service, one after the other, and triaging what breaks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from ragwb.cli.faults import questions_of
from ragwb.cli.progress import OnProgress
from ragwb.errors import UsageError
from ragwb.golden.case import Case, Passage
from ragwb.golden.dataset import Dataset, hash_cases
from ragwb.records import Chunk
from ragwb.runs.explaining import explain_chunks
from ragwb.runs.runner import run_answers, run_retrieval
from ragwb.runs.store import Run
from ragwb.runs.traces import load_traces
from ragwb.service.config import ServiceConfig
from ragwb.service.embedding import Embedder, load_embedder, remembering
from ragwb.service.fault_kinds import ALL, AnyFault, DocumentFault, Leak, is_planted_in
from ragwb.service.faults import FaultFile, Plan, choose
from ragwb.service.server import serving
from ragwb.settings import Settings
from ragwb.triage.asking import unexplained
from ragwb.triage.attribute import triage
from ragwb.triage.drill import Drilled, IsLeaked
from ragwb.triage.reasons import REASONS
from ragwb.triage.result import Triage

FORBIDDEN = "FORBIDDEN_RETRIEVED"
# The mode that the cases expect which a wrong answer breaks, where it is not `answer`.
_BROKEN_MODE = {"MISSED_REFUSAL": "refuse", "MISSED_CLARIFY": "clarify"}
# A progress bar of this name, for a block.
Bar = Callable[[str], AbstractContextManager[OnProgress]]


@dataclass(slots=True)
class _Sound:
    """A run of the sound service, and what the service told of its chunks."""

    triage: Triage
    chunks: list[Chunk]


@dataclass(slots=True)
class _Drilling:
    """What the faults of a drill share; `sound` by what is planted in it."""

    file: FaultFile
    dataset: Dataset
    config: ServiceConfig
    embedder: Embedder
    top_k: int
    home: Path
    bar: Bar
    sound: dict[str, _Sound] = field(default_factory=dict)


def drill(
    file: FaultFile,
    dataset: Dataset,
    config: ServiceConfig,
    *,
    top_k: int,
    home: Path,
    bar: Bar,
    tell: Callable[[str], None],
) -> Iterator[Drilled]:
    """Each fault of a file: the golden set in the sound service and in the faulty one, triaged.

    Both are real services on a free port of the loopback address. The sound one is asked once for
    all faults that are planted in the same settings.

    Args:
        file: the faults.
        dataset: the golden set.
        config: the service's corpus, embedder and cache; index, address and search are set here.
        top_k: results to ask for.
        home: where runs and indexes go.
        bar: shows the progress of a step.
        tell: told which fault is planted.

    Raises:
        UsageError: a fault plants no reason code of triage, or names an unknown document or case.
    """
    _check_reasons(file)
    questions = questions_of(dataset)
    plans = [choose(file, [fault.name], questions) for fault in file.faults]
    shared = _Drilling(
        file=file,
        dataset=dataset,
        config=replace(config, index_dir=home / "index" / "sound", host="127.0.0.1", port=0),
        embedder=remembering(load_embedder(config)),
        top_k=top_k,
        home=home,
        bar=bar,
    )
    for number, (fault, plan) in enumerate(zip(file.faults, plans, strict=True), start=1):
        tell(f"{number}/{len(plans)} {fault.name}: {fault.reason}")
        yield _drill_one(shared, fault, plan)


def _check_reasons(file: FaultFile) -> None:
    for fault in file.faults:
        if fault.reason not in REASONS:
            raise UsageError(
                f"fault {fault.name}: {fault.reason!r} is no reason code of triage: "
                f"one of {', '.join(REASONS)}"
            )


def _drill_one(shared: _Drilling, fault: AnyFault, plan: Plan) -> Drilled:
    sound = _sound(shared, fault, plan)
    chunks = sound.chunks if fault.evidence == "clean" else None
    asked = shared.dataset
    if ALL not in fault.cases:
        cases = tuple(case for case in asked.cases if case.id in fault.cases)
        asked = Dataset(asked.version, cases, hash_cases(cases))
    return Drilled(
        fault=fault.name,
        reason=fault.reason,
        cases={case.id for case in asked.cases if _is_in_scope(case, fault)},
        is_leaked=_leaked(fault),
        sound=sound.triage,
        broken=_triaged(shared, fault, asked, plan, chunks),
    )


def _sound(shared: _Drilling, fault: AnyFault, plan: Plan) -> _Sound:
    """The run of the service without a fault, or of the one that the fault is against."""
    plan = replace(plan, faults=())
    if fault.against is not None:
        plan = choose(shared.file, [fault.against], plan.questions)
    names = [planted.name for planted in plan.faults]
    key = repr((names, sorted(plan.settings.items()), fault.explains))
    if key not in shared.sound:
        found = _triaged(shared, fault, shared.dataset, plan, None)
        shared.sound[key] = _Sound(found, _chunks(found.run))
    return shared.sound[key]


def _triaged(
    shared: _Drilling,
    fault: AnyFault,
    dataset: Dataset,
    plan: Plan,
    chunks: Sequence[Chunk] | None,
) -> Triage:
    """A golden set asked and triaged, with all that `/explain` can tell of it where it may."""
    label = fault.name if fault in plan.faults else "sound"
    run_cases = run_answers if shared.file.answers else run_retrieval
    with (
        shared.bar(label) as on_progress,
        serving(
            shared.config,
            plan=plan,
            embedder=shared.embedder,
            progress=on_progress,
        ) as base_url,
    ):
        settings = Settings(root=shared.home, home=shared.home, base_url=base_url)
        run = run_cases(
            dataset, settings, top_k=shared.top_k, chunks=chunks, on_progress=on_progress
        )
        if fault.explains:
            explain_chunks(run, unexplained(load_traces(run)), settings)
    return triage(run)


def _chunks(run: Run) -> list[Chunk]:
    """All that a run knows of chunks, to resolve evidence with."""
    rows = run.chunks().astype(object)
    known = rows.where(rows.notna(), None)
    return [Chunk.model_validate(row) for row in known.to_dict("records")]


def _leaked(fault: AnyFault) -> IsLeaked | None:
    return partial(is_planted_in, fault) if isinstance(fault, Leak) else None


def _is_in_scope(case: Case, fault: AnyFault) -> bool:
    """Whether the labels of a case say that a fault can break it.

    A fault of documents breaks the cases that need one of them: those with a group that no other
    document can satisfy, or those that forbid one where that is what is planted. A fault of
    answers breaks the cases of the mode that it answers wrongly.
    """
    if REASONS[fault.reason].stage == "generation":
        return case.mode == _BROKEN_MODE.get(fault.reason, "answer")
    if isinstance(fault, Leak) or not isinstance(fault, DocumentFault):
        return True
    if fault.reason == FORBIDDEN:
        return any(_is_planted(passage, fault) for passage in case.forbidden_evidence)
    return any(all(_is_planted(p, fault) for p in group.any_of) for group in case.evidence)


def _is_planted(passage: Passage, fault: DocumentFault) -> bool:
    return is_planted_in(fault, passage.document_id, passage.document_version)
