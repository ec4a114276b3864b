"""`ragwb retrieval-eval` asks a service a golden set; `ragwb score` scores a saved run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragwb.cli.options import (
    Format,
    OutputFormat,
    parse_identities,
    parse_ks,
    print_json,
    print_rows,
)

if TYPE_CHECKING:
    from ragwb.report.evaluation import Evaluation

evaluate_app = typer.Typer()

Limit = float | None


@evaluate_app.command("retrieval-eval", short_help="Ask a service a golden set; verdict, report.")
def retrieval_eval(
    dataset: Annotated[Path, typer.Option(help="The golden set, JSON Lines.")],
    base_url: Annotated[
        str | None,
        typer.Option(help="The service; default RAGWB_BASE_URL or the project's setting."),
    ] = None,
    top_k: Annotated[int, typer.Option(help="How many results to ask for, 1 to 100.")] = 5,
    k: Annotated[
        str | None, typer.Option("--k", help="Positions to score at, such as 1,3,5.")
    ] = None,
    repeats: Annotated[
        int, typer.Option(help="Passes over the golden set, fixed before the run.")
    ] = 1,
    concurrency: Annotated[int, typer.Option(help="Questions under way at once.")] = 4,
    timeout: Annotated[float, typer.Option(help="Seconds for one call, whole.")] = 30.0,
    resume: Annotated[str | None, typer.Option(help="An unfinished run to go on with.")] = None,
    min_recall: Annotated[Limit, typer.Option(help="Fail below this recall at top K.")] = None,
    min_hit_rate: Annotated[Limit, typer.Option(help="Fail below this hit rate at top K.")] = None,
    min_mrr: Annotated[Limit, typer.Option(help="Fail below this MRR at top K.")] = None,
    min_ndcg: Annotated[Limit, typer.Option(help="Fail below this nDCG at top K.")] = None,
    max_duplicate_rate: Annotated[
        Limit, typer.Option(help="Fail above this share of repeated ids.")
    ] = None,
    max_p95_ms: Annotated[Limit, typer.Option(help="Fail above this 95th percentile, ms.")] = None,
    report: Annotated[
        Path | None, typer.Option(help="Write REPORT.json, REPORT.md and REPORT.html.")
    ] = None,
    token_file: Annotated[Path | None, typer.Option(help="A file that holds the token.")] = None,
    token_command: Annotated[
        str | None, typer.Option(help="A command that prints the token.")
    ] = None,
    identity: Annotated[
        list[str] | None, typer.Option(help="LABEL=TOKEN_FILE for cases with that access label.")
    ] = None,
    index: Annotated[
        Path | None,
        typer.Option(
            help="Documents or index to resolve passages with, when the service has no /chunks."
        ),
    ] = None,
    output: OutputFormat = Format.table,
) -> None:
    """Ask a service every question, keep every stage's ranks, score them and give a verdict."""
    ks = parse_ks(k, top_k=top_k)
    limits = {
        "min_recall": min_recall,
        "min_hit_rate": min_hit_rate,
        "min_mrr": min_mrr,
        "min_ndcg": min_ndcg,
        "max_duplicate_rate": max_duplicate_rate,
        "max_p95_ms": max_p95_ms,
    }
    identities = parse_identities(identity or [])
    from ragwb.cli.chunk_source import load_chunks
    from ragwb.cli.progress import progress_bar
    from ragwb.decide.thresholds import check_thresholds
    from ragwb.golden.dataset import load_dataset
    from ragwb.report.evaluation import evaluate
    from ragwb.report.files import check_report_path
    from ragwb.runs.runner import run_retrieval
    from ragwb.settings import load_settings

    check_thresholds({}, limits, top_k=top_k)
    if report is not None:
        check_report_path(report)
    settings = load_settings(base_url=base_url, token_file=token_file, token_command=token_command)
    golden = load_dataset(dataset)
    with progress_bar("asking") as on_progress:
        run = run_retrieval(
            golden,
            settings,
            top_k=top_k,
            repeats=repeats,
            concurrency=concurrency,
            timeout_s=timeout,
            resume=resume,
            identities=identities,
            chunks=None if index is None else load_chunks(index),
            on_progress=on_progress,
        )
    finish(evaluate(run, k=ks, limits=limits), report, output)


def finish(evaluation: Evaluation, report: Path | None, output: OutputFormat) -> None:
    """Print an evaluation, write its report, and leave with the verdict's exit code."""
    from ragwb.decide.thresholds import EXIT_CODES

    if output == Format.table:
        _print_evaluation(evaluation)
    else:
        print_evaluation_data(evaluation, output)
    if report is not None:
        from ragwb.report.files import write_report

        typer.echo("writing the report", err=True)
        files = write_report(evaluation, report)
        typer.echo(f"report: {files.html} (and .json, .md)", err=True)
    typer.echo(f"run: {evaluation.run.manifest.run_id}", err=True)
    raise typer.Exit(EXIT_CODES[evaluation.verdict])


def _print_evaluation(evaluation: Evaluation) -> None:
    from ragwb.report import sections
    from ragwb.view.panel import text_table

    typer.echo(evaluation.headline().text)
    for panel in (sections.figures(evaluation), sections.cost(evaluation)):
        typer.echo(f"\n{panel.text}")
    failed = sections.failed_rows(evaluation)
    if failed:
        typer.echo("\nfailed cases")
        typer.echo(text_table(failed, sections.FAILED_COLUMNS))
    typer.echo(f"\n{sections.left_out(evaluation).text}")


def print_evaluation_data(evaluation: Evaluation, output: OutputFormat) -> None:
    """The report as JSON, or its figures as CSV."""
    report = evaluation.to_dict()
    if output == Format.json:
        print_json(report)
        return
    print_rows(
        [{"metric": name, "value": value} for name, value in report["metrics"].items()], output
    )


@evaluate_app.command(short_help="Score a saved run: Ks, slices, trec_eval.")
def score(
    run: Annotated[
        str, typer.Argument(help="Run id, unique prefix, path, baseline name or latest.")
    ],
    k: Annotated[
        str | None, typer.Option("--k", help="Positions to score at, such as 1,3,5.")
    ] = None,
    by: Annotated[str | None, typer.Option(help="Slice by tags.NAME, risk, set or tier.")] = None,
    compat: Annotated[
        str | None, typer.Option(help="`trec`: trec_eval's figures on the same lists.")
    ] = None,
    level: Annotated[
        int, typer.Option(min=1, help="With --compat trec: the least grade that is relevant.")
    ] = 1,
    output: OutputFormat = Format.table,
) -> None:
    """Score a saved run at other Ks, per slice, or as trec_eval would."""
    from ragwb.runs import scoring
    from ragwb.runs.store import load_run
    from ragwb.view.panel import frame_rows

    opened = load_run(run)
    ks = parse_ks(k, top_k=opened.manifest.top_k)
    if compat is not None:
        result = scoring.score_trec(opened, k=ks, compat=compat, level=level)
        print_json(result) if output == Format.json else print_rows(
            scoring.trec_rows(result), output
        )
        return
    scores = scoring.score(opened, k=ks)
    if by is not None:
        rows = frame_rows(scores.by(by))
        print_rows(_by_slice(rows, scores.ks[-1]) if output == Format.table else rows, output)
    elif output == Format.json:
        print_json(scores.to_dict())
    else:
        print_rows(frame_rows(scores.summary()), output)


def _by_slice(rows: list[dict[str, Any]], k: int) -> list[dict[str, Any]]:
    """A row a slice for people: its n and every figure at the largest K."""
    slices: dict[str, dict[str, Any]] = {}
    for row in rows:
        name, _, at = row["metric"].partition("@")
        if at == str(k):
            entry = slices.setdefault(str(row["slice"]), {"slice": row["slice"], "n": row["n"]})
            entry[f"{name}@{k}"] = row["value"]
    return list(slices.values())
