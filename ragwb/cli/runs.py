"""`ragwb runs`: list, open, export, compare and name saved runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragwb.cli.options import Format, OutputFormat, print_json, print_rows
from ragwb.html import plain

if TYPE_CHECKING:
    from ragwb.runs.store import Run, RunEntry

runs_app = typer.Typer(no_args_is_help=True)

RunName = Annotated[
    str, typer.Argument(help="A run id, a unique prefix of one, a path, `latest` or a baseline.")
]


@runs_app.command("list")
def list_command(output: OutputFormat = Format.table) -> None:
    """List the saved runs, the newest first, unfinished and broken ones too."""
    from ragwb.runs.baselines import load_baselines
    from ragwb.runs.store import list_runs
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
    from ragwb.runs.manifest import diff_manifests
    from ragwb.runs.store import load_run

    changes = diff_manifests(load_run(baseline).manifest, load_run(candidate).manifest)
    rows = [{"field": c.field, "baseline": c.baseline, "candidate": c.candidate} for c in changes]
    if output == Format.json:
        print_json({"changed_conditions": rows, "confounded": len(rows) > 1})
        return
    print_rows([{name: _written(value) for name, value in row.items()} for row in rows], output)
    if output == Format.table:
        typer.echo(_verdict({str(row["field"]) for row in rows}))


def _verdict(fields: set[str]) -> str:
    if fields & {"dataset_version", "dataset_hash"}:
        return "the golden sets differ: only their common cases can be compared"
    if not fields:
        return "no condition differs"
    if len(fields) == 1:
        return "one condition differs: an experiment"
    return "several conditions differ: a confounded comparison"


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
    manifest = entry.manifest
    return {
        "run_id": plain(entry.run_id),
        "status": entry.status,
        "names": " ".join(names.get(entry.run_id, [])),
        "dataset_version": plain(manifest.dataset_version) if manifest else None,
        "top_k": manifest.top_k if manifest else None,
        "repeats": manifest.repeats if manifest else None,
        "embedding_model": manifest.embedding_model if manifest else None,
        "created_at": manifest.created_at if manifest else None,
    }


def _counts(run: Run) -> dict[str, int]:
    cases = run.cases()
    n_errors = int((cases["status"] == "error").sum())
    return {"n_asked": len(cases), "n_answered": len(cases) - n_errors, "n_errors": n_errors}


def _written(value: Any) -> Any:
    if isinstance(value, dict | list):
        import json

        return json.dumps(value, ensure_ascii=False)
    return value
