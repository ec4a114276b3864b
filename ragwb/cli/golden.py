"""`ragwb golden check` and `golden resolve`: is a golden set right, does its evidence hold?"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragwb.cli.options import Format, OutputFormat, print_json, print_rows
from ragwb.errors import GoldenError, UsageError
from ragwb.html import plain
from ragwb.measure.listed import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ragwb.cli.chunk_source import Knowledge
    from ragwb.golden.dataset import Dataset
    from ragwb.golden.passages import ResolvedCase
    from ragwb.knowledge.chunking import ChunkingSpec

golden_app = typer.Typer(no_args_is_help=True)

EVIDENCE_LOST = 1
BAD_FILE = 2

# Findings that somebody must mend; `split` and `gone` are told and pass. So is `hidden` at a
# service, which rightly shows nobody another tenant's text; an index shows all, and what it does
# not hold is nowhere.
_FAILING = {"drifted", "differs", "missing", "unknown", "forbidden"}
_FAILING_WHERE_ALL_IS_SHOWN = {"hidden"}

GoldenFile = Annotated[Path, typer.Argument(help="The golden set, JSON Lines.")]
Index = Annotated[
    Path | None,
    typer.Option("--index", "--corpus", help="An index, or a folder of documents to cut."),
]
BaseUrl = Annotated[str | None, typer.Option(help="A service that tells its chunks.")]
TokenFile = Annotated[Path | None, typer.Option(help="A file that holds the service's token.")]
TokenCommand = Annotated[str | None, typer.Option(help="A command that prints the token.")]
Strategy = Annotated[
    str | None, typer.Option(help="How documents are cut: fixed, recursive or heading (default).")
]
Size = Annotated[int | None, typer.Option(help="Most tokens of a chunk; default 400.")]
Overlap = Annotated[int | None, typer.Option(help="Tokens that neighbours share; default 0.")]


@golden_app.command("check")
def check_command(
    file: GoldenFile,
    index: Index = None,
    base_url: BaseUrl = None,
    token_file: TokenFile = None,
    token_command: TokenCommand = None,
    strategy: Strategy = None,
    size: Size = None,
    overlap: Overlap = None,
    output: OutputFormat = Format.table,
) -> None:
    """Check a golden set: every fault of the file, and evidence that an index no longer holds.

    Exit codes: 0 the file is fine and its evidence is held, as far as it was looked up; 1 evidence
    is no longer held, or labels contradict each other; 2 the file is wrong, or the call is.
    """
    spec = _spec(strategy, size, overlap)
    dataset = _load(file, output)
    if index is None and base_url is None:
        if spec is not None:
            raise UsageError("--strategy, --size and --overlap cut documents: give --index DIR")
        _print_check(dataset, None, [], None, output)
        return
    knowledge = _knowledge(dataset, index, base_url, token_file, token_command, spec)
    from ragwb.golden.passages import resolve_dataset

    resolved = resolve_dataset(dataset, knowledge.chunks)
    findings = list(_findings(resolved))
    _print_check(dataset, resolved, findings, _figures(resolved, knowledge), output)
    failing = _FAILING | (_FAILING_WHERE_ALL_IS_SHOWN if knowledge.is_whole else set())
    if any(finding["finding"] in failing for finding in findings):
        raise typer.Exit(EVIDENCE_LOST)


@golden_app.command("resolve")
def resolve_command(
    file: GoldenFile,
    index: Index = None,
    base_url: BaseUrl = None,
    token_file: TokenFile = None,
    token_command: TokenCommand = None,
    strategy: Strategy = None,
    size: Size = None,
    overlap: Overlap = None,
    write: Annotated[
        bool, typer.Option("--write", help="Fill expected_chunk_ids of the file from its evidence.")
    ] = False,
    output: OutputFormat = Format.table,
) -> None:
    """Print the chunk ids of each case's evidence in an index, under a chunking or at a service."""
    if index is None and base_url is None:
        raise UsageError("nothing to resolve with: give --index DIR or --base-url URL")
    spec = _spec(strategy, size, overlap)
    dataset = _load(file, output)
    knowledge = _knowledge(dataset, index, base_url, token_file, token_command, spec)
    from ragwb.golden.passages import resolve_dataset

    resolved = resolve_dataset(dataset, knowledge.chunks)
    if write:
        _write(file, resolved)
    if output == Format.json:
        print_json([_case_json(case) for case in resolved])
    else:
        print_rows([row for case in resolved for row in _group_rows(case)], output)


def _load(file: Path, output: Format) -> Dataset:
    """The golden set; its faults go to stderr, a line each, and end the command."""
    from ragwb.golden.dataset import load_dataset

    try:
        return load_dataset(file)
    except GoldenError as error:
        if not error.faults:
            raise
        for fault in error.faults:
            typer.echo(plain(fault), err=True)
        if output == Format.json:
            faults = [
                {"where": fault.where, "field": fault.field, "message": fault.message}
                for fault in error.faults
            ]
            print_json({"file": str(file), "faults": faults})
        raise typer.Exit(BAD_FILE) from error


def _spec(strategy: str | None, size: int | None, overlap: int | None) -> ChunkingSpec | None:
    """How to cut documents, None when nothing was said."""
    from ragwb.knowledge.chunking import ChunkingSpec

    said = {"strategy": strategy, "size": size, "overlap": overlap}
    given: dict[str, Any] = {name: value for name, value in said.items() if value is not None}
    return ChunkingSpec(**given) if given else None


def _knowledge(
    dataset: Dataset,
    index: Path | None,
    base_url: str | None,
    token_file: Path | None,
    token_command: str | None,
    spec: ChunkingSpec | None,
) -> Knowledge:
    from ragwb.cli.chunk_source import fetch_knowledge, load_knowledge
    from ragwb.settings import load_settings

    if index is not None:
        if base_url is not None:
            raise UsageError("--index and --base-url are two places: give one")
        return load_knowledge(index, spec)
    if spec is not None:
        raise UsageError("a service cuts by itself: drop --strategy, --size and --overlap")
    settings = load_settings(base_url=base_url, token_file=token_file, token_command=token_command)
    return fetch_knowledge(settings, dataset)


def _findings(resolved: Iterable[ResolvedCase]) -> Iterable[dict[str, str]]:
    """A row for each note: `kind label: text`."""
    for case in resolved:
        for note in case.notes:
            kind, _, rest = note.partition(" ")
            label, _, text = rest.partition(": ")
            yield {"case_id": case.case.id, "finding": kind, "label": label, "text": text}


def _figures(resolved: Sequence[ResolvedCase], knowledge: Knowledge) -> dict[str, Any]:
    """The figures of the data layer; None where the source does not tell enough."""
    from ragwb.measure.knowledge import (
        corpus_duplicate_rate,
        knowledge_coverage,
        split_rate,
        unattributed_documents,
    )

    origins = knowledge.origins
    return {
        "knowledge_coverage": knowledge_coverage(resolved, knowledge.published),
        "split_rate": split_rate(resolved),
        # Of the documents that a set happens to name, a share would say nothing of the corpus.
        "corpus_duplicate_rate": (
            corpus_duplicate_rate(knowledge.chunks) if knowledge.is_whole else None
        ),
        "unattributed_documents": None if origins is None else unattributed_documents(origins),
    }


def _print_check(
    dataset: Dataset,
    resolved: Sequence[ResolvedCase] | None,
    findings: Sequence[dict[str, str]],
    figures: Mapping[str, Any] | None,
    output: Format,
) -> None:
    summary = {
        "file": str(dataset.path),
        "dataset_version": dataset.version,
        "content_hash": dataset.content_hash,
        "n_cases": len(dataset.cases),
        "tiers": dict(Counter(case.tier for case in dataset.cases)),
        "modes": dict(Counter(case.mode for case in dataset.cases)),
    }
    if output == Format.json:
        counted = None if resolved is None else dict(Counter(row["finding"] for row in findings))
        told = {"counts": counted, "findings": findings, "figures": figures}
        print_json({**summary, "faults": [], **told})
    elif output == Format.csv:
        print_rows(findings, output)
    else:
        typer.echo(_headline(dataset, resolved, findings))
        if findings:
            print_rows(findings, output)
        if figures is not None:
            typer.echo()
            print_rows(_figure_rows(figures), output)


def _figure_rows(figures: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A row a figure; of names, how many there are and the first of them."""
    rows = []
    for name, value in figures.items():
        shown = ", ".join([str(len(value)), *value[:3]]) if isinstance(value, list) else value
        rows.append({"figure": name, "value": shown})
    return rows


def _headline(
    dataset: Dataset,
    resolved: Sequence[ResolvedCase] | None,
    findings: Sequence[dict[str, str]],
) -> str:
    start = f"{dataset.path}: {dataset.version}, {count(len(dataset.cases), 'case')}, no fault"
    if resolved is None:
        return plain(f"{start} (evidence not looked up: give --index DIR or --base-url URL)")
    kinds = Counter(row["finding"] for row in findings)
    told = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    n_groups = sum(len(case.groups) for case in resolved)
    return plain(f"{start}; {n_groups} evidence groups: {told or 'all held'}")


def _case_json(case: ResolvedCase) -> dict[str, Any]:
    return {
        "case_id": case.case.id,
        "excluded": case.excluded,
        "groups": [group.model_dump(mode="json") for group in case.groups],
        "forbidden_chunk_ids": list(case.forbidden_chunk_ids),
        "notes": list(case.notes),
    }


def _group_rows(case: ResolvedCase) -> list[dict[str, Any]]:
    """A row for each group, and one that says why for a case without any."""
    return [
        {
            "case_id": case.case.id,
            "group": group.index if group else None,
            "label": group.label if group else None,
            "split": group.split if group else None,
            "chunk_ids": " ".join(group.chunk_ids) if group else None,
            "excluded": case.excluded,
        }
        for group in case.groups or (None,)
    ]


def _write(file: Path, resolved: Sequence[ResolvedCase]) -> None:
    from ragwb.golden.dataset import save_dataset
    from ragwb.golden.expected import fill_expected_ids

    cases, left = fill_expected_ids(resolved)
    save_dataset(cases, file)
    typer.echo(f"{file}: written", err=True)
    if left:
        typer.echo(plain(f"left as they were, evidence not found: {', '.join(left)}"), err=True)
