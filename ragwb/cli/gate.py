"""`ragwb gate` holds a run against a release policy and exits with its verdict."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragwb.cli.eval_options import Report
from ragwb.cli.options import Format, OutputFormat, Rubrics, Verdicts, print_json, print_rows
from ragwb.errors import UsageError

if TYPE_CHECKING:
    from ragwb.decide.gate.result import GateResult

gate_app = typer.Typer()

SUMMARY_ENV = "GITHUB_STEP_SUMMARY"
_COLUMNS = ("block", "rule", "slice", "status", "value", "limit", "n")
_RUN = "Run id, unique prefix, path, baseline name or latest"


@gate_app.command("gate", short_help="Hold a run against a release policy: ship or not.")
def gate_command(
    run: Annotated[str, typer.Argument(help=f"{_RUN}.")],
    policy: Annotated[
        Path | None, typer.Option(help="The policy, TOML; with --init where the draft is written.")
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(help=f"{_RUN}; or the JSON of an eval's report.")
    ] = None,
    verdicts: Verdicts = None,
    rubric: Rubrics = None,
    rules: Annotated[
        Path | None, typer.Option(help="The hard rules, TOML; default those of ragwb.")
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say how each rule was read.")] = False,
    init: Annotated[
        bool, typer.Option("--init", help="Write a policy from this run to --policy, and stop.")
    ] = False,
    junit: Annotated[Path | None, typer.Option(help="Write JUnit XML.")] = None,
    summary: Annotated[
        Path | None, typer.Option(help=f"Add Markdown to this file; default ${SUMMARY_ENV}.")
    ] = None,
    report: Report = None,
    output: OutputFormat = Format.table,
) -> None:
    """Hold a run against a policy: safety, floors, regression, budget; every blocker is named.

    Exit codes: 0 pass, 1 fail, 3 undecided, 2 when the policy or a run is wrong.
    """
    if init:
        _draft(baseline or run, policy, rules)
        return
    if policy is None:
        raise UsageError(
            f"--policy FILE: name the policy to hold the run against; `ragwb gate {run} --init "
            "--policy FILE` drafts one there"
        )
    from ragwb.decide.gate.policy import load_policy
    from ragwb.report.files import check_report_path
    from ragwb.report.gating import gate

    if report is not None:
        check_report_path(report)
    found = gate(
        run,
        load_policy(policy),
        baseline=baseline,
        verdicts=verdicts or (),
        rubrics=rubric or (),
        rules=rules,
    )
    _write(found, junit, summary or _summary_of(os.environ.get(SUMMARY_ENV)), report)
    _print(found, output, explain=explain)
    raise typer.Exit(found.exit_code)


def _summary_of(named: str | None) -> Path | None:
    return Path(named) if named else None


def _write(
    found: GateResult, junit: Path | None, summary: Path | None, report: Path | None
) -> None:
    from ragwb.report.gate_files import append_summary, write_gate_report, write_junit

    if junit is not None:
        write_junit(found, junit)
    if summary is not None:
        append_summary(found, summary)
    if report is not None:
        *_, page = write_gate_report(found, report)
        typer.echo(f"report: {page} (and .json, .md)", err=True)


def _print(found: GateResult, output: Format, *, explain: bool) -> None:
    from ragwb.report.gate_files import READ_COLUMNS, read_rows
    from ragwb.view.panel import text_table

    if output == Format.json:
        print_json(found.to_dict())
        return
    if output == Format.csv:
        rows = [rule.to_dict() for rule in found.rules]
        print_rows([{name: row[name] for name in _COLUMNS} for row in rows], output)
        return
    typer.echo("\n".join(found.lines()))
    typer.echo("\n" + text_table(found.rows(), _COLUMNS))
    if explain:
        typer.echo("\n" + text_table(read_rows(found), READ_COLUMNS))


def _draft(run: str, policy: Path | None, rules: Path | None) -> None:
    """Write a first policy; one that is there is never overwritten."""
    if policy is None:
        raise UsageError("--init: give --policy FILE as well: the draft is written there")
    from ragwb.decide.gate.policy_draft import draft_policy, unchecked_leaks
    from ragwb.decide.outcomes import outcomes_of
    from ragwb.report.notebook import write_atomically
    from ragwb.runs.store import load_run

    if policy.exists():
        raise UsageError(f"--init --policy {policy}: is there already; give another path")
    outcomes = outcomes_of(load_run(run), rules=rules)
    write_atomically(policy, draft_policy(outcomes, name=policy.stem))
    typer.echo(f"policy: {policy}", err=True)
    if unchecked_leaks(outcomes):
        typer.echo(
            f"leaks are NOT checked by it: `ragwb triage {outcomes.name}` asks a service that has "
            "/explain; see [safety] there",
            err=True,
        )
    typer.echo(f"next: ragwb gate {outcomes.name} --policy {policy} --explain", err=True)
