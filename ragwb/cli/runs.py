"""`ragwb runs`: list, open, export, compare and name saved runs."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragwb.cli.options import Format, OutputFormat, print_json, print_rows
from ragwb.errors import RunError, UsageError
from ragwb.html import plain, terminal_json

if TYPE_CHECKING:
    from ragwb.runs.listing import RunEntry
    from ragwb.runs.store import Run

runs_app = typer.Typer(no_args_is_help=True)

MOST_TABLE_ROWS = 10_000

Rows = list[dict[str, Any]]

RunName = Annotated[
    str, typer.Argument(help="A run id, a unique prefix of one, a path, `latest` or a baseline.")
]


@runs_app.command("list")
def list_command(output: OutputFormat = Format.table) -> None:
    """List the saved runs, the newest first: what they asked for, and how far they came.

    `latest` is the newest sealed run, of retrieval or of answers. Incomplete is a sealed run of
    which calls failed for good; unfinished one that --resume goes on with; made_by names the
    experiment that a run belongs to.
    """
    from ragwb.runs.baselines import load_baselines
    from ragwb.runs.listing import list_runs
    from ragwb.settings import load_settings

    settings = load_settings()
    names: dict[str, list[str]] = {}
    for name, run_id in load_baselines(settings).items():
        names.setdefault(run_id, []).append(name)
    print_rows([_listed(entry, names) for entry in list_runs(settings)], output)


@runs_app.command()
def show(run: RunName, output: OutputFormat = Format.table) -> None:
    """Show what a run depends on and how many of its questions were answered."""
    from ragwb.runs.store import load_run

    opened = load_run(run)
    said = {**opened.manifest.to_dict(), **_counts(opened), "path": str(opened.path)}
    if output == Format.json:
        print_json(said)
    else:
        print_rows([{"field": name, "value": _written(said[name])} for name in said], output)


@runs_app.command()
def export(
    run: RunName,
    folder: Annotated[Path, typer.Argument(help="Where the files go; made when not there.")],
    file_format: Annotated[str, typer.Option("--as", help="csv, parquet or jsonl.")] = "csv",
    table: Annotated[
        list[str] | None,
        typer.Option(help="cases, candidates, filtered, chunks, hits, facts, coverage; repeat."),
    ] = None,
) -> None:
    """Write the tables of a run as files that other tools read."""
    from ragwb.runs.export import export_run
    from ragwb.runs.store import load_run

    for path in export_run(load_run(run), folder, file_format, tuple(table or ())):
        typer.echo(str(path))


@runs_app.command("diff-manifest")
def diff_manifest(
    baseline: RunName, candidate: RunName, output: OutputFormat = Format.table
) -> None:
    """Name the conditions in which two runs differ; more than one makes a comparison confounded."""
    from ragwb.decide.conditions import conditions
    from ragwb.runs.store import load_run

    found = conditions(load_run(baseline).manifest, load_run(candidate).manifest)
    if output == Format.json:
        changes = [dataclasses.asdict(change) for change in found.changes]
        print_json({"changed_conditions": changes, "confounded": found.confounded})
        return
    rows = [{name: _written(value) for name, value in row.items()} for row in found.rows()]
    print_rows(rows, output)
    if output == Format.table:
        typer.echo(plain(found.sentence))


@runs_app.command()
def query(
    sql: Annotated[str, typer.Argument(help="One SELECT; no file and no network is read.")],
    timeout: Annotated[
        float, typer.Option(min=1, help="Seconds until the next rows must be found.")
    ] = 300.0,
    output: OutputFormat = Format.table,
) -> None:
    """Ask all sealed runs by SQL: the views runs, cases, candidates and hits.

    `ragwb runs query "describe cases"` lists the columns of a view. The figures of `cases` are
    those at each run's top K; `where scored` takes the cases that count. A table holds up to 10,000
    rows; csv and json are printed as the rows are found. Ctrl-C ends a query.
    """
    try:
        from ragwb.runs.query import open_query

        with open_query(sql, timeout_s=timeout) as found:
            _PRINTED[output](found.row_batches())
    except KeyboardInterrupt:
        raise RunError("the query was stopped") from None
    for run_id, why in found.left_out.items():
        typer.echo(f"ragwb: run {plain(run_id)} is {why} and in no view", err=True)


def _print_table(batches: Iterable[Rows]) -> None:
    rows: Rows = []
    for batch in batches:
        rows += batch
        if len(rows) > MOST_TABLE_ROWS:
            raise UsageError(
                f"SQL: more than {MOST_TABLE_ROWS:,} rows, too many for a table: add "
                "`limit 100` to the query, or print them with --format csv"
            )
    print_rows(rows, Format.table)


def _print_csv(batches: Iterable[Rows]) -> None:
    at = -1
    for at, rows in enumerate(batches):
        print_rows(rows, Format.csv, with_head=at == 0)
    if at < 0:
        print_rows([], Format.csv)


def _print_json(batches: Iterable[Rows]) -> None:
    """The list as `print_json` would write it whole."""
    is_first = True
    for rows in batches:
        items = json.dumps(rows, ensure_ascii=False, indent=2, allow_nan=False)[2:-2]
        typer.echo("[\n" if is_first else ",\n", nl=False)
        typer.echo(terminal_json(items), nl=False)
        is_first = False
    typer.echo("[]" if is_first else "\n]")


_PRINTED: dict[Format, Callable[[Iterable[Rows]], None]] = {
    Format.table: _print_table,
    Format.csv: _print_csv,
    Format.json: _print_json,
}


@runs_app.command()
def baseline(
    name: Annotated[str, typer.Argument(help="One word; it wins over ids and prefixes.")],
    run: RunName,
) -> None:
    """Give a run a name that other commands take for it."""
    from ragwb.runs.baselines import save_baseline
    from ragwb.runs.store import load_run
    from ragwb.settings import load_settings

    settings = load_settings()
    opened = load_run(run, settings)
    save_baseline(settings, name, opened.path)
    typer.echo(f"{name} is run {opened.run_id}")


def _listed(entry: RunEntry, names: dict[str, list[str]]) -> dict[str, Any]:
    from ragwb.runs.kinds import asked_of

    manifest = entry.manifest
    asked = asked_of(entry)
    return {
        "run_id": plain(entry.run_id),
        "kind": asked.kind,
        "status": "incomplete" if asked.n_errors else entry.status,
        "n_errors": asked.n_errors,
        "names": " ".join(names.get(entry.run_id, [])),
        "dataset_version": plain(manifest.dataset_version) if manifest else None,
        "top_k": manifest.top_k if manifest else None,
        "repeats": manifest.repeats if manifest else None,
        "embedding_model": manifest.embedding_model if manifest else None,
        "created_at": manifest.created_at if manifest else None,
        "made_by": plain(entry.made_by, width=40) if entry.made_by else None,
    }


def _counts(run: Run) -> dict[str, int]:
    cases = run.cases()
    n_errors = int((cases["status"] == "error").sum())
    return {"n_asked": len(cases), "n_answered": len(cases) - n_errors, "n_errors": n_errors}


def _written(value: Any) -> Any:
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    return value
