"""`ragwb weekly` makes one page of all runs of a period: what moved, what broke, does it ship."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragwb.cli.options import Format, OutputFormat, print_json, print_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

weekly_app = typer.Typer()


@weekly_app.command("weekly", short_help="Make one page of all runs of a period.")
def weekly_command(
    since: Annotated[
        str | None,
        typer.Option(help="First day or week, 2026-01-05 or 2026-W02; default 12 weeks."),
    ] = None,
    until: Annotated[str | None, typer.Option(help="Last day or week; default today.")] = None,
    dataset: Annotated[str | None, typer.Option(help="One dataset version; default all.")] = None,
    policy: Annotated[
        Path | None, typer.Option(help="A gate's policy for the last run of each series.")
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(help="What the policy compares with; default the run of the week before."),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(help="Path without an ending; default reports/weekly/<week>."),
    ] = None,
    pdf: Annotated[bool, typer.Option("--pdf", help="Print it on A4 as well.")] = False,
    schedule: Annotated[
        bool,
        typer.Option("--schedule", help="Print a crontab line and a systemd timer, and stop."),
    ] = False,
    output: OutputFormat = Format.table,
) -> None:
    """Make one page of all runs of a period: trends, what changed since last week, the verdict.

    Reads saved runs alone. A page decides nothing: the exit code is 0 whatever its verdict.
    """
    if schedule:
        _print_schedule(dataset, policy, baseline, report, pdf=pdf)
        return
    from ragwb.decide.weekly.weeks import read_span
    from ragwb.report.files import check_report_path
    from ragwb.report.weekly import write_weekly
    from ragwb.runs.writer import utc_now

    span = read_span(since, until, now=utc_now())
    base = report or Path("reports") / "weekly" / span.week
    check_report_path(base)
    _check_runs(since, until, dataset, policy, baseline)
    parameters = {
        # A day later than now would be another period for the notebook.
        "since": span.since.isoformat(),
        "until": span.until.isoformat(),
        "dataset": dataset or "",
        "policy": "" if policy is None else str(policy.expanduser().absolute()),
        "baseline": baseline or "",
    }
    typer.echo(f"weekly report of {span}, a kernel is started for it", err=True)
    files = write_weekly(base, parameters, pdf=pdf)
    _print(files.period, output)
    for path in (files.html, files.pdf):
        if path is not None:
            typer.echo(f"report: {path}", err=True)


def _check_runs(
    since: str | None,
    until: str | None,
    dataset: str | None,
    policy: Path | None,
    baseline: str | None,
) -> None:
    """Say in a line what a notebook would fail at, before one is started."""
    from ragwb.decide.weekly.period import check_period

    check_period(since=since, until=until, dataset=dataset, policy=policy, baseline=baseline)


def _print_schedule(
    dataset: str | None,
    policy: Path | None,
    baseline: str | None,
    report: Path | None,
    *,
    pdf: bool,
) -> None:
    from ragwb.report.pdf import BROWSER
    from ragwb.report.schedule import schedule_text
    from ragwb.settings import load_settings

    options: list[str] = ["--pdf"] if pdf else []
    options += ["--dataset", dataset] if dataset else []
    options += ["--policy", str(policy.expanduser().absolute())] if policy else []
    options += ["--baseline", baseline] if baseline else []
    options += ["--report", str(report.expanduser().absolute())] if report else []

    program = [sys.executable, "-m", "ragwb"]
    settings = load_settings()
    # What is set in this shell is not in that of cron.
    environment = {"RAGWB_HOME": str(settings.home)} if "RAGWB_HOME" in os.environ else {}
    if pdf and BROWSER in os.environ:
        environment[BROWSER] = os.environ[BROWSER]
    text = schedule_text(program, ["weekly", *options], settings.root, environment)
    typer.echo(text, nl=False)


def _print(period: Mapping[str, Any], output: Format) -> None:
    if output == Format.json:
        print_json(period)
    elif output == Format.csv:
        print_rows(_csv_rows(period), output)
    else:
        from ragwb.html import plain

        for series in period["series"]:
            typer.echo(plain(series["name"]))
            for line in series["lines"]:
                typer.echo(f"  {plain(line)}")


def _csv_rows(period: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A row a run and figure."""
    return [
        {
            "series": series["name"],
            "run_id": run["run_id"],
            "created_at": run["created_at"],
            "metric": metric,
            **figure,
        }
        for series in period["series"]
        for run in series["runs"]
        for metric, figure in run["metrics"].items()
    ]
