"""`ragwb triage` says of every failed case where its evidence disappeared, and what proves it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragwb.cli.eval_options import Identities, TokenCommand, TokenFile
from ragwb.cli.options import (
    Format,
    OutputFormat,
    Rubrics,
    Verdicts,
    parse_identities,
    print_json,
    print_rows,
)
from ragwb.errors import GoldenError, UsageError
from ragwb.html import plain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ragwb.runs.store import Run
    from ragwb.runs.traces import Traces
    from ragwb.settings import Settings
    from ragwb.triage.result import Triage
    from ragwb.triage.verdict import TriagedCase

triage_app = typer.Typer()


@triage_app.command("triage", short_help="Say where each failed case lost its evidence, and why.")
def triage_command(
    run: Annotated[
        str, typer.Argument(help="Run id, unique prefix, path, baseline name or latest.")
    ],
    top_k: Annotated[
        int | None, typer.Option(help="The cut of the results; default the run's top K.")
    ] = None,
    case: Annotated[str | None, typer.Option(help="One failed case in full.")] = None,
    what_if: Annotated[
        bool, typer.Option("--what-if", help="What other settings would fix and break.")
    ] = False,
    offline: Annotated[
        bool, typer.Option("--offline", help="Ask nothing; the saved run alone.")
    ] = False,
    base_url: Annotated[
        str | None, typer.Option(help="Where to ask /explain; default the run's service.")
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="Questions under way at once.")] = 4,
    token_file: TokenFile = None,
    token_command: TokenCommand = None,
    identity: Identities = None,
    rules: Annotated[
        Path | None, typer.Option(help="The hard rules of answers, TOML; default those of ragwb.")
    ] = None,
    verdicts: Verdicts = None,
    rubric: Rubrics = None,
    output: OutputFormat = Format.table,
) -> None:
    """Say where each failed case lost its evidence, and what proves it.

    Asks the run's service for what the trace alone cannot tell, if it answers and is the same;
    what it says is kept with the run. Answers are judged by hard rules (--rules) and, for claims
    that nothing supports, by the verdicts of people or of a calibrated judge (--verdicts).
    """
    identities = parse_identities(identity or [])
    from ragwb.cli.triage_scores import answer_scores
    from ragwb.runs.store import load_run
    from ragwb.runs.traces import load_traces
    from ragwb.settings import load_settings
    from ragwb.triage.attribute import checked_k, triage_traces

    settings = load_settings(base_url=base_url, token_file=token_file, token_command=token_command)
    opened = load_run(run, settings)
    checked_k(opened, top_k)
    _check_id_space(opened)
    scores, said = answer_scores(opened, rules, verdicts or (), rubric or (), settings)
    for line in said:
        _warn(line)
    traces = load_traces(opened)
    unasked: Mapping[str | None, str] = _of_all(traces, "as --offline says")
    if not offline:
        is_given = base_url is not None or token_file is not None or token_command is not None
        where = base_url or opened.manifest.base_url
        unasked = _ask(traces, settings, where, top_k, identities, concurrency, is_given=is_given)
    found = triage_traces(traces, k=top_k, scores=scores, unasked=unasked)
    hint = _hint(run, top_k, rules, verdicts or (), rubric or ())
    _print(found, None if case is None else found.case(case), output, hint, what_if=what_if)


def _hint(
    run: str,
    top_k: int | None,
    rules: Path | None,
    verdicts: Sequence[Path],
    rubrics: Sequence[Path],
) -> str:
    """The command as far as it decides what is found."""
    from ragwb.cli.triage_table import quoted

    words = [f"ragwb triage {quoted(run)}"]
    words += [] if top_k is None else [f"--top-k {top_k}"]
    words += [] if rules is None else [f"--rules {quoted(str(rules))}"]
    words += [f"--verdicts {quoted(str(file))}" for file in verdicts]
    words += [f"--rubric {quoted(str(file))}" for file in rubrics]
    return " ".join(words)


def _check_id_space(opened: Run) -> None:
    """Say that nothing of the set is known here, which is one fault and not one of every case."""
    from ragwb.runs.id_space import check_id_space

    try:
        check_id_space(opened)
    except GoldenError as error:
        _warn(str(error))


def _ask(
    traces: Traces,
    settings: Settings,
    where: str | None,
    top_k: int | None,
    identities: dict[str, Path],
    concurrency: int,
    *,
    is_given: bool,
) -> Mapping[str | None, str]:
    """Have the run's service explain what it was not asked; what stands in the way is a line.

    Returns:
        Why it was not asked, by the label of who asked in the run.
    """
    from dataclasses import replace

    from ragwb.cli.progress import progress_bar
    from ragwb.runs.explaining import explain_chunks, is_token_meant_for
    from ragwb.sources.http import check_base_url
    from ragwb.triage.asking import unexplained

    wanted = unexplained(traces, k=top_k)
    if not wanted:
        return {}
    if where is None:
        _warn("the run names no service: --base-url URL asks one, --offline none")
        return _of_all(traces, "the run names no service")
    try:
        check_base_url(where)
    except UsageError as error:
        if is_given:
            raise
        _warn(f"the run's service is not asked: {error}; --base-url URL asks another")
        return _of_all(traces, "the address that the run names is none")
    if not is_given and not is_token_meant_for(settings, where, identities):
        _warn(
            f"{where}, where the run was made, is not asked: the token in force is for "
            f"{settings.base_url}; --base-url {where} sends it there"
        )
        return _of_all(traces, "the token in force is for another service")
    with progress_bar("explaining") as on_progress:
        asked = explain_chunks(
            traces.run,
            wanted,
            replace(settings, base_url=where),
            identities=identities,
            concurrency=concurrency,
            on_progress=on_progress,
        )
    traces.add_explanations(asked.explained)
    for warning in asked.warnings:
        _warn(warning)
    return asked.unasked


def _of_all(traces: Traces, why: str) -> dict[str | None, str]:
    """One reason for every identity of a run."""
    labels = (case.case.access for case in traces.cases.values())
    return dict.fromkeys([None, *labels], why)


def _warn(line: str) -> None:
    typer.echo(f"ragwb: {plain(line)}", err=True)


def _print(
    found: Triage, case: TriagedCase | None, output: Format, hint: str, *, what_if: bool
) -> None:
    from ragwb.cli.triage_table import print_case, print_next, print_overview

    if output == Format.table and case is None:
        print_overview(found)
    elif output == Format.table and case is not None:
        print_case(found, case)
    elif not what_if:
        _print_data(found, case, output)
    if what_if:
        _print_what_if(found, case, output)
    if output == Format.table:
        print_next(found, case, hint=hint, what_if=what_if)


def _print_data(found: Triage, case: TriagedCase | None, output: Format) -> None:
    if output == Format.json:
        print_json(found.to_dict() if case is None else [case.verdict.to_dict()])
        return
    from ragwb.view.panel import frame_rows

    rows = frame_rows(found.frame)
    print_rows([row for row in rows if case is None or row["case_id"] == case.case_id], output)


def _print_what_if(found: Triage, case: TriagedCase | None, output: Format) -> None:
    from ragwb.cli.whatif_table import print_case_remedies, print_remedies

    if case is None:
        print_remedies(found, output)
    else:
        print_case_remedies(found, case.case_id, output)
