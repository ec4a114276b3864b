"""`ragwb retrieval-eval` asks a service a golden set; `ragwb score` scores a saved run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragwb.cli.eval_options import (
    BaseUrl,
    Concurrency,
    Identities,
    IndexPath,
    Ks,
    MaxDuplicateRate,
    MaxP95Ms,
    MinHitRate,
    MinMrr,
    MinNdcg,
    MinRecall,
    Report,
    Resume,
    TokenCommand,
    TokenFile,
    finish,
)
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


@evaluate_app.command("retrieval-eval", short_help="Ask a service a golden set; verdict, report.")
def retrieval_eval(
    dataset: Annotated[Path, typer.Option(help="The golden set, JSON Lines.")],
    base_url: BaseUrl = None,
    top_k: Annotated[int, typer.Option(help="How many results to ask for, 1 to 100.")] = 5,
    k: Ks = None,
    repeats: Annotated[
        int, typer.Option(help="Passes over the golden set, fixed before the run.")
    ] = 1,
    concurrency: Concurrency = 4,
    timeout: Annotated[float, typer.Option(help="Seconds for one call, whole.")] = 30.0,
    resume: Resume = None,
    min_recall: MinRecall = None,
    min_hit_rate: MinHitRate = None,
    min_mrr: MinMrr = None,
    min_ndcg: MinNdcg = None,
    max_duplicate_rate: MaxDuplicateRate = None,
    max_p95_ms: MaxP95Ms = None,
    report: Report = None,
    token_file: TokenFile = None,
    token_command: TokenCommand = None,
    identity: Identities = None,
    index: IndexPath = None,
    output: OutputFormat = Format.table,
) -> None:
    """Ask a service every question, keep every stage's ranks, score them and give a verdict."""
    # Every limit's flag has the name of its limit: they are taken together.
    given = dict(locals())
    ks = parse_ks(k, top_k=top_k)
    identities = parse_identities(identity or [])
    from ragwb.cli.chunk_source import load_chunks
    from ragwb.cli.progress import progress_bar
    from ragwb.decide.thresholds import LIMITS, check_thresholds
    from ragwb.golden.dataset import load_dataset
    from ragwb.report.evaluation import evaluate
    from ragwb.report.files import check_report_path
    from ragwb.runs.runner import run_retrieval
    from ragwb.settings import load_settings

    limits = {name: given[name] for name in LIMITS}
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
    _finish(evaluate(run, k=ks, limits=limits), output, report)


def _finish(evaluation: Evaluation, output: Format, report: Path | None) -> None:
    from ragwb.report.files import write_report

    finish(
        evaluation,
        output,
        table=lambda: _table(evaluation),
        figures=evaluation.metrics,
        report=report,
        write=lambda base: write_report(evaluation, base),
    )


def _table(evaluation: Evaluation) -> str:
    from ragwb.report import sections
    from ragwb.view.panel import text_table

    panels = [evaluation.headline(), sections.figures(evaluation), sections.cost(evaluation)]
    parts = [panel.text for panel in panels]
    if failed := sections.failed_rows(evaluation):
        parts.append("failed cases\n" + text_table(failed, sections.FAILED_COLUMNS))
    return "\n\n".join([*parts, sections.left_out(evaluation).text])


@evaluate_app.command(short_help="Score a saved run: Ks, slices, trec_eval.")
def score(
    run: Annotated[
        str, typer.Argument(help="Run id, unique prefix, path, baseline name or latest.")
    ],
    k: Ks = None,
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
